//! One transaction: beginning it, asking it, and ending it.

use super::pipeline::in_order;
use super::read::Batch;
use super::rows::{self, Columns};
use super::{failure, sql, write};
use crate::NumberedEntry;
use crate::audit::{Cut, Fold, add_lines};
use crate::moving::Counts;
use crate::sql::{AUDIT_PATIENCE, Asked, Fault, Found, Loose, Mode, Moved, Told, Tx, Writes};
use async_trait::async_trait;
use deadpool_postgres::Object;
use holdfast_domain::{Counters, Hold, HoldId, Job, Order, OrderId, Payment, PaymentKey, Sku, Stock, Time};
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Orders whose lines are added up at once.
const STEP: i64 = 5_000;

pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(crate) struct PgTx {
    /// Taken away when the transaction has ended well. What is left when this is dropped may be in any state, and is
    /// not used again.
    client: Option<Object>,
    timeout: Duration,
    locks_skus: bool,
}

impl Drop for PgTx {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

impl PgTx {
    pub(super) async fn begin(client: Object, mode: Mode, timeout: Duration) -> Result<Self, Fault> {
        let mut tx = Self { client: Some(client), timeout, locks_skus: mode == Mode::Locking };
        let audit;
        let begin = match mode {
            Mode::ReadOnly => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Mode::Audit => {
                tx.timeout *= AUDIT_PATIENCE;
                let limit = tx.timeout.as_millis();
                audit =
                    format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout TO {limit}");
                &audit
            }
            Mode::Locking => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            // What somebody else has locked is about to change: deciding again is better than waiting to be told so.
            // And optimists lock in any order; the server would look for a deadlock after a second only.
            Mode::SkusUnlocked => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout TO 50",
        };
        tx.limited(async { tx.client()?.batch_execute(begin).await.map_err(failure::fault) }).await?;
        Ok(tx)
    }

    pub(super) fn client(&self) -> Result<&Object, Fault> {
        self.client.as_ref().ok_or_else(|| Fault::Unavailable("the transaction has ended".into()))
    }

    /// The server has a limit of its own; this one is for a server that says nothing at all.
    pub(super) async fn limited<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let silence = || Fault::Unavailable("PostgreSQL did not answer in time".into());
        tokio::time::timeout(self.timeout + Duration::from_millis(500), work).await.unwrap_or_else(|_| Err(silence()))
    }

    async fn rows(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Fault> {
        self.limited(async {
            let client = self.client()?;
            let statement = client.prepare_cached(sql).await.map_err(failure::fault)?;
            client.query(&statement, params).await.map_err(failure::fault)
        })
        .await
    }

    /// How many rows a statement touches.
    pub(super) async fn touch(&self, sql: &str, params: Params<'_>) -> Result<u64, Fault> {
        self.limited(async {
            let client = self.client()?;
            let statement = client.prepare_cached(sql).await.map_err(failure::fault)?;
            client.execute(&statement, params).await.map_err(failure::fault)
        })
        .await
    }

    pub(super) async fn all<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: fn(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        self.rows(sql, params).await?.iter().map(read).collect()
    }

    pub(super) async fn one<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: fn(&Row) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.rows(sql, params).await?.first().map(read).transpose()
    }
}

pub(super) fn size(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn uuids(ids: &[HoldId]) -> Vec<uuid::Uuid> {
    ids.iter().map(|id| rows::uuid(*id)).collect()
}

#[async_trait]
impl Tx for PgTx {
    async fn told(&mut self) -> Result<Told, Fault> {
        self.one(sql!("told"), &[], rows::told).await?.ok_or_else(|| Fault::Corrupt("the row of totals is gone".into()))
    }

    async fn peek(&mut self, holds: &[HoldId], orders: &[OrderId]) -> Result<Vec<Sku>, Fault> {
        let orders: Vec<&str> = orders.iter().map(OrderId::as_str).collect();
        let found = self.rows(sql!("peek"), &[&uuids(holds), &orders]).await?;
        let mut skus = Vec::new();
        for row in &found {
            let lines = crate::records::read_lines(row.text(0)?)?;
            skus.extend(lines.iter().map(|line| line.sku.clone()));
        }
        Ok(skus)
    }

    async fn look_up(&mut self, asked: &Asked) -> Result<(Told, Found), Fault> {
        self.limited(Batch::of(asked, self.locks_skus).look_up(self.client()?)).await
    }

    async fn claim(&mut self, asked: &[(Sku, u64)]) -> Result<bool, Fault> {
        let told = self.limited(async {
            let client = self.client()?;
            let statement = client.prepare_cached(sql!("claim")).await.map_err(failure::fault)?;
            let asked: Vec<(&str, i64)> = asked.iter().map(|(sku, units)| (sku.as_str(), *units as i64)).collect();
            let sent = asked.iter().map(|(sku, units)| {
                let statement = &statement;
                async move { client.execute(statement, &[sku, units]).await }
            });
            let told = in_order(sent).await.into_iter().zip(&asked);
            let enough = told.map(|(taken, (_, units))| Ok(taken.map_err(failure::fault)? as i64 == *units));
            enough.collect::<Result<Vec<bool>, Fault>>()
        });
        Ok(told.await?.into_iter().all(|enough| enough))
    }

    async fn lock_units(&mut self, skus: &[Sku]) -> Result<Vec<Loose>, Fault> {
        let skus: Vec<&str> = skus.iter().map(Sku::as_str).collect();
        self.all(sql!("lock_units"), &[&skus], rows::loose).await
    }

    async fn with_lapsed(&mut self, skus: &[Sku], now: Time) -> Result<Vec<Sku>, Fault> {
        let skus: Vec<&str> = skus.iter().map(Sku::as_str).collect();
        self.all(sql!("with_lapsed"), &[&skus, &now.millis()], rows::a_sku).await
    }

    async fn lapsed(&mut self, sku: &Sku, now: Time, known: &[HoldId], limit: usize) -> Result<Vec<Hold>, Fault> {
        let params: Params<'_> = &[&sku.as_str(), &now.millis(), &uuids(known), &size(limit)];
        self.all(sql!("lapsed"), params, rows::hold).await
    }

    async fn lapsed_units(&mut self, sku: &Sku, now: Time, known: &[HoldId]) -> Result<u64, Fault> {
        let params: Params<'_> = &[&sku.as_str(), &now.millis(), &uuids(known)];
        let units = self.one(sql!("lapsed_units"), params, |row| row.number(0)).await?;
        Ok(units.unwrap_or(0).unsigned_abs())
    }

    async fn due(&mut self, now: Time, known: &[HoldId], limit: usize) -> Result<Vec<HoldId>, Fault> {
        self.all(sql!("due"), &[&now.millis(), &uuids(known), &size(limit)], rows::hold_id).await
    }

    async fn stale(&mut self, received_before: Time) -> Result<Vec<PaymentKey>, Fault> {
        self.all(sql!("stale"), &[&received_before.millis()], rows::key).await
    }

    async fn write(&mut self, writes: &Writes<'_>) -> Result<(), Fault> {
        self.limited(write::all(self.client()?, writes)).await
    }

    async fn commit(mut self) -> Result<(), Fault> {
        let committed = async { self.client()?.batch_execute("COMMIT").await.map_err(failure::commit) };
        let limited = tokio::time::timeout(self.timeout, committed).await;
        limited.unwrap_or_else(|_| Err(Fault::Unknown("PostgreSQL did not answer the commit in time".into())))?;
        self.client.take();
        Ok(())
    }

    async fn roll_back(mut self) {
        let undone = self.limited(async { self.client()?.batch_execute("ROLLBACK").await.map_err(failure::fault) });
        if undone.await.is_ok() {
            self.client.take();
        }
    }

    async fn stock(&mut self, sku: &Sku, now: Time) -> Result<Option<Stock>, Fault> {
        self.one(sql!("stock"), &[&sku.as_str(), &now.millis()], rows::stock).await
    }

    async fn stocks(&mut self, after: Option<&Sku>, now: Time, limit: usize) -> Result<Vec<Stock>, Fault> {
        let params: Params<'_> = &[&after.map(Sku::as_str), &now.millis(), &size(limit)];
        self.all(sql!("stocks"), params, rows::stock).await
    }

    async fn hold(&mut self, id: HoldId) -> Result<Option<Hold>, Fault> {
        self.one(sql!("hold"), &[&rows::uuid(id)], rows::hold).await
    }

    async fn holds_of_order(&mut self, order: &OrderId) -> Result<Vec<Hold>, Fault> {
        self.all(sql!("holds_of_order"), &[&order.as_str()], rows::hold).await
    }

    async fn holds_after(&mut self, after: HoldId, limit: usize) -> Result<Vec<Hold>, Fault> {
        self.all(sql!("holds_after"), &[&rows::uuid(after), &size(limit)], rows::hold).await
    }

    async fn holds_of_sku(&mut self, sku: &Sku, after: i64, limit: usize) -> Result<Vec<(i64, Hold)>, Fault> {
        self.all(sql!("holds_of_sku"), &[&sku.as_str(), &after, &size(limit)], rows::numbered_hold).await
    }

    async fn order(&mut self, id: &OrderId) -> Result<Option<Order>, Fault> {
        self.one(sql!("order"), &[&id.as_str()], rows::order).await
    }

    async fn payment(&mut self, key: &PaymentKey) -> Result<Option<Payment>, Fault> {
        self.one(sql!("payment"), &[&key.provider.as_str(), &key.payment_id.as_str()], rows::payment).await
    }

    async fn entries(
        &mut self,
        sku: Option<&Sku>,
        order: Option<&OrderId>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<NumberedEntry>, Fault> {
        let (limit, sku) = (size(limit), sku.map(Sku::as_str));
        match (order, sku) {
            (None, None) => self.all(sql!("entries"), &[&after, &limit], rows::entry).await,
            (None, Some(sku)) => self.all(sql!("entries_of_sku"), &[&after, &limit, &sku], rows::entry).await,
            (Some(order), sku) => {
                self.all(sql!("entries_of_order"), &[&after, &limit, &order.as_str(), &sku], rows::entry).await
            }
        }
    }

    async fn payments(&mut self, status: Option<&str>, after: i64, limit: usize) -> Result<Vec<(i64, Payment)>, Fault> {
        self.all(sql!("payments"), &[&after, &status, &size(limit)], rows::numbered_payment).await
    }

    async fn refunds(&mut self, state: Option<&str>, after: i64, limit: usize) -> Result<Vec<(i64, Job)>, Fault> {
        self.all(sql!("refunds"), &[&after, &state, &size(limit)], rows::numbered_job).await
    }

    async fn cut(&mut self) -> Result<Cut, Fault> {
        let held = |row: &Row| Ok((row.text(0)?.to_owned(), row.number(1)?));
        let mut cut = Cut {
            last: self.one(sql!("audit_last"), &[], |row| row.number(0)).await?.unwrap_or(0),
            counters: self.all(sql!("audit_stock"), &[], rows::sums).await?.into_iter().collect(),
            held: self.all(sql!("audit_held"), &[], held).await?.into_iter().collect(),
            sold: std::collections::BTreeMap::new(),
        };
        let mut after: Option<String> = None;
        loop {
            let orders = self.rows(sql!("audit_sold"), &[&after, &STEP]).await?;
            for row in &orders {
                add_lines(&mut cut.sold, row.text(1)?, 2)?;
            }
            match orders.last() {
                Some(last) if size(orders.len()) == STEP => after = Some(last.text(0)?.to_owned()),
                _ => return Ok(cut),
            }
        }
    }

    async fn fold(&mut self, fold: &mut Fold, upto: i64) -> Result<(), Fault> {
        let moved: Vec<(String, Counters)> = self.all(sql!("fold"), &[&fold.upto, &upto], rows::sums).await?;
        moved.into_iter().for_each(|(sku, moved)| fold.add(sku, moved));
        Ok(())
    }

    async fn moved(&mut self) -> Result<Option<Moved>, Fault> {
        self.one(sql!("moved"), &[], rows::moved).await
    }

    async fn note_move(&mut self, before: Option<&Moved>, now: &Moved) -> Result<(), Fault> {
        self.limited(write::note_move(self.client()?, before, now)).await
    }

    async fn counts(&mut self) -> Result<Counts, Fault> {
        Ok(self.one(sql!("counts"), &[], rows::counts).await?.unwrap_or_default())
    }
}
