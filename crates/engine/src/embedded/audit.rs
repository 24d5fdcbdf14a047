//! The audit: the counters against the fold of the ledger, against the holds and against the orders, at one cut.
//!
//! Counters, holds and orders are read in one snapshot. The ledger up to that snapshot's last entry never changes, so
//! it is folded afterwards in bounded steps, and the fold is kept: the next audit reads only what came since.

use super::failure::Failure;
use super::load::{all, one};
use crate::{AuditReport, Drift};
use holdfast_domain::{Counters, Time};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

const STEP: i64 = 50_000;

/// The fold of the ledger so far.
#[derive(Default)]
pub(super) struct Fold {
    upto: i64,
    sums: BTreeMap<String, Counters>,
}

impl Fold {
    fn advance(&mut self, db: &Connection, last: i64) -> Result<(), Failure> {
        if self.upto > last {
            *self = Self::default();
        }
        while self.upto < last {
            let next = last.min(self.upto + STEP);
            let sql = "SELECT sku, sum(available), sum(held), sum(sold) FROM ledger
                WHERE seq > ?1 AND seq <= ?2 AND sku IS NOT NULL GROUP BY sku";
            for (sku, sums) in all(db, sql, params![self.upto, next], sku_and_sums)? {
                let sum = self.sums.entry(sku).or_default();
                sum.available += sums.available;
                sum.held += sums.held;
                sum.sold += sums.sold;
            }
            self.upto = next;
        }
        Ok(())
    }
}

fn sku_and_sums(row: &rusqlite::Row<'_>) -> Result<(String, Counters), Failure> {
    Ok((row.get(0)?, Counters { available: row.get(1)?, held: row.get(2)?, sold: row.get(3)? }))
}

/// What one snapshot says besides the ledger.
struct Cut {
    last: i64,
    counters: BTreeMap<String, Counters>,
    held: BTreeMap<String, i64>,
    sold: BTreeMap<String, i64>,
}

fn cut(db: &Connection) -> Result<Cut, Failure> {
    let snapshot = db.unchecked_transaction()?;
    let last = one(&snapshot, "SELECT coalesce(max(seq), 0) FROM ledger", [], |row| Ok(row.get(0)?))?.unwrap_or(0);
    let counters =
        all(&snapshot, "SELECT sku, available, held, sold FROM stock", [], sku_and_sums)?.into_iter().collect();
    let held =
        "SELECT lines FROM holds WHERE n >= (SELECT value FROM meta WHERE name = 'low_water') AND status = 'held'";
    let held = units(&snapshot, held, |parts| parts.first().copied())?;
    let sold = units(&snapshot, "SELECT lines FROM orders", |parts| Some(parts.first()? - parts.get(1)?))?;
    snapshot.commit()?;
    Ok(Cut { last, counters, held, sold })
}

/// Adds up the lines of many rows by SKU; `count` makes a number of the numbers before the SKU.
fn units(db: &Connection, sql: &str, count: fn(&[i64]) -> Option<i64>) -> Result<BTreeMap<String, i64>, Failure> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for line in row.get_ref(0)?.as_str().map_err(super::failure::corrupt)?.split('\n') {
            let mut numbers = Vec::with_capacity(2);
            let mut rest = line;
            let wanted = if sql.contains("FROM orders") { 2 } else { 1 };
            while numbers.len() < wanted {
                let (number, after) = rest.split_once(' ').unwrap_or((rest, ""));
                numbers.push(number.parse().map_err(super::failure::corrupt)?);
                rest = after;
            }
            match sums.get_mut(rest) {
                Some(sum) => *sum += count(&numbers).unwrap_or(0),
                None => {
                    sums.insert(rest.to_owned(), count(&numbers).unwrap_or(0));
                }
            }
        }
    }
    Ok(sums)
}

/// Compares everything at one cut. Live traffic goes on meanwhile and is never mistaken for drift.
pub(super) fn run(db: &Connection, fold: &mut Fold, now: Time) -> Result<AuditReport, Failure> {
    let cut = cut(db)?;
    fold.advance(db, cut.last)?;
    let mut drift = Vec::new();
    let mut compare = |sku: &str, field: &'static str, expected: i64, actual: i64| {
        if expected != actual {
            drift.push(Drift { sku: sku.to_owned(), field, expected, actual });
        }
    };
    let none = Counters::default();
    let known = cut.counters.keys().chain(fold.sums.keys()).chain(cut.held.keys()).chain(cut.sold.keys());
    let skus: std::collections::BTreeSet<&String> = known.collect();
    for sku in skus {
        let counters = cut.counters.get(sku).unwrap_or(&none);
        let folded = fold.sums.get(sku).unwrap_or(&none);
        compare(sku, "available", folded.available, counters.available);
        compare(sku, "held", folded.held, counters.held);
        compare(sku, "sold", folded.sold, counters.sold);
        compare(sku, "held_by_holds", cut.held.get(sku).copied().unwrap_or(0), counters.held);
        compare(sku, "sold_by_orders", cut.sold.get(sku).copied().unwrap_or(0), counters.sold);
    }
    Ok(AuditReport { at: now, skus: cut.counters.len() as u64, entries: cut.last.unsigned_abs(), drift })
}
