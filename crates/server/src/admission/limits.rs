//! The token buckets of the sales on this node.

use super::gate::Asked;
use super::registry::Sales;
use super::sale::Sale;
use crate::problem::Problem;
use holdfast_admission::bucket::{Decision, Limiter, Limits, headers};
use holdfast_engine::clock::monotonic;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

static START: LazyLock<Instant> = LazyLock::new(monotonic);

/// Microseconds on a clock that nobody sets.
pub(super) fn micros() -> u64 {
    u64::try_from(START.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// One limiter a sale that has limits.
#[derive(Default)]
pub(super) struct Limiters {
    by_sale: RwLock<HashMap<String, Arc<Mutex<Limiter>>>>,
}

impl Limiters {
    /// Follows a change of the sales. What was consumed stays consumed.
    pub(super) fn follow(&self, sales: &Sales, share: impl Fn(Limits) -> Limits) {
        let now = micros();
        let mut limiters = self.by_sale.write();
        limiters.retain(|name, _| sales.get(name).is_some_and(|sale| is_limited(sale.limits)));
        for sale in sales.all().filter(|sale| is_limited(sale.limits)) {
            let limits = share(sale.limits);
            match limiters.get(&sale.name) {
                Some(limiter) => {
                    let mut limiter = limiter.lock();
                    if limiter.limits() != limits {
                        limiter.set_limits(limits, now);
                    }
                }
                None => {
                    let limiter = Arc::new(Mutex::new(Limiter::new(limits, now)));
                    limiters.insert(sale.name.clone(), limiter);
                }
            }
        }
    }

    /// A token from every bucket of this node that applies, or none from any and why not.
    pub(super) fn ask(&self, sale: &Sale, asked: &Asked<'_>) -> Result<(), Problem> {
        let Some(limiter) = self.limiter(&sale.name) else { return Ok(()) };
        let skus = skus_of(sale, asked);
        let client = asked.caller.client(asked.customer);
        let mut limiter = limiter.lock();
        let decision = limiter.ask(&skus, client, micros());
        match decision {
            Decision::Admitted => Ok(()),
            Decision::Paused => Err(paused()),
            Decision::Refused { retry_after_us, violated } => {
                let names: Vec<&str> = violated.names().collect();
                let problem = too_fast(&names, retry_after_us);
                let told = headers(&limiter, client, &decision);
                Err(told.map_or(problem.clone(), |told| {
                    problem
                        .header("ratelimit-policy", &told.policy)
                        .header("ratelimit", &told.limit.unwrap_or_default())
                }))
            }
        }
    }

    /// Gives back what a request has taken.
    pub(super) fn give_back(&self, sale: &Sale, asked: &Asked<'_>) {
        if let Some(limiter) = self.limiter(&sale.name) {
            limiter.lock().give_back(&skus_of(sale, asked), asked.caller.client(asked.customer), micros());
        }
    }

    fn limiter(&self, sale: &str) -> Option<Arc<Mutex<Limiter>>> {
        self.by_sale.read().get(sale).cloned()
    }

    /// The counts of each sale's policies, for the metrics.
    pub(super) fn counters(&self) -> Vec<(String, holdfast_admission::bucket::Counters)> {
        self.by_sale.read().iter().map(|(name, limiter)| (name.clone(), limiter.lock().counters())).collect()
    }
}

/// Whether there is anything that limits a sale.
pub(super) fn is_limited(limits: Limits) -> bool {
    limits.sale.is_some() || limits.per_sku.is_some() || limits.per_client.is_some()
}

/// The SKUs of a cart that are in the sale.
pub(super) fn skus_of<'a>(sale: &Sale, asked: &Asked<'a>) -> Vec<&'a str> {
    let skus = asked.lines.iter().map(|line| &line.sku).filter(|sku| sale.skus.contains(sku));
    skus.map(holdfast_domain::Sku::as_str).collect()
}

pub(super) fn paused() -> Problem {
    Problem::new("sale_paused", "a rate of 0 per second lets nobody through")
}

pub(super) fn too_fast(names: &[&str], retry_after_us: u64) -> Problem {
    let detail = format!("too fast for: {}; nothing was done", names.join(", "));
    Problem::new("rate_limited", detail).retry_after_ms(retry_after_us.div_ceil(1000)).with("violated", names)
}
