//! The rules for payments: what each fact settles.
//!
//! An event is remembered in the same step as its effect, never before it. Facts that happen once per payment are
//! deduplicated by the payment itself, so that two event ids for one fact have one effect. A fact is first written into
//! its payment; what follows from it is derived from everything known of the payment by then, so that the same facts
//! end the same way in whichever order they come.

use super::{About, Inventory, Mark, Tracked};
use crate::{
    EntryKind, Hold, HoldId, HoldStatus, JobKind, JobReason, JobState, Order, OrderFile, OrderId, OrderRef,
    OrderStatus, Payment, PaymentFact, PaymentKey, PaymentKind, PaymentStatus, Refusal, Settlement, Time,
};

impl Inventory {
    pub(super) fn settle(&mut self, fact: &PaymentFact, now: Time) -> Settlement {
        let event = (fact.payment.provider.clone(), fact.event_id.clone());
        if self.events.contains(&event) {
            return Settlement::Duplicate;
        }
        let is_news = self.note_fact(fact, now);
        let Some(payment) = self.payment(&fact.payment).cloned() else {
            return Settlement::Recorded;
        };
        let is_ours = payment.order.is_some();
        // A foreign event is not worth a row; told again, it changes nothing, unless it is added up.
        if is_ours || matches!(fact.kind, PaymentKind::RefundedBy(_)) {
            self.events.insert(event.clone());
            self.changes.events.push(event);
        }
        if !is_ours {
            // Not ours, as far as we know; a later fact may tell otherwise.
            return Settlement::Ignored;
        }
        if !is_news {
            return Settlement::Duplicate;
        }
        match fact.kind {
            PaymentKind::Canceled => self.release_canceled(&payment, now),
            PaymentKind::RefundFailed => self.refund_failed(fact, now),
            PaymentKind::RefundSucceeded | PaymentKind::Refunded(_) | PaymentKind::RefundedBy(_) => {
                self.refund_told(fact, &payment, now);
            }
            PaymentKind::Captured if payment.status == PaymentStatus::Voided => {
                return self.captured_after_void(&payment, now);
            }
            _ => {}
        }
        self.follow(&fact.payment, now)
    }

    /// Money came of an authorisation that was let go, as we thought: nobody may keep it.
    fn captured_after_void(&mut self, payment: &Payment, now: Time) -> Settlement {
        match self.reversal(&payment.key).map(|job| job.reason) {
            Some(reason) => self.reverse(payment, reason, now),
            // It was let go before its order was known.
            None => {
                self.set_status(&payment.key, PaymentStatus::Open);
                self.follow(&payment.key, now)
            }
        }
    }

    /// Writes the fact into its payment; false when it says nothing new, or the payment has ended.
    fn note_fact(&mut self, fact: &PaymentFact, now: Time) -> bool {
        let payment = self.touch_payment(&fact.payment, now);
        let was_named = payment.order.is_some();
        payment.order = payment.order.take().or_else(|| fact.order.clone());
        payment.email = payment.email.take().or_else(|| fact.email.clone());
        let is_of_payment = matches!(
            fact.kind,
            PaymentKind::Authorized
                | PaymentKind::Captured
                | PaymentKind::Failed
                | PaymentKind::Canceled
                | PaymentKind::Named
        );
        if is_of_payment {
            payment.money.amount = payment.money.amount.or(fact.money.amount);
        }
        payment.money.currency = payment.money.currency.or(fact.money.currency);
        let is_named = payment.order.is_some();
        let is_news = Self::set_flag(payment, fact);
        // What a capture brought is what counts, whatever was authorised.
        if is_news && fact.kind == PaymentKind::Captured {
            payment.money.amount = fact.money.amount.or(payment.money.amount);
        }
        let has_ended = match fact.kind {
            PaymentKind::RefundFailed => false,
            PaymentKind::Captured => payment.status == PaymentStatus::Refunded,
            _ => matches!(payment.status, PaymentStatus::Refunded | PaymentStatus::Voided),
        };
        let told = Self::told_by(payment);
        if is_named && !was_named {
            // Everything that was known before it was known to be ours.
            told.into_iter().for_each(|kind| self.note_payment(&fact.payment, kind, now));
            return !has_ended;
        }
        if is_named
            && is_news
            && let Some(kind) = Self::entry_of(fact.kind)
        {
            self.note_payment(&fact.payment, kind, now);
        }
        is_news && !has_ended
    }

    /// The payment as it stands.
    pub(super) fn payment(&self, key: &PaymentKey) -> Option<&Payment> {
        self.payments.get(key).map(|payment| &payment.value)
    }

    /// The payment, for changing; made if it is not known.
    fn touch_payment(&mut self, key: &PaymentKey, now: Time) -> &mut Payment {
        let changes = &mut self.changes.payments;
        let tracked = self.payments.entry(key.clone()).or_insert_with(|| {
            changes.push(key.clone());
            Tracked { value: Payment::new(key.clone(), now), mark: Mark::New }
        });
        if tracked.touch() {
            changes.push(key.clone());
        }
        &mut tracked.value
    }

    /// The payment, for changing, if it is known.
    pub(super) fn touch_known_payment(&mut self, key: &PaymentKey) -> Option<&mut Payment> {
        let tracked = self.payments.get_mut(key)?;
        if tracked.touch() {
            self.changes.payments.push(key.clone());
        }
        Some(&mut tracked.value)
    }

    /// False if the payment says so already.
    fn set_flag(payment: &mut Payment, fact: &PaymentFact) -> bool {
        let flag = match fact.kind {
            PaymentKind::Authorized => &mut payment.authorized,
            PaymentKind::Captured => &mut payment.captured,
            PaymentKind::Failed => &mut payment.failed,
            PaymentKind::Canceled => &mut payment.canceled,
            PaymentKind::CaptureFailed => &mut payment.capture_failed,
            PaymentKind::RefundFailed => &mut payment.refund_failed,
            PaymentKind::Disputed => &mut payment.disputed,
            PaymentKind::Refunded(total) => {
                let is_news = total > payment.refunded;
                payment.refunded = payment.refunded.max(total);
                return is_news;
            }
            PaymentKind::RefundedBy(part) => {
                payment.refunded = payment.refunded.saturating_add(part).min(crate::Money::MAX_AMOUNT);
                return part > 0;
            }
            PaymentKind::RefundSucceeded => return true,
            PaymentKind::Named => return false,
        };
        !std::mem::replace(flag, true)
    }

    fn entry_of(kind: PaymentKind) -> Option<EntryKind> {
        Some(match kind {
            PaymentKind::Authorized => EntryKind::PaymentAuthorized,
            PaymentKind::Captured => EntryKind::PaymentCaptured,
            PaymentKind::Failed => EntryKind::PaymentFailed,
            PaymentKind::Canceled => EntryKind::PaymentCanceled,
            PaymentKind::CaptureFailed => EntryKind::PaymentCaptureFailed,
            PaymentKind::RefundFailed => EntryKind::PaymentRefundFailed,
            PaymentKind::Disputed => EntryKind::PaymentDisputed,
            PaymentKind::Refunded(_) | PaymentKind::RefundedBy(_) => EntryKind::PaymentRefunded,
            PaymentKind::RefundSucceeded | PaymentKind::Named => return None,
        })
    }

    fn told_by(payment: &Payment) -> Vec<EntryKind> {
        let told = [
            (payment.authorized, EntryKind::PaymentAuthorized),
            (payment.captured, EntryKind::PaymentCaptured),
            (payment.failed, EntryKind::PaymentFailed),
            (payment.canceled, EntryKind::PaymentCanceled),
            (payment.capture_failed, EntryKind::PaymentCaptureFailed),
            (payment.refunded > 0, EntryKind::PaymentRefunded),
            (payment.refund_failed, EntryKind::PaymentRefundFailed),
            (payment.disputed, EntryKind::PaymentDisputed),
        ];
        told.into_iter().filter(|(is_told, _)| *is_told).map(|(_, kind)| kind).collect()
    }

    pub(super) fn note_payment(&mut self, key: &PaymentKey, kind: EntryKind, now: Time) {
        let order = match self.payment(key).and_then(|p| p.order.clone()) {
            Some(OrderRef::Order(order)) => Some(order),
            Some(OrderRef::Hold(id)) => self.find_hold(id).map(|h| h.order_id.clone()),
            None => None,
        };
        let words = key.to_string();
        self.record(kind, now, About { order: order.as_ref(), reason: Some(&words), ..About::default() });
    }

    pub(super) fn set_status(&mut self, key: &PaymentKey, status: PaymentStatus) {
        if self.payment(key).is_some_and(|payment| payment.status != status)
            && let Some(payment) = self.touch_known_payment(key)
        {
            payment.status = status;
        }
    }

    fn release_canceled(&mut self, payment: &Payment, now: Time) {
        if !self.policy.release_on_canceled || payment.captured || payment.status != PaymentStatus::Open {
            return;
        }
        let live = self.live_hold_of(payment.order.as_ref(), now).map(|hold| hold.id);
        // A payment that names a hold is for that hold, and another one of its order stays.
        let live = live.filter(|id| !matches!(&payment.order, Some(OrderRef::Hold(named)) if named != id));
        if let Some(slot) = live.and_then(|id| self.book.by_id(id)) {
            self.leave(slot, HoldStatus::Released, EntryKind::Released, now);
        }
    }

    /// What follows from everything known of a payment. Called again whenever something more is known.
    pub(super) fn follow(&mut self, key: &PaymentKey, now: Time) -> Settlement {
        let Some(payment) = self.payment(key).cloned() else { return Settlement::Recorded };
        let has_money = payment.captured || payment.authorized;
        let is_undecided =
            matches!(payment.status, PaymentStatus::Open | PaymentStatus::Unmatched | PaymentStatus::NeedsAttention);
        let told = if is_undecided && has_money { self.decide(&payment, now) } else { Settlement::Recorded };
        let Some(payment) = self.payment(key).cloned() else { return told };
        match payment.status {
            PaymentStatus::Settled => self.follow_settled(&payment, told, now),
            PaymentStatus::Reversing => self.follow_reversal(&payment, told, now),
            PaymentStatus::Unmatched | PaymentStatus::NeedsAttention => {
                if payment.is_refunded() {
                    self.set_status(key, PaymentStatus::Refunded);
                } else if payment.canceled && !payment.is_captured() {
                    self.set_status(key, PaymentStatus::Voided);
                }
                told
            }
            PaymentStatus::Open | PaymentStatus::Refunded | PaymentStatus::Voided => told,
        }
    }

    fn follow_settled(&mut self, payment: &Payment, told: Settlement, now: Time) -> Settlement {
        let key = &payment.key;
        if payment.is_refunded() {
            self.set_status(key, PaymentStatus::Refunded);
            // Money that went back was captured, whether or not we were told.
            self.finish_job(key, true, None, now);
            return self.refund_order(payment, now);
        }
        if payment.capture_failed {
            return self.end_uncaptured(payment, "the provider says that the capture failed", now);
        }
        if payment.is_captured() {
            self.finish_job(key, true, None, now);
        }
        told
    }

    fn follow_reversal(&mut self, payment: &Payment, told: Settlement, now: Time) -> Settlement {
        let key = &payment.key;
        let job = self.reversal(key).map(|job| (job.kind, job.reason, job.state));
        // While somebody is about it, the sum may be that of a refund that is not through yet: its own end counts then.
        let is_in_hand = job.is_some_and(|(.., state)| state == JobState::Requested);
        if payment.is_refunded() && !payment.refund_failed && !is_in_hand {
            self.finish_reversal(key, PaymentStatus::Refunded, None, now);
        } else if payment.canceled && !payment.is_captured() {
            self.finish_reversal(key, PaymentStatus::Voided, None, now);
        } else if let Some((kind, reason, state)) = job
            && state != JobState::Succeeded
            && (kind == JobKind::Refund) != payment.is_captured()
        {
            // An authorisation that was to be let go turned out to be captured, or the other way round.
            return self.reverse(payment, reason, now);
        }
        told
    }

    /// The payment that pays for an order was given back in full: the order ends. Other orders are not touched.
    fn refund_order(&mut self, payment: &Payment, now: Time) -> Settlement {
        let Some(order_id) = self.order_id_of(payment.order.as_ref()) else { return Settlement::Recorded };
        let Some(order) = self.touch_order(&order_id).filter(|o| o.payment.as_ref() == Some(&payment.key)) else {
            return Settlement::Recorded;
        };
        if order.status != OrderStatus::CaptureFailed {
            order.status = OrderStatus::Refunded;
        }
        let order = order.clone();
        let order = if self.policy.restock_on_refund {
            self.give_units_back(&order_id, None, Some("refunded"), now).unwrap_or(order)
        } else {
            order
        };
        Settlement::OrderRefunded(order)
    }

    /// The authorisation that paid for an order brought no money: the order ends, its units are given back, and what is
    /// left of the authorisation is let go.
    pub(super) fn end_uncaptured(&mut self, payment: &Payment, why: &str, now: Time) -> Settlement {
        self.fail_job(&payment.key, true, why, now);
        let order_id = self.order_id_of(payment.order.as_ref());
        let order = order_id.and_then(|id| {
            let order = self.touch_order(&id).filter(|o| o.payment.as_ref() == Some(&payment.key))?;
            order.status = OrderStatus::CaptureFailed;
            self.give_units_back(&id, None, Some("capture_failed"), now)
        });
        let uncaptured = Payment { captured: false, ..payment.clone() };
        let told = self.reverse(&uncaptured, JobReason::CaptureFailed, now);
        if payment.canceled {
            self.finish_reversal(&payment.key, PaymentStatus::Voided, None, now);
        }
        order.map_or(told, Settlement::CaptureFailed)
    }

    fn decide(&mut self, payment: &Payment, now: Time) -> Settlement {
        if let Some(order) = self.order_id_of(payment.order.as_ref()).and_then(|id| self.confirmed_order(&id)) {
            return self.pay_order(payment, &order, now);
        }
        let Some(hold) = self.hold_of(payment.order.as_ref(), now) else {
            return self.wait(payment, now);
        };
        if !hold.money.is_paid_by(&payment.money) {
            return self.reverse(payment, JobReason::AmountMismatch, now);
        }
        match self.confirm_hold(hold.id, now) {
            Ok(order) => Settlement::Confirmed(self.attach(payment, &order, now)),
            Err(Refusal::AlreadyConfirmed) => self.reverse(payment, JobReason::DuplicatePayment, now),
            Err(_) => self.reverse(payment, JobReason::StockGone, now),
        }
    }

    fn pay_order(&mut self, payment: &Payment, order: &Order, now: Time) -> Settlement {
        if !order.money.is_paid_by(&payment.money) {
            return self.reverse(payment, JobReason::AmountMismatch, now);
        }
        let is_unpaid =
            order.payment.is_none() && matches!(order.status, OrderStatus::Confirmed | OrderStatus::Returned);
        if is_unpaid {
            Settlement::Attached(self.attach(payment, order, now))
        } else {
            self.reverse(payment, JobReason::DuplicatePayment, now)
        }
    }

    fn attach(&mut self, payment: &Payment, order: &Order, now: Time) -> Order {
        self.set_status(&payment.key, PaymentStatus::Settled);
        if !payment.is_captured() {
            self.make_job(payment, JobKind::Capture, JobReason::OrderConfirmed, now);
        }
        match self.touch_order(&order.order_id) {
            Some(order) => {
                order.payment = Some(payment.key.clone());
                order.clone()
            }
            None => order.clone(),
        }
    }

    fn reverse(&mut self, payment: &Payment, reason: JobReason, now: Time) -> Settlement {
        self.set_status(&payment.key, PaymentStatus::Reversing);
        let kind = if payment.is_captured() { JobKind::Refund } else { JobKind::Void };
        self.make_job(payment, kind, reason, now);
        Settlement::Reversal { kind, reason }
    }

    fn wait(&mut self, payment: &Payment, now: Time) -> Settlement {
        if payment.status == PaymentStatus::Open {
            self.set_status(&payment.key, PaymentStatus::Unmatched);
            // The grace runs from here, not from an attempt that failed long ago.
            if let Some(payment) = self.touch_known_payment(&payment.key) {
                payment.received_at = now;
            }
            self.note_payment(&payment.key, EntryKind::PaymentUnmatched, now);
        }
        if let Some(OrderRef::Order(id)) = &payment.order {
            let empty = || Tracked { value: OrderFile::default(), mark: Mark::Clean };
            let waiting = &mut self.orders.entry(id.clone()).or_insert_with(empty).value.waiting;
            if !waiting.contains(&payment.key) {
                waiting.push(payment.key.clone());
            }
        }
        Settlement::Unmatched
    }

    /// Payments that waited for this hold's order are decided now; the hold as it is afterwards.
    pub(super) fn settle_waiting(&mut self, hold: &Hold, now: Time) -> Option<Hold> {
        let waiting = std::mem::take(&mut self.orders.get_mut(&hold.order_id)?.value.waiting);
        let known = waiting.iter().filter_map(|key| self.payment(key).cloned());
        let mut waiting: Vec<Payment> = known.collect();
        waiting.sort_by(|a, b| (a.received_at, &a.key).cmp(&(b.received_at, &b.key)));
        for payment in waiting {
            if matches!(payment.status, PaymentStatus::Unmatched | PaymentStatus::NeedsAttention) {
                self.follow(&payment.key, now);
            }
        }
        self.find_hold(hold.id).cloned()
    }

    /// Payments that wait although their order has a hold by now are decided: on a shared database, the two may have
    /// come in at the same moment on two nodes. Those that waited too long need a person, or go back where the shop
    /// wants that.
    pub(super) fn look_at_waiting(&mut self, now: Time) {
        for key in std::mem::take(&mut self.stale) {
            let Some(payment) = self.payment(&key).cloned() else { continue };
            if payment.status != PaymentStatus::Unmatched {
                continue;
            }
            let order = self.order_id_of(payment.order.as_ref());
            let is_confirmed = order.is_some_and(|id| self.confirmed_order(&id).is_some());
            if is_confirmed || self.hold_of(payment.order.as_ref(), now).is_some() {
                self.follow(&key, now);
                continue;
            }
            if payment.received_at.plus_seconds(self.policy.unmatched_grace) > now {
                continue;
            }
            if self.policy.reverse_unmatched {
                self.reverse(&payment, JobReason::Unmatched, now);
            } else {
                self.set_status(&key, PaymentStatus::NeedsAttention);
                self.note_payment(&key, EntryKind::PaymentNeedsAttention, now);
            }
        }
    }

    pub(super) fn order_id_of(&self, named: Option<&OrderRef>) -> Option<OrderId> {
        match named? {
            OrderRef::Order(id) => Some(id.clone()),
            OrderRef::Hold(id) => self.find_hold(*id).map(|h| h.order_id.clone()),
        }
    }

    fn confirmed_order(&self, id: &OrderId) -> Option<Order> {
        self.orders.get(id)?.value.order.clone()
    }

    fn live_hold_of(&self, named: Option<&OrderRef>, now: Time) -> Option<&Hold> {
        let slot = self.book.by_order(&self.order_id_of(named)?)?;
        self.book.get(slot).filter(|h| h.is_live(now))
    }

    /// The hold that a payment is for: the order's live one, else the named one, else the order's latest.
    fn hold_of(&self, named: Option<&OrderRef>, now: Time) -> Option<Hold> {
        if let Some(OrderRef::Hold(id)) = named {
            return self.find_hold(*id).cloned();
        }
        if let Some(live) = self.live_hold_of(named, now) {
            return Some(live.clone());
        }
        let order = self.order_id_of(named)?;
        let lapsed = self.book.by_order(&order).and_then(|slot| self.book.get(slot)).map(|h| h.id);
        let settled_now = self.settled.values().filter(|t| t.value.order_id == order).map(|t| t.value.id).max();
        let stored = self.latest.get(&order).copied();
        let latest: Option<HoldId> = lapsed.into_iter().chain(settled_now).chain(stored).max();
        self.find_hold(latest?).cloned()
    }
}
