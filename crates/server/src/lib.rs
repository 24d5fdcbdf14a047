//! The Holdfast service: the only crate that knows HTTP and JSON.
//!
//! [`serve`] takes a configuration, an engine and a listener, and runs until it is told to stop.

mod admission;
mod api;
mod app;
mod attention;
mod auth;
mod body;
mod chores;
mod config;
mod duty;
mod mail;
mod metrics;
mod net;
mod payments;
mod post;
mod problem;
mod relays;
mod view;

pub mod fuzzing;
pub mod outbox;

pub use admission::TrustedProxies;
pub use api::openapi_json;
pub use config::{ApiKey, Config, ConfigError, FileConfig, LockNodes, Role};
pub use net::serve;
pub use payments::{AdyenConfig, PaymentsConfig, Secret, StandardConfig, StripeConfig};
pub use post::MailConfig;
