//! What the rules refuse, each with one stable code. Infrastructure failures are not refusals.

use crate::{JobState, Sku};

/// One short SKU of a cart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// Which SKU.
    pub sku: Sku,
    /// Units asked.
    pub requested: u64,
    /// Units that were there.
    pub available: u64,
}

/// Why the rules said no. Listed in the order in which they are looked for: the first that applies is the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No such SKU, hold or order.
    NotFound,
    /// The idempotency key was used before for something else.
    KeyReused,
    /// The SKU's version is not the expected one; carries the actual one, if the SKU exists.
    VersionMismatch(Option<u64>),
    /// The order is confirmed already.
    AlreadyConfirmed,
    /// The order has a live hold for another cart.
    OrderConflict,
    /// The hold has lapsed or was released.
    HoldExpired,
    /// The hold would outlive its greatest lifetime.
    ExtensionLimit,
    /// These SKUs do not exist.
    UnknownSku(Vec<Sku>),
    /// These SKUs are limited per customer, and no customer was told.
    CustomerRequired(Vec<Sku>),
    /// The customer would have more of a SKU than its limit allows.
    CustomerLimit {
        /// Which SKU.
        sku: Sku,
        /// Its limit per customer.
        limit: u64,
        /// What the customer has, held and bought, besides what is asked.
        has: u64,
        /// Units asked.
        requested: u64,
    },
    /// At least one line is short; nothing was held.
    SoldOut {
        /// Every short SKU.
        items: Vec<Short>,
        /// Whether units may come back: somebody else holds some of every short SKU.
        may_return: bool,
    },
    /// The hold had lapsed and its units cannot be taken again; carries the short SKUs.
    StockGone(Vec<Short>),
    /// The job is not for taking or retrying now; carries how far it is.
    JobNotDue(JobState),
    /// More units than were bought and not yet returned.
    ReturnExceedsOrder(Sku),
    /// The asked total is below what is held and sold; carries that sum.
    TotalBelowCommitted(u64),
    /// The change would take more than is available; carries what is.
    InsufficientAvailable(u64),
    /// The total would be above the greatest one.
    TotalTooLarge,
    /// Units of the SKU are held or sold.
    StockInUse {
        /// Units held.
        held: u64,
        /// Units sold.
        sold: u64,
    },
}

impl Refusal {
    /// The stable snake_case name.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::KeyReused => "idempotency_key_reused",
            Self::VersionMismatch(_) => "version_mismatch",
            Self::AlreadyConfirmed => "already_confirmed",
            Self::OrderConflict => "order_conflict",
            Self::HoldExpired => "hold_expired",
            Self::ExtensionLimit => "extension_limit",
            Self::UnknownSku(_) => "unknown_sku",
            Self::CustomerRequired(_) => "customer_required",
            Self::CustomerLimit { .. } => "customer_limit",
            Self::SoldOut { .. } => "sold_out",
            Self::StockGone(_) => "stock_gone",
            Self::JobNotDue(_) => "job_not_due",
            Self::ReturnExceedsOrder(_) => "return_exceeds_order",
            Self::TotalBelowCommitted(_) => "total_below_committed",
            Self::InsufficientAvailable(_) => "insufficient_available",
            Self::TotalTooLarge => "total_too_large",
            Self::StockInUse { .. } => "stock_in_use",
        }
    }
}
