//! What a person has to look at is told to the log and counted, once, by whichever node reads the ledger for it.

use crate::outbox::{Event, Sent, Sink};
use async_trait::async_trait;
use holdfast_domain::EntryKind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// What needs a person.
pub(crate) const KINDS: [EntryKind; 5] = [
    EntryKind::PaymentNeedsAttention,
    EntryKind::RefundNeedsAttention,
    EntryKind::PaymentRefundFailed,
    EntryKind::PaymentCaptureFailed,
    EntryKind::PaymentDisputed,
];

/// Which of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Kind {
    pub(crate) kind: &'static str,
}

/// A sink of the ledger's entries that tells the log.
pub(crate) struct Attention {
    pub(crate) metrics: Family<Kind, Counter>,
}

#[async_trait]
impl Sink for Attention {
    async fn send(&mut self, events: &[Event]) -> Sent {
        for event in events {
            let (kind, payment) = (event.kind.as_str(), event.entry.reason.as_deref());
            let order = event.entry.order.as_ref().map(holdfast_domain::OrderId::as_str);
            tracing::error!(kind, payment, order, "needs attention");
            self.metrics.get_or_create(&Kind { kind }).inc();
        }
        Sent { accepted: events.len(), failure: None }
    }

    fn batch(&self) -> usize {
        100
    }
}
