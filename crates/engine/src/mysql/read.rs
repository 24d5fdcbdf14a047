//! What a batch asks for at once, a statement after the other.

use super::tx::{MyTx, ids, list};
use super::{rows, sql};
use crate::sql::{Asked, Fault, Found, Told, Tx};
use holdfast_domain::{OrderId, Ref, Sku};

/// The SKUs come first: whatever is read after them is read under their locks.
pub(super) async fn look_up(tx: &mut MyTx, asked: &Asked) -> Result<(Told, Found), Fault> {
    let mut found = Found::default();
    if !asked.stocks.is_empty() {
        let stocks = if tx.locks_skus { sql!("stocks_lock") } else { sql!("stocks_peek") };
        found.stocks = tx.all(stocks, vec![list(asked.stocks.iter().map(Sku::as_str))], rows::kept).await?;
    }
    let told = tx.told().await?;
    if !asked.holds.is_empty() {
        found.holds = tx.all(sql!("holds_lock"), vec![ids(&asked.holds)], rows::hold).await?;
    }
    if !asked.orders.is_empty() {
        let orders = || vec![list(asked.orders.iter().map(OrderId::as_str))];
        found.holds.extend(tx.all(sql!("holds_of_orders_lock"), orders(), rows::hold).await?);
        found.orders = tx.all(sql!("orders_lock"), orders(), rows::order).await?;
        found.waiting = tx.all(sql!("waiting"), orders(), rows::waiting).await?;
    }
    if !asked.latest.is_empty() {
        let orders = vec![list(asked.latest.iter().map(OrderId::as_str))];
        found.latest = tx.all(sql!("latest"), orders, rows::latest).await?;
    }
    if !asked.bought.is_empty() {
        let customers = || list(asked.bought.iter().map(|(customer, _)| customer.as_str()));
        let skus = list(asked.bought.iter().map(|(_, sku)| sku.as_str()));
        found.holds.extend(tx.all(sql!("holds_of_customers_lock"), vec![customers()], rows::hold).await?);
        found.bought = tx.all(sql!("bought"), vec![customers(), skus], rows::bought).await?;
    }
    if !asked.payments.is_empty() {
        let providers = || list(asked.payments.iter().map(|key| key.provider.as_str()));
        let payments = || list(asked.payments.iter().map(|key| key.payment_id.as_str()));
        found.payments = tx.all(sql!("payments_lock"), vec![providers(), payments()], rows::payment).await?;
        found.jobs = tx.all(sql!("jobs"), vec![providers(), payments()], rows::job).await?;
    }
    if !asked.events.is_empty() {
        let providers = list(asked.events.iter().map(|(provider, _)| provider.as_str()));
        let events = list(asked.events.iter().map(|(_, event)| event.as_str()));
        found.events = tx.all(sql!("events"), vec![providers, events], rows::event).await?;
    }
    if !asked.receipts.is_empty() {
        let receipts = vec![list(asked.receipts.iter().map(Ref::as_str))];
        found.receipts = tx.all(sql!("receipts"), receipts, rows::receipt).await?;
    }
    Ok((told, found))
}
