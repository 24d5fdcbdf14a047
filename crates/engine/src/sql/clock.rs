//! The database's clock, as a node knows it between two looks: nodes whose own clocks are wrong agree all the same.

use crate::clock::{monotonic, wall};
use holdfast_domain::Time;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// What the database said last, carried on by this process's monotonic clock. Never goes back.
#[derive(Debug)]
pub(super) struct SharedClock {
    told: Mutex<(Instant, Time)>,
    last: AtomicI64,
}

impl SharedClock {
    pub(super) fn new(now: Time) -> Self {
        Self { told: Mutex::new((monotonic(), now)), last: AtomicI64::new(now.millis()) }
    }

    /// Notes what the database says.
    pub(super) fn set(&self, now: Time) {
        *self.told.lock() = (monotonic(), now);
    }

    pub(super) fn now(&self) -> Time {
        let (at, told) = *self.told.lock();
        let now = told.millis().saturating_add(i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX));
        Time::from_millis(self.last.fetch_max(now, Ordering::Relaxed).max(now))
    }

    /// How far this machine's wall clock is ahead of the database's, in milliseconds; negative when behind.
    pub(super) fn offset_ms(&self) -> i64 {
        wall().millis() - self.now().millis()
    }
}
