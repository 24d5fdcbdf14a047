//! The engine on PostgreSQL: any number of nodes on one database.
//!
//! A batch is one READ COMMITTED transaction, whatever the server's defaults: SKUs are locked in order, the rules
//! decide, and what changed is written with a handful of array statements.

mod connect;
mod doctor;
mod failure;
mod hot;
mod migrate;
mod notes;
mod pipeline;
mod read;
mod remove;
mod rows;
mod tx;
mod write;

pub(crate) use doctor::look;
pub use remove::{about, drop_schema};

use crate::Engine;
use crate::moving::{MoveError, OnProgress, Report, Source};
use crate::sql::{Fault, Ledger, Mode, OpenError, SqlConfig, SqlEngine, Store};
use async_trait::async_trait;
use deadpool_postgres::Pool;
use std::sync::Arc;
use std::time::Duration;
use tx::PgTx;

/// One statement a file.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("sql/", $name, ".sql"))
    };
}
use sql;

/// Opens the engine on this database, and makes or migrates its tables.
///
/// # Errors
/// When the database cannot be reached, refuses us, or was written by a newer version; in words that name the way out.
pub async fn open(config: &SqlConfig) -> Result<Arc<dyn Engine>, OpenError> {
    let engine = SqlEngine::open(store_of(config).await?, config).await?;
    engine.expect_no_hot_store().await?;
    Ok(Arc::new(engine))
}

/// Opens it as the ledger of an engine that keeps its holds elsewhere.
pub(crate) async fn open_ledger(config: &SqlConfig) -> Result<Arc<dyn Ledger>, OpenError> {
    Ok(Arc::new(SqlEngine::open(store_of(config).await?, config).await?))
}

/// The store, its tables made or migrated.
async fn store_of(config: &SqlConfig) -> Result<PgStore, OpenError> {
    let pool = connect::pool(config)?;
    migrate::run(&pool, &config.schema).await?;
    let store = PgStore { pool, timeout: config.timeout };
    Ok(store)
}

/// Takes a whole store into this database, and makes or migrates its tables.
pub(crate) async fn import(
    config: &SqlConfig,
    source: Arc<dyn Source>,
    on_progress: &mut OnProgress<'_>,
) -> Result<Report, MoveError> {
    let store = PgStore { pool: connect::pool(config)?, timeout: config.timeout };
    migrate::run(&store.pool, &config.schema).await?;
    crate::sql::import(&store, source, on_progress).await
}

struct PgStore {
    pool: Pool,
    timeout: Duration,
}

#[async_trait]
impl Store for PgStore {
    type Tx = PgTx;

    async fn begin(&self, mode: Mode) -> Result<PgTx, Fault> {
        let client = self.pool.get().await.map_err(failure::pool)?;
        PgTx::begin(client, mode, self.timeout).await
    }
}
