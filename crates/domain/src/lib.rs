//! The rules of Holdfast, and nothing else: what a hold is, when it may be confirmed, what a payment settles.
//!
//! This crate is pure. It never waits, reads a clock, draws a random number or touches a disk: time and fresh ids
//! arrive inside the commands. Whoever wants durability (the engines) loads what a command touches, calls
//! [`Inventory::apply`], and writes down what changed.

mod command;
mod entry;
mod hold;
mod id;
mod inventory;
mod money;
mod order;
mod outcome;
mod payment;
mod quantity;
mod refusal;
mod stock;
mod text;
mod time;

pub use command::{Command, HoldRequest, Record, Recorded, SetStock};
pub use entry::{Counters, Entry, EntryKind, LINE_ADDED, fold};
pub use hold::{Hold, HoldStatus, Line, Lines, LinesError, MAX_LINES};
pub use id::HoldId;
pub use inventory::{Changes, Inventory, Key, Mark, Policy};
pub use money::{Currency, Money};
pub use order::{Order, OrderFile, OrderLine, OrderStatus};
pub use outcome::{Outcome, Settlement};
pub use payment::{
    Job, JobKind, JobReason, JobReport, JobState, JobTurn, OrderRef, Payment, PaymentFact, PaymentKey, PaymentKind,
    PaymentStatus,
};
pub use quantity::{MAX_QUANTITY, MAX_TOTAL, Quantity, Total};
pub use refusal::{Refusal, Short};
pub use stock::Stock;
pub use text::{CustomerId, OrderId, Ref, Sku, TextError};
pub use time::{Time, Ttl};
