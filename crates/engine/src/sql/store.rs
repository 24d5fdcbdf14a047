//! What a database has to be able to do. Everything above it is told once for all of them.

use super::fault::Fault;
use super::hot_store::HotTx;
use super::writes::Writes;
use crate::NumberedEntry;
use crate::audit::{Cut, Fold};
use crate::moving::{Counts, Phase};
use async_trait::async_trait;
use holdfast_domain::{CustomerId, Hold, HoldId, Job, Order, OrderId, Payment, PaymentKey, Ref, Sku, Stock, Time};

/// How a transaction looks at the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each statement sees what is committed by then; what is read for changing is locked.
    Locking,
    /// The same, but SKUs are not locked before they are written.
    SkusUnlocked,
    /// One snapshot, and no writing.
    ReadOnly,
    /// The same for reads that look at whole tables, with the patience that this takes.
    Audit,
}

/// How many times longer than others an audit's statements may take.
pub(crate) const AUDIT_PATIENCE: u32 = 60;

/// A database that engines share.
#[async_trait]
pub(crate) trait Store: Send + Sync + 'static {
    type Tx: HotTx;

    /// Begins a transaction on a connection of its own.
    async fn begin(&self, mode: Mode) -> Result<Self::Tx, Fault>;
}

/// What the database says besides the rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    /// Its clock.
    pub(crate) now: Time,
    /// The latest moment that anything was recorded at.
    pub(crate) last_time: Time,
    /// Holds that claim units, or did until they lapsed.
    pub(crate) holds: u64,
    /// SKUs known.
    pub(crate) skus: u64,
    /// A move into the database has begun and is not done.
    pub(crate) is_moving: bool,
}

impl Told {
    /// Refuses to work with half a store.
    pub(crate) fn whole(self) -> Result<Self, Fault> {
        if self.is_moving {
            Err(Fault::Unavailable("the database is half-filled by `holdfast migrate`; run it again to finish".into()))
        } else {
            Ok(self)
        }
    }
}

/// How far a move into the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Which move.
    pub(crate) token: i64,
    /// Where the rows come from, for people.
    pub(crate) source: String,
    pub(crate) phase: Phase,
    /// The cursor after which the next page begins.
    pub(crate) last: String,
    pub(crate) is_done: bool,
}

/// What a batch asks for at once. SKUs come sorted: they are locked in this order.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) stocks: Vec<Sku>,
    pub(crate) holds: Vec<HoldId>,
    pub(crate) orders: Vec<OrderId>,
    pub(crate) latest: Vec<OrderId>,
    pub(crate) bought: Vec<(CustomerId, Sku)>,
    pub(crate) payments: Vec<PaymentKey>,
    pub(crate) events: Vec<(Ref, Ref)>,
    pub(crate) receipts: Vec<Ref>,
}

/// A SKU's row.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) stock: Stock,
    /// Counts every writing of the row.
    pub(crate) revision: i64,
    /// Units of `available` that were put into rows of their own; those whose row is gone by now are held.
    pub(crate) carved: u64,
}

/// A SKU's units in rows of their own, all of them locked.
#[derive(Debug, Clone)]
pub(crate) struct Loose {
    pub(crate) sku: Sku,
    /// How many there are.
    pub(crate) rows: u64,
    /// The greatest number among them.
    pub(crate) last: i64,
}

/// What was found of it.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) stocks: Vec<Kept>,
    /// Holds by id, those that claim units for the orders, and those that claim units for the customers.
    pub(crate) holds: Vec<Hold>,
    pub(crate) orders: Vec<Order>,
    pub(crate) waiting: Vec<(OrderId, PaymentKey)>,
    pub(crate) latest: Vec<(OrderId, HoldId)>,
    pub(crate) bought: Vec<(CustomerId, Sku, i64)>,
    pub(crate) payments: Vec<Payment>,
    /// Of the payments found.
    pub(crate) jobs: Vec<Job>,
    pub(crate) events: Vec<(Ref, Ref)>,
    pub(crate) receipts: Vec<(Ref, Box<str>)>,
}

/// One transaction. Dropping it undoes it and gives up its connection.
#[async_trait]
pub(crate) trait Tx: Send {
    /// The clock and the totals, not locked.
    async fn told(&mut self) -> Result<Told, Fault>;

    /// The SKUs that these holds, and the holds of these orders, have lines of. Nothing is locked: only to know what to
    /// lock.
    async fn peek(&mut self, holds: &[HoldId], orders: &[OrderId]) -> Result<Vec<Sku>, Fault>;

    /// Everything asked for; the SKUs first, in order, and the clock after them.
    async fn look_up(&mut self, asked: &Asked) -> Result<(Told, Found), Fault>;

    /// Takes so many units of each SKU that stand in rows of their own, passing over those that others are taking.
    /// `false`: there were not enough, and the transaction is good for nothing but undoing.
    async fn claim(&mut self, asked: &[(Sku, u64)]) -> Result<bool, Fault>;

    /// Locks what is left of the rows of their units, waiting for those that others are taking.
    async fn lock_units(&mut self, skus: &[Sku]) -> Result<Vec<Loose>, Fault>;

    /// Which of the SKUs have holds that have lapsed by now.
    async fn with_lapsed(&mut self, skus: &[Sku], now: Time) -> Result<Vec<Sku>, Fault>;

    /// The first lapsed holds on a SKU, without those known already.
    async fn lapsed(&mut self, sku: &Sku, now: Time, known: &[HoldId], limit: usize) -> Result<Vec<Hold>, Fault>;

    /// Units of a SKU that lapsed holds claim, without those known already.
    async fn lapsed_units(&mut self, sku: &Sku, now: Time, known: &[HoldId]) -> Result<u64, Fault>;

    /// Claims of lapsed holds on any SKU: by deadline, SKU and id, without those known already.
    async fn due(&mut self, now: Time, known: &[HoldId], limit: usize) -> Result<Vec<HoldId>, Fault>;

    /// Unmatched payments: those whose order has a hold by now, and those received before this moment; some of each.
    async fn stale(&mut self, received_before: Time) -> Result<Vec<PaymentKey>, Fault>;

    /// Writes what a batch changed.
    async fn write(&mut self, writes: &Writes<'_>) -> Result<(), Fault>;

    async fn commit(self) -> Result<(), Fault>;

    /// Undoes it and gives the connection back for further use.
    async fn roll_back(self);

    /// A SKU's counters as of a moment.
    async fn stock(&mut self, sku: &Sku, now: Time) -> Result<Option<Stock>, Fault>;

    /// SKUs after the given one, in byte order, as of a moment.
    async fn stocks(&mut self, after: Option<&Sku>, now: Time, limit: usize) -> Result<Vec<Stock>, Fault>;

    async fn hold(&mut self, id: HoldId) -> Result<Option<Hold>, Fault>;

    /// Every hold of an order, in the order in which they were made.
    async fn holds_of_order(&mut self, order: &OrderId) -> Result<Vec<Hold>, Fault>;

    /// Holds after the given one, in the order in which they were made.
    async fn holds_after(&mut self, after: HoldId, limit: usize) -> Result<Vec<Hold>, Fault>;

    /// Holds that get a line of this SKU by an entry numbered above this, with the entry's number, in that order.
    async fn holds_of_sku(&mut self, sku: &Sku, after: i64, limit: usize) -> Result<Vec<(i64, Hold)>, Fault>;

    async fn order(&mut self, id: &OrderId) -> Result<Option<Order>, Fault>;

    async fn payment(&mut self, key: &PaymentKey) -> Result<Option<Payment>, Fault>;

    async fn entries(
        &mut self,
        sku: Option<&Sku>,
        order: Option<&OrderId>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<NumberedEntry>, Fault>;

    /// Payments numbered above this, with their numbers.
    async fn payments(&mut self, status: Option<&str>, after: i64, limit: usize) -> Result<Vec<(i64, Payment)>, Fault>;

    /// Refunds and voids numbered above this, with their numbers.
    async fn refunds(&mut self, state: Option<&str>, after: i64, limit: usize) -> Result<Vec<(i64, Job)>, Fault>;

    /// What an audit compares, but for the ledger.
    async fn cut(&mut self) -> Result<Cut, Fault>;

    /// Folds the entries above `fold.upto` up to and including this one.
    async fn fold(&mut self, fold: &mut Fold, upto: i64) -> Result<(), Fault>;

    /// How far the move into the database is, if there ever was one.
    async fn moved(&mut self) -> Result<Option<Moved>, Fault>;

    /// Notes how far the move is. `before`: how far it was; nothing if it begins now, from which moment on nobody else
    /// can write entries, until it is done. A fault if somebody else has noted otherwise meanwhile.
    async fn note_move(&mut self, before: Option<&Moved>, now: &Moved) -> Result<(), Fault>;

    /// Counts the rows of every table.
    async fn counts(&mut self) -> Result<Counts, Fault>;
}
