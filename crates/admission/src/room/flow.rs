//! How fast the room really moves, and what that says about waiting.
//!
//! Only what was measured counts, never the configured rate: turns given, and those ahead who went away. Two averages
//! are kept: a slow one for the likely time, and a fast one so that the careful guess follows as soon as it gets slower.

use super::types::Eta;

/// Memory of the slow and of the fast average, in seconds.
const SLOW: f64 = 30.0;
const FAST: f64 = 8.0;
/// Memory of how many go away. Long, because many go at once when the room first finds who never came, and nothing
/// follows from that for the time after.
const PATIENCE: f64 = 300.0;
/// Those who go away are not counted on for more than this share of the wait.
const MOST_SPARED: f64 = 0.5;
/// Movements, or milliseconds since the first one, that it takes to know anything.
const ENOUGH_MOVES: u64 = 10;
const ENOUGH_MS: i64 = 10_000;
/// Samples further apart than this say nothing: the room was not moved in between.
const LONGEST_MS: i64 = 10_000;
/// Whoever would wait longer is told nothing rather than a number.
const LONGEST_WAIT_S: f64 = 48.0 * 3600.0;
/// How much slower than the slower average the careful guess is.
const CAREFUL: f64 = 0.75;

/// An average that forgets exponentially and does not start at 0.
#[derive(Default, Clone, Copy)]
struct Average {
    sum: f64,
    weight: f64,
}

impl Average {
    fn add(&mut self, value: f64, seconds: f64, memory: f64) {
        let share = 1.0 - (-seconds / memory).exp();
        self.sum += (value - self.sum) * share;
        self.weight += (1.0 - self.weight) * share;
    }

    fn get(self) -> f64 {
        if self.weight > 0.0 { self.sum / self.weight } else { 0.0 }
    }
}

/// The measurement.
#[derive(Default)]
pub(super) struct Flow {
    slow: Average,
    fast: Average,
    /// Of those waiting, the share that goes away in a second. Starts at 0: nobody is expected to go.
    leaving: Average,
    last: Option<i64>,
    first_move: Option<i64>,
    moves: u64,
    /// What has happened since the last sample.
    given: u64,
    left: i64,
}

impl Flow {
    /// Somebody who waited got a turn.
    pub(super) fn gave(&mut self, count: u64) {
        self.given += count;
    }

    /// Somebody who waited went away; -1 for one who came back.
    pub(super) fn went(&mut self, count: i64) {
        self.left += count;
    }

    /// A step of an open room is over, and so many still wait.
    pub(super) fn sample(&mut self, waiting: usize, now: i64) {
        let before = self.last;
        if before == Some(now) {
            return;
        }
        self.last = Some(now);
        let (given, left) = (std::mem::take(&mut self.given), std::mem::take(&mut self.left));
        self.moves = self.moves.saturating_add(given);
        if given > 0 {
            self.first_move.get_or_insert(now);
        }
        let Some(elapsed) = before.map(|before| now.saturating_sub(before)) else { return };
        if elapsed <= 0 || elapsed > LONGEST_MS {
            return;
        }
        let seconds = elapsed as f64 / 1000.0;
        let rate = given as f64 / seconds;
        // Where everybody who came got a turn, it was slow for want of shoppers. That says nothing about a crowd.
        if waiting > 0 || rate > self.slow.get() {
            self.slow.add(rate, seconds, SLOW);
            self.fast.add(rate, seconds, FAST);
        }
        let share = left as f64 / (waiting as f64 + given as f64 + left.max(0) as f64).max(1.0);
        self.leaving.add(share / seconds, seconds, PATIENCE);
    }

    /// A room that is not open does not move, and that is no measurement.
    pub(super) fn rest(&mut self) {
        self.last = None;
        (self.given, self.left) = (0, 0);
    }

    /// Turns a second.
    pub(super) fn rate(&self) -> f64 {
        self.slow.get()
    }

    /// How long it takes until so many ahead and then oneself have been let in.
    ///
    /// With turns at a rate r and those ahead going away at a share l a second, n of them take ln(1 + l n / r) / l
    /// seconds, which becomes n / r when nobody goes away. The careful guess counts on nobody going away.
    pub(super) fn eta(&self, ahead: u64, now: i64) -> Eta {
        let since = self.first_move.map_or(0, |first| now.saturating_sub(first));
        if self.moves < ENOUGH_MOVES && since < ENOUGH_MS {
            return Eta::default();
        }
        let (rate, n) = (self.slow.get(), ahead as f64 + 1.0);
        let careful = n / (rate.min(self.fast.get()) * CAREFUL);
        let leaving = self.leaving.sum;
        let likely = if leaving > 1e-6 { (leaving * n / rate).ln_1p() / leaving } else { n / rate };
        let likely = likely.max(n / rate * MOST_SPARED);
        if !likely.is_finite() || likely > LONGEST_WAIT_S {
            return Eta::default();
        }
        let p50_s = likely.ceil() as u64;
        let p90_s = careful.min(2.0 * LONGEST_WAIT_S).ceil() as u64;
        Eta { known: true, p50_s, p90_s: p90_s.max(p50_s) }
    }
}
