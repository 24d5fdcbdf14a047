//! What the sales tell Prometheus. Labels are names of sales, which the operator chose, and words of our own.

use super::Admission;
use holdfast_admission::bucket::Count;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Limited {
    sale: String,
    policy: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SharedOutcome {
    sale: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoomGauge {
    sale: String,
    state: &'static str,
}

/// See the file's header.
#[derive(Default)]
pub(crate) struct AdmissionMetrics {
    limited: Family<Limited, Counter>,
    shared: Family<SharedOutcome, Counter>,
    rooms: Family<RoomGauge, Gauge>,
}

impl AdmissionMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let limited = "Requests for units of sales by what a token bucket said: allowed, denied, shadow";
        registry.register("rate_limit_requests", limited, self.limited.clone());
        let shared = "Requests for units of sales by what the shared budget said: allowed, denied, shadow, degraded";
        registry.register("shared_rate_limit_requests", shared, self.shared.clone());
        registry.register("waiting_room_tickets", "Tickets of waiting rooms by state", self.rooms.clone());
    }

    /// What the shared budget said.
    pub(super) fn shared(&self, sale: &str, outcome: &'static str) {
        self.shared.get_or_create(&SharedOutcome { sale: sale.to_owned(), outcome }).inc();
    }

    /// Takes over what has been counted elsewhere.
    pub(crate) fn read(&self, admission: &Admission) {
        for (sale, counters) in admission.limiters.counters() {
            for (policy, count) in [("sale", counters.sale), ("sku", counters.sku), ("client", counters.client)] {
                self.take(&sale, policy, count);
            }
        }
        for live in admission.rooms.all() {
            let counts = live.counts(admission.engine.time());
            for (state, count) in [
                ("prequeue", counts.prequeue),
                ("waiting", counts.waiting),
                ("aside", counts.aside),
                ("turn", counts.turn),
                ("admitted", counts.admitted),
                ("holding", counts.holding),
            ] {
                let gauge = self.rooms.get_or_create(&RoomGauge { sale: live.sale.clone(), state });
                gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
    }

    fn take(&self, sale: &str, policy: &'static str, count: Count) {
        for (outcome, total) in [("allowed", count.allowed), ("denied", count.denied), ("shadow", count.shadow)] {
            let labels = Limited { sale: sale.to_owned(), policy, outcome };
            let counter = self.limited.get_or_create(&labels);
            // A sale that was removed and made again counts from 0; the counter never goes back.
            counter.inc_by(total.saturating_sub(counter.get()));
        }
    }
}
