//! Rows of PostgreSQL as values of the domain.

use super::failure;
use crate::NumberedEntry;
use crate::moving::Counts;
use crate::records::{
    EntryRecord, HoldRecord, JobRecord, OrderRecord, PaymentRecord, StockRecord, customer_id, order_id, payment_key,
    phase, sku,
};
use crate::sql::{Fault, Kept, Loose, Moved};
use holdfast_domain::{CustomerId, Hold, HoldId, Job, Order, OrderId, Payment, PaymentKey, Ref, Sku, Stock};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Fault> {
    row.try_get(column).map_err(failure::fault)
}

fn id(row: &Row, column: usize) -> Result<HoldId, Fault> {
    Ok(HoldId::from_u128(get::<Uuid>(row, column)?.as_u128()))
}

fn optional_id(row: &Row, column: usize) -> Result<Option<HoldId>, Fault> {
    Ok(get::<Option<Uuid>>(row, column)?.map(|id| HoldId::from_u128(id.as_u128())))
}

/// A hold's id as PostgreSQL has it.
pub(super) fn uuid(id: HoldId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}

pub(super) fn hold_id(row: &Row) -> Result<HoldId, Fault> {
    id(row, 0)
}

pub(super) fn stock(row: &Row) -> Result<Stock, Fault> {
    let record = StockRecord {
        sku: get(row, 0)?,
        available: get(row, 1)?,
        held: get(row, 2)?,
        sold: get(row, 3)?,
        limit_per_customer: get(row, 4)?,
        version: get(row, 5)?,
    };
    Ok(record.read()?)
}

pub(super) fn kept(row: &Row) -> Result<Kept, Fault> {
    Ok(Kept { stock: stock(row)?, revision: get(row, 6)?, carved: get::<i64>(row, 7)?.unsigned_abs() })
}

pub(super) fn hold(row: &Row) -> Result<Hold, Fault> {
    let record = HoldRecord {
        id: id(row, 0)?,
        order_id: get(row, 1)?,
        status: get(row, 2)?,
        lines: get(row, 3)?,
        customer_id: get(row, 4)?,
        amount: get(row, 5)?,
        currency: get(row, 6)?,
        created_at: get(row, 7)?,
        expires_at: get(row, 8)?,
        late: get(row, 9)?,
        payment_ref: get(row, 10)?,
        metadata: get(row, 11)?,
    };
    Ok(record.read()?)
}

pub(super) fn numbered_hold(row: &Row) -> Result<(i64, Hold), Fault> {
    Ok((get(row, 12)?, hold(row)?))
}

pub(super) fn order(row: &Row) -> Result<Order, Fault> {
    let record = OrderRecord {
        hold: id(row, 0)?,
        order_id: get(row, 1)?,
        status: get(row, 2)?,
        lines: get(row, 3)?,
        payment_provider: get(row, 4)?,
        payment_id: get(row, 5)?,
        confirmed_at: get(row, 6)?,
        late: get(row, 7)?,
        customer_id: get(row, 8)?,
        amount: get(row, 9)?,
        currency: get(row, 10)?,
    };
    Ok(record.read()?)
}

pub(super) fn payment(row: &Row) -> Result<Payment, Fault> {
    let record = PaymentRecord {
        provider: get(row, 0)?,
        payment_id: get(row, 1)?,
        order_id: get(row, 2)?,
        hold: optional_id(row, 3)?,
        amount: get(row, 4)?,
        currency: get(row, 5)?,
        email: get(row, 6)?,
        authorized: get(row, 7)?,
        captured: get(row, 8)?,
        failed: get(row, 9)?,
        canceled: get(row, 10)?,
        refunded: get(row, 11)?,
        status: get(row, 12)?,
        received_at: get(row, 13)?,
    };
    Ok(record.read()?)
}

pub(super) fn numbered_payment(row: &Row) -> Result<(i64, Payment), Fault> {
    Ok((get(row, 14)?, payment(row)?))
}

pub(super) fn job(row: &Row) -> Result<Job, Fault> {
    let record = JobRecord {
        provider: get(row, 0)?,
        payment_id: get(row, 1)?,
        kind: get(row, 2)?,
        reason: get(row, 3)?,
        state: get(row, 4)?,
        idempotency_key: get(row, 5)?,
        amount: get(row, 6)?,
        currency: get(row, 7)?,
        created_at: get(row, 8)?,
    };
    Ok(record.read()?)
}

pub(super) fn numbered_job(row: &Row) -> Result<(i64, Job), Fault> {
    Ok((get(row, 9)?, job(row)?))
}

pub(super) fn entry(row: &Row) -> Result<NumberedEntry, Fault> {
    let record = EntryRecord {
        at: get(row, 1)?,
        kind: get(row, 2)?,
        sku: get(row, 3)?,
        available: get(row, 4)?,
        held: get(row, 5)?,
        sold: get(row, 6)?,
        hold: optional_id(row, 7)?,
        order_id: get(row, 8)?,
        reason: get(row, 9)?,
    };
    Ok(NumberedEntry { seq: get::<i64>(row, 0)?.unsigned_abs(), entry: record.read()? })
}

pub(super) fn moved(row: &Row) -> Result<Moved, Fault> {
    let (token, source, last, is_done) = (get(row, 0)?, get(row, 1)?, get(row, 3)?, get(row, 4)?);
    Ok(Moved { token, source, phase: phase(get(row, 2)?)?, last, is_done })
}

pub(super) fn counts(row: &Row) -> Result<Counts, Fault> {
    let count = |column| get::<i64>(row, column).map(i64::unsigned_abs);
    Ok(Counts {
        skus: count(0)?,
        live_holds: count(1)?,
        holds: count(2)?,
        orders: count(3)?,
        payments: count(4)?,
        jobs: count(5)?,
        events: count(6)?,
        receipts: count(7)?,
        purchases: count(8)?,
        entries: count(9)?,
    })
}

pub(super) fn key(row: &Row) -> Result<PaymentKey, Fault> {
    Ok(payment_key(get(row, 0)?, get(row, 1)?)?)
}

pub(super) fn waiting(row: &Row) -> Result<(OrderId, PaymentKey), Fault> {
    Ok((order_id(get(row, 0)?)?, payment_key(get(row, 1)?, get(row, 2)?)?))
}

pub(super) fn latest(row: &Row) -> Result<(OrderId, HoldId), Fault> {
    Ok((order_id(get(row, 0)?)?, id(row, 1)?))
}

pub(super) fn bought(row: &Row) -> Result<(CustomerId, Sku, i64), Fault> {
    Ok((customer_id(get(row, 0)?)?, sku(get(row, 1)?)?, get(row, 2)?))
}

pub(super) fn event(row: &Row) -> Result<(Ref, Ref), Fault> {
    let key = key(row)?;
    Ok((key.provider, key.payment_id))
}

pub(super) fn receipt(row: &Row) -> Result<(Ref, Box<str>), Fault> {
    Ok((crate::records::reference(get(row, 0)?)?, get::<&str>(row, 1)?.into()))
}

pub(super) fn loose(row: &Row) -> Result<Loose, Fault> {
    Ok(Loose { sku: a_sku(row)?, rows: get::<i64>(row, 1)?.unsigned_abs(), last: get(row, 2)? })
}

pub(super) fn a_sku(row: &Row) -> Result<Sku, Fault> {
    Ok(sku(get(row, 0)?)?)
}
