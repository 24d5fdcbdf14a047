//! Which engine a command works on: flags and variables first, then the file.

use crate::Failure;
use crate::redis_args::RedisArgs;
use clap::Args;
use holdfast_engine::domain::Policy;
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Database, Engine, LanesConfig, RedisConfig, SqlConfig, Strategy};
use holdfast_server::FileConfig;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Args, Clone, Default)]
pub(crate) struct EngineArgs {
    /// Where stock and holds live: embedded, postgres://user:password@host/database, mysql://…, redis://… or
    /// redis+cluster://… [default: embedded].
    #[arg(long, env = "HOLDFAST_ENGINE", value_name = "ENGINE", hide_env_values = true)]
    pub(crate) engine: Option<String>,
    /// The folder of the embedded engine [default: ./holdfast-data].
    #[arg(long, env = "HOLDFAST_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// How a database's units are claimed: row_lock, optimistic, skip_locked or redlock [default: row_lock].
    #[arg(long, env = "HOLDFAST_STRATEGY", value_name = "NAME")]
    pub(crate) strategy: Option<String>,
    /// Independent Redis servers that give leases, redis://:password@host:port each: for the strategy redlock, and to
    /// elect the node that sweeps and audits for all.
    #[arg(long, env = "HOLDFAST_LOCK_NODES", value_name = "URL,…", value_delimiter = ',', hide_env_values = true)]
    pub(crate) lock_nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) redis: RedisArgs,
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
}

/// How a database is used, whichever it is.
// The fields are called like the flags.
#[allow(clippy::struct_field_names)]
#[derive(Args, Clone, Default)]
pub(crate) struct DatabaseArgs {
    /// PostgreSQL: the schema for the tables [default: holdfast].
    #[arg(long, env = "HOLDFAST_DATABASE_SCHEMA", value_name = "NAME")]
    pub(crate) database_schema: Option<String>,
    /// The most connections to the database [default: 8].
    #[arg(long, env = "HOLDFAST_DATABASE_POOL", value_name = "N")]
    pub(crate) database_pool: Option<usize>,
    /// Milliseconds to wait for a connection to the database [default: 2000].
    #[arg(long, env = "HOLDFAST_DATABASE_WAIT_MS", value_name = "MS")]
    pub(crate) database_wait_ms: Option<u64>,
    /// Milliseconds that a statement or a commit may take, waiting for locks included [default: 5000].
    #[arg(long, env = "HOLDFAST_DATABASE_TIMEOUT_MS", value_name = "MS")]
    pub(crate) database_timeout_ms: Option<u64>,
    /// Certificates to trust besides the public ones, for a database behind TLS.
    #[arg(long, env = "HOLDFAST_DATABASE_CA", value_name = "FILE.pem")]
    pub(crate) database_ca: Option<PathBuf>,
}

/// What was chosen.
#[derive(Debug)]
pub(crate) enum Choice {
    Embedded { data_dir: PathBuf, policy: Policy },
    Database(Database, Box<SqlConfig>),
    Redis(Box<RedisConfig>),
}

/// Batches of a lane under way at once on Redis, where nothing else is configured: one that waits for the ledger does
/// not stand in the way of others.
pub(crate) const REDIS_WORKERS: usize = 4;

impl EngineArgs {
    /// Decides between flags, file and defaults, and refuses what makes no sense.
    pub(crate) fn choose(&self, file: &FileConfig, policy: Policy) -> Result<Choice, Failure> {
        let engine = self.engine.clone().or_else(|| file.engine.clone()).unwrap_or_else(|| "embedded".into());
        let strategy = self.strategy.clone().or_else(|| file.strategy.clone());
        let is_told = strategy.is_some();
        let strategy = strategy.map_or(Ok(Strategy::default()), |name| parse_strategy(&name))?;
        if RedisConfig::is_for(&engine) {
            if is_told {
                return Err("a strategy is for an engine on a database; with Redis, leave out --strategy"
                    .to_owned()
                    .into());
            }
            return Ok(Choice::Redis(Box::new(self.redis.config(engine, &self.database, file, policy)?)));
        }
        let choice = match Database::of(&engine) {
            None if engine == "embedded" => {
                if strategy != Strategy::default() {
                    return Err("a strategy is for an engine on a database; leave out --strategy".to_owned().into());
                }
                let data_dir = self.data_dir.clone().or_else(|| file.data_dir.clone().map(PathBuf::from));
                Choice::Embedded { data_dir: data_dir.unwrap_or_else(|| "holdfast-data".into()), policy }
            }
            Some(database) => {
                let lock_nodes = self.lock_nodes(file);
                if strategy == Strategy::Redlock && lock_nodes.is_empty() {
                    return Err(NO_LOCK_NODES.to_owned().into());
                }
                let config = SqlConfig { strategy, policy, lock_nodes, ..self.database.config(engine, file)? };
                Choice::Database(database, Box::new(config))
            }
            None => {
                return Err(Failure::Told(format!(
                    "the engine {:?} is not known to this version; use embedded, postgres://user:password@host/database, mysql://…, \
                     redis://user:password@host:6379 or redis+cluster://…",
                    without_password(&engine)
                )));
            }
        };
        self.redis.refuse(file)?;
        Ok(choice)
    }

    pub(crate) fn lock_nodes(&self, file: &FileConfig) -> Vec<String> {
        if self.lock_nodes.is_empty() { file.lock_nodes.clone() } else { self.lock_nodes.clone() }
    }
}

const NO_LOCK_NODES: &str =
    "the strategy redlock needs Redis servers that give leases; name them with --lock-nodes redis://host:6379,…";

impl DatabaseArgs {
    /// The configuration for this URL, but for what the shop decides.
    pub(crate) fn config(&self, url: String, file: &FileConfig) -> Result<SqlConfig, Failure> {
        let default = SqlConfig::new(url);
        let millis = |flag: Option<u64>, file: Option<u64>, default: Duration| {
            flag.or(file).map_or(default, Duration::from_millis)
        };
        let config = SqlConfig {
            schema: self.database_schema.clone().or_else(|| file.database_schema.clone()).unwrap_or(default.schema),
            pool: self.database_pool.or(file.database_pool).unwrap_or(default.pool),
            wait: millis(self.database_wait_ms, file.database_wait_ms, default.wait),
            timeout: millis(self.database_timeout_ms, file.database_timeout_ms, default.timeout),
            ca: self.database_ca.clone().or_else(|| file.database_ca.clone().map(PathBuf::from)),
            ..default
        };
        let is_range = |name: &str, ok: bool, what: &str| {
            if ok { Ok(()) } else { Err(Failure::Told(format!("{name} must be {what}"))) }
        };
        is_range("database_pool", (2..=1000).contains(&config.pool), "from 2 to 1000 connections")?;
        let is_sane = |time: Duration| (10..=600_000).contains(&time.as_millis());
        is_range("database_wait_ms", is_sane(config.wait), "from 10 to 600000 ms")?;
        is_range("database_timeout_ms", is_sane(config.timeout), "from 10 to 600000 ms")?;
        Ok(config)
    }
}

fn parse_strategy(name: &str) -> Result<Strategy, Failure> {
    match Strategy::parse(name) {
        Some(Strategy::Naive) => {
            Err("the strategy naive oversells, as it is meant to; it is for `holdfast bench` only".to_owned().into())
        }
        Some(strategy) => Ok(strategy),
        None => {
            Err(format!("the strategy {name:?} is not known; use row_lock, optimistic, skip_locked or redlock").into())
        }
    }
}

impl Choice {
    /// What tells this deployment from others, for whoever shares lock nodes with them. No password is in it.
    pub(crate) fn scope(&self) -> String {
        match self {
            Self::Embedded { data_dir, .. } => format!("embedded:{}", data_dir.display()),
            Self::Database(_, config) => format!("{}#{}", without_password(&config.url), config.schema),
            Self::Redis(config) => format!("{}#{}", without_password(&config.url), config.space),
        }
    }

    /// Opens it.
    pub(crate) async fn open(self) -> Result<Arc<dyn Engine>, Failure> {
        match self {
            Self::Embedded { data_dir, policy } => {
                let engine = tokio::task::spawn_blocking(move || Embedded::open_with(&data_dir, policy)).await??;
                Ok(Arc::new(engine))
            }
            Self::Database(database, config) => Ok(database.open(&config).await?),
            Self::Redis(config) => Ok(holdfast_engine::redis::open(&config).await?),
        }
    }

    /// Where waiting rooms keep their journals: beside a store that is this node's alone.
    pub(crate) fn rooms_dir(&self) -> Option<PathBuf> {
        match self {
            Self::Embedded { data_dir, .. } => Some(data_dir.join("rooms")),
            _ => None,
        }
    }

    /// Batches of a lane under way at once, where nothing is configured.
    pub(crate) fn workers(&self) -> usize {
        match self {
            Self::Redis(_) => REDIS_WORKERS,
            Self::Embedded { .. } | Self::Database(..) => LanesConfig::default().workers,
        }
    }
}

/// The user name and password of a URL are nobody's business.
pub(crate) fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(start), Some(end)) if start < end => format!("{}://…{}", &url[..start], &url[end..]),
        // Mistyped, it has a password all the same.
        (_, Some(end)) => format!("…{}", &url[end..]),
        _ => url.to_owned(),
    }
}
