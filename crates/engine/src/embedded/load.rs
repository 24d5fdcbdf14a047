//! The load step: what a command wants to know, looked up through the writer's own connection.

use super::failure::{Failure, corrupt};
use super::rows;
use holdfast_domain::{
    CustomerId, Hold, HoldId, Inventory, Job, Key, Order, OrderFile, OrderId, Payment, PaymentKey, Policy, Ref, Sku,
    Stock,
};
use rusqlite::{Connection, OptionalExtension, Params, Row};
use std::sync::LazyLock;

/// Payments looked at in one pass of the janitor.
const STALE_LIMIT: i64 = 100;

/// Runs a prepared query for at most one row.
pub(super) fn one<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// Runs a prepared query for all its rows.
pub(super) fn all<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Everything that claims units: every SKU, and every hold with status held. The SKUs are told once more beside it.
pub(super) fn inventory(db: &Connection, policy: Policy, seed: u64) -> Result<(Inventory, Vec<Stock>), Failure> {
    let mut inventory = Inventory::whole(policy, seed);
    let stocks = all(db, &format!("SELECT {} FROM stock", rows::STOCK), [], rows::stock)?;
    for stock in &stocks {
        inventory.put_stock(stock.clone());
    }
    let sql = format!(
        "SELECT {} FROM holds h WHERE n >= (SELECT value FROM meta WHERE name = 'low_water') AND status = 'held'",
        rows::HOLD
    );
    let mut statement = db.prepare(&sql)?;
    let mut held = statement.query([])?;
    while let Some(row) = held.next()? {
        inventory.put_hold(rows::hold(row)?);
    }
    Ok((inventory, stocks))
}

/// The number of the last ledger entry; 0 when there is none.
pub(super) fn last_entry(db: &Connection) -> Result<i64, Failure> {
    Ok(one(db, "SELECT coalesce(max(seq), 0) FROM ledger", [], |row| Ok(row.get(0)?))?.unwrap_or(0))
}

/// How many payments wait for their hold to appear.
pub(super) fn waiting_count(db: &Connection) -> Result<u64, Failure> {
    let sql = "SELECT count(*) FROM payments WHERE status IN ('unmatched', 'needs_attention')";
    Ok(one(db, sql, [], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))?.unwrap_or(0))
}

/// Looks one key up and hands in what was found.
pub(super) fn key(db: &Connection, inventory: &mut Inventory, key: Key, any_waiting: bool) -> Result<(), Failure> {
    match &key {
        // A whole inventory knows every SKU and every hold that claims units.
        Key::Stock(_) | Key::Lapsed(_) | Key::Rest(_) | Key::Due(_) => inventory.put_absent(key),
        Key::Hold(id) => match hold(db, *id)? {
            Some(found) => inventory.put_hold(found),
            None => inventory.put_absent(key),
        },
        Key::Order(id) => inventory.put_order(id.clone(), order_file(db, id, any_waiting)?),
        Key::Latest(order) => match latest(db, order)? {
            Some(hold) => inventory.put_latest(order.clone(), hold),
            None => inventory.put_absent(key),
        },
        Key::Bought(customer, sku) => {
            inventory.put_bought(customer.clone(), sku.clone(), bought(db, customer, sku)?);
        }
        Key::Payment(of) => match payment(db, of)? {
            Some(found) => inventory.put_payment(found, jobs(db, of)?),
            None => inventory.put_absent(key),
        },
        Key::Event(provider, event) => {
            let sql = "SELECT 1 FROM events WHERE provider = ?1 AND event_id = ?2";
            match one(db, sql, [provider.as_str(), event.as_str()], |_| Ok(()))? {
                Some(()) => inventory.put_event(provider.clone(), event.clone()),
                None => inventory.put_absent(key),
            }
        }
        Key::Receipt(of) => match receipt(db, of)? {
            Some(used_for) => inventory.put_receipt(of.clone(), used_for.into()),
            None => inventory.put_absent(key),
        },
        Key::Stale => inventory.put_stale(stale(db)?),
    }
    Ok(())
}

pub(super) fn hold(db: &Connection, id: HoldId) -> Result<Option<Hold>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| format!("SELECT {} FROM holds h WHERE n = ?1", rows::HOLD));
    Ok(one(db, &SQL, [rows::hold_number(id)], rows::hold)?.filter(|found| found.id == id))
}

pub(super) fn order(db: &Connection, id: &OrderId) -> Result<Option<Order>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {} FROM holds h JOIN orders o ON o.n = h.n WHERE h.order_id = ?1 AND h.status = 'confirmed'",
            rows::ORDER
        )
    });
    one(db, &SQL, [id.as_str()], rows::order)
}

fn order_file(db: &Connection, id: &OrderId, any_waiting: bool) -> Result<OrderFile, Failure> {
    let waiting = "SELECT provider, payment_id FROM payments
        WHERE order_id = ?1 AND status IN ('unmatched', 'needs_attention') ORDER BY n";
    let order = order(db, id)?;
    let waiting = if any_waiting {
        all(db, waiting, [id.as_str()], |row| {
            let text = |column| Ok::<_, Failure>(row.get::<_, String>(column)?);
            Ok(Ref::new(&text(0)?).ok().zip(Ref::new(&text(1)?).ok()))
        })?
    } else {
        Vec::new()
    };
    let waiting = waiting.into_iter().flatten().map(|(provider, payment_id)| PaymentKey { provider, payment_id });
    Ok(OrderFile { order, waiting: waiting.collect() })
}

fn latest(db: &Connection, order: &OrderId) -> Result<Option<HoldId>, Failure> {
    // Written like the condition of the index, so that SQLite uses it.
    let sql = "SELECT id FROM holds WHERE order_id = ?1 AND status <> 'held' AND status <> 'confirmed'
        ORDER BY n DESC LIMIT 1";
    let id = one(db, sql, [order.as_str()], |row| Ok(row.get::<_, String>(0)?))?;
    id.map(|id| HoldId::parse(&id).ok_or_else(|| corrupt(format_args!("bad hold id {id:?}")))).transpose()
}

fn bought(db: &Connection, customer: &CustomerId, sku: &Sku) -> Result<i64, Failure> {
    let sql = "SELECT units FROM purchases WHERE customer_id = ?1 AND sku = ?2";
    Ok(one(db, sql, [customer.as_str(), sku.as_str()], |row| Ok(row.get(0)?))?.unwrap_or(0))
}

pub(super) fn payment(db: &Connection, of: &PaymentKey) -> Result<Option<Payment>, Failure> {
    let sql = format!("SELECT {} FROM payments WHERE provider = ?1 AND payment_id = ?2", rows::PAYMENT);
    one(db, &sql, [of.provider.as_str(), of.payment_id.as_str()], rows::payment)
}

pub(super) fn jobs(db: &Connection, of: &PaymentKey) -> Result<Vec<Job>, Failure> {
    let sql = format!("SELECT {} FROM jobs WHERE provider = ?1 AND payment_id = ?2", rows::JOB);
    all(db, &sql, [of.provider.as_str(), of.payment_id.as_str()], rows::job)
}

fn receipt(db: &Connection, key: &Ref) -> Result<Option<String>, Failure> {
    Ok(db
        .prepare_cached("SELECT used_for FROM receipts WHERE key = ?1")?
        .query_row([key.as_str()], |row| row.get(0))
        .optional()?)
}

fn stale(db: &Connection) -> Result<Vec<(Payment, Vec<Job>)>, Failure> {
    let sql = format!(
        "SELECT {} FROM payments WHERE status = 'unmatched' ORDER BY received_at LIMIT {STALE_LIMIT}",
        rows::PAYMENT
    );
    let mut found = Vec::new();
    for payment in all(db, &sql, [], rows::payment)? {
        let jobs = jobs(db, &payment.key)?;
        found.push((payment, jobs));
    }
    Ok(found)
}
