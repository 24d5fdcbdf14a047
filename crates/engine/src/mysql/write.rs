//! The persist step: statements of many rows.

use super::rows::{self, Columns};
use super::spread::{Bind, KEYS, lists, rows as spread};
use super::sql;
use super::tx::{MyTx, id_values, list, one};
use crate::records::{self, lines_text, signed};
use crate::sql::{Changed, Fault, Moved, Writes};
use holdfast_domain::{
    Currency, CustomerId, Hold, HoldId, HoldStatus, Job, JobKind, Order, OrderId, OrderRef, Payment, Ref, Sku, Stock,
};
use mysql_async::Value;

/// Values of one row.
macro_rules! row {
    ($($value:expr),+ $(,)?) => { vec![$(Value::from($value)),+] };
}

/// Writes everything.
pub(super) async fn all(tx: &mut MyTx, writes: &Writes<'_>) -> Result<(), Fault> {
    stocks(tx, writes).await?;
    holds(tx, writes).await?;
    claims(tx, writes).await?;
    money(tx, writes).await?;
    small(tx, writes).await?;
    entries(tx, writes).await?;
    unchanged(tx, writes).await
}

/// Notes how far a move is, and at its beginning and end who may write entries.
pub(super) async fn note_move(tx: &mut MyTx, before: Option<&Moved>, now: &Moved) -> Result<(), Fault> {
    if before.is_none() || now.is_done {
        touch(tx, sql!("set_moving"), vec![one(!now.is_done), one(!now.is_done)], 1).await?;
    }
    let phase = now.phase.as_str();
    let Some(before) = before else {
        let binds = vec![one(now.token), one(now.source.as_str()), one(phase)];
        return touch(tx, sql!("begin_move"), binds, 1).await;
    };
    let binds = vec![
        one(phase),
        one(now.last.as_str()),
        one(now.is_done),
        one(now.token),
        one(before.phase.as_str()),
        one(before.last.as_str()),
    ];
    touch(tx, sql!("note_move"), binds, 1).await
}

/// Writes rows, a statement for many.
async fn insert(tx: &mut MyTx, sql: &str, rows: Vec<Vec<Value>>) -> Result<(), Fault> {
    for (sql, values) in spread(sql, rows) {
        tx.touch(sql, values).await?;
    }
    Ok(())
}

/// Runs a statement that has to touch so many rows: fewer mean that somebody else was faster.
async fn touch(tx: &mut MyTx, sql: &str, binds: Vec<Bind>, expected: usize) -> Result<(), Fault> {
    let (sql, values) = lists(sql, binds);
    faster(tx.touch(sql, values).await?, expected)
}

fn faster(touched: u64, expected: usize) -> Result<(), Fault> {
    if touched == expected as u64 { Ok(()) } else { Err(Fault::Again("another transaction was faster".into())) }
}

async fn stocks(tx: &mut MyTx, writes: &Writes<'_>) -> Result<(), Fault> {
    for (sku, revision) in &writes.removed_stocks {
        let fence = writes.fence(sku);
        let binds = vec![one(sku.as_str()), one(*revision), one(writes.is_naive), one(fence), one(fence)];
        touch(tx, sql!("delete_stock"), binds, 1).await?;
    }
    let counters = |s: &Stock| {
        let limit = signed(s.limit_per_customer);
        let fence = writes.fence(&s.sku);
        row![s.sku.as_str(), s.available as i64, s.held as i64, s.sold as i64, limit, s.version as i64, fence]
    };
    // One statement a SKU: a statement for many would join a table that it makes for the purpose, on disk.
    for changed in &writes.stocks {
        let stock = changed.stock;
        let fence = writes.fence(&stock.sku);
        let binds = vec![
            one(stock.available as i64),
            one(stock.held as i64),
            one(stock.sold as i64),
            one(signed(stock.limit_per_customer)),
            one(stock.version as i64),
            one(changed.carved as i64),
            one(fence),
            one(stock.sku.as_str()),
            one(changed.revision),
            one(writes.is_naive),
            one(fence),
            one(fence),
        ];
        touch(tx, sql!("update_stock"), binds, 1).await?;
    }
    for (sku, units) in writes.gone_units.iter().filter(|(_, units)| *units > 0) {
        touch(tx, sql!("delete_units"), vec![one(sku.as_str()), one(*units)], *units as usize).await?;
    }
    let units = writes.new_units.iter().flat_map(|(sku, from, to)| (*from..=*to).map(|n| row![sku.as_str(), n]));
    insert(tx, sql!("insert_units"), units.collect()).await?;
    insert(tx, sql!("insert_stocks"), writes.new_stocks.iter().map(|stock| counters(stock)).collect()).await
}

/// What was refused rests on SKUs that must still be as they were read.
async fn unchanged(tx: &mut MyTx, writes: &Writes<'_>) -> Result<(), Fault> {
    for (sku, revision) in &writes.unchanged {
        let found = tx.rows(sql!("count_unchanged"), vec![one(sku.as_str()), one(*revision)]).await?;
        let same = found.first().map_or(Ok(0), |row| row.number(0))?;
        faster(same.unsigned_abs(), 1)?;
    }
    Ok(())
}

async fn holds(tx: &mut MyTx, writes: &Writes<'_>) -> Result<(), Fault> {
    for status in [HoldStatus::Released, HoldStatus::Expired] {
        let ended: Vec<HoldId> = writes.ended.iter().filter(|h| h.status == status).map(|h| h.id).collect();
        for ended in ended.chunks(KEYS) {
            let binds = vec![one(status.as_str()), Bind::List(id_values(ended))];
            touch(tx, sql!("end_holds"), binds, ended.len()).await?;
        }
    }
    // Those that end before those that begin: an order has one current hold at a time.
    let is_current = |changed: &Changed<'_>| changed.hold.status.is_current();
    let (begin, end): (Vec<_>, Vec<_>) = writes.holds.iter().copied().partition(is_current);
    for changed in end {
        update_hold(tx, changed).await?;
    }
    for was in [HoldStatus::Held, HoldStatus::Released, HoldStatus::Expired] {
        for late in [false, true] {
            let is_it = |c: &&Changed<'_>| is_confirmed(c) && c.was == was && c.hold.late == late;
            let confirmed: Vec<HoldId> = begin.iter().filter(is_it).map(|c| c.hold.id).collect();
            if !confirmed.is_empty() {
                let binds = vec![one(late), Bind::List(id_values(&confirmed)), one(was.as_str())];
                touch(tx, sql!("confirm_holds"), binds, confirmed.len()).await?;
            }
        }
    }
    for changed in begin.into_iter().filter(|changed| !is_confirmed(changed)) {
        update_hold(tx, changed).await?;
    }
    insert(tx, sql!("insert_holds"), writes.new_holds.iter().map(|hold| new_hold(hold)).collect()).await
}

/// Became an order, and nothing else.
fn is_confirmed(changed: &Changed<'_>) -> bool {
    changed.is_plain && changed.hold.status == HoldStatus::Confirmed
}

async fn update_hold(tx: &mut MyTx, Changed { hold, was, .. }: Changed<'_>) -> Result<(), Fault> {
    let binds = vec![
        one(hold.status.as_str()),
        one(lines_text(&hold.lines)),
        one(signed(hold.money.amount)),
        one(hold.expires_at.millis()),
        one(hold.late),
        one(hold.payment_ref.as_deref()),
        Bind::One(rows::id_value(hold.id)),
        one(was.as_str()),
    ];
    touch(tx, sql!("update_hold"), binds, 1).await
}

fn new_hold(hold: &Hold) -> Vec<Value> {
    row![
        rows::id_value(hold.id),
        hold.order_id.as_str(),
        hold.status.as_str(),
        lines_text(&hold.lines),
        hold.customer_id.as_ref().map(CustomerId::as_str),
        signed(hold.money.amount),
        hold.money.currency.as_ref().map(Currency::as_str),
        hold.created_at.millis(),
        hold.expires_at.millis(),
        hold.late,
        hold.payment_ref.as_deref(),
        hold.metadata.as_deref(),
    ]
}

async fn claims(tx: &mut MyTx, writes: &Writes<'_>) -> Result<(), Fault> {
    for gone in writes.gone_claims.chunks(KEYS) {
        let holds = list(gone.iter().map(|(hold, _)| rows::id_value(*hold)));
        let lines = gone.iter().map(|(_, lines)| lines).sum();
        touch(tx, sql!("delete_claims"), vec![holds], lines).await?;
    }
    let new = writes.new_claims.iter();
    let new = new.map(|(sku, at, hold, units)| row![sku.as_str(), at.millis(), rows::id_value(*hold), *units as i64]);
    insert(tx, sql!("insert_claims"), new.collect()).await
}

async fn money(tx: &mut MyTx, writes: &Writes<'_>) -> Result<(), Fault> {
    insert(tx, sql!("insert_orders"), writes.new_orders.iter().map(|order| new_order(order)).collect()).await?;
    for order in &writes.orders {
        let binds = vec![
            one(order.status.as_str()),
            one(records::write_order_lines(&order.lines)),
            one(order.payment.as_ref().map(|p| p.provider.as_str())),
            one(order.payment.as_ref().map(|p| p.payment_id.as_str())),
            one(order.order_id.as_str()),
        ];
        touch(tx, sql!("update_order"), binds, 1).await?;
    }
    insert(tx, sql!("insert_payments"), writes.new_payments.iter().map(|p| payment(p)).collect()).await?;
    for changed in &writes.payments {
        let mut values = payment(changed);
        values.rotate_left(2);
        touch(tx, sql!("update_payment"), values.into_iter().map(Bind::One).collect(), 1).await?;
    }
    insert(tx, sql!("upsert_jobs"), writes.jobs.iter().map(|j| job(j)).collect()).await
}

fn new_order(order: &Order) -> Vec<Value> {
    row![
        rows::id_value(order.hold_id),
        order.order_id.as_str(),
        order.status.as_str(),
        records::write_order_lines(&order.lines),
        order.payment.as_ref().map(|p| p.provider.as_str()),
        order.payment.as_ref().map(|p| p.payment_id.as_str()),
        order.confirmed_at.millis(),
        order.late,
        order.customer_id.as_ref().map(CustomerId::as_str),
        signed(order.money.amount),
        order.money.currency.as_ref().map(Currency::as_str),
    ]
}

fn payment(payment: &Payment) -> Vec<Value> {
    let (order, hold) = match &payment.order {
        Some(OrderRef::Order(id)) => (Some(id.as_str()), None),
        Some(OrderRef::Hold(id)) => (None, Some(rows::id_value(*id))),
        None => (None, None),
    };
    row![
        payment.key.provider.as_str(),
        payment.key.payment_id.as_str(),
        order,
        hold.unwrap_or(Value::NULL),
        signed(payment.money.amount),
        payment.money.currency.as_ref().map(Currency::as_str),
        payment.email.as_deref(),
        payment.authorized,
        payment.captured,
        payment.failed,
        payment.canceled,
        payment.refunded as i64,
        payment.status.as_str(),
        payment.received_at.millis(),
        payment.capture_failed,
        payment.refund_failed,
        payment.disputed,
    ]
}

fn job(job: &Job) -> Vec<Value> {
    row![
        job.payment.provider.as_str(),
        job.payment.payment_id.as_str(),
        job.kind == JobKind::Capture,
        job.kind.as_str(),
        job.reason.as_str(),
        job.state.as_str(),
        &*job.idempotency_key,
        signed(job.money.amount),
        job.money.currency.as_ref().map(Currency::as_str),
        job.created_at.millis(),
        job.attempts,
        job.next_at.millis(),
        job.reference.as_ref().map(Ref::as_str),
        job.error.as_deref(),
    ]
}

async fn small(tx: &mut MyTx, writes: &Writes<'_>) -> Result<(), Fault> {
    let events = writes.events.iter().map(|(provider, event)| row![provider.as_str(), event.as_str()]);
    insert(tx, sql!("insert_events"), events.collect()).await?;
    let receipts = writes.receipts.iter().map(|(key, used_for)| row![key.as_str(), &**used_for]);
    insert(tx, sql!("insert_receipts"), receipts.collect()).await?;
    let (taken, added): (Vec<_>, Vec<_>) = writes.bought.iter().partition(|(.., units)| *units < 0);
    let added = added.into_iter().map(|(customer, sku, units)| row![customer.as_str(), sku.as_str(), units]);
    insert(tx, sql!("add_purchases"), added.collect()).await?;
    for (customer, sku, units) in taken {
        touch(tx, sql!("take_purchase"), vec![one(units), one(customer.as_str()), one(sku.as_str())], 1).await?;
    }
    Ok(())
}

/// Last of all: this locks the one row that every writer locks.
async fn entries(tx: &mut MyTx, writes: &Writes<'_>) -> Result<(), Fault> {
    let count = writes.entries.len() as i64;
    if !writes.changes_totals() {
        return Ok(());
    }
    let (holds, skus, now) = (one(writes.more_holds), one(writes.more_skus), one(writes.now.millis()));
    let binds = vec![one(count), holds, skus, now, one(writes.is_move)];
    touch(tx, sql!("count_entries"), binds, 1).await?;
    let before = tx.made()? - count;
    let entries = writes.entries.iter().zip(before + 1..).map(|(entry, seq)| {
        row![
            seq,
            entry.at.millis(),
            entry.kind.as_str(),
            entry.sku.as_ref().map(Sku::as_str),
            entry.available,
            entry.held,
            entry.sold,
            entry.hold.map_or(Value::NULL, rows::id_value),
            entry.order.as_ref().map(OrderId::as_str),
            entry.reason.as_deref(),
        ]
    });
    insert(tx, sql!("insert_entries"), entries.collect()).await
}
