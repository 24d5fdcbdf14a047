//! One decision over all buckets that a request to a sale has to pass: the sale's, each SKU's, the client's. All or
//! nothing: a refused request consumes nothing anywhere.

use super::clients::Clients;
use super::{Bucket, Rate};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A clock that goes back by no more than this is believed to come back by itself, and nothing is given until it has:
/// callers that raced for the limiter hand in moments that are out of order. One that goes back further was set, and is
/// followed from there.
const JITTER: u64 = 5_000_000;

/// What limits the requests to a sale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// All requests together.
    pub sale: Option<Rate>,
    /// Requests for any one SKU.
    pub per_sku: Option<Rate>,
    /// Requests of any one client.
    pub per_client: Option<Rate>,
    /// Counts what would be refused, and admits it. What is paused stays paused: that is no limit that somebody tries.
    pub shadow: bool,
}

/// What a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may go on, and has taken a token everywhere.
    Admitted,
    /// It may not, and has taken nothing.
    Refused {
        /// After exactly so many microseconds the same request is admitted, if nobody else was meanwhile.
        retry_after_us: u64,
        /// What it was too much for.
        violated: Violated,
    },
    /// Nothing is admitted, and nobody knows until when.
    Paused,
}

/// What a request was too much for: of each kind, the microseconds until it would not be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Violated {
    /// The sale's bucket is empty.
    pub sale: Option<u64>,
    /// The bucket of at least one SKU is empty.
    pub sku: Option<u64>,
    /// The client's bucket is empty.
    pub client: Option<u64>,
}

impl Violated {
    /// The names of the policies: `sale`, `sku`, `client`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.named().filter_map(|(name, wait)| wait.map(|_| name))
    }

    pub(super) fn named(self) -> impl Iterator<Item = (&'static str, Option<u64>)> {
        [("client", self.client), ("sku", self.sku), ("sale", self.sale)].into_iter()
    }

    fn longest(self) -> Option<u64> {
        self.sale.max(self.sku).max(self.client)
    }
}

/// How often a policy was looked at, and what it said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests that were admitted and took a token from it.
    pub allowed: u64,
    /// Requests that were refused because of it, and perhaps others.
    pub denied: u64,
    /// Requests that were admitted and would have been refused because of it, had it not been a shadow.
    pub shadow: u64,
}

/// The counts of each policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of the sale's.
    pub sale: Count,
    /// Of those per SKU, a request counting once.
    pub sku: Count,
    /// Of those per client.
    pub client: Count,
}

impl Counters {
    fn each(&mut self, of: [bool; 3], count: fn(&mut Count) -> &mut u64) {
        let all = [&mut self.sale, &mut self.sku, &mut self.client];
        all.into_iter().zip(of).filter(|(_, is_it)| *is_it).for_each(|(policy, _)| *count(policy) += 1);
    }
}

/// The buckets of one sale on one node.
#[derive(Debug)]
pub struct Limiter {
    limits: Limits,
    sale: Bucket,
    /// No more than the sale has SKUs.
    skus: HashMap<String, Bucket, FixedState>,
    clients: Clients,
    counters: Counters,
    /// The latest moment that was handed in.
    seen: u64,
    /// The time that has passed: what `seen` would be if no clock ever went back.
    now: u64,
}

impl Limiter {
    /// How many client keys are kept unless told otherwise.
    pub const CLIENTS: usize = 1_000_000;

    /// Full buckets.
    pub fn new(limits: Limits, now_us: u64) -> Self {
        Self::with_clients(limits, Self::CLIENTS, now_us)
    }

    /// The same, keeping no more client keys than these; at least two.
    pub fn with_clients(limits: Limits, cap: usize, now_us: u64) -> Self {
        Self {
            limits,
            sale: Bucket::default(),
            skus: HashMap::default(),
            clients: Clients::new(cap, 0),
            counters: Counters::default(),
            seen: now_us,
            now: 0,
        }
    }

    /// Decides on one request for these SKUs of the sale; one that is named twice counts once. `client` is a hash of who
    /// asks, under a secret key: otherwise somebody could choose names that meet in one bucket or in one place of a map.
    pub fn ask(&mut self, skus: &[&str], client: u64, now_us: u64) -> Decision {
        self.advance(now_us);
        let Limits { sale, per_sku, per_client, shadow } = self.limits;
        let applies = [sale.is_some(), per_sku.is_some() && !skus.is_empty(), per_client.is_some()];
        let paused = [sale, per_sku.filter(|_| applies[1]), per_client].map(|rate| rate.is_some_and(Rate::is_paused));
        if paused.contains(&true) {
            self.counters.each(paused, |count| &mut count.denied);
            return Decision::Paused;
        }
        let violated = self.violated(skus, client);
        if let Some(retry_after_us) = violated.longest() {
            let of = [violated.sale, violated.sku, violated.client].map(|wait| wait.is_some());
            if shadow {
                self.counters.each(of, |count| &mut count.shadow);
                return Decision::Admitted;
            }
            self.counters.each(of, |count| &mut count.denied);
            return Decision::Refused { retry_after_us, violated };
        }
        self.take(skus, client);
        self.counters.each(applies, |count| &mut count.allowed);
        Decision::Admitted
    }

    fn violated(&self, skus: &[&str], client: u64) -> Violated {
        let wait =
            |rate: Option<Rate>, bucket: Bucket| rate.map(|rate| bucket.wait(rate, self.now)).filter(|wait| *wait > 0);
        let of_sku = |sku: &&str| wait(self.limits.per_sku, self.sku(sku));
        Violated {
            sale: wait(self.limits.sale, self.sale),
            sku: skus.iter().filter_map(of_sku).max(),
            client: self.limits.per_client.and_then(|rate| wait(Some(rate), self.clients.get(client))),
        }
    }

    fn sku(&self, sku: &str) -> Bucket {
        self.skus.get(sku).copied().unwrap_or_default()
    }

    /// A token from every bucket. Each is known to have one.
    fn take(&mut self, skus: &[&str], client: u64) {
        let now = self.now;
        if let Some(rate) = self.limits.sale {
            self.sale = self.sale.take(rate, now);
        }
        if let Some(rate) = self.limits.per_sku {
            for (n, sku) in skus.iter().enumerate() {
                if !skus[..n].contains(sku) {
                    let bucket = self.skus.entry_ref(*sku).or_default();
                    *bucket = bucket.take(rate, now);
                }
            }
        }
        if let Some(rate) = self.limits.per_client {
            let bucket = self.clients.get(client).take(rate, now);
            self.clients.put(client, bucket, rate, now);
        }
    }

    /// Gives back what an admitted request has taken, where something else has refused it.
    pub fn give_back(&mut self, skus: &[&str], client: u64, now_us: u64) {
        self.advance(now_us);
        let now = self.now;
        if let Some(rate) = self.limits.sale {
            self.sale = self.sale.give_back(rate, now);
        }
        if let Some(rate) = self.limits.per_sku {
            for (n, sku) in skus.iter().enumerate().filter(|(n, sku)| !skus[..*n].contains(sku)) {
                let bucket = self.sku(sku).give_back(rate, now);
                self.skus.insert(skus[n].into(), bucket);
            }
        }
        if let Some(rate) = self.limits.per_client {
            let bucket = self.clients.get(client).give_back(rate, now);
            self.clients.put(client, bucket, rate, now);
        }
    }

    fn advance(&mut self, now_us: u64) {
        self.now = self.now.saturating_add(now_us.saturating_sub(self.seen));
        if now_us > self.seen || self.seen - now_us > JITTER {
            self.seen = now_us;
        }
    }

    /// Goes on with other limits. What was taken stays taken, at most an empty bucket of the new size; what had no limit
    /// before starts full.
    pub fn set_limits(&mut self, limits: Limits, now_us: u64) {
        self.advance(now_us);
        let now = self.now;
        let before = std::mem::replace(&mut self.limits, limits);
        self.sale = match (before.sale, limits.sale) {
            (Some(from), Some(to)) => self.sale.changed(from, to, now),
            _ => Bucket::default(),
        };
        match (before.per_sku, limits.per_sku) {
            (Some(from), Some(to)) => self.skus.values_mut().for_each(|bucket| *bucket = bucket.changed(from, to, now)),
            _ => self.skus.clear(),
        }
        match (before.per_client, limits.per_client) {
            (Some(from), Some(to)) if from == to => {}
            (Some(from), Some(to)) => self.clients.change(from, to, now),
            _ => self.clients.clear(now),
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// What the policies have said so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many client keys are kept.
    pub fn client_keys(&self) -> usize {
        self.clients.len()
    }

    /// How many client keys were forgotten before their time, since there were more than the cap.
    pub fn forgotten_clients(&self) -> u64 {
        self.clients.forgotten()
    }

    /// The bytes that client keys take now.
    pub fn client_bytes(&self) -> usize {
        self.clients.bytes()
    }

    /// What a client's bucket has: whole tokens, and the microseconds until it is full. Nothing where clients have no
    /// limit, or no request is admitted.
    pub fn client_quota(&self, client: u64) -> Option<(u64, u64)> {
        let rate = self.limits.per_client.filter(|rate| !rate.is_paused())?;
        let lack = self.clients.get(client).lack(rate, self.now);
        Some(((rate.capacity() - lack) / super::TOKEN, rate.time_for(lack)))
    }
}
