//! The rules for confirming a hold, in time or late, and for returns.

use super::{About, Inventory, Mark, Tracked};
use crate::{
    EntryKind, Hold, HoldId, HoldStatus, Lines, Order, OrderFile, OrderId, OrderStatus, Outcome, Ref, Refusal, Short,
    Stock, Time,
};

impl Inventory {
    pub(super) fn confirm(&mut self, id: HoldId, payment_ref: Option<&str>, now: Time) -> Result<Outcome, Refusal> {
        let order = self.confirm_hold(id, now)?;
        if let Some(payment_ref) = payment_ref
            && let Some(hold) = self.find_hold(id)
            && hold.payment_ref.as_deref() != Some(payment_ref)
            && let Some(hold) = self.touch_settled(id)
        {
            hold.payment_ref = Some(payment_ref.into());
        }
        Ok(Outcome::Order(order))
    }

    /// Turns a hold into an order, taking the units again when it had lapsed. Confirmed before: the same order again.
    pub(super) fn confirm_hold(&mut self, id: HoldId, now: Time) -> Result<Order, Refusal> {
        let hold = self.find_hold(id).ok_or(Refusal::NotFound)?;
        match (hold.status, self.book.by_id(id)) {
            (HoldStatus::Confirmed, _) => self.order_of(hold).cloned().ok_or(Refusal::NotFound),
            (HoldStatus::Held, Some(slot)) if hold.is_live(now) => {
                let hold = self.take_out(slot, HoldStatus::Confirmed).ok_or(Refusal::NotFound)?;
                self.move_lines(&hold, (EntryKind::Confirmed, (0, -1, 1)), now, Stock::sell);
                Ok(self.make_order(&hold, now))
            }
            (_, slot) => {
                if let Some(slot) = slot {
                    self.expire(slot, now);
                }
                self.confirm_late(id, now)
            }
        }
    }

    fn confirm_late(&mut self, id: HoldId, now: Time) -> Result<Order, Refusal> {
        let hold = self.find_hold(id).cloned().ok_or(Refusal::NotFound)?;
        if self.order_of(&hold).is_some() {
            return Err(Refusal::AlreadyConfirmed);
        }
        // A newer live hold for the same order would be stranded: its units count towards this one, and it ends.
        let newer = self.book.by_order(&hold.order_id);
        let rival = newer.and_then(|slot| self.book.get(slot)).filter(|h| h.is_live(now)).cloned();
        let gone = |items: Vec<Short>| Refusal::StockGone(items);
        let same_customer = rival.as_ref().filter(|r| r.customer_id == hold.customer_id);
        if self.expect_within_limits(&hold.lines, hold.customer_id.as_ref(), same_customer, now).is_err() {
            return Err(gone(Vec::new()));
        }
        self.expect_available(&hold.lines, rival.as_ref().map(|r| &r.lines), now).map_err(gone)?;
        match self.book.by_order(&hold.order_id) {
            Some(slot) if rival.is_some() => self.leave(slot, HoldStatus::Released, EntryKind::Released, now),
            Some(slot) => self.expire(slot, now),
            None => {}
        }
        let hold = {
            let settled = self.touch_settled(id).ok_or(Refusal::NotFound)?;
            settled.status = HoldStatus::Confirmed;
            settled.late = true;
            settled.clone()
        };
        self.move_lines(&hold, (EntryKind::ConfirmedLate, (-1, 0, 1)), now, Stock::sell_late);
        Ok(self.make_order(&hold, now))
    }

    fn order_of(&self, hold: &Hold) -> Option<&Order> {
        self.orders.get(&hold.order_id)?.value.order.as_ref()
    }

    fn make_order(&mut self, hold: &Hold, now: Time) -> Order {
        let order = Order::of(hold, now);
        if let Some(customer) = &hold.customer_id {
            for line in &hold.lines {
                self.add_bought(customer.clone(), line.sku.clone(), line.quantity.get() as i64);
            }
        }
        let empty = || Tracked { value: OrderFile::default(), mark: Mark::Clean };
        let file = self.orders.entry(order.order_id.clone()).or_insert_with(empty);
        file.value.order = Some(order.clone());
        file.mark = Mark::New;
        self.changes.orders.push(order.order_id.clone());
        order
    }

    fn add_bought(&mut self, customer: crate::CustomerId, sku: crate::Sku, units: i64) {
        let key = (customer, sku);
        match self.bought.get_mut(&key) {
            Some(known) => *known += units,
            None => *self.bought_since.entry(key.clone()).or_default() += units,
        }
        self.changes.bought.push((key.0, key.1, units));
    }

    /// An order, for changing.
    pub(super) fn touch_order(&mut self, order: &OrderId) -> Option<&mut Order> {
        let file = self.orders.get_mut(order)?;
        if file.value.order.is_some() && file.touch() {
            self.changes.orders.push(order.clone());
        }
        file.value.order.as_mut()
    }

    pub(super) fn take_return(
        &mut self,
        id: &OrderId,
        lines: &Lines,
        key: Option<&Ref>,
        now: Time,
    ) -> Result<Outcome, Refusal> {
        let order = self.orders.get(id).and_then(|f| f.value.order.clone()).ok_or(Refusal::NotFound)?;
        let used_for = format!("return {lines:?} {id}");
        if self.is_used(key, &used_for)? {
            return Ok(Outcome::Order(order));
        }
        for line in lines {
            let kept = order.lines.iter().find(|l| l.sku == line.sku).map_or(0, crate::OrderLine::kept);
            if kept < line.quantity.get() {
                return Err(Refusal::ReturnExceedsOrder(line.sku.clone()));
            }
        }
        let order = self.give_units_back(id, Some(lines), None, now).ok_or(Refusal::NotFound)?;
        self.use_key(key, used_for);
        Ok(Outcome::Order(order))
    }

    /// sold → available for these lines of an order, or for all that is left of it.
    pub(super) fn give_units_back(
        &mut self,
        id: &OrderId,
        lines: Option<&Lines>,
        reason: Option<&str>,
        now: Time,
    ) -> Option<Order> {
        let order = self.touch_order(id)?;
        let mut moved = Vec::new();
        for line in &mut order.lines {
            let units = lines.map_or(line.kept(), |lines| lines.quantity_of(&line.sku));
            if units > 0 {
                line.returned += units;
                moved.push((line.sku.clone(), units));
            }
        }
        if order.status == OrderStatus::Confirmed && order.lines.iter().all(|l| l.kept() == 0) {
            order.status = OrderStatus::Returned;
        }
        let order = order.clone();
        for (sku, units) in moved {
            if let Some(stock) = self.shelf.touch(&sku, &mut self.changes) {
                let done = stock.take_back(units);
                debug_assert!(done.is_some(), "an order's units are sold");
            }
            let delta = units as i64;
            let about = About {
                sku: Some(&sku),
                moved: (delta, 0, -delta),
                hold: Some(order.hold_id),
                order: Some(id),
                reason,
            };
            self.record(EntryKind::Returned, now, about);
            if let Some(customer) = &order.customer_id {
                self.add_bought(customer.clone(), sku, -delta);
            }
        }
        Some(order)
    }
}
