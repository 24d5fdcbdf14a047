//! The tables and their version: made and migrated under a lock. Statements that make tables commit on their own here,
//! so each can be run again after a crash in between.

use super::{MyStore, failure};
use crate::sql::{Fault, OpenError};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// Every version's statements, in order. One that has not been run is run, also where a later one was there before it.
pub(super) const VERSIONS: &[(u32, &str)] = &[
    (1, include_str!("migrations/1.sql")),
    (2, include_str!("migrations/2.sql")),
    (3, include_str!("migrations/3.sql")),
    (4, include_str!("migrations/4.sql")),
];
/// The tables that must not be somebody else's.
const TABLES: &str = "'stock','units','holds','claims','orders','ledger','purchases','payments','jobs','events','receipts','totals','moves','hot_partitions','hot_steps','hot_parked'";

pub(super) async fn run(store: &MyStore) -> Result<(), OpenError> {
    let mut connection = store.connection().await.map_err(|fault| {
        OpenError(format!(
            "{fault}; is the database up, does it exist, and are its host, port, user and password right?"
        ))
    })?;
    let told = migrate(&mut connection).await;
    // The lock goes with the connection, whatever happened.
    let gone = connection.disconnect().await;
    told?;
    gone.map_err(|error| failure::fault(error).into())
}

async fn migrate(db: &mut Conn) -> Result<(), OpenError> {
    let failed = |error| OpenError::from(failure::fault(error));
    let locked: Option<i64> =
        db.query_first("SELECT GET_LOCK(CONCAT('holdfast ', DATABASE()), 60)").await.map_err(failed)?;
    if locked != Some(1) {
        return Err(Fault::Unavailable("another node has been making the tables for a minute".into()).into());
    }
    let is_there = "SELECT COUNT(*) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'holdfast_version'";
    let is_ours: Option<i64> = db.query_first(is_there).await.map_err(failed)?;
    if is_ours != Some(1) {
        let others = format!(
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ({TABLES})"
        );
        let others: Option<i64> = db.query_first(others).await.map_err(failed)?;
        if others != Some(0) {
            return Err(OpenError(
                "the database has tables of these names that are not holdfast's; give it a database of its own: CREATE DATABASE holdfast"
                    .into(),
            ));
        }
        let create = "CREATE TABLE holdfast_version (version INT NOT NULL PRIMARY KEY,
            made_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE = InnoDB";
        db.query_drop(create).await.map_err(failed)?;
    }
    let found: Vec<u32> = db.query("SELECT version FROM holdfast_version ORDER BY version").await.map_err(failed)?;
    let known = VERSIONS.last().map_or(0, |(version, _)| *version);
    if let Some(found) = found.last().filter(|found| **found > known) {
        return Err(OpenError(format!(
            "the database has schema version {found}, but this program knows version {known}; run a newer holdfast"
        )));
    }
    for (version, statements) in VERSIONS.iter().filter(|(version, _)| !found.contains(version)) {
        tracing::info!(version, "making the tables");
        for statement in statements.split(";\n").filter(|statement| !statement.trim().is_empty()) {
            db.query_drop(statement).await.map_err(failed)?;
        }
        db.exec_drop("INSERT INTO holdfast_version (version) VALUES (?)", (version,)).await.map_err(failed)?;
    }
    Ok(())
}
