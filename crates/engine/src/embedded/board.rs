//! The stock as readers see it: what the last durable batch left, with lapsed units counted as available.
//!
//! The writer posts changes here once they are durable, so a reader never waits for a batch and never sees one that
//! may still be lost.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use holdfast_domain::{Inventory, Sku, Stock, Time};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
    by_sku: HashMap<Sku, Row, RandomState>,
    order: BTreeSet<Sku>,
    holds: u64,
}

impl Rows {
    fn put(&mut self, stock: &Stock) {
        match self.by_sku.get_mut(&stock.sku) {
            Some(row) => row.stock.clone_from(stock),
            None => {
                self.by_sku.insert(stock.sku.clone(), Row { stock: stock.clone(), lapses: BTreeMap::new() });
                self.order.insert(stock.sku.clone());
            }
        }
    }

    fn lapse(&mut self, sku: &Sku, at: Time, units: i64) {
        if let Some(row) = self.by_sku.get_mut(sku) {
            let sum = row.lapses.entry(at).or_default();
            *sum += units;
            if *sum == 0 {
                row.lapses.remove(&at);
            }
        }
    }
}

impl Rows {
    fn take(&mut self, posting: Posting) {
        for (sku, stock) in posting.stocks {
            match stock {
                Some(stock) => self.put(&stock),
                None => {
                    self.by_sku.remove(&sku);
                    self.order.remove(&sku);
                }
            }
        }
        // Most batches move one SKU's units at one moment: add up before looking up.
        let mut lapses = posting.lapses.iter().peekable();
        while let Some((sku, at, units)) = lapses.next() {
            let mut sum = *units;
            while let Some((_, _, more)) = lapses.next_if(|(s, a, _)| s == sku && a == at) {
                sum += more;
            }
            self.lapse(sku, *at, sum);
        }
        self.holds = posting.holds;
    }
}

/// What a batch changed, kept until it is durable.
pub(super) struct Posting {
    stocks: Vec<(Sku, Option<Stock>)>,
    lapses: Vec<(Sku, Time, i64)>,
    holds: u64,
}

impl Posting {
    /// Takes what the batch that was just decided changed.
    pub(super) fn of(inventory: &mut Inventory) -> Self {
        let lapses = inventory.take_lapses();
        let stock = |sku: &Sku| inventory.stock_change(sku).and_then(|(stock, _)| stock.cloned());
        let stocks = inventory.changes().stocks.iter().map(|sku| (sku.clone(), stock(sku))).collect();
        Self { stocks, lapses, holds: inventory.held_count() as u64 }
    }
}

/// Shared by the writer and all readers.
#[derive(Default)]
pub(super) struct Board {
    rows: RwLock<Rows>,
    queue: Mutex<VecDeque<(u64, Posting)>>,
}

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
        // Batches that wait to be posted are in what was just read.
        let mut queue = self.queue.lock();
        queue.clear();
        *self.rows.write() = rows;
    }

    /// Keeps what a batch changed until it is durable. To be called in the order of the batches' numbers.
    pub(super) fn keep(&self, batch: u64, posting: Posting) {
        self.queue.lock().push_back((batch, posting));
    }

    /// Posts what is durable up to this batch.
    pub(super) fn post(&self, durable: u64) {
        let mut queue = self.queue.lock();
        while queue.front().is_some_and(|(batch, _)| *batch <= durable) {
            if let Some((_, posting)) = queue.pop_front() {
                self.rows.write().take(posting);
            }
        }
    }

    pub(super) fn get(&self, sku: &Sku, now: Time) -> Option<Stock> {
        self.rows.read().by_sku.get(sku).map(|row| row.as_of(now))
    }

    /// SKUs in byte order, after the given one.
    pub(super) fn list(&self, after: Option<&Sku>, limit: usize, now: Time) -> Vec<Stock> {
        let rows = self.rows.read();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = rows.order.range((from, Bound::Unbounded));
        range.take(limit).filter_map(|sku| rows.by_sku.get(sku)).map(|row| row.as_of(now)).collect()
    }

    /// SKUs known and holds that claim units, or did until they lapsed.
    pub(super) fn counts(&self) -> (u64, u64) {
        let rows = self.rows.read();
        (rows.order.len() as u64, rows.holds)
    }
}
