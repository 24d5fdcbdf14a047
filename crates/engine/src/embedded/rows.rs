//! Rows of the store as values of the domain, and back.

use super::failure::{Failure, corrupt};
use crate::clock::HoldIds;
use crate::records::{Corrupt, EntryRecord, HoldRecord, JobRecord, OrderRecord, PaymentRecord, StockRecord, hold_id};
use holdfast_domain::{Entry, Hold, HoldId, Job, Order, Payment, Stock};
use rusqlite::Row;

/// The columns that [`hold`] reads, in order.
pub(super) const HOLD: &str = "h.n, h.id, h.order_id, h.status, h.lines, h.customer_id, h.amount, h.currency, \
    h.created_at, h.expires_at, h.late, h.payment_ref, h.metadata";
/// The columns that [`order`] reads, in order.
pub(super) const ORDER: &str = "h.id, o.order_id, o.status, o.lines, o.payment_provider, o.payment_id, \
    o.confirmed_at, h.late, h.customer_id, h.amount, h.currency";
/// The columns that [`payment`] reads, in order.
pub(super) const PAYMENT: &str = "provider, payment_id, order_id, hold, amount, currency, email, authorized, \
    captured, failed, canceled, refunded, status, received_at, capture_failed, refund_failed, disputed, n";
/// The columns that [`job`] reads, in order.
pub(super) const JOB: &str = "provider, payment_id, kind, reason, state, idempotency_key, amount, currency, \
    created_at, attempts, next_at, reference, error, n";
/// Where [`PAYMENT`] and [`JOB`] have the number of the row.
pub(super) const PAYMENT_NUMBER: usize = 17;
/// See [`PAYMENT_NUMBER`].
pub(super) const JOB_NUMBER: usize = 13;
/// The columns that [`entry`] reads, in order.
pub(super) const ENTRY: &str = "seq, at, kind, sku, available, held, sold, hold, order_id, reason";
/// The columns that [`stock`] reads, in order.
pub(super) const STOCK: &str = "sku, available, held, sold, limit_per_customer, version";

/// The key under which a hold is stored.
pub(super) fn hold_number(id: HoldId) -> i64 {
    HoldIds::number(id) as i64
}

impl From<Corrupt> for Failure {
    fn from(found: Corrupt) -> Self {
        Self::Corrupt(found.0)
    }
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Failure> {
    row.get_ref(column)?.as_str().map_err(corrupt)
}

fn optional<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, Failure> {
    row.get_ref(column)?.as_str_or_null().map_err(corrupt)
}

fn optional_hold(row: &Row<'_>, column: usize) -> Result<Option<HoldId>, Failure> {
    Ok(optional(row, column)?.map(hold_id).transpose()?)
}

pub(super) fn stock(row: &Row<'_>) -> Result<Stock, Failure> {
    let record = StockRecord {
        sku: text(row, 0)?,
        available: row.get(1)?,
        held: row.get(2)?,
        sold: row.get(3)?,
        limit_per_customer: row.get(4)?,
        version: row.get(5)?,
    };
    Ok(record.read()?)
}

pub(super) fn hold(row: &Row<'_>) -> Result<Hold, Failure> {
    let record = HoldRecord {
        id: hold_id(text(row, 1)?)?,
        order_id: text(row, 2)?,
        status: text(row, 3)?,
        lines: text(row, 4)?,
        customer_id: optional(row, 5)?,
        amount: row.get(6)?,
        currency: optional(row, 7)?,
        created_at: row.get(8)?,
        expires_at: row.get(9)?,
        late: row.get(10)?,
        payment_ref: optional(row, 11)?,
        metadata: optional(row, 12)?,
    };
    Ok(record.read()?)
}

pub(super) fn order(row: &Row<'_>) -> Result<Order, Failure> {
    let record = OrderRecord {
        hold: hold_id(text(row, 0)?)?,
        order_id: text(row, 1)?,
        status: text(row, 2)?,
        lines: text(row, 3)?,
        payment_provider: optional(row, 4)?,
        payment_id: optional(row, 5)?,
        confirmed_at: row.get(6)?,
        late: row.get(7)?,
        customer_id: optional(row, 8)?,
        amount: row.get(9)?,
        currency: optional(row, 10)?,
    };
    Ok(record.read()?)
}

pub(super) fn payment(row: &Row<'_>) -> Result<Payment, Failure> {
    let record = PaymentRecord {
        provider: text(row, 0)?,
        payment_id: text(row, 1)?,
        order_id: optional(row, 2)?,
        hold: optional_hold(row, 3)?,
        amount: row.get(4)?,
        currency: optional(row, 5)?,
        email: optional(row, 6)?,
        authorized: row.get(7)?,
        captured: row.get(8)?,
        failed: row.get(9)?,
        canceled: row.get(10)?,
        refunded: row.get(11)?,
        status: text(row, 12)?,
        received_at: row.get(13)?,
        capture_failed: row.get(14)?,
        refund_failed: row.get(15)?,
        disputed: row.get(16)?,
    };
    Ok(record.read()?)
}

pub(super) fn job(row: &Row<'_>) -> Result<Job, Failure> {
    let record = JobRecord {
        provider: text(row, 0)?,
        payment_id: text(row, 1)?,
        kind: text(row, 2)?,
        reason: text(row, 3)?,
        state: text(row, 4)?,
        idempotency_key: text(row, 5)?,
        amount: row.get(6)?,
        currency: optional(row, 7)?,
        created_at: row.get(8)?,
        attempts: row.get(9)?,
        next_at: row.get(10)?,
        reference: optional(row, 11)?,
        error: optional(row, 12)?,
    };
    Ok(record.read()?)
}

pub(super) fn entry(row: &Row<'_>) -> Result<(u64, Entry), Failure> {
    let record = EntryRecord {
        at: row.get(1)?,
        kind: text(row, 2)?,
        sku: optional(row, 3)?,
        available: row.get(4)?,
        held: row.get(5)?,
        sold: row.get(6)?,
        hold: optional_hold(row, 7)?,
        order_id: optional(row, 8)?,
        reason: optional(row, 9)?,
    };
    Ok((row.get::<_, i64>(0)?.unsigned_abs(), record.read()?))
}
