//! What one transaction knows: the part of the inventory that was handed in, and how the rows were before.

use crate::sql::leased::{Desk, Taken};
use crate::sql::store::{Kept, Loose};
use hashbrown::{HashMap, HashSet};
use holdfast_domain::{
    Hold, HoldId, HoldStatus, Inventory, Payment, PaymentKey, PaymentStatus, Policy, Sku, Stock, Time,
};
use std::sync::Arc;

pub(super) struct Part {
    pub(super) inventory: Inventory,
    /// The moment of the batch, once the database was asked.
    pub(super) now: Option<Time>,
    /// Each SKU's revision as it was read.
    pub(super) revisions: HashMap<Sku, i64>,
    /// Units in rows of their own, of the SKUs that have some.
    pub(super) loose: HashMap<Sku, Loose>,
    /// Each hold as it was read.
    pub(super) before: HashMap<HoldId, Hold>,
    /// Where to take a lease before SKUs are read.
    pub(super) desk: Option<Arc<Desk>>,
    /// The lease on the SKUs that were known to be touched before anything was read; given back with this.
    pub(super) lease: Option<Taken>,
    /// Only where another store decides what lapses.
    pub(super) follows: Option<Follows>,
}

/// What differs when holds are decided, and expired, by another store: nothing is looked up because it may have lapsed.
#[derive(Default)]
pub(super) struct Follows {
    /// The SKUs as they were read.
    pub(super) stocks: HashMap<Sku, Stock>,
    /// Payments that the sweep may look at.
    pub(super) stale: Vec<PaymentKey>,
    /// Payments that waited for a hold when they were read.
    pub(super) waiting: HashSet<PaymentKey>,
}

impl Part {
    pub(super) fn new(policy: Policy, hash_seed: u64) -> Self {
        Self {
            inventory: Inventory::part(policy, hash_seed),
            now: None,
            revisions: HashMap::new(),
            loose: HashMap::new(),
            before: HashMap::new(),
            desk: None,
            lease: None,
            follows: None,
        }
    }

    /// Hands in a SKU. `loose`: its units in rows of their own, if any were carved; those whose row is gone are held.
    pub(super) fn put_stock(&mut self, mut kept: Kept, loose: Option<Loose>) {
        let left = loose.as_ref().map_or(0, |loose| loose.rows);
        let claimed = kept.carved.saturating_sub(left);
        kept.stock.available = kept.stock.available.saturating_sub(claimed);
        kept.stock.held += claimed;
        if let Some(loose) = loose {
            self.loose.insert(kept.stock.sku.clone(), loose);
        }
        if self.inventory.stock_change(&kept.stock.sku).is_none() {
            self.revisions.insert(kept.stock.sku.clone(), kept.revision);
            if let Some(follows) = &mut self.follows {
                follows.stocks.insert(kept.stock.sku.clone(), kept.stock.clone());
            }
            self.inventory.put_stock(kept.stock);
        }
    }

    /// Hands in a hold whose SKUs were handed in before.
    pub(super) fn put_hold(&mut self, hold: Hold) {
        if self.inventory.find_hold(hold.id).is_some() {
            return;
        }
        self.before.insert(hold.id, hold.clone());
        self.inventory.put_hold(hold);
    }

    /// Notes a payment before it is handed in.
    pub(super) fn note_payment(&mut self, payment: &Payment) {
        if let Some(follows) = &mut self.follows
            && matches!(payment.status, PaymentStatus::Unmatched | PaymentStatus::NeedsAttention)
        {
            follows.waiting.insert(payment.key.clone());
        }
    }

    /// Ids of the holds handed in that claimed units of this SKU, or of any, and had lapsed by now.
    pub(super) fn lapsed(&self, sku: Option<&Sku>, now: Time) -> Vec<HoldId> {
        let has = |hold: &&Hold| sku.is_none_or(|sku| hold.lines.quantity_of(sku) > 0);
        let lapsed = |hold: &&Hold| hold.status == HoldStatus::Held && !hold.is_live(now);
        self.before.values().filter(lapsed).filter(has).map(|hold| hold.id).collect()
    }
}
