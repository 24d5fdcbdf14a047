//! Everything an engine has to tell, read through the seam, and the invariants of ARCHITECTURE.md over it.

use holdfast_engine::domain::{
    EntryKind, Hold, HoldStatus, Job, JobKind, JobState, OrderId, OrderRef, OrderStatus, Payment, PaymentStatus, Sku,
    Stock, fold,
};
use holdfast_engine::{Engine, HoldFilter, LedgerFilter, NumberedEntry, OrderView};
use std::collections::{BTreeMap, BTreeSet};

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Everything {
    pub stocks: Vec<Stock>,
    pub holds: Vec<Hold>,
    pub orders: BTreeMap<OrderId, OrderView>,
    pub ledger: Vec<NumberedEntry>,
    pub payments: Vec<Payment>,
    pub refunds: Vec<Job>,
    pub captures: Vec<Job>,
}

const PAGE: usize = 500;

/// Reads all pages of all lists.
pub async fn everything(engine: &dyn Engine) -> Everything {
    let mut all = Everything {
        stocks: Vec::new(),
        holds: Vec::new(),
        orders: BTreeMap::new(),
        ledger: Vec::new(),
        payments: Vec::new(),
        refunds: Vec::new(),
        captures: Vec::new(),
    };
    loop {
        let after = all.stocks.last().map(|s: &Stock| s.sku.clone());
        let page = engine.stocks(after.as_ref(), PAGE).await.unwrap();
        all.stocks.extend(page.items);
        if page.next.is_none() {
            break;
        }
    }
    let mut filter = HoldFilter::default();
    loop {
        let page = engine.holds(filter.clone(), PAGE).await.unwrap();
        all.holds.extend(page.items);
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    let mut next = Some(0);
    while let Some(after) = next {
        let page = engine.ledger(LedgerFilter { after, ..LedgerFilter::default() }, PAGE).await.unwrap();
        all.ledger.extend(page.items);
        next = page.next.map(|n| n.parse().unwrap());
    }
    let mut next = Some(0);
    while let Some(after) = next {
        let page = engine.payments(None, after, PAGE).await.unwrap();
        all.payments.extend(page.items);
        next = page.next.map(|n| n.parse().unwrap());
    }
    let mut next = Some(0);
    while let Some(after) = next {
        let page = engine.refunds(None, after, PAGE).await.unwrap();
        all.refunds.extend(page.items);
        next = page.next.map(|n| n.parse().unwrap());
    }
    for payment in &all.payments {
        let (found, jobs) = engine.payment(&payment.key).await.unwrap().unwrap();
        assert_eq!(found, *payment);
        all.captures.extend(jobs.into_iter().filter(|job| job.kind == JobKind::Capture));
    }
    let orders: BTreeSet<OrderId> = all.holds.iter().map(|h| h.order_id.clone()).collect();
    for id in orders {
        if let Some(order) = engine.order(&id).await.unwrap() {
            all.orders.insert(id, order);
        }
    }
    all
}

/// Checks every invariant, and that the engine's own audit agrees.
pub async fn check(engine: &dyn Engine) -> Everything {
    let all = everything(engine).await;
    all.check();
    let audit = engine.audit().await.unwrap();
    assert_eq!(audit.drift, [], "the audit found drift");
    assert_eq!(audit.entries, all.ledger.len() as u64, "the audit folded the whole ledger");
    assert_eq!(audit.skus, all.stocks.len() as u64);
    all
}

impl Everything {
    pub fn stock(&self, sku: &Sku) -> Option<&Stock> {
        self.stocks.iter().find(|s| s.sku == *sku)
    }

    fn check(&self) {
        self.check_counters();
        self.check_orders();
        for payment in &self.payments {
            self.check_payment(payment);
        }
    }

    /// Invariants 1 to 3. A reader may count units of lapsed holds as available, so those two are taken together.
    fn check_counters(&self) {
        let sums = fold(self.ledger.iter().map(|n| &n.entry));
        let known: BTreeSet<&Sku> = sums.keys().chain(self.stocks.iter().map(|s| &s.sku)).collect();
        for sku in known {
            let folded = sums.get(sku).copied().unwrap_or_default();
            let claims = self.holds.iter().filter(|h| h.status == HoldStatus::Held).map(|h| h.lines.quantity_of(sku));
            assert_eq!(claims.sum::<u64>() as i64, folded.held, "{sku}: held units are those of the holds");
            let lines = self.orders.values().flat_map(|o| &o.order.lines).filter(|l| l.sku == *sku);
            let kept: u64 = lines.map(holdfast_engine::domain::OrderLine::kept).sum();
            assert_eq!(kept as i64, folded.sold, "{sku}: sold units are those of the orders");
            let Some(stock) = self.stock(sku) else {
                let none = (folded.available, folded.held, folded.sold);
                assert_eq!(none, (0, 0, 0), "{sku}: nothing is left of a SKU that was removed");
                continue;
            };
            assert!(stock.is_sound(), "{stock:?}");
            assert_eq!(stock.total(), stock.available + stock.held + stock.sold);
            assert_eq!(stock.sold as i64, folded.sold, "{sku}: sold is the fold of the ledger");
            assert!(stock.held as i64 <= folded.held, "{sku}: no more is held than the ledger says");
            let (unsold, folded_unsold) = (stock.available + stock.held, folded.available + folded.held);
            assert_eq!(unsold as i64, folded_unsold, "{sku}: available and held are the fold of the ledger");
            let brought = self
                .ledger
                .iter()
                .map(|n| &n.entry)
                .filter(|e| e.sku.as_ref() == Some(sku))
                .filter(|e| matches!(e.kind, EntryKind::Received | EntryKind::Adjusted | EntryKind::Removed));
            let put_in: i64 = brought.map(|e| e.available + e.held + e.sold).sum();
            assert!(folded.sold <= put_in, "{sku}: sold {} of {put_in} ever put in", folded.sold);
        }
    }

    fn check_orders(&self) {
        let confirmed: Vec<&Hold> = self.holds.iter().filter(|h| h.status == HoldStatus::Confirmed).collect();
        let ids: BTreeSet<&OrderId> = confirmed.iter().map(|h| &h.order_id).collect();
        assert_eq!(ids.len(), confirmed.len(), "an order has at most one confirmed hold");
        assert_eq!(self.orders.len(), confirmed.len(), "every order comes from a confirmed hold");
        for hold in &self.holds {
            let order = self.orders.get(&hold.order_id).filter(|o| o.order.hold_id == hold.id);
            assert_eq!(order.is_some(), hold.status == HoldStatus::Confirmed, "{hold:?} and its order");
            if hold.status == HoldStatus::Held {
                assert!(!self.orders.contains_key(&hold.order_id), "a confirmed order claims nothing more: {hold:?}");
            }
        }
        let held: Vec<&OrderId> =
            self.holds.iter().filter(|h| h.status == HoldStatus::Held).map(|h| &h.order_id).collect();
        assert_eq!(held.iter().collect::<BTreeSet<_>>().len(), held.len(), "an order has at most one hold that claims");
        for view in self.orders.values() {
            assert_eq!(view.payment.as_ref().map(|p| &p.key), view.order.payment.as_ref());
            assert!(view.order.lines.iter().all(|l| l.returned <= l.quantity), "{view:?}");
            if view.order.status == OrderStatus::Returned {
                assert!(view.order.lines.iter().all(|l| l.kept() == 0), "{view:?}");
            }
        }
    }

    /// Invariant 4: money ends in exactly one place.
    fn check_payment(&self, payment: &Payment) {
        let order_id = match &payment.order {
            Some(OrderRef::Order(id)) => Some(id),
            Some(OrderRef::Hold(id)) => self.holds.iter().find(|h| h.id == *id).map(|h| &h.order_id),
            None => None,
        };
        let is_known = order_id.is_some_and(|id| self.holds.iter().any(|h| h.order_id == *id));
        let pays: Vec<_> = self.orders.values().filter(|o| o.order.payment.as_ref() == Some(&payment.key)).collect();
        let has_ended = |o: &OrderView| matches!(o.order.status, OrderStatus::Refunded | OrderStatus::CaptureFailed);
        let reversals: Vec<&Job> = self.refunds.iter().filter(|j| j.payment == payment.key).collect();
        assert!(pays.len() <= 1 && reversals.len() <= 1, "{payment:?} pays {pays:?} and goes back by {reversals:?}");
        if payment.status == PaymentStatus::Settled {
            assert_eq!((pays.len(), reversals.len()), (1, 0), "{payment:?}");
            assert!(matches!(pays[0].order.status, OrderStatus::Confirmed | OrderStatus::Returned), "{:?}", pays[0]);
        }
        if payment.status == PaymentStatus::Reversing {
            assert_eq!(reversals.len(), 1, "{payment:?}");
            assert!(pays.iter().all(|o| has_ended(o)), "{payment:?} {pays:?}");
            let kind = if payment.is_captured() { JobKind::Refund } else { JobKind::Void };
            assert_eq!(reversals[0].kind, kind, "{payment:?}");
            assert_ne!(reversals[0].state, JobState::Succeeded);
        }
        if matches!(payment.status, PaymentStatus::Refunded | PaymentStatus::Voided) {
            assert!(reversals.iter().all(|j| j.state == JobState::Succeeded), "{payment:?} {reversals:?}");
            assert!(pays.iter().all(|o| has_ended(o)), "{payment:?} {pays:?}");
        }
        if (payment.is_captured() || payment.authorized) && is_known {
            let placed =
                [PaymentStatus::Settled, PaymentStatus::Reversing, PaymentStatus::Refunded, PaymentStatus::Voided];
            assert!(placed.contains(&payment.status), "money of a known order went nowhere: {payment:?}");
        }
    }
}
