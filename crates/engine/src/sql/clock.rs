//! The database's clock, as a node knows it between two looks: nodes whose own clocks are wrong agree all the same.

use super::store::Told;
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
    pub(super) fn new(told: Told) -> Self {
        let now = told.now.max(told.last_time);
        Self { told: Mutex::new((monotonic(), now)), last: AtomicI64::new(now.millis()) }
    }

    /// Notes what the database says. What was recorded at a later moment counts: batches never go behind it either.
    pub(super) fn set(&self, told: Told) {
        *self.told.lock() = (monotonic(), told.now.max(told.last_time));
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
