//! What an audit compares, in every engine: the counters against the fold of the ledger, against the holds and against
//! the orders, at one cut.

use crate::records::Corrupt;
use crate::{AuditReport, Drift};
use holdfast_domain::{Counters, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Entries folded in one step.
pub(crate) const STEP: i64 = 50_000;

/// The fold of the ledger so far: the next audit reads only what came since.
#[derive(Default)]
pub(crate) struct Fold {
    pub(crate) upto: i64,
    sums: BTreeMap<String, Counters>,
}

impl Fold {
    /// Starts anew if it has folded what is not there any more.
    pub(crate) fn rewind_to(&mut self, last: i64) {
        if self.upto > last {
            *self = Self::default();
        }
    }

    /// Adds what some entries moved of a SKU.
    pub(crate) fn add(&mut self, sku: String, moved: Counters) {
        let sum = self.sums.entry(sku).or_default();
        sum.available += moved.available;
        sum.held += moved.held;
        sum.sold += moved.sold;
    }
}

/// What one snapshot says besides the ledger.
#[derive(Default)]
pub(crate) struct Cut {
    /// The last entry.
    pub(crate) last: i64,
    pub(crate) counters: BTreeMap<String, Counters>,
    /// Units of each SKU that holds claim.
    pub(crate) held: BTreeMap<String, i64>,
    /// Units of each SKU that orders keep.
    pub(crate) sold: BTreeMap<String, i64>,
}

/// Adds up the lines of a row by SKU. A line has so many numbers before its SKU: the units, then what is taken off.
pub(crate) fn add_lines(sums: &mut BTreeMap<String, i64>, text: &str, numbers: usize) -> Result<(), Corrupt> {
    for line in text.split('\n') {
        let (mut rest, mut count) = (line, 0);
        for place in 0..numbers {
            let (number, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let number: i64 = number.parse().map_err(|_| Corrupt(format!("a line with {number:?} units")))?;
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
    Ok(())
}

/// Compares what was read at one cut with the ledger folded up to it.
pub(crate) fn compare(cut: &Cut, fold: &Fold, now: Time) -> AuditReport {
    let mut drift = Vec::new();
    let mut differ = |sku: &str, field: &'static str, expected: i64, actual: i64| {
        if expected != actual {
            drift.push(Drift { sku: sku.to_owned(), field, expected, actual });
        }
    };
    let none = Counters::default();
    let known = cut.counters.keys().chain(fold.sums.keys()).chain(cut.held.keys()).chain(cut.sold.keys());
    let skus: BTreeSet<&String> = known.collect();
    for sku in skus {
        let counters = cut.counters.get(sku).unwrap_or(&none);
        let folded = fold.sums.get(sku).unwrap_or(&none);
        differ(sku, "available", folded.available, counters.available);
        differ(sku, "held", folded.held, counters.held);
        differ(sku, "sold", folded.sold, counters.sold);
        differ(sku, "held_by_holds", cut.held.get(sku).copied().unwrap_or(0), counters.held);
        differ(sku, "sold_by_orders", cut.sold.get(sku).copied().unwrap_or(0), counters.sold);
    }
    AuditReport { at: now, skus: cut.counters.len() as u64, entries: cut.last.unsigned_abs(), drift }
}
