//! Whether it is worth asking: after some failures in a row, nobody asks for a while, and then one does.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// So many failures in a row are no accident.
const FAILURES: u32 = 3;
/// How long nobody asks then.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    shut_until: Option<Instant>,
}

impl Breaker {
    /// Whether to ask. When a pause is over, one asks for all, and the next pause is over if nothing comes of it.
    pub(super) fn may_ask(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        match state.shut_until {
            Some(until) if now < until => false,
            Some(_) => {
                state.shut_until = Some(now + PAUSE);
                true
            }
            None => true,
        }
    }

    pub(super) fn succeeded(&self) {
        *self.state.lock() = State::default();
    }

    /// Whether this was the failure after which nobody asks.
    pub(super) fn failed(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            state.shut_until = Some(now + PAUSE);
        }
        state.failures == FAILURES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;

    #[test]
    fn one_asks_for_all_after_the_pause() {
        let (breaker, start) = (Breaker::default(), monotonic());
        breaker.failed(start);
        breaker.failed(start);
        breaker.succeeded();
        assert!(!breaker.failed(start) && !breaker.failed(start) && breaker.may_ask(start));
        assert!(breaker.failed(start) && !breaker.failed(start));
        assert!(!breaker.may_ask(start + PAUSE / 2));
        let later = start + PAUSE;
        assert!(breaker.may_ask(later) && !breaker.may_ask(later) && !breaker.may_ask(later + PAUSE / 2));
        assert!(breaker.may_ask(later + PAUSE), "the one who asked was never heard of again");
        breaker.succeeded();
        assert!(breaker.may_ask(later) && breaker.may_ask(later));
    }
}
