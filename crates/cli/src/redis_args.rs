//! How Redis is used, where it is the engine: flags and variables first, then the file.

use crate::Failure;
use crate::engine::{DatabaseArgs, without_password};
use clap::Args;
use holdfast_engine::domain::Policy;
use holdfast_engine::{Database, Durability, RedisConfig, SqlConfig};
use holdfast_server::FileConfig;
use std::time::Duration;

// The fields are called like the flags.
#[allow(clippy::struct_field_names)]
#[derive(Args, Clone, Default)]
pub(crate) struct RedisArgs {
    /// Redis: the database that keeps the ledger, postgres://user:password@host/database or mysql://…
    #[arg(long, env = "HOLDFAST_LEDGER", value_name = "URL", hide_env_values = true)]
    pub(crate) ledger: Option<String>,
    /// Redis: what must have a hold before it is answered: memory, aof, replicated or ledger [default: memory].
    #[arg(long, env = "HOLDFAST_DURABILITY", value_name = "NAME")]
    pub(crate) durability: Option<String>,
    /// Redis: how many replicas must have a hold, with --durability replicated [default: 1].
    #[arg(long, env = "HOLDFAST_REDIS_REPLICAS", value_name = "N")]
    pub(crate) redis_replicas: Option<u32>,
    /// Redis: what its keys begin with [default: hf].
    #[arg(long, env = "HOLDFAST_REDIS_SPACE", value_name = "NAME")]
    pub(crate) redis_space: Option<String>,
    /// Redis: how many partitions stock is spread over [default: 1, on a cluster 16].
    #[arg(long, env = "HOLDFAST_REDIS_PARTITIONS", value_name = "N")]
    pub(crate) redis_partitions: Option<u32>,
    /// Redis: milliseconds that a call may take [default: 2000].
    #[arg(long, env = "HOLDFAST_REDIS_TIMEOUT_MS", value_name = "MS")]
    pub(crate) redis_timeout_ms: Option<u64>,
    /// Redis: log entries that may wait for the ledger before new holds are refused [default: 100000].
    #[arg(long, env = "HOLDFAST_REDIS_BACKLOG", value_name = "N")]
    pub(crate) redis_backlog: Option<u64>,
}

impl RedisArgs {
    /// The configuration for Redis at this URL.
    pub(crate) fn config(
        &self,
        url: String,
        database: &DatabaseArgs,
        file: &FileConfig,
        policy: Policy,
    ) -> Result<RedisConfig, Failure> {
        let forms = "postgres://user:password@host/database or mysql://user:password@host/database";
        let Some(ledger) = self.ledger.clone().or_else(|| file.ledger.clone()) else {
            return Err(Failure::Told(format!(
                "an engine on Redis keeps its ledger in a database; name it with --ledger or HOLDFAST_LEDGER: {forms}"
            )));
        };
        if Database::of(&ledger).is_none() {
            let ledger = without_password(&ledger);
            return Err(Failure::Told(format!("the ledger {ledger:?} is no database that is known; use {forms}")));
        }
        let durability = self.durability.as_ref().or(file.durability.as_ref());
        let default = RedisConfig::new(url, SqlConfig { policy, ..database.config(ledger, file)? });
        let timeout = self.redis_timeout_ms.or(file.redis_timeout_ms);
        let config = RedisConfig {
            durability: durability.map_or(Ok(default.durability), |name| parse_durability(name))?,
            replicas: self.redis_replicas.or(file.redis_replicas).unwrap_or(default.replicas),
            space: self.redis_space.clone().or_else(|| file.redis_space.clone()).unwrap_or(default.space),
            partitions: self.redis_partitions.or(file.redis_partitions),
            timeout: timeout.map_or(default.timeout, Duration::from_millis),
            backlog: self.redis_backlog.or(file.redis_backlog).unwrap_or(default.backlog),
            ..default
        };
        config.check()?;
        Ok(config)
    }

    /// On any other engine, none of this means anything.
    pub(crate) fn refuse(&self, file: &FileConfig) -> Result<(), Failure> {
        let given = [
            ("ledger", self.ledger.is_some() || file.ledger.is_some()),
            ("durability", self.durability.is_some() || file.durability.is_some()),
            ("redis-replicas", self.redis_replicas.is_some() || file.redis_replicas.is_some()),
            ("redis-space", self.redis_space.is_some() || file.redis_space.is_some()),
            ("redis-partitions", self.redis_partitions.is_some() || file.redis_partitions.is_some()),
            ("redis-timeout-ms", self.redis_timeout_ms.is_some() || file.redis_timeout_ms.is_some()),
            ("redis-backlog", self.redis_backlog.is_some() || file.redis_backlog.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Failure::Told(format!(
                "{} is for an engine on Redis; leave out --{name} (or its variable, or its key), or choose --engine redis://…",
                name.replace('-', "_")
            ))),
            None => Ok(()),
        }
    }
}

fn parse_durability(name: &str) -> Result<Durability, Failure> {
    let unknown =
        || Failure::Told(format!("the durability {name:?} is not known; use memory, aof, replicated or ledger"));
    Durability::parse(name).ok_or_else(unknown)
}
