//! For measurements and tests that made a schema of their own: taking it away again, and which server that was. Nothing
//! in service may call this.

use super::{connect, failure};
use crate::sql::{OpenError, SqlConfig};

/// Removes the schema with everything in it. One that is not there is no error.
///
/// # Errors
/// When the database cannot be reached, or refuses.
pub async fn drop_schema(config: &SqlConfig) -> Result<(), OpenError> {
    let client = connect::pool(config)?.get().await.map_err(failure::pool)?;
    let failed = |error| OpenError::from(failure::fault(error));
    // Deleting the files of large tables may take longer than any transaction in service.
    client.batch_execute("SET statement_timeout TO '1min'").await.map_err(failed)?;
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", config.schema)).await.map_err(failed)
}

/// Which server this is and what its word "committed" is worth, for whoever compares figures.
///
/// # Errors
/// When the database cannot be reached.
pub async fn about(config: &SqlConfig) -> Result<String, OpenError> {
    let client = connect::pool(config)?.get().await.map_err(failure::pool)?;
    let ask = "SELECT format('PostgreSQL %s, fsync %s, synchronous_commit %s', current_setting('server_version'),
                             current_setting('fsync'), current_setting('synchronous_commit'))";
    let row = client.query_one(ask, &[]).await.map_err(|error| OpenError::from(failure::fault(error)))?;
    row.try_get(0).map_err(|error| OpenError::from(failure::fault(error)))
}
