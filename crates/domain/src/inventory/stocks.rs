//! The rules for stock: set, adjust, remove.

use super::{About, Inventory, Mark};
use crate::{EntryKind, MAX_TOTAL, Outcome, Ref, Refusal, SetStock, Sku, Stock, Time};

impl Inventory {
    pub(super) fn set_stock(&mut self, asked: &SetStock, now: Time) -> Result<Outcome, Refusal> {
        let Some(stock) = self.shelf.get(&asked.sku) else {
            if asked.if_version.is_some() {
                return Err(Refusal::VersionMismatch(None));
            }
            return Ok(self.create_stock(&asked.sku, asked.total.get(), asked.limit_per_customer.flatten(), now));
        };
        expect_version(stock, asked.if_version)?;
        let total = asked.total.get();
        // Units of holds that have lapsed are available: expire as many as the answer depends on.
        let mut stock = stock.clone();
        while total < stock.held + stock.sold && self.expire_first(&asked.sku, now) {
            stock = self.shelf.get(&asked.sku).cloned().ok_or(Refusal::NotFound)?;
        }
        let committed = stock.held + stock.sold;
        if total < committed {
            return Err(Refusal::TotalBelowCommitted(committed));
        }
        let limit = asked.limit_per_customer.unwrap_or(stock.limit_per_customer);
        let moved = total as i64 - stock.total() as i64;
        let changed = moved != 0 || limit != stock.limit_per_customer;
        if changed {
            if let Some(kept) = self.shelf.touch(&asked.sku, &mut self.changes) {
                kept.available = total - committed;
                kept.limit_per_customer = limit;
                kept.version += 1;
                stock = kept.clone();
            }
            let words = match (moved, limit) {
                (0, Some(limit)) => format!("limit per customer set to {limit}"),
                (0, None) => "limit per customer removed".to_owned(),
                _ => format!("total set to {total}"),
            };
            let about = About { sku: Some(&asked.sku), moved: (moved, 0, 0), reason: Some(&words), ..About::default() };
            self.record(EntryKind::Adjusted, now, about);
        }
        Ok(Outcome::Stock { stock: self.as_of(stock, now), created: false, changed })
    }

    fn create_stock(&mut self, sku: &Sku, total: u64, limit: Option<u64>, now: Time) -> Outcome {
        let stock = Stock::new(sku.clone(), total, limit);
        self.shelf.insert(stock.clone(), Mark::New, &mut self.changes);
        let about = About { sku: Some(sku), moved: (total as i64, 0, 0), ..About::default() };
        self.record(EntryKind::Received, now, about);
        Outcome::Stock { stock, created: true, changed: true }
    }

    pub(super) fn adjust_stock(
        &mut self,
        sku: &Sku,
        delta: i64,
        reason: Option<&str>,
        key: Option<&Ref>,
        create: bool,
        now: Time,
    ) -> Result<Outcome, Refusal> {
        let used_for = format!("adjust {delta} {sku:?} {:?}", reason.unwrap_or_default());
        if self.is_used(key, &used_for)? {
            let stock = self.shelf.get(sku).cloned().ok_or(Refusal::NotFound)?;
            return Ok(Outcome::Stock { stock: self.as_of(stock, now), created: false, changed: false });
        }
        let Some(stock) = self.shelf.get(sku) else {
            let total = u64::try_from(delta).ok().filter(|_| create).ok_or(Refusal::NotFound)?;
            if total > MAX_TOTAL {
                return Err(Refusal::TotalTooLarge);
            }
            let created = self.create_stock(sku, total, None, now);
            self.use_key(key, used_for);
            return Ok(created);
        };
        let room = MAX_TOTAL - stock.total();
        if u64::try_from(delta).is_ok_and(|d| d > room) {
            return Err(Refusal::TotalTooLarge);
        }
        let taken = if delta < 0 { delta.unsigned_abs() } else { 0 };
        while self.shelf.get(sku).is_some_and(|s| s.available < taken) && self.expire_first(sku, now) {}
        let stock = self.shelf.get(sku).cloned().ok_or(Refusal::NotFound)?;
        let available =
            stock.available.checked_add_signed(delta).ok_or(Refusal::InsufficientAvailable(stock.available))?;
        let mut answer = stock;
        if delta != 0 {
            if let Some(kept) = self.shelf.touch(sku, &mut self.changes) {
                kept.available = available;
                kept.version += 1;
                answer = kept.clone();
            }
            let about = About { sku: Some(sku), moved: (delta, 0, 0), reason, ..About::default() };
            self.record(EntryKind::Adjusted, now, about);
        }
        self.use_key(key, used_for);
        Ok(Outcome::Stock { stock: self.as_of(answer, now), created: false, changed: delta != 0 })
    }

    pub(super) fn remove_stock(&mut self, sku: &Sku, if_version: Option<u64>, now: Time) -> Result<Outcome, Refusal> {
        let stock = self.shelf.get(sku).ok_or(Refusal::NotFound)?;
        expect_version(stock, if_version)?;
        if stock.sold == 0 {
            while self.expire_first(sku, now) {}
        }
        let stock = self.shelf.get(sku).ok_or(Refusal::NotFound)?;
        if stock.held > 0 || stock.sold > 0 {
            let stock = self.as_of(stock.clone(), now);
            return Err(Refusal::StockInUse { held: stock.held, sold: stock.sold });
        }
        let moved = (-(stock.available as i64), 0, 0);
        self.shelf.remove(sku, &mut self.changes);
        self.record(EntryKind::Removed, now, About { sku: Some(sku), moved, ..About::default() });
        Ok(Outcome::Removed)
    }

    /// Whether the key was used for this before; refused when it was used for something else.
    pub(super) fn is_used(&self, key: Option<&Ref>, used_for: &str) -> Result<bool, Refusal> {
        match key.and_then(|key| self.receipts.get(key)) {
            None => Ok(false),
            Some(before) if **before == *used_for => Ok(true),
            Some(_) => Err(Refusal::KeyReused),
        }
    }

    pub(super) fn use_key(&mut self, key: Option<&Ref>, used_for: String) {
        if let Some(key) = key {
            let used_for: Box<str> = used_for.into();
            self.receipts.insert(key.clone(), used_for.clone());
            self.changes.receipts.push((key.clone(), used_for));
        }
    }

    /// The counters as a reader sees them: units of lapsed holds are available, swept or not.
    fn as_of(&self, mut stock: Stock, now: Time) -> Stock {
        let lapsed = self.lapsed_units(&stock.sku, now);
        stock.held -= lapsed;
        stock.available += lapsed;
        stock
    }
}

fn expect_version(stock: &Stock, expected: Option<u64>) -> Result<(), Refusal> {
    match expected {
        Some(version) if version != stock.version => Err(Refusal::VersionMismatch(Some(stock.version))),
        _ => Ok(()),
    }
}
