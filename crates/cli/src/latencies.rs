//! Latencies and their percentiles.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// Latencies above this are told as this.
const LONGEST: Duration = Duration::from_mins(10);

/// Latencies in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet.
    pub(crate) fn new() -> Result<Self, String> {
        Histogram::new_with_bounds(1, LONGEST.as_micros() as u64, 3).map(Self).map_err(|e| e.to_string())
    }

    /// One more.
    pub(crate) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// Those of another as well.
    pub(crate) fn add(&mut self, other: &Self) {
        // Both have the same bounds, so this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// The percentiles.
    pub(crate) fn summary(&self) -> Percentiles {
        let at = |quantile| self.0.value_at_quantile(quantile) as f64 / 1000.0;
        Percentiles { p50_ms: at(0.5), p99_ms: at(0.99), p999_ms: at(0.999), max_ms: self.0.max() as f64 / 1000.0 }
    }
}

/// Latencies in milliseconds.
#[allow(clippy::struct_field_names, reason = "the names go into the JSON, where units must be told")]
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Percentiles {
    /// Half were faster.
    pub(crate) p50_ms: f64,
    /// 99 of 100 were faster.
    pub(crate) p99_ms: f64,
    /// 999 of 1,000 were faster.
    pub(crate) p999_ms: f64,
    /// The slowest.
    pub(crate) max_ms: f64,
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
