//! A progress bar on a terminal, and nothing elsewhere.

use super::load::Plan;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// The bar of what runs now. It draws on standard error, and only when that is a terminal.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// With this name in front.
    pub(super) fn new(name: &str) -> Self {
        let bar = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("{prefix:>12} {bar:30} {msg}") {
            bar.set_style(style.progress_chars("━╸ "));
        }
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// What happens now, when it cannot be counted.
    pub(super) fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// A run begins.
    pub(super) fn begin(&self) {
        self.0.reset_elapsed();
    }

    /// How far the plan is.
    pub(super) fn show(&self, plan: &Plan, answered: u64) {
        let spent = self.0.elapsed().as_secs_f64().max(0.001);
        let planned: f64 = plan.phases.iter().map(Duration::as_secs_f64).sum();
        let share = plan.requests.map_or(spent / planned.max(0.001), |all| answered as f64 / all as f64);
        self.share(share, answered);
    }

    /// How far it is by the clock.
    pub(super) fn show_time(&self, planned: Duration, answered: u64) {
        self.share(self.0.elapsed().as_secs_f64() / planned.as_secs_f64().max(0.001), answered);
    }

    fn share(&self, share: f64, answered: u64) {
        self.0.set_length(1000);
        self.0.set_position((share.min(1.0) * 1000.0) as u64);
        self.0.set_message(format!("{answered} answers"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
