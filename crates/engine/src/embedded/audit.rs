//! The audit: the counters against the fold of the ledger, against the holds and against the orders, at one cut.
//!
//! Counters, holds and orders are read in one snapshot. The ledger up to that snapshot's last entry never changes, so
//! it is folded afterwards in bounded steps, and the fold is kept: the next audit reads only what came since.

use super::failure::Failure;
use super::load::{all, last_entry};
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

/// Adds up the lines of many rows by SKU. A line has so many numbers before its SKU: the units, then what is taken off.
fn units(db: &Connection, sql: &str, numbers: usize) -> Result<BTreeMap<String, i64>, Failure> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for line in row.get_ref(0)?.as_str().map_err(super::failure::corrupt)?.split('\n') {
            let (mut rest, mut count) = (line, 0);
            for place in 0..numbers {
                let (number, after) = rest.split_once(' ').unwrap_or((rest, ""));
                let number: i64 = number.parse().map_err(super::failure::corrupt)?;
                count += if place == 0 { number } else { -number };
                rest = after;
            }
            match sums.get_mut(rest) {
                Some(sum) => *sum += count,
                None => {
                    sums.insert(rest.to_owned(), count);
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
