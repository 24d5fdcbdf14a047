//! The whole aggregate in memory. [`Inventory::apply`] is the one place where the rules are told.
//!
//! An engine uses it in three steps. **Load**: ask [`Inventory::wants`] what a command needs and hand it in, until it
//! wants nothing more. **Decide**: call [`Inventory::apply`]; it never waits and never fails half-way. **Persist**:
//! write what [`Inventory::changes`] lists, then call [`Inventory::settle_down`].
//!
//! A *whole* inventory knows every SKU and every hold that claims units (the embedded engine keeps one for life); any
//! other knows only what was handed in since it was made.

mod book;
mod confirm;
mod holds;
mod jobs;
mod load;
mod payments;
mod record;
mod shelf;
mod stocks;

pub use load::Key;

use crate::{
    Command, CustomerId, Entry, EntryKind, Hold, HoldId, Job, OrderFile, OrderId, Outcome, Payment, PaymentKey, Ref,
    Refusal, Sku, Time,
};
use book::HoldBook;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use shelf::Shelf;

type Map<K, V> = HashMap<K, V, FixedState>;
type Set<K> = HashSet<K, FixedState>;

/// What the shop has decided about the rules; the defaults are those of the documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// No hold lives longer than this after it was made, in seconds.
    pub max_hold_lifetime: u32,
    /// How long a payment may wait for its hold to appear, in seconds.
    pub unmatched_grace: u32,
    /// Send money back that waited in vain. Off: other systems may share the provider's account.
    pub reverse_unmatched: bool,
    /// A canceled payment gives the units back at once.
    pub release_on_canceled: bool,
    /// A full refund gives the units back.
    pub restock_on_refund: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_hold_lifetime: 7200,
            unmatched_grace: 900,
            reverse_unmatched: false,
            release_on_canceled: false,
            restock_on_refund: true,
        }
    }
}

/// Whether a record is as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As stored.
    Clean,
    /// Not in the store yet.
    New,
    /// In the store, but otherwise.
    Changed,
}

#[derive(Debug)]
struct Tracked<T> {
    value: T,
    mark: Mark,
}

impl<T> Tracked<T> {
    /// Marks it changed; true when it was clean before, so that it is listed once.
    fn touch(&mut self) -> bool {
        let was_clean = self.mark == Mark::Clean;
        if was_clean {
            self.mark = Mark::Changed;
        }
        was_clean
    }
}

/// What was changed since the last [`Inventory::settle_down`]: the lists of keys; the records are read from the inventory.
#[derive(Debug, Default)]
pub struct Changes {
    /// Every movement, in order.
    pub entries: Vec<Entry>,
    /// SKUs whose counters, limit or version changed, or that were removed.
    pub stocks: Vec<Sku>,
    /// Holds made or changed.
    pub holds: Vec<HoldId>,
    /// Orders made or changed.
    pub orders: Vec<OrderId>,
    /// Payments made or changed.
    pub payments: Vec<PaymentKey>,
    /// Jobs made or changed; true for a capture, false for a reversal.
    pub jobs: Vec<(PaymentKey, bool)>,
    /// Provider events seen: provider and event id.
    pub events: Vec<(Ref, Ref)>,
    /// Idempotency keys used, with what they were used for.
    pub receipts: Vec<(Ref, Box<str>)>,
    /// Units bought (or, negative, returned) by a customer.
    pub bought: Vec<(CustomerId, Sku, i64)>,
    /// How many more units (or, negative, fewer) of a SKU lapse at a moment.
    pub lapses: Vec<(Sku, Time, i64)>,
}

impl Changes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
            && self.stocks.is_empty()
            && self.holds.is_empty()
            && self.orders.is_empty()
            && self.payments.is_empty()
            && self.jobs.is_empty()
            && self.events.is_empty()
            && self.receipts.is_empty()
    }
}

/// Stock, holds, orders and payments, and the rules over them.
pub struct Inventory {
    policy: Policy,
    whole: bool,
    shelf: Shelf,
    book: HoldBook,
    // What follows is there for the commands at hand and forgotten by `settle_down`.
    settled: Map<HoldId, Tracked<Hold>>,
    orders: Map<OrderId, Tracked<OrderFile>>,
    latest: Map<OrderId, HoldId>,
    bought: Map<(CustomerId, Sku), i64>,
    // What these commands moved of a count that was not handed in yet.
    bought_since: Map<(CustomerId, Sku), i64>,
    payments: Map<PaymentKey, Tracked<Payment>>,
    jobs: Map<(PaymentKey, bool), Tracked<Job>>,
    events: Set<(Ref, Ref)>,
    receipts: Map<Ref, Box<str>>,
    stale: Vec<PaymentKey>,
    absent: Set<Key>,
    changes: Changes,
}

impl Inventory {
    /// An inventory that will be told every SKU and every hold with status held before it is used.
    pub fn whole(policy: Policy, hash_seed: u64) -> Self {
        Self::new(policy, hash_seed, true)
    }

    /// An inventory that is told only what the commands at hand touch.
    pub fn part(policy: Policy, hash_seed: u64) -> Self {
        Self::new(policy, hash_seed, false)
    }

    fn new(policy: Policy, hash_seed: u64, whole: bool) -> Self {
        let hasher = || FixedState::with_seed(hash_seed);
        Self {
            policy,
            whole,
            shelf: Shelf::new(hasher()),
            book: HoldBook::new(hasher()),
            settled: Map::with_hasher(hasher()),
            orders: Map::with_hasher(hasher()),
            latest: Map::with_hasher(hasher()),
            bought: Map::with_hasher(hasher()),
            bought_since: Map::with_hasher(hasher()),
            payments: Map::with_hasher(hasher()),
            jobs: Map::with_hasher(hasher()),
            events: Set::with_hasher(hasher()),
            receipts: Map::with_hasher(hasher()),
            stale: Vec::new(),
            absent: Set::with_hasher(hasher()),
            changes: Changes::default(),
        }
    }

    /// Decides one command. A refusal changes nothing, except that lapsed holds found on the way are expired.
    ///
    /// `now` must never go back from one call to the next.
    pub fn apply(&mut self, command: &Command, now: Time) -> Result<Outcome, Refusal> {
        match command {
            Command::SetStock(asked) => self.set_stock(asked, now),
            Command::AdjustStock { sku, delta, reason, key, create } => {
                self.adjust_stock(sku, *delta, reason.as_deref(), key.as_ref(), *create, now)
            }
            Command::RemoveStock { sku, if_version } => self.remove_stock(sku, *if_version, now),
            Command::Hold(asked) => self.hold(asked, now),
            Command::Change { hold, lines, amount, payment_ref } => {
                self.change(*hold, lines.as_ref(), *amount, payment_ref.as_deref(), now)
            }
            Command::Extend { hold, ttl } => self.extend(*hold, *ttl, now),
            Command::Release { hold } => self.release(*hold, now),
            Command::Confirm { hold, payment_ref } => self.confirm(*hold, payment_ref.as_deref(), now),
            Command::Return { order, lines, key } => self.take_return(order, lines, key.as_ref(), now),
            Command::Settle(fact) => Ok(Outcome::Settled(self.settle(fact, now))),
            Command::Job(report) => self.report_job(report, now),
            Command::Sweep { limit } => Ok(self.sweep(*limit, now)),
            Command::Record(record) => self.record_decided(record, now),
        }
    }

    /// What the shop has decided.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What was changed and not yet settled down.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Takes the list of what lapses when; the other changes stay.
    pub fn take_lapses(&mut self) -> Vec<(Sku, Time, i64)> {
        std::mem::take(&mut self.changes.lapses)
    }

    /// Forgets what is only of interest to the commands at hand: to be called once the changes are durable.
    pub fn settle_down(&mut self) {
        for id in std::mem::take(&mut self.changes.holds) {
            if let Some(slot) = self.book.by_id(id)
                && let Some(tracked) = self.book.tracked_mut(slot)
            {
                tracked.mark = Mark::Clean;
            }
        }
        self.shelf.settle_down(&self.changes.stocks);
        self.settled.clear();
        self.orders.clear();
        self.latest.clear();
        self.bought.clear();
        self.bought_since.clear();
        self.payments.clear();
        self.jobs.clear();
        self.events.clear();
        self.receipts.clear();
        self.stale.clear();
        self.absent.clear();
        let changes = &mut self.changes;
        changes.entries.clear();
        changes.stocks.clear();
        changes.orders.clear();
        changes.payments.clear();
        changes.jobs.clear();
        changes.events.clear();
        changes.receipts.clear();
        changes.bought.clear();
        changes.lapses.clear();
    }

    /// Holds that claim units, or did so until they lapsed.
    pub fn held_count(&self) -> usize {
        self.book.len()
    }

    /// How many SKUs are known.
    pub fn stock_count(&self) -> usize {
        self.shelf.len()
    }

    /// Every hold with status held, in no particular order.
    pub fn held(&self) -> impl Iterator<Item = &Hold> {
        self.book.iter()
    }

    fn record(&mut self, kind: EntryKind, now: Time, about: About<'_>) {
        self.changes.entries.push(Entry {
            at: now,
            kind,
            sku: about.sku.cloned(),
            available: about.moved.0,
            held: about.moved.1,
            sold: about.moved.2,
            hold: about.hold,
            order: about.order.cloned(),
            reason: about.reason.map(Into::into),
        });
    }
}

/// The parts of a ledger entry that differ from kind to kind.
#[derive(Default, Clone, Copy)]
struct About<'a> {
    sku: Option<&'a Sku>,
    moved: (i64, i64, i64),
    hold: Option<HoldId>,
    order: Option<&'a OrderId>,
    reason: Option<&'a str>,
}
