//! What can be configured, from the file's point of view; flags and variables are the binary's business.

use crate::admission::TrustedProxies;
use crate::outbox::{SinkConfig, check_all};
use crate::payments::{AdyenConfig, PaymentsConfig, Secret, StandardConfig, StripeConfig};
use crate::post::MailConfig;
use holdfast_domain::Policy;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What a key may do. Each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Read,
    /// Hold, confirm, release, return.
    Checkout,
    /// Everything.
    Admin,
}

impl Role {
    /// `read`, `checkout` or `admin`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Checkout => "checkout",
            Self::Admin => "admin",
        }
    }

    /// Reads `read`, `checkout` or `admin`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "read" => Some(Self::Read),
            "checkout" => Some(Self::Checkout),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }
}

/// One API key: only its digest is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// A name for logs.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of the key.
    pub digest: [u8; 32],
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

/// Why the configuration is refused, in words that name the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

impl ApiKey {
    /// From the key itself.
    pub fn new(name: &str, role: Role, key: &str) -> Self {
        Self { name: name.to_owned(), role, digest: Sha256::digest(key.as_bytes()).into() }
    }

    /// Reads `name:role:key,name:role:key`. Errors never repeat a key.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, ConfigError> {
        let parse = |(index, part): (usize, &str)| {
            let mut fields = part.trim().splitn(3, ':');
            let mut field = || fields.next().map(str::trim).filter(|f| !f.is_empty());
            let bad = |what: &str| {
                ConfigError(format!(
                    "API key {} {what}; the form is name:role:key with role read, checkout or admin",
                    index + 1
                ))
            };
            let name = field().ok_or_else(|| bad("has no name"))?;
            let role = field().and_then(Role::parse).ok_or_else(|| bad("has no known role"))?;
            let key = field().ok_or_else(|| bad("has no key"))?;
            if key.len() < 16 {
                return Err(bad("is shorter than 16 characters (`holdfast keys new` makes a good one)"));
            }
            Ok(Self::new(name, role, key))
        };
        let keys: Vec<Self> =
            text.split(',').filter(|p| !p.trim().is_empty()).enumerate().map(parse).collect::<Result<_, _>>()?;
        // Somebody who sets this wants a closed door.
        if keys.is_empty() && !text.is_empty() {
            return Err(ConfigError("the API keys are set, but there is no key among them".into()));
        }
        Ok(keys)
    }
}

/// The configuration file: every key is optional, unknown ones are refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// As `--listen`.
    pub listen: Option<String>,
    /// As `--engine`.
    pub engine: Option<String>,
    /// As `--data-dir`.
    pub data_dir: Option<String>,
    /// As `--default-hold-ttl`.
    pub default_hold_ttl: Option<u32>,
    /// As `--max-hold-ttl`.
    pub max_hold_ttl: Option<u32>,
    /// No hold lives longer than this after it was made, in seconds.
    pub max_hold_lifetime: Option<u32>,
    /// How long a payment may wait for its hold to appear, in seconds.
    pub unmatched_grace: Option<u32>,
    /// Send money back that waited in vain.
    pub reverse_unmatched: Option<bool>,
    /// A canceled payment gives the units back at once.
    pub release_on_canceled: Option<bool>,
    /// A full refund gives the units back.
    pub restock_on_refund: Option<bool>,
    /// Seconds between two audits; 0 for none.
    pub audit_interval: Option<u32>,
    /// Requests that may wait in the lane.
    pub lane_depth: Option<usize>,
    /// The most commands in one batch.
    pub max_batch: Option<usize>,
    /// Batches of a lane under way at once, on an engine that others share.
    pub lane_workers: Option<usize>,
    /// As `--ledger`.
    pub ledger: Option<String>,
    /// As `--durability`.
    pub durability: Option<String>,
    /// As `--redis-replicas`.
    pub redis_replicas: Option<u32>,
    /// As `--redis-space`.
    pub redis_space: Option<String>,
    /// As `--redis-partitions`.
    pub redis_partitions: Option<u32>,
    /// As `--redis-timeout-ms`.
    pub redis_timeout_ms: Option<u64>,
    /// As `--redis-backlog`.
    pub redis_backlog: Option<u64>,
    /// As `--strategy`.
    pub strategy: Option<String>,
    /// As `--lock-nodes`.
    #[serde(default)]
    pub lock_nodes: Vec<String>,
    /// As `--database-schema`.
    pub database_schema: Option<String>,
    /// As `--database-pool`.
    pub database_pool: Option<usize>,
    /// As `--database-wait-ms`.
    pub database_wait_ms: Option<u64>,
    /// As `--database-timeout-ms`.
    pub database_timeout_ms: Option<u64>,
    /// As `--database-ca`.
    pub database_ca: Option<String>,
    /// As `--trusted-proxies`.
    #[serde(default)]
    pub trusted_proxies: Vec<String>,
    /// As `--coordination`.
    pub coordination: Option<Secret>,
    /// As `--advertise`.
    pub advertise: Option<String>,
    /// As `--nodes`.
    pub nodes: Option<u32>,
    /// As `--waiting-room-css`.
    pub waiting_room_css: Option<PathBuf>,
    /// As `--return-origins`.
    #[serde(default)]
    pub return_origins: Vec<String>,
    /// Secrets with which the shop signs who joins a waiting room.
    #[serde(default)]
    pub enqueue_secrets: Vec<Secret>,
    /// Connections served at once.
    pub max_connections: Option<usize>,
    /// Keys by their digests.
    #[serde(default)]
    pub api_keys: Vec<FileKey>,
    /// Stripe.
    #[serde(default)]
    pub stripe: StripeConfig,
    /// Adyen.
    #[serde(default)]
    pub adyen: AdyenConfig,
    /// A provider of the shop's own.
    #[serde(default)]
    pub standard: StandardConfig,
    /// E-mail.
    #[serde(default)]
    pub mail: MailConfig,
    /// Where events go.
    #[serde(default)]
    pub sinks: Vec<SinkConfig>,
}

/// One `[[api_keys]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileKey {
    name: String,
    role: Role,
    sha256: String,
}

impl FileConfig {
    /// Reads TOML; an error names the line.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|e| ConfigError(e.to_string().trim_end().to_owned()))
    }

    /// The file's keys.
    pub fn keys(&self) -> Result<Vec<ApiKey>, ConfigError> {
        let read = |key: &FileKey| {
            let digest = parse_hex(&key.sha256)
                .ok_or_else(|| ConfigError(format!("api_keys {:?}: sha256 must be 64 hexadecimal digits", key.name)))?;
            Ok(ApiKey { name: key.name.clone(), role: key.role, digest })
        };
        self.api_keys.iter().map(read).collect()
    }
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(digest)
}

/// Everything the service needs to know, decided.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to serve on.
    pub listen: SocketAddr,
    /// Who may call. Empty: anybody, on loopback only.
    pub api_keys: Vec<ApiKey>,
    /// Seconds a hold lives when its request does not say.
    pub default_hold_ttl: u32,
    /// The most seconds a hold may ask for.
    pub max_hold_ttl: u32,
    /// What the shop decided about the rules.
    pub policy: Policy,
    /// Seconds between two audits; 0 for none.
    pub audit_interval: u32,
    /// Requests that may wait in the lane, and the most commands in one batch.
    pub lanes: holdfast_engine::LanesConfig,
    /// Connections served at once.
    pub max_connections: usize,
    /// How long a client may take to send its headers, and an idle connection may stay.
    pub header_timeout: Duration,
    /// How long a body may take to arrive, and how long its answer may take after that.
    pub request_timeout: Duration,
    /// How long what is in flight may take after a stop.
    pub drain_timeout: Duration,
    /// Payment providers.
    pub payments: PaymentsConfig,
    /// E-mail to shoppers.
    pub mail: MailConfig,
    /// Where events go.
    pub sinks: Vec<SinkConfig>,
    /// Who elects the node that does the chores for all.
    pub lock_nodes: LockNodes,
    /// Whose word on where a request comes from is taken.
    pub trusted_proxies: TrustedProxies,
    /// Where waiting rooms keep their journals; nowhere, if not told.
    pub rooms_dir: Option<PathBuf>,
    /// Secrets with which the shop signs who joins a waiting room.
    pub enqueue_secrets: Vec<Secret>,
    /// Where the page of the waiting room may send shoppers, besides paths of its own host: origins.
    pub return_origins: Vec<String>,
    /// A style sheet of the shop's own for the page of the waiting room.
    pub waiting_room_css: Option<String>,
    /// A Redis that keeps one budget of tokens for all nodes.
    pub coordination: Option<Secret>,
    /// How many nodes there are: each has its share of the budget while that Redis does not answer.
    pub nodes: u32,
    /// Where other nodes find this one, as a URL; the address that it serves on, if not told.
    pub advertise: Option<String>,
    /// Serve the no-op of the benchmark.
    pub bench: bool,
}

/// Redis servers that give leases. Without any, every node does every chore.
#[derive(Clone, Default)]
pub struct LockNodes {
    /// Where they are, with passwords.
    pub urls: Vec<String>,
    /// What tells this deployment from others that use them.
    pub scope: String,
}

/// Without the URLs: they carry passwords.
impl fmt::Debug for LockNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockNodes").field("count", &self.urls.len()).field("scope", &self.scope).finish()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            api_keys: Vec::new(),
            default_hold_ttl: 600,
            max_hold_ttl: 3600,
            policy: Policy::default(),
            audit_interval: 300,
            lanes: holdfast_engine::LanesConfig::default(),
            max_connections: 20_000,
            header_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(20),
            payments: PaymentsConfig::default(),
            mail: MailConfig::default(),
            sinks: Vec::new(),
            trusted_proxies: TrustedProxies::default(),
            rooms_dir: None,
            enqueue_secrets: Vec::new(),
            return_origins: Vec::new(),
            waiting_room_css: None,
            coordination: None,
            nodes: 1,
            advertise: None,
            lock_nodes: LockNodes::default(),
            bench: false,
        }
    }
}

impl Config {
    /// Refuses what would be unsafe or senseless.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.api_keys.is_empty() && !self.listen.ip().is_loopback() {
            return Err(ConfigError(format!(
                "refusing to listen on {} without API keys: anybody could reach it. Make one with `holdfast keys new` and set HOLDFAST_API_KEYS, or listen on 127.0.0.1",
                self.listen
            )));
        }
        let is_range = |name: &str, ok: bool, what: &str| {
            if ok { Ok(()) } else { Err(ConfigError(format!("{name} must be {what}"))) }
        };
        is_range("max_hold_ttl", (1..=604_800).contains(&self.max_hold_ttl), "from 1 to 604800 seconds")?;
        is_range(
            "default_hold_ttl",
            (1..=self.max_hold_ttl).contains(&self.default_hold_ttl),
            "from 1 to max_hold_ttl seconds",
        )?;
        is_range(
            "max_hold_lifetime",
            self.policy.max_hold_lifetime >= self.max_hold_ttl,
            "at least max_hold_ttl seconds",
        )?;
        is_range("lane_depth", (1..=1_000_000).contains(&self.lanes.depth), "from 1 to 1000000")?;
        is_range("max_batch", (1..=100_000).contains(&self.lanes.max_batch), "from 1 to 100000")?;
        is_range("lane_workers", (1..=1000).contains(&self.lanes.workers), "from 1 to 1000")?;
        self.payments.check()?;
        self.mail.check()?;
        check_all(&self.sinks)?;
        is_range("max_connections", (1..=1_000_000).contains(&self.max_connections), "from 1 to 1000000")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = FileConfig::parse("listen = \"127.0.0.1:1\"\nlisen = 3\n").unwrap_err().0;
        assert!(error.contains("line 2") && error.contains("lisen"), "{error}");
    }

    #[test]
    fn keys_are_read_and_never_told() {
        let keys = ApiKey::parse_list("shop:checkout:0123456789abcdef, ops:admin:fedcba9876543210").unwrap();
        assert_eq!(keys.iter().map(|k| k.role).collect::<Vec<_>>(), [Role::Checkout, Role::Admin]);
        assert!(!format!("{keys:?}").contains("0123456789abcdef"));
        let error = ApiKey::parse_list("shop:boss:0123456789abcdef").unwrap_err().0;
        assert!(!error.contains("0123456789abcdef") && error.contains("role"), "{error}");
        assert!(ApiKey::parse_list("shop:admin:short").is_err());
        assert!(ApiKey::parse_list(",").is_err(), "a door that was meant to be closed");
    }

    #[test]
    fn an_open_door_is_refused() {
        let mut config = Config { listen: "0.0.0.0:8080".parse().unwrap(), ..Config::default() };
        assert!(config.check().unwrap_err().0.contains("API keys"));
        config.api_keys = ApiKey::parse_list("shop:admin:0123456789abcdef").unwrap();
        assert_eq!(config.check(), Ok(()));
        config.default_hold_ttl = 0;
        assert!(config.check().is_err());
    }
}
