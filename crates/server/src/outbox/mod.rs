//! Events to the world: the ledger's entries, told to sinks in order and at least once.
//!
//! The ledger is the outbox. A sink has a cursor in it, kept in a note of the engine's, and one node at a time moves it.
//! Nothing here may slow a request down, change the ledger, or move a cursor past what a sink has not accepted.

pub mod admin;
pub mod api;

mod config;
mod dead;
mod desk;
mod engine;
mod event;
mod guard;
mod http;
mod kafka;
mod metrics;
mod nats;
mod rabbitmq;
mod relay;
mod schedule;
mod sink;
mod state;

pub use config::{Sasl, SinkConfig, SinkKind, StartAt, check_all, from_variables};
pub use dead::DeadLetter;
pub use desk::{Desk, Note};
pub(crate) use engine::EngineDesk;
pub use event::{Event, Identity};
pub use metrics::OutboxMetrics;
pub use relay::{Pass, Relay, run};
pub(crate) use sink::Done;
pub use sink::{Failure, Sent, Sink};
pub use state::SinkState;
