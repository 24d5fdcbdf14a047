//! What Prometheus reads of the sinks, by sink.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    sink: String,
}

/// One set for all sinks of a node; a clone counts into the same numbers.
#[derive(Debug, Clone, Default)]
pub struct OutboxMetrics {
    lag: Family<Label, Gauge>,
    sent: Family<Label, Counter>,
    failures: Family<Label, Counter>,
    dead: Family<Label, Counter>,
}

/// The numbers of one sink.
#[derive(Debug, Clone)]
pub(super) struct SinkMetrics {
    pub(super) lag: Gauge,
    pub(super) sent: Counter,
    pub(super) failures: Counter,
    pub(super) dead: Counter,
}

impl OutboxMetrics {
    /// Makes them part of what is told.
    pub fn register(&self, registry: &mut Registry) {
        let lag = "Ledger entries that a sink does not have yet, as this node sees it";
        registry.register("sink_lag_entries", lag, self.lag.clone());
        registry.register("sink_sent_events", "Events that this node sent and a sink accepted", self.sent.clone());
        registry.register("sink_failures", "Attempts of this node that a sink did not accept", self.failures.clone());
        registry.register("sink_dead_letters", "Events that this node gave up", self.dead.clone());
    }

    pub(super) fn of(&self, sink: &str) -> SinkMetrics {
        let label = Label { sink: sink.to_owned() };
        SinkMetrics {
            lag: self.lag.get_or_create_owned(&label),
            sent: self.sent.get_or_create_owned(&label),
            failures: self.failures.get_or_create_owned(&label),
            dead: self.dead.get_or_create_owned(&label),
        }
    }
}
