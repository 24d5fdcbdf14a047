//! What is looked at in a deployment on Redis. It opens no engine, claims no partition and audits nothing in a node's place:
//! the drift is only looked for where every partition serves already, with the same short freezes as any node's audit.

mod parts;
mod servers;

use super::core::{Core, told};
use super::net::{Net, NetConfig};
use super::{RedisConfig, asked_partitions};
use crate::Database;
use crate::doctor::{self, Finding, Level};
use crate::partition::Partitions;
use holdfast_domain::Time;
use redis::Value;
use std::sync::Arc;

/// Looks at Redis and at its ledger.
pub async fn doctor(config: &RedisConfig) -> Vec<Finding> {
    let (Ok(()), Some(database)) = (config.check(), Database::of(&config.ledger.url)) else {
        let why = config.check().err().map_or_else(|| "no ledger is named".to_owned(), |why| why.to_string());
        return vec![Finding::problem("configuration", why, "see docs/configuration.md")];
    };
    let mut findings = ledger(database, config).await;
    let has_ledger = findings.iter().all(|finding| finding.level < Level::Problem);
    let net = match connect(config).await {
        Ok(net) => net,
        Err(finding) => {
            findings.push(finding);
            return findings;
        }
    };
    findings.extend(servers::look(&net, config).await);
    findings.push(clock(&net).await);
    if has_ledger {
        match database.open_ledger(&config.ledger).await {
            Ok(ledger) => {
                let partitions = Partitions::new(asked_partitions(config));
                let core = Arc::new(Core::new(net, ledger, config, partitions));
                findings.extend(parts::look(&core).await);
            }
            Err(why) => findings.push(Finding::problem("ledger", why.to_string(), "see what the database says")),
        }
    }
    findings
}

async fn ledger(database: Database, config: &RedisConfig) -> Vec<Finding> {
    let mut findings = database.look(&config.ledger).await;
    findings.iter_mut().for_each(|finding| finding.name = format!("ledger: {}", finding.name));
    findings
}

async fn connect(config: &RedisConfig) -> Result<Net, Finding> {
    let unreachable = |why: String| {
        let advice = "is Redis up, and are its host, port, user and password right? Until it is back, no hold is given";
        Finding::problem("redis reachable", why, advice)
    };
    let mut net = NetConfig::parse(&config.url).map_err(unreachable)?;
    net.timeout = config.timeout;
    net.ca.clone_from(&config.ledger.ca);
    Net::connect(net, asked_partitions(config)).await.map_err(|error| unreachable(error.to_string()))
}

async fn clock(net: &Net) -> Finding {
    match net.run(0, None, &redis::cmd("TIME")).await {
        Ok(Value::Array(parts)) => {
            let part = |at: usize| super::recover::text(parts.get(at)?)?.parse::<i64>().ok();
            match part(0).zip(part(1)) {
                Some((seconds, micros)) => {
                    doctor::clock("redis clock", Time::from_millis(seconds * 1000 + micros / 1000))
                }
                None => Finding::warning("redis clock", "TIME gave an unreadable answer", "is this Redis?"),
            }
        }
        Ok(_) => Finding::warning("redis clock", "TIME gave an unreadable answer", "is this Redis?"),
        Err(error) => Finding::problem("redis clock", told(error).to_string(), "is the server of partition 0 up?"),
    }
}
