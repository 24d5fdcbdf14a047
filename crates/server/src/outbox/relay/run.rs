//! The loop around a relay's passes.

use super::{POLL, Pass, Relay};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// How long a pass that is under way may take after a stop.
const GRACE: Duration = Duration::from_secs(5);

/// Passes until stopped: woken after commits, and now and then in any case.
pub async fn run(mut relay: Relay, wake: Arc<Notify>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        // What is committed while the pass looks at the ledger must wake the wait that follows it.
        let mut woken = pin!(wake.notified());
        woken.as_mut().enable();
        let made = {
            let mut pass = pin!(relay.once());
            tokio::select! {
                made = &mut pass => Some(made),
                _ = stop.changed() => timeout(GRACE, pass).await.ok(),
            }
        };
        let is_idle = matches!(made, Some(Ok(Pass::Idle)));
        let pause = match made {
            Some(Ok(pass)) => pass.pause(),
            Some(Err(error)) => {
                tracing::warn!(sink = relay.place.name, %error, "a sink's pass failed");
                POLL
            }
            None => break,
        };
        tokio::select! { () = sleep(pause) => {}, () = woken, if is_idle => {}, _ = stop.changed() => {} }
    }
    if let Err(error) = relay.let_go().await {
        tracing::debug!(sink = relay.place.name, %error, "the lease lapses by itself");
    }
}
