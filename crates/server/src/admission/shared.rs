//! One budget for all nodes, kept by a Redis. When it does not answer in time, a sale says what happens: each node by its
//! share, everybody, or nobody.

use super::AdmissionMetrics;
use super::gate::Asked;
use super::limits::{Limiters, paused, skus_of, too_fast};
use super::sale::{Fallback, Sale};
use crate::problem::Problem;
use holdfast_admission::bucket::{Limits, Rate};
use holdfast_engine::buckets::{Ask, Decision, SharedBuckets};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The longest that a request waits for the Redis.
const LIMIT: Duration = Duration::from_millis(50);
const MICRO: u64 = 1_000_000;

/// See the file's header.
pub(super) struct Budget {
    pub(super) buckets: SharedBuckets,
    /// How many nodes there are.
    pub(super) nodes: u32,
}

impl Budget {
    /// A token from every bucket that applies, or none from any and why not.
    pub(super) async fn ask(
        &self,
        local: &Limiters,
        metrics: &AdmissionMetrics,
        sale: &Sale,
        asked: &Asked<'_>,
    ) -> Result<(), Problem> {
        let limits = sale.limits;
        let skus = skus_of(sale, asked);
        let mut names: Vec<(&str, String, Rate)> = Vec::new();
        names.extend(limits.per_client.map(|rate| ("client", format!("c:{}", client(asked)), rate)));
        names.extend(
            limits.per_sku.into_iter().flat_map(|rate| skus.iter().map(move |s| ("sku", format!("s:{s}"), rate))),
        );
        names.extend(limits.sale.map(|rate| ("sale", "g".to_owned(), rate)));
        let asks = names.iter().map(|(_, key, rate)| Ask {
            key,
            capacity_micro: u64::from(rate.burst()) * MICRO,
            micro_per_second: rate.micro_per_second(),
        });
        let asks: Vec<Ask<'_>> = asks.collect();
        match self.buckets.ask(&sale.name, &asks, LIMIT).await {
            Ok(Decision::Admitted) => {
                metrics.shared(&sale.name, "allowed");
                Ok(())
            }
            Ok(Decision::Paused) => Err(paused()),
            Ok(Decision::Refused { retry_after_us, waits_us }) => {
                let late = names.iter().zip(&waits_us).filter(|(_, wait)| **wait > 0).map(|((name, ..), _)| *name);
                let mut late: Vec<&str> = late.collect();
                late.dedup();
                metrics.shared(&sale.name, if limits.shadow { "shadow" } else { "denied" });
                if limits.shadow { Ok(()) } else { Err(too_fast(&late, retry_after_us)) }
            }
            Err(_) => {
                metrics.shared(&sale.name, "degraded");
                match sale.fallback {
                    Fallback::Local => local.ask(sale, asked),
                    Fallback::Open => Ok(()),
                    Fallback::Closed if limits.shadow => Ok(()),
                    Fallback::Closed => {
                        Err(Problem::new("overloaded", "the limits of the sale cannot be looked at; nothing was done"))
                    }
                }
            }
        }
    }

    /// What one node may do by itself.
    pub(super) fn share(&self, limits: Limits) -> Limits {
        let nodes = self.nodes.max(1);
        let part = |rate: Option<Rate>| {
            let least = |rate: Rate| u64::from(!rate.is_paused());
            rate.and_then(|rate| {
                let speed = (rate.micro_per_second() / u64::from(nodes)).max(least(rate));
                Rate::new(speed, (rate.burst() / nodes).max(1))
            })
        };
        // A client comes to any node, or always to one.
        Limits { sale: part(limits.sale), per_sku: part(limits.per_sku), ..limits }
    }
}

/// The same on all nodes, and no way back to who it is.
fn client(asked: &Asked<'_>) -> String {
    let digest = Sha256::digest(asked.caller.client_name(asked.customer));
    hex::encode(&digest[..12])
}
