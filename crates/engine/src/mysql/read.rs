//! What a batch asks for at once, a statement after the other.

use super::spread::{Bind, KEYS};
use super::tx::{MyTx, id_values, values};
use super::{rows, sql};
use crate::sql::{Asked, Fault, Found, Told, Tx};
use holdfast_domain::{OrderId, Ref, Sku};
use mysql_async::{Row, Value};

/// The SKUs come first: whatever is read after them is read under their locks.
pub(super) async fn look_up(tx: &mut MyTx, asked: &Asked) -> Result<(Told, Found), Fault> {
    let mut found = Found::default();
    let stocks = if tx.locks_skus { sql!("stocks_lock") } else { sql!("stocks_peek") };
    found.stocks = tx.all_of(stocks, &values(asked.stocks.iter().map(Sku::as_str)), rows::kept).await?;
    let told = tx.told().await?;
    found.holds = tx.all_of(sql!("holds_lock"), &id_values(&asked.holds), rows::hold).await?;
    let orders = values(asked.orders.iter().map(OrderId::as_str));
    found.holds.extend(tx.all_of(sql!("holds_of_orders_lock"), &orders, rows::hold).await?);
    found.orders = tx.all_of(sql!("orders_lock"), &orders, rows::order).await?;
    found.waiting = tx.all_of(sql!("waiting"), &orders, rows::waiting).await?;
    let latest = values(asked.latest.iter().map(OrderId::as_str));
    found.latest = tx.all_of(sql!("latest"), &latest, rows::latest).await?;
    let customers = values(asked.bought.iter().map(|(customer, _)| customer.as_str()));
    found.holds.extend(tx.all_of(sql!("holds_of_customers_lock"), &customers, rows::hold).await?);
    let skus = values(asked.bought.iter().map(|(_, sku)| sku.as_str()));
    found.bought = pairs(tx, sql!("bought"), &customers, &skus, rows::bought).await?;
    let providers = values(asked.payments.iter().map(|key| key.provider.as_str()));
    let payments = values(asked.payments.iter().map(|key| key.payment_id.as_str()));
    found.payments = pairs(tx, sql!("payments_lock"), &providers, &payments, rows::payment).await?;
    found.jobs = pairs(tx, sql!("jobs"), &providers, &payments, rows::job).await?;
    let providers = values(asked.events.iter().map(|(provider, _)| provider.as_str()));
    let events = values(asked.events.iter().map(|(_, event)| event.as_str()));
    found.events = pairs(tx, sql!("events"), &providers, &events, rows::event).await?;
    found.receipts =
        tx.all_of(sql!("receipts"), &values(asked.receipts.iter().map(Ref::as_str)), rows::receipt).await?;
    Ok((told, found))
}

/// The rows of pairs, and maybe of others that can be made of their halves.
async fn pairs<T>(
    tx: &mut MyTx,
    sql: &str,
    first: &[Value],
    second: &[Value],
    read: fn(&Row) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut found = Vec::new();
    for (first, second) in first.chunks(KEYS).zip(second.chunks(KEYS)) {
        let binds = vec![Bind::List(first.to_vec()), Bind::List(second.to_vec())];
        found.extend(tx.all(sql, binds, read).await?);
    }
    Ok(found)
}
