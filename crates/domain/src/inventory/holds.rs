//! The rules for holds: make, change, extend, release, expire.

use super::book::Slot;
use super::shelf::Rest;
use super::{About, Inventory, Key, Mark, Tracked};
use crate::{
    CustomerId, EntryKind, Hold, HoldId, HoldRequest, HoldStatus, LINE_ADDED, Lines, Outcome, Refusal, Short, Sku,
    Stock, Time, Ttl,
};

/// What moving one line of a hold is called, and which way its units go.
type Move = (EntryKind, (i64, i64, i64));

impl Inventory {
    pub(super) fn hold(&mut self, asked: &HoldRequest, now: Time) -> Result<Outcome, Refusal> {
        if let Some(slot) = self.book.by_order(&asked.order_id) {
            match self.book.get(slot) {
                Some(hold) if hold.is_live(now) => {
                    return if hold.is_same_cart(&asked.lines, asked.customer_id.as_ref(), asked.money) {
                        Ok(Outcome::Held { hold: hold.clone(), replay: true })
                    } else {
                        Err(Refusal::OrderConflict)
                    };
                }
                _ => self.expire(slot, now),
            }
        } else if self.orders.get(&asked.order_id).is_some_and(|file| file.value.order.is_some()) {
            return Err(Refusal::AlreadyConfirmed);
        }
        self.expect_known(&asked.lines)?;
        self.expect_within_limits(&asked.lines, asked.customer_id.as_ref(), None, now)?;
        self.expect_available(&asked.lines, None, now).map_err(|items| self.sold_out(items))?;

        let hold = Hold {
            id: asked.id,
            order_id: asked.order_id.clone(),
            lines: asked.lines.clone(),
            customer_id: asked.customer_id.clone(),
            money: asked.money,
            payment_ref: asked.payment_ref.clone(),
            metadata: asked.metadata.clone(),
            created_at: now,
            expires_at: now.plus_seconds(asked.ttl.seconds()),
            status: HoldStatus::Held,
            late: false,
        };
        self.move_lines(&hold, (EntryKind::Held, (-1, 1, 0)), now, Stock::hold);
        let id = hold.id;
        let answer = hold.clone();
        self.enter(hold, Mark::New);
        self.changes.holds.push(id);
        let answer = self.settle_waiting(&answer, now).unwrap_or(answer);
        Ok(Outcome::Held { hold: answer, replay: false })
    }

    pub(super) fn change(
        &mut self,
        id: HoldId,
        lines: Option<&Lines>,
        amount: Option<u64>,
        payment_ref: Option<&str>,
        now: Time,
    ) -> Result<Outcome, Refusal> {
        let (slot, hold) = self.live(id, now)?;
        if let Some(lines) = lines {
            self.expect_known(lines)?;
            self.expect_within_limits(lines, hold.customer_id.as_ref(), Some(&hold), now)?;
            self.expect_available(lines, Some(&hold.lines), now).map_err(|items| self.sold_out(items))?;
            self.change_lines(slot, &hold, lines, now);
        }
        let same_ref = payment_ref.is_none() || payment_ref == hold.payment_ref.as_deref();
        if (amount.is_none() || amount == hold.money.amount) && same_ref {
            return Ok(Outcome::Hold(self.book.get(slot).ok_or(Refusal::NotFound)?.clone()));
        }
        let changed = self.touch_hold(slot).ok_or(Refusal::NotFound)?;
        changed.money.amount = amount.or(changed.money.amount);
        if let Some(payment_ref) = payment_ref {
            changed.payment_ref = Some(payment_ref.into());
        }
        let answer = changed.clone();
        let about =
            About { hold: Some(id), order: Some(&answer.order_id), reason: Some("terms changed"), ..About::default() };
        self.record(EntryKind::Changed, now, about);
        Ok(Outcome::Hold(answer))
    }

    fn change_lines(&mut self, slot: Slot, hold: &Hold, lines: &Lines, now: Time) {
        if *lines == hold.lines {
            return;
        }
        self.remove_dues(hold);
        self.book.unindex_customer(slot);
        let mut skus: Vec<&Sku> = hold.lines.iter().chain(lines).map(|l| &l.sku).collect();
        skus.sort();
        skus.dedup();
        for sku in skus {
            let (before, after) = (hold.lines.quantity_of(sku), lines.quantity_of(sku));
            let more = after as i64 - before as i64;
            if more == 0 {
                continue;
            }
            if let Some(stock) = self.shelf.touch(sku, &mut self.changes) {
                let done = if more > 0 { stock.hold(more as u64) } else { stock.give_back(more.unsigned_abs()) };
                debug_assert!(done.is_some(), "checked before");
            }
            let moved = (-more, more, 0);
            let reason = (before == 0).then_some(LINE_ADDED);
            let about = About { sku: Some(sku), moved, hold: Some(hold.id), order: Some(&hold.order_id), reason };
            self.record(EntryKind::Changed, now, about);
        }
        if let Some(changed) = self.touch_hold(slot) {
            changed.lines = lines.clone();
            self.add_dues(hold.id, lines, hold.expires_at, true);
        }
        self.book.index_customer(slot);
    }

    pub(super) fn extend(&mut self, id: HoldId, ttl: Ttl, now: Time) -> Result<Outcome, Refusal> {
        let (slot, hold) = self.live(id, now)?;
        let until = now.plus_seconds(ttl.seconds());
        if until > hold.created_at.plus_seconds(self.policy.max_hold_lifetime) {
            return Err(Refusal::ExtensionLimit);
        }
        if until <= hold.expires_at {
            return Ok(Outcome::Hold(hold));
        }
        self.remove_dues(&hold);
        let changed = self.touch_hold(slot).ok_or(Refusal::NotFound)?;
        changed.expires_at = until;
        let changed = changed.clone();
        self.add_dues(id, &changed.lines, until, true);
        let about = About { hold: Some(id), order: Some(&changed.order_id), ..About::default() };
        self.record(EntryKind::Extended, now, about);
        Ok(Outcome::Hold(changed))
    }

    pub(super) fn release(&mut self, id: HoldId, now: Time) -> Result<Outcome, Refusal> {
        let hold = self.find_hold(id).ok_or(Refusal::NotFound)?;
        match (hold.status, self.book.by_id(id)) {
            (HoldStatus::Confirmed, _) => return Err(Refusal::AlreadyConfirmed),
            (HoldStatus::Held, Some(slot)) if hold.is_live(now) => {
                self.leave(slot, HoldStatus::Released, EntryKind::Released, now);
            }
            (HoldStatus::Held, Some(slot)) => self.expire(slot, now),
            _ => {}
        }
        self.find_hold(id).cloned().map(Outcome::Hold).ok_or(Refusal::NotFound)
    }

    pub(super) fn sweep(&mut self, limit: u32, now: Time) -> Outcome {
        self.absent.remove(&Key::Due(limit));
        self.look_at_waiting(now);
        let mut expired = 0;
        while let Some(slot) = self.shelf.any_lapsed(now).and_then(|id| self.book.by_id(id)) {
            if expired == limit {
                return Outcome::Swept { expired, more: true };
            }
            self.expire(slot, now);
            expired += 1;
        }
        Outcome::Swept { expired, more: false }
    }

    /// A hold that can still be changed.
    fn live(&self, id: HoldId, now: Time) -> Result<(Slot, Hold), Refusal> {
        let hold = self.find_hold(id).ok_or(Refusal::NotFound)?;
        match hold.status_at(now) {
            HoldStatus::Confirmed => Err(Refusal::AlreadyConfirmed),
            HoldStatus::Released | HoldStatus::Expired => Err(Refusal::HoldExpired),
            HoldStatus::Held => Ok((self.book.by_id(id).ok_or(Refusal::NotFound)?, hold.clone())),
        }
    }

    fn touch_hold(&mut self, slot: Slot) -> Option<&mut Hold> {
        let tracked = self.book.tracked_mut(slot)?;
        if tracked.touch() {
            self.changes.holds.push(tracked.value.id);
        }
        Some(&mut tracked.value)
    }

    fn expect_known(&self, lines: &Lines) -> Result<(), Refusal> {
        if lines.iter().all(|l| self.shelf.get(&l.sku).is_some()) {
            return Ok(());
        }
        let unknown = lines.iter().filter(|l| self.shelf.get(&l.sku).is_none()).map(|l| l.sku.clone());
        Err(Refusal::UnknownSku(unknown.collect()))
    }

    /// Checks the limits per customer of the SKUs of which `lines` has more than `instead_of` has.
    pub(super) fn expect_within_limits(
        &self,
        lines: &Lines,
        customer: Option<&CustomerId>,
        instead_of: Option<&Hold>,
        now: Time,
    ) -> Result<(), Refusal> {
        let limited = |sku: &Sku| self.shelf.get(sku).and_then(|s| s.limit_per_customer);
        let grown = |sku: &Sku, units: u64| instead_of.is_none_or(|hold| units > hold.lines.quantity_of(sku));
        let checked = || lines.iter().filter(|l| grown(&l.sku, l.quantity.get()) && limited(&l.sku).is_some());
        let Some(customer) = customer else {
            let skus: Vec<Sku> = checked().map(|l| l.sku.clone()).collect();
            return if skus.is_empty() { Ok(()) } else { Err(Refusal::CustomerRequired(skus)) };
        };
        for line in checked() {
            let (sku, requested) = (&line.sku, line.quantity.get());
            let limit = limited(sku).unwrap_or(u64::MAX);
            let bought = self.bought.get(&(customer.clone(), sku.clone())).copied().unwrap_or(0);
            let held = self.book.held_by(customer, sku, instead_of.map(|h| h.id), now);
            let has = held.saturating_add(u64::try_from(bought).unwrap_or(0));
            if has.saturating_add(requested) > limit {
                return Err(Refusal::CustomerLimit { sku: sku.clone(), limit, has, requested });
            }
        }
        Ok(())
    }

    /// Expires lapsed holds until every line can be served, beyond what `credit` claims already; else the short lines.
    pub(super) fn expect_available(
        &mut self,
        lines: &Lines,
        credit: Option<&Lines>,
        now: Time,
    ) -> Result<(), Vec<Short>> {
        let mut short = Vec::new();
        for line in lines {
            let has = credit.map_or(0, |lines| lines.quantity_of(&line.sku));
            let wanted = line.quantity.get().saturating_sub(has);
            let available = loop {
                let available = self.shelf.get(&line.sku).map_or(0, |s| s.available);
                if available >= wanted || !self.expire_first(&line.sku, now) {
                    break available;
                }
            };
            if available < wanted {
                let requested = line.quantity.get();
                short.push(Short { sku: line.sku.clone(), requested, available: available + has });
            }
        }
        if short.is_empty() { Ok(()) } else { Err(short) }
    }

    fn sold_out(&self, items: Vec<Short>) -> Refusal {
        let may_return = items.iter().all(|short| self.shelf.get(&short.sku).is_some_and(|s| s.held > 0));
        Refusal::SoldOut { items, may_return }
    }

    /// Expires the hold on this SKU that lapsed first; false when none has.
    pub(super) fn expire_first(&mut self, sku: &Sku, now: Time) -> bool {
        match self.shelf.first_lapsed(sku, now).and_then(|id| self.book.by_id(id)) {
            Some(slot) => {
                self.expire(slot, now);
                true
            }
            None => false,
        }
    }

    /// Units of this SKU in holds that have lapsed and that nobody has expired yet.
    pub(super) fn lapsed_units(&self, sku: &Sku, now: Time) -> u64 {
        let rest = match self.shelf.rest(sku) {
            Rest::Units(units, _) => units,
            Rest::Unknown | Rest::More => 0,
        };
        rest + self.known_lapsed_units(sku, now)
    }

    /// The same, of the holds that were handed in.
    pub(super) fn known_lapsed_units(&self, sku: &Sku, now: Time) -> u64 {
        let lapsed = self.shelf.lapsed(sku, now).filter_map(|id| self.find_hold(id));
        lapsed.map(|hold| hold.lines.quantity_of(sku)).sum()
    }

    pub(super) fn expire(&mut self, slot: Slot, now: Time) {
        self.leave(slot, HoldStatus::Expired, EntryKind::Expired, now);
    }

    /// Gives a hold's units back and takes it out of the book.
    pub(super) fn leave(&mut self, slot: Slot, status: HoldStatus, kind: EntryKind, now: Time) {
        if let Some(hold) = self.take_out(slot, status) {
            self.move_lines(&hold, (kind, (1, -1, 0)), now, Stock::give_back);
        }
    }

    /// Takes a hold out of the book and keeps it among the settled ones, under its new status.
    pub(super) fn take_out(&mut self, slot: Slot, status: HoldStatus) -> Option<Hold> {
        let hold = self.book.get(slot)?.clone();
        self.remove_dues(&hold);
        let mut tracked = self.book.remove(slot)?;
        if tracked.touch() {
            self.changes.holds.push(hold.id);
        }
        tracked.value.status = status;
        let hold = tracked.value.clone();
        self.settled.insert(hold.id, tracked);
        Some(hold)
    }

    /// Puts a hold that claims units into the book.
    pub(super) fn enter(&mut self, hold: Hold, mark: Mark) {
        let (id, lines, at) = (hold.id, hold.lines.clone(), hold.expires_at);
        self.book.insert(hold, mark);
        self.add_dues(id, &lines, at, mark != Mark::Clean);
    }

    fn add_dues(&mut self, id: HoldId, lines: &Lines, at: Time, is_change: bool) {
        for line in lines {
            self.shelf.add_due(&line.sku, at, id);
            if is_change {
                self.changes.lapses.push((line.sku.clone(), at, line.quantity.get() as i64));
            }
        }
    }

    fn remove_dues(&mut self, hold: &Hold) {
        for line in &hold.lines {
            self.shelf.remove_due(&line.sku, hold.expires_at, hold.id);
            self.changes.lapses.push((line.sku.clone(), hold.expires_at, -(line.quantity.get() as i64)));
        }
    }

    /// Moves the units of every line the same way and records it. The caller has checked that it can be done.
    pub(super) fn move_lines(
        &mut self,
        hold: &Hold,
        (kind, way): Move,
        now: Time,
        step: fn(&mut Stock, u64) -> Option<()>,
    ) {
        for line in &hold.lines {
            let units = line.quantity.get();
            if let Some(stock) = self.shelf.touch(&line.sku, &mut self.changes) {
                let done = step(stock, units);
                debug_assert!(done.is_some(), "checked before");
            }
            let moved = (way.0 * units as i64, way.1 * units as i64, way.2 * units as i64);
            let about = About {
                sku: Some(&line.sku),
                moved,
                hold: Some(hold.id),
                order: Some(&hold.order_id),
                ..About::default()
            };
            self.record(kind, now, about);
        }
    }

    /// A hold that is settled, for changing.
    pub(super) fn touch_settled(&mut self, id: HoldId) -> Option<&mut Hold> {
        let tracked: &mut Tracked<Hold> = self.settled.get_mut(&id)?;
        if tracked.touch() {
            self.changes.holds.push(id);
        }
        Some(&mut tracked.value)
    }
}
