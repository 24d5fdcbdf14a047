//! What happens, while it happens: a bar on a terminal, and nothing elsewhere.

use super::shop::Seen;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::time::Duration;

/// The bar.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// It draws on standard error, and only when that is a terminal.
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new(1000);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style.progress_chars("━╸ "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// What happens now, when it cannot be counted.
    pub(super) fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// How far the sale is, and what came of it so far.
    pub(super) fn show(&self, spent: Duration, over: Duration, seen: &Seen, refunds: usize) {
        let share = spent.as_secs_f64() / over.as_secs_f64().max(0.001);
        self.0.set_position((share.min(1.0) * 1000.0) as u64);
        let n = HumanCount;
        self.0.set_message(format!(
            "held {}  sold out {}  paid {}  declined {}  refunds {}",
            n(seen.holds),
            n(seen.sold_out),
            n(seen.paid),
            n(seen.declined),
            n(refunds as u64)
        ));
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
