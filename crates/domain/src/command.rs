//! Everything that can be asked.

use crate::{CustomerId, Hold, HoldId, JobReport, Lines, Money, OrderId, PaymentFact, Ref, Sku, Time, Total, Ttl};

/// One request to the inventory. TTLs are intervals; fresh ids come with the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Create a SKU, or move `available` so that its total is as asked.
    SetStock(SetStock),
    /// Add to (or take from) what is available.
    AdjustStock {
        /// Which SKU.
        sku: Sku,
        /// Units to add; negative takes.
        delta: i64,
        /// Why, for the ledger.
        reason: Option<Box<str>>,
        /// With a key, the second of two same requests changes nothing.
        key: Option<Ref>,
        /// Create the SKU when it is unknown and the delta is not negative (an import that adds).
        create: bool,
    },
    /// Forget a SKU of which nothing is held or sold.
    RemoveStock {
        /// Which SKU.
        sku: Sku,
        /// Only at this version.
        if_version: Option<u64>,
    },
    /// Claim units for a cart.
    Hold(Box<HoldRequest>),
    /// Change a live hold; all or nothing on the difference.
    Change {
        /// Which hold.
        hold: HoldId,
        /// The new lines, if they change.
        lines: Option<Lines>,
        /// The new amount, if it changes.
        amount: Option<u64>,
        /// The provider's object, if it changes.
        payment_ref: Option<Box<str>>,
    },
    /// Move a live hold's deadline to at least now + ttl.
    Extend {
        /// Which hold.
        hold: HoldId,
        /// From now on.
        ttl: Ttl,
    },
    /// Give a hold's units back.
    Release {
        /// Which hold.
        hold: HoldId,
    },
    /// Turn a hold into an order.
    Confirm {
        /// Which hold.
        hold: HoldId,
        /// The provider's object, if told.
        payment_ref: Option<Box<str>>,
    },
    /// Take back some of an order's units.
    Return {
        /// Which order.
        order: OrderId,
        /// What came back.
        lines: Lines,
        /// With a key, the second of two same requests changes nothing.
        key: Option<Ref>,
    },
    /// Decide what a payment does.
    Settle(Box<PaymentFact>),
    /// Note what became of something that is owed at the provider.
    Job(Box<JobReport>),
    /// One bounded pass of the janitor: expire lapsed holds, oldest deadline first, and look at payments that wait.
    Sweep {
        /// At most so many holds.
        limit: u32,
    },
    /// Write down what another store has decided. An engine's word, never a client's.
    Record(Box<Record>),
}

/// See [`Command::Record`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When it was decided.
    pub at: Time,
    /// What.
    pub what: Recorded,
    /// Records of the same order may come in another order than they happened in.
    pub is_loose: bool,
}

/// What a store that decides by the same rules has decided on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// A hold was made.
    Held(Box<Hold>),
    /// A hold had lapsed and was expired.
    Expired(HoldId),
    /// A payment may wait for this hold: settle it, as in the step that makes a hold.
    Waiting(HoldId),
}

/// See [`Command::SetStock`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetStock {
    /// Which SKU.
    pub sku: Sku,
    /// Units in all.
    pub total: Total,
    /// `None` leaves the limit as it is; `Some(None)` removes it.
    pub limit_per_customer: Option<Option<u64>>,
    /// Only at this version.
    pub if_version: Option<u64>,
}

/// See [`Command::Hold`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRequest {
    /// The id of the hold, should one be made.
    pub id: HoldId,
    /// The merchant's order.
    pub order_id: OrderId,
    /// The cart.
    pub lines: Lines,
    /// How long.
    pub ttl: Ttl,
    /// Who asks, if told.
    pub customer_id: Option<CustomerId>,
    /// What is to be paid, if told.
    pub money: Money,
    /// The provider's object, if told.
    pub payment_ref: Option<Box<str>>,
    /// The merchant's notes, opaque.
    pub metadata: Option<Box<str>>,
}
