//! Rows of the store as values of the domain, and back.

use super::failure::{Failure, corrupt};
use crate::clock::HoldIds;
use holdfast_domain::{
    Currency, CustomerId, Entry, EntryKind, Hold, HoldId, HoldStatus, Job, JobKind, JobReason, JobState, Lines, Money,
    Order, OrderId, OrderLine, OrderRef, OrderStatus, Payment, PaymentKey, PaymentStatus, Ref, Sku, Stock, Time,
};
use rusqlite::Row;
use std::fmt::{Display, Write};

/// The columns that [`hold`] reads, in order.
pub(super) const HOLD: &str = "h.n, h.id, h.order_id, h.status, h.lines, h.customer_id, h.amount, h.currency, \
    h.created_at, h.expires_at, h.late, h.payment_ref, h.metadata";
/// The columns that [`order`] reads, in order.
pub(super) const ORDER: &str = "h.id, o.order_id, o.status, o.lines, o.payment_provider, o.payment_id, \
    o.confirmed_at, h.late, h.customer_id, h.amount, h.currency";
/// The columns that [`payment`] reads, in order.
pub(super) const PAYMENT: &str = "provider, payment_id, order_id, hold, amount, currency, email, authorized, \
    captured, failed, canceled, refunded, status, received_at, n";
/// The columns that [`job`] reads, in order.
pub(super) const JOB: &str =
    "provider, payment_id, kind, reason, state, idempotency_key, amount, currency, created_at, n";
/// The columns that [`entry`] reads, in order.
pub(super) const ENTRY: &str = "seq, at, kind, sku, available, held, sold, hold, order_id, reason";
/// The columns that [`stock`] reads, in order.
pub(super) const STOCK: &str = "sku, available, held, sold, limit_per_customer, version";

/// The key under which a hold is stored.
pub(super) fn hold_number(id: HoldId) -> i64 {
    HoldIds::number(id) as i64
}

fn bad<T: Display>(what: &'static str) -> impl Fn(T) -> Failure {
    move |why| corrupt(format_args!("{what}: {why}"))
}

fn word<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> Result<T, Failure> {
    let text = row.get_ref(column)?.as_str().map_err(bad("a word"))?;
    parse(text).ok_or_else(|| corrupt(format_args!("unknown word {text:?}")))
}

fn reference(row: &Row<'_>, column: usize) -> Result<Ref, Failure> {
    Ref::new(row.get_ref(column)?.as_str().map_err(bad("a reference"))?).map_err(bad("a reference"))
}

fn count(row: &Row<'_>, column: usize) -> Result<u64, Failure> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(bad("a count"))
}

fn time(row: &Row<'_>, column: usize) -> Result<Time, Failure> {
    Ok(Time::from_millis(row.get(column)?))
}

fn money(row: &Row<'_>, column: usize) -> Result<Money, Failure> {
    let amount: Option<i64> = row.get(column)?;
    let currency = row.get_ref(column + 1)?.as_str_or_null().map_err(bad("a currency"))?;
    Ok(Money {
        amount: amount.map(u64::try_from).transpose().map_err(bad("an amount"))?,
        currency: currency.map(|c| Currency::new(c).ok_or_else(|| corrupt("a currency"))).transpose()?,
    })
}

fn optional<T>(row: &Row<'_>, column: usize, read: impl Fn(&str) -> Result<T, Failure>) -> Result<Option<T>, Failure> {
    row.get_ref(column)?.as_str_or_null().map_err(bad("a text"))?.map(read).transpose()
}

fn hold_id(text: &str) -> Result<HoldId, Failure> {
    HoldId::parse(text).ok_or_else(|| corrupt(format_args!("bad hold id {text:?}")))
}

pub(super) fn stock(row: &Row<'_>) -> Result<Stock, Failure> {
    let limit: Option<i64> = row.get(4)?;
    Ok(Stock {
        sku: Sku::new(row.get_ref(0)?.as_str().map_err(bad("a SKU"))?).map_err(bad("a SKU"))?,
        available: count(row, 1)?,
        held: count(row, 2)?,
        sold: count(row, 3)?,
        limit_per_customer: limit.map(u64::try_from).transpose().map_err(bad("a limit"))?,
        version: count(row, 5)?,
    })
}

pub(super) fn hold(row: &Row<'_>) -> Result<Hold, Failure> {
    Ok(Hold {
        id: hold_id(row.get_ref(1)?.as_str().map_err(bad("a hold id"))?)?,
        order_id: OrderId::new(row.get_ref(2)?.as_str().map_err(bad("an order id"))?).map_err(bad("an order id"))?,
        status: word(row, 3, HoldStatus::parse)?,
        lines: read_lines(row.get_ref(4)?.as_str().map_err(bad("lines"))?)?,
        customer_id: optional(row, 5, |t| CustomerId::new(t).map_err(bad("a customer")))?,
        money: money(row, 6)?,
        created_at: time(row, 8)?,
        expires_at: time(row, 9)?,
        late: row.get(10)?,
        payment_ref: optional(row, 11, |t| Ok(t.into()))?,
        metadata: optional(row, 12, |t| Ok(t.into()))?,
    })
}

pub(super) fn order(row: &Row<'_>) -> Result<Order, Failure> {
    let provider = optional(row, 4, |t| Ref::new(t).map_err(bad("a provider")))?;
    let payment_id = optional(row, 5, |t| Ref::new(t).map_err(bad("a payment")))?;
    Ok(Order {
        hold_id: hold_id(row.get_ref(0)?.as_str().map_err(bad("a hold id"))?)?,
        order_id: OrderId::new(row.get_ref(1)?.as_str().map_err(bad("an order id"))?).map_err(bad("an order id"))?,
        status: word(row, 2, OrderStatus::parse)?,
        lines: read_order_lines(row.get_ref(3)?.as_str().map_err(bad("lines"))?)?,
        payment: provider.zip(payment_id).map(|(provider, payment_id)| PaymentKey { provider, payment_id }),
        confirmed_at: time(row, 6)?,
        late: row.get(7)?,
        customer_id: optional(row, 8, |t| CustomerId::new(t).map_err(bad("a customer")))?,
        money: money(row, 9)?,
    })
}

pub(super) fn payment(row: &Row<'_>) -> Result<Payment, Failure> {
    let order = optional(row, 2, |t| OrderId::new(t).map_err(bad("an order id")))?;
    let hold = optional(row, 3, hold_id)?;
    Ok(Payment {
        key: PaymentKey { provider: reference(row, 0)?, payment_id: reference(row, 1)? },
        order: order.map(OrderRef::Order).or(hold.map(OrderRef::Hold)),
        money: money(row, 4)?,
        email: optional(row, 6, |t| Ok(t.into()))?,
        authorized: row.get(7)?,
        captured: row.get(8)?,
        failed: row.get(9)?,
        canceled: row.get(10)?,
        refunded: count(row, 11)?,
        status: word(row, 12, PaymentStatus::parse)?,
        received_at: time(row, 13)?,
    })
}

pub(super) fn job(row: &Row<'_>) -> Result<Job, Failure> {
    Ok(Job {
        payment: PaymentKey { provider: reference(row, 0)?, payment_id: reference(row, 1)? },
        kind: word(row, 2, JobKind::parse)?,
        reason: word(row, 3, JobReason::parse)?,
        state: word(row, 4, JobState::parse)?,
        idempotency_key: row.get::<_, String>(5)?.into(),
        money: money(row, 6)?,
        created_at: time(row, 8)?,
    })
}

pub(super) fn entry(row: &Row<'_>) -> Result<(u64, Entry), Failure> {
    let entry = Entry {
        at: time(row, 1)?,
        kind: word(row, 2, EntryKind::parse)?,
        sku: optional(row, 3, |t| Sku::new(t).map_err(bad("a SKU")))?,
        available: row.get(4)?,
        held: row.get(5)?,
        sold: row.get(6)?,
        hold: optional(row, 7, hold_id)?,
        order: optional(row, 8, |t| OrderId::new(t).map_err(bad("an order id")))?,
        reason: optional(row, 9, |t| Ok(t.into()))?,
    };
    Ok((count(row, 0)?, entry))
}

/// One line of text per SKU: quantity, a space, the SKU. A SKU contains no line break.
pub(super) fn write_lines(lines: &Lines, out: &mut String) {
    out.clear();
    for line in lines {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = write!(out, "{} {}", line.quantity.get(), line.sku);
    }
}

fn read_lines(text: &str) -> Result<Lines, Failure> {
    let mut lines = Vec::with_capacity(1);
    for line in text.split('\n') {
        let (quantity, sku) = line.split_once(' ').ok_or_else(|| corrupt("a line without a quantity"))?;
        let quantity = quantity.parse::<u64>().map_err(bad("a quantity"))?;
        lines.push((Sku::new(sku).map_err(bad("a SKU"))?, quantity));
    }
    Lines::new(lines).map_err(bad("lines"))
}

/// One line of text per SKU: quantity, returned, the SKU, separated by spaces.
pub(super) fn write_order_lines(lines: &[OrderLine]) -> String {
    let told: Vec<String> = lines.iter().map(|l| format!("{} {} {}", l.quantity, l.returned, l.sku)).collect();
    told.join("\n")
}

fn read_order_lines(text: &str) -> Result<Vec<OrderLine>, Failure> {
    let read = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().ok_or_else(|| corrupt("a short order line"));
        let quantity = part()?.parse::<u64>().map_err(bad("a quantity"))?;
        let returned = part()?.parse::<u64>().map_err(bad("a returned quantity"))?;
        let sku = Sku::new(part()?).map_err(bad("a SKU"))?;
        if returned > quantity {
            return Err(corrupt("more returned than bought"));
        }
        Ok(OrderLine { sku, quantity, returned })
    };
    text.split('\n').map(read).collect()
}
