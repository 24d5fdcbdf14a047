//! The ledger of a hot store, whichever database it is: steps, and what a hot store is filled from.

use super::batch::{ATTEMPTS, pause};
use super::effect::Effect;
use super::engine::{SqlEngine, read};
use super::fault::Fault;
use super::hot::{NOTHING, Step, Stepped, once};
use super::hot_store::{HotRow, HotTx};
use super::store::{Mode, Store, Tx};
use super::{effect, lists};
use crate::{Engine, HoldFilter, Page};
use async_trait::async_trait;
use holdfast_domain::{CustomerId, Hold, HoldId, OrderId, OrderRef, PaymentKey, Sku, Stock, Time};

/// Rows a page.
pub(crate) const PAGE: usize = 1000;

#[async_trait]
pub(crate) trait Ledger: Send + Sync {
    /// What can be read of it as of any engine.
    fn reads(&self) -> &dyn Engine;

    /// Holds as of a moment of the hot store's clock.
    async fn holds(&self, filter: &HoldFilter, limit: usize, now: Time) -> Result<Page<Hold>, Fault>;

    /// Works a step; begins it again where the database asks for that.
    async fn step(&self, step: &Step) -> Result<Stepped, Fault>;

    /// Makes the rows of the partitions, unless there are some of another number; then tells how many.
    async fn make_parts(&self, parts: u32) -> Result<usize, Fault>;

    /// The database's clock, and the rows of these partitions.
    async fn rows(&self, parts: &[u32]) -> Result<(Time, Vec<HotRow>), Fault>;

    /// Raises the epoch of a partition for an audit, if the row still is as it was read: nobody else has said since that an
    /// audit goes on. Above this other epoch too.
    async fn claim(&self, read: &HotRow, above: i64) -> Result<Option<HotRow>, Fault>;

    /// Says that an audit goes on; whether it is still the caller's.
    async fn keep(&self, part: u32, epoch: i64) -> Result<bool, Fault>;

    /// Ends an audit, if nobody has raised the epoch since.
    async fn release(&self, part: u32, epoch: i64, server: &str) -> Result<bool, Fault>;

    /// The effects of a step that was noted; `None` when there is none, and from now on there will not be.
    async fn give_up(&self, token: &str, now: Time) -> Result<Option<Vec<Effect>>, Fault>;

    /// Steps that were noted and not forgotten.
    async fn unapplied(&self) -> Result<Vec<(String, Vec<Effect>)>, Fault>;

    /// Forgets steps that were applied, and those given up before a moment; unless a partition is in another epoch than this,
    /// which one it then tells.
    async fn forget(
        &self,
        tokens: &[String],
        epochs: &[(u32, i64)],
        given_up_before: Time,
    ) -> Result<Option<u32>, Fault>;

    /// Payments that a sweep has to look at, with what they name.
    async fn stale(&self, received_before: Time) -> Result<Vec<(PaymentKey, Option<OrderRef>)>, Fault>;

    async fn parked(&self) -> Result<u64, Fault>;

    /// The latest moment that anything was recorded at.
    async fn latest(&self) -> Result<Time, Fault>;

    /// A SKU's counters as they stand, lapsed holds still counted as held.
    async fn stored(&self, sku: &Sku) -> Result<Option<Stock>, Fault>;
    async fn stocks_after(&self, after: Option<&Sku>) -> Result<Vec<Stock>, Fault>;
    async fn held_after(&self, after: Option<HoldId>) -> Result<Vec<Hold>, Fault>;
    async fn orders_after(&self, after: Option<&OrderId>) -> Result<Vec<(OrderId, HoldId)>, Fault>;
    async fn bought_after(&self, after: Option<(&CustomerId, &Sku)>) -> Result<Vec<(CustomerId, Sku, i64)>, Fault>;
    async fn waiting_after(&self, after: i64) -> Result<Vec<(i64, OrderId, PaymentKey)>, Fault>;
}

/// Writes in one transaction, by an expression over it; begun again where the database asks for that.
macro_rules! written {
    ($self:expr, $tx:ident => $work:expr) => {{
        let mut attempt = 0;
        loop {
            let done: Result<_, Fault> = async {
                let mut $tx = $self.store().begin(Mode::Locking).await?;
                let worked: Result<_, Fault> = async { $work }.await;
                let done = worked?;
                $tx.commit().await?;
                Ok(done)
            }
            .await;
            match done {
                Err(Fault::Again(why)) if attempt < ATTEMPTS => again(&mut attempt, &why).await,
                other => break other,
            }
        }
    }};
}

async fn again(attempt: &mut u32, why: &str) {
    *attempt += 1;
    tracing::debug!(attempt, why, "a step of the ledger is begun again");
    pause(*attempt).await;
}

#[async_trait]
impl<S: Store> Ledger for SqlEngine<S> {
    fn reads(&self) -> &dyn Engine {
        self
    }

    async fn holds(&self, filter: &HoldFilter, limit: usize, now: Time) -> Result<Page<Hold>, Fault> {
        read!(self.store(), tx => lists::holds(&mut tx, filter, limit, now).await)
    }

    async fn step(&self, step: &Step) -> Result<Stepped, Fault> {
        let mut attempt = 0;
        loop {
            match once(self.store(), step, self.policy(), self.hash_seed()).await {
                Err(Fault::Again(why)) if attempt < ATTEMPTS => again(&mut attempt, &why).await,
                other => return other,
            }
        }
    }

    async fn make_parts(&self, parts: u32) -> Result<usize, Fault> {
        written!(self, tx => {
            let some: Vec<u32> = (0..=parts).collect();
            let (_, rows) = tx.hot_rows(&some, true).await?;
            if rows.is_empty() {
                tx.hot_make(parts).await?;
                return Ok(parts as usize);
            }
            Ok(rows.len())
        })
    }

    async fn rows(&self, parts: &[u32]) -> Result<(Time, Vec<HotRow>), Fault> {
        read!(self.store(), tx => tx.hot_rows(parts, false).await)
    }

    async fn claim(&self, read: &HotRow, above: i64) -> Result<Option<HotRow>, Fault> {
        written!(self, tx => {
            let (now, rows) = tx.hot_rows(&[read.part], true).await?;
            match rows.into_iter().next().filter(|row| (row.epoch, row.since) == (read.epoch, read.since)) {
                Some(row) => {
                    let row = HotRow { epoch: row.epoch.max(above) + 1, is_auditing: true, since: now, ..row };
                    tx.hot_write(std::slice::from_ref(&row)).await?;
                    Ok(Some(row))
                }
                None => Ok(None),
            }
        })
    }

    async fn keep(&self, part: u32, epoch: i64) -> Result<bool, Fault> {
        written!(self, tx => {
            let (now, rows) = tx.hot_rows(&[part], true).await?;
            match rows.into_iter().next().filter(|row| row.epoch == epoch && row.is_auditing) {
                Some(row) => {
                    tx.hot_write(&[HotRow { since: now, ..row }]).await?;
                    Ok(true)
                }
                None => Ok(false),
            }
        })
    }

    async fn release(&self, part: u32, epoch: i64, server: &str) -> Result<bool, Fault> {
        written!(self, tx => {
            let (now, rows) = tx.hot_rows(&[part], true).await?;
            match rows.into_iter().next().filter(|row| row.epoch == epoch && row.is_auditing) {
                Some(row) => {
                    let server = server.to_owned();
                    let row = HotRow { is_auditing: false, since: now, server, drained_epoch: epoch, drained_seq: 0, ..row };
                    tx.hot_write(std::slice::from_ref(&row)).await?;
                    Ok(true)
                }
                None => Ok(false),
            }
        })
    }

    async fn give_up(&self, token: &str, now: Time) -> Result<Option<Vec<Effect>>, Fault> {
        let noted: Option<String> = written!(self, tx => {
            if tx.hot_step(token, "", now).await? { Ok(None) } else { tx.hot_step_of(token).await }
        })?;
        // One that was given up before says so by an empty text.
        noted.filter(|text| !text.is_empty()).map(|text| read_effects(&text)).transpose()
    }

    async fn unapplied(&self) -> Result<Vec<(String, Vec<Effect>)>, Fault> {
        let steps = read!(self.store(), tx => tx.hot_steps(PAGE).await)?;
        steps.into_iter().map(|(token, text)| Ok((token, read_effects(&text)?))).collect()
    }

    async fn forget(
        &self,
        tokens: &[String],
        epochs: &[(u32, i64)],
        given_up_before: Time,
    ) -> Result<Option<u32>, Fault> {
        let parts: Vec<u32> = epochs.iter().map(|(part, _)| *part).collect();
        written!(self, tx => {
            let (_, rows) = tx.hot_rows(&parts, true).await?;
            for (row, (_, epoch)) in rows.iter().zip(epochs) {
                if row.epoch != *epoch || row.is_auditing {
                    return Ok(Some(row.part));
                }
            }
            tx.hot_forget(tokens, given_up_before).await?;
            Ok(None)
        })
    }

    async fn stale(&self, received_before: Time) -> Result<Vec<(PaymentKey, Option<OrderRef>)>, Fault> {
        read!(self.store(), tx => {
            let mut found = Vec::new();
            for key in tx.stale(received_before).await? {
                let order = tx.payment(&key).await?.and_then(|payment| payment.order);
                found.push((key, order));
            }
            Ok(found)
        })
    }

    async fn latest(&self) -> Result<Time, Fault> {
        read!(self.store(), tx => tx.told().await).map(|told| told.last_time)
    }

    async fn parked(&self) -> Result<u64, Fault> {
        read!(self.store(), tx => tx.hot_parked().await)
    }

    async fn stored(&self, sku: &Sku) -> Result<Option<Stock>, Fault> {
        // A SKU has no lapsed holds before time began.
        let never = Time::from_millis(i64::MIN);
        read!(self.store(), tx => tx.stock(sku, never).await)
    }

    async fn stocks_after(&self, after: Option<&Sku>) -> Result<Vec<Stock>, Fault> {
        read!(self.store(), tx => tx.stocks_after(after, PAGE).await)
    }

    async fn held_after(&self, after: Option<HoldId>) -> Result<Vec<Hold>, Fault> {
        read!(self.store(), tx => tx.held_after(after, PAGE).await)
    }

    async fn orders_after(&self, after: Option<&OrderId>) -> Result<Vec<(OrderId, HoldId)>, Fault> {
        read!(self.store(), tx => tx.orders_after(after, PAGE).await)
    }

    async fn bought_after(&self, after: Option<(&CustomerId, &Sku)>) -> Result<Vec<(CustomerId, Sku, i64)>, Fault> {
        read!(self.store(), tx => tx.bought_after(after, PAGE).await)
    }

    async fn waiting_after(&self, after: i64) -> Result<Vec<(i64, OrderId, PaymentKey)>, Fault> {
        read!(self.store(), tx => tx.waiting_after(after, PAGE).await)
    }
}

fn read_effects(text: &str) -> Result<Vec<Effect>, Fault> {
    if text == NOTHING { Ok(Vec::new()) } else { Ok(effect::read_all(text)?) }
}
