//! The fake payment provider as its callers see it: the real binary on a real port, and a receiver of webhooks that
//! checks their signatures. What the provider promises here is what the payment tests of the service rest on.

#![allow(missing_docs, unreachable_pub)]
// clippy.toml allows these in functions marked as tests; the helpers here are test code as well.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, unused_imports, reason = "shared with the HTTP tests, which use all of it")]
#[path = "../http/support/mod.rs"]
mod support;

mod calls;
mod checkout;
mod command;
mod events;
mod faults;
mod idempotency;
mod receiver;
mod refunds;
#[allow(dead_code, reason = "shared with the tests of payments")]
mod rig;
