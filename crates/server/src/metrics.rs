//! What Prometheus reads: names with units, few labels.

use crate::admission::AdmissionMetrics;
use crate::attention::Kind;
use crate::outbox::OutboxMetrics;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// One kind of answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Answered {
    pub(crate) route: &'static str,
    pub(crate) status: u16,
}

/// What became of a provider's event, or of a fact in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Webhook {
    provider: &'static str,
    outcome: &'static str,
}

/// What became of an attempt at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    provider: &'static str,
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: &'static str,
}

/// All of them.
pub(crate) struct Metrics {
    registry: Registry,
    answers: Family<Answered, Counter>,
    seconds: Family<Route, Histogram>,
    webhooks: Family<Webhook, Counter>,
    attempts: Family<Attempt, Counter>,
    pub(crate) attention: Family<Kind, Counter>,
    pub(crate) outbox: OutboxMetrics,
    pub(crate) admission: AdmissionMetrics,
    pub(crate) expired: Counter,
    pub(crate) lane_waiting: Gauge,
    pub(crate) holds: Gauge,
    pub(crate) skus: Gauge,
    pub(crate) clock_offset: Gauge,
    pub(crate) retries: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) drift: Gauge,
    pub(crate) ready: Gauge,
    pub(crate) auditing: Gauge,
    pub(crate) backlog: Gauge,
    pub(crate) parked: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("holdfast");
        let buckets = || Histogram::new([0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0]);
        let metrics = Self {
            answers: Family::default(),
            seconds: Family::new_with_constructor(buckets),
            webhooks: Family::default(),
            attempts: Family::default(),
            attention: Family::default(),
            outbox: OutboxMetrics::default(),
            admission: AdmissionMetrics::default(),
            expired: Counter::default(),
            lane_waiting: Gauge::default(),
            holds: Gauge::default(),
            skus: Gauge::default(),
            clock_offset: Gauge::default(),
            retries: Gauge::default(),
            connections: Gauge::default(),
            drift: Gauge::default(),
            ready: Gauge::default(),
            auditing: Gauge::default(),
            backlog: Gauge::default(),
            parked: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("http_answers", "Answers by route and status", metrics.answers.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time from the headers to the answer",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register("expired_holds", "Holds expired by the janitor", metrics.expired.clone());
        registry.register("lane_waiting_requests", "Requests waiting in the lane", metrics.lane_waiting.clone());
        registry.register("holds", "Holds that claim units, or did until they lapsed", metrics.holds.clone());
        registry.register("skus", "SKUs known", metrics.skus.clone());
        let offset = "How far the wall clock is ahead of the engine's clock, in milliseconds";
        registry.register("clock_offset_milliseconds", offset, metrics.clock_offset.clone());
        let retries =
            "Batches and steps decided again since the start, because of what others did or for knowing too little";
        registry.register("engine_retries", retries, metrics.retries.clone());
        registry.register("http_connections", "Open connections", metrics.connections.clone());
        registry.register("audit_drift", "Differences found by the last audit", metrics.drift.clone());
        registry.register("ready", "1 when requests can be served", metrics.ready.clone());
        registry.register("webhook_facts", "Facts from providers by what they did", metrics.webhooks.clone());
        let attempts = "Refunds, voids and captures asked of providers, by what was answered";
        registry.register("provider_attempts", attempts, metrics.attempts.clone());
        let attention = "What a person has to look at, as told by this node";
        registry.register("attention", attention, metrics.attention.clone());
        metrics.outbox.register(&mut registry);
        metrics.admission.register(&mut registry);
        metrics.register_hot_store(&mut registry);
        Self { registry, ..metrics }
    }

    /// What only an engine with a ledger elsewhere has; 0 on the others.
    fn register_hot_store(&self, registry: &mut Registry) {
        let auditing = "Partitions of Redis that do not serve, because they are compared with the ledger";
        registry.register("auditing_partitions", auditing, self.auditing.clone());
        let backlog = "Log entries of Redis that the ledger does not have yet";
        registry.register("backlog_entries", backlog, self.backlog.clone());
        let parked = "Logged facts that could not be written down and wait for a person";
        registry.register("parked_facts", parked, self.parked.clone());
    }

    pub(crate) fn answered(&self, route: &'static str, status: u16, took: Duration) {
        self.answers.get_or_create(&Answered { route, status }).inc();
        self.seconds.get_or_create(&Route { route }).observe(took.as_secs_f64());
    }

    pub(crate) fn webhook(&self, provider: &'static str, outcome: &'static str) {
        self.webhooks.get_or_create(&Webhook { provider, outcome }).inc();
    }

    pub(crate) fn job(&self, provider: &'static str, kind: &'static str, outcome: &'static str) {
        self.attempts.get_or_create(&Attempt { provider, kind, outcome }).inc();
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
