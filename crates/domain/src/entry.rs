//! Ledger entries: the append-only record of every movement. Folding them gives the counters.

use crate::{HoldId, OrderId, Sku, Time};
use std::collections::BTreeMap;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// What an entry records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EntryKind { $($(#[$doc])* $name,)* }

        impl EntryKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

kinds! {
    /// A SKU was created with so many units.
    Received = "received",
    /// The total or the limit of a SKU was changed.
    Adjusted = "adjusted",
    /// A SKU was forgotten.
    Removed = "removed",
    /// Units went from available to held.
    Held = "held",
    /// A live hold's line was changed.
    Changed = "changed",
    /// A live hold's deadline was moved.
    Extended = "extended",
    /// A hold was given back on request.
    Released = "released",
    /// A hold was given back because it had lapsed.
    Expired = "expired",
    /// Units went from held to sold.
    Confirmed = "confirmed",
    /// Units went from available to sold: the hold had lapsed.
    ConfirmedLate = "confirmed_late",
    /// Units went from sold to available.
    Returned = "returned",
    /// Money was authorised.
    PaymentAuthorized = "payment_authorized",
    /// Money was captured.
    PaymentCaptured = "payment_captured",
    /// An attempt to pay failed.
    PaymentFailed = "payment_failed",
    /// A payment was canceled.
    PaymentCanceled = "payment_canceled",
    /// Money was given back at the provider.
    PaymentRefunded = "payment_refunded",
    /// Captured money did not come after all.
    PaymentCaptureFailed = "payment_capture_failed",
    /// A refund did not reach the shopper.
    PaymentRefundFailed = "payment_refund_failed",
    /// A payment's money is disputed.
    PaymentDisputed = "payment_disputed",
    /// A payment waits for its hold to appear.
    PaymentUnmatched = "payment_unmatched",
    /// A person must look at a payment.
    PaymentNeedsAttention = "payment_needs_attention",
    /// Captured money is to be sent back.
    RefundDue = "refund_due",
    /// An authorisation is to be voided.
    VoidDue = "void_due",
    /// An authorisation is to be captured.
    CaptureDue = "capture_due",
    /// The provider is being asked for a refund, void or capture.
    RefundRequested = "refund_requested",
    /// A person must look at a refund, void or capture.
    RefundNeedsAttention = "refund_needs_attention",
    /// A refund, void or capture was carried out.
    RefundSucceeded = "refund_succeeded",
}

impl EntryKind {
    /// Reads the stable name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|k| k.as_str() == text)
    }
}

/// The reason of a `changed` entry that gave a hold a line it did not have.
pub const LINE_ADDED: &str = "line added";

/// One movement. The engine numbers entries when it records them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// What.
    pub kind: EntryKind,
    /// Whose units moved; `None` when none did.
    pub sku: Option<Sku>,
    /// Change of available.
    pub available: i64,
    /// Change of held.
    pub held: i64,
    /// Change of sold.
    pub sold: i64,
    /// The hold that it concerns.
    pub hold: Option<HoldId>,
    /// The order that it concerns.
    pub order: Option<OrderId>,
    /// Why, in words for people.
    pub reason: Option<Box<str>>,
}

/// What folding entries gives for one SKU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Sum of the changes of available.
    pub available: i64,
    /// Sum of the changes of held.
    pub held: i64,
    /// Sum of the changes of sold.
    pub sold: i64,
}

/// Sums the movements of each SKU.
pub fn fold<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeMap<Sku, Counters> {
    let mut sums: BTreeMap<Sku, Counters> = BTreeMap::new();
    for entry in entries {
        let Some(sku) = &entry.sku else { continue };
        let sum = sums.entry(sku.clone()).or_default();
        sum.available += entry.available;
        sum.held += entry.held;
        sum.sold += entry.sold;
    }
    sums
}
