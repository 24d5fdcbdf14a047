//! Strategy `redlock`: leases on the SKUs of a batch, from Redis servers, before they are read.
//!
//! They must never be what keeps stock right. A lease spares nodes the work of deciding what somebody else is about to
//! change; what is written is compared with the revision that was read, as optimists do, and carries the lease's fence,
//! which the row refuses when it has seen a higher one. So a batch that gets no lease goes on without.

use super::config::{SqlConfig, Strategy};
use super::fault::OpenError;
use crate::clock::monotonic;
use crate::lease::{Guard, LeaseError, LeaseSettings, Leases};
use holdfast_domain::Sku;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A batch takes milliseconds; a node that died has to be waited for no longer than this.
const TTL: Duration = Duration::from_secs(2);
/// How long a batch waits for its turn before it goes on as an optimist.
const WAIT: Duration = Duration::from_millis(500);
/// The longest pause between two tries: a few batches.
const PAUSE: Duration = Duration::from_millis(8);
/// When no majority answers, nobody asks again for so long.
const RECESS: Duration = Duration::from_secs(1);

/// Where the batches of a node get their leases.
pub(super) struct Desk {
    leases: Leases,
    wait: Duration,
    closed_until: Mutex<Option<Instant>>,
}

/// A lease on some SKUs: one for all of them, since each server gives them together or not at all. That takes one round
/// trip however many there are, and nobody waits for one SKU while keeping others from another.
pub(super) struct Taken {
    guard: Guard,
    /// In byte order.
    skus: Vec<Sku>,
}

impl Taken {
    /// The fence for this SKU's row; 0 where the lease is not on it, as for the other SKUs of a lapsed cart.
    pub(super) fn fence(&self, sku: &Sku) -> i64 {
        let fence = || i64::try_from(self.guard.fence()).unwrap_or(i64::MAX);
        self.skus.binary_search(sku).map_or(0, |_| fence())
    }

    pub(super) fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }
}

impl Desk {
    /// The desk that this configuration asks for, if it does.
    pub(super) fn open(config: &SqlConfig) -> Result<Option<Arc<Self>>, OpenError> {
        if config.strategy != Strategy::Redlock {
            return Ok(None);
        }
        if config.lock_nodes.is_empty() {
            return Err(OpenError(
                "the strategy redlock needs lock nodes: --lock-nodes redis://host:6379,… or HOLDFAST_LOCK_NODES".into(),
            ));
        }
        let prefix = format!("holdfast:{}:", place(config));
        // What is waited for at the longest here is what may be forgotten there.
        let settings = LeaseSettings { prefix, longest: TTL, pause: PAUSE, ..LeaseSettings::default() };
        let leases = Leases::new(&config.lock_nodes, settings).map_err(|why| OpenError(why.to_string()))?;
        let wait = WAIT.min(config.timeout / 4);
        Ok(Some(Arc::new(Self { leases, wait, closed_until: Mutex::default() })))
    }

    /// A lease on these SKUs, which come sorted; nothing when there is none to be had.
    pub(super) async fn take(&self, skus: &[Sku]) -> Option<Taken> {
        if skus.is_empty() || self.closed_until.lock().is_some_and(|until| monotonic() < until) {
            return None;
        }
        let names: Vec<&str> = skus.iter().map(Sku::as_str).collect();
        let asked = self.leases.acquire_all(&names, TTL, self.wait).await;
        let mut closed = self.closed_until.lock();
        match asked {
            Ok(guard) => {
                if closed.take().is_some() {
                    tracing::info!("the lock nodes give leases again");
                }
                Some(Taken { guard, skus: skus.to_vec() })
            }
            Err(LeaseError::Busy) => None,
            Err(why) => {
                if closed.replace(monotonic() + RECESS).is_none() {
                    tracing::warn!(%why, "no leases: batches compare revisions only");
                }
                None
            }
        }
    }
}

/// What all nodes on one database call it, whatever address and name they use for it.
fn place(config: &SqlConfig) -> String {
    let path = config.url.split_once("://").map_or("", |(_, rest)| rest);
    let database = path.split_once('/').map_or("", |(_, path)| path.split('?').next().unwrap_or_default());
    format!("{database}/{}", config.schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_one_database_call_it_the_same() {
        let called = |url: &str| place(&SqlConfig::new(url));
        assert_eq!(called("postgres://a:b@h:1/shop?sslmode=require"), "shop/holdfast");
        assert_eq!(called("postgres://c@other/shop"), "shop/holdfast");
        assert_ne!(called("mysql://c@other/shop"), called("mysql://c@other/outlet"));
    }

    #[test]
    fn redlock_without_lock_nodes_is_refused() {
        let config = SqlConfig { strategy: Strategy::Redlock, ..SqlConfig::new("postgres://h/d") };
        let why = Desk::open(&config).map(drop).unwrap_err().to_string();
        assert!(why.contains("--lock-nodes") && why.contains("HOLDFAST_LOCK_NODES"), "{why}");
    }
}
