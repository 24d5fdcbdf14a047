//! The bare `Inventory` as an engine: everything in maps, every want answered from them, nothing durable.
//!
//! It applies one command at a time and settles down after each, so it also says what a batch must be equal to. In
//! parts, it makes a new inventory for every command and hands in only what is wanted, as the SQL engines do.

use super::make::START;
use super::store::Store;
use async_trait::async_trait;
use holdfast_engine::domain::{
    Command, Hold, HoldId, HoldStatus, Inventory, Job, JobKind, JobState, OrderId, Payment, PaymentKey, Policy, Sku,
    Stock, Time,
};
use holdfast_engine::{
    Answer, AuditReport, Engine, EngineError, Health, HoldFilter, LedgerFilter, Note, Now, NumberedEntry, OrderView,
    Page,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// See the file's header.
pub struct Bare(Mutex<State>);

struct State {
    policy: Policy,
    whole: Option<Inventory>,
    last: Time,
    made: u128,
    store: Store,
    notes: BTreeMap<String, Note>,
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
        Self(Mutex::new(State { policy, whole, last: START, made: 0, store: Store::default(), notes: BTreeMap::new() }))
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
            inventory.wants(&command, self.last, &mut wanted);
            if wanted.is_empty() {
                break;
            }
            for key in wanted.drain(..) {
                self.store.hand_in(key, inventory, self.last);
            }
        }
        let answer = inventory.apply(&command, self.last);
        self.store.write(inventory);
        inventory.settle_down();
        answer
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
        let later = state.store.stocks.keys().filter(|sku| after.is_none_or(|after| *sku > after)).take(limit);
        let items: Vec<_> = later.filter_map(|sku| state.store.stock_at(sku, state.last)).collect();
        let next = (items.len() == limit).then(|| items.last().map(|s| s.sku.to_string())).flatten();
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
        Ok(Page { items: state.store.holds.values().filter(asked).cloned().collect(), next: None })
    }

    async fn order(&self, id: &OrderId) -> Result<Option<OrderView>, EngineError> {
        let store = &self.0.lock().store;
        let Some(order) = store.orders.get(id).cloned() else {
            return Ok(None);
        };
        let payment = store.payments.iter().find(|p| Some(&p.key) == order.payment.as_ref()).cloned();
        Ok(Some(OrderView { order, payment }))
    }

    async fn ledger(&self, filter: LedgerFilter, _limit: usize) -> Result<Page<NumberedEntry>, EngineError> {
        let store = &self.0.lock().store;
        let numbered =
            store.ledger.iter().enumerate().map(|(n, e)| NumberedEntry { seq: n as u64 + 1, entry: e.clone() });
        let asked = |n: &NumberedEntry| {
            n.seq > filter.after
                && filter.sku.as_ref().is_none_or(|s| n.entry.sku.as_ref() == Some(s))
                && filter.order_id.as_ref().is_none_or(|o| n.entry.order.as_ref() == Some(o))
        };
        Ok(Page { items: numbered.filter(asked).collect(), next: None })
    }

    async fn payments(&self, status: Option<String>, _after: u64, _limit: usize) -> Result<Page<Payment>, EngineError> {
        let store = &self.0.lock().store;
        let asked = |p: &&Payment| p.order.is_some() && status.as_ref().is_none_or(|s| p.status.as_str() == s);
        Ok(Page { items: store.payments.iter().filter(asked).cloned().collect(), next: None })
    }

    async fn refunds(&self, state: Option<String>, _after: u64, _limit: usize) -> Result<Page<Job>, EngineError> {
        let store = &self.0.lock().store;
        let asked = |j: &&Job| j.kind != JobKind::Capture && state.as_ref().is_none_or(|s| j.state.as_str() == s);
        Ok(Page { items: store.jobs.iter().filter(asked).cloned().collect(), next: None })
    }

    async fn payment(&self, key: &PaymentKey) -> Result<Option<(Payment, Vec<Job>)>, EngineError> {
        let store = &self.0.lock().store;
        let found = store.payments.iter().find(|p| p.key == *key).cloned();
        Ok(found.map(|payment| (payment, store.jobs_of(key))))
    }

    async fn due_jobs(&self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, EngineError> {
        let state = self.0.lock();
        let is_due = |j: &&Job| {
            j.payment.provider.as_str() == provider
                && matches!(j.state, JobState::Due | JobState::Requested)
                && j.next_at <= now
        };
        let mut due: Vec<Job> = state.store.jobs.iter().filter(is_due).cloned().collect();
        due.sort_by_key(|job| job.next_at);
        due.truncate(limit);
        Ok(due)
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError> {
        Ok(self.0.lock().notes.get(name).cloned())
    }

    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError> {
        let asked = |(name, _): &(&String, &Note)| {
            name.starts_with(prefix) && name.as_str() > after.unwrap_or(prefix).max(prefix)
        };
        let state = self.0.lock();
        Ok(state.notes.iter().filter(asked).take(limit).map(|(n, note)| (n.clone(), note.clone())).collect())
    }

    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError> {
        let notes = &mut self.0.lock().notes;
        if notes.get(name).map_or(0, |note| note.version) != version {
            return Ok(false);
        }
        match text {
            Some(text) => drop(notes.insert(name.into(), Note { version: version + 1, text: text.into() })),
            None => drop(notes.remove(name)),
        }
        Ok(true)
    }

    async fn audit(&self) -> Result<AuditReport, EngineError> {
        let state = self.0.lock();
        Ok(state.store.audit(state.last))
    }

    async fn health(&self) -> Health {
        let state = self.0.lock();
        let holds = state.store.holds.values().filter(|h| h.status == HoldStatus::Held).count() as u64;
        Health {
            problem: None,
            holds,
            skus: state.store.stocks.len() as u64,
            clock_offset_ms: 0,
            retries: 0,
            auditing: 0,
            backlog: 0,
            parked: 0,
        }
    }

    fn time(&self) -> Time {
        self.0.lock().last
    }
}
