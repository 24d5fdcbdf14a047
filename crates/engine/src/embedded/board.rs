//! The stock as readers see it: what the last durable batch left, with lapsed units counted as available.
//!
//! The writer posts changes here once they are durable, so a reader never waits for a batch and never sees one that
//! may still be lost.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use holdfast_domain::{Inventory, Sku, Stock, Time};
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

struct Row {
    stock: Stock,
    /// Units held, by the moment at which they lapse.
    lapses: BTreeMap<Time, i64>,
}

impl Row {
    fn as_of(&self, now: Time) -> Stock {
        let lapsed: i64 = self.lapses.range(..=now).map(|(_, units)| units).sum();
        let lapsed = lapsed.unsigned_abs().min(self.stock.held);
        let mut stock = self.stock.clone();
        stock.held -= lapsed;
        stock.available += lapsed;
        stock
    }
}

#[derive(Default)]
struct Rows {
    rows: HashMap<Sku, Row, RandomState>,
    order: BTreeSet<Sku>,
    holds: u64,
}

impl Rows {
    fn put(&mut self, stock: &Stock) {
        match self.rows.get_mut(&stock.sku) {
            Some(row) => row.stock.clone_from(stock),
            None => {
                self.rows.insert(stock.sku.clone(), Row { stock: stock.clone(), lapses: BTreeMap::new() });
                self.order.insert(stock.sku.clone());
            }
        }
    }

    fn lapse(&mut self, sku: &Sku, at: Time, units: i64) {
        if let Some(row) = self.rows.get_mut(sku) {
            let sum = row.lapses.entry(at).or_default();
            *sum += units;
            if *sum == 0 {
                row.lapses.remove(&at);
            }
        }
    }
}

/// Shared by the writer and all readers.
#[derive(Default)]
pub(super) struct Board(RwLock<Rows>);

impl Board {
    /// Starts anew from what is stored.
    pub(super) fn rebuild(&self, inventory: &Inventory, stocks: &[Stock]) {
        let mut rows = Rows { holds: inventory.held_count() as u64, ..Rows::default() };
        stocks.iter().for_each(|stock| rows.put(stock));
        for hold in inventory.held() {
            for line in &hold.lines {
                rows.lapse(&line.sku, hold.expires_at, line.quantity.get() as i64);
            }
        }
        *self.0.write() = rows;
    }

    /// Posts what a durable batch changed.
    pub(super) fn post(&self, inventory: &Inventory) {
        let changes = inventory.changes();
        let rows = &mut *self.0.write();
        for sku in &changes.stocks {
            match inventory.stock_change(sku) {
                Some((Some(stock), _)) => rows.put(stock),
                _ => {
                    rows.rows.remove(sku);
                    rows.order.remove(sku);
                }
            }
        }
        // Most batches move one SKU's units at one moment: add up before looking up.
        let mut lapses = changes.lapses.iter().peekable();
        while let Some((sku, at, units)) = lapses.next() {
            let mut sum = *units;
            while let Some((_, _, more)) = lapses.next_if(|(s, a, _)| s == sku && a == at) {
                sum += more;
            }
            rows.lapse(sku, *at, sum);
        }
        rows.holds = inventory.held_count() as u64;
    }

    pub(super) fn get(&self, sku: &Sku, now: Time) -> Option<Stock> {
        self.0.read().rows.get(sku).map(|row| row.as_of(now))
    }

    /// SKUs in byte order, after the given one.
    pub(super) fn list(&self, after: Option<&Sku>, limit: usize, now: Time) -> Vec<Stock> {
        let rows = self.0.read();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = rows.order.range((from, Bound::Unbounded));
        range.take(limit).filter_map(|sku| rows.rows.get(sku)).map(|row| row.as_of(now)).collect()
    }

    /// SKUs known and holds that claim units, or did until they lapsed.
    pub(super) fn counts(&self) -> (u64, u64) {
        let rows = self.0.read();
        (rows.order.len() as u64, rows.holds)
    }
}
