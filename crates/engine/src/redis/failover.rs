//! The failover audit: before a server that is new to us serves, Redis is made to say what the ledger says.
//!
//! Its epoch is raised, in the ledger and in Redis, so that nothing decided before counts any more. What is left of its log
//! is written down. Then the ledger knows everything that was answered and not lost, and the partition is filled from it
//! under the new epoch's keys. Whoever dies on the way leaves a partition that is shut; another auditor begins anew.

use super::core::{Core, ledger_error, told};
use super::script::{Call, GATE, SERVE, Told, VERBS};
use crate::EngineError;
use crate::clock::monotonic;
use crate::sql::{Drained, Effect, HotRow, Kind};
use holdfast_domain::{Hold, Sku};
use redis::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Somebody else's audit is left alone for so long.
const PATIENCE_MS: i64 = 10_000;
/// How often the ledger is told that an audit goes on.
const KEEP: Duration = Duration::from_secs(2);
/// What one script of an audit puts in.
const BATCH: usize = 500;

/// A partition that does not serve.
struct Look {
    row: HotRow,
    server: String,
    is_fine: bool,
    /// The epoch that Redis says.
    there: i64,
}

/// A partition under audit.
struct Audited {
    row: HotRow,
    server: String,
    /// The epoch whose log and counters are the last there were.
    before: i64,
    call: Call,
    repaired: u64,
    /// When the ledger was last told that this audit goes on.
    kept: Instant,
}

impl Core {
    /// Looks at the partitions that do not serve: opens them if they are in order, audits them if not. An error leaves them
    /// shut. Carts lie in several partitions, and what one of them forgot concerns the others: all are audited together.
    pub(super) async fn audit_shut(&self) -> Result<(), EngineError> {
        let mut looks = Vec::new();
        for (part, _) in self.shut_gates() {
            looks.push(self.look_at(part).await?);
        }
        if looks.iter().all(|look| look.is_fine) {
            for look in looks {
                self.open(look.row.part, look.row.epoch, &look.server, look.row.drained_seq);
            }
            return Ok(());
        }
        if looks.len() < self.partitions.count() as usize {
            self.shut_all("another partition is audited");
            return Err(EngineError::Auditing("other partitions have to be audited too".into()));
        }
        let mut claimed = Vec::with_capacity(looks.len());
        for look in looks {
            // Who has the first may claim the others: two nodes never have some each.
            claimed.push(self.claim(look).await?);
        }
        self.audit_claimed(claimed).await
    }

    async fn look_at(&self, part: u32) -> Result<Look, EngineError> {
        let server = self.net.server(part).await.map_err(told)?;
        let gate =
            self.net.run(part, Some(&server), redis::cmd("GET").arg(self.epoch_key(part))).await.map_err(told)?;
        let gate = super::recover::text(&gate).unwrap_or_default();
        let (now, rows) = self.ledger.rows(&[part]).await.map_err(ledger_error)?;
        let Some(row) = rows.into_iter().next() else {
            return Err(EngineError::Corrupt(format!("the ledger does not know partition {part}")));
        };
        if row.is_auditing && now.millis() - row.since.millis() < PATIENCE_MS {
            return Err(EngineError::Auditing("another node audits it".into()));
        }
        let is_fine = !row.is_auditing && row.server == server && gate == row.epoch.to_string();
        // Redis may have been in later epochs than the ledger knows of: with another ledger, or before the ledger was taken
        // back from a backup. What lies there must not be taken for ours.
        let there = gate.trim_start_matches('a').parse().unwrap_or(0);
        Ok(Look { row, server, is_fine, there })
    }

    /// Raises the epoch in the ledger, then in Redis: from then on, nothing of before counts.
    async fn claim(&self, Look { row, server, there, .. }: Look) -> Result<Audited, EngineError> {
        let (part, before) = (row.part, row.server.clone());
        let Some(row) = self.ledger.claim(&row, there).await.map_err(ledger_error)? else {
            return Err(EngineError::Auditing("another node has begun to audit it".into()));
        };
        let (keys, epoch) = ([self.epoch_key(part).into_bytes()], row.epoch.to_string());
        let args = [epoch.clone().into_bytes()];
        let raised = self.net.eval(part, Some(&server), &GATE, &keys, &args).await.map_err(told)?;
        if super::recover::text(&raised) != Some(format!("a{epoch}")) {
            return Err(EngineError::Auditing("it is in a later epoch".into()));
        }
        tracing::warn!(part, epoch, server, before, "a partition is audited before it serves");
        let before = row.drained_epoch;
        Ok(Audited { row, server, before, call: Call::default(), repaired: 0, kept: monotonic() })
    }

    async fn audit_claimed(&self, mut claimed: Vec<Audited>) -> Result<(), EngineError> {
        self.drain_rest(&mut claimed).await?;
        let mut by_part: BTreeMap<u32, &mut Audited> = claimed.iter_mut().map(|a| (a.row.part, a)).collect();
        self.fill(&mut by_part).await?;
        for audited in &claimed {
            self.reopen(audited).await?;
        }
        Ok(())
    }

    /// What the servers still have of the logs and the ledger does not.
    async fn drain_rest(&self, claimed: &mut [Audited]) -> Result<(), EngineError> {
        let mut after: Vec<i64> = claimed.iter().map(|audited| audited.row.drained_seq).collect();
        let mut drained: Vec<Drained> = Vec::with_capacity(claimed.len());
        for (audited, after) in claimed.iter_mut().zip(&mut after) {
            let (part, epoch) = (audited.row.part, audited.row.epoch);
            let mut entries = Vec::new();
            loop {
                self.keep(audited).await?;
                let more = self.read_log(part, audited.before, &audited.server, *after).await?;
                let Some(last) = more.last() else { break };
                *after = last.seq;
                entries.extend(more);
                // Of a single partition, no entry waits for another log.
                if self.partitions.count() == 1 {
                    let entries = std::mem::take(&mut entries);
                    self.write_down(vec![Drained { part, epoch, entries, upto: 0 }], Kind::Audit).await?;
                }
            }
            drained.push(Drained { part, epoch, entries, upto: 0 });
        }
        if drained.iter().any(|drained| !drained.entries.is_empty()) {
            self.write_down(drained, Kind::AuditLast).await?;
        }
        Ok(())
    }

    async fn fill(&self, audited: &mut BTreeMap<u32, &mut Audited>) -> Result<(), EngineError> {
        let latest = self.ledger.latest().await.map_err(ledger_error)?.millis().to_string();
        for audited in audited.values_mut() {
            self.put(audited, ["clock".to_owned(), latest.clone()]).await?;
        }
        let mut after: Option<Sku> = None;
        while let Some(last) = {
            let page = self.ledger.stocks_after(after.as_ref()).await.map_err(ledger_error)?;
            for stock in &page {
                let part = self.partitions.of_sku(&stock.sku);
                if let Some(audited) = audited.get_mut(&part) {
                    let before = audited.before.to_string();
                    let limit = stock.limit_per_customer.map(|limit| limit.to_string()).unwrap_or_default();
                    let numbers = [stock.available, stock.held, stock.sold].map(|n| n.to_string());
                    let args = ["stock".into(), stock.sku.to_string()].into_iter().chain(numbers);
                    self.put(audited, args.chain([limit, stock.version.to_string(), before])).await?;
                }
            }
            page.into_iter().last()
        } {
            after = Some(last.sku);
        }
        self.fill_holds(audited).await?;
        self.fill_orders(audited).await?;
        for audited in audited.values_mut() {
            self.flush(audited).await?;
        }
        Ok(())
    }

    async fn fill_holds(&self, audited: &mut BTreeMap<u32, &mut Audited>) -> Result<(), EngineError> {
        let mut after = None;
        loop {
            let page = self.ledger.held_after(after).await.map_err(ledger_error)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            for hold in &page {
                self.fill_hold(audited, hold).await?;
            }
        }
    }

    async fn fill_hold(&self, audited: &mut BTreeMap<u32, &mut Audited>, hold: &Hold) -> Result<(), EngineError> {
        for part in self.partitions.of_whole_hold(hold) {
            let Some(audited) = audited.get_mut(&part) else { continue };
            for (kind, args) in self.live_kinds(hold, part) {
                self.put(audited, [kind.to_owned()].into_iter().chain(args)).await?;
            }
            for line in hold.lines.iter().filter(|line| self.partitions.of_sku(&line.sku) == part) {
                if let Some(customer) = &hold.customer_id {
                    let units = line.quantity.get() as i64;
                    let has = Effect::Has { customer: customer.clone(), sku: line.sku.clone(), units };
                    self.put_effect(audited, &has).await?;
                }
            }
        }
        Ok(())
    }

    async fn fill_orders(&self, audited: &mut BTreeMap<u32, &mut Audited>) -> Result<(), EngineError> {
        let mut after = None;
        loop {
            let page = self.ledger.orders_after(after.as_ref()).await.map_err(ledger_error)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (order, hold) in page {
                self.fill_effect(audited, &Effect::Confirmed { order, hold }).await?;
            }
        }
        let mut after = None;
        loop {
            let page = self.ledger.bought_after(after.as_ref().map(|(c, s)| (c, s))).await.map_err(ledger_error)?;
            let Some((customer, sku, _)) = page.last() else { break };
            after = Some((customer.clone(), sku.clone()));
            for (customer, sku, units) in page {
                self.fill_effect(audited, &Effect::Has { customer, sku, units }).await?;
            }
        }
        let mut after = 0;
        loop {
            let page = self.ledger.waiting_after(after).await.map_err(ledger_error)?;
            let Some((last, ..)) = page.last() else { return Ok(()) };
            after = *last;
            for (_, order, _) in page {
                self.fill_effect(audited, &Effect::Waits { order, payments: 1 }).await?;
            }
        }
    }

    async fn fill_effect(&self, audited: &mut BTreeMap<u32, &mut Audited>, effect: &Effect) -> Result<(), EngineError> {
        for part in self.partitions.of_effect(effect) {
            if let Some(audited) = audited.get_mut(&part) {
                self.put_effect(audited, effect).await?;
            }
        }
        Ok(())
    }

    async fn put_effect(&self, audited: &mut Audited, effect: &Effect) -> Result<(), EngineError> {
        for (name, args) in self.effect_args(effect, audited.row.part) {
            self.put(audited, [name.to_owned()].into_iter().chain(args)).await?;
        }
        Ok(())
    }

    async fn put(&self, audited: &mut Audited, args: impl IntoIterator<Item = String>) -> Result<(), EngineError> {
        audited.call.verb("put", args);
        if audited.call.verbs() >= BATCH { self.flush(audited).await } else { Ok(()) }
    }

    /// An audit that takes long is no audit that somebody has left.
    async fn keep(&self, audited: &mut Audited) -> Result<(), EngineError> {
        if audited.kept.elapsed() < KEEP {
            return Ok(());
        }
        if !self.ledger.keep(audited.row.part, audited.row.epoch).await.map_err(ledger_error)? {
            return Err(EngineError::Auditing("another node has taken the audit over".into()));
        }
        audited.kept = monotonic();
        Ok(())
    }

    async fn flush(&self, audited: &mut Audited) -> Result<(), EngineError> {
        self.keep(audited).await?;
        let call = std::mem::take(&mut audited.call);
        if call.verbs() == 0 {
            return Ok(());
        }
        let (part, epoch) = (audited.row.part, audited.row.epoch);
        let (keys, args) =
            ([self.epoch_key(part).into_bytes()], call.args(&format!("a{epoch}"), None, 0, &audited.server));
        let value = self.net.eval(part, Some(&audited.server), &VERBS, &keys, &args).await.map_err(told)?;
        let answers = match Told::read(value) {
            Some(Told::Done { answers, .. }) => answers,
            Some(Told::Server(_)) => {
                self.net.forget(part, &audited.server).await;
                return Err(EngineError::Auditing("its server was a replica in between".into()));
            }
            _ => return Err(EngineError::Auditing("another node has taken the audit over".into())),
        };
        for reply in answers.iter().filter(|reply| reply.len() > 1) {
            audited.repaired += 1;
            let moved = [1, 2, 3].map(|at| reply.number(at).unwrap_or_default());
            tracing::warn!(
                part,
                ?moved,
                "a SKU's available, held and sold units were otherwise in Redis; the ledger counts"
            );
        }
        Ok(())
    }

    async fn reopen(&self, audited: &Audited) -> Result<(), EngineError> {
        let (part, epoch) = (audited.row.part, audited.row.epoch);
        if !self.ledger.release(part, epoch, &audited.server).await.map_err(ledger_error)? {
            return Err(EngineError::Auditing("another node has taken the audit over".into()));
        }
        let (keys, args) = ([self.epoch_key(part).into_bytes()], [epoch.to_string().into_bytes()]);
        let served = self.net.eval(part, Some(&audited.server), &SERVE, &keys, &args).await.map_err(told)?;
        if !matches!(served, Value::Int(1)) {
            return Err(EngineError::Auditing("another node has taken the audit over".into()));
        }
        self.open(part, epoch, &audited.server, 0);
        self.note_outdated(part);
        tracing::warn!(part, epoch, repaired = audited.repaired, "a partition serves again after its audit");
        Ok(())
    }

    /// Removes what earlier epochs of these partitions left behind; a bounded pass, again and again until there is nothing.
    pub(super) async fn remove_old(&self, part: u32) -> Result<(), EngineError> {
        let (epoch, server) = self.open_gate(part)?;
        let prefix = format!("{}:{{p{part}}}:e", self.space);
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(format!("{}*", escaped(&prefix))).arg("COUNT").arg(1000);
            let Value::Array(found) = self.net.run(part, Some(&server), &scan).await.map_err(told)? else {
                return Err(EngineError::Corrupt("SCAN gave an unreadable answer".into()));
            };
            let [next, Value::Array(keys)] = found.as_slice() else { return Ok(()) };
            let of =
                |key: &String| key.strip_prefix(&prefix).and_then(|rest| rest.split_once(':')?.0.parse::<i64>().ok());
            let keys = keys.iter().filter_map(super::recover::text);
            let old: BTreeSet<String> = keys.filter(|key| of(key).is_some_and(|of| of < epoch)).collect();
            if !old.is_empty() {
                let mut unlink = redis::cmd("UNLINK");
                old.iter().for_each(|key| {
                    unlink.arg(key);
                });
                self.net.run(part, Some(&server), &unlink).await.map_err(told)?;
            }
            cursor = super::recover::text(next).unwrap_or_default();
            if cursor == "0" || cursor.is_empty() {
                return Ok(());
            }
        }
    }
}

/// A prefix as a pattern that means itself.
fn escaped(prefix: &str) -> String {
    prefix.chars().flat_map(|c| ['\\', c].into_iter().skip(usize::from(!"*?[]\\^-".contains(c)))).collect()
}
