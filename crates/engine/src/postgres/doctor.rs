//! What PostgreSQL tells of itself and of our tables, without touching either.

use super::{connect, failure, migrate};
use crate::sql::{Facts, OpenError, SqlConfig, VIOLATING};
use holdfast_domain::Time;

pub(crate) async fn look(config: &SqlConfig) -> Result<Facts, OpenError> {
    let about = super::about(config).await?;
    let client = connect::pool(config)?.get().await.map_err(failure::pool)?;
    let failed = |error| OpenError::from(failure::fault(error));
    let numbers =
        "SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') - 1,
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        to_regclass($1 || '.schema_version') IS NOT NULL";
    let row = client.query_one(numbers, &[&config.schema]).await.map_err(failed)?;
    let number = |at: usize| row.try_get::<_, i64>(at).map_err(failed);
    let (max_connections, used_connections, now) = (number(0)?, number(1)?, Time::from_millis(number(2)?));
    let is_there: bool = row.try_get(3).map_err(failed)?;
    let (mut version, mut checks, mut violating) = (0, Vec::new(), 0);
    if is_there {
        let ask = "SELECT coalesce(max(version), 0)::bigint FROM schema_version";
        version = client.query_one(ask, &[]).await.map_err(failed)?.try_get(0).map_err(failed)?;
        let ask = "SELECT c.conname::text FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
            WHERE c.contype = 'c' AND c.convalidated AND n.nspname = $1";
        for row in client.query(ask, &[&config.schema]).await.map_err(failed)? {
            checks.push(row.try_get(0).map_err(failed)?);
        }
    }
    if version > 0 {
        violating = client.query_one(VIOLATING, &[]).await.map_err(failed)?.try_get(0).map_err(failed)?;
    }
    let known = migrate::VERSIONS.len() as i64;
    Ok(Facts { about, version, known, checks, violating, max_connections, used_connections, now })
}
