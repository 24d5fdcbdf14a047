//! What goes on beside the requests: loops around single bounded passes. They end when the engine is dropped: while one
//! waits it holds nothing of it, or it would keep the others alive.

use super::config::Durability;
use super::core::Core;
use super::holds::Logged;
use crate::EngineError;
use crate::clock::monotonic;
use redis::Value;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// A node that logs nothing itself looks so often for what others have left.
const DRAIN: Duration = Duration::from_millis(250);
const AUDIT: Duration = Duration::from_millis(500);
const RECOVER: Duration = Duration::from_secs(1);
/// At the start, another node's audit is waited for.
const OPENING: Duration = Duration::from_mins(1);

pub(super) fn start(core: &Arc<Core>) {
    tokio::spawn(drain(Arc::downgrade(core), core.logged.clone()));
    tokio::spawn(audit(Arc::downgrade(core), core.shut.clone()));
    tokio::spawn(recover(Arc::downgrade(core)));
}

async fn drain(core: Weak<Core>, logged: Arc<Notify>) {
    let mut trouble = None;
    loop {
        let Some(core) = core.upgrade() else { return };
        let drained = core.drain_pass().await;
        note(&mut trouble, "the ledger falls behind", drained);
        drop(core);
        let _ = tokio::time::timeout(DRAIN, logged.notified()).await;
    }
}

async fn audit(core: Weak<Core>, shut: Arc<Notify>) {
    let mut trouble = None;
    loop {
        let Some(core) = core.upgrade() else { return };
        let audited = core.audit_shut().await;
        for part in core.take_outdated() {
            if let Err(why) = core.remove_old(part).await {
                tracing::warn!(part, %why, "what earlier epochs left behind stays for now");
            }
        }
        note(&mut trouble, "a partition cannot be audited yet", audited);
        drop(core);
        let _ = tokio::time::timeout(AUDIT, shut.notified()).await;
    }
}

async fn recover(core: Weak<Core>) {
    let mut trouble = None;
    loop {
        tokio::time::sleep(RECOVER).await;
        let Some(core) = core.upgrade() else { return };
        let recovered = core.recover_pass().await;
        note(&mut trouble, "what was left half-way cannot be finished yet", recovered);
    }
}

/// Logs trouble when it begins, when it changes, and when it is over.
fn note(trouble: &mut Option<EngineError>, what: &str, result: Result<(), EngineError>) {
    let now = result.err();
    if now != *trouble {
        match &now {
            Some(why) => tracing::warn!(%why, "{what}"),
            None => tracing::info!("no longer: {what}"),
        }
        *trouble = now;
    }
}

impl Core {
    async fn drain_pass(&self) -> Result<(), EngineError> {
        while self.drain_some().await? > 0 {
            for part in self.partitions.all() {
                self.trim(part).await?;
            }
        }
        Ok(())
    }

    /// Opens every partition, or tells why one cannot be.
    pub(super) async fn open_all(&self) -> Result<(), EngineError> {
        let start = monotonic();
        loop {
            match self.audit_shut().await {
                Ok(()) if self.shut_gates().is_empty() => return Ok(()),
                Err(error @ (EngineError::Corrupt(_) | EngineError::Unknown(_))) => return Err(error),
                Err(error) if start.elapsed() > OPENING => return Err(error),
                Err(_) | Ok(()) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Refuses to promise what Redis is not set to keep.
    pub(super) async fn check_settings(&self) -> Result<(), String> {
        for name in ["maxmemory-policy", "appendonly", "appendfsync"] {
            for (address, value) in self.net.run_on_all(redis::cmd("CONFIG").arg("GET").arg(name), false).await {
                let Ok(value) = value else { continue };
                let value = setting(&value).unwrap_or_default();
                match (name, value.as_str()) {
                    ("maxmemory-policy", "noeviction" | "") => {}
                    ("maxmemory-policy", other) => {
                        return Err(format!(
                            "Redis at {address} has maxmemory-policy {other}: it would forget holds when it is full; set it to noeviction"
                        ));
                    }
                    ("appendonly", "no") | ("appendfsync", "everysec" | "no") if self.durability == Durability::Aof => {
                        return Err(format!(
                            "Redis at {address} has {name} {value}, which is less than the durability \"aof\" promises; \
                             set appendonly yes and appendfsync always, or choose another durability"
                        ));
                    }
                    ("appendonly", "no") if self.durability == Durability::Memory => {
                        tracing::warn!(
                            address,
                            "Redis writes no file: when it dies, holds that the ledger does not have are lost"
                        );
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Waits until what this node has logged is as durable as promised.
    pub(super) async fn make_durable(&self, logged: &[Logged]) -> Result<(), EngineError> {
        match self.durability {
            Durability::Memory | Durability::Aof => Ok(()),
            Durability::Replicated => {
                for (part, epoch, _) in logged {
                    let (now, server) = self.open_gate(*part).map_err(|e| EngineError::Unknown(e.to_string()))?;
                    if now != *epoch {
                        // Its replicas say nothing about what another server had.
                        return Err(EngineError::Unknown(format!("epoch {epoch} ended before replicas had it")));
                    }
                    let wait = self.net.wait(*part, Some(&server), self.replicas, self.timeout / 2).await;
                    let reached = wait.map_err(|e| EngineError::Unknown(super::core::told(e).to_string()))?;
                    if reached < self.replicas {
                        return Err(EngineError::Unknown(format!("{reached} of {} replicas have it", self.replicas)));
                    }
                }
                Ok(())
            }
            Durability::Ledger => {
                let start = monotonic();
                for (part, epoch, seq) in logged {
                    while !self.is_drained(*part, *epoch, *seq)? {
                        let notified = self.drained.notified();
                        if self.is_drained(*part, *epoch, *seq)? {
                            break;
                        }
                        if start.elapsed() > self.timeout * 2 {
                            return Err(EngineError::Unknown("the ledger did not have it in time".into()));
                        }
                        let _ = tokio::time::timeout(Duration::from_millis(100), notified).await;
                    }
                }
                Ok(())
            }
        }
    }
}

fn setting(value: &Value) -> Option<String> {
    match value {
        Value::Array(pair) => super::recover::text(pair.get(1)?),
        Value::Map(pairs) => super::recover::text(&pairs.first()?.1),
        _ => None,
    }
}
