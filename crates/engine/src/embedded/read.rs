//! Reads: pages of holds, ledger entries, payments and refunds, through read-only connections of their own.
//!
//! Every page is a bounded pass: where few rows match, it may hold fewer items than asked and still say where to go on.

use super::failure::{Failure, corrupt};
use super::load::{self, all, one};
use super::{index, rows};
use crate::{HoldFilter, LedgerFilter, NumberedEntry, OrderView, Page};
use holdfast_domain::{Hold, HoldId, HoldStatus, Job, OrderId, Payment, Time};
use rusqlite::{Connection, params};

/// Rows looked at for one page at the most.
const PASS: usize = 10_000;

/// Where a list goes on: a number of the store's own.
fn cursor(after: Option<&str>) -> i64 {
    after.and_then(|text| text.parse().ok()).unwrap_or(0)
}

pub(super) fn order(db: &Connection, id: &OrderId) -> Result<Option<OrderView>, Failure> {
    let Some(order) = load::order(db, id)? else { return Ok(None) };
    let payment = order.payment.as_ref().map(|key| load::payment(db, key)).transpose()?.flatten();
    Ok(Some(OrderView { order, payment }))
}

pub(super) fn ledger(db: &Connection, filter: &LedgerFilter, limit: usize) -> Result<Page<NumberedEntry>, Failure> {
    let after = i64::try_from(filter.after).unwrap_or(i64::MAX);
    let key = match (&filter.order_id, &filter.sku) {
        (Some(order), _) => Some(index::order_key(order)),
        (None, Some(sku)) => Some(index::sku_key(sku)),
        (None, None) => None,
    };
    let matches = |e: &holdfast_domain::Entry| {
        filter.sku.as_ref().is_none_or(|sku| e.sku.as_ref() == Some(sku))
            && filter.order_id.as_ref().is_none_or(|order| e.order.as_ref() == Some(order))
    };
    let mut items = Vec::new();
    let next = walk(db, key, after, |_, entry| {
        if matches(&entry.entry) {
            items.push(entry);
        }
        Ok(items.len() < limit)
    })?;
    Ok(Page { items, next: next.map(|seq| seq.to_string()) })
}

/// Visits entries numbered above `after` that may concern the key, in order, until told to stop or the pass is long
/// enough; where to go on, if anything may be left.
fn walk(
    db: &Connection,
    key: Option<i64>,
    after: i64,
    mut visit: impl FnMut(&Connection, NumberedEntry) -> Result<bool, Failure>,
) -> Result<Option<i64>, Failure> {
    let mut last = after;
    let mut left = PASS;
    if let Some(key) = key.filter(|_| has_index(db)) {
        let done = index::indexed_to(db)?;
        let by_seq = format!("SELECT {} FROM ledger WHERE seq = ?1", rows::ENTRY);
        let mut statement = db
            .prepare_cached("SELECT seq FROM derived.ledger_index WHERE key = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3")?;
        let mut found = statement.query(params![key, after, PASS as i64])?;
        while let Some(row) = found.next()? {
            last = row.get(0)?;
            left -= 1;
            if let Some((seq, entry)) = one(db, &by_seq, [last], rows::entry)?
                && !visit(db, NumberedEntry { seq, entry })?
            {
                return Ok(Some(last));
            }
        }
        if left == 0 {
            return Ok(Some(last));
        }
        last = last.max(done);
    }
    // The tail is as long as the engine is busy; it is read whole, since looking at a row costs little here.
    let sql = format!("SELECT {} FROM ledger WHERE seq > ?1 ORDER BY seq", rows::ENTRY);
    let keyed = format!(
        "SELECT {} FROM ledger WHERE seq > ?1 AND (sku IS NOT NULL OR order_id IS NOT NULL) ORDER BY seq",
        rows::ENTRY
    );
    let mut statement = db.prepare_cached(if key.is_some() { &keyed } else { &sql })?;
    let mut found = statement.query([last])?;
    while let Some(row) = found.next()? {
        let (seq, entry) = rows::entry(row)?;
        last = i64::try_from(seq).unwrap_or(i64::MAX);
        if !visit(db, NumberedEntry { seq, entry })? {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

fn has_index(db: &Connection) -> bool {
    db.prepare_cached("SELECT indexed_to FROM derived.progress").is_ok()
}

pub(super) fn holds(db: &Connection, filter: &HoldFilter, limit: usize, now: Time) -> Result<Page<Hold>, Failure> {
    let key = match (&filter.order_id, &filter.sku) {
        (Some(order), _) => index::order_key(order),
        (None, Some(sku)) => index::sku_key(sku),
        (None, None) => return all_holds(db, filter, limit, now),
    };
    let mut items = Vec::new();
    let next = walk(db, Some(key), cursor(filter.after.as_deref()), |db, numbered| {
        let entry = &numbered.entry;
        let introduces = match (entry.kind, entry.hold) {
            (holdfast_domain::EntryKind::Held, Some(hold)) => Some(hold),
            (holdfast_domain::EntryKind::Changed, Some(hold)) if entry.held > 0 => Some(hold),
            _ => None,
        };
        if let Some(id) = introduces
            && is_first(db, id, &numbered, filter)?
            && let Some(hold) = load::hold(db, id)?
            && is_asked(&hold, filter, now)
        {
            items.push(hold);
        }
        Ok(items.len() < limit)
    })?;
    Ok(Page { items, next: next.map(|seq| seq.to_string()) })
}

/// Whether no earlier entry introduced the hold to this list: a cart has an entry a line, and a line may come and go.
fn is_first(db: &Connection, id: HoldId, at: &NumberedEntry, filter: &HoldFilter) -> Result<bool, Failure> {
    let Some(order) = &at.entry.order else { return Ok(false) };
    let mut first = None;
    walk(db, Some(index::order_key(order)), 0, |_, earlier| {
        let entry = &earlier.entry;
        let same_list = filter.sku.is_none() || entry.sku == filter.sku;
        let introduces = matches!(entry.kind, holdfast_domain::EntryKind::Held | holdfast_domain::EntryKind::Changed);
        if entry.hold == Some(id) && same_list && introduces && entry.held > 0 {
            first = Some(earlier.seq);
        }
        Ok(first.is_none() && earlier.seq < at.seq)
    })?;
    Ok(first == Some(at.seq))
}

fn is_asked(hold: &Hold, filter: &HoldFilter, now: Time) -> bool {
    filter.status.is_none_or(|status| hold.status_at(now) == status)
        && filter.order_id.as_ref().is_none_or(|order| hold.order_id == *order)
        && filter.sku.as_ref().is_none_or(|sku| hold.lines.quantity_of(sku) > 0)
}

fn all_holds(db: &Connection, filter: &HoldFilter, limit: usize, now: Time) -> Result<Page<Hold>, Failure> {
    let mut after = cursor(filter.after.as_deref());
    if filter.status == Some(HoldStatus::Held) {
        let low = one(db, "SELECT value FROM meta WHERE name = 'low_water'", [], |row| Ok(row.get::<_, i64>(0)?))?;
        after = after.max(low.unwrap_or(0) - 1);
    }
    let sql = format!("SELECT {} FROM holds h WHERE n > ?1 ORDER BY n LIMIT ?2", rows::HOLD);
    let mut statement = db.prepare_cached(&sql)?;
    let mut found = statement.query(params![after, PASS as i64])?;
    let (mut items, mut looked) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        looked += 1;
        after = row.get(0)?;
        let hold = rows::hold(row)?;
        if is_asked(&hold, filter, now) {
            items.push(hold);
        }
        if items.len() == limit {
            return Ok(Page { items, next: Some(after.to_string()) });
        }
    }
    Ok(Page { items, next: (looked == PASS).then(|| after.to_string()) })
}

pub(super) fn payments(
    db: &Connection,
    status: Option<&str>,
    after: u64,
    limit: usize,
) -> Result<Page<Payment>, Failure> {
    let sql = format!(
        "SELECT {} FROM payments WHERE n > ?1 AND (?2 IS NULL OR status = ?2) ORDER BY n LIMIT ?3",
        rows::PAYMENT
    );
    let found =
        all(db, &sql, params![after as i64, status, limit as i64], |row| Ok((row.get(14)?, rows::payment(row)?)))?;
    Ok(page(found, limit))
}

pub(super) fn refunds(db: &Connection, state: Option<&str>, after: u64, limit: usize) -> Result<Page<Job>, Failure> {
    let sql = format!(
        "SELECT {} FROM jobs WHERE is_capture = 0 AND n > ?1 AND (?2 IS NULL OR state = ?2) ORDER BY n LIMIT ?3",
        rows::JOB
    );
    let found = all(db, &sql, params![after as i64, state, limit as i64], |row| Ok((row.get(9)?, rows::job(row)?)))?;
    Ok(page(found, limit))
}

fn page<T>(found: Vec<(i64, T)>, limit: usize) -> Page<T> {
    let next = (found.len() == limit).then(|| found.last().map(|(n, _)| n.to_string())).flatten();
    Page { items: found.into_iter().map(|(_, item)| item).collect(), next }
}

/// The latest moment that was recorded: the clock must not start before it.
pub(super) fn last_time(db: &Connection) -> Result<Time, Failure> {
    let last = one(db, "SELECT at FROM ledger ORDER BY seq DESC LIMIT 1", [], |row| Ok(row.get(0)?))?;
    Ok(Time::from_millis(last.unwrap_or(0)))
}

/// The greatest numbers in use: of holds, and of ledger entries.
pub(super) fn last_numbers(db: &Connection) -> Result<(u64, i64), Failure> {
    let hold: i64 = one(db, "SELECT coalesce(max(n), 0) FROM holds", [], |row| Ok(row.get(0)?))?.unwrap_or(0);
    let entry: i64 = one(db, "SELECT coalesce(max(seq), 0) FROM ledger", [], |row| Ok(row.get(0)?))?.unwrap_or(0);
    Ok((u64::try_from(hold).map_err(corrupt)?, entry))
}
