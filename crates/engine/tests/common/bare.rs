//! The bare `Inventory` as an engine: everything in maps, every want answered from them, nothing durable.
//!
//! It applies one command at a time and settles down after each, so it also says what a batch must be equal to. In
//! parts, it makes a new inventory for every command and hands in only what is wanted, as the SQL engines do.

use super::make::START;
use async_trait::async_trait;
use holdfast_engine::domain::{
    Command, CustomerId, Entry, Hold, HoldId, HoldStatus, Inventory, Job, JobKind, Key, Order, OrderFile, OrderId,
    OrderRef, Payment, PaymentKey, PaymentStatus, Policy, Ref, Sku, Stock, Time, fold,
};
use holdfast_engine::{
    Answer, AuditReport, Drift, Engine, EngineError, Health, HoldFilter, LedgerFilter, Now, NumberedEntry, OrderView,
    Page,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// See the file's header.
pub struct Bare(Mutex<State>);

struct State {
    policy: Policy,
    whole: Option<Inventory>,
    last: Time,
    made: u128,
    store: Store,
}

/// What a real engine keeps in tables.
#[derive(Default)]
struct Store {
    stocks: BTreeMap<Sku, Stock>,
    holds: BTreeMap<HoldId, Hold>,
    orders: BTreeMap<OrderId, Order>,
    payments: Vec<Payment>,
    jobs: Vec<Job>,
    events: BTreeSet<(Ref, Ref)>,
    receipts: BTreeMap<Ref, Box<str>>,
    bought: BTreeMap<(CustomerId, Sku), i64>,
    ledger: Vec<Entry>,
}

impl Bare {
    /// One inventory for life, as the embedded engine has.
    pub fn whole(policy: Policy) -> Self {
        Self::new(Some(Inventory::whole(policy.clone(), 7)), policy)
    }

    /// A new inventory for every command, as the SQL engines have.
    pub fn in_parts(policy: Policy) -> Self {
        Self::new(None, policy)
    }

    fn new(whole: Option<Inventory>, policy: Policy) -> Self {
        Self(Mutex::new(State {
            policy,
            whole,
            last: START,
            made: 0,
            store: Store::default(),
        }))
    }

    /// Applies on the calling thread.
    pub fn apply_now(&self, batch: Vec<Command>, now: Time) -> Vec<Answer> {
        let state = &mut *self.0.lock();
        state.last = state.last.max(now);
        batch.into_iter().map(|command| state.apply_one(command)).collect()
    }

    /// The counters as of a moment.
    pub fn stock_at(&self, sku: &Sku, now: Time) -> Option<Stock> {
        self.0.lock().store.stock_at(sku, now)
    }
}

impl State {
    fn apply_one(&mut self, mut command: Command) -> Answer {
        if let Command::Hold(asked) = &mut command {
            self.made += 1;
            asked.id = HoldId::from_u128(self.made << 64);
        }
        let mut part = None;
        let inventory = match &mut self.whole {
            Some(whole) => whole,
            None => part.insert(Inventory::part(self.policy.clone(), 7)),
        };
        let mut wanted = Vec::new();
        loop {
            inventory.wants(&command, &mut wanted);
            if wanted.is_empty() {
                break;
            }
            for key in wanted.drain(..) {
                self.store.hand_in(key, inventory);
            }
        }
        if matches!(command, Command::Sweep { .. }) {
            self.store.hand_in_lapsed(self.last, inventory);
        }
        let answer = inventory.apply(&command, self.last);
        self.store.write(inventory);
        inventory.settle_down();
        answer
    }
}

impl Store {
    fn hand_in(&self, key: Key, inventory: &mut Inventory) {
        match &key {
            Key::Stock(sku) if self.stocks.contains_key(sku) => self.hand_in_stock(sku, inventory),
            Key::Hold(id) => match self.holds.get(id) {
                Some(hold) => self.hand_in_hold(hold, inventory),
                None => inventory.put_absent(key),
            },
            Key::Order(id) => {
                for hold in self
                    .holds
                    .values()
                    .filter(|h| h.order_id == *id && h.status == HoldStatus::Held)
                {
                    self.hand_in_hold(hold, inventory);
                }
                inventory.put_order(id.clone(), self.order_file(id));
            }
            Key::Bought(customer, sku) => {
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
                let mut stale: Vec<_> = self
                    .payments
                    .iter()
                    .filter(|p| p.status == PaymentStatus::Unmatched)
                    .cloned()
                    .collect();
                stale.sort_by_key(|p| p.received_at);
                inventory.put_stale(stale.into_iter().map(|p| (p.clone(), self.jobs_of(&p.key))).collect());
            }
            Key::Stock(_) | Key::Event(..) | Key::Receipt(_) => inventory.put_absent(key),
        }
    }

    /// A SKU, every hold that claims units of it, and whatever those holds touch: their SKUs before the holds.
    fn hand_in_stock(&self, first: &Sku, inventory: &mut Inventory) {
        let mut reached = BTreeSet::from([first.clone()]);
        let mut open = vec![first.clone()];
        while let Some(sku) = open.pop() {
            for hold in self
                .holds
                .values()
                .filter(|h| h.status == HoldStatus::Held && h.lines.quantity_of(&sku) > 0)
            {
                let more = hold
                    .lines
                    .iter()
                    .map(|l| l.sku.clone())
                    .filter(|s| reached.insert(s.clone()));
                open.extend(more.collect::<Vec<_>>());
            }
        }
        for sku in &reached {
            if inventory.stock_change(sku).is_none() {
                inventory.put_stock(self.stocks[sku].clone());
            }
        }
        let touches = |h: &&Hold| h.lines.iter().any(|l| reached.contains(&l.sku));
        for hold in self
            .holds
            .values()
            .filter(|h| h.status == HoldStatus::Held)
            .filter(touches)
        {
            inventory.put_hold(hold.clone());
        }
    }

    fn hand_in_hold(&self, hold: &Hold, inventory: &mut Inventory) {
        for line in hold.lines.iter().filter(|_| hold.status == HoldStatus::Held) {
            if inventory.stock_change(&line.sku).is_none() {
                self.hand_in_stock(&line.sku, inventory);
            }
        }
        inventory.put_hold(hold.clone());
    }

    fn hand_in_lapsed(&self, now: Time, inventory: &mut Inventory) {
        for hold in self
            .holds
            .values()
            .filter(|h| h.status == HoldStatus::Held && !h.is_live(now))
        {
            self.hand_in_hold(hold, inventory);
        }
    }

    fn order_file(&self, id: &OrderId) -> OrderFile {
        let ended = |h: &&Hold| matches!(h.status, HoldStatus::Released | HoldStatus::Expired);
        let waits = |p: &&Payment| matches!(p.status, PaymentStatus::Unmatched | PaymentStatus::NeedsAttention);
        let is_for = |p: &&Payment| p.order == Some(OrderRef::Order(id.clone()));
        OrderFile {
            order: self.orders.get(id).cloned(),
            latest: self
                .holds
                .values()
                .filter(|h| h.order_id == *id)
                .filter(ended)
                .map(|h| h.id)
                .max(),
            waiting: self
                .payments
                .iter()
                .filter(waits)
                .filter(is_for)
                .map(|p| p.key.clone())
                .collect(),
        }
    }

    fn jobs_of(&self, payment: &PaymentKey) -> Vec<Job> {
        self.jobs.iter().filter(|j| j.payment == *payment).cloned().collect()
    }

    fn write(&mut self, inventory: &Inventory) {
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
                Some(known) => {
                    *known = Job {
                        created_at: known.created_at,
                        ..job
                    }
                }
                None => self.jobs.push(job),
            }
        }
        for event in &changes.events {
            assert!(self.events.insert(event.clone()), "an event is recorded once");
        }
        for (key, used_for) in &changes.receipts {
            assert_eq!(
                self.receipts.insert(key.clone(), used_for.clone()),
                None,
                "a key is recorded once"
            );
        }
        for (customer, sku, units) in &changes.bought {
            *self.bought.entry((customer.clone(), sku.clone())).or_default() += units;
        }
        self.ledger.extend(changes.entries.iter().cloned());
    }

    fn stock_at(&self, sku: &Sku, now: Time) -> Option<Stock> {
        let mut stock = self.stocks.get(sku)?.clone();
        let lapsed = self
            .holds
            .values()
            .filter(|h| h.status == HoldStatus::Held && !h.is_live(now));
        let units: u64 = lapsed.map(|h| h.lines.quantity_of(sku)).sum();
        stock.held -= units;
        stock.available += units;
        Some(stock)
    }

    fn audit(&self, at: Time) -> AuditReport {
        let sums = fold(&self.ledger);
        let mut drift = Vec::new();
        let skus: BTreeSet<&Sku> = sums.keys().chain(self.stocks.keys()).collect();
        for sku in &skus {
            let (folded, stock) = (sums.get(sku).copied().unwrap_or_default(), self.stocks.get(sku));
            let counters = stock.map_or([0; 3], |s| [s.available, s.held, s.sold]);
            let expected = [folded.available, folded.held, folded.sold];
            for (field, (expected, actual)) in ["available", "held", "sold"]
                .into_iter()
                .zip(expected.into_iter().zip(counters))
            {
                if expected != actual as i64 {
                    drift.push(Drift {
                        sku: sku.to_string(),
                        field,
                        expected,
                        actual: actual as i64,
                    });
                }
            }
        }
        AuditReport {
            at,
            skus: self.stocks.len() as u64,
            entries: self.ledger.len() as u64,
            drift,
        }
    }
}

#[async_trait]
impl Engine for Bare {
    async fn apply(&self, batch: Vec<Command>, now: Now) -> Result<Vec<Answer>, EngineError> {
        let at = match now {
            Now::Clock => self.time(),
            Now::At(at) => at,
        };
        Ok(self.apply_now(batch, at))
    }

    fn is_blocking(&self) -> bool {
        false
    }

    async fn stock(&self, sku: &Sku) -> Result<Option<Stock>, EngineError> {
        Ok(self.stock_at(sku, self.time()))
    }

    async fn stocks(&self, after: Option<&Sku>, limit: usize) -> Result<Page<Stock>, EngineError> {
        let state = self.0.lock();
        let later = state
            .store
            .stocks
            .keys()
            .filter(|sku| after.is_none_or(|after| *sku > after))
            .take(limit);
        let items: Vec<_> = later.filter_map(|sku| state.store.stock_at(sku, state.last)).collect();
        let next = (items.len() == limit)
            .then(|| items.last().map(|s| s.sku.to_string()))
            .flatten();
        Ok(Page { items, next })
    }

    async fn hold(&self, id: HoldId) -> Result<Option<Hold>, EngineError> {
        Ok(self.0.lock().store.holds.get(&id).cloned())
    }

    async fn holds(&self, filter: HoldFilter, _limit: usize) -> Result<Page<Hold>, EngineError> {
        let state = self.0.lock();
        let asked = |h: &&Hold| {
            filter.order_id.as_ref().is_none_or(|o| h.order_id == *o)
                && filter.sku.as_ref().is_none_or(|s| h.lines.quantity_of(s) > 0)
                && filter.status.is_none_or(|s| h.status_at(state.last) == s)
        };
        Ok(Page {
            items: state.store.holds.values().filter(asked).cloned().collect(),
            next: None,
        })
    }

    async fn order(&self, id: &OrderId) -> Result<Option<OrderView>, EngineError> {
        let store = &self.0.lock().store;
        let Some(order) = store.orders.get(id).cloned() else {
            return Ok(None);
        };
        let payment = store
            .payments
            .iter()
            .find(|p| Some(&p.key) == order.payment.as_ref())
            .cloned();
        Ok(Some(OrderView { order, payment }))
    }

    async fn ledger(&self, filter: LedgerFilter, _limit: usize) -> Result<Page<NumberedEntry>, EngineError> {
        let store = &self.0.lock().store;
        let numbered = store.ledger.iter().enumerate().map(|(n, e)| NumberedEntry {
            seq: n as u64 + 1,
            entry: e.clone(),
        });
        let asked = |n: &NumberedEntry| {
            n.seq > filter.after
                && filter.sku.as_ref().is_none_or(|s| n.entry.sku.as_ref() == Some(s))
                && filter
                    .order_id
                    .as_ref()
                    .is_none_or(|o| n.entry.order.as_ref() == Some(o))
        };
        Ok(Page {
            items: numbered.filter(asked).collect(),
            next: None,
        })
    }

    async fn payments(&self, status: Option<String>, _after: u64, _limit: usize) -> Result<Page<Payment>, EngineError> {
        let store = &self.0.lock().store;
        let asked = |p: &&Payment| status.as_ref().is_none_or(|s| p.status.as_str() == s);
        Ok(Page {
            items: store.payments.iter().filter(asked).cloned().collect(),
            next: None,
        })
    }

    async fn refunds(&self, state: Option<String>, _after: u64, _limit: usize) -> Result<Page<Job>, EngineError> {
        let store = &self.0.lock().store;
        let asked = |j: &&Job| j.kind != JobKind::Capture && state.as_ref().is_none_or(|s| j.state.as_str() == s);
        Ok(Page {
            items: store.jobs.iter().filter(asked).cloned().collect(),
            next: None,
        })
    }

    async fn audit(&self) -> Result<AuditReport, EngineError> {
        let state = self.0.lock();
        Ok(state.store.audit(state.last))
    }

    async fn health(&self) -> Health {
        let state = self.0.lock();
        let holds = state
            .store
            .holds
            .values()
            .filter(|h| h.status == HoldStatus::Held)
            .count() as u64;
        Health {
            problem: None,
            holds,
            skus: state.store.stocks.len() as u64,
            clock_offset_ms: 0,
        }
    }

    fn time(&self) -> Time {
        self.0.lock().last
    }
}
