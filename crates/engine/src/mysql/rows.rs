//! Rows of MySQL as values of the domain, and values for statements.

use crate::NumberedEntry;
use crate::moving::Counts;
use crate::records::{
    EntryRecord, HoldRecord, JobRecord, OrderRecord, PaymentRecord, StockRecord, customer_id, order_id, payment_key,
    phase, reference, sku,
};
use crate::sql::{Fault, Kept, Moved, Told};
use holdfast_domain::{
    Counters, CustomerId, Hold, HoldId, Job, Order, OrderId, Payment, PaymentKey, Ref, Sku, Stock, Time,
};
use mysql_async::{Row, Value};

fn odd(column: usize, value: Option<&Value>) -> Fault {
    // Values may be a customer's: the kind is enough.
    let kind = match value {
        None => "nothing",
        Some(Value::NULL) => "null",
        Some(Value::Bytes(_)) => "bytes",
        Some(_) => "a number",
    };
    Fault::Corrupt(format!("column {column} holds {kind}"))
}

pub(super) fn number(row: &Row, column: usize) -> Result<i64, Fault> {
    match row.as_ref(column) {
        Some(Value::Int(number)) => Ok(*number),
        Some(Value::UInt(number)) => i64::try_from(*number).map_err(|_| odd(column, None)),
        other => Err(odd(column, other)),
    }
}

fn optional_number(row: &Row, column: usize) -> Result<Option<i64>, Fault> {
    match row.as_ref(column) {
        Some(Value::NULL) => Ok(None),
        _ => number(row, column).map(Some),
    }
}

fn flag(row: &Row, column: usize) -> Result<bool, Fault> {
    Ok(number(row, column)? != 0)
}

pub(super) fn text(row: &Row, column: usize) -> Result<&str, Fault> {
    match row.as_ref(column) {
        Some(value @ Value::Bytes(bytes)) => std::str::from_utf8(bytes).map_err(|_| odd(column, Some(value))),
        other => Err(odd(column, other)),
    }
}

fn optional(row: &Row, column: usize) -> Result<Option<&str>, Fault> {
    match row.as_ref(column) {
        Some(Value::NULL) => Ok(None),
        _ => text(row, column).map(Some),
    }
}

fn id(row: &Row, column: usize) -> Result<HoldId, Fault> {
    match row.as_ref(column) {
        Some(value @ Value::Bytes(bytes)) => {
            let bits: [u8; 16] = bytes.as_slice().try_into().map_err(|_| odd(column, Some(value)))?;
            Ok(HoldId::from_u128(u128::from_be_bytes(bits)))
        }
        other => Err(odd(column, other)),
    }
}

fn optional_id(row: &Row, column: usize) -> Result<Option<HoldId>, Fault> {
    match row.as_ref(column) {
        Some(Value::NULL) => Ok(None),
        _ => id(row, column).map(Some),
    }
}

/// A hold's id as MySQL has it.
pub(super) fn id_value(id: HoldId) -> Value {
    Value::Bytes(id.as_u128().to_be_bytes().to_vec())
}

pub(super) fn hold_id(row: &Row) -> Result<HoldId, Fault> {
    id(row, 0)
}

pub(super) fn told(row: &Row) -> Result<Told, Fault> {
    Ok(Told {
        now: Time::from_millis(number(row, 0)?),
        last_time: Time::from_millis(number(row, 1)?),
        holds: number(row, 2)?.unsigned_abs(),
        skus: number(row, 3)?.unsigned_abs(),
        is_moving: flag(row, 4)?,
    })
}

fn stock(row: &Row, claimed: i64, lapsed: i64) -> Result<Stock, Fault> {
    let record = StockRecord {
        sku: text(row, 0)?,
        available: number(row, 1)? - claimed + lapsed,
        held: number(row, 2)? + claimed - lapsed,
        sold: number(row, 3)?,
        limit_per_customer: optional_number(row, 4)?,
        version: number(row, 5)?,
    };
    Ok(record.read()?)
}

pub(super) fn kept(row: &Row) -> Result<Kept, Fault> {
    Ok(Kept { stock: stock(row, 0, 0)?, revision: number(row, 6)?, carved: number(row, 7)?.unsigned_abs() })
}

/// As of a moment: units claimed by way of `units`, and those of lapsed holds, are told beside the counters.
pub(super) fn stock_as_of(row: &Row) -> Result<Stock, Fault> {
    stock(row, number(row, 6)?, number(row, 7)?)
}

pub(super) fn hold(row: &Row) -> Result<Hold, Fault> {
    let record = HoldRecord {
        id: id(row, 0)?,
        order_id: text(row, 1)?,
        status: text(row, 2)?,
        lines: text(row, 3)?,
        customer_id: optional(row, 4)?,
        amount: optional_number(row, 5)?,
        currency: optional(row, 6)?,
        created_at: number(row, 7)?,
        expires_at: number(row, 8)?,
        late: flag(row, 9)?,
        payment_ref: optional(row, 10)?,
        metadata: optional(row, 11)?,
    };
    Ok(record.read()?)
}

pub(super) fn numbered_hold(row: &Row) -> Result<(i64, Hold), Fault> {
    Ok((number(row, 12)?, hold(row)?))
}

pub(super) fn order(row: &Row) -> Result<Order, Fault> {
    let record = OrderRecord {
        hold: id(row, 0)?,
        order_id: text(row, 1)?,
        status: text(row, 2)?,
        lines: text(row, 3)?,
        payment_provider: optional(row, 4)?,
        payment_id: optional(row, 5)?,
        confirmed_at: number(row, 6)?,
        late: flag(row, 7)?,
        customer_id: optional(row, 8)?,
        amount: optional_number(row, 9)?,
        currency: optional(row, 10)?,
    };
    Ok(record.read()?)
}

pub(super) fn payment(row: &Row) -> Result<Payment, Fault> {
    let record = PaymentRecord {
        provider: text(row, 0)?,
        payment_id: text(row, 1)?,
        order_id: optional(row, 2)?,
        hold: optional_id(row, 3)?,
        amount: optional_number(row, 4)?,
        currency: optional(row, 5)?,
        email: optional(row, 6)?,
        authorized: flag(row, 7)?,
        captured: flag(row, 8)?,
        failed: flag(row, 9)?,
        canceled: flag(row, 10)?,
        refunded: number(row, 11)?,
        status: text(row, 12)?,
        received_at: number(row, 13)?,
    };
    Ok(record.read()?)
}

pub(super) fn numbered_payment(row: &Row) -> Result<(i64, Payment), Fault> {
    Ok((number(row, 14)?, payment(row)?))
}

pub(super) fn job(row: &Row) -> Result<Job, Fault> {
    let record = JobRecord {
        provider: text(row, 0)?,
        payment_id: text(row, 1)?,
        kind: text(row, 2)?,
        reason: text(row, 3)?,
        state: text(row, 4)?,
        idempotency_key: text(row, 5)?,
        amount: optional_number(row, 6)?,
        currency: optional(row, 7)?,
        created_at: number(row, 8)?,
    };
    Ok(record.read()?)
}

pub(super) fn numbered_job(row: &Row) -> Result<(i64, Job), Fault> {
    Ok((number(row, 9)?, job(row)?))
}

pub(super) fn entry(row: &Row) -> Result<NumberedEntry, Fault> {
    let record = EntryRecord {
        at: number(row, 1)?,
        kind: text(row, 2)?,
        sku: optional(row, 3)?,
        available: number(row, 4)?,
        held: number(row, 5)?,
        sold: number(row, 6)?,
        hold: optional_id(row, 7)?,
        order_id: optional(row, 8)?,
        reason: optional(row, 9)?,
    };
    Ok(NumberedEntry { seq: number(row, 0)?.unsigned_abs(), entry: record.read()? })
}

pub(super) fn moved(row: &Row) -> Result<Moved, Fault> {
    let phase = phase(text(row, 2)?)?;
    let (source, last) = (text(row, 1)?.to_owned(), text(row, 3)?.to_owned());
    Ok(Moved { token: number(row, 0)?, source, phase, last, is_done: flag(row, 4)? })
}

pub(super) fn counts(row: &Row) -> Result<Counts, Fault> {
    let count = |column| number(row, column).map(i64::unsigned_abs);
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
    Ok(payment_key(text(row, 0)?, text(row, 1)?)?)
}

pub(super) fn waiting(row: &Row) -> Result<(OrderId, PaymentKey), Fault> {
    Ok((order_id(text(row, 0)?)?, payment_key(text(row, 1)?, text(row, 2)?)?))
}

pub(super) fn latest(row: &Row) -> Result<(OrderId, HoldId), Fault> {
    Ok((order_id(text(row, 0)?)?, id(row, 1)?))
}

pub(super) fn bought(row: &Row) -> Result<(CustomerId, Sku, i64), Fault> {
    Ok((customer_id(text(row, 0)?)?, sku(text(row, 1)?)?, number(row, 2)?))
}

pub(super) fn event(row: &Row) -> Result<(Ref, Ref), Fault> {
    let key = key(row)?;
    Ok((key.provider, key.payment_id))
}

pub(super) fn receipt(row: &Row) -> Result<(Ref, Box<str>), Fault> {
    Ok((reference(text(row, 0)?)?, text(row, 1)?.into()))
}

pub(super) fn a_sku(row: &Row) -> Result<Sku, Fault> {
    Ok(sku(text(row, 0)?)?)
}

pub(super) fn sums(row: &Row) -> Result<(String, Counters), Fault> {
    let moved = Counters { available: number(row, 1)?, held: number(row, 2)?, sold: number(row, 3)? };
    Ok((text(row, 0)?.to_owned(), moved))
}
