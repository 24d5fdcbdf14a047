//! What was counted: answers and latencies of each phase, and units of each SKU.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Latencies above this are told as this.
const LONGEST: Duration = Duration::from_mins(10);

/// Latencies in microseconds.
#[derive(Debug, Clone)]
pub(super) struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet.
    pub(super) fn new() -> Result<Self, String> {
        Histogram::new_with_bounds(1, LONGEST.as_micros() as u64, 3).map(Self).map_err(|e| e.to_string())
    }

    /// One more.
    pub(super) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// Those of another as well.
    pub(super) fn add(&mut self, other: &Self) {
        // Both have the same bounds, so this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// The percentiles.
    pub(super) fn summary(&self) -> Percentiles {
        let at = |quantile| self.0.value_at_quantile(quantile) as f64 / 1000.0;
        Percentiles { p50_ms: at(0.5), p99_ms: at(0.99), p999_ms: at(0.999), max_ms: self.0.max() as f64 / 1000.0 }
    }
}

/// Latencies in milliseconds.
#[allow(clippy::struct_field_names, reason = "the names go into the JSON, where units must be told")]
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Percentiles {
    /// Half were faster.
    pub(super) p50_ms: f64,
    /// 99 of 100 were faster.
    pub(super) p99_ms: f64,
    /// 999 of 1,000 were faster.
    pub(super) p999_ms: f64,
    /// The slowest.
    pub(super) max_ms: f64,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_told_in_milliseconds() {
        let mut some = Latencies::new().unwrap();
        let mut more = Latencies::new().unwrap();
        for ms in 1..=99 {
            some.record(Duration::from_millis(ms));
        }
        more.record(Duration::from_secs(2000));
        some.add(&more);
        let told = some.summary();
        assert!((told.p50_ms - 50.0).abs() < 0.1 && (told.p99_ms - 99.0).abs() < 0.1, "{told:?}");
        assert!((told.max_ms - 600_000.0).abs() < 1000.0, "the longest is capped: {told:?}");
    }
}
