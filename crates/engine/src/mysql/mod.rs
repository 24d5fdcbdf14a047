//! The engine on MySQL and MariaDB: any number of nodes on one database.
//!
//! A batch is one READ COMMITTED transaction, whatever the server's defaults: SKUs are locked in order, the rules
//! decide, and what changed is written with statements of many rows. The protocol has no pipelining and no arrays, so
//! statements are spread to as many places as there are values.

mod connect;
mod doctor;
mod failure;
mod hot;
mod migrate;
mod notes;
mod read;
mod remove;
mod rows;
mod spread;
mod tx;
mod write;

pub(crate) use doctor::look;
pub use remove::{about, drop_database, make_database};

use crate::Engine;
use crate::moving::{MoveError, OnProgress, Report, Source};
use crate::sql::{Fault, Ledger, Mode, OpenError, SqlConfig, SqlEngine, Store};
use async_trait::async_trait;
use mysql_async::Pool;
use std::sync::Arc;
use std::time::Duration;
use tx::MyTx;

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
async fn store_of(config: &SqlConfig) -> Result<MyStore, OpenError> {
    let store = MyStore { pool: connect::pool(config)?, wait: config.wait, timeout: config.timeout };
    migrate::run(&store).await?;
    Ok(store)
}

/// Takes a whole store into this database, and makes or migrates its tables.
pub(crate) async fn import(
    config: &SqlConfig,
    source: Arc<dyn Source>,
    on_progress: &mut OnProgress<'_>,
) -> Result<Report, MoveError> {
    let store = MyStore { pool: connect::pool(config)?, wait: config.wait, timeout: config.timeout };
    migrate::run(&store).await?;
    crate::sql::import(&store, source, on_progress).await
}

struct MyStore {
    pool: Pool,
    wait: Duration,
    timeout: Duration,
}

impl MyStore {
    async fn connection(&self) -> Result<mysql_async::Conn, Fault> {
        match tokio::time::timeout(self.wait, self.pool.get_conn()).await {
            Ok(connection) => connection.map_err(failure::connection),
            Err(_) => Err(Fault::Unavailable("no connection to MySQL in time".into())),
        }
    }
}

#[async_trait]
impl Store for MyStore {
    type Tx = MyTx;

    async fn begin(&self, mode: Mode) -> Result<MyTx, Fault> {
        MyTx::begin(self.connection().await?, mode, self.timeout).await
    }
}
