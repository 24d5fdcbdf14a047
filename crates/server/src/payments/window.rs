//! Closes payment windows: when a hold lapses or is released, what its shopper could still pay is canceled at the
//! provider. A payment that comes all the same is decided like any other; this only makes it rare.

use super::provider::{Closed, Provider};
use crate::outbox::{Done, Event, Failure, Sent, Sink};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use holdfast_domain::{EntryKind, Hold, HoldId, HoldStatus, Time};
use holdfast_engine::{Engine, EngineError, HoldFilter};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// What ends a hold without an order.
pub(crate) const KINDS: [EntryKind; 2] = [EntryKind::Expired, EntryKind::Released];
/// How many windows are closed in one pass, and how many at once.
const BATCH: usize = 1000;
const AT_ONCE: usize = 8;
/// Holds of an order looked at together.
const PAGE: usize = 100;
const PATIENCE: Duration = Duration::from_secs(20);
/// A window that could not be closed for so many seconds is left open: a payment in it goes back.
const TRIED_FOR: u32 = 1800;

/// A sink of the ledger's entries that closes what they leave open.
pub(crate) struct Windows {
    engine: Arc<dyn Engine>,
    providers: Vec<Arc<dyn Provider>>,
    done: Done,
}

/// Whose payment it is, and the provider's name for it: `stripe:pi_…`, or a name that only Stripe gives.
fn read(payment_ref: &str) -> Option<(&str, &str)> {
    match payment_ref.split_once(':') {
        Some((provider, id)) => Some((provider, id)),
        None if payment_ref.starts_with("pi_") || payment_ref.starts_with("cs_") => Some(("stripe", payment_ref)),
        None => None,
    }
}

impl Windows {
    pub(crate) fn new(engine: Arc<dyn Engine>, providers: Vec<Arc<dyn Provider>>) -> Self {
        Self { engine, providers, done: Done::default() }
    }

    /// One that cannot be closed must not keep others open.
    fn unless_old(&self, hold: HoldId, at: Time, closed: Result<(), Failure>) -> Result<(), Failure> {
        match closed {
            Err(failure) if at.plus_seconds(TRIED_FOR) < self.engine.time() => {
                tracing::warn!(%hold, why = failure.why(), "a payment window is left open");
                Ok(())
            }
            other => other,
        }
    }

    /// The shopper has taken a new hold for the order and pays it with the same object, or has paid already.
    async fn is_in_use(&self, ended: &Hold) -> Result<bool, EngineError> {
        let mut filter = HoldFilter { order_id: Some(ended.order_id.clone()), ..HoldFilter::default() };
        let now = self.engine.time();
        loop {
            let page = self.engine.holds(filter.clone(), PAGE).await?;
            let uses = |other: &&Hold| other.id != ended.id && other.payment_ref == ended.payment_ref;
            let is_current = |other: &Hold| other.is_live(now) || other.status == HoldStatus::Confirmed;
            if page.items.iter().filter(uses).any(is_current) {
                return Ok(true);
            }
            filter.after = page.next;
            if filter.after.is_none() {
                return Ok(false);
            }
        }
    }

    async fn close(&self, id: HoldId) -> Result<(), Failure> {
        let away = |why: String| Failure::Away(why);
        let Some(hold) = self.engine.hold(id).await.map_err(|error| away(error.to_string()))? else { return Ok(()) };
        if hold.status == HoldStatus::Confirmed {
            return Ok(());
        }
        let Some((provider, payment)) = hold.payment_ref.as_deref().and_then(read) else { return Ok(()) };
        let Some(provider) = self.providers.iter().find(|known| known.name() == provider) else { return Ok(()) };
        if self.is_in_use(&hold).await.map_err(|error| away(error.to_string()))? {
            return Ok(());
        }
        match timeout(PATIENCE, provider.close(payment)).await {
            Ok(Closed::Closed) => tracing::info!(hold = %id, payment, "its payment window is closed"),
            Ok(Closed::AlreadyPaid) => tracing::info!(hold = %id, payment, "paid before its window was closed"),
            Ok(Closed::Unknown) => tracing::warn!(hold = %id, payment, "the provider does not know this payment_ref"),
            Ok(Closed::Later { error, .. }) => return Err(away(error)),
            Err(_) => return Err(away("the provider did not answer in time".into())),
        }
        Ok(())
    }
}

#[async_trait]
impl Sink for Windows {
    async fn send(&mut self, events: &[Event]) -> Sent {
        let mut holds = HashSet::new();
        let mut wanted: Vec<(usize, HoldId, Time)> = Vec::new();
        for (index, event) in events.iter().enumerate().filter(|(_, event)| !self.done.has(event)) {
            // A cart of several SKUs has an entry for each.
            if let Some(hold) = event.entry.hold.filter(|hold| holds.insert(*hold)) {
                wanted.push((index, hold, event.at));
            }
        }
        let this = &*self;
        let closed = stream::iter(wanted).map(|(index, hold, at)| async move {
            let closed = this.close(hold).await;
            (index, this.unless_old(hold, at, closed))
        });
        let closed: Vec<(usize, Result<(), Failure>)> = closed.buffer_unordered(AT_ONCE).collect().await;
        let mut failed: Option<(usize, Failure)> = None;
        for (index, closed) in closed {
            match closed {
                Ok(()) => self.done.note(&events[index]),
                Err(why) if failed.as_ref().is_none_or(|(first, _)| index < *first) => failed = Some((index, why)),
                Err(_) => {}
            }
        }
        self.done.sent(events, failed)
    }

    fn batch(&self) -> usize {
        BATCH
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_reference_names_its_provider() {
        assert_eq!(read("stripe:pi_1"), Some(("stripe", "pi_1")));
        assert_eq!(read("cs_test_1"), Some(("stripe", "cs_test_1")));
        assert_eq!(read("adyen:8835:x"), Some(("adyen", "8835:x")));
        assert_eq!(read("order 7"), None);
    }
}
