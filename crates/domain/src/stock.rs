//! The counters of one SKU and the only functions that move units between them.
//!
//! `total = available + held + sold`, each at least 0, holds before and after every function here. A function that
//! cannot keep it returns `None` and changes nothing.

use crate::{MAX_TOTAL, Sku};

/// The counters of one SKU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// Which SKU.
    pub sku: Sku,
    /// Units that anybody may hold.
    pub available: u64,
    /// Units claimed by holds.
    pub held: u64,
    /// Units that belong to orders.
    pub sold: u64,
    /// How many units of this SKU one customer may have held and bought together.
    pub limit_per_customer: Option<u64>,
    /// Counts the changes of total and limit, not those of holds. Starts at 1.
    pub version: u64,
}

impl Stock {
    /// A SKU nobody has touched yet.
    pub fn new(sku: Sku, total: u64, limit_per_customer: Option<u64>) -> Self {
        Self { sku, available: total, held: 0, sold: 0, limit_per_customer, version: 1 }
    }

    /// Units in all.
    pub fn total(&self) -> u64 {
        self.available + self.held + self.sold
    }

    /// Whether the sum is in range; the parts cannot be negative by their type.
    pub fn is_sound(&self) -> bool {
        self.available
            .checked_add(self.held)
            .and_then(|s| s.checked_add(self.sold))
            .is_some_and(|total| total <= MAX_TOTAL)
    }

    /// available → held.
    pub(crate) fn hold(&mut self, units: u64) -> Option<()> {
        self.available = self.available.checked_sub(units)?;
        self.held += units;
        Some(())
    }

    /// held → available.
    pub(crate) fn give_back(&mut self, units: u64) -> Option<()> {
        self.held = self.held.checked_sub(units)?;
        self.available += units;
        Some(())
    }

    /// held → sold.
    pub(crate) fn sell(&mut self, units: u64) -> Option<()> {
        self.held = self.held.checked_sub(units)?;
        self.sold += units;
        Some(())
    }

    /// available → sold, for a confirmation after the hold had lapsed.
    pub(crate) fn sell_late(&mut self, units: u64) -> Option<()> {
        self.available = self.available.checked_sub(units)?;
        self.sold += units;
        Some(())
    }

    /// sold → available.
    pub(crate) fn take_back(&mut self, units: u64) -> Option<()> {
        self.sold = self.sold.checked_sub(units)?;
        self.available += units;
        Some(())
    }
}
