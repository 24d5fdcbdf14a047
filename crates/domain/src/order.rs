//! An order: a hold that was confirmed.

use crate::{CustomerId, Hold, HoldId, Money, OrderId, PaymentKey, Sku, Time};

/// One SKU of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderLine {
    /// Which SKU.
    pub sku: Sku,
    /// Units bought.
    pub quantity: u64,
    /// Units of those given back since; at most `quantity`.
    pub returned: u64,
}

impl OrderLine {
    /// Units still with the customer.
    pub fn kept(&self) -> u64 {
        self.quantity - self.returned
    }
}

/// How an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderStatus {
    /// The units are sold.
    Confirmed,
    /// Its payment was given back in full.
    Refunded,
    /// Its payment was only authorised and could not be captured; the units were given back.
    CaptureFailed,
    /// Every unit was returned.
    Returned,
}

impl OrderStatus {
    /// The glossary's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refunded => "refunded",
            Self::CaptureFailed => "capture_failed",
            Self::Returned => "returned",
        }
    }

    /// Reads the glossary's word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Confirmed, Self::Refunded, Self::CaptureFailed, Self::Returned].into_iter().find(|s| s.as_str() == text)
    }
}

/// A hold that was confirmed, identified by the merchant's `order_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The merchant's id.
    pub order_id: OrderId,
    /// The hold it came from.
    pub hold_id: HoldId,
    /// What was bought and what came back.
    pub lines: Vec<OrderLine>,
    /// Confirmed after the hold had lapsed.
    pub late: bool,
    /// Who bought, when told.
    pub customer_id: Option<CustomerId>,
    /// What was to be paid, when told.
    pub money: Money,
    /// The payment that pays for it, once one is known.
    pub payment: Option<PaymentKey>,
    /// When it was confirmed.
    pub confirmed_at: Time,
    /// How it stands.
    pub status: OrderStatus,
}

impl Order {
    /// The order that confirming `hold` makes.
    pub(crate) fn of(hold: &Hold, now: Time) -> Self {
        Self {
            order_id: hold.order_id.clone(),
            hold_id: hold.id,
            lines: hold
                .lines
                .iter()
                .map(|l| OrderLine { sku: l.sku.clone(), quantity: l.quantity.get(), returned: 0 })
                .collect(),
            late: hold.late,
            customer_id: hold.customer_id.clone(),
            money: hold.money,
            payment: None,
            confirmed_at: now,
            status: OrderStatus::Confirmed,
        }
    }
}

/// What an engine knows of one order id besides its live hold: loaded before a command that touches the order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderFile {
    /// The order, when one of its holds was confirmed.
    pub order: Option<Order>,
    /// Payments that arrived before any hold did, oldest first.
    pub waiting: Vec<PaymentKey>,
}
