//! Engines on Redis with a database as their ledger: fresh names in both, on the servers that `cargo xtask test` started.

use super::databases::{Database, Kind, fresh_name, skipped};
use super::lab::Opened;
use holdfast_engine::domain::Policy;
use holdfast_engine::{Durability, Engine, RedisConfig, Strategy, redis};
use std::sync::Arc;
use std::time::Duration;

/// One server, or a cluster of three with replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hot {
    Single,
    Cluster,
}

impl Hot {
    /// Where the server is that the suites share.
    pub fn shared_url(self) -> Option<String> {
        let variable = match self {
            Self::Single => "HOLDFAST_TEST_REDIS",
            Self::Cluster => "HOLDFAST_TEST_REDIS_CLUSTER",
        };
        let url = std::env::var(variable).ok();
        if url.is_none() {
            skipped(&format!("{variable} is not set; run the tests with `cargo xtask test`"));
        }
        url
    }
}

/// A namespace of a hot store and one of its ledger, and how nodes use them.
#[derive(Clone)]
pub struct HotStore {
    pub config: RedisConfig,
    pub ledger: Database,
}

impl HotStore {
    pub async fn shared(hot: Hot, ledger: Kind) -> Option<Self> {
        let url = hot.shared_url()?;
        // On a cluster, few carts are of one partition only.
        let partitions = if hot == Hot::Cluster { 8 } else { 1 };
        Self::on(&url, partitions, ledger).await
    }

    /// On this server or cluster.
    pub async fn on(url: &str, partitions: u32, ledger: Kind) -> Option<Self> {
        let ledger = Database::shared(ledger, Strategy::RowLock).await?;
        let config = RedisConfig {
            space: fresh_name(),
            partitions: Some(partitions),
            durability: Durability::Memory,
            timeout: Duration::from_secs(10),
            ..RedisConfig::new(url, ledger.config.clone())
        };
        Some(Self { config, ledger })
    }

    /// One more node.
    pub async fn node(&self) -> Arc<dyn Engine> {
        redis::open(&self.config).await.unwrap()
    }
}

/// A fresh one under this policy.
pub async fn opened(hot: Hot, ledger: Kind, policy: Policy) -> Option<Opened> {
    let mut store = HotStore::shared(hot, ledger).await?;
    store.config.ledger.policy = policy;
    let engine = store.node().await;
    Some(Opened { engine, keep: Box::new(()) })
}
