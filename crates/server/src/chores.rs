//! The janitor and the timed audit: loops around single bounded passes. Safety never depends on them.

use crate::app::Shared;
use crate::duty::Duty;
use holdfast_domain::{Command, Outcome};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Holds expired in one pass: a millisecond or two of the engine's time.
const SWEEP_LIMIT: u32 = 100;
const PAUSE: Duration = Duration::from_millis(500);
/// Between two passes when more have lapsed: the shoppers' requests go first.
const BREATH: Duration = Duration::from_millis(10);
/// The clocks may differ by this much before it is worth a line in the log.
const OFFSET_MS: i64 = 1_000;

/// One pass: expires what has lapsed, up to the limit. How long to wait until the next.
async fn sweep_once(app: &Shared) -> Duration {
    match app.decide(Command::Sweep { limit: SWEEP_LIMIT }).await {
        Ok(Ok(Outcome::Swept { expired, more })) => {
            app.metrics.expired.inc_by(u64::from(expired));
            if more { BREATH } else { PAUSE }
        }
        // The engine says why in the log; lapsed units are sellable all the same.
        _ => PAUSE,
    }
}

/// Sweeps until stopped, while it is this node's to do.
pub(crate) async fn janitor(app: Shared, mut duty: Duty, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let pause = if duty.is_ours().await { sweep_once(&app).await } else { PAUSE };
        tokio::select! { () = sleep(pause) => {}, _ = stop.changed() => {} }
    }
}

/// Audits now and then until stopped, while it is this node's to do.
pub(crate) async fn auditor(app: Shared, mut duty: Duty, mut stop: watch::Receiver<bool>) {
    let interval = Duration::from_secs(u64::from(app.config.audit_interval));
    while !interval.is_zero() && !*stop.borrow() {
        tokio::select! { () = sleep(interval) => {}, _ = stop.changed() => continue }
        if !duty.is_ours().await {
            continue;
        }
        if let Err(problem) = app.audit().await {
            tracing::warn!(detail = problem.detail(), "the audit could not run");
        }
    }
}

/// Watches the clocks, and keeps the gauges fresh.
pub(crate) async fn watcher(app: Shared, mut stop: watch::Receiver<bool>) {
    let mut told = 0;
    while !*stop.borrow() {
        let health = app.engine.health().await;
        let offset = health.clock_offset_ms;
        if (offset - told).abs() >= OFFSET_MS {
            told = offset;
            tracing::warn!(
                offset_ms = offset,
                "this machine's wall clock and the engine's clock are apart; holds go by the engine's clock"
            );
        }
        app.metrics.clock_offset.set(offset);
        app.metrics.retries.set(health.retries as i64);
        app.metrics.holds.set(health.holds as i64);
        app.metrics.skus.set(health.skus as i64);
        app.metrics.ready.set(i64::from(health.problem.is_none()));
        app.metrics.auditing.set(health.auditing as i64);
        app.metrics.backlog.set(health.backlog as i64);
        app.metrics.parked.set(health.parked as i64);
        app.metrics.lane_waiting.set(app.lanes.waiting() as i64);
        tokio::select! { () = sleep(Duration::from_secs(1)) => {}, _ = stop.changed() => {} }
    }
}
