//! Payments from end to end: the real server, and a strict fake of Stripe that is told to fail in every way it can. What
//! is checked is what the two books say in the end: each capture has one order or one refund.

#![allow(missing_docs, unreachable_pub)]
// clippy.toml allows these in functions marked as tests; the helpers here are test code as well.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, reason = "shared with the tests of the fake provider, which use all of it")]
#[path = "../fake/rig.rs"]
mod rig;
#[allow(dead_code, unused_imports, reason = "shared with the HTTP tests, which use all of it")]
#[path = "../http/support/mod.rs"]
mod support;

mod crashes;
mod engines;
mod events;
mod faults;
mod foreign;
mod mail;
mod outcomes;
mod shop;
mod windows;
