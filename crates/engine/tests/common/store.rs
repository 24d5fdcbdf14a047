//! Tables in memory: what a real engine would store, how a want is answered from it, and how changes are written back.

use holdfast_engine::domain::{
    CustomerId, Entry, Hold, HoldId, HoldStatus, Inventory, Job, JobKind, Key, Order, OrderFile, OrderId, OrderRef,
    Payment, PaymentKey, PaymentStatus, Ref, Sku, Stock, Time, fold,
};
use holdfast_engine::{AuditReport, Drift};
use std::collections::{BTreeMap, BTreeSet};

/// What a real engine keeps in tables.
#[derive(Default)]
pub struct Store {
    pub stocks: BTreeMap<Sku, Stock>,
    pub holds: BTreeMap<HoldId, Hold>,
    pub orders: BTreeMap<OrderId, Order>,
    pub payments: Vec<Payment>,
    pub jobs: Vec<Job>,
    pub events: BTreeSet<(Ref, Ref)>,
    pub receipts: BTreeMap<Ref, Box<str>>,
    pub bought: BTreeMap<(CustomerId, Sku), i64>,
    pub ledger: Vec<Entry>,
}

impl Store {
    pub fn hand_in(&self, key: Key, inventory: &mut Inventory, now: Time) {
        match &key {
            Key::Stock(sku) if self.stocks.contains_key(sku) => self.hand_in_stock(sku, inventory),
            Key::Lapsed(sku) => self.hand_in_next_lapsed(sku, now, inventory),
            Key::Rest(sku) => {
                let rest = self.lapsed_and_unknown(sku, now, inventory);
                inventory.put_rest(sku, rest.iter().map(|h| h.lines.quantity_of(sku)).sum(), now);
            }
            Key::Due(limit) => {
                for hold in self.lapsed(now).into_iter().take(*limit as usize + 1) {
                    self.hand_in_hold(hold, inventory);
                }
                inventory.put_absent(key);
            }
            Key::Hold(id) => match self.holds.get(id) {
                Some(hold) => self.hand_in_hold(hold, inventory),
                None => inventory.put_absent(key),
            },
            Key::Order(id) => {
                for hold in self.holds.values().filter(|h| h.order_id == *id && h.status == HoldStatus::Held) {
                    self.hand_in_hold(hold, inventory);
                }
                inventory.put_order(id.clone(), self.order_file(id));
            }
            Key::Latest(id) => {
                let ended = |h: &&Hold| matches!(h.status, HoldStatus::Released | HoldStatus::Expired);
                match self.holds.values().filter(|h| h.order_id == *id).filter(ended).map(|h| h.id).max() {
                    Some(latest) => inventory.put_latest(id.clone(), latest),
                    None => inventory.put_absent(key),
                }
            }
            Key::Bought(customer, sku) => {
                let theirs = |h: &&Hold| h.customer_id.as_ref() == Some(customer) && h.lines.quantity_of(sku) > 0;
                for hold in self.holds.values().filter(|h| h.status == HoldStatus::Held).filter(theirs) {
                    self.hand_in_hold(hold, inventory);
                }
                let units = self.bought.get(&(customer.clone(), sku.clone())).copied().unwrap_or(0);
                inventory.put_bought(customer.clone(), sku.clone(), units);
            }
            Key::Payment(of) => match self.payments.iter().find(|p| p.key == *of) {
                Some(payment) => inventory.put_payment(payment.clone(), self.jobs_of(of)),
                None => inventory.put_absent(key),
            },
            Key::Event(provider, event) if self.events.contains(&(provider.clone(), event.clone())) => {
                inventory.put_event(provider.clone(), event.clone());
            }
            Key::Receipt(of) if self.receipts.contains_key(of) => {
                inventory.put_receipt(of.clone(), self.receipts[of].clone());
            }
            Key::Stale => {
                let mut stale: Vec<_> =
                    self.payments.iter().filter(|p| p.status == PaymentStatus::Unmatched).cloned().collect();
                stale.sort_by_key(|p| p.received_at);
                inventory.put_stale(stale.into_iter().map(|p| (p.clone(), self.jobs_of(&p.key))).collect());
            }
            Key::Stock(_) | Key::Event(..) | Key::Receipt(_) => inventory.put_absent(key),
        }
    }

    pub fn hand_in_stock(&self, sku: &Sku, inventory: &mut Inventory) {
        if inventory.stock_change(sku).is_none() {
            inventory.put_stock(self.stocks[sku].clone());
        }
    }

    /// A hold; the SKUs of one that claims units before it.
    pub fn hand_in_hold(&self, hold: &Hold, inventory: &mut Inventory) {
        for line in hold.lines.iter().filter(|_| hold.status == HoldStatus::Held) {
            self.hand_in_stock(&line.sku, inventory);
        }
        inventory.put_hold(hold.clone());
    }

    /// Holds that have lapsed and that nobody has expired, those that lapsed first, first.
    fn lapsed(&self, now: Time) -> Vec<&Hold> {
        let mut lapsed: Vec<_> =
            self.holds.values().filter(|h| h.status == HoldStatus::Held && !h.is_live(now)).collect();
        lapsed.sort_by_key(|h| (h.expires_at, h.lines.iter().next().unwrap().sku.clone(), h.id));
        lapsed
    }

    fn lapsed_and_unknown(&self, sku: &Sku, now: Time, inventory: &Inventory) -> Vec<&Hold> {
        let mut lapsed = self.lapsed(now);
        lapsed.retain(|h| h.lines.quantity_of(sku) > 0 && inventory.find_hold(h.id).is_none());
        lapsed.sort_by_key(|h| (h.expires_at, h.id));
        lapsed
    }

    /// One more: whoever asks for too few is found out.
    fn hand_in_next_lapsed(&self, sku: &Sku, now: Time, inventory: &mut Inventory) {
        let lapsed = self.lapsed_and_unknown(sku, now, inventory);
        if let Some(next) = lapsed.first() {
            self.hand_in_hold(next, inventory);
        }
        if lapsed.len() > 1 {
            inventory.put_more(sku);
        } else {
            inventory.put_rest(sku, 0, now);
        }
    }

    pub fn order_file(&self, id: &OrderId) -> OrderFile {
        let waits = |p: &&Payment| matches!(p.status, PaymentStatus::Unmatched | PaymentStatus::NeedsAttention);
        let is_for = |p: &&Payment| p.order == Some(OrderRef::Order(id.clone()));
        OrderFile {
            order: self.orders.get(id).cloned(),
            waiting: self.payments.iter().filter(waits).filter(is_for).map(|p| p.key.clone()).collect(),
        }
    }

    pub fn jobs_of(&self, payment: &PaymentKey) -> Vec<Job> {
        self.jobs.iter().filter(|j| j.payment == *payment).cloned().collect()
    }

    pub fn write(&mut self, inventory: &Inventory) {
        let changes = inventory.changes();
        for sku in &changes.stocks {
            match inventory.stock_change(sku).unwrap().0 {
                Some(stock) => self.stocks.insert(sku.clone(), stock.clone()),
                None => self.stocks.remove(sku),
            };
        }
        for id in &changes.holds {
            self.holds.insert(*id, inventory.hold_change(*id).unwrap().0.clone());
        }
        for id in &changes.orders {
            let file = inventory.order_change(id).unwrap().0;
            self.orders.insert(id.clone(), file.order.clone().unwrap());
        }
        for key in &changes.payments {
            let payment = inventory.payment_change(key).unwrap().0.clone();
            match self.payments.iter_mut().find(|p| p.key == *key) {
                Some(known) => *known = payment,
                None => self.payments.push(payment),
            }
        }
        for key in &changes.jobs {
            let job = inventory.job_change(key).unwrap().0.clone();
            let same = |j: &&mut Job| j.payment == key.0 && (j.kind == JobKind::Capture) == key.1;
            match self.jobs.iter_mut().find(same) {
                Some(known) => *known = job,
                None => self.jobs.push(job),
            }
        }
        for event in &changes.events {
            assert!(self.events.insert(event.clone()), "an event is recorded once");
        }
        for (key, used_for) in &changes.receipts {
            assert_eq!(self.receipts.insert(key.clone(), used_for.clone()), None, "a key is recorded once");
        }
        for (customer, sku, units) in &changes.bought {
            *self.bought.entry((customer.clone(), sku.clone())).or_default() += units;
        }
        self.ledger.extend(changes.entries.iter().cloned());
    }

    pub fn stock_at(&self, sku: &Sku, now: Time) -> Option<Stock> {
        let mut stock = self.stocks.get(sku)?.clone();
        let lapsed = self.holds.values().filter(|h| h.status == HoldStatus::Held && !h.is_live(now));
        let units: u64 = lapsed.map(|h| h.lines.quantity_of(sku)).sum();
        stock.held -= units;
        stock.available += units;
        Some(stock)
    }

    pub fn audit(&self, at: Time) -> AuditReport {
        let sums = fold(&self.ledger);
        let mut drift = Vec::new();
        let skus: BTreeSet<&Sku> = sums.keys().chain(self.stocks.keys()).collect();
        for sku in &skus {
            let (folded, stock) = (sums.get(sku).copied().unwrap_or_default(), self.stocks.get(sku));
            let counters = stock.map_or([0; 3], |s| [s.available, s.held, s.sold]);
            let expected = [folded.available, folded.held, folded.sold];
            for (field, (expected, actual)) in
                ["available", "held", "sold"].into_iter().zip(expected.into_iter().zip(counters))
            {
                if expected != actual as i64 {
                    drift.push(Drift { sku: sku.to_string(), field, expected, actual: actual as i64 });
                }
            }
        }
        AuditReport { at, skus: self.stocks.len() as u64, entries: self.ledger.len() as u64, drift }
    }
}
