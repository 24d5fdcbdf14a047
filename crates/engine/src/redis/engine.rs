//! The engine: holds are decided in Redis, everything else in the ledger with Redis kept still meanwhile.

use super::core::{Core, ledger_error, told, unreadable};
use super::holds::{PATIENCE, Verdict, read_text};
use super::script::Call;
use super::steps::Wanted;
use crate::clock::{monotonic, wall};
use crate::{
    Answer, AuditReport, Engine, EngineError, Health, HoldFilter, LedgerFilter, Note, Now, NumberedEntry, OrderView,
    Page,
};
use async_trait::async_trait;
use holdfast_domain::{
    Command, Hold, HoldId, HoldRequest, Job, OrderId, Outcome, Payment, PaymentKey, Record, Recorded, Sku, Stock, Time,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Lapsed holds that one script expires, at the most.
const SWEEP: u32 = 1000;

/// Stock and holds in Redis, with a database as the ledger.
pub(crate) struct RedisEngine {
    pub(super) core: Arc<Core>,
}

impl Core {
    /// Decides a batch.
    async fn batch(self: &Arc<Self>, batch: Vec<Command>, now: Option<Time>) -> Result<Vec<Answer>, EngineError> {
        let mut answers: Vec<Option<Answer>> = vec![None; batch.len()];
        let is_hold = |command: &Command| matches!(command, Command::Hold(_));
        let numbered: Vec<(usize, Command)> = batch.into_iter().enumerate().collect();
        if now.is_some() {
            // In order, to the letter.
            let mut runs: Vec<Vec<(usize, Command)>> = Vec::new();
            for (at, command) in numbered {
                match runs.last_mut().filter(|run| is_hold(&run[0].1) == is_hold(&command)) {
                    Some(run) => run.push((at, command)),
                    None => runs.push(vec![(at, command)]),
                }
            }
            for run in runs {
                let done = self.run(run, now).await;
                let done = if answers.iter().any(Option::is_some) { done.map_err(halfway) } else { done };
                for (at, answer) in done? {
                    answers[at] = Some(answer);
                }
            }
        } else {
            // They came at the same time from people who do not know of one another.
            let (holds, others): (Vec<_>, Vec<_>) = numbered.into_iter().partition(|(_, command)| is_hold(command));
            let (holds, others) = tokio::join!(self.run(holds, None), self.run(others, None));
            let done = match (holds, others) {
                (Ok(holds), Ok(others)) => holds.into_iter().chain(others),
                // One kind may have been served while the other was not.
                (Err(error), Ok(done)) | (Ok(done), Err(error)) if !done.is_empty() => return Err(halfway(error)),
                (Err(error), Ok(_)) | (Ok(_), Err(error)) => return Err(error),
                (Err(one @ EngineError::Unknown(_)), Err(_)) | (Err(_), Err(one)) => return Err(one),
            };
            for (at, answer) in done {
                answers[at] = Some(answer);
            }
        }
        let all: Option<Vec<Answer>> = answers.into_iter().collect();
        all.ok_or_else(|| EngineError::Corrupt("a command got no answer".into()))
    }

    /// Holds only, or none.
    async fn run(
        self: &Arc<Self>,
        run: Vec<(usize, Command)>,
        now: Option<Time>,
    ) -> Result<Vec<(usize, Answer)>, EngineError> {
        let (mut holds, mut others, mut answers) = (Vec::new(), (Vec::new(), Vec::new()), Vec::new());
        for (at, command) in run {
            match command {
                Command::Hold(asked) => holds.push((at, asked)),
                Command::Sweep { limit } => {
                    let done = self.decide_all(std::mem::take(&mut others), now).await;
                    answers.extend(if answers.is_empty() { done? } else { done.map_err(halfway)? });
                    let swept = self.sweep(limit, now).await;
                    answers.push((at, if answers.is_empty() { swept? } else { swept.map_err(halfway)? }));
                }
                other => {
                    others.0.push(at);
                    others.1.push(other);
                }
            }
        }
        let done = self.decide_all(others, now).await;
        answers.extend(if answers.is_empty() { done? } else { done.map_err(halfway)? });
        answers.extend(self.hold_all(holds, now).await?);
        Ok(answers)
    }

    async fn decide_all(
        &self,
        (at, commands): (Vec<usize>, Vec<Command>),
        now: Option<Time>,
    ) -> Result<Vec<(usize, Answer)>, EngineError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.decide(commands, Wanted::default(), Vec::new(), now).await?;
        Ok(at.into_iter().zip(answers).collect())
    }

    async fn hold_all(
        &self,
        asked: Vec<(usize, Box<HoldRequest>)>,
        now: Option<Time>,
    ) -> Result<Vec<(usize, Answer)>, EngineError> {
        let mut open: Vec<(usize, HoldId, Box<HoldRequest>)> = asked
            .into_iter()
            .map(|(at, asked)| {
                let home = self.partitions.of_order(&asked.order_id);
                (at, self.fresh_id(now, home), asked)
            })
            .collect();
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let (start, mut answers, mut awaited) = (monotonic(), Vec::with_capacity(open.len()), Vec::new());
        let mut logged = Vec::new();
        let mut pause = Duration::from_millis(1);
        while !open.is_empty() {
            let mut again = Vec::new();
            let mut busy = None;
            let is_first = logged.is_empty();
            let round = self.hold_round(open, now, &mut logged).await;
            for ((at, id, asked), verdict) in if is_first { round? } else { round.map_err(halfway)? } {
                match verdict {
                    Verdict::Answer(answer) => answers.push((at, answer)),
                    Verdict::Awaited(hold) => awaited.push((at, hold)),
                    Verdict::Again => again.push((at, id, asked)),
                    Verdict::Busy(token) => {
                        busy = Some(token);
                        again.push((at, id, asked));
                    }
                }
            }
            if let Some(token) = busy {
                if start.elapsed() > PATIENCE {
                    return Err(EngineError::Unknown("what a request concerns is being decided about".into()));
                }
                if start.elapsed() > PATIENCE / 2 && !token.is_empty() {
                    self.recover(&token, now).await.map_err(halfway)?;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            open = again;
        }
        self.settle_awaited(awaited, &mut answers, now).await.map_err(halfway)?;
        self.make_durable(&logged).await?;
        Ok(answers)
    }

    /// Holds whose orders had payments waiting: those are settled before anybody is answered.
    async fn settle_awaited(
        &self,
        awaited: Vec<(usize, Hold)>,
        answers: &mut Vec<(usize, Answer)>,
        now: Option<Time>,
    ) -> Result<(), EngineError> {
        if awaited.is_empty() {
            return Ok(());
        }
        let record = |hold: &Hold| {
            let what = Recorded::Waiting(hold.id);
            Command::Record(Box::new(Record { at: hold.created_at, what, is_loose: false }))
        };
        let commands = awaited.iter().map(|(_, hold)| record(hold)).collect();
        let settled = self.decide(commands, Wanted::default(), Vec::new(), now).await?;
        for ((at, hold), settled) in awaited.into_iter().zip(settled) {
            answers.push((at, settled.or(Ok(Outcome::Held { hold, replay: false }))));
        }
        Ok(())
    }

    /// Expires what has lapsed, then looks at payments that wait.
    async fn sweep(self: &Arc<Self>, limit: u32, now: Option<Time>) -> Result<Answer, EngineError> {
        let outcome = self.expire_lapsed(limit, now).await?;
        let moment = now.unwrap_or_else(|| self.now());
        let grace = i64::from(self.policy.unmatched_grace) * 1000;
        let stale = self.ledger.stale(Time::from_millis(moment.millis() - grace)).await.map_err(ledger_error)?;
        if !stale.is_empty() {
            let mut wanted = Wanted::default();
            stale.iter().for_each(|(_, order)| self.want_order(order.as_ref(), &mut wanted));
            let keys = stale.into_iter().map(|(key, _)| key).collect();
            self.decide(vec![Command::Sweep { limit: 0 }], wanted, keys, now).await?;
        }
        Ok(Ok(outcome))
    }

    async fn expire_lapsed(&self, limit: u32, now: Option<Time>) -> Result<Outcome, EngineError> {
        if self.partitions.count() > 1 {
            return self.expire_apart(limit, now).await;
        }
        let (mut expired, mut more) = (0, false);
        for part in self.partitions.all() {
            loop {
                let left = limit - expired;
                let done = self.call(part, &Call::one("sweep", [left.min(SWEEP).to_string()]), now).await?;
                let count = |at| done.answers.first().and_then(|reply| reply.number(at));
                let (some, is_more) = count(0).zip(count(1)).ok_or_else(unreadable)?;
                expired += u32::try_from(some).unwrap_or(0);
                more |= is_more == 1 && expired >= limit;
                if is_more == 0 || expired >= limit {
                    break;
                }
            }
        }
        Ok(Outcome::Swept { expired, more })
    }
}

/// What a failure means for a batch of which some was done by then.
fn halfway(error: EngineError) -> EngineError {
    match error {
        EngineError::Overloaded | EngineError::Unavailable(_) | EngineError::Auditing(_) => {
            EngineError::Unknown(format!("some of the batch was done, then {error}"))
        }
        EngineError::Unknown(_) | EngineError::Corrupt(_) => error,
    }
}

impl RedisEngine {
    async fn read_stock(&self, sku: &Sku) -> Result<Option<Stock>, EngineError> {
        let part = self.core.partitions.of_sku(sku);
        loop {
            let done = self.core.call(part, &Call::one("stock", [sku.as_str()]), None).await?;
            let reply = done.answers.first().ok_or_else(unreadable)?;
            match reply.len() {
                0 => return Ok(None),
                1 => self.core.expire_lapsed(SWEEP, None).await.map(|_| ())?,
                _ => {
                    let count = |at| reply.number(at).and_then(|n| u64::try_from(n).ok()).ok_or_else(unreadable);
                    let (available, held, sold, version) = (count(0)?, count(1)?, count(2)?, count(4)?);
                    let limit_per_customer =
                        reply.text(3).filter(|text| !text.is_empty()).map(|_| count(3)).transpose()?;
                    return Ok(Some(Stock { sku: sku.clone(), available, held, sold, limit_per_customer, version }));
                }
            }
        }
    }
}

#[async_trait]
impl Engine for RedisEngine {
    async fn apply(&self, batch: Vec<Command>, now: Now) -> Result<Vec<Answer>, EngineError> {
        let now = match now {
            Now::Clock => None,
            Now::At(at) => Some(at),
        };
        let core = self.core.clone();
        // In a task of its own: a caller that goes away cannot leave it half-way.
        let task = tokio::spawn(async move { core.batch(batch, now).await });
        task.await.unwrap_or_else(|e| Err(EngineError::Unknown(format!("a batch ended early: {e}"))))
    }

    fn is_blocking(&self) -> bool {
        false
    }

    fn lanes(&self) -> usize {
        2
    }

    /// Holds are a call of Redis; whatever else there is waits for the ledger too.
    fn lane_of(&self, command: &Command) -> usize {
        usize::from(!matches!(command, Command::Hold(_)))
    }

    async fn close(&self) -> Result<(), EngineError> {
        self.core.drain_all().await
    }

    async fn stock(&self, sku: &Sku) -> Result<Option<Stock>, EngineError> {
        self.read_stock(sku).await
    }

    async fn stocks(&self, after: Option<&Sku>, limit: usize) -> Result<Page<Stock>, EngineError> {
        if self.core.partitions.count() > 1 {
            // What one partition has ended, the others end when it is written down.
            self.core.drain_all().await?;
        }
        // Which there are is the ledger's to say; how many units there are is not.
        let page = self.core.ledger.reads().stocks(after, limit).await?;
        let mut items = Vec::with_capacity(page.items.len());
        for known in page.items {
            items.extend(self.read_stock(&known.sku).await?);
        }
        Ok(Page { items, next: page.next })
    }

    async fn hold(&self, id: HoldId) -> Result<Option<Hold>, EngineError> {
        let home = self.core.partitions.of_hold(id);
        let done = self.core.call(home, &Call::one("look", [id.to_string()]), None).await?;
        let here = done.answers.first().and_then(|reply| reply.text(0)).map(read_text).transpose()?;
        if here.is_some() && self.core.partitions.count() == 1 {
            return Ok(here);
        }
        // Of several partitions, the home does not know at once that a part has lapsed and ended the hold.
        self.core.drain_all().await?;
        Ok(self.core.ledger.reads().hold(id).await?.or(here))
    }

    async fn holds(&self, filter: HoldFilter, limit: usize) -> Result<Page<Hold>, EngineError> {
        self.core.drain_all().await?;
        self.core.ledger.holds(&filter, limit, self.time()).await.map_err(ledger_error)
    }

    fn knows_cursor(&self, filter: &HoldFilter) -> bool {
        self.core.ledger.reads().knows_cursor(filter)
    }

    async fn order(&self, id: &OrderId) -> Result<Option<OrderView>, EngineError> {
        self.core.ledger.reads().order(id).await
    }

    async fn ledger(&self, filter: LedgerFilter, limit: usize) -> Result<Page<NumberedEntry>, EngineError> {
        self.core.drain_all().await?;
        self.core.ledger.reads().ledger(filter, limit).await
    }

    async fn payments(&self, status: Option<String>, after: u64, limit: usize) -> Result<Page<Payment>, EngineError> {
        self.core.ledger.reads().payments(status, after, limit).await
    }

    async fn refunds(&self, state: Option<String>, after: u64, limit: usize) -> Result<Page<Job>, EngineError> {
        self.core.ledger.reads().refunds(state, after, limit).await
    }

    async fn payment(&self, key: &PaymentKey) -> Result<Option<(Payment, Vec<Job>)>, EngineError> {
        self.core.ledger.reads().payment(key).await
    }

    async fn due_jobs(&self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, EngineError> {
        self.core.ledger.reads().due_jobs(provider, now, limit).await
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError> {
        self.core.ledger.reads().note(name).await
    }

    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError> {
        self.core.ledger.reads().notes(prefix, after, limit).await
    }

    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError> {
        self.core.ledger.reads().put_note(name, version, text).await
    }

    async fn audit(&self) -> Result<AuditReport, EngineError> {
        self.core.audit().await
    }

    async fn health(&self) -> Health {
        self.core.health().await
    }

    fn time(&self) -> Time {
        self.core.now()
    }
}

impl Core {
    pub(super) async fn health(&self) -> Health {
        let ledger = self.ledger.reads().health().await;
        let shut = self.shut_gates();
        let ping = async {
            for part in self.partitions.all() {
                match self.open_gate(part) {
                    Ok(_) => drop(self.call(part, &Call::default(), None).await?),
                    Err(_) => drop(self.net.server(part).await.map_err(told)?),
                }
            }
            Ok::<_, EngineError>(())
        };
        let pinged = ping.await;
        let problem = match (shut.is_empty(), pinged, &ledger.problem) {
            (true, Ok(()), None) => None,
            (_, Err(EngineError::Unavailable(_) | EngineError::Unknown(_)), _) => Some("Redis cannot be reached"),
            (_, _, Some(_)) => Some("the ledger cannot be reached"),
            _ => Some("auditing: Redis is being compared with the ledger"),
        };
        // A ledger that is silent is not waited for twice.
        let parked = if ledger.problem.is_none() { self.ledger.parked().await.unwrap_or(0) } else { 0 };
        Health {
            problem: problem.map(str::to_owned),
            clock_offset_ms: wall().millis() - self.now().millis(),
            retries: ledger.retries + self.retries.load(Ordering::Relaxed),
            auditing: self.shut_gates().len() as u64,
            backlog: self.partitions.all().map(|part| self.waiting(part)).sum(),
            parked,
            ..ledger
        }
    }
}
