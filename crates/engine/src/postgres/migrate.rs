//! The tables and their version: made and migrated under a lock, all or nothing.

use super::failure;
use crate::sql::{Fault, OpenError};
use deadpool_postgres::Pool;

/// Every version's statements, in order. One that has not been run is run, also where a later one was there before it.
pub(super) const VERSIONS: &[(i32, &str)] = &[
    (1, include_str!("migrations/1.sql")),
    (2, include_str!("migrations/2.sql")),
    (3, include_str!("migrations/3.sql")),
    (4, include_str!("migrations/4.sql")),
];
/// Two nodes that start together do this one after the other.
const LOCK: i64 = 0x686f_6c64_6661_7374;

pub(super) async fn run(pool: &Pool, schema: &str) -> Result<(), OpenError> {
    let client = pool.get().await.map_err(failure::pool).map_err(|fault| {
        OpenError(format!("{fault}; is the database up, and are its host, port, user and password right?"))
    })?;
    let told = migrate(&client, schema).await;
    if told.is_err() {
        // The connection may be left in a transaction.
        drop(deadpool_postgres::Object::take(client));
    }
    told
}

async fn migrate(client: &deadpool_postgres::Client, schema: &str) -> Result<(), OpenError> {
    let failed = |error| OpenError::from(failure::fault(error));
    // After the lock, the tables have to be seen as they are then, whatever the server's defaults.
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout TO 0";
    client.batch_execute(begin).await.map_err(failed)?;
    client.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    let is_there = "SELECT to_regclass($1 || '.schema_version') IS NOT NULL";
    let is_there: bool = client.query_one(is_there, &[&schema]).await.map_err(failed)?.get(0);
    let found: Vec<i32> = if is_there {
        let versions =
            client.query("SELECT version FROM schema_version ORDER BY version", &[]).await.map_err(failed)?;
        versions.iter().map(|row| row.get(0)).collect()
    } else {
        Vec::new()
    };
    let known = VERSIONS.last().map_or(0, |(version, _)| *version);
    if let Some(found) = found.last().filter(|found| **found > known) {
        return Err(OpenError(format!(
            "the database has schema version {found}, but this program knows version {known}; run a newer holdfast"
        )));
    }
    if found.is_empty() {
        let create = format!(
            "CREATE SCHEMA IF NOT EXISTS \"{schema}\";
             CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())"
        );
        client.batch_execute(&create).await.map_err(|error| match failure::fault(error) {
            Fault::Unavailable(why) => OpenError(format!(
                "{why}; the user must be allowed to make the schema {schema}, or to make tables in it"
            )),
            other => other.into(),
        })?;
    }
    for (version, statements) in VERSIONS.iter().filter(|(version, _)| !found.contains(version)) {
        tracing::info!(version, schema, "making the tables");
        client.batch_execute(statements).await.map_err(failed)?;
        client.execute("INSERT INTO schema_version (version) VALUES ($1)", &[version]).await.map_err(failed)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}
