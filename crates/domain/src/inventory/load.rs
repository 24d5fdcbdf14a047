//! What a command needs to know before it can be decided, and how an engine hands it in.

use super::shelf::Rest;
use super::{Inventory, Mark, Tracked};
use crate::{
    Command, CustomerId, Hold, HoldId, HoldStatus, Job, JobKind, Lines, OrderFile, OrderId, OrderRef, Payment,
    PaymentFact, PaymentKey, Record, Recorded, Ref, Sku, Stock, Time,
};

/// Something that an engine can look up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A SKU's counters.
    Stock(Sku),
    /// A hold, by id.
    Hold(HoldId),
    /// An order, with what is known besides its live hold. Looking it up always finds an [`OrderFile`], if an empty one.
    Order(OrderId),
    /// The latest hold for an order that was released or expired.
    Latest(OrderId),
    /// Units that a customer has bought of a SKU and not returned. Always found, if 0.
    Bought(CustomerId, Sku),
    /// A payment with its jobs.
    Payment(PaymentKey),
    /// Whether a provider's event was seen.
    Event(Ref, Ref),
    /// What an idempotency key was used for.
    Receipt(Ref),
    /// Some payments with status unmatched, oldest first; see [`Inventory::put_stale`].
    Stale,
    /// In a part: some more of the lapsed holds on a SKU, those that lapsed first, first; see [`Inventory::put_more`].
    Lapsed(Sku),
    /// In a part: how many units the lapsed holds on a SKU claim that were not handed in; see [`Inventory::put_rest`].
    Rest(Sku),
    /// In a part: lapsed holds on any SKU, one more than so many if there are, those that lapsed first, first.
    Due(u32),
}

impl Inventory {
    /// Appends what must be handed in before the command can be decided. Deciding is safe once nothing is appended;
    /// what was handed in may lead to further wants, so ask again.
    pub fn wants(&self, command: &Command, now: Time, out: &mut Vec<Key>) {
        match command {
            Command::SetStock(asked) => {
                self.want_stock(&asked.sku, out);
                self.want_rest(&asked.sku, out);
                self.want_lapsed(&asked.sku, now, out, |stock| {
                    (stock.held + stock.sold).saturating_sub(asked.total.get())
                });
            }
            Command::AdjustStock { sku, delta, key, .. } => {
                self.want_stock(sku, out);
                self.want_rest(sku, out);
                let taken = if *delta < 0 { delta.unsigned_abs() } else { 0 };
                self.want_lapsed(sku, now, out, |stock| taken.saturating_sub(stock.available));
                self.want_receipt(key.as_ref(), out);
            }
            Command::RemoveStock { sku, .. } => {
                self.want_stock(sku, out);
                self.want_rest(sku, out);
                self.want_lapsed(sku, now, out, |stock| if stock.sold == 0 { stock.held } else { 0 });
            }
            Command::Hold(asked) => {
                if self.book.by_order(&asked.order_id).is_none() {
                    self.want_order(&asked.order_id, out);
                }
                self.want_lines(&asked.lines, asked.customer_id.as_ref(), now, out);
            }
            Command::Change { hold, lines, .. } => {
                let customer = self.find_hold(*hold).and_then(|h| h.customer_id.as_ref());
                self.want_hold(*hold, out);
                if let Some(lines) = lines {
                    self.want_lines(lines, customer, now, out);
                }
            }
            Command::Extend { hold, .. } | Command::Release { hold } => self.want_hold(*hold, out),
            Command::Confirm { hold, .. } => self.want_confirm(*hold, now, out),
            Command::Return { order, key, .. } => {
                self.want_order(order, out);
                self.want_receipt(key.as_ref(), out);
            }
            Command::Settle(fact) => self.want_settle(fact, now, out),
            Command::Job(report) => {
                let key = &report.payment;
                self.want_unless(self.payments.contains_key(key), Key::Payment(key.clone()), out);
                self.want_order_ref(self.payments.get(key).and_then(|p| p.value.order.as_ref()), now, out);
            }
            Command::Sweep { limit } => {
                if !self.whole {
                    self.want_unless(false, Key::Due(*limit), out);
                }
                self.want_unless(!self.stale.is_empty(), Key::Stale, out);
                for key in &self.stale {
                    self.want_order_ref(self.payments.get(key).and_then(|p| p.value.order.as_ref()), now, out);
                }
            }
            Command::Record(record) => self.want_record(record, now, out),
        }
    }

    fn want_record(&self, record: &Record, now: Time, out: &mut Vec<Key>) {
        match &record.what {
            Recorded::Held(hold) => {
                hold.lines.iter().for_each(|l| self.want_stock(&l.sku, out));
                if record.is_loose {
                    self.want_unless(self.find_hold(hold.id).is_some(), Key::Hold(hold.id), out);
                    self.want_order(&hold.order_id, out);
                }
            }
            Recorded::Expired(id) => self.want_hold(*id, out),
            Recorded::Waiting(id) => self.want_order_ref(Some(&OrderRef::Hold(*id)), now, out),
        }
    }

    /// In a part: as many lapsed holds on the SKU as the command may have to expire.
    fn want_lapsed(&self, sku: &Sku, now: Time, out: &mut Vec<Key>, needed: impl FnOnce(&Stock) -> u64) {
        let Some(stock) = self.shelf.get(sku).filter(|_| !self.whole) else { return };
        let is_all = matches!(self.shelf.rest(sku), Rest::Units(0, _));
        if !is_all && self.known_lapsed_units(sku, now) < needed(stock) {
            out.push(Key::Lapsed(sku.clone()));
        }
    }

    /// In a part: what an answer that tells the counters as of now needs.
    fn want_rest(&self, sku: &Sku, out: &mut Vec<Key>) {
        if !self.whole && self.shelf.get(sku).is_some() && !matches!(self.shelf.rest(sku), Rest::Units(..)) {
            out.push(Key::Rest(sku.clone()));
        }
    }

    fn want_unless(&self, known: bool, key: Key, out: &mut Vec<Key>) {
        if !known && !self.absent.contains(&key) {
            out.push(key);
        }
    }

    fn want_stock(&self, sku: &Sku, out: &mut Vec<Key>) {
        if !self.whole {
            self.want_unless(self.shelf.contains_record(sku), Key::Stock(sku.clone()), out);
        }
    }

    fn want_receipt(&self, key: Option<&Ref>, out: &mut Vec<Key>) {
        if let Some(key) = key {
            self.want_unless(self.receipts.contains_key(key), Key::Receipt(key.clone()), out);
        }
    }

    fn want_hold(&self, id: HoldId, out: &mut Vec<Key>) {
        self.want_unless(self.find_hold(id).is_some(), Key::Hold(id), out);
        if let Some(hold) = self.find_hold(id) {
            hold.lines.iter().for_each(|l| self.want_stock(&l.sku, out));
        }
    }

    fn want_order(&self, order: &OrderId, out: &mut Vec<Key>) {
        match self.orders.get(order) {
            None => self.want_unless(false, Key::Order(order.clone()), out),
            Some(file) => {
                for key in &file.value.waiting {
                    self.want_unless(self.payments.contains_key(key), Key::Payment(key.clone()), out);
                }
                if let Some(order) = &file.value.order {
                    order.lines.iter().for_each(|l| self.want_stock(&l.sku, out));
                }
            }
        }
    }

    fn want_lines(&self, lines: &Lines, customer: Option<&CustomerId>, now: Time, out: &mut Vec<Key>) {
        for line in lines {
            self.want_stock(&line.sku, out);
            let asked = line.quantity.get();
            if self.shelf.get(&line.sku).is_some_and(|stock| stock.available < asked) {
                self.want_lapsed(&line.sku, now, out, |stock| asked.saturating_sub(stock.available));
            }
            if let Some(customer) = customer
                && self.shelf.get(&line.sku).is_some_and(|s| s.limit_per_customer.is_some())
            {
                let key = (customer.clone(), line.sku.clone());
                if !self.bought.contains_key(&key) {
                    out.push(Key::Bought(key.0, key.1));
                }
            }
        }
    }

    fn want_confirm(&self, id: HoldId, now: Time, out: &mut Vec<Key>) {
        self.want_hold(id, out);
        let Some(hold) = self.find_hold(id) else { return };
        // A hold that still claims units may lapse before the command is applied, so look as if it had.
        if hold.status != HoldStatus::Held || !self.whole {
            self.want_order(&hold.order_id, out);
        }
        self.want_lines(&hold.lines, hold.customer_id.as_ref(), now, out);
    }

    fn want_settle(&self, fact: &PaymentFact, now: Time, out: &mut Vec<Key>) {
        let event = (fact.payment.provider.clone(), fact.event_id.clone());
        self.want_unless(self.events.contains(&event), Key::Event(event.0.clone(), event.1.clone()), out);
        self.want_unless(self.payments.contains_key(&fact.payment), Key::Payment(fact.payment.clone()), out);
        let known = self.payments.get(&fact.payment).and_then(|p| p.value.order.as_ref());
        self.want_order_ref(known.or(fact.order.as_ref()), now, out);
    }

    fn want_order_ref(&self, named: Option<&OrderRef>, now: Time, out: &mut Vec<Key>) {
        match named {
            Some(OrderRef::Hold(id)) => {
                self.want_confirm(*id, now, out);
                if let Some(hold) = self.find_hold(*id) {
                    self.want_settled_order(&hold.order_id.clone(), now, out);
                }
            }
            Some(OrderRef::Order(order)) => self.want_settled_order(order, now, out),
            None => {}
        }
    }

    fn want_settled_order(&self, order: &OrderId, now: Time, out: &mut Vec<Key>) {
        if let Some(slot) = self.book.by_order(order)
            && let Some(hold) = self.book.get(slot)
        {
            self.want_confirm(hold.id, now, out);
        }
        self.want_order(order, out);
        match self.latest.get(order) {
            Some(latest) => self.want_confirm(*latest, now, out),
            None => self.want_unless(false, Key::Latest(order.clone()), out),
        }
        // Holds that the commands at hand settled are not yet in what was handed in.
        for settled in self.settled.values().filter(|t| t.value.order_id == *order) {
            self.want_confirm(settled.value.id, now, out);
        }
    }

    /// A hold that is known, claiming units or settled.
    pub fn find_hold(&self, id: HoldId) -> Option<&Hold> {
        match self.book.by_id(id) {
            Some(slot) => self.book.get(slot),
            None => self.settled.get(&id).map(|t| &t.value),
        }
    }

    /// Hands in: there is no such thing.
    pub fn put_absent(&mut self, key: Key) {
        self.absent.insert(key);
    }

    /// Hands in a SKU's counters.
    pub fn put_stock(&mut self, stock: Stock) {
        self.shelf.insert(stock, Mark::Clean, &mut self.changes);
    }

    /// Hands in how many units of a SKU are claimed by holds that have lapsed by now and were not handed in; 0 says
    /// that all of them were.
    pub fn put_rest(&mut self, sku: &Sku, units: u64, now: Time) {
        self.shelf.set_rest(sku, Rest::Units(units, now));
    }

    /// Hands in: there are more lapsed holds on the SKU than those that were handed in.
    pub fn put_more(&mut self, sku: &Sku) {
        if self.shelf.rest(sku) == Rest::Unknown {
            self.shelf.set_rest(sku, Rest::More);
        }
    }

    /// Hands in a hold. The SKUs of one with status held must have been handed in before.
    pub fn put_hold(&mut self, hold: Hold) {
        if self.find_hold(hold.id).is_some() {
            return;
        }
        if hold.status == HoldStatus::Held {
            for line in &hold.lines {
                self.shelf.take_from_rest(&line.sku, hold.expires_at, line.quantity.get());
            }
            self.enter(hold, Mark::Clean);
        } else {
            self.settled.insert(hold.id, Tracked { value: hold, mark: Mark::Clean });
        }
    }

    /// Hands in what is known of an order.
    pub fn put_order(&mut self, order: OrderId, file: OrderFile) {
        self.orders.entry(order).or_insert(Tracked { value: file, mark: Mark::Clean });
    }

    /// Hands in the latest hold for an order that was released or expired.
    pub fn put_latest(&mut self, order: OrderId, hold: HoldId) {
        self.latest.entry(order).or_insert(hold);
    }

    /// Hands in the units that a customer has bought of a SKU and not returned, as stored. In a part, the customer's
    /// holds with status held that have a line of the SKU must have been handed in before.
    pub fn put_bought(&mut self, customer: CustomerId, sku: Sku, units: i64) {
        let key = (customer, sku);
        let since = self.bought_since.remove(&key).unwrap_or(0);
        self.bought.entry(key).or_insert(units + since);
    }

    /// Hands in a payment with its jobs.
    pub fn put_payment(&mut self, payment: Payment, jobs: Vec<Job>) {
        for job in jobs {
            let key = (job.payment.clone(), job.kind == JobKind::Capture);
            self.jobs.entry(key).or_insert(Tracked { value: job, mark: Mark::Clean });
        }
        self.payments.entry(payment.key.clone()).or_insert(Tracked { value: payment, mark: Mark::Clean });
    }

    /// Hands in: this event was seen.
    pub fn put_event(&mut self, provider: Ref, event: Ref) {
        self.events.insert((provider, event));
    }

    /// Hands in what an idempotency key was used for.
    pub fn put_receipt(&mut self, key: Ref, used_for: Box<str>) {
        self.receipts.entry(key).or_insert(used_for);
    }

    /// Hands in payments with status unmatched, and answers [`Key::Stale`].
    pub fn put_stale(&mut self, mut payments: Vec<(Payment, Vec<Job>)>) {
        // Of those that came at one moment, no store knows which was first.
        payments.sort_by(|(a, _), (b, _)| (a.received_at, &a.key).cmp(&(b.received_at, &b.key)));
        self.absent.insert(Key::Stale);
        for (payment, jobs) in payments {
            self.stale.push(payment.key.clone());
            self.put_payment(payment, jobs);
        }
    }

    /// A SKU's counters as last decided, and whether the store has to be told; `None` in place of the stock when it
    /// was removed.
    pub fn stock_change(&self, sku: &Sku) -> Option<(Option<&Stock>, Mark)> {
        let place = self.shelf.place(sku)?;
        Some(((!place.removed).then_some(&place.stock.value), place.stock.mark))
    }

    /// A SKU's counters as last decided; units of lapsed holds that nobody has expired yet still count as held.
    pub fn stock(&self, sku: &Sku) -> Option<&Stock> {
        self.shelf.get(sku)
    }

    /// A hold as last decided, and whether the store has to be told.
    pub fn hold_change(&self, id: HoldId) -> Option<(&Hold, Mark)> {
        let tracked = match self.book.by_id(id) {
            Some(slot) => self.book.tracked(slot)?,
            None => self.settled.get(&id)?,
        };
        Some((&tracked.value, tracked.mark))
    }

    /// An order as last decided, and whether the store has to be told.
    pub fn order_change(&self, order: &OrderId) -> Option<(&OrderFile, Mark)> {
        self.orders.get(order).map(|t| (&t.value, t.mark))
    }

    /// A payment as last decided, and whether the store has to be told.
    pub fn payment_change(&self, key: &PaymentKey) -> Option<(&Payment, Mark)> {
        self.payments.get(key).map(|t| (&t.value, t.mark))
    }

    /// A job as last decided, and whether the store has to be told.
    pub fn job_change(&self, key: &(PaymentKey, bool)) -> Option<(&Job, Mark)> {
        self.jobs.get(key).map(|t| (&t.value, t.mark))
    }
}
