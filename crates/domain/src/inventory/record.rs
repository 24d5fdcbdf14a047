//! Writing down what another store has decided by the same rules: the units move and the entries are made as if it had
//! been decided here, at its own moment, but nothing is decided again. What contradicts the counters is refused, so that
//! they never go below zero whatever is written down.

use super::{Inventory, Mark, Tracked};
use crate::{EntryKind, Hold, HoldId, HoldStatus, Outcome, Record, Recorded, Refusal, Short, Sku, Stock, Time};

impl Inventory {
    pub(super) fn record_decided(&mut self, record: &Record, now: Time) -> Result<Outcome, Refusal> {
        match &record.what {
            Recorded::Held(hold) => self.record_held(hold, record.at).map(|()| Outcome::Recorded),
            Recorded::Expired(id) => self.record_expired(*id, record).map(|()| Outcome::Recorded),
            Recorded::Waiting(id) => {
                let hold = self.find_hold(*id).cloned().ok_or(Refusal::NotFound)?;
                let hold = self.settle_waiting(&hold, now).unwrap_or(hold);
                Ok(Outcome::Held { hold, replay: false })
            }
        }
    }

    fn record_held(&mut self, hold: &Hold, at: Time) -> Result<(), Refusal> {
        if self.find_hold(hold.id).is_some() {
            return Err(Refusal::AlreadyConfirmed);
        }
        // The store made it, so an earlier hold of the order had lapsed; which of the two is the earlier one may only
        // be seen by when they were made.
        let rival = self.book.by_order(&hold.order_id);
        let later =
            rival.and_then(|slot| self.book.get(slot)).filter(|r| (r.created_at, r.id) > (hold.created_at, hold.id));
        let is_confirmed = self.orders.get(&hold.order_id).is_some_and(|file| file.value.order.is_some());
        if later.is_some() || is_confirmed {
            let over = Hold { status: HoldStatus::Expired, ..hold.clone() };
            self.settled.insert(hold.id, Tracked { value: over, mark: Mark::New });
            self.changes.holds.push(hold.id);
            return Ok(());
        }
        if let Some(slot) = rival {
            self.expire(slot, at);
        }
        self.expect_units(hold, |stock| stock.available)?;
        self.enter(hold.clone(), Mark::New);
        self.changes.holds.push(hold.id);
        self.move_lines(hold, (EntryKind::Held, (-1, 1, 0)), at, Stock::hold);
        Ok(())
    }

    fn record_expired(&mut self, id: HoldId, record: &Record) -> Result<(), Refusal> {
        let Some(hold) = self.find_hold(id) else {
            // One that was never whole was never written down either.
            return if record.is_loose { Ok(()) } else { Err(Refusal::NotFound) };
        };
        match self.book.by_id(id) {
            Some(slot) => {
                self.expect_units(&hold.clone(), |stock| stock.held)?;
                self.expire(slot, record.at);
                Ok(())
            }
            // Its parts lapse one after another, and the first of them ended it.
            None if record.is_loose && hold.status == HoldStatus::Expired => Ok(()),
            None => Err(Refusal::AlreadyConfirmed),
        }
    }

    fn expect_units(&self, hold: &Hold, of: impl Fn(&Stock) -> u64) -> Result<(), Refusal> {
        let has = |sku: &Sku| self.shelf.get(sku).map_or(0, &of);
        let short = hold.lines.iter().filter(|line| has(&line.sku) < line.quantity.get());
        let short: Vec<Short> = short
            .map(|line| Short { sku: line.sku.clone(), requested: line.quantity.get(), available: has(&line.sku) })
            .collect();
        if short.is_empty() { Ok(()) } else { Err(Refusal::StockGone(short)) }
    }
}
