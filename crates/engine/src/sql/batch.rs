//! One batch: load, decide, persist, in one transaction; decided again when the database asks for it.

use super::clock::SharedClock;
use super::config::Strategy;
use super::fault::Fault;
use super::leased::{Desk, Taken};
use super::load::load;
use super::part::Part;
use super::store::{Mode, Store, Told, Tx};
use super::writes::Writes;
use crate::clock::{HoldIds, random_seed};
use crate::{Answer, EngineError, Now};
use holdfast_domain::{Command, Policy, Time};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// How often a batch is decided again before the caller is asked to come back.
pub(super) const ATTEMPTS: u32 = 12;
/// From this attempt on, whoever does not wait for locks does: on a slow disk, others may have them for longer than
/// every attempt's patience.
const OPTIMISM: u32 = 6;

/// Two that killed one another had better not come back at the same moment.
pub(super) async fn pause(attempt: u32) {
    let pause = (random_seed() % (1 << attempt.min(6))) * 500;
    tokio::time::sleep(Duration::from_micros(pause)).await;
}

/// What the batches of a node share.
pub(super) struct Batches {
    pub(super) policy: Policy,
    pub(super) strategy: Strategy,
    desk: Option<Arc<Desk>>,
    pub(super) hash_seed: u64,
    pub(super) ids: Mutex<HoldIds>,
    last_time: AtomicI64,
    /// Batches decided again because of what another transaction did.
    pub(super) retries: AtomicU64,
}

impl Batches {
    pub(super) fn new(policy: Policy, strategy: Strategy, desk: Option<Arc<Desk>>) -> Self {
        Self {
            policy,
            strategy,
            desk,
            hash_seed: random_seed(),
            ids: Mutex::new(HoldIds::after(0)),
            last_time: AtomicI64::new(0),
            retries: AtomicU64::new(0),
        }
    }

    /// Decides the batch and makes it durable.
    pub(super) async fn apply<S: Store>(
        &self,
        store: &S,
        clock: &SharedClock,
        mut batch: Vec<Command>,
        now: Now,
    ) -> Result<Vec<Answer>, EngineError> {
        let mut attempt = 0;
        loop {
            let why = match self.attempt(store, clock, &mut batch, now, attempt).await {
                Err(Fault::Again(why)) => why,
                other => return other.map_err(EngineError::from),
            };
            self.retries.fetch_add(1, Ordering::Relaxed);
            attempt += 1;
            tracing::debug!(attempt, why, "a batch is decided again");
            if attempt == ATTEMPTS {
                return Err(EngineError::Unavailable(format!("gave up after {ATTEMPTS} attempts: {why}")));
            }
            pause(attempt).await;
        }
    }

    async fn attempt<S: Store>(
        &self,
        store: &S,
        clock: &SharedClock,
        batch: &mut [Command],
        now: Now,
        attempt: u32,
    ) -> Result<Vec<Answer>, Fault> {
        if self.strategy == Strategy::SkipLocked
            && attempt < OPTIMISM
            && let Some(answers) = self.claim(store, clock, batch, now).await?
        {
            return Ok(answers);
        }
        let mode = match self.strategy {
            Strategy::Naive => Mode::SkusUnlocked,
            Strategy::Optimistic | Strategy::Redlock if attempt < OPTIMISM => Mode::SkusUnlocked,
            _ => Mode::Locking,
        };
        let mut tx = store.begin(mode).await?;
        let mut part = Part::new(self.policy.clone(), self.hash_seed);
        part.desk = self.desk.clone().filter(|_| mode == Mode::SkusUnlocked);
        match self.decide(&mut tx, &mut part, clock, batch, now, mode).await {
            Ok((answers, true)) => tx.commit().await.map(|()| answers),
            Ok((answers, false)) => {
                // Nothing to make durable: what was read was.
                tx.roll_back().await;
                Ok(answers)
            }
            Err(Fault::Again(why)) => {
                tx.roll_back().await;
                Err(Fault::Again(why))
            }
            // A connection that failed us is not waited for once more.
            Err(fault) => Err(fault),
        }
    }

    /// The answers, and whether there is something to commit.
    async fn decide<T: Tx>(
        &self,
        tx: &mut T,
        part: &mut Part,
        clock: &SharedClock,
        batch: &mut [Command],
        now: Now,
        mode: Mode,
    ) -> Result<(Vec<Answer>, bool), Fault> {
        let moment = |told: Told| self.moment(clock, now, told);
        load(tx, part, batch, moment).await?;
        let now = part.now.unwrap_or_default();
        let mut answers = Vec::with_capacity(batch.len());
        let mut wanted = Vec::new();
        for command in batch.iter_mut() {
            if let Command::Hold(asked) = command {
                asked.id = self.ids.lock().next(now);
            }
            // What the commands before it did may have led to further wants.
            part.inventory.wants(command, now, &mut wanted);
            if !wanted.is_empty() {
                wanted.clear();
                load(tx, part, std::slice::from_ref(command), moment).await?;
            }
            answers.push(part.inventory.apply(command, now));
        }
        let mut writes = Writes::of(part, now, self.strategy)?;
        if mode == Mode::Locking || writes.is_naive {
            // They are locked, or nobody asks.
            writes.unchanged.clear();
        }
        let changed = !part.inventory.changes().is_empty();
        if part.lease.as_ref().is_some_and(Taken::is_lost) {
            // The row would refuse what the next holder's fence has passed; deciding again is cheaper than to ask it.
            return Err(Fault::Again("the lease was lost".into()));
        }
        if changed || !writes.unchanged.is_empty() {
            tx.write(&writes).await?;
        }
        Ok((answers, changed))
    }

    /// The moment of a batch: what was decided at one moment is never undone by an earlier one, on any node.
    pub(super) fn moment(&self, clock: &SharedClock, now: Now, told: Told) -> Time {
        let now = match now {
            Now::Clock => {
                clock.set(told);
                told.now
            }
            Now::At(time) => time,
        };
        let now = now.max(told.last_time);
        Time::from_millis(self.last_time.fetch_max(now.millis(), Ordering::Relaxed).max(now.millis()))
    }
}
