//! The outbox against real receivers and brokers: order, at least once, and what happens when something breaks.

#![allow(unreachable_pub, missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod admin;
mod broken;
mod brokers;
mod desk;
mod kafka;
mod nats;
mod rabbitmq;
mod receiver;
mod relay;
mod shop;
mod tls;
mod webhooks;
