//! For measurements and tests that make a database of their own: making it, taking it away again, and which server that
//! was. Nothing in service may call this.

use super::{connect, failure};
use crate::sql::{OpenError, SqlConfig};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

pub(super) async fn connection(config: &SqlConfig) -> Result<Conn, OpenError> {
    let pool = connect::pool(config)?;
    let connected = tokio::time::timeout(config.wait, pool.get_conn()).await;
    let connected = connected.map_err(|_| OpenError("no connection to MySQL in time".into()))?;
    connected.map_err(|error| failure::connection(error).into())
}

/// Makes a database of this name on the server, and tells how to use it.
///
/// # Errors
/// When the server cannot be reached, or refuses.
pub async fn make_database(config: &SqlConfig, name: &str) -> Result<SqlConfig, OpenError> {
    let mut db = connection(config).await?;
    let failed = |error| OpenError::from(failure::fault(error));
    db.query_drop(format!("CREATE DATABASE `{name}`")).await.map_err(failed)?;
    let (url, options) = config.url.split_once('?').map_or((&*config.url, None), |(url, rest)| (url, Some(rest)));
    let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
    let options = options.map(|options| format!("?{options}")).unwrap_or_default();
    Ok(SqlConfig { url: format!("{server}/{name}{options}"), ..config.clone() })
}

/// Removes the database that the URL names, with everything in it.
///
/// # Errors
/// When the server cannot be reached, or refuses.
pub async fn drop_database(config: &SqlConfig) -> Result<(), OpenError> {
    let name = Opts::from_url(&config.url).ok().and_then(|opts| opts.db_name().map(str::to_owned));
    let mut db = connection(config).await?;
    let failed = |error| OpenError::from(failure::fault(error));
    db.query_drop(format!("DROP DATABASE `{}`", name.unwrap_or_default())).await.map_err(failed)
}

/// Which server this is and what its word "committed" is worth, for whoever compares figures.
///
/// # Errors
/// When the server cannot be reached.
pub async fn about(config: &SqlConfig) -> Result<String, OpenError> {
    let ask = "SELECT CONCAT('MySQL ', VERSION(), ', innodb_flush_log_at_trx_commit ',
                             @@innodb_flush_log_at_trx_commit)";
    let told: Option<String> =
        connection(config).await?.query_first(ask).await.map_err(|error| OpenError::from(failure::fault(error)))?;
    Ok(told.unwrap_or_default())
}
