//! Moving a whole store into an empty database: what is moved, in which order, and how far it is.
//!
//! A page of rows is written in one transaction together with the place where the next one begins, so a move that ends
//! at any moment goes on where it was. Nothing here knows an engine's tables: a [`Source`] tells its rows as values of
//! the domain, and what takes them in is told once for every database.

use crate::embedded::{Export, Failure};
use crate::{AuditReport, Database, EngineError, OpenError, SqlConfig};
use holdfast_domain::{CustomerId, Entry, Hold, Job, Order, Payment, Ref, Sku, Stock};
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Rows written by one transaction.
pub(crate) const PAGE: usize = 2_000;
/// How long one statement of a move may take at the least: counting and auditing at the end reads whole tables.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// What is moved, in this order: an order refers to its hold, and the ledger says at the end that all is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Stocks,
    Holds,
    Orders,
    Payments,
    Jobs,
    Events,
    Receipts,
    Purchases,
    Notes,
    Ledger,
    /// Everything is there and is compared.
    Check,
}

impl Phase {
    const ALL: [Self; 11] = [
        Self::Stocks,
        Self::Holds,
        Self::Orders,
        Self::Payments,
        Self::Jobs,
        Self::Events,
        Self::Receipts,
        Self::Purchases,
        Self::Notes,
        Self::Ledger,
        Self::Check,
    ];

    /// Its name, as stored and as shown.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stocks => "SKUs",
            Self::Holds => "holds",
            Self::Orders => "orders",
            Self::Payments => "payments",
            Self::Jobs => "refunds",
            Self::Events => "events",
            Self::Receipts => "keys",
            Self::Purchases => "purchases",
            Self::Notes => "notes",
            Self::Ledger => "ledger",
            Self::Check => "check",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == text)
    }

    /// What comes after it; the last is followed by itself.
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Stocks => Self::Holds,
            Self::Holds => Self::Orders,
            Self::Orders => Self::Payments,
            Self::Payments => Self::Jobs,
            Self::Jobs => Self::Events,
            Self::Events => Self::Receipts,
            Self::Receipts => Self::Purchases,
            Self::Purchases => Self::Notes,
            Self::Notes => Self::Ledger,
            Self::Ledger | Self::Check => Self::Check,
        }
    }
}

/// Rows of one kind.
pub(crate) enum Rows {
    Stocks(Vec<Stock>),
    Holds(Vec<Hold>),
    Orders(Vec<Order>),
    Payments(Vec<Payment>),
    Jobs(Vec<Job>),
    Events(Vec<(Ref, Ref)>),
    Receipts(Vec<(Ref, Box<str>)>),
    Purchases(Vec<(CustomerId, Sku, i64)>),
    /// Name and text.
    Notes(Vec<(String, String)>),
    /// Numbered without a gap from the one after the cursor on.
    Entries(Vec<Entry>),
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Stocks(rows) => rows.len(),
            Self::Holds(rows) => rows.len(),
            Self::Orders(rows) => rows.len(),
            Self::Payments(rows) => rows.len(),
            Self::Jobs(rows) => rows.len(),
            Self::Events(rows) => rows.len(),
            Self::Receipts(rows) => rows.len(),
            Self::Purchases(rows) => rows.len(),
            Self::Notes(rows) => rows.len(),
            Self::Entries(rows) => rows.len(),
        }
    }
}

/// How many rows there are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// SKUs.
    pub skus: u64,
    /// Holds that claim units, or did until they lapsed.
    pub live_holds: u64,
    /// Holds, live and settled.
    pub holds: u64,
    /// Orders.
    pub orders: u64,
    /// Payments.
    pub payments: u64,
    /// What is or was owed at the provider: refunds, voids, captures.
    pub jobs: u64,
    /// Events seen.
    pub events: u64,
    /// Idempotency keys used.
    pub receipts: u64,
    /// What customers bought: a row a customer and SKU.
    pub purchases: u64,
    /// Ledger entries.
    pub entries: u64,
    /// Notes that the service keeps.
    pub notes: u64,
}

impl Counts {
    /// All rows. A live hold is counted among the holds.
    pub const fn rows(&self) -> u64 {
        self.skus
            + self.holds
            + self.orders
            + self.payments
            + self.jobs
            + self.events
            + self.receipts
            + self.purchases
            + self.entries
            + self.notes
    }
}

/// What a source remembers of being moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    /// Which move was begun last.
    pub(crate) token: Option<i64>,
    /// Its rows are in a database, all of them: nobody may sell from the source any more.
    pub(crate) is_moved: bool,
}

/// A store at rest that is moved: nobody else writes to it meanwhile.
pub(crate) trait Source: Send + Sync + 'static {
    /// What people call it.
    fn name(&self) -> String;

    fn mark(&self) -> Result<Mark, MoveError>;

    /// Remembers durably that this move has begun, or forgets it. From then on no engine opens the store, since it
    /// would change rows that were moved already.
    fn set_token(&self, token: Option<i64>) -> Result<(), MoveError>;

    /// Remembers durably that everything was moved.
    fn set_moved(&self) -> Result<(), MoveError>;

    /// Counts the rows; an error if the ledger has gaps.
    fn counts(&self) -> Result<Counts, MoveError>;

    fn audit(&self) -> Result<AuditReport, MoveError>;

    /// At most so many rows after the cursor, in order, and the cursor of the last of them. An empty cursor: from the
    /// beginning.
    fn page(&self, phase: Phase, after: &str, limit: usize) -> Result<(Rows, String), MoveError>;
}

/// How far a move is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being moved.
    pub phase: &'static str,
    /// Rows that are in the database.
    pub done: u64,
    /// Rows in all.
    pub rows: u64,
    /// How far this machine's clock is ahead of the database's, in milliseconds; negative when behind. Deadlines are
    /// moved as they are.
    pub clock_offset_ms: i64,
}

/// Is told before each page how far the move is, and may stop it there.
pub type OnProgress<'a> = dyn FnMut(Progress) -> ControlFlow<()> + Send + 'a;

/// What was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Rows by kind.
    pub counts: Counts,
    /// Rows that this run moved; an earlier run may have moved others.
    pub moved: u64,
    /// An earlier run had done everything.
    pub was_done: bool,
}

/// Why a move did not end well. It may be begun again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveError {
    /// Whoever watched it said so.
    Stopped,
    /// In words that name the way out. Never tells the password.
    Told(String),
}

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the move was stopped; run it again to go on"),
            Self::Told(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for MoveError {}

impl From<Failure> for MoveError {
    fn from(failure: Failure) -> Self {
        Self::Told(failure.to_string())
    }
}

impl From<OpenError> for MoveError {
    fn from(error: OpenError) -> Self {
        Self::Told(error.to_string())
    }
}

impl From<EngineError> for MoveError {
    fn from(error: EngineError) -> Self {
        Self::Told(error.to_string())
    }
}

/// Reads from the source, off the threads that must not wait for a disk.
pub(crate) async fn read<T: Send + 'static>(
    source: &Arc<dyn Source>,
    read: impl FnOnce(&dyn Source) -> Result<T, MoveError> + Send + 'static,
) -> Result<T, MoveError> {
    let source = source.clone();
    let task = tokio::task::spawn_blocking(move || read(&*source));
    task.await.map_err(|e| MoveError::Told(e.to_string()))?
}

/// Moves the store in this folder into the database, or goes on with doing so. Nobody may have the folder open, and the
/// database must hold nothing that this move has not put there. Afterwards no engine opens the folder any more.
///
/// # Errors
/// When one of the two is not as it has to be, or cannot be reached. What was moved by then stays, and the same call
/// goes on from there.
pub async fn from_folder(
    folder: &Path,
    database: Database,
    config: &SqlConfig,
    on_progress: &mut OnProgress<'_>,
) -> Result<Report, MoveError> {
    let folder = folder.to_owned();
    let opened = tokio::task::spawn_blocking(move || Export::open(&folder));
    let export = opened.await.map_err(|e| MoveError::Told(e.to_string()))??;
    let config = SqlConfig { timeout: config.timeout.max(PATIENCE), ..config.clone() };
    database.import(&config, Arc::new(export), on_progress).await
}
