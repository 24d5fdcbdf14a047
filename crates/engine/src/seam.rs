//! The seam: what the service asks of an engine. No connection, transaction or row type crosses it.

use crate::EngineError;
use async_trait::async_trait;
use holdfast_domain::{
    Command, Entry, Hold, HoldId, HoldStatus, Job, Order, OrderId, Outcome, Payment, PaymentKey, Refusal, Sku, Stock,
    Time,
};
use std::pin::Pin;
use std::sync::Arc;

/// How far a batch is when the call that started it returns.
pub enum Applied {
    /// Done.
    Done(Result<Vec<Answer>, EngineError>),
    /// The next batch may be started; the answers are there when this resolves.
    Pending(Pending),
}

/// What waits for a batch to be durable.
pub(crate) type Pending = Pin<Box<dyn Future<Output = Result<Vec<Answer>, EngineError>> + Send>>;

/// Which moment a batch happens at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// The engine's own clock, as in service.
    Clock,
    /// This moment, as in tests. Must not go back.
    At(Time),
}

/// What a command is answered.
pub type Answer = Result<Outcome, Refusal>;

/// Part of a list, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in order. May be fewer than asked even if more follow: a page is a bounded pass.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<String>,
}

/// Which holds to list. All given conditions must apply.
#[derive(Debug, Clone, Default)]
pub struct HoldFilter {
    /// Of this order.
    pub order_id: Option<OrderId>,
    /// With a line of this SKU, now or once.
    pub sku: Option<Sku>,
    /// With this status as of now.
    pub status: Option<HoldStatus>,
    /// The cursor of an earlier page.
    pub after: Option<String>,
}

/// Which ledger entries to list. All given conditions must apply.
#[derive(Debug, Clone, Default)]
pub struct LedgerFilter {
    /// Moving units of this SKU.
    pub sku: Option<Sku>,
    /// Concerning this order.
    pub order_id: Option<OrderId>,
    /// Numbered above this.
    pub after: u64,
}

/// A ledger entry with its number. Numbers grow; a later entry has a higher one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedEntry {
    /// Its number, from 1.
    pub seq: u64,
    /// The movement.
    pub entry: Entry,
}

/// An order with the payment that pays for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderView {
    /// The order.
    pub order: Order,
    /// Its payment, once one is known.
    pub payment: Option<Payment>,
}

/// A text that the service keeps in the engine's store. Written by comparing and setting, so that of two nodes that
/// want to write it, one does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Counts every writing of it, from 1.
    pub version: u64,
    /// What it says, up to 64 KiB.
    pub text: String,
}

/// Where two counts of the same thing differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Which SKU.
    pub sku: String,
    /// Which counter: `available`, `held` or `sold` against the ledger; `held_by_holds`, `sold_by_orders` against records.
    pub field: &'static str,
    /// What the ledger (or the records) say.
    pub expected: i64,
    /// What the counter says.
    pub actual: i64,
}

/// What an audit found, at one consistent cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditReport {
    /// When.
    pub at: Time,
    /// SKUs compared.
    pub skus: u64,
    /// Ledger entries folded.
    pub entries: u64,
    /// Every difference found.
    pub drift: Vec<Drift>,
}

/// Whether the engine can serve, and what a metric wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `None` when it can; else the reason, fit for a stranger's eyes. Begins with `auditing` where that is all there is.
    pub problem: Option<String>,
    /// Holds that claim units, or did until they lapsed.
    pub holds: u64,
    /// SKUs known.
    pub skus: u64,
    /// How far the wall clock is from the engine's clock, in milliseconds.
    pub clock_offset_ms: i64,
    /// Batches decided again since the start because of what another node did: deadlocks, rows changed meanwhile.
    pub retries: u64,
    /// Partitions of the hot store that do not serve, because they are compared with the ledger.
    pub auditing: u64,
    /// Entries that the hot store has logged and its ledger does not have yet.
    pub backlog: u64,
    /// Logged facts that could not be written down and wait for a person.
    pub parked: u64,
}

/// Where stock and holds live.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Applies the commands in order, in one atomic and durable step. The ids of new holds are the engine's choice.
    ///
    /// # Errors
    /// See [`EngineError`] for what may be believed afterwards. A refusal is an answer, not an error.
    async fn apply(&self, batch: Vec<Command>, now: Now) -> Result<Vec<Answer>, EngineError>;

    /// Starts a batch. An engine that can make one batch durable while it decides the next returns in between.
    fn start(self: Arc<Self>, batch: Vec<Command>, now: Now) -> Applied {
        Applied::Pending(Box::pin(async move { self.apply(batch, now).await }))
    }

    /// Whether `start` decides on the spot, blocks its thread meanwhile, and wants one of its own.
    fn is_blocking(&self) -> bool;

    /// How many lanes requests wait in: where one kind of command is slow, it does not stand in another's way.
    fn lanes(&self) -> usize {
        1
    }

    /// The lane of a command, below [`Engine::lanes`].
    fn lane_of(&self, _command: &Command) -> usize {
        0
    }

    /// Finishes what goes on beside the requests, before a stop. Nothing is lost without it.
    ///
    /// # Errors
    /// When it cannot be finished now.
    async fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// The counters of one SKU as of now.
    async fn stock(&self, sku: &Sku) -> Result<Option<Stock>, EngineError>;

    /// SKUs in byte order, after the given one.
    async fn stocks(&self, after: Option<&Sku>, limit: usize) -> Result<Page<Stock>, EngineError>;

    /// One hold as recorded.
    async fn hold(&self, id: HoldId) -> Result<Option<Hold>, EngineError>;

    /// Holds in the order in which they were made.
    async fn holds(&self, filter: HoldFilter, limit: usize) -> Result<Page<Hold>, EngineError>;

    /// Whether the filter's cursor may be one of this engine's; anything is, where none is given.
    fn knows_cursor(&self, filter: &HoldFilter) -> bool {
        filter.after.as_deref().is_none_or(|after| after.parse::<u64>().is_ok())
    }

    /// One order.
    async fn order(&self, id: &OrderId) -> Result<Option<OrderView>, EngineError>;

    /// Ledger entries by number.
    async fn ledger(&self, filter: LedgerFilter, limit: usize) -> Result<Page<NumberedEntry>, EngineError>;

    /// Payments in the order in which they were received, by status name if given.
    async fn payments(&self, status: Option<String>, after: u64, limit: usize) -> Result<Page<Payment>, EngineError>;

    /// Refunds and voids in the order in which they became due, by state name if given.
    async fn refunds(&self, state: Option<String>, after: u64, limit: usize) -> Result<Page<Job>, EngineError>;

    /// A payment with its jobs.
    async fn payment(&self, key: &PaymentKey) -> Result<Option<(Payment, Vec<Job>)>, EngineError>;

    /// What is to be done at a provider by this moment: jobs with state due or requested that nobody is at, what has waited
    /// longest first.
    async fn due_jobs(&self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, EngineError>;

    /// A note, by its name of up to 255 bytes.
    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError>;

    /// Notes whose names begin so, after the given name, in byte order.
    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError>;

    /// Writes a note durably, if it has this version; 0: if there is none. No text removes it. `false`: somebody else
    /// was first, and nothing was written.
    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError>;

    /// Compares counters with the ledger, the holds and the orders.
    async fn audit(&self) -> Result<AuditReport, EngineError>;

    /// Whether it can serve.
    async fn health(&self) -> Health;

    /// The engine's clock.
    fn time(&self) -> Time;
}

/// Which names come after the given one and begin so: those after the first and before the second of these.
pub(crate) fn note_range(prefix: &str, after: Option<&str>) -> (String, String) {
    let after = after.filter(|after| *after >= prefix).unwrap_or(prefix);
    // Names are text, and no text has this byte sequence but at its end.
    (after.to_owned(), format!("{prefix}\u{10ffff}"))
}
