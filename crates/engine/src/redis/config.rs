//! What can be configured about an engine on Redis.

use super::net::NetConfig;
use crate::partition::MAX_PARTITIONS;
use crate::sql::{OpenError, SqlConfig};
use std::fmt;
use std::time::Duration;

/// What must be true before a hold is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Redis has it in memory. What Redis loses when it dies is lost, unless the ledger had it by then.
    #[default]
    Memory,
    /// Redis has it in its file: it must be set to `appendonly yes` and `appendfsync always`, or the engine does not start.
    Aof,
    /// A number of replicas have it.
    Replicated,
    /// The ledger has it: nothing that was answered is lost whatever happens to Redis.
    Ledger,
}

impl Durability {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Aof, Self::Replicated, Self::Ledger];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Aof => "aof",
            Self::Replicated => "replicated",
            Self::Ledger => "ledger",
        }
    }

    /// Reads the name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.as_str() == text)
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where Redis and its ledger are, and how they are used.
#[derive(Clone)]
pub struct RedisConfig {
    /// `redis://[user:password@]host:port` or `redis+cluster://[user:password@]host:port,host:port`; `rediss` for TLS.
    pub url: String,
    /// The database that is the ledger; its policy is the engine's. Its strategy means nothing here.
    pub ledger: SqlConfig,
    /// What keys begin with.
    pub space: String,
    /// How many partitions; `None`: one on a single server, sixteen on a cluster.
    pub partitions: Option<u32>,
    /// What must be true before a hold is answered.
    pub durability: Durability,
    /// With [`Durability::Replicated`]: how many replicas.
    pub replicas: u32,
    /// How long a call may take.
    pub timeout: Duration,
    /// Log entries that may wait to be written to the ledger before new holds are refused.
    pub backlog: u64,
}

/// Without the URL: it carries a password.
impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("ledger", &self.ledger)
            .field("space", &self.space)
            .field("partitions", &self.partitions)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

impl RedisConfig {
    /// The defaults, for `redis://[user:password@]host:port` or `redis+cluster://[user:password@]host:port,host:port`.
    pub fn new(url: impl Into<String>, ledger: SqlConfig) -> Self {
        Self {
            ledger,
            space: "hf".into(),
            partitions: None,
            durability: Durability::default(),
            replicas: 1,
            timeout: Duration::from_secs(2),
            backlog: 100_000,
            url: url.into(),
        }
    }

    /// Whether this URL is for Redis.
    pub fn is_for(url: &str) -> bool {
        let schemes = ["redis", "rediss", "redis+cluster", "rediss+cluster"];
        url.split_once("://").is_some_and(|(scheme, _)| schemes.contains(&scheme))
    }

    /// Refuses what makes no sense, before anything is reached. Never tells a password.
    ///
    /// # Errors
    /// In words that name the way out.
    pub fn check(&self) -> Result<(), OpenError> {
        NetConfig::parse(&self.url).map_err(OpenError)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
        let space = &self.space;
        let is_space = (1..=64).contains(&space.len()) && space.chars().all(is_plain);
        let all = [
            ("redis_space", is_space, "1 to 64 of a-z, A-Z, 0-9 and _-.:".to_owned()),
            ("redis_replicas", (1..=100).contains(&self.replicas), "from 1 to 100".to_owned()),
            ("redis_timeout_ms", (10..=600_000).contains(&self.timeout.as_millis()), "from 10 to 600000 ms".to_owned()),
            ("redis_backlog", self.backlog > 0, "at least 1".to_owned()),
            (
                "redis_partitions",
                self.partitions.is_none_or(|count| (1..=MAX_PARTITIONS).contains(&count)),
                format!("from 1 to {MAX_PARTITIONS}"),
            ),
        ];
        match all.into_iter().find(|(_, is_good, _)| !is_good) {
            Some((name, _, what)) => Err(OpenError(format!("{name} must be {what}"))),
            None => Ok(()),
        }
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.url.contains("+cluster://")
    }
}
