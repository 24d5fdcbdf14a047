//! For measurements and tests that made a key space of their own: what Redis is set to, how far the ledger is behind, and
//! taking the keys away again. Nothing in service may call this.

use super::core::{Core, ledger_error, told};
use super::net::{Net, NetConfig};
use super::recover::text;
use super::{RedisConfig, asked_partitions};
use crate::partition::Partitions;
use crate::sql::OpenError;
use crate::{Database, EngineError};
use redis::Value;
use std::fmt::Write;

async fn connect(config: &RedisConfig) -> Result<Net, OpenError> {
    config.check()?;
    let mut net = NetConfig::parse(&config.url).map_err(OpenError)?;
    net.timeout = config.timeout;
    net.ca.clone_from(&config.ledger.ca);
    Net::connect(net, asked_partitions(config)).await.map_err(|error| OpenError(told(error).to_string()))
}

/// Which server this is, what its answers are worth, and what is promised before an answer.
///
/// # Errors
/// When it cannot be reached.
pub async fn about(config: &RedisConfig) -> Result<String, OpenError> {
    let net = connect(config).await?;
    let ask = async |cmd: &redis::Cmd| net.run(0, None, cmd).await.map_err(|error| OpenError(told(error).to_string()));
    let info = text(&ask(redis::cmd("INFO").arg("server")).await?).unwrap_or_default();
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or("of an unknown version");
    let mut about = format!("Redis {}", version.trim());
    for name in ["appendonly", "appendfsync"] {
        // A provider may hide its settings.
        if let Ok(Value::Array(pair)) = ask(redis::cmd("CONFIG").arg("GET").arg(name)).await {
            let _ = write!(about, ", {name} {}", pair.get(1).and_then(text).unwrap_or_default());
        }
    }
    let _ = write!(about, ", {} partitions, durability {}", asked_partitions(config), config.durability);
    Ok(about)
}

/// Looks at how far the ledger is behind, from outside of any node.
pub struct Backlog {
    core: Core,
}

impl Backlog {
    /// Connects; opens no engine.
    ///
    /// # Errors
    /// When Redis or the ledger cannot be reached.
    pub async fn open(config: &RedisConfig) -> Result<Self, OpenError> {
        let Some(database) = Database::of(&config.ledger.url) else {
            return Err(OpenError("the ledger is no database that is known".into()));
        };
        let net = connect(config).await?;
        let ledger = database.open_ledger(&config.ledger).await?;
        Ok(Self { core: Core::new(net, ledger, config, Partitions::new(asked_partitions(config))) })
    }

    /// Log entries that the ledger does not have.
    ///
    /// # Errors
    /// When Redis or the ledger cannot be reached.
    pub async fn entries(&self) -> Result<u64, EngineError> {
        let core = &self.core;
        let all: Vec<u32> = core.partitions.all().collect();
        let mut entries = 0;
        for row in core.ledger.rows(&all).await.map_err(ledger_error)?.1 {
            let mut last = redis::cmd("HGET");
            last.arg(core.key(row.part, row.epoch, "at")).arg("seq");
            let seq = core.net.run(row.part, None, &last).await.map_err(told)?;
            let seq: i64 = text(&seq).and_then(|text| text.parse().ok()).unwrap_or(0);
            entries += u64::try_from(seq - row.drained_seq).unwrap_or(0);
        }
        Ok(entries)
    }
}

/// Removes every key of the space.
///
/// # Errors
/// When Redis cannot be reached, or refuses.
pub async fn remove_keys(config: &RedisConfig) -> Result<(), OpenError> {
    let net = connect(config).await?;
    for part in Partitions::new(asked_partitions(config)).all() {
        let run = async |cmd: &redis::Cmd| net.run(part, None, cmd).await.map_err(|e| OpenError(told(e).to_string()));
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(format!("{}:{{p{part}}}:*", config.space)).arg("COUNT").arg(1000);
            let Value::Array(found) = run(&scan).await? else { break };
            let [next, Value::Array(keys)] = found.as_slice() else { break };
            let keys: Vec<String> = keys.iter().filter_map(text).collect();
            if !keys.is_empty() {
                run(redis::cmd("UNLINK").arg(&keys)).await?;
            }
            cursor = text(next).unwrap_or_default();
            if cursor == "0" || cursor.is_empty() {
                break;
            }
        }
    }
    Ok(())
}
