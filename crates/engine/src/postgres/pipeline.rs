//! Sending several statements before waiting for the first answer.

use futures_util::future::{MaybeDone, maybe_done};
use std::pin::Pin;

/// Starts all of them in order, then waits for all of them in order.
pub(super) async fn in_order<F: Future>(work: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut started: Vec<Pin<Box<MaybeDone<F>>>> = work.into_iter().map(|work| Box::pin(maybe_done(work))).collect();
    for work in &mut started {
        // A statement is queued for sending when it is first polled.
        let _ = futures_util::poll!(work.as_mut());
    }
    let mut done = Vec::with_capacity(started.len());
    for mut work in started {
        work.as_mut().await;
        done.extend(work.as_mut().take_output());
    }
    done
}
