//! Where a row is measured: a folder or a schema of its own, with as many nodes on it as the row asks for.

use super::super::Args;
use super::super::litter::Litter;
use super::super::store::Store;
use super::args::{Batches, Case, Kind};
use crate::engine::REDIS_WORKERS;
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Engine, Lanes, LanesConfig, SqlConfig};

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Connections of a node.
const POOL: usize = 8;

/// The nodes of a row.
pub(super) struct Place {
    /// At least one.
    pub(super) nodes: Vec<Arc<dyn Engine>>,
    /// Removed when everything is over.
    folder: Option<TempDir>,
}

impl Place {
    /// Makes it, with empty tables.
    pub(super) async fn make(args: &Args, case: &Case, folder: &Path, litter: &Litter) -> Result<Self, String> {
        match &case.engine.kind {
            Kind::Embedded => {
                let folder = super::super::temporary(folder)?;
                let engine = Embedded::open(folder.path()).map_err(|e| format!("cannot open the store: {e}"))?;
                Ok(Self { nodes: vec![Arc::new(engine)], folder: Some(folder) })
            }
            Kind::Database(_, url) | Kind::Redis(url) => {
                let mut store = Store::of(url, args)?;
                if let Store::Database(_, config) = &mut store {
                    let strategy = case.strategy.unwrap_or_default();
                    *config =
                        SqlConfig { strategy, lock_nodes: case.lock_nodes.to_vec(), pool: POOL, ..config.clone() };
                }
                let store = store.fresh(litter).await?;
                let mut nodes = Vec::with_capacity(case.nodes);
                for _ in 0..case.nodes {
                    nodes.push(store.open().await?);
                }
                Ok(Self { nodes, folder: None })
            }
        }
    }

    /// Lanes in front of each node, as the row asks for them.
    pub(super) fn lanes(&self, case: &Case, clients: usize) -> Result<Vec<Lanes>, String> {
        // Redis answers all over one connection, so there is no pool to be short of.
        let is_redis = matches!(case.engine.kind, Kind::Redis(_));
        let (one, batched) = if is_redis { (clients, REDIS_WORKERS) } else { (clients.min(POOL), 1) };
        let default = LanesConfig::default();
        let depth = default.depth.max(clients);
        let config = match case.batches {
            Batches::One => LanesConfig { depth, max_batch: 1, workers: one },
            Batches::Batched => LanesConfig { depth, workers: batched, ..default },
        };
        self.nodes.iter().map(|node| Lanes::start(node.clone(), &config).map_err(|e| e.to_string())).collect()
    }

    /// Batches that were decided again, on all nodes.
    pub(super) async fn retries(&self) -> u64 {
        let mut retries = 0;
        for node in &self.nodes {
            retries += node.health().await.retries;
        }
        retries
    }

    /// Waits until nothing is under way any more, and removes the folder. A schema is removed by the litter.
    pub(super) async fn leave(self) -> Result<(), String> {
        for node in self.nodes {
            // The loops behind the lanes end by themselves once the lanes are gone.
            for _ in 0..200 {
                if Arc::strong_count(&node) == 1 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        self.folder.map_or(Ok(()), |folder| folder.close().map_err(|e| format!("the folder is not gone: {e}")))
    }
}
