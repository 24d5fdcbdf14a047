//! What a batch asks for at once: sent without waiting in between, answered in order.

use super::pipeline::in_order;
use super::{failure, rows, sql};
use crate::sql::{Asked, Fault, Found, Told};
use deadpool_postgres::Object;
use holdfast_domain::{CustomerId, OrderId, Ref, Sku};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

/// A statement and its arrays; not sent at all when there is nothing to ask.
struct Query<'a> {
    sql: &'static str,
    params: Vec<&'a (dyn ToSql + Sync)>,
    is_needed: bool,
}

/// What is asked, as arrays.
pub(super) struct Batch<'a> {
    stocks: Vec<&'a str>,
    holds: Vec<Uuid>,
    orders: Vec<&'a str>,
    latest: Vec<&'a str>,
    customers: Vec<&'a str>,
    bought: (Vec<&'a str>, Vec<&'a str>),
    payments: (Vec<&'a str>, Vec<&'a str>),
    events: (Vec<&'a str>, Vec<&'a str>),
    receipts: Vec<&'a str>,
    locks_skus: bool,
}

impl<'a> Batch<'a> {
    pub(super) fn of(asked: &'a Asked, locks_skus: bool) -> Self {
        let mut customers: Vec<&str> = asked.bought.iter().map(|(customer, _)| customer.as_str()).collect();
        customers.sort_unstable();
        customers.dedup();
        Self {
            stocks: asked.stocks.iter().map(Sku::as_str).collect(),
            holds: asked.holds.iter().map(|id| rows::uuid(*id)).collect(),
            orders: asked.orders.iter().map(OrderId::as_str).collect(),
            latest: asked.latest.iter().map(OrderId::as_str).collect(),
            customers,
            bought: asked.bought.iter().map(|(c, s): &(CustomerId, Sku)| (c.as_str(), s.as_str())).unzip(),
            payments: asked.payments.iter().map(|k| (k.provider.as_str(), k.payment_id.as_str())).unzip(),
            events: asked.events.iter().map(|(p, e): &(Ref, Ref)| (p.as_str(), e.as_str())).unzip(),
            receipts: asked.receipts.iter().map(Ref::as_str).collect(),
            locks_skus,
        }
    }

    /// The SKUs come first: whatever is read after them is read under their locks.
    fn queries(&self) -> Vec<Query<'_>> {
        let stocks = if self.locks_skus { sql!("stocks_lock") } else { sql!("stocks_peek") };
        let one = |sql: &'static str, keys: &'_ Vec<&str>| (sql, keys.is_empty());
        let list = |(sql, is_empty): (&'static str, bool), params| Query { sql, params, is_needed: !is_empty };
        vec![
            list(one(stocks, &self.stocks), vec![&self.stocks as _]),
            Query { sql: sql!("told"), params: Vec::new(), is_needed: true },
            list((sql!("holds_lock"), self.holds.is_empty()), vec![&self.holds as _]),
            list(one(sql!("holds_of_orders_lock"), &self.orders), vec![&self.orders as _]),
            list(one(sql!("holds_of_customers_lock"), &self.customers), vec![&self.customers as _]),
            list(one(sql!("orders_lock"), &self.orders), vec![&self.orders as _]),
            list(one(sql!("waiting"), &self.orders), vec![&self.orders as _]),
            list(one(sql!("latest"), &self.latest), vec![&self.latest as _]),
            list(one(sql!("bought"), &self.bought.0), vec![&self.bought.0 as _, &self.bought.1 as _]),
            list(one(sql!("payments_lock"), &self.payments.0), vec![&self.payments.0 as _, &self.payments.1 as _]),
            list(one(sql!("jobs"), &self.payments.0), vec![&self.payments.0 as _, &self.payments.1 as _]),
            list(one(sql!("events"), &self.events.0), vec![&self.events.0 as _, &self.events.1 as _]),
            list(one(sql!("receipts"), &self.receipts), vec![&self.receipts as _]),
        ]
    }

    pub(super) async fn look_up(self, client: &Object) -> Result<(Told, Found), Fault> {
        let queries = self.queries();
        let mut answers = ask(client, &queries).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default();
        let stocks = each(&next(), rows::kept)?;
        let told =
            each(&next(), rows::told)?.pop().ok_or_else(|| Fault::Corrupt("the row of totals is gone".into()))?;
        let mut holds = each(&next(), rows::hold)?;
        holds.extend(each(&next(), rows::hold)?);
        holds.extend(each(&next(), rows::hold)?);
        let found = Found {
            stocks,
            holds,
            orders: each(&next(), rows::order)?,
            waiting: each(&next(), rows::waiting)?,
            latest: each(&next(), rows::latest)?,
            bought: each(&next(), rows::bought)?,
            payments: each(&next(), rows::payment)?,
            jobs: each(&next(), rows::job)?,
            events: each(&next(), rows::event)?,
            receipts: each(&next(), rows::receipt)?,
        };
        Ok((told, found))
    }
}

fn each<T>(found: &[Row], read: fn(&Row) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
    found.iter().map(read).collect()
}

/// Sends every query before it waits for the first answer.
async fn ask(client: &Object, queries: &[Query<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
    let mut prepared: Vec<Option<Statement>> = Vec::with_capacity(queries.len());
    for query in queries {
        let statement =
            if query.is_needed { Some(client.prepare_cached(query.sql).await.map_err(failure::fault)?) } else { None };
        prepared.push(statement);
    }
    let sent = queries.iter().zip(&prepared).map(|(query, statement)| async move {
        match statement {
            Some(statement) => client.query(statement, &query.params).await,
            None => Ok(Vec::new()),
        }
    });
    // The first error in order is the cause of those after it.
    in_order(sent).await.into_iter().map(|answer| answer.map_err(failure::fault)).collect()
}
