//! Commands that Redis does not decide alone, in three steps.
//!
//! 1. *Freeze* in Redis what they concern, under a fresh token: a frozen hold is not expired, a frozen SKU takes no holds.
//! 2. One transaction of the ledger: write down what was logged until then, decide by the rules, note the effects under the
//!    token. What was decided about something that is not frozen is undone, and it is frozen too.
//! 3. *Apply* the effects in Redis and let go.
//!
//! A node may die after any of them: whoever finds the token asks the ledger, and finishes or gives up (`recover.rs`).

use super::core::{Core, Done, fresh_token, ledger_error, unreadable};
use super::holds::{PATIENCE, cart_text, read_text, rest_text};
use super::script::Call;
use crate::clock::monotonic;
use crate::sql::{Drained, Effect, Fault, Frozen, Kind, Step, Stepped};
use crate::{Answer, EngineError};
use holdfast_domain::{Command, Hold, OrderRef, PaymentKey, Recorded, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a step is frozen anew because it turned out to concern more, or because a cart was still being logged.
const WIDENINGS: u32 = 40;
const UNRIPE: Duration = Duration::from_millis(5);

/// What commands are about to touch, as far as it is known before they are decided.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) frozen: Frozen,
    /// Somebody only looks: what has lapsed is left as it is.
    pub(super) only_looks: bool,
}

/// What one partition answered to a freezing.
enum Froze {
    Holds(Vec<Hold>),
    /// With the token that is in the way, if one is.
    Busy(Option<String>),
}

/// What was frozen.
pub(super) struct Held {
    token: String,
    frozen: Frozen,
    now: Time,
    /// Of each partition, the epoch in which it was frozen and the last log entry then.
    at: BTreeMap<u32, (i64, i64)>,
}

impl Core {
    /// Decides commands together.
    pub(super) async fn decide(
        &self,
        commands: Vec<Command>,
        mut wanted: Wanted,
        stale: Vec<PaymentKey>,
        now: Option<Time>,
    ) -> Result<Vec<Answer>, EngineError> {
        commands.iter().for_each(|command| self.want(command, &mut wanted));
        for _ in 0..WIDENINGS {
            self.drain_down(&wanted.frozen.parts).await?;
            let held = self.freeze(&wanted, now).await?;
            match self.work(&held, &commands, &stale).await {
                Ok(Stepped::Done { answers, effects, .. }) => {
                    self.finish(&held, &effects).await;
                    return Ok(answers);
                }
                Ok(Stepped::Beyond(more)) => {
                    self.let_go(&held).await?;
                    self.retries.fetch_add(1, Ordering::Relaxed);
                    wanted.frozen.skus.extend(more.skus);
                    wanted.frozen.holds.extend(more.holds);
                    wanted.frozen.orders.extend(more.orders);
                    wanted.frozen.parts.extend(more.parts);
                    self.want_order(None, &mut wanted);
                }
                Ok(Stepped::GivenUp) => {
                    self.retries.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Stepped::Unripe) => {
                    self.let_go(&held).await?;
                    tokio::time::sleep(UNRIPE).await;
                }
                Ok(other) => {
                    let _ = self.let_go(&held).await;
                    self.note_step(&other)?;
                }
                Err(fault) => return Err(self.failed(&held, fault).await),
            }
        }
        Err(EngineError::Unavailable("gave up: what the commands concern kept changing".into()))
    }

    fn want(&self, command: &Command, wanted: &mut Wanted) {
        let frozen = &mut wanted.frozen;
        let order = match command {
            Command::SetStock(asked) => {
                frozen.skus.insert(asked.sku.clone());
                None
            }
            Command::AdjustStock { sku, .. } | Command::RemoveStock { sku, .. } => {
                frozen.skus.insert(sku.clone());
                None
            }
            Command::Change { hold, lines, .. } => {
                frozen.skus.extend(lines.iter().flatten().map(|line| line.sku.clone()));
                Some(OrderRef::Hold(*hold))
            }
            Command::Extend { hold, .. } | Command::Release { hold } | Command::Confirm { hold, .. } => {
                Some(OrderRef::Hold(*hold))
            }
            Command::Return { order, .. } => {
                frozen.parts.insert(self.partitions.of_order(order));
                None
            }
            Command::Settle(fact) => fact.order.clone(),
            Command::Record(record) => match &record.what {
                Recorded::Waiting(id) => Some(OrderRef::Hold(*id)),
                Recorded::Held(_) | Recorded::Expired(_) => None,
            },
            // Which order a job is about, the ledger knows.
            Command::Hold(_) | Command::Sweep { .. } | Command::Job(_) => None,
        };
        self.want_order(order.as_ref(), wanted);
        if wanted.frozen.parts.is_empty() {
            wanted.frozen.parts.insert(0);
        }
    }

    /// What a payment or a command names.
    pub(super) fn want_order(&self, named: Option<&OrderRef>, wanted: &mut Wanted) {
        match named {
            Some(OrderRef::Hold(id)) => {
                wanted.frozen.holds.insert(*id, self.partitions.of_hold(*id));
            }
            Some(OrderRef::Order(order)) => {
                wanted.frozen.orders.insert(order.clone());
            }
            None => {}
        }
        let parts = &mut wanted.frozen.parts;
        parts.extend(wanted.frozen.holds.values());
        parts.extend(wanted.frozen.skus.iter().map(|sku| self.partitions.of_sku(sku)));
        parts.extend(wanted.frozen.orders.iter().map(|order| self.partitions.of_order(order)));
    }

    /// Before anything is frozen, the ledger catches up, so that it is frozen for a short time only.
    async fn drain_down(&self, parts: &BTreeSet<u32>) -> Result<(), EngineError> {
        for part in parts {
            while self.waiting(*part) > 8 && self.drain_some().await? > 0 {}
        }
        Ok(())
    }

    /// Freezes all of it or nothing; waits for others who have some of it.
    async fn freeze(&self, wanted: &Wanted, now: Option<Time>) -> Result<Held, EngineError> {
        let (start, mut pause) = (monotonic(), Duration::from_millis(1));
        loop {
            let mut held = Held {
                token: fresh_token(),
                frozen: wanted.frozen.clone(),
                now: now.unwrap_or_default(),
                at: BTreeMap::new(),
            };
            let busy = match self.try_freeze(&mut held, wanted, now).await {
                Ok(None) => return Ok(held),
                Ok(Some(busy)) => busy,
                Err(error) => {
                    // What was frozen before it failed is let go, by whoever finds it if not by us.
                    let _ = self.let_go(&held).await;
                    return Err(error);
                }
            };
            self.let_go(&held).await?;
            if start.elapsed() > PATIENCE {
                return Err(EngineError::Unavailable("what the request concerns is being decided about".into()));
            }
            if let Some(token) = busy {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(50));
                if start.elapsed() > PATIENCE / 2 {
                    self.recover(&token, now).await?;
                }
            }
        }
    }

    /// `Some` when it has to be tried again: with the token that is in the way, if one is.
    async fn try_freeze(
        &self,
        held: &mut Held,
        wanted: &Wanted,
        now: Option<Time>,
    ) -> Result<Option<Option<String>>, EngineError> {
        let mut found = Vec::new();
        for part in wanted.frozen.parts.clone() {
            let mut args = Vec::new();
            for sku in wanted.frozen.skus.iter().filter(|sku| self.partitions.of_sku(sku) == part) {
                args.extend([if wanted.only_looks { "look" } else { "sku" }.into(), sku.to_string()]);
            }
            for (id, _) in wanted.frozen.holds.iter().filter(|(_, home)| **home == part) {
                args.extend(["hold".into(), id.to_string()]);
            }
            for order in wanted.frozen.orders.iter().filter(|order| self.partitions.of_order(order) == part) {
                args.extend(["order".into(), order.to_string()]);
            }
            match self.freeze_here(held, part, args, now).await? {
                Froze::Holds(holds) => found.extend(holds),
                Froze::Busy(busy) => return Ok(Some(busy)),
            }
        }
        self.freeze_parts(held, found, now).await
    }

    /// One partition's share. May be repeated under the same token, with more.
    async fn freeze_here(
        &self,
        held: &mut Held,
        part: u32,
        items: Vec<String>,
        now: Option<Time>,
    ) -> Result<Froze, EngineError> {
        held.frozen.parts.insert(part);
        let args: Vec<String> = [held.token.clone()].into_iter().chain(items).collect();
        let start = monotonic();
        loop {
            let Done { epoch, now: moment, seq, answers } = self.call(part, &Call::one("freeze", &args), now).await?;
            held.at.insert(part, (epoch, seq));
            held.now = held.now.max(moment);
            let answer = answers.first().ok_or_else(unreadable)?;
            let told = || (1..answer.len()).filter_map(|at| answer.text(at)).filter(|text| !text.is_empty());
            return match answer.text(0) {
                Some("frozen") => {
                    let holds: Result<Vec<_>, _> = told().map(read_text).collect();
                    Ok(Froze::Holds(holds.map_err(EngineError::from)?))
                }
                Some("busy") => Ok(Froze::Busy(told().next().map(str::to_owned))),
                // More has lapsed than one script may expire.
                Some("again") => continue,
                // Carts are being made of a SKU that takes no others by now.
                Some("waits") if start.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    continue;
                }
                Some("waits") => Ok(Froze::Busy(None)),
                _ => Err(unreadable()),
            };
        }
    }

    /// The parts of the holds that were found. One that has lost a part has lapsed, whatever its home says.
    async fn freeze_parts(
        &self,
        held: &mut Held,
        found: Vec<Hold>,
        now: Option<Time>,
    ) -> Result<Option<Option<String>>, EngineError> {
        for hold in found {
            let home = self.partitions.of_order(&hold.order_id);
            if self.partitions.count() > 1 {
                for part in self.partitions.of_lines(&hold.lines) {
                    let items = vec!["part".into(), hold.id.to_string()];
                    match self.freeze_here(held, part, items, now).await? {
                        Froze::Holds(holds) if holds.len() == 1 => {}
                        Froze::Holds(_) => {
                            self.let_go(held).await?;
                            self.lapse(&hold, now).await?;
                            return Ok(Some(None));
                        }
                        Froze::Busy(busy) => return Ok(Some(busy)),
                    }
                }
            }
            held.frozen.marked.insert(hold.id);
            held.frozen.holds.insert(hold.id, home);
        }
        Ok(None)
    }

    /// The second step. What was logged by the time of the freezing is part of it.
    async fn work(&self, held: &Held, commands: &[Command], stale: &[PaymentKey]) -> Result<Stepped, Fault> {
        let _one = self.draining.lock().await;
        let mut drained = Vec::with_capacity(held.frozen.parts.len());
        for part in self.partitions.all() {
            let (now, server) = self.open_gate(part).map_err(|error| fault(&error))?;
            let (epoch, seq) = held.at.get(&part).copied().unwrap_or((now, 0));
            if now != epoch {
                return Ok(Stepped::Stale(part));
            }
            let (mut entries, mut after) = (Vec::new(), self.drained_to(part));
            loop {
                let more = self.read_log(part, epoch, &server, after).await.map_err(|error| fault(&error))?;
                let Some(last) = more.last() else { break };
                after = last.seq;
                entries.extend(more);
            }
            drained.push(Drained { part, epoch, entries, upto: seq });
        }
        let step = Step {
            drained,
            commands: commands.to_vec(),
            now: held.now,
            token: Some(held.token.clone()),
            frozen: held.frozen.clone(),
            partitions: self.partitions,
            stale: stale.to_vec(),
            kind: Kind::Serve,
        };
        let stepped = self.ledger.step(&step).await?;
        if matches!(stepped, Stepped::Done { .. }) {
            // What it wrote down is noted whatever comes of the rest.
            let _ = self.note_step(&stepped);
            if let Err(why) = self.lapse_others(self.ended(&step.drained)).await {
                tracing::debug!(%why, "parts of holds that have ended stay until they lapse");
            }
        }
        Ok(stepped)
    }

    /// The third step. The ledger has it: what fails here is done by whoever finds the token.
    async fn finish(&self, held: &Held, effects: &[Effect]) {
        match self.apply(&held.token, effects, &held.frozen.parts).await {
            Ok(()) => {
                // Where it is not, the next pass does it.
                if let Err(why) = self.forget(std::slice::from_ref(&held.token), Time::default()).await {
                    tracing::debug!(%why, "an applied step is forgotten later");
                }
            }
            Err(error) => tracing::warn!(%error, token = held.token, "a decided step is applied later"),
        }
    }

    /// Keeps it still for whoever only looks.
    pub(super) async fn hold_still(&self, wanted: &Wanted) -> Result<Held, EngineError> {
        self.drain_down(&wanted.frozen.parts).await?;
        self.freeze(wanted, None).await
    }

    pub(super) async fn let_go(&self, held: &Held) -> Result<(), EngineError> {
        self.apply(&held.token, &[], &held.frozen.parts).await
    }

    async fn failed(&self, held: &Held, fault: Fault) -> EngineError {
        match fault {
            // It may be committed at any moment from now on: the token stays until the ledger says, which is asked at once so
            // that nobody waits for it longer than need be.
            Fault::Unknown(why) => {
                let recovered = tokio::time::timeout(self.timeout, self.recover(&held.token, None)).await;
                if !matches!(recovered, Ok(Ok(()))) {
                    tracing::debug!(token = held.token, "a step of unknown outcome is done with later");
                }
                EngineError::Unknown(why)
            }
            other => {
                let _ = self.let_go(held).await;
                ledger_error(other)
            }
        }
    }

    /// Forgets steps that every partition was told. The ledger refuses if one of them is in another epoch by now: then it was
    /// a server of before that was told.
    pub(super) async fn forget(&self, tokens: &[String], given_up_before: Time) -> Result<(), EngineError> {
        let mut epochs = Vec::with_capacity(self.partitions.count() as usize);
        for part in self.partitions.all() {
            epochs.push((part, self.open_gate(part)?.0));
        }
        match self.ledger.forget(tokens, &epochs, given_up_before).await.map_err(ledger_error)? {
            None => Ok(()),
            Some(part) => self.note_step(&Stepped::Stale(part)),
        }
    }

    /// Tells every partition its effects, once.
    pub(super) async fn apply(
        &self,
        token: &str,
        effects: &[Effect],
        parts: &BTreeSet<u32>,
    ) -> Result<(), EngineError> {
        let mut calls: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for part in parts {
            calls.insert(*part, vec![token.to_owned()]);
        }
        for effect in effects {
            for part in self.partitions.of_effect(effect) {
                let args = calls.entry(part).or_insert_with(|| vec![token.to_owned()]);
                for (name, told) in self.effect_args(effect, part) {
                    args.extend([name.to_owned(), told.len().to_string()]);
                    args.extend(told);
                }
            }
        }
        for (part, args) in calls {
            self.call(part, &Call::one("apply", args), None).await?;
        }
        Ok(())
    }

    /// An effect as a partition is told it: names, each with its arguments.
    pub(super) fn effect_args(&self, effect: &Effect, part: u32) -> Vec<(&'static str, Vec<String>)> {
        let text = |number: i64| number.to_string();
        let limit = |limit: Option<u64>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        let one = match effect {
            Effect::Stock { sku, moved, terms } => {
                let version = terms.map(|terms| terms.version.to_string()).unwrap_or_default();
                let moved = [text(moved.available), text(moved.held), text(moved.sold)];
                let terms = [limit(terms.and_then(|terms| terms.limit)), version];
                ("stock", [sku.to_string()].into_iter().chain(moved).chain(terms).collect())
            }
            Effect::Made { sku, available, terms } => {
                ("made", vec![sku.to_string(), available.to_string(), limit(terms.limit), terms.version.to_string()])
            }
            Effect::Removed(sku) => ("removed", vec![sku.to_string()]),
            Effect::Ended { hold, order, .. } => ("ended", vec![hold.to_string(), order.to_string()]),
            Effect::Live { hold, .. } => {
                let mut all: Vec<_> = self.live_kinds(hold, part).into_iter().map(|(_, args)| ("live", args)).collect();
                let has_lines = hold.lines.iter().any(|line| self.partitions.of_sku(&line.sku) == part);
                if self.partitions.count() > 1 && !has_lines {
                    // The part that was here is there no more; the hold is.
                    all.push(("ended", vec![format!("{}/p", hold.id), String::new()]));
                }
                return all;
            }
            Effect::Confirmed { order, hold } => ("confirmed", vec![order.to_string(), hold.to_string()]),
            Effect::Has { customer, sku, units } => ("has", vec![sku.to_string(), customer.to_string(), text(*units)]),
            Effect::Waits { order, payments } => ("waits", vec![order.to_string(), text(*payments)]),
        };
        vec![one]
    }

    /// What a partition keeps of a live hold: all of it, or its home and its part apart.
    pub(super) fn live_kinds(&self, hold: &Hold, part: u32) -> Vec<(&'static str, Vec<String>)> {
        let here: Vec<_> = hold.lines.iter().filter(|line| self.partitions.of_sku(&line.sku) == part).collect();
        let lines = || here.iter().flat_map(|line| [line.sku.to_string(), line.quantity.get().to_string()]);
        let record = |id: String| {
            vec![
                id,
                hold.order_id.to_string(),
                cart_text(&hold.lines, hold.customer_id.as_ref(), hold.money),
                rest_text(hold.payment_ref.as_deref(), hold.metadata.as_deref()),
                hold.created_at.millis().to_string(),
                hold.expires_at.millis().to_string(),
                hold.customer_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            ]
        };
        let with_lines = |mut args: Vec<String>| {
            args.extend(lines());
            args
        };
        if self.partitions.count() == 1 {
            return vec![("hold", with_lines(record(hold.id.to_string())))];
        }
        let mut kinds = Vec::new();
        if self.partitions.of_order(&hold.order_id) == part {
            kinds.push(("hold", record(hold.id.to_string())));
        }
        if !here.is_empty() {
            kinds.push(("part", with_lines(record(format!("{}/p", hold.id)))));
        }
        kinds
    }
}

/// Whatever a reading failed with, nothing was done.
fn fault(error: &EngineError) -> Fault {
    Fault::Unavailable(error.to_string())
}
