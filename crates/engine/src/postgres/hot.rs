//! What an engine that decides elsewhere keeps and reads here.

use super::pipeline::in_order;
use super::rows::{self, Columns};
use super::tx::{Params, PgTx, size};
use super::{failure, sql};
use crate::sql::{Fault, HotRow, HotTx, Parked};
use async_trait::async_trait;
use holdfast_domain::{CustomerId, Hold, HoldId, OrderId, PaymentKey, Sku, Time};
use tokio_postgres::types::ToSql;

/// Partitions as the database numbers them.
fn numbers(parts: impl Iterator<Item = u32>) -> Vec<i32> {
    parts.map(|part| part as i32).collect()
}

/// An array of one value of each row.
fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

#[async_trait]
impl HotTx for PgTx {
    async fn hot_make(&mut self, parts: u32) -> Result<(), Fault> {
        let last = parts as i32 - 1;
        self.touch(sql!("make_partitions"), &[&last]).await.map(drop)
    }

    async fn hot_rows(&mut self, parts: &[u32], lock: bool) -> Result<(Time, Vec<HotRow>), Fault> {
        let parts = numbers(parts.iter().copied());
        let rows = if lock { sql!("partitions_lock") } else { sql!("partitions") };
        self.limited(async {
            let client = self.client()?;
            let rows = client.prepare_cached(rows).await.map_err(failure::fault)?;
            let told = client.prepare_cached(sql!("told")).await.map_err(failure::fault)?;
            let parts: [&(dyn ToSql + Sync); 1] = [&parts];
            let asked: [(_, Params<'_>); 2] = [(&rows, &parts), (&told, &[])];
            let sent = asked.map(|(statement, params)| async move { client.query(statement, params).await });
            let answers = in_order(sent).await.into_iter().collect::<Result<Vec<_>, _>>().map_err(failure::fault)?;
            let [found, told] = &answers[..] else { return Err(Fault::Corrupt("an answer is missing".into())) };
            let told = told.first().ok_or_else(|| Fault::Corrupt("the row of totals is gone".into()))?;
            Ok((rows::told(told)?.now, found.iter().map(rows::hot).collect::<Result<_, _>>()?))
        })
        .await
    }

    async fn hot_write(&mut self, rows: &[HotRow]) -> Result<(), Fault> {
        let params: Params<'_> = &[
            &numbers(rows.iter().map(|r| r.part)),
            &column(rows, |r| r.epoch),
            &column(rows, |r| r.is_auditing),
            &column(rows, |r| r.since.millis()),
            &column(rows, |r| r.server.as_str()),
            &column(rows, |r| r.drained_epoch),
            &column(rows, |r| r.drained_seq),
        ];
        match self.touch(sql!("update_partitions"), params).await? {
            touched if touched == rows.len() as u64 => Ok(()),
            _ => Err(Fault::Corrupt("the row of a partition is gone".into())),
        }
    }

    async fn hot_step(&mut self, token: &str, effects: &str, at: Time) -> Result<bool, Fault> {
        Ok(self.touch(sql!("insert_step"), &[&token, &effects, &at.millis()]).await? == 1)
    }

    async fn hot_step_of(&mut self, token: &str) -> Result<Option<String>, Fault> {
        self.one(sql!("step"), &[&token], |row| Ok(row.text(0)?.to_owned())).await
    }

    async fn hot_steps(&mut self, limit: usize) -> Result<Vec<(String, String)>, Fault> {
        self.all(sql!("steps"), &[&size(limit)], rows::step).await
    }

    async fn hot_forget(&mut self, tokens: &[String], given_up_before: Time) -> Result<(), Fault> {
        if !tokens.is_empty() {
            self.touch(sql!("delete_steps"), &[&tokens]).await?;
        }
        self.touch(sql!("delete_given_up"), &[&given_up_before.millis()]).await.map(drop)
    }

    async fn hot_park(&mut self, parked: &[Parked], at: Time) -> Result<(), Fault> {
        let params: Params<'_> = &[
            &numbers(parked.iter().map(|p| p.part)),
            &column(parked, |p| p.epoch),
            &column(parked, |p| p.seq),
            &column(parked, |p| p.fact.as_str()),
            &column(parked, |p| p.why.as_str()),
            &at.millis(),
        ];
        self.touch(sql!("insert_parked"), params).await.map(drop)
    }

    async fn hot_parked(&mut self) -> Result<u64, Fault> {
        let count = self.one(sql!("count_parked"), &[], |row| row.number(0)).await?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    async fn held_after(&mut self, after: Option<HoldId>, limit: usize) -> Result<Vec<Hold>, Fault> {
        let after = rows::uuid(after.unwrap_or(HoldId::from_u128(0)));
        self.all(sql!("held_after"), &[&after, &size(limit)], rows::hold).await
    }

    async fn orders_after(&mut self, after: Option<&OrderId>, limit: usize) -> Result<Vec<(OrderId, HoldId)>, Fault> {
        self.all(sql!("orders_after"), &[&after.map_or("", OrderId::as_str), &size(limit)], rows::latest).await
    }

    async fn bought_after(
        &mut self,
        after: Option<(&CustomerId, &Sku)>,
        limit: usize,
    ) -> Result<Vec<(CustomerId, Sku, i64)>, Fault> {
        let (customer, sku) = after.map_or(("", ""), |(customer, sku)| (customer.as_str(), sku.as_str()));
        self.all(sql!("bought_after"), &[&customer, &sku, &size(limit)], rows::bought).await
    }

    async fn waiting_after(&mut self, after: i64, limit: usize) -> Result<Vec<(i64, OrderId, PaymentKey)>, Fault> {
        self.all(sql!("waiting_after"), &[&after, &size(limit)], rows::numbered_waiting).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PgStore, connect, open};
    use crate::sql::hot_tests;

    #[tokio::test]
    async fn the_bookkeeping_of_the_hot_store_is_kept() {
        let Some(config) = hot_tests::server("HOLDFAST_TEST_POSTGRES") else { return };
        let engine = open(&config).await.unwrap();
        let store = PgStore { pool: connect::pool(&config).unwrap(), timeout: config.timeout };
        hot_tests::all(store, &*engine).await;
    }
}
