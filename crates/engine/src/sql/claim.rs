//! Claiming units that stand in rows of their own (strategy `skip_locked`): nobody waits for a SKU's row, as long as
//! there are such units for everything that a batch asks for.
//!
//! Only holds that are simply made go this way. Whatever else is met (too few units, an order known already, a payment
//! that waits) is undone and decided under locks, which also puts more units into rows of their own.

use super::batch::Batches;
use super::clock::SharedClock;
use super::fault::Fault;
use super::load::load;
use super::part::Part;
use super::store::{Kept, Mode, Store, Told, Tx};
use super::writes::Writes;
use crate::{Answer, Now};
use holdfast_domain::{Command, HoldStatus, Outcome, Sku, Stock};
use std::collections::BTreeMap;

/// Units asked of each SKU, in byte order; nothing if something else than holds is asked.
fn asked(batch: &[Command]) -> Option<Vec<(Sku, u64)>> {
    let mut sums: BTreeMap<&Sku, u64> = BTreeMap::new();
    for command in batch {
        let Command::Hold(asked) = command else { return None };
        for line in &asked.lines {
            *sums.entry(&line.sku).or_default() += line.quantity.get();
        }
    }
    Some(sums.into_iter().map(|(sku, units)| (sku.clone(), units)).collect())
}

/// A hold that was made, and nothing besides.
fn is_made(answer: &Answer) -> bool {
    matches!(answer, Ok(Outcome::Held { hold, replay: false }) if hold.status == HoldStatus::Held)
}

impl Batches {
    /// The answers, if all could be had this way.
    pub(super) async fn claim<S: Store>(
        &self,
        store: &S,
        clock: &SharedClock,
        batch: &mut [Command],
        now: Now,
    ) -> Result<Option<Vec<Answer>>, Fault> {
        let Some(asked) = asked(batch) else { return Ok(None) };
        let mut tx = store.begin(Mode::SkusUnlocked).await?;
        let mut part = Part::new(self.policy.clone(), self.hash_seed);
        let claimed = self.claim_all(&mut tx, &mut part, &asked, clock, batch, now).await;
        match claimed {
            Ok(Some(answers)) => tx.commit().await.map(|()| Some(answers)),
            other => {
                tx.roll_back().await;
                other
            }
        }
    }

    async fn claim_all<T: Tx>(
        &self,
        tx: &mut T,
        part: &mut Part,
        asked: &[(Sku, u64)],
        clock: &SharedClock,
        batch: &mut [Command],
        now: Now,
    ) -> Result<Option<Vec<Answer>>, Fault> {
        if !tx.claim(asked).await? {
            return Ok(None);
        }
        for (sku, units) in asked {
            // These units are ours; nothing else about the SKU matters, and nothing of it is written.
            let stock = Stock::new(sku.clone(), *units, None);
            part.put_stock(Kept { stock, revision: 0, carved: 0 }, None);
        }
        let moment = |told: Told| self.moment(clock, now, told);
        load(tx, part, batch, moment).await?;
        if !part.before.is_empty() {
            // An order has a hold already, whose units are not among those that are ours.
            return Ok(None);
        }
        let now = part.now.unwrap_or_default();
        let (mut answers, mut wanted) = (Vec::with_capacity(batch.len()), Vec::new());
        for command in batch.iter_mut() {
            if let Command::Hold(asked) = command {
                asked.id = self.ids.lock().next(now);
            }
            part.inventory.wants(command, now, &mut wanted);
            if !wanted.is_empty() {
                return Ok(None);
            }
            answers.push(part.inventory.apply(command, now));
        }
        if !part.inventory.changes().payments.is_empty() || !answers.iter().all(is_made) {
            return Ok(None);
        }
        let mut writes = Writes::of(part, now, self.strategy)?;
        writes.stocks.clear();
        writes.new_units.clear();
        tx.write(&writes).await?;
        Ok(Some(answers))
    }
}
