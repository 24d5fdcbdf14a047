//! Reads: pages of holds, ledger entries, payments and refunds, through read-only connections of their own.
//!
//! Every page is a bounded pass: where few rows match, it may hold fewer items than asked and still say where to go on.

use super::failure::{Failure, corrupt};
use super::load::{self, all, one};
use super::{index, rows};
use crate::{HoldFilter, LedgerFilter, NumberedEntry, OrderView, Page};
use hashbrown::HashSet;
use holdfast_domain::{Entry, EntryKind, Hold, HoldId, HoldStatus, Job, OrderId, Payment, Sku, Time};
use rusqlite::{Connection, Row, params};

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

/// Which entries a list is about.
#[derive(Clone, Copy)]
enum About<'a> {
    All,
    Sku(&'a Sku),
    Order(&'a OrderId),
}

impl<'a> About<'a> {
    /// The narrower of the two conditions, which the index can find.
    fn of(sku: Option<&'a Sku>, order: Option<&'a OrderId>) -> Self {
        match (order, sku) {
            (Some(order), _) => Self::Order(order),
            (None, Some(sku)) => Self::Sku(sku),
            (None, None) => Self::All,
        }
    }

    fn key(self) -> Option<i64> {
        match self {
            Self::All => None,
            Self::Sku(sku) => Some(index::sku_key(sku)),
            Self::Order(order) => Some(index::order_key(order)),
        }
    }
}

pub(super) fn ledger(db: &Connection, filter: &LedgerFilter, limit: usize) -> Result<Page<NumberedEntry>, Failure> {
    let after = i64::try_from(filter.after).unwrap_or(i64::MAX);
    let matches = |e: &Entry| {
        filter.sku.as_ref().is_none_or(|sku| e.sku.as_ref() == Some(sku))
            && filter.order_id.as_ref().is_none_or(|order| e.order.as_ref() == Some(order))
    };
    let mut items = Vec::new();
    let next = walk(db, About::of(filter.sku.as_ref(), filter.order_id.as_ref()), after, |entry| {
        if matches(&entry.entry) {
            items.push(entry);
        }
        Ok(items.len() < limit)
    })?;
    Ok(Page { items, next: next.map(|seq| seq.to_string()) })
}

/// Visits entries numbered above `after` that may be asked for, in order, until told to stop or the pass is long
/// enough; where to go on, if anything may be left.
fn walk(
    db: &Connection,
    about: About<'_>,
    after: i64,
    mut visit: impl FnMut(NumberedEntry) -> Result<bool, Failure>,
) -> Result<Option<i64>, Failure> {
    let mut last = after;
    if let Some(key) = about.key().filter(|_| has_index(db)) {
        let done = index::indexed_to(db)?;
        let by_seq = format!("SELECT {} FROM ledger WHERE seq = ?1", rows::ENTRY);
        let found = "SELECT seq FROM derived.ledger_index WHERE key = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
        let mut statement = db.prepare_cached(found)?;
        let mut found = statement.query(params![key, after, PASS as i64])?;
        let mut looked = 0;
        while let Some(row) = found.next()? {
            last = row.get(0)?;
            looked += 1;
            if let Some((seq, entry)) = one(db, &by_seq, [last], rows::entry)?
                && !visit(NumberedEntry { seq, entry })?
            {
                return Ok(Some(last));
            }
        }
        if looked == PASS {
            return Ok(Some(last));
        }
        last = last.max(done);
    }
    // The tail that is not indexed yet: SQLite passes over what does not match without handing it out.
    let (condition, value) = match about {
        About::All => ("?2 IS NULL", None),
        About::Sku(sku) => ("sku = ?2", Some(sku.as_str())),
        About::Order(order) => ("order_id = ?2", Some(order.as_str())),
    };
    let sql = format!("SELECT {} FROM ledger WHERE seq > ?1 AND {condition} ORDER BY seq", rows::ENTRY);
    let mut statement = db.prepare_cached(&sql)?;
    let mut found = statement.query(params![last, value])?;
    while let Some(row) = found.next()? {
        let (seq, entry) = rows::entry(row)?;
        last = i64::try_from(seq).unwrap_or(i64::MAX);
        if !visit(NumberedEntry { seq, entry })? {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

fn has_index(db: &Connection) -> bool {
    db.prepare_cached("SELECT indexed_to FROM derived.progress").is_ok()
}

pub(super) fn holds(db: &Connection, filter: &HoldFilter, limit: usize, now: Time) -> Result<Page<Hold>, Failure> {
    let about = About::of(filter.sku.as_ref(), filter.order_id.as_ref());
    if matches!(about, About::All) {
        return all_holds(db, filter, limit, now);
    }
    let (mut items, mut seen) = (Vec::new(), HashSet::new());
    let next = walk(db, about, cursor(filter.after.as_deref()), |entry| {
        if let Some(id) = introduced(db, about, &entry)?
            && seen.insert(id)
            && let Some(hold) = load::hold(db, id)?
            && is_asked(&hold, filter, now)
        {
            items.push(hold);
        }
        Ok(items.len() < limit && seen.len() < PASS)
    })?;
    Ok(Page { items, next: next.map(|seq| seq.to_string()) })
}

/// The hold that enters the list with this entry. A SKU's list: the entry that first gave the hold a line of it. An
/// order's list: the hold's first entry, which is the one that does not follow another of the same making.
fn introduced(db: &Connection, about: About<'_>, at: &NumberedEntry) -> Result<Option<HoldId>, Failure> {
    let Some(id) = at.entry.hold else { return Ok(None) };
    let is_sku = matches!(about, About::Sku(_));
    let introduces = match at.entry.kind {
        EntryKind::Held if is_sku => true,
        EntryKind::Held => {
            let before = "SELECT 1 FROM ledger WHERE seq = ?1 - 1 AND kind = 'held' AND hold = ?2";
            one(db, before, params![i64::try_from(at.seq).unwrap_or(0), id.to_string()], |_| Ok(()))?.is_none()
        }
        EntryKind::Changed => is_sku && at.entry.reason.as_deref() == Some(holdfast_domain::LINE_ADDED),
        _ => false,
    };
    Ok(introduces.then_some(id))
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
        "SELECT {} FROM payments WHERE n > ?1 AND (?2 IS NULL OR status = ?2)
            AND (order_id IS NOT NULL OR hold IS NOT NULL) ORDER BY n LIMIT ?3",
        rows::PAYMENT
    );
    let read = |row: &Row<'_>| Ok((row.get(rows::PAYMENT_NUMBER)?, rows::payment(row)?));
    let found = all(db, &sql, params![after as i64, status, limit as i64], read)?;
    Ok(page(found, limit))
}

pub(super) fn refunds(db: &Connection, state: Option<&str>, after: u64, limit: usize) -> Result<Page<Job>, Failure> {
    let sql = format!(
        "SELECT {} FROM jobs WHERE is_capture = 0 AND n > ?1 AND (?2 IS NULL OR state = ?2) ORDER BY n LIMIT ?3",
        rows::JOB
    );
    let read = |row: &Row<'_>| Ok((row.get(rows::JOB_NUMBER)?, rows::job(row)?));
    let found = all(db, &sql, params![after as i64, state, limit as i64], read)?;
    Ok(page(found, limit))
}

/// What is to be done at a provider by now, what has waited longest first.
pub(super) fn due_jobs(db: &Connection, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, Failure> {
    let sql = format!(
        "SELECT {} FROM jobs WHERE provider = ?1 AND next_at <= ?2 AND (state = 'due' OR state = 'requested')
            ORDER BY next_at LIMIT ?3",
        rows::JOB
    );
    all(db, &sql, params![provider, now.millis(), limit as i64], rows::job)
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
    let entry = load::last_entry(db)?;
    Ok((u64::try_from(hold).map_err(corrupt)?, entry))
}
