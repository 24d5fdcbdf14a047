//! Rows of any SQL database as values of the domain. The statements of all of them tell the same columns in the same
//! order; only how a driver reads a column differs.

use super::fault::Fault;
use super::hot_store::HotRow;
use super::store::{Kept, Loose, Moved, Told};
use crate::moving::Counts;
use crate::records::{
    EntryRecord, HoldRecord, JobRecord, OrderRecord, PaymentRecord, StockRecord, customer_id, order_id, payment_key,
    phase, reference, sku,
};
use crate::{Note, NumberedEntry};
use holdfast_domain::{
    Counters, CustomerId, Hold, HoldId, Job, Order, OrderId, Payment, PaymentKey, Ref, Sku, Stock, Time,
};

/// A driver's row, read by the places of its columns.
pub(crate) trait Columns {
    fn number(&self, column: usize) -> Result<i64, Fault>;
    fn optional_number(&self, column: usize) -> Result<Option<i64>, Fault>;
    fn flag(&self, column: usize) -> Result<bool, Fault>;
    fn text(&self, column: usize) -> Result<&str, Fault>;
    fn optional(&self, column: usize) -> Result<Option<&str>, Fault>;
    fn id(&self, column: usize) -> Result<HoldId, Fault>;
    fn optional_id(&self, column: usize) -> Result<Option<HoldId>, Fault>;
}

pub(crate) fn stock<R: Columns>(row: &R) -> Result<Stock, Fault> {
    stock_with(row, 0)
}

/// A SKU of whose available units so many are held.
pub(crate) fn stock_with<R: Columns>(row: &R, held: i64) -> Result<Stock, Fault> {
    let record = StockRecord {
        sku: row.text(0)?,
        available: row.number(1)? - held,
        held: row.number(2)? + held,
        sold: row.number(3)?,
        limit_per_customer: row.optional_number(4)?,
        version: row.number(5)?,
    };
    Ok(record.read()?)
}

pub(crate) fn hold_id<R: Columns>(row: &R) -> Result<HoldId, Fault> {
    row.id(0)
}

pub(crate) fn told<R: Columns>(row: &R) -> Result<Told, Fault> {
    Ok(Told {
        now: Time::from_millis(row.number(0)?),
        last_time: Time::from_millis(row.number(1)?),
        holds: row.number(2)?.unsigned_abs(),
        skus: row.number(3)?.unsigned_abs(),
        is_moving: row.flag(4)?,
    })
}

pub(crate) fn kept<R: Columns>(row: &R) -> Result<Kept, Fault> {
    Ok(Kept { stock: stock(row)?, revision: row.number(6)?, carved: row.number(7)?.unsigned_abs() })
}

pub(crate) fn hold<R: Columns>(row: &R) -> Result<Hold, Fault> {
    let record = HoldRecord {
        id: row.id(0)?,
        order_id: row.text(1)?,
        status: row.text(2)?,
        lines: row.text(3)?,
        customer_id: row.optional(4)?,
        amount: row.optional_number(5)?,
        currency: row.optional(6)?,
        created_at: row.number(7)?,
        expires_at: row.number(8)?,
        late: row.flag(9)?,
        payment_ref: row.optional(10)?,
        metadata: row.optional(11)?,
    };
    Ok(record.read()?)
}

pub(crate) fn numbered_hold<R: Columns>(row: &R) -> Result<(i64, Hold), Fault> {
    Ok((row.number(12)?, hold(row)?))
}

pub(crate) fn order<R: Columns>(row: &R) -> Result<Order, Fault> {
    let record = OrderRecord {
        hold: row.id(0)?,
        order_id: row.text(1)?,
        status: row.text(2)?,
        lines: row.text(3)?,
        payment_provider: row.optional(4)?,
        payment_id: row.optional(5)?,
        confirmed_at: row.number(6)?,
        late: row.flag(7)?,
        customer_id: row.optional(8)?,
        amount: row.optional_number(9)?,
        currency: row.optional(10)?,
    };
    Ok(record.read()?)
}

pub(crate) fn payment<R: Columns>(row: &R) -> Result<Payment, Fault> {
    let record = PaymentRecord {
        provider: row.text(0)?,
        payment_id: row.text(1)?,
        order_id: row.optional(2)?,
        hold: row.optional_id(3)?,
        amount: row.optional_number(4)?,
        currency: row.optional(5)?,
        email: row.optional(6)?,
        authorized: row.flag(7)?,
        captured: row.flag(8)?,
        failed: row.flag(9)?,
        canceled: row.flag(10)?,
        refunded: row.number(11)?,
        status: row.text(12)?,
        received_at: row.number(13)?,
        capture_failed: row.flag(14)?,
        refund_failed: row.flag(15)?,
        disputed: row.flag(16)?,
    };
    Ok(record.read()?)
}

pub(crate) fn numbered_payment<R: Columns>(row: &R) -> Result<(i64, Payment), Fault> {
    Ok((row.number(17)?, payment(row)?))
}

pub(crate) fn job<R: Columns>(row: &R) -> Result<Job, Fault> {
    let record = JobRecord {
        provider: row.text(0)?,
        payment_id: row.text(1)?,
        kind: row.text(2)?,
        reason: row.text(3)?,
        state: row.text(4)?,
        idempotency_key: row.text(5)?,
        amount: row.optional_number(6)?,
        currency: row.optional(7)?,
        created_at: row.number(8)?,
        attempts: row.number(9)?,
        next_at: row.number(10)?,
        reference: row.optional(11)?,
        error: row.optional(12)?,
    };
    Ok(record.read()?)
}

pub(crate) fn numbered_job<R: Columns>(row: &R) -> Result<(i64, Job), Fault> {
    Ok((row.number(13)?, job(row)?))
}

pub(crate) fn entry<R: Columns>(row: &R) -> Result<NumberedEntry, Fault> {
    let record = EntryRecord {
        at: row.number(1)?,
        kind: row.text(2)?,
        sku: row.optional(3)?,
        available: row.number(4)?,
        held: row.number(5)?,
        sold: row.number(6)?,
        hold: row.optional_id(7)?,
        order_id: row.optional(8)?,
        reason: row.optional(9)?,
    };
    Ok(NumberedEntry { seq: row.number(0)?.unsigned_abs(), entry: record.read()? })
}

pub(crate) fn moved<R: Columns>(row: &R) -> Result<Moved, Fault> {
    let phase = phase(row.text(2)?)?;
    let (source, last) = (row.text(1)?.to_owned(), row.text(3)?.to_owned());
    Ok(Moved { token: row.number(0)?, source, phase, last, is_done: row.flag(4)? })
}

pub(crate) fn counts<R: Columns>(row: &R) -> Result<Counts, Fault> {
    let count = |column| row.number(column).map(i64::unsigned_abs);
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
        notes: count(10)?,
    })
}

pub(crate) fn key<R: Columns>(row: &R) -> Result<PaymentKey, Fault> {
    Ok(payment_key(row.text(0)?, row.text(1)?)?)
}

pub(crate) fn waiting<R: Columns>(row: &R) -> Result<(OrderId, PaymentKey), Fault> {
    Ok((order_id(row.text(0)?)?, payment_key(row.text(1)?, row.text(2)?)?))
}

pub(crate) fn numbered_waiting<R: Columns>(row: &R) -> Result<(i64, OrderId, PaymentKey), Fault> {
    Ok((row.number(0)?, order_id(row.text(1)?)?, payment_key(row.text(2)?, row.text(3)?)?))
}

pub(crate) fn latest<R: Columns>(row: &R) -> Result<(OrderId, HoldId), Fault> {
    Ok((order_id(row.text(0)?)?, row.id(1)?))
}

pub(crate) fn bought<R: Columns>(row: &R) -> Result<(CustomerId, Sku, i64), Fault> {
    Ok((customer_id(row.text(0)?)?, sku(row.text(1)?)?, row.number(2)?))
}

pub(crate) fn event<R: Columns>(row: &R) -> Result<(Ref, Ref), Fault> {
    let key = key(row)?;
    Ok((key.provider, key.payment_id))
}

pub(crate) fn receipt<R: Columns>(row: &R) -> Result<(Ref, Box<str>), Fault> {
    Ok((reference(row.text(0)?)?, row.text(1)?.into()))
}

pub(crate) fn a_sku<R: Columns>(row: &R) -> Result<Sku, Fault> {
    Ok(sku(row.text(0)?)?)
}

pub(crate) fn sums<R: Columns>(row: &R) -> Result<(String, Counters), Fault> {
    let moved = Counters { available: row.number(1)?, held: row.number(2)?, sold: row.number(3)? };
    Ok((row.text(0)?.to_owned(), moved))
}

pub(crate) fn loose<R: Columns>(row: &R) -> Result<Loose, Fault> {
    Ok(Loose { sku: a_sku(row)?, rows: row.number(1)?.unsigned_abs(), last: row.number(2)? })
}

pub(crate) fn hot<R: Columns>(row: &R) -> Result<HotRow, Fault> {
    let part = row.number(0)?;
    Ok(HotRow {
        part: u32::try_from(part).map_err(|_| Fault::Corrupt(format!("there is no partition {part}")))?,
        epoch: row.number(1)?,
        is_auditing: row.flag(2)?,
        since: Time::from_millis(row.number(3)?),
        server: row.text(4)?.to_owned(),
        drained_epoch: row.number(5)?,
        drained_seq: row.number(6)?,
    })
}

pub(crate) fn step<R: Columns>(row: &R) -> Result<(String, String), Fault> {
    Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
}

pub(crate) fn note<R: Columns>(row: &R) -> Result<(String, Note), Fault> {
    Ok((row.text(0)?.to_owned(), Note { version: row.number(1)?.unsigned_abs(), text: row.text(2)?.to_owned() }))
}
