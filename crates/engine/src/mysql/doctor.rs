//! What MySQL or MariaDB tells of itself and of our tables, without touching either.

use super::{failure, migrate, remove};
use crate::sql::{Facts, OpenError, SqlConfig, VIOLATING};
use holdfast_domain::Time;
use mysql_async::Conn;
use mysql_async::prelude::{FromRow, Queryable};

pub(crate) async fn look(config: &SqlConfig) -> Result<Facts, OpenError> {
    let about = remove::about(config).await?;
    let mut db = remove::connection(config).await?;
    let max_connections: i64 = one(&mut db, "SELECT CAST(@@max_connections AS SIGNED)").await?;
    let threads: (String, i64) = one(&mut db, "SHOW GLOBAL STATUS LIKE 'Threads_connected'").await?;
    let now: i64 = one(&mut db, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000 AS SIGNED)").await?;
    let is_there = "SELECT COUNT(*) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'holdfast_version'";
    let is_there: i64 = one(&mut db, is_there).await?;
    let (mut version, mut checks, mut violating) = (0, Vec::new(), 0);
    if is_there == 1 {
        version = one(&mut db, "SELECT CAST(COALESCE(MAX(version), 0) AS SIGNED) FROM holdfast_version").await?;
        let ask = "SELECT constraint_name FROM information_schema.table_constraints
            WHERE constraint_schema = DATABASE() AND constraint_type = 'CHECK'";
        checks = db.query(ask).await.map_err(|error| OpenError::from(failure::fault(error)))?;
    }
    if version > 0 {
        violating = one(&mut db, VIOLATING).await?;
    }
    let known = migrate::VERSIONS.len() as i64;
    // This connection is none of a node's.
    let used_connections = threads.1 - 1;
    Ok(Facts {
        about,
        version,
        known,
        checks,
        violating,
        max_connections,
        used_connections,
        now: Time::from_millis(now),
    })
}

async fn one<T: FromRow + Send + 'static>(db: &mut Conn, ask: &str) -> Result<T, OpenError> {
    let told = db.query_first(ask).await.map_err(|error| OpenError::from(failure::fault(error)))?;
    told.ok_or_else(|| OpenError("the database gave no answer".into()))
}
