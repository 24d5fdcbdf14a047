//! How fast rooms may let people in: slower when holds get slow or the lane fills, before anybody notices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Holds that take longer than this on average slow the rooms down, in proportion.
const GOOD_US: u64 = 100_000;
/// However slow it is, some go on: they are how one learns that it is better.
const SLOWEST: f64 = 0.05;
/// Each hold counts for so much of the average: one in sixteen.
const WEIGHT: u64 = 16;

/// A running average of how long holds take.
#[derive(Default)]
pub(super) struct Pace(AtomicU64);

impl Pace {
    pub(super) fn took(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(60_000_000);
        let mix = |average: u64| Some((average * (WEIGHT - 1) + us) / WEIGHT);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, mix);
    }

    /// From 0 to 1, given how full the lane is.
    pub(super) fn factor(&self, waiting: usize, depth: usize) -> f64 {
        let average = self.0.load(Ordering::Relaxed);
        // What was slow is forgotten when nobody comes.
        self.0.store(average - average / 64, Ordering::Relaxed);
        let by_time = GOOD_US as f64 / average.max(GOOD_US) as f64;
        let by_lane = 1.0 - waiting as f64 / depth.max(1) as f64;
        by_time.min(by_lane).clamp(SLOWEST, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_slow_down_and_come_back() {
        let pace = Pace::default();
        assert!((pace.factor(0, 100) - 1.0).abs() < f64::EPSILON);
        (0..200).for_each(|_| pace.took(Duration::from_millis(500)));
        assert!((0.15..0.25).contains(&pace.factor(0, 100)));
        for _ in 0..200 {
            pace.factor(0, 100);
        }
        assert!((pace.factor(0, 100) - 1.0).abs() < f64::EPSILON, "nobody came meanwhile");
        assert!(pace.factor(90, 100) <= 0.11 && pace.factor(200, 100) >= SLOWEST);
    }
}
