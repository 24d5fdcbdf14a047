//! One transaction: beginning it, asking it, and ending it.

use super::rows::{self, Columns};
use super::spread::{Bind, KEYS, lists};
use super::{failure, read, sql, write};
use crate::NumberedEntry;
use crate::audit::{Cut, Fold, add_lines};
use crate::moving::Counts;
use crate::sql::{AUDIT_PATIENCE, Asked, Fault, Found, Loose, Mode, Moved, Told, Tx, Writes};
use async_trait::async_trait;
use holdfast_domain::{Hold, HoldId, Job, Order, OrderId, Payment, PaymentKey, Sku, Stock, Time};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};
use std::time::Duration;

/// Orders whose lines are added up at once.
const STEP: usize = 5_000;

pub(crate) struct MyTx {
    /// Taken away when the transaction has ended well. What is left when this is dropped may be in any state, and is
    /// not used again.
    connection: Option<Conn>,
    timeout: Duration,
    pub(super) locks_skus: bool,
}

impl Drop for MyTx {
    fn drop(&mut self) {
        if let (Some(connection), Ok(runtime)) = (self.connection.take(), tokio::runtime::Handle::try_current()) {
            // Dropping it would give it back to the pool; a server that says nothing is not waited for.
            let wait = self.timeout;
            runtime.spawn(async move { tokio::time::timeout(wait, connection.disconnect()).await });
        }
    }
}

impl MyTx {
    pub(super) async fn begin(connection: Conn, mode: Mode, timeout: Duration) -> Result<Self, Fault> {
        let mut tx = Self { connection: Some(connection), timeout, locks_skus: mode == Mode::Locking };
        if mode == Mode::Audit {
            tx.timeout *= AUDIT_PATIENCE;
        }
        if matches!(mode, Mode::ReadOnly | Mode::Audit) {
            // One snapshot needs an isolation of its own; this one is for the next transaction only.
            tx.drop_query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
            tx.drop_query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY").await?;
        } else {
            tx.drop_query("START TRANSACTION READ WRITE").await?;
        }
        Ok(tx)
    }

    fn connection(&mut self) -> Result<&mut Conn, Fault> {
        self.connection.as_mut().ok_or_else(|| Fault::Unavailable("the transaction has ended".into()))
    }

    /// The server has a limit for locks; this one is for a server that says nothing at all.
    async fn limited<T>(
        timeout: Duration,
        work: impl Future<Output = Result<T, mysql_async::Error>>,
    ) -> Result<T, Fault> {
        match tokio::time::timeout(timeout + Duration::from_millis(500), work).await {
            Ok(done) => done.map_err(failure::fault),
            Err(_) => Err(Fault::Unavailable("MySQL did not answer in time".into())),
        }
    }

    async fn drop_query(&mut self, sql: &str) -> Result<(), Fault> {
        let timeout = self.timeout;
        Self::limited(timeout, self.connection()?.query_drop(sql)).await
    }

    /// The rows that a statement finds.
    pub(super) async fn rows(&mut self, sql: &str, binds: Vec<Bind>) -> Result<Vec<Row>, Fault> {
        let timeout = self.timeout;
        let (sql, values) = lists(sql, binds);
        Self::limited(timeout, self.connection()?.exec(sql, values)).await
    }

    /// How many rows a statement touches.
    pub(super) async fn touch(&mut self, sql: String, values: Vec<Value>) -> Result<u64, Fault> {
        let timeout = self.timeout;
        let connection = self.connection()?;
        Self::limited(timeout, async {
            connection.exec_drop(sql, values).await?;
            Ok(connection.affected_rows())
        })
        .await
    }

    /// Inserts a row; `false` if a key refuses it. That undoes the statement only, so the transaction goes on.
    pub(super) async fn inserts(&mut self, sql: &str, values: Vec<Value>) -> Result<bool, Fault> {
        let timeout = self.timeout;
        let connection = self.connection()?;
        Self::limited(timeout, async {
            match connection.exec_drop(sql, values).await {
                Ok(()) => Ok(true),
                Err(mysql_async::Error::Server(refused)) if refused.code == failure::DUPLICATE => Ok(false),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// The number that the last statement made.
    pub(super) fn made(&mut self) -> Result<i64, Fault> {
        let made = self.connection()?.last_insert_id().unwrap_or(0);
        i64::try_from(made).map_err(|_| Fault::Corrupt("a number is out of range".into()))
    }

    pub(super) async fn all<T>(
        &mut self,
        sql: &str,
        binds: Vec<Bind>,
        read: fn(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        self.rows(sql, binds).await?.iter().map(read).collect()
    }

    /// The same for many keys, which are the only ones that the statement asks for.
    pub(super) async fn all_of<T>(
        &mut self,
        sql: &str,
        keys: &[Value],
        read: fn(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut found = Vec::new();
        for keys in keys.chunks(KEYS) {
            found.extend(self.all(sql, vec![Bind::List(keys.to_vec())], read).await?);
        }
        Ok(found)
    }

    pub(super) async fn one<T>(
        &mut self,
        sql: &str,
        binds: Vec<Bind>,
        read: fn(&Row) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.rows(sql, binds).await?.first().map(read).transpose()
    }
}

/// One value.
pub(super) fn one(value: impl Into<Value>) -> Bind {
    Bind::One(value.into())
}

/// A list of values.
pub(super) fn list<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Bind {
    Bind::List(values.into_iter().map(Into::into).collect())
}

pub(super) fn values<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Vec<Value> {
    values.into_iter().map(Into::into).collect()
}

pub(super) fn id_values(ids: &[HoldId]) -> Vec<Value> {
    ids.iter().map(|id| rows::id_value(*id)).collect()
}

fn ids(ids: &[HoldId]) -> Bind {
    Bind::List(id_values(ids))
}

pub(super) fn size(limit: usize) -> Bind {
    one(limit as u64)
}

#[async_trait]
impl Tx for MyTx {
    async fn told(&mut self) -> Result<Told, Fault> {
        let told = self.one(sql!("told"), vec![], rows::told).await?;
        told.ok_or_else(|| Fault::Corrupt("the row of totals is gone".into()))
    }

    async fn peek(&mut self, holds: &[HoldId], orders: &[OrderId]) -> Result<Vec<Sku>, Fault> {
        let lines = |row: &Row| Ok(crate::records::read_lines(row.text(0)?)?);
        let mut found = self.all_of(sql!("peek_holds"), &id_values(holds), lines).await?;
        found.extend(self.all_of(sql!("peek_orders"), &values(orders.iter().map(OrderId::as_str)), lines).await?);
        Ok(found.iter().flatten().map(|line| line.sku.clone()).collect())
    }

    async fn look_up(&mut self, asked: &Asked) -> Result<(Told, Found), Fault> {
        read::look_up(self, asked).await
    }

    async fn claim(&mut self, asked: &[(Sku, u64)]) -> Result<bool, Fault> {
        for (sku, units) in asked {
            let free = vec![one(sku.as_str()), one(*units)];
            let free = self.all(sql!("claim_look"), free, |row| row.number(0)).await?;
            if free.len() as u64 != *units {
                return Ok(false);
            }
            let (sql, values) = lists(sql!("claim"), vec![one(sku.as_str()), list(free)]);
            self.touch(sql, values).await?;
        }
        Ok(true)
    }

    async fn lock_units(&mut self, skus: &[Sku]) -> Result<Vec<Loose>, Fault> {
        let mut loose = Vec::new();
        for sku in skus {
            let left = self.all(sql!("lock_units"), vec![one(sku.as_str())], |row| row.number(0)).await?;
            if let Some(last) = left.last() {
                loose.push(Loose { sku: sku.clone(), rows: left.len() as u64, last: *last });
            }
        }
        Ok(loose)
    }

    async fn with_lapsed(&mut self, skus: &[Sku], now: Time) -> Result<Vec<Sku>, Fault> {
        let mut found = Vec::new();
        for skus in skus.chunks(KEYS) {
            let binds = vec![list(skus.iter().map(Sku::as_str)), one(now.millis())];
            found.extend(self.all(sql!("with_lapsed"), binds, rows::a_sku).await?);
        }
        Ok(found)
    }

    async fn lapsed(&mut self, sku: &Sku, now: Time, known: &[HoldId], limit: usize) -> Result<Vec<Hold>, Fault> {
        let binds = vec![one(sku.as_str()), one(now.millis()), ids(known), size(limit)];
        let found = self.all(sql!("lapsed"), binds, rows::hold_id).await?;
        self.all_of(sql!("holds_lock"), &id_values(&found), rows::hold).await
    }

    async fn lapsed_units(&mut self, sku: &Sku, now: Time, known: &[HoldId]) -> Result<u64, Fault> {
        let binds = vec![one(sku.as_str()), one(now.millis()), ids(known)];
        let units = self.one(sql!("lapsed_units"), binds, |row| row.number(0)).await?;
        Ok(units.unwrap_or(0).unsigned_abs())
    }

    async fn due(&mut self, now: Time, known: &[HoldId], rows_wanted: usize) -> Result<Vec<HoldId>, Fault> {
        self.all(sql!("due"), vec![one(now.millis()), ids(known), size(rows_wanted)], rows::hold_id).await
    }

    async fn stale(&mut self, received_before: Time) -> Result<Vec<PaymentKey>, Fault> {
        self.all(sql!("stale"), vec![one(received_before.millis())], rows::key).await
    }

    async fn write(&mut self, writes: &Writes<'_>) -> Result<(), Fault> {
        write::all(self, writes).await
    }

    async fn commit(mut self) -> Result<(), Fault> {
        let timeout = self.timeout;
        let committed = tokio::time::timeout(timeout, self.connection()?.query_drop("COMMIT")).await;
        match committed {
            Ok(done) => done.map_err(failure::commit)?,
            Err(_) => return Err(Fault::Unknown("MySQL did not answer the commit in time".into())),
        }
        self.connection.take();
        Ok(())
    }

    async fn roll_back(mut self) {
        if self.drop_query("ROLLBACK").await.is_ok() {
            self.connection.take();
        }
    }

    async fn stock(&mut self, sku: &Sku, now: Time) -> Result<Option<Stock>, Fault> {
        self.one(sql!("stock"), vec![one(now.millis()), one(sku.as_str())], rows::stock_as_of).await
    }

    async fn stocks(&mut self, after: Option<&Sku>, now: Time, limit: usize) -> Result<Vec<Stock>, Fault> {
        let binds = vec![one(now.millis()), one(after.map_or("", Sku::as_str)), size(limit)];
        self.all(sql!("stocks"), binds, rows::stock_as_of).await
    }

    async fn hold(&mut self, id: HoldId) -> Result<Option<Hold>, Fault> {
        self.one(sql!("hold"), vec![Bind::One(rows::id_value(id))], rows::hold).await
    }

    async fn holds_of_order(&mut self, order: &OrderId) -> Result<Vec<Hold>, Fault> {
        self.all(sql!("holds_of_order"), vec![one(order.as_str())], rows::hold).await
    }

    async fn holds_after(&mut self, after: HoldId, limit: usize) -> Result<Vec<Hold>, Fault> {
        self.all(sql!("holds_after"), vec![Bind::One(rows::id_value(after)), size(limit)], rows::hold).await
    }

    async fn holds_of_sku(&mut self, sku: &Sku, after: i64, limit: usize) -> Result<Vec<(i64, Hold)>, Fault> {
        self.all(sql!("holds_of_sku"), vec![one(sku.as_str()), one(after), size(limit)], rows::numbered_hold).await
    }

    async fn order(&mut self, id: &OrderId) -> Result<Option<Order>, Fault> {
        self.one(sql!("order"), vec![one(id.as_str())], rows::order).await
    }

    async fn payment(&mut self, key: &PaymentKey) -> Result<Option<Payment>, Fault> {
        let binds = vec![one(key.provider.as_str()), one(key.payment_id.as_str())];
        self.one(sql!("payment"), binds, rows::payment).await
    }

    async fn entries(
        &mut self,
        sku: Option<&Sku>,
        order: Option<&OrderId>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<NumberedEntry>, Fault> {
        let (after, limit, sku) = (one(after), size(limit), sku.map(Sku::as_str));
        match (order, sku) {
            (None, None) => self.all(sql!("entries"), vec![after, limit], rows::entry).await,
            (None, Some(sku)) => self.all(sql!("entries_of_sku"), vec![one(sku), after, limit], rows::entry).await,
            (Some(order), sku) => {
                let binds = vec![one(order.as_str()), after, one(sku), one(sku), limit];
                self.all(sql!("entries_of_order"), binds, rows::entry).await
            }
        }
    }

    async fn payments(&mut self, status: Option<&str>, after: i64, limit: usize) -> Result<Vec<(i64, Payment)>, Fault> {
        let binds = vec![one(after), one(status), one(status), size(limit)];
        self.all(sql!("payments"), binds, rows::numbered_payment).await
    }

    async fn refunds(&mut self, state: Option<&str>, after: i64, limit: usize) -> Result<Vec<(i64, Job)>, Fault> {
        self.all(sql!("refunds"), vec![one(after), one(state), one(state), size(limit)], rows::numbered_job).await
    }

    async fn cut(&mut self) -> Result<Cut, Fault> {
        let held = |row: &Row| Ok((row.text(0)?.to_owned(), row.number(1)?));
        let mut cut = Cut {
            last: self.one(sql!("audit_last"), vec![], |row| row.number(0)).await?.unwrap_or(0),
            counters: self.all(sql!("audit_stock"), vec![], rows::sums).await?.into_iter().collect(),
            held: self.all(sql!("audit_held"), vec![], held).await?.into_iter().collect(),
            sold: std::collections::BTreeMap::new(),
        };
        let mut after = String::new();
        loop {
            let orders = self.rows(sql!("audit_sold"), vec![one(after.as_str()), size(STEP)]).await?;
            for row in &orders {
                add_lines(&mut cut.sold, row.text(1)?, 2)?;
            }
            match orders.last() {
                Some(last) if orders.len() == STEP => last.text(0)?.clone_into(&mut after),
                _ => return Ok(cut),
            }
        }
    }

    async fn fold(&mut self, fold: &mut Fold, upto: i64) -> Result<(), Fault> {
        let moved = self.all(sql!("fold"), vec![one(fold.upto), one(upto)], rows::sums).await?;
        moved.into_iter().for_each(|(sku, moved)| fold.add(sku, moved));
        Ok(())
    }

    async fn moved(&mut self) -> Result<Option<Moved>, Fault> {
        self.one(sql!("moved"), vec![], rows::moved).await
    }

    async fn note_move(&mut self, before: Option<&Moved>, now: &Moved) -> Result<(), Fault> {
        write::note_move(self, before, now).await
    }

    async fn counts(&mut self) -> Result<Counts, Fault> {
        Ok(self.one(sql!("counts"), vec![], rows::counts).await?.unwrap_or_default())
    }
}
