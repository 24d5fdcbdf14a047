//! The persist step: what a batch changed, written in one transaction.

use super::failure::{Failure, corrupt};
use super::rows;
use crate::records;
use holdfast_domain::{Changes, Currency, CustomerId, Entry, Hold, Inventory, Mark, OrderId, OrderRef, Ref, Sku};
use rusqlite::{Connection, Statement, params};
use std::sync::LazyLock;

/// Writes every change. Must run inside a transaction; `seq` is the number of the last entry so far.
pub(super) fn changes(db: &Connection, inventory: &Inventory, seq: &mut i64) -> Result<(), Failure> {
    let changes = inventory.changes();
    stocks(db, inventory, changes)?;
    holds(db, inventory, changes)?;
    orders(db, inventory, changes)?;
    payments(db, inventory, changes)?;
    jobs(db, inventory, changes)?;
    small(db, changes)?;
    entries(db, &changes.entries, seq)
}

fn lost(what: &str) -> Failure {
    corrupt(format_args!("a changed {what} is not in the inventory"))
}

fn stocks(db: &Connection, inventory: &Inventory, changes: &Changes) -> Result<(), Failure> {
    for sku in &changes.stocks {
        let (stock, mark) = inventory.stock_change(sku).ok_or_else(|| lost("SKU"))?;
        let Some(stock) = stock else {
            db.prepare_cached("DELETE FROM stock WHERE sku = ?1")?.execute([sku.as_str()])?;
            continue;
        };
        let sql = match mark {
            Mark::New => {
                "INSERT INTO stock (available, held, sold, limit_per_customer, version, sku) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
            }
            _ => {
                "UPDATE stock SET available = ?1, held = ?2, sold = ?3, limit_per_customer = ?4, version = ?5 WHERE sku = ?6"
            }
        };
        let limit = stock.limit_per_customer.map(|l| l as i64);
        let (available, held, sold) = (stock.available as i64, stock.held as i64, stock.sold as i64);
        let told = db.prepare_cached(sql)?.execute(params![
            available,
            held,
            sold,
            limit,
            stock.version as i64,
            stock.sku.as_str()
        ])?;
        if told != 1 {
            return Err(corrupt(format_args!("the store does not know SKU {sku}")));
        }
    }
    Ok(())
}

/// Rows written by one statement where there are so many: most of what a statement costs is starting and ending it.
const WIDE: usize = 16;

/// An INSERT for one row, and the same for [`WIDE`] rows.
struct Insert {
    columns: usize,
    one: String,
    wide: String,
}

impl Insert {
    fn new(head: &str, columns: usize) -> Self {
        let row = format!("({})", vec!["?"; columns].join(", "));
        let one = format!("{head} VALUES {row}");
        Self { columns, wide: format!("{one}{}", format!(", {row}").repeat(WIDE - 1)), one }
    }

    /// Writes the rows; `bind` gets the place before its first column, counted from 0.
    fn run<T>(
        &self,
        db: &Connection,
        rows: &[T],
        mut bind: impl FnMut(&mut Statement<'_>, usize, &T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (wide, rest) = rows.split_at(rows.len() - rows.len() % WIDE);
        for (rows, sql, height) in [(wide, &self.wide, WIDE), (rest, &self.one, 1)] {
            if rows.is_empty() {
                continue;
            }
            let mut statement = db.prepare_cached(sql)?;
            for chunk in rows.chunks(height) {
                for (index, row) in chunk.iter().enumerate() {
                    bind(&mut statement, index * self.columns, row)?;
                }
                statement.raw_execute()?;
            }
        }
        Ok(())
    }
}

/// Binds values to the columns that follow a place.
macro_rules! bind {
    ($statement:expr, $at:expr, $($value:expr),+ $(,)?) => {{
        let mut at = $at;
        $(at += 1; $statement.raw_bind_parameter(at, $value)?;)+
        let _ = at;
    }};
}

fn holds(db: &Connection, inventory: &Inventory, changes: &Changes) -> Result<(), Failure> {
    static INSERT: LazyLock<Insert> = LazyLock::new(|| {
        let head = "INSERT INTO holds (n, id, order_id, status, lines, customer_id, amount, currency, created_at,
            expires_at, late, payment_ref, metadata)";
        Insert::new(head, 13)
    });
    let mut made = Vec::with_capacity(changes.holds.len());
    for id in &changes.holds {
        match inventory.hold_change(*id).ok_or_else(|| lost("hold"))? {
            (hold, Mark::New) => made.push(hold),
            (hold, _) => update_hold(db, hold)?,
        }
    }
    let mut lines = String::new();
    INSERT.run(db, &made, |statement, at, hold| {
        records::write_lines(&hold.lines, &mut lines);
        bind!(
            statement,
            at,
            rows::hold_number(hold.id),
            hold.id.encode(&mut [0; 36]),
            hold.order_id.as_str(),
            hold.status.as_str(),
            &lines,
            hold.customer_id.as_ref().map(CustomerId::as_str),
            hold.money.amount.map(|a| a as i64),
            hold.money.currency.as_ref().map(Currency::as_str),
            hold.created_at.millis(),
            hold.expires_at.millis(),
            hold.late,
            hold.payment_ref.as_deref(),
            hold.metadata.as_deref(),
        );
        Ok(())
    })
}

fn update_hold(db: &Connection, hold: &Hold) -> Result<(), Failure> {
    let mut lines = String::new();
    records::write_lines(&hold.lines, &mut lines);
    let told = db
        .prepare_cached(
            "UPDATE holds SET status = ?2, lines = ?3, amount = ?4, expires_at = ?5, late = ?6, payment_ref = ?7
             WHERE n = ?1",
        )?
        .execute(params![
            rows::hold_number(hold.id),
            hold.status.as_str(),
            lines,
            hold.money.amount.map(|a| a as i64),
            hold.expires_at.millis(),
            hold.late,
            hold.payment_ref.as_deref(),
        ])?;
    if told == 1 { Ok(()) } else { Err(corrupt(format_args!("the store does not know hold {}", hold.id))) }
}

fn orders(db: &Connection, inventory: &Inventory, changes: &Changes) -> Result<(), Failure> {
    for id in &changes.orders {
        let (file, mark) = inventory.order_change(id).ok_or_else(|| lost("order"))?;
        let order = file.order.as_ref().ok_or_else(|| lost("order"))?;
        let sql = match mark {
            Mark::New => {
                "INSERT INTO orders (n, order_id, status, lines, payment_provider, payment_id, confirmed_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
            }
            _ => {
                "UPDATE orders SET status = ?3, lines = ?4, payment_provider = ?5, payment_id = ?6, confirmed_at = ?7
                 WHERE n = ?1 AND order_id = ?2"
            }
        };
        let told = db.prepare_cached(sql)?.execute(params![
            rows::hold_number(order.hold_id),
            order.order_id.as_str(),
            order.status.as_str(),
            records::write_order_lines(&order.lines),
            order.payment.as_ref().map(|p| p.provider.as_str()),
            order.payment.as_ref().map(|p| p.payment_id.as_str()),
            order.confirmed_at.millis(),
        ])?;
        if told != 1 {
            return Err(corrupt(format_args!("the store does not know order {id}")));
        }
    }
    Ok(())
}

fn payments(db: &Connection, inventory: &Inventory, changes: &Changes) -> Result<(), Failure> {
    for key in &changes.payments {
        let (payment, _) = inventory.payment_change(key).ok_or_else(|| lost("payment"))?;
        let (order, hold) = match &payment.order {
            Some(OrderRef::Order(id)) => (Some(id.as_str()), None),
            Some(OrderRef::Hold(id)) => (None, Some(id.to_string())),
            None => (None, None),
        };
        db.prepare_cached(
            "INSERT INTO payments (provider, payment_id, order_id, hold, amount, currency, email, authorized, captured, failed, canceled, refunded, status, received_at,
                capture_failed, refund_failed, disputed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
             ON CONFLICT (provider, payment_id) DO UPDATE SET order_id = ?3, hold = ?4, amount = ?5, currency = ?6, email = ?7,
                authorized = ?8, captured = ?9, failed = ?10, canceled = ?11, refunded = ?12, status = ?13, received_at = ?14,
                capture_failed = ?15, refund_failed = ?16, disputed = ?17",
        )?
        .execute(params![
            key.provider.as_str(),
            key.payment_id.as_str(),
            order,
            hold,
            payment.money.amount.map(|a| a as i64),
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
        ])?;
    }
    Ok(())
}

fn jobs(db: &Connection, inventory: &Inventory, changes: &Changes) -> Result<(), Failure> {
    for key in &changes.jobs {
        let (job, _) = inventory.job_change(key).ok_or_else(|| lost("job"))?;
        db.prepare_cached(
            "INSERT INTO jobs (provider, payment_id, is_capture, kind, reason, state, idempotency_key, amount, currency, created_at,
                attempts, next_at, reference, error)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
             ON CONFLICT (provider, payment_id, is_capture) DO UPDATE SET kind = ?4, reason = ?5, state = ?6, idempotency_key = ?7,
                amount = ?8, currency = ?9, created_at = ?10, attempts = ?11, next_at = ?12, reference = ?13, error = ?14",
        )?
        .execute(params![
            job.payment.provider.as_str(),
            job.payment.payment_id.as_str(),
            key.1,
            job.kind.as_str(),
            job.reason.as_str(),
            job.state.as_str(),
            job.idempotency_key,
            job.money.amount.map(|a| a as i64),
            job.money.currency.as_ref().map(Currency::as_str),
            job.created_at.millis(),
            job.attempts,
            job.next_at.millis(),
            job.reference.as_ref().map(Ref::as_str),
            job.error.as_deref(),
        ])?;
    }
    Ok(())
}

fn small(db: &Connection, changes: &Changes) -> Result<(), Failure> {
    for (provider, event) in &changes.events {
        db.prepare_cached("INSERT INTO events (provider, event_id) VALUES (?1, ?2)")?
            .execute([provider.as_str(), event.as_str()])?;
    }
    for (key, used_for) in &changes.receipts {
        db.prepare_cached("INSERT INTO receipts (key, used_for) VALUES (?1, ?2)")?.execute([key.as_str(), used_for])?;
    }
    for (customer, sku, units) in &changes.bought {
        // What is taken back was bought before, so its row is there; an upsert would fail the check on its way in.
        let sql = if *units < 0 {
            "UPDATE purchases SET units = units + ?3 WHERE customer_id = ?1 AND sku = ?2"
        } else {
            "INSERT INTO purchases (customer_id, sku, units) VALUES (?1, ?2, ?3)
             ON CONFLICT (customer_id, sku) DO UPDATE SET units = units + ?3"
        };
        db.prepare_cached(sql)?.execute(params![customer.as_str(), sku.as_str(), units])?;
    }
    Ok(())
}

fn entries(db: &Connection, entries: &[Entry], seq: &mut i64) -> Result<(), Failure> {
    static INSERT: LazyLock<Insert> = LazyLock::new(|| {
        Insert::new("INSERT INTO ledger (seq, at, kind, sku, available, held, sold, hold, order_id, reason)", 10)
    });
    INSERT.run(db, entries, |statement, at, entry| {
        *seq += 1;
        let mut id = [0; 36];
        bind!(
            statement,
            at,
            *seq,
            entry.at.millis(),
            entry.kind.as_str(),
            entry.sku.as_ref().map(Sku::as_str),
            entry.available,
            entry.held,
            entry.sold,
            entry.hold.map(|h| h.encode(&mut id)),
            entry.order.as_ref().map(OrderId::as_str),
            entry.reason.as_deref(),
        );
        Ok(())
    })
}
