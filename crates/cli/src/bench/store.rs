//! Where a server under test keeps its stock, if not in a folder: a database, or Redis with a database as its ledger.

use super::args::Args;
use super::litter::Litter;
use holdfast_engine::redis::Backlog;
use holdfast_engine::{Database, Durability, Engine, RedisConfig, SqlConfig};
use std::sync::Arc;

/// A place that others may share.
#[derive(Clone)]
pub(super) enum Store {
    Database(Database, SqlConfig),
    /// With the database of its ledger.
    Redis(Database, Box<RedisConfig>),
}

impl Store {
    /// Of this URL, with the ledger and the durability of the flags. What is not understood is not repeated: it may be part
    /// of a password.
    pub(super) fn of(url: &str, args: &Args) -> Result<Self, String> {
        if let Some(database) = Database::of(url) {
            return Ok(Self::Database(database, SqlConfig::new(url)));
        }
        if !RedisConfig::is_for(url) {
            return Err("use postgres://user:password@host/database, mysql://… or redis://…".into());
        }
        let ledger = args.ledger.as_deref().ok_or("an engine on Redis needs its ledger: --ledger postgres://…")?;
        let database =
            Database::of(ledger).ok_or("--ledger must be postgres://user:password@host/database or mysql://…")?;
        let durability = args.durability.as_deref().map_or(Some(Durability::default()), Durability::parse);
        let durability = durability.ok_or("--durability must be memory, aof, replicated or ledger")?;
        let config = RedisConfig { durability, ..RedisConfig::new(url, SqlConfig::new(ledger)) };
        config.check().map_err(|e| e.to_string())?;
        Ok(Self::Redis(database, Box::new(config)))
    }

    /// The same with a schema, a database or a key space of its own, which the litter removes.
    pub(super) async fn fresh(&self, litter: &Litter) -> Result<Self, String> {
        match self {
            Self::Database(database, config) => {
                let fresh = litter.fresh(*database, &config.url).await?;
                Ok(Self::Database(*database, SqlConfig { pool: config.pool, strategy: config.strategy, ..fresh }))
            }
            Self::Redis(database, config) => {
                let ledger = litter.fresh(*database, &config.ledger.url).await?;
                Ok(Self::Redis(*database, Box::new(litter.fresh_keys(RedisConfig { ledger, ..(**config).clone() }))))
            }
        }
    }

    /// Which server this is, and what its answers are worth.
    pub(super) async fn about(&self) -> Result<Vec<String>, String> {
        let told = |database: Database, config: SqlConfig| async move {
            database.about(&config).await.map_err(|e| e.to_string())
        };
        match self {
            Self::Database(database, config) => Ok(vec![told(*database, config.clone()).await?]),
            Self::Redis(database, config) => {
                let redis = holdfast_engine::redis::about(config).await.map_err(|e| e.to_string())?;
                Ok(vec![redis, format!("ledger: {}", told(*database, config.ledger.clone()).await?)])
            }
        }
    }

    /// Opens an engine on it.
    pub(super) async fn open(&self) -> Result<Arc<dyn Engine>, String> {
        match self {
            Self::Database(database, config) => database.open(config).await,
            Self::Redis(_, config) => holdfast_engine::redis::open(config).await,
        }
        .map_err(|e| e.to_string())
    }

    /// The variables that tell a server of it. Not flags: everybody on this machine can read a command line, and a URL has a
    /// password.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Database(_, config) => {
                vec![("HOLDFAST_ENGINE", config.url.clone()), ("HOLDFAST_DATABASE_SCHEMA", config.schema.clone())]
            }
            Self::Redis(_, config) => vec![
                ("HOLDFAST_ENGINE", config.url.clone()),
                ("HOLDFAST_LEDGER", config.ledger.url.clone()),
                ("HOLDFAST_DATABASE_SCHEMA", config.ledger.schema.clone()),
                ("HOLDFAST_REDIS_SPACE", config.space.clone()),
                ("HOLDFAST_DURABILITY", config.durability.to_string()),
            ],
        }
    }

    /// What tells how far its ledger is behind, if it has one. For a store that is served by now.
    pub(super) async fn backlog(&self) -> Result<Option<Backlog>, String> {
        match self {
            Self::Database(..) => Ok(None),
            Self::Redis(_, config) => Backlog::open(config).await.map(Some).map_err(|e| e.to_string()),
        }
    }

    pub(super) fn is_redis(&self) -> bool {
        matches!(self, Self::Redis(..))
    }

    pub(super) fn is_postgres(&self) -> bool {
        matches!(self, Self::Database(Database::Postgres, _))
    }
}
