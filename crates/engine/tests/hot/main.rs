//! What networks, servers and neighbours do to an engine on Redis: scripts and data flushed, primaries killed whose replica
//! lags, memory that is full, ledgers frozen, nodes killed between any two steps. Nothing is oversold, whatever was
//! answered is true as far as the durability promises it, whatever was not says so, and service goes on by itself.
//!
//! Real servers only. What hurts Redis has one of its own and a namespace of the shared ledger; what hurts the ledger
//! has a ledger of its own too.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod carts;
mod cluster;
mod crowd;
mod failover;
mod halves;
mod kills;
mod ledger;
mod lost;
mod refusals;
mod rig;
mod stopped;
mod writedown;

/// Tests that are told once and run on each kind of ledger.
macro_rules! on_ledgers {
    ($($name:ident)+) => {
        on_ledgers! { @of postgres, crate::common::databases::Kind::Postgres; $($name)+ }
        on_ledgers! { @of mariadb, crate::common::databases::Kind::MariaDb; $($name)+ }
    };
    (@of $module:ident, $kind:expr; $($name:ident)+) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name($kind).await;
            })+
        }
    };
}
pub(crate) use on_ledgers;
