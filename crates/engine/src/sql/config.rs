//! What can be configured about a SQL engine.

use holdfast_domain::Policy;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How a batch claims units of stock that other nodes may want at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Lock the rows of the SKUs, in order; then read, decide and write. The default.
    #[default]
    RowLock,
    /// Read without locking; write only if nobody else has written meanwhile, else decide again.
    Optimistic,
    /// Claim units that stand in rows of their own, passing over those that others are claiming.
    SkipLocked,
    /// Take leases on the SKUs from Redis servers, then do as optimists do: leases alone would keep nothing right.
    Redlock,
    /// Read, decide and write, and hope. Oversells as soon as two do it at once: for measuring only.
    Naive,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::RowLock, Self::Optimistic, Self::SkipLocked, Self::Redlock, Self::Naive];

    /// The glossary's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RowLock => "row_lock",
            Self::Optimistic => "optimistic",
            Self::SkipLocked => "skip_locked",
            Self::Redlock => "redlock",
            Self::Naive => "naive",
        }
    }

    /// Reads the glossary's word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where the database is, and how much of it to use.
#[derive(Clone)]
pub struct SqlConfig {
    /// `postgres://user:password@host/database` or `mysql://…`.
    pub url: String,
    /// PostgreSQL: the schema that holds the tables. It is made if it is missing.
    pub schema: String,
    /// How units are claimed.
    pub strategy: Strategy,
    /// The Redis servers that give leases for [`Strategy::Redlock`]: `redis://:password@host:port` each.
    pub lock_nodes: Vec<String>,
    /// What the shop decided.
    pub policy: Policy,
    /// The most connections.
    pub pool: usize,
    /// How long to wait for one of them, and for a new one to be made.
    pub wait: Duration,
    /// How long one transaction may take, waiting for locks included.
    pub timeout: Duration,
    /// PEM certificates to trust besides the public ones.
    pub ca: Option<PathBuf>,
}

impl SqlConfig {
    /// The defaults, for this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: "holdfast".into(),
            strategy: Strategy::default(),
            lock_nodes: Vec::new(),
            policy: Policy::default(),
            pool: 8,
            wait: Duration::from_secs(2),
            timeout: Duration::from_secs(5),
            ca: None,
        }
    }
}

/// Without the URLs: they carry passwords.
impl fmt::Debug for SqlConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlConfig")
            .field("schema", &self.schema)
            .field("strategy", &self.strategy)
            .field("pool", &self.pool)
            .field("wait", &self.wait)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
