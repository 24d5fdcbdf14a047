//! The rules, told as scenarios, and proved on every subject: the bare inventory first, then each engine.
//!
//! A scenario is an async function over a [`Lab`]; after every step the lab checks all invariants. To add an engine,
//! write a function that opens a fresh one under a policy, and register it with one `subject!` line.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod confirm;
mod holds;
mod jobs;
mod kinds;
mod lapse;
mod limits;
mod money;
mod payments;
mod refunds;
mod stock;
mod unmatched;

use common::bare::Bare;
use common::databases::{Kind, opened};
use common::lab::{Lab, Opened};
use common::redis::Hot;
use holdfast_engine::Strategy;
use holdfast_engine::domain::Policy;
use holdfast_engine::embedded::Embedded;
use std::sync::Arc;

include!("registry.rs");

async fn bare(policy: Policy) -> Option<Opened> {
    Some(Opened { engine: Arc::new(Bare::whole(policy)), keep: Box::new(()) })
}

async fn bare_in_parts(policy: Policy) -> Option<Opened> {
    Some(Opened { engine: Arc::new(Bare::in_parts(policy)), keep: Box::new(()) })
}

async fn embedded(policy: Policy) -> Option<Opened> {
    let folder = tempfile::tempdir().unwrap();
    Some(Opened { engine: Arc::new(Embedded::open_with(folder.path(), policy).unwrap()), keep: Box::new(folder) })
}

subject!(inventory, super::bare);
subject!(inventory_in_parts, super::bare_in_parts);
subject!(embedded, super::embedded);

/// A database's strategies as subjects.
macro_rules! database {
    ($module:ident, $kind:expr; $($name:ident = $strategy:expr),+) => {
        mod $module {
            use super::*;
            mod open {
                use super::*;
                $(pub async fn $name(policy: Policy) -> Option<Opened> {
                    opened($kind, $strategy, policy).await
                })+
            }
            $(subject!($name, super::open::$name);)+
        }
    };
}

database!(postgres, Kind::Postgres; row_lock = Strategy::RowLock, optimistic = Strategy::Optimistic,
    skip_locked = Strategy::SkipLocked, redlock = Strategy::Redlock);
database!(mariadb, Kind::MariaDb; row_lock = Strategy::RowLock, optimistic = Strategy::Optimistic,
    skip_locked = Strategy::SkipLocked, redlock = Strategy::Redlock);

/// Redis with each kind of ledger as subjects.
macro_rules! hot {
    ($module:ident, $hot:expr; $($name:ident = $kind:expr),+) => {
        mod $module {
            use super::*;
            mod open {
                use super::*;
                $(pub async fn $name(policy: Policy) -> Option<Opened> {
                    common::redis::opened($hot, $kind, policy).await
                })+
            }
            $(subject!($name, super::open::$name);)+
        }
    };
}

hot!(redis, Hot::Single; on_postgres = Kind::Postgres, on_mariadb = Kind::MariaDb);
hot!(redis_cluster, Hot::Cluster; on_postgres = Kind::Postgres);
