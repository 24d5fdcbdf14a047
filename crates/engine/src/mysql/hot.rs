//! What an engine that decides elsewhere keeps and reads here.

use super::rows::{self, Columns};
use super::spread::{Bind, KEYS, lists, rows as spread};
use super::sql;
use super::tx::{MyTx, list, one, size, values};
use crate::sql::{Fault, HotRow, HotTx, Parked, Tx};
use async_trait::async_trait;
use holdfast_domain::{CustomerId, Hold, HoldId, OrderId, PaymentKey, Sku, Time};
use mysql_async::Value;

#[async_trait]
impl HotTx for MyTx {
    async fn hot_make(&mut self, parts: u32) -> Result<(), Fault> {
        for (sql, values) in spread(sql!("make_partitions"), (0..parts).map(|part| vec![part.into()]).collect()) {
            self.touch(sql, values).await?;
        }
        Ok(())
    }

    async fn hot_rows(&mut self, parts: &[u32], lock: bool) -> Result<(Time, Vec<HotRow>), Fault> {
        let mut parts = parts.to_vec();
        // In order over statements too, and a row is told once.
        parts.sort_unstable();
        parts.dedup();
        let sql = if lock { sql!("partitions_lock") } else { sql!("partitions") };
        let found = self.all_of(sql, &values(parts), rows::hot).await?;
        Ok((self.told().await?.now, found))
    }

    async fn hot_write(&mut self, rows: &[HotRow]) -> Result<(), Fault> {
        for row in rows {
            let binds = vec![
                one(row.epoch),
                one(row.is_auditing),
                one(row.since.millis()),
                one(row.server.as_str()),
                one(row.drained_epoch),
                one(row.drained_seq),
                one(row.part),
            ];
            let (sql, values) = lists(sql!("update_partition"), binds);
            if self.touch(sql, values).await? != 1 {
                return Err(Fault::Corrupt("the row of a partition is gone".into()));
            }
        }
        Ok(())
    }

    async fn hot_step(&mut self, token: &str, effects: &str, at: Time) -> Result<bool, Fault> {
        let values: Vec<Value> = vec![token.into(), effects.into(), at.millis().into()];
        self.inserts(sql!("insert_step"), values).await
    }

    async fn hot_step_of(&mut self, token: &str) -> Result<Option<String>, Fault> {
        self.one(sql!("step"), vec![one(token)], |row| Ok(row.text(0)?.to_owned())).await
    }

    async fn hot_steps(&mut self, limit: usize) -> Result<Vec<(String, String)>, Fault> {
        self.all(sql!("steps"), vec![size(limit)], rows::step).await
    }

    async fn hot_forget(&mut self, tokens: &[String], given_up_before: Time) -> Result<(), Fault> {
        for tokens in tokens.chunks(KEYS) {
            let (sql, values) = lists(sql!("delete_steps"), vec![list(tokens.iter().map(String::as_str))]);
            self.touch(sql, values).await?;
        }
        self.touch(sql!("delete_given_up").into(), vec![given_up_before.millis().into()]).await.map(drop)
    }

    async fn hot_park(&mut self, parked: &[Parked], at: Time) -> Result<(), Fault> {
        let row = |p: &Parked| -> Vec<Value> {
            let (fact, why) = (p.fact.as_str().into(), p.why.as_str().into());
            vec![p.part.into(), p.epoch.into(), p.seq.into(), fact, why, at.millis().into()]
        };
        for (sql, values) in spread(sql!("insert_parked"), parked.iter().map(row).collect()) {
            self.touch(sql, values).await?;
        }
        Ok(())
    }

    async fn hot_parked(&mut self) -> Result<u64, Fault> {
        let count = self.one(sql!("count_parked"), vec![], |row| row.number(0)).await?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    async fn held_after(&mut self, after: Option<HoldId>, limit: usize) -> Result<Vec<Hold>, Fault> {
        let after = rows::id_value(after.unwrap_or(HoldId::from_u128(0)));
        self.all(sql!("held_after"), vec![Bind::One(after), size(limit)], rows::hold).await
    }

    async fn orders_after(&mut self, after: Option<&OrderId>, limit: usize) -> Result<Vec<(OrderId, HoldId)>, Fault> {
        let binds = vec![one(after.map_or("", OrderId::as_str)), size(limit)];
        self.all(sql!("orders_after"), binds, rows::latest).await
    }

    async fn bought_after(
        &mut self,
        after: Option<(&CustomerId, &Sku)>,
        limit: usize,
    ) -> Result<Vec<(CustomerId, Sku, i64)>, Fault> {
        let (customer, sku) = after.map_or(("", ""), |(customer, sku)| (customer.as_str(), sku.as_str()));
        let binds = vec![one(customer), one(customer), one(sku), size(limit)];
        self.all(sql!("bought_after"), binds, rows::bought).await
    }

    async fn waiting_after(&mut self, after: i64, limit: usize) -> Result<Vec<(i64, OrderId, PaymentKey)>, Fault> {
        self.all(sql!("waiting_after"), vec![one(after), size(limit)], rows::numbered_waiting).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MyStore, connect, make_database, open};
    use crate::sql::hot_tests;

    #[tokio::test]
    async fn the_bookkeeping_of_the_hot_store_is_kept() {
        let Some(config) = hot_tests::server("HOLDFAST_TEST_MYSQL") else { return };
        let config = make_database(&config, &hot_tests::fresh_name()).await.unwrap();
        let engine = open(&config).await.unwrap();
        let store = MyStore { pool: connect::pool(&config).unwrap(), wait: config.wait, timeout: config.timeout };
        hot_tests::all(store, &*engine).await;
    }
}
