//! The buckets of clients, in a bounded memory: whatever the number of clients, no more keys than the cap are kept.
//!
//! Keys live in two generations. What is used goes into the young one; when that is full, or old enough, it becomes the
//! old one, and the one before is forgotten. After the time that a bucket takes to fill, nothing is lost by that: all it
//! had were full buckets. Before that time, which takes more clients than the cap, those seen longest ago start anew.

use super::{Bucket, Rate};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Keys are hashes already, keyed where clients choose what is hashed: see [`super::Limiter::ask`].
type Generation = HashMap<u64, Bucket, FixedState>;

#[derive(Debug)]
pub(super) struct Clients {
    young: Generation,
    old: Generation,
    /// How many keys make a generation.
    most: usize,
    /// Since when there is the young one.
    since: u64,
    forgotten: u64,
}

impl Clients {
    pub(super) fn new(cap: usize, now: u64) -> Self {
        let most = (cap / 2).max(1);
        Self { young: Generation::default(), old: Generation::default(), most, since: now, forgotten: 0 }
    }

    pub(super) fn get(&self, client: u64) -> Bucket {
        self.young.get(&client).or_else(|| self.old.get(&client)).copied().unwrap_or_default()
    }

    pub(super) fn put(&mut self, client: u64, bucket: Bucket, rate: Rate, now: u64) {
        if now - self.since >= rate.time_for(rate.capacity()) {
            self.turn(now);
        } else if self.young.len() >= self.most && !self.young.contains_key(&client) {
            self.forgotten += self.old.len() as u64;
            self.turn(now);
        }
        self.young.insert(client, bucket);
    }

    fn turn(&mut self, now: u64) {
        // As many may come again; growing step by step would stop the sale for a moment at each step.
        let next = Generation::with_capacity_and_hasher(self.young.len(), FixedState::default());
        self.old = std::mem::replace(&mut self.young, next);
        self.since = now;
    }

    /// Goes on at another rate. This walks through all keys, as it is rare.
    pub(super) fn change(&mut self, from: Rate, to: Rate, now: u64) {
        for generation in [&mut self.young, &mut self.old] {
            generation.retain(|_, bucket| {
                *bucket = bucket.changed(from, to, now);
                bucket.lack > 0
            });
        }
        // At a slower rate the old ones take longer to fill than the young one has been there.
        self.since = now;
    }

    /// Forgets all.
    pub(super) fn clear(&mut self, now: u64) {
        (self.young, self.old, self.since) = (Generation::default(), Generation::default(), now);
    }

    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// How many keys went although their buckets may not have been full.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The bytes that the keys and their buckets take.
    pub(super) fn bytes(&self) -> usize {
        self.young.allocation_size() + self.old.allocation_size()
    }
}
