//! One step of the ledger of a store that decides holds on its own (the hot store): what that store logged is written
//! down, and commands that are not its to decide are decided on top of it, in one transaction.
//!
//! A step never reads what the hot store has not handed in: it must not decide about a hold or a SKU that others may
//! change meanwhile. What it decided is compared with what was frozen for it, and undone if it goes beyond.

use super::effect::{Effect, Moves, Terms, write_all};
use super::fault::Fault;
use super::hot_store::{HotRow, HotTx, Parked};
use super::load::load;
use super::merge::{Log, Logged, merge};
use super::part::{Follows, Part};
use super::store::{Store, Tx};
use super::writes::Writes;
use super::{Mode, Strategy};
use crate::Answer;
use crate::partition::Partitions;
use crate::records::Corrupt;
use hashbrown::{HashMap, HashSet};
use holdfast_domain::{
    Command, Hold, HoldId, HoldStatus, Job, JobReason, Mark, OrderId, OrderRef, PaymentKey, PaymentStatus, Policy,
    Record, Refusal, Sku, Stock, Time,
};
use std::collections::{BTreeMap, BTreeSet};

/// What one atomic step of the hot store logged.
#[derive(Debug, Clone)]
pub(crate) struct LogEntry {
    pub(crate) epoch: i64,
    pub(crate) seq: i64,
    /// Each fact as it was logged, and as it reads.
    pub(crate) facts: Vec<(String, Result<Fact, Corrupt>)>,
}

/// Something that the hot store decided on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fact {
    Record(Record),
    /// A hold that never became whole: nothing of it counts.
    Void(HoldId),
}

/// What is to be written down of a partition.
#[derive(Debug, Clone)]
pub(crate) struct Drained {
    pub(crate) part: u32,
    /// The epoch as the caller knows it: another one refuses the step.
    pub(crate) epoch: i64,
    /// In order; may begin with what was written down before.
    pub(crate) entries: Vec<LogEntry>,
    /// The last entry that has to be written down, now or before: there was one of this number.
    pub(crate) upto: i64,
}

/// What the hot store keeps still while a step decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frozen {
    /// Each with the home of its order.
    pub(crate) holds: BTreeMap<HoldId, u32>,
    pub(crate) skus: BTreeSet<Sku>,
    /// Orders for which nobody makes a hold meanwhile.
    pub(crate) orders: BTreeSet<OrderId>,
    /// Those of the holds that were found and marked: their orders are frozen with them.
    pub(crate) marked: BTreeSet<HoldId>,
    /// Partitions that know the step, whether or not something of them is frozen.
    pub(crate) parts: BTreeSet<u32>,
}

pub(crate) struct Step {
    /// In order of partition.
    pub(crate) drained: Vec<Drained>,
    pub(crate) commands: Vec<Command>,
    pub(crate) now: Time,
    /// By which the hot store knows what is frozen.
    pub(crate) token: Option<String>,
    pub(crate) frozen: Frozen,
    pub(crate) partitions: Partitions,
    /// Payments that a sweep may look at.
    pub(crate) stale: Vec<PaymentKey>,
    pub(crate) kind: Kind,
}

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As in service.
    Serve,
    /// Only to see whether the database takes it; undone in any case.
    Try,
    /// Part of the audit of its partitions; nobody else works on them.
    Audit,
    /// The same, and nothing more will come of these logs.
    AuditLast,
}

impl Kind {
    fn is_audit(self) -> bool {
        matches!(self, Self::Audit | Self::AuditLast)
    }
}

#[derive(Debug)]
pub(crate) enum Stepped {
    Done {
        answers: Vec<Answer>,
        effects: Vec<Effect>,
        rows: Vec<HotRow>,
    },
    /// Nothing was done: the commands concern more than was frozen for them.
    Beyond(Frozen),
    /// Nothing was done: a partition is in another epoch by now, or under audit.
    Stale(u32),
    /// Nothing was done: some of a partition's log is missing.
    Gap(u32),
    /// Nothing was done: somebody gave this step up.
    GivenUp,
    /// Nothing was done, and it could be.
    Tried,
    /// Nothing was done: a hold of several partitions is still being logged.
    Unripe,
}

/// Works the step in an open transaction. Only `Done` may be committed.
pub(super) async fn inside<T: HotTx>(tx: &mut T, step: &Step, policy: &Policy, seed: u64) -> Result<Stepped, Fault> {
    let parts: Vec<u32> = step.drained.iter().map(|drained| drained.part).collect();
    let (_, mut rows) = tx.hot_rows(&parts, true).await?;
    let mut logs = Vec::with_capacity(rows.len());
    for (row, drained) in rows.iter().zip(&step.drained) {
        if row.epoch != drained.epoch || (row.is_auditing && !step.kind.is_audit()) {
            return Ok(Stepped::Stale(row.part));
        }
        let log = Log::new(drained, (row.drained_epoch, row.drained_seq));
        // What is missing of a log under audit is missing for good.
        if !step.kind.is_audit() && has_gap(&log, row) {
            return Ok(Stepped::Gap(row.part));
        }
        logs.push(log);
    }
    let records = merge(&mut logs, step.partitions, step.kind == Kind::AuditLast);
    let mut is_further = false;
    for (row, log) in rows.iter_mut().zip(&logs) {
        if let Some(reached) = log.reaches() {
            (row.drained_epoch, row.drained_seq) = reached;
            is_further = true;
        }
    }
    let falls_short = |(row, drained): (&HotRow, &Drained)| {
        (row.drained_epoch, row.drained_seq) < (drained.epoch, drained.upto) && drained.upto > 0
    };
    if !step.commands.is_empty() && logs.iter().all(|log| log.ripe == log.entries.len()) {
        // What was frozen was logged by then, and what is missing of it will not come.
        if let Some((row, _)) = rows.iter().zip(&step.drained).find(|pair| falls_short(*pair)) {
            return Ok(Stepped::Gap(row.part));
        }
    }
    if !step.commands.is_empty() && logs.iter().any(|log| log.ripe < log.entries.len()) {
        // What is frozen is not known to the end.
        return Ok(Stepped::Unripe);
    }
    let mut work = Work { part: Part::new(policy.clone(), seed), parked: Vec::new(), now: step.now };
    work.part.follows = Some(Follows { stale: step.stale.clone(), ..Follows::default() });
    work.look_up(tx, &records, &step.commands).await?;
    work.write_down(tx, &records).await?;
    let before = work.picture();
    let answers = work.decide(tx, &step.commands).await?;
    let effects = work.effects(&before);
    if let Some(beyond) = beyond(&effects, step, work.short_of(&step.commands, &answers)) {
        return Ok(Stepped::Beyond(beyond));
    }
    let changed = !work.part.inventory.changes().is_empty();
    if changed {
        if let Some(token) = step.token.as_deref().filter(|_| !step.commands.is_empty()) {
            let text = if effects.is_empty() { NOTHING.to_owned() } else { write_all(&effects) };
            if !tx.hot_step(token, &text, work.now).await? {
                return Ok(Stepped::GivenUp);
            }
        }
        let mut writes = Writes::of(&work.part, work.now, Strategy::RowLock)?;
        writes.unchanged.clear();
        tx.write(&writes).await?;
    }
    if is_further {
        tx.hot_write(&rows).await?;
        tx.hot_park(&work.parked, work.now).await?;
    }
    if step.kind == Kind::Try { Ok(Stepped::Tried) } else { Ok(Stepped::Done { answers, effects, rows }) }
}

/// The effects of a step that has none: no effects at all would say that it was given up.
pub(crate) const NOTHING: &str = "0:";

fn has_gap(log: &Log<'_>, row: &HotRow) -> bool {
    let mut known = (row.drained_epoch, row.drained_seq);
    log.entries.iter().any(|entry| {
        let follows = if entry.epoch == known.0 { known.1 + 1 } else { 1 };
        known = (entry.epoch, entry.seq);
        entry.seq != follows
    })
}

struct Work {
    part: Part,
    parked: Vec<Parked>,
    now: Time,
}

/// SKUs and holds as they are once the log is written down.
struct Picture {
    stocks: HashMap<Sku, Stock>,
    holds: HashMap<HoldId, Hold>,
}

impl Work {
    async fn look_up<T: Tx>(&mut self, tx: &mut T, records: &[Logged<'_>], commands: &[Command]) -> Result<(), Fault> {
        let readable = records.iter().filter_map(|logged| logged.record.ok());
        let all: Vec<Command> =
            readable.map(|record| Command::Record(Box::new(record.clone()))).chain(commands.iter().cloned()).collect();
        let now = self.now;
        load(tx, &mut self.part, &all, |told| now.max(told.last_time)).await?;
        self.now = self.part.now.unwrap_or(now);
        Ok(())
    }

    async fn write_down<T: Tx>(&mut self, tx: &mut T, records: &[Logged<'_>]) -> Result<(), Fault> {
        for Logged { part, at: (epoch, seq), text, record } in records {
            let why = match record {
                Ok(record) => {
                    let command = Command::Record(Box::new((*record).clone()));
                    self.decide_one(tx, &command).await?.err().map(|refusal| format!("{refusal:?}"))
                }
                Err(corrupt) => Some(corrupt.0.clone()),
            };
            if let Some(why) = why {
                tracing::error!(part, epoch, seq, why, "a logged fact could not be written down and was parked");
                let fact = (*text).to_owned();
                self.parked.push(Parked { part: *part, epoch: *epoch, seq: *seq, fact, why });
            }
        }
        Ok(())
    }

    async fn decide<T: Tx>(&mut self, tx: &mut T, commands: &[Command]) -> Result<Vec<Answer>, Fault> {
        let mut answers = Vec::with_capacity(commands.len());
        for command in commands {
            answers.push(self.decide_one(tx, command).await?);
        }
        Ok(answers)
    }

    async fn decide_one<T: Tx>(&mut self, tx: &mut T, command: &Command) -> Result<Answer, Fault> {
        let mut wanted = Vec::new();
        self.part.inventory.wants(command, self.now, &mut wanted);
        if !wanted.is_empty() {
            let now = self.now;
            load(tx, &mut self.part, std::slice::from_ref(command), |_| now).await?;
        }
        Ok(self.part.inventory.apply(command, self.now))
    }

    fn picture(&self) -> Picture {
        let inventory = &self.part.inventory;
        let stocks = self.part.revisions.keys().filter_map(|sku| Some((sku.clone(), inventory.stock(sku)?.clone())));
        let ids = self.part.before.keys().chain(&inventory.changes().holds);
        let holds = ids.filter_map(|id| Some((*id, inventory.find_hold(*id)?.clone())));
        Picture { stocks: stocks.collect(), holds: holds.collect() }
    }

    /// What the commands changed, beyond what was written down before them.
    fn effects(&self, before: &Picture) -> Vec<Effect> {
        let (inventory, mut effects) = (&self.part.inventory, Vec::new());
        let changes = inventory.changes();
        for sku in &changes.stocks {
            let loaded = self.part.follows.as_ref().and_then(|follows| follows.stocks.get(sku));
            let was = before.stocks.get(sku).or(loaded);
            if let (Some(was), None) = (was, inventory.stock(sku)) {
                // Units that come back by a step that the hot store has not been told of yet do so after the SKU is gone.
                let moved = Moves { available: -(was.available as i64), ..Moves::default() };
                effects.push(Effect::Stock { sku: sku.clone(), moved, terms: None });
            }
            effects.extend(stock_effect(sku, was, inventory.stock(sku)));
        }
        let mut has: HashMap<_, i64> = HashMap::new();
        let mut seen = HashSet::new();
        for id in before.holds.keys().chain(&changes.holds).filter(|id| seen.insert(**id)) {
            let Some(hold) = inventory.find_hold(*id) else { continue };
            let was = before.holds.get(id).or_else(|| self.part.before.get(id));
            if was == Some(hold) {
                continue;
            }
            effects.extend(hold_effect(was, hold));
            if let Some(customer) = &hold.customer_id {
                let was = was.filter(|was| was.status == HoldStatus::Held).map(|was| &was.lines);
                for line in was.into_iter().flatten() {
                    *has.entry((customer, &line.sku)).or_default() -= line.quantity.get() as i64;
                }
                for line in hold.lines.iter().filter(|_| hold.status == HoldStatus::Held) {
                    *has.entry((customer, &line.sku)).or_default() += line.quantity.get() as i64;
                }
            }
        }
        for id in &changes.orders {
            if let Some((file, Mark::New)) = inventory.order_change(id)
                && let Some(order) = &file.order
            {
                effects.push(Effect::Confirmed { order: id.clone(), hold: order.hold_id });
            }
        }
        for (customer, sku, units) in &changes.bought {
            *has.entry((customer, sku)).or_default() += units;
        }
        let mut has: Vec<_> = has.into_iter().filter(|(_, units)| *units != 0).collect();
        has.sort();
        let told = |((customer, sku), units): ((&holdfast_domain::CustomerId, &Sku), i64)| Effect::Has {
            customer: customer.clone(),
            sku: sku.clone(),
            units,
        };
        effects.extend(has.into_iter().map(told));
        effects.extend(self.waiting_effects());
        effects
    }

    /// SKUs of which there were too few units for an answer. Only of a frozen SKU does the ledger know how many there are:
    /// elsewhere, more may have lapsed than it was told.
    fn short_of(&self, commands: &[Command], answers: &[Answer]) -> BTreeSet<Sku> {
        let inventory = &self.part.inventory;
        let is_short = |answer: &Answer| {
            matches!(answer, Err(Refusal::StockGone(_) | Refusal::SoldOut { .. } | Refusal::CustomerLimit { .. }))
        };
        let mut jobs = inventory.changes().jobs.iter().filter_map(|key| inventory.job_change(key));
        let is_gone = |(job, _): (&Job, Mark)| job.reason == JobReason::StockGone;
        if !answers.iter().any(is_short) && !jobs.any(is_gone) {
            return BTreeSet::new();
        }
        let asked = commands.iter().filter_map(|command| match command {
            Command::Change { lines, .. } => lines.as_ref(),
            _ => None,
        });
        let lines = self.part.before.values().map(|hold| &hold.lines).chain(asked).flatten();
        lines.map(|line| line.sku.clone()).filter(|sku| inventory.stock(sku).is_some()).collect()
    }

    fn waiting_effects(&self) -> Vec<Effect> {
        let inventory = &self.part.inventory;
        let waits = |status| matches!(status, PaymentStatus::Unmatched | PaymentStatus::NeedsAttention);
        let mut effects = Vec::new();
        for key in &inventory.changes().payments {
            let Some((payment, mark)) = inventory.payment_change(key) else { continue };
            let Some(OrderRef::Order(order)) = &payment.order else { continue };
            let was =
                mark != Mark::New && self.part.follows.as_ref().is_some_and(|follows| follows.waiting.contains(key));
            let more = i64::from(waits(payment.status)) - i64::from(was);
            if more != 0 {
                effects.push(Effect::Waits { order: order.clone(), payments: more });
            }
        }
        effects
    }
}

fn stock_effect(sku: &Sku, was: Option<&Stock>, is: Option<&Stock>) -> Option<Effect> {
    match (was, is) {
        (None, Some(is)) => Some(Effect::Made { sku: sku.clone(), available: is.available, terms: terms(is) }),
        (Some(_), None) => Some(Effect::Removed(sku.clone())),
        (Some(was), Some(is)) if was != is => {
            let more = |was: u64, is: u64| is as i64 - was as i64;
            let moved = Moves {
                available: more(was.available, is.available),
                held: more(was.held, is.held),
                sold: more(was.sold, is.sold),
            };
            let is_other = was.version != is.version || was.limit_per_customer != is.limit_per_customer;
            Some(Effect::Stock { sku: sku.clone(), moved, terms: is_other.then(|| terms(is)) })
        }
        _ => None,
    }
}

fn terms(stock: &Stock) -> Terms {
    Terms { limit: stock.limit_per_customer, version: stock.version }
}

fn hold_effect(was: Option<&Hold>, hold: &Hold) -> Option<Effect> {
    let claimed = was.is_some_and(|was| was.status == HoldStatus::Held);
    let skus = was.into_iter().flat_map(|was| &was.lines).map(|line| line.sku.clone()).collect();
    if hold.status == HoldStatus::Held {
        Some(Effect::Live { hold: Box::new(hold.clone()), skus })
    } else if claimed {
        Some(Effect::Ended { hold: hold.id, order: hold.order_id.clone(), skus })
    } else {
        None
    }
}

/// What the effects touch although it was not frozen: every hold, SKUs that others may take units of, and partitions that
/// do not know the step.
fn beyond(effects: &[Effect], step: &Step, short: BTreeSet<Sku>) -> Option<Frozen> {
    let (frozen, mut more) = (&step.frozen, Frozen { skus: short, ..Frozen::default() });
    for effect in effects {
        match effect {
            Effect::Stock { sku, .. } | Effect::Made { sku, .. } | Effect::Removed(sku) if needs_frozen(effect) => {
                more.skus.insert(sku.clone());
            }
            Effect::Ended { hold, order, .. } => {
                more.holds.insert(*hold, step.partitions.of_order(order));
            }
            Effect::Live { hold, .. } => {
                more.holds.insert(hold.id, step.partitions.of_order(&hold.order_id));
            }
            // A hold that is made for it now could never be written down.
            Effect::Confirmed { order, hold } if !frozen.marked.contains(hold) => {
                more.orders.insert(order.clone());
            }
            _ => {}
        }
        more.parts.extend(step.partitions.of_effect(effect));
    }
    let is_within = more.holds.keys().all(|id| frozen.holds.contains_key(id))
        && more.skus.is_subset(&frozen.skus)
        && more.orders.is_subset(&frozen.orders)
        && more.parts.is_subset(&frozen.parts);
    (!is_within).then_some(more)
}

/// Whether the effect takes units that a shopper might take at the same moment, or changes what shoppers are told.
fn needs_frozen(effect: &Effect) -> bool {
    match effect {
        // Units that come back, or go from held to sold, are nobody else's.
        Effect::Stock { moved, terms, .. } => moved.available < 0 || terms.is_some(),
        _ => true,
    }
}

/// Begins, works and ends one transaction.
pub(super) async fn once<S: Store>(store: &S, step: &Step, policy: &Policy, seed: u64) -> Result<Stepped, Fault> {
    let mut tx = store.begin(Mode::Locking).await?;
    match inside(&mut tx, step, policy, seed).await {
        Ok(done @ Stepped::Done { .. }) => tx.commit().await.map(|()| done),
        Ok(undone) => {
            tx.roll_back().await;
            Ok(undone)
        }
        Err(Fault::Again(why)) => {
            tx.roll_back().await;
            Err(Fault::Again(why))
        }
        // A connection that failed us is not waited for once more.
        Err(fault) => Err(fault),
    }
}
