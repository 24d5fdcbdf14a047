//! The audit of the embedded store.
//!
//! Counters, holds and orders are read in one snapshot. The ledger up to that snapshot's last entry never changes, so
//! it is folded afterwards in bounded steps.

use super::failure::{Failure, corrupt};
use super::load::{all, last_entry};
use crate::AuditReport;
use crate::audit::{Cut, Fold, STEP, add_lines, compare};
use holdfast_domain::{Counters, Time};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

fn advance(fold: &mut Fold, db: &Connection, last: i64) -> Result<(), Failure> {
    fold.rewind_to(last);
    while fold.upto < last {
        let next = last.min(fold.upto + STEP);
        let sql = "SELECT sku, sum(available), sum(held), sum(sold) FROM ledger
            WHERE seq > ?1 AND seq <= ?2 AND sku IS NOT NULL GROUP BY sku";
        for (sku, moved) in all(db, sql, params![fold.upto, next], sku_and_sums)? {
            fold.add(sku, moved);
        }
        fold.upto = next;
    }
    Ok(())
}

fn sku_and_sums(row: &rusqlite::Row<'_>) -> Result<(String, Counters), Failure> {
    Ok((row.get(0)?, Counters { available: row.get(1)?, held: row.get(2)?, sold: row.get(3)? }))
}

fn cut(db: &Connection) -> Result<Cut, Failure> {
    let snapshot = db.unchecked_transaction()?;
    let last = last_entry(&snapshot)?;
    let counters =
        all(&snapshot, "SELECT sku, available, held, sold FROM stock", [], sku_and_sums)?.into_iter().collect();
    let held =
        "SELECT lines FROM holds WHERE n >= (SELECT value FROM meta WHERE name = 'low_water') AND status = 'held'";
    let held = units(&snapshot, held, 1)?;
    let sold = units(&snapshot, "SELECT lines FROM orders", 2)?;
    snapshot.commit()?;
    Ok(Cut { last, counters, held, sold })
}

fn units(db: &Connection, sql: &str, numbers: usize) -> Result<BTreeMap<String, i64>, Failure> {
    let mut sums = BTreeMap::new();
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        add_lines(&mut sums, row.get_ref(0)?.as_str().map_err(corrupt)?, numbers)?;
    }
    Ok(sums)
}

/// Compares everything at one cut. Live traffic goes on meanwhile and is never mistaken for drift.
pub(super) fn run(db: &Connection, fold: &mut Fold, now: Time) -> Result<AuditReport, Failure> {
    let cut = cut(db)?;
    advance(fold, db, cut.last)?;
    Ok(compare(&cut, fold, now))
}
