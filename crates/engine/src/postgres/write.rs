//! The persist step: a statement a table, each with an array a column, sent without waiting in between.

use super::pipeline::in_order;
use super::rows::{self, Columns};
use super::tx::Params;
use super::{failure, sql};
use crate::records::{self, lines_text, signed};
use crate::sql::{Changed, Fault, Moved, Writes};
use deadpool_postgres::Object;
use holdfast_domain::{
    Currency, CustomerId, Hold, HoldId, Job, JobKind, Order, OrderId, OrderRef, Payment, Ref, Sku, Stock, Time,
};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

type Column<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// A statement, and how many rows it has to touch: fewer mean that somebody else was faster.
struct Write<'a> {
    sql: &'static str,
    columns: Vec<Column<'a>>,
    touches: Option<usize>,
}

/// An array of one value of each row.
fn column<'a, R: 'a, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Column<'a>
where
    Vec<T>: ToSql + Sync + Send + 'a,
{
    Box::new(rows.iter().map(value).collect::<Vec<T>>())
}

/// Writes everything, in one go.
pub(super) async fn all(client: &Object, writes: &Writes<'_>) -> Result<(), Fault> {
    let mut planned = Vec::new();
    stocks(writes, &mut planned);
    holds(writes, &mut planned);
    money(writes, &mut planned);
    small(writes, &mut planned);
    entries(writes, &mut planned);
    let mut prepared = Vec::with_capacity(planned.len());
    for write in &planned {
        prepared.push(client.prepare_cached(write.sql).await.map_err(failure::fault)?);
    }
    let sent = planned.iter().zip(&prepared).map(|(write, statement)| {
        let params: Vec<&(dyn ToSql + Sync)> = write.columns.iter().map(|column| &**column as _).collect();
        async move { client.execute(statement, &params).await }
    });
    // The first error in order is the cause of those after it.
    for (told, write) in in_order(sent).await.into_iter().zip(&planned) {
        let touched = told.map_err(failure::fault)?;
        if write.touches.is_some_and(|rows| rows as u64 != touched) {
            return Err(Fault::Again("another transaction was faster".into()));
        }
    }
    unchanged(client, writes).await
}

/// Notes how far a move is, and at its beginning and end who may write entries.
pub(super) async fn note_move(client: &Object, before: Option<&Moved>, now: &Moved) -> Result<(), Fault> {
    if before.is_none() || now.is_done {
        touch_one(client, sql!("set_moving"), &[&!now.is_done]).await?;
    }
    let phase = now.phase.as_str();
    let Some(before) = before else {
        return touch_one(client, sql!("begin_move"), &[&now.token, &now.source, &phase]).await;
    };
    let was = before.phase.as_str();
    let params: Params<'_> = &[&phase, &now.last, &now.is_done, &now.token, &was, &before.last];
    touch_one(client, sql!("note_move"), params).await
}

async fn touch_one(client: &Object, sql: &str, params: Params<'_>) -> Result<(), Fault> {
    let statement = client.prepare_cached(sql).await.map_err(failure::fault)?;
    match client.execute(&statement, params).await.map_err(failure::fault)? {
        1 => Ok(()),
        _ => Err(Fault::Again("another transaction was faster".into())),
    }
}

/// What was refused rests on SKUs that must still be as they were read.
async fn unchanged(client: &Object, writes: &Writes<'_>) -> Result<(), Fault> {
    if writes.unchanged.is_empty() {
        return Ok(());
    }
    let (skus, revisions): (Vec<&str>, Vec<i64>) = writes.unchanged.iter().map(|(s, at)| (s.as_str(), at)).unzip();
    let statement = client.prepare_cached(sql!("count_unchanged")).await.map_err(failure::fault)?;
    let row = client.query_one(&statement, &[&skus, &revisions]).await.map_err(failure::fault)?;
    if row.number(0)? as usize == skus.len() { Ok(()) } else { Err(Fault::Again("a SKU was changed meanwhile".into())) }
}

fn stocks<'a>(writes: &'a Writes<'a>, planned: &mut Vec<Write<'a>>) {
    let values = |stocks: &'a [&'a Stock]| -> Vec<Column<'a>> {
        vec![
            column(stocks, |s| s.sku.as_str()),
            column(stocks, |s| s.available as i64),
            column(stocks, |s| s.held as i64),
            column(stocks, |s| s.sold as i64),
            column(stocks, |s| signed(s.limit_per_customer)),
            column(stocks, |s| s.version as i64),
            column(stocks, |s| writes.fence(&s.sku)),
        ]
    };
    if !writes.removed_stocks.is_empty() {
        let removed = &writes.removed_stocks;
        planned.push(Write {
            sql: sql!("delete_stocks"),
            columns: vec![
                column(removed, |(sku, _)| sku.as_str()),
                column(removed, |(_, revision)| *revision),
                column(removed, |(sku, _)| writes.fence(sku)),
                Box::new(writes.is_naive),
            ],
            touches: Some(removed.len()),
        });
    }
    if !writes.stocks.is_empty() {
        let stocks = &writes.stocks;
        planned.push(Write {
            sql: sql!("update_stocks"),
            columns: vec![
                column(stocks, |s| s.stock.sku.as_str()),
                column(stocks, |s| s.stock.available as i64),
                column(stocks, |s| s.stock.held as i64),
                column(stocks, |s| s.stock.sold as i64),
                column(stocks, |s| signed(s.stock.limit_per_customer)),
                column(stocks, |s| s.stock.version as i64),
                column(stocks, |s| s.carved as i64),
                column(stocks, |s| s.revision),
                column(stocks, |s| writes.fence(&s.stock.sku)),
                Box::new(writes.is_naive),
            ],
            touches: Some(stocks.len()),
        });
    }
    let gone = &writes.gone_units;
    if !gone.is_empty() {
        let columns = vec![column(gone, |(sku, _)| sku.as_str()), column(gone, |(_, units)| *units as i64)];
        planned.push(Write { sql: sql!("delete_units"), columns, touches: None });
    }
    let new = &writes.new_units;
    if !new.is_empty() {
        let columns =
            vec![column(new, |(sku, ..)| sku.as_str()), column(new, |(_, from, _)| *from), column(new, |(.., to)| *to)];
        planned.push(Write { sql: sql!("insert_units"), columns, touches: None });
    }
    if !writes.new_stocks.is_empty() {
        planned.push(Write { sql: sql!("insert_stocks"), columns: values(&writes.new_stocks), touches: None });
    }
}

fn holds<'a>(writes: &'a Writes<'a>, planned: &mut Vec<Write<'a>>) {
    let ended = &writes.ended;
    if !ended.is_empty() {
        planned.push(Write {
            sql: sql!("end_holds"),
            columns: vec![column(ended, |h| rows::uuid(h.id)), column(ended, |h| h.status.as_str())],
            touches: Some(ended.len()),
        });
    }
    // Those that end before those that begin: an order has one current hold at a time.
    let is_current = |changed: &Changed<'_>| changed.hold.status.is_current();
    let (begin, end): (Vec<_>, Vec<_>) = writes.holds.iter().copied().partition(is_current);
    for changed in [end, begin] {
        if changed.is_empty() {
            continue;
        }
        let touches = Some(changed.len());
        planned.push(Write { sql: sql!("update_holds"), columns: changed_holds(&changed), touches });
    }
    if !writes.new_holds.is_empty() {
        planned.push(Write { sql: sql!("insert_holds"), columns: new_holds(&writes.new_holds), touches: None });
    }
    let gone = &writes.gone_claims;
    if !gone.is_empty() {
        planned.push(Write {
            sql: sql!("delete_claims"),
            columns: vec![column(gone, |(hold, _)| rows::uuid(*hold))],
            touches: Some(gone.iter().map(|(_, lines)| lines).sum()),
        });
    }
    let new = &writes.new_claims;
    if !new.is_empty() {
        planned.push(Write {
            sql: sql!("insert_claims"),
            columns: vec![
                column(new, |(sku, ..)| sku.as_str()),
                column(new, |(_, at, ..)| at.millis()),
                column(new, |(_, _, hold, _)| rows::uuid(*hold)),
                column(new, |(.., units)| *units as i64),
            ],
            touches: None,
        });
    }
}

/// The columns own what they hold, since the rows are sorted for the occasion.
fn changed_holds<'a>(changed: &[Changed<'a>]) -> Vec<Column<'a>> {
    fn owned<'a, T>(changed: &[Changed<'a>], value: impl Fn(&'a Hold) -> T) -> Column<'a>
    where
        Vec<T>: ToSql + Sync + Send + 'a,
    {
        Box::new(changed.iter().map(|changed| value(changed.hold)).collect::<Vec<T>>())
    }
    vec![
        owned(changed, |h| rows::uuid(h.id)),
        owned(changed, |h| h.status.as_str()),
        owned(changed, |h| lines_text(&h.lines)),
        owned(changed, |h| signed(h.money.amount)),
        owned(changed, |h| h.expires_at.millis()),
        owned(changed, |h| h.late),
        owned(changed, |h| h.payment_ref.as_deref()),
        Box::new(changed.iter().map(|changed| changed.was.as_str()).collect::<Vec<_>>()),
    ]
}

fn new_holds<'a>(holds: &'a [&'a Hold]) -> Vec<Column<'a>> {
    vec![
        column(holds, |h| rows::uuid(h.id)),
        column(holds, |h| h.order_id.as_str()),
        column(holds, |h| h.status.as_str()),
        column(holds, |h| lines_text(&h.lines)),
        column(holds, |h| h.customer_id.as_ref().map(CustomerId::as_str)),
        column(holds, |h| signed(h.money.amount)),
        column(holds, |h| h.money.currency.as_ref().map(Currency::as_str)),
        column(holds, |h| h.created_at.millis()),
        column(holds, |h| h.expires_at.millis()),
        column(holds, |h| h.late),
        column(holds, |h| h.payment_ref.as_deref()),
        column(holds, |h| h.metadata.as_deref()),
    ]
}

fn money<'a>(writes: &'a Writes<'a>, planned: &mut Vec<Write<'a>>) {
    if !writes.new_orders.is_empty() {
        planned.push(Write { sql: sql!("insert_orders"), columns: new_orders(&writes.new_orders), touches: None });
    }
    let orders = &writes.orders;
    if !orders.is_empty() {
        planned.push(Write {
            sql: sql!("update_orders"),
            columns: vec![
                column(orders, |o| o.order_id.as_str()),
                column(orders, |o| o.status.as_str()),
                column(orders, |o| records::write_order_lines(&o.lines)),
                column(orders, |o| o.payment.as_ref().map(|p| p.provider.as_str())),
                column(orders, |o| o.payment.as_ref().map(|p| p.payment_id.as_str())),
            ],
            touches: Some(orders.len()),
        });
    }
    if !writes.new_payments.is_empty() {
        planned.push(Write { sql: sql!("insert_payments"), columns: payments(&writes.new_payments), touches: None });
    }
    if !writes.payments.is_empty() {
        let touches = Some(writes.payments.len());
        planned.push(Write { sql: sql!("update_payments"), columns: payments(&writes.payments), touches });
    }
    if !writes.jobs.is_empty() {
        planned.push(Write { sql: sql!("upsert_jobs"), columns: jobs(&writes.jobs), touches: None });
    }
}

fn new_orders<'a>(orders: &'a [&'a Order]) -> Vec<Column<'a>> {
    vec![
        column(orders, |o| rows::uuid(o.hold_id)),
        column(orders, |o| o.order_id.as_str()),
        column(orders, |o| o.status.as_str()),
        column(orders, |o| records::write_order_lines(&o.lines)),
        column(orders, |o| o.payment.as_ref().map(|p| p.provider.as_str())),
        column(orders, |o| o.payment.as_ref().map(|p| p.payment_id.as_str())),
        column(orders, |o| o.confirmed_at.millis()),
        column(orders, |o| o.late),
        column(orders, |o| o.customer_id.as_ref().map(CustomerId::as_str)),
        column(orders, |o| signed(o.money.amount)),
        column(orders, |o| o.money.currency.as_ref().map(Currency::as_str)),
    ]
}

fn payments<'a>(payments: &'a [&'a Payment]) -> Vec<Column<'a>> {
    let order = |p: &'a &'a Payment| match &p.order {
        Some(OrderRef::Order(id)) => Some(id.as_str()),
        _ => None,
    };
    let hold = |p: &'a &'a Payment| -> Option<Uuid> {
        match &p.order {
            Some(OrderRef::Hold(id)) => Some(rows::uuid(*id)),
            _ => None,
        }
    };
    vec![
        column(payments, |p| p.key.provider.as_str()),
        column(payments, |p| p.key.payment_id.as_str()),
        column(payments, order),
        column(payments, hold),
        column(payments, |p| signed(p.money.amount)),
        column(payments, |p| p.money.currency.as_ref().map(Currency::as_str)),
        column(payments, |p| p.email.as_deref()),
        column(payments, |p| p.authorized),
        column(payments, |p| p.captured),
        column(payments, |p| p.failed),
        column(payments, |p| p.canceled),
        column(payments, |p| p.refunded as i64),
        column(payments, |p| p.status.as_str()),
        column(payments, |p| p.received_at.millis()),
        column(payments, |p| p.capture_failed),
        column(payments, |p| p.refund_failed),
        column(payments, |p| p.disputed),
    ]
}

fn jobs<'a>(jobs: &'a [&'a Job]) -> Vec<Column<'a>> {
    vec![
        column(jobs, |j| j.payment.provider.as_str()),
        column(jobs, |j| j.payment.payment_id.as_str()),
        column(jobs, |j| j.kind == JobKind::Capture),
        column(jobs, |j| j.kind.as_str()),
        column(jobs, |j| j.reason.as_str()),
        column(jobs, |j| j.state.as_str()),
        column(jobs, |j| &*j.idempotency_key),
        column(jobs, |j| signed(j.money.amount)),
        column(jobs, |j| j.money.currency.as_ref().map(Currency::as_str)),
        column(jobs, |j| j.created_at.millis()),
        column(jobs, |j| i64::from(j.attempts)),
        column(jobs, |j| j.next_at.millis()),
        column(jobs, |j| j.reference.as_ref().map(Ref::as_str)),
        column(jobs, |j| j.error.as_deref()),
    ]
}

fn small<'a>(writes: &'a Writes<'a>, planned: &mut Vec<Write<'a>>) {
    if !writes.events.is_empty() {
        let events = writes.events;
        let columns = vec![column(events, |(provider, _)| provider.as_str()), column(events, |(_, id)| id.as_str())];
        planned.push(Write { sql: sql!("insert_events"), columns, touches: None });
    }
    if !writes.receipts.is_empty() {
        let receipts = writes.receipts;
        let columns = vec![column(receipts, |(key, _)| key.as_str()), column(receipts, |(_, used_for)| &**used_for)];
        planned.push(Write { sql: sql!("insert_receipts"), columns, touches: None });
    }
    for (sql, is_taken) in [(sql!("add_purchases"), false), (sql!("take_purchases"), true)] {
        // What is taken back was bought before, so its row is there; an upsert would fail the check on its way in.
        let rows: Vec<_> = writes.bought.iter().filter(|(.., units)| (*units < 0) == is_taken).collect();
        if rows.is_empty() {
            continue;
        }
        let columns: Vec<Column<'a>> = vec![
            Box::new(rows.iter().map(|(customer, ..)| customer.as_str()).collect::<Vec<_>>()),
            Box::new(rows.iter().map(|(_, sku, _)| sku.as_str()).collect::<Vec<_>>()),
            Box::new(rows.iter().map(|(.., units)| *units).collect::<Vec<_>>()),
        ];
        planned.push(Write { sql, columns, touches: is_taken.then_some(rows.len()) });
    }
}

/// Last of all: this locks the one row that every writer locks.
fn entries<'a>(writes: &'a Writes<'a>, planned: &mut Vec<Write<'a>>) {
    let entries = writes.entries;
    if !writes.changes_totals() {
        return;
    }
    let id = |id: HoldId| rows::uuid(id);
    let at = |at: Time| at.millis();
    planned.push(Write {
        sql: sql!("insert_entries"),
        columns: vec![
            column(entries, |e| at(e.at)),
            column(entries, |e| e.kind.as_str()),
            column(entries, |e| e.sku.as_ref().map(Sku::as_str)),
            column(entries, |e| e.available),
            column(entries, |e| e.held),
            column(entries, |e| e.sold),
            column(entries, |e| e.hold.map(id)),
            column(entries, |e| e.order.as_ref().map(OrderId::as_str)),
            column(entries, |e| e.reason.as_deref()),
            Box::new(entries.len() as i64),
            Box::new(writes.more_holds),
            Box::new(writes.more_skus),
            Box::new(at(writes.now)),
            Box::new(writes.is_move),
        ],
        touches: Some(entries.len()),
    });
}
