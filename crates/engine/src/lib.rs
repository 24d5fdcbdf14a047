//! Where stock lives: the seam that every engine fills, the batcher in front of them, and the embedded engine.
//!
//! An engine applies *batches*: commands go in together, are decided in order by the rules of `holdfast_domain`, and
//! become durable in one atomic step. [`Lanes`] gathers single requests into batches without ever waiting on purpose.

pub mod clock;
pub mod embedded;
pub mod postgres;

mod audit;
mod batcher;
mod error;
mod records;
mod seam;
mod sql;
mod tls;

pub use batcher::{Lanes, LanesConfig};
pub use error::EngineError;
pub use holdfast_domain as domain;
pub use seam::{
    Answer, Applied, AuditReport, Drift, Engine, Health, HoldFilter, LedgerFilter, Now, NumberedEntry, OrderView, Page,
};
pub use sql::{OpenError, SqlConfig, Strategy};
