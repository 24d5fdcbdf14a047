//! What was counted: answers and latencies of each phase, and units of each SKU.

use crate::latencies::Latencies;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Part of a run.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    /// Answers that said yes.
    pub(super) accepted: u64,
    /// Answers 409.
    pub(super) refused: u64,
    /// Everything else by status; 0 is a broken connection.
    pub(super) errors: BTreeMap<u16, u64>,
    /// Latencies of all answers.
    pub(super) latencies: Latencies,
    /// How long the phase was.
    pub(super) length: Duration,
}

impl Phase {
    /// Of this length.
    pub(super) fn new(length: Duration) -> Result<Self, String> {
        Ok(Self { accepted: 0, refused: 0, errors: BTreeMap::new(), latencies: Latencies::new()?, length })
    }

    /// Those of another, at the same time.
    pub(super) fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        for (status, n) in &other.errors {
            *self.errors.entry(*status).or_default() += n;
        }
        self.latencies.add(&other.latencies);
        self.length = self.length.max(other.length);
    }

    /// So many a second.
    pub(super) fn per_second(&self, n: u64) -> f64 {
        n as f64 / self.length.as_secs_f64().max(1e-9)
    }
}

/// A whole run.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    /// When it started.
    pub(super) start: Instant,
    /// How long it took, to the last answer.
    pub(super) spent: Duration,
    /// The phases that were planned, and a last one for what was answered after them.
    pub(super) phases: Vec<Phase>,
    /// Units of each SKU in carts that were accepted.
    pub(super) accepted: Vec<u64>,
    /// Units of each SKU in carts of which nobody knows: the connection broke, or the server said so.
    pub(super) in_doubt: Vec<u64>,
    /// Requests of an open loop that were due but could not be sent before the end; they count as latencies too.
    pub(super) missed: u64,
}

impl Tally {
    /// Those of another thread.
    pub(super) fn add(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.spent = self.spent.max(other.spent);
        self.missed += other.missed;
        for (mine, theirs) in self.phases.iter_mut().zip(&other.phases) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.accepted.iter_mut().zip(&other.accepted) {
            *mine += theirs;
        }
        for (mine, theirs) in self.in_doubt.iter_mut().zip(&other.in_doubt) {
            *mine += theirs;
        }
    }

    /// Answers that said yes, in all phases.
    pub(super) fn accepted_in_all(&self) -> u64 {
        self.phases.iter().map(|p| p.accepted).sum()
    }
}
