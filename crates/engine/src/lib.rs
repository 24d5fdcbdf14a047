//! Where stock lives: the seam that every engine fills, the batcher in front of them, and the engines: embedded, on
//! PostgreSQL, and on MySQL or MariaDB.
//!
//! An engine applies *batches*: commands go in together, are decided in order by the rules of `holdfast_domain`, and
//! become durable in one atomic step. [`Lanes`] gathers single requests into batches without ever waiting on purpose.

pub mod buckets;
pub mod clock;
pub mod doctor;
pub mod embedded;
pub mod lease;
pub mod moving;
pub mod mysql;
pub mod postgres;
pub mod redis;
pub mod tls;

mod audit;
mod batcher;
mod database;
mod error;
mod partition;
mod records;
mod seam;
mod sql;

pub use batcher::{Lanes, LanesConfig};
pub use database::Database;
pub use error::EngineError;
pub use holdfast_domain as domain;
pub use redis::{Durability, RedisConfig};
pub use seam::{
    Answer, Applied, AuditReport, Drift, Engine, Health, HoldFilter, LedgerFilter, Note, Now, NumberedEntry, OrderView,
    Page,
};
pub use sql::{OpenError, SqlConfig, Strategy};
