//! What the engines on a shared SQL database have in common: any number of nodes, one transaction a batch.
//!
//! A batch is loaded (the rows that it touches, SKUs in order), decided by the same rules as everywhere, and written
//! back in the same transaction. What differs between databases stands behind [`Store`] and [`Tx`]; nothing here knows
//! one of them. No transaction outlives its batch, and none depends on a caller who may hang up.

mod batch;
mod claim;
mod clock;
mod config;
mod doctor;
mod effect;
mod engine;
mod fault;
mod hot;
mod hot_store;
#[cfg(test)]
pub(crate) mod hot_tests;
mod import;
mod leased;
mod ledger;
mod lists;
mod load;
mod merge;
mod note_store;
mod part;
pub(crate) mod rows;
mod store;
mod writes;

pub use config::{SqlConfig, Strategy};
pub use fault::OpenError;

pub(crate) use doctor::{Facts, VIOLATING, judge};
pub(crate) use effect::{Effect, Fields, field, option, read_hold};
pub(crate) use engine::SqlEngine;
pub(crate) use fault::Fault;
pub(crate) use hot::{Drained, Fact, Frozen, Kind, LogEntry, Step, Stepped};
pub(crate) use hot_store::{HotRow, HotTx, Parked};
pub(crate) use import::import;
pub(crate) use ledger::{Ledger, PAGE};
pub(crate) use note_store::NoteTx;
pub(crate) use store::{AUDIT_PATIENCE, Asked, Found, Loose, Mode, Moved, Store, Told, Tx};
pub(crate) use writes::{Changed, Writes};
