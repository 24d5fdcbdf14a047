//! Everything that can be answered, when the rules say yes.

use crate::{Hold, Job, JobKind, JobReason, Order, Stock};

/// The answer to a command that was not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The SKU as it is now.
    Stock {
        /// Its counters.
        stock: Stock,
        /// It was created by this command.
        created: bool,
        /// Something about it changed.
        changed: bool,
    },
    /// The SKU was forgotten.
    Removed,
    /// The hold; `replay` when it was there already and nothing changed.
    Held {
        /// The hold as it is now.
        hold: Hold,
        /// The same request was answered before.
        replay: bool,
    },
    /// The hold after a change, an extension or a release.
    Hold(Hold),
    /// The order, after a confirmation or a return.
    Order(Order),
    /// What a payment did.
    Settled(Settlement),
    /// The job after a report.
    Job(Job),
    /// It was written down.
    Recorded,
    /// What a janitor's pass did.
    Swept {
        /// Holds expired.
        expired: u32,
        /// More have lapsed than the limit allowed.
        more: bool,
    },
}

/// What a payment did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Known already; nothing changed.
    Duplicate,
    /// No order was named: not ours.
    Ignored,
    /// Written down; nothing follows from it.
    Recorded,
    /// Its order is unknown so far.
    Unmatched,
    /// The order is confirmed by it; late when the hold had lapsed.
    Confirmed(Order),
    /// An order that was confirmed without a payment now has one.
    Attached(Order),
    /// The money is to go back.
    Reversal {
        /// Refund or void.
        kind: JobKind,
        /// Why.
        reason: JobReason,
    },
    /// Its order ended as refunded.
    OrderRefunded(Order),
    /// Its order ended because it could not be captured.
    CaptureFailed(Order),
}
