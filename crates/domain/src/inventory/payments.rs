//! The rules for payments: what each fact settles.
//!
//! An event is remembered in the same step as its effect, never before it. Facts that happen once per payment are
//! deduplicated by the payment itself, so that two event ids for one fact have one effect.

use super::{About, Inventory, Mark, Tracked};
use crate::{
    EntryKind, Hold, HoldId, HoldStatus, Job, JobKind, JobReason, JobState, Order, OrderFile, OrderId, OrderRef,
    OrderStatus, Payment, PaymentFact, PaymentKey, PaymentKind, PaymentStatus, Refusal, Settlement, Time,
};

impl Inventory {
    pub(super) fn settle(&mut self, fact: &PaymentFact, now: Time) -> Settlement {
        let event = (fact.payment.provider.clone(), fact.event_id.clone());
        if self.events.contains(&event) {
            return Settlement::Duplicate;
        }
        let known = self.payments.get(&fact.payment);
        if fact.order.is_none() && known.is_none_or(|p| p.value.order.is_none()) {
            return Settlement::Ignored;
        }
        self.events.insert(event.clone());
        self.changes.events.push(event);
        if !self.note_fact(fact, now) {
            return Settlement::Duplicate;
        }
        match fact.kind {
            PaymentKind::Failed => Settlement::Recorded,
            PaymentKind::Canceled => self.canceled(&fact.payment, now),
            PaymentKind::Refunded(_) => self.refunded(&fact.payment, now),
            PaymentKind::Authorized | PaymentKind::Captured => self.money_came(&fact.payment, now),
        }
    }

    /// Writes the fact into its payment; false when it says nothing new or the payment has ended.
    fn note_fact(&mut self, fact: &PaymentFact, now: Time) -> bool {
        let new = || Payment {
            key: fact.payment.clone(),
            order: None,
            money: fact.money,
            email: None,
            authorized: false,
            captured: false,
            failed: false,
            canceled: false,
            refunded: 0,
            status: PaymentStatus::Open,
            received_at: now,
        };
        let is_new = !self.payments.contains_key(&fact.payment);
        let empty = || Tracked { value: new(), mark: Mark::New };
        let tracked = self.payments.entry(fact.payment.clone()).or_insert_with(empty);
        if is_new || tracked.touch() {
            self.changes.payments.push(fact.payment.clone());
        }
        let payment = &mut tracked.value;
        payment.order = payment.order.take().or_else(|| fact.order.clone());
        payment.email = payment.email.take().or_else(|| fact.email.clone());
        payment.money.amount = payment.money.amount.or(fact.money.amount);
        payment.money.currency = payment.money.currency.or(fact.money.currency);
        let flag = match fact.kind {
            PaymentKind::Authorized => &mut payment.authorized,
            PaymentKind::Captured => &mut payment.captured,
            PaymentKind::Failed => &mut payment.failed,
            PaymentKind::Canceled => &mut payment.canceled,
            PaymentKind::Refunded(total) => {
                let news = total > payment.refunded;
                payment.refunded = payment.refunded.max(total);
                if news {
                    self.note_payment(&fact.payment, EntryKind::PaymentRefunded, now);
                }
                return news;
            }
        };
        if std::mem::replace(flag, true) {
            return false;
        }
        // What a capture brought is what counts, whatever was authorised.
        if fact.kind == PaymentKind::Captured {
            payment.money.amount = fact.money.amount.or(payment.money.amount);
        }
        let has_ended = matches!(payment.status, PaymentStatus::Refunded | PaymentStatus::Voided);
        let kind = match fact.kind {
            PaymentKind::Authorized => EntryKind::PaymentAuthorized,
            PaymentKind::Captured => EntryKind::PaymentCaptured,
            PaymentKind::Failed => EntryKind::PaymentFailed,
            PaymentKind::Canceled | PaymentKind::Refunded(_) => EntryKind::PaymentCanceled,
        };
        self.note_payment(&fact.payment, kind, now);
        !has_ended
    }

    fn note_payment(&mut self, key: &PaymentKey, kind: EntryKind, now: Time) {
        let order = match self.payments.get(key).and_then(|p| p.value.order.clone()) {
            Some(OrderRef::Order(order)) => Some(order),
            Some(OrderRef::Hold(id)) => self.find_hold(id).map(|h| h.order_id.clone()),
            None => None,
        };
        let words = key.to_string();
        self.record(kind, now, About { order: order.as_ref(), reason: Some(&words), ..About::default() });
    }

    fn set_status(&mut self, key: &PaymentKey, status: PaymentStatus) {
        if let Some(tracked) = self.payments.get_mut(key) {
            if tracked.touch() {
                self.changes.payments.push(key.clone());
            }
            tracked.value.status = status;
        }
    }

    fn canceled(&mut self, key: &PaymentKey, now: Time) -> Settlement {
        let Some(payment) = self.payments.get(key).map(|p| p.value.clone()) else { return Settlement::Recorded };
        if !payment.captured {
            match payment.status {
                PaymentStatus::Unmatched | PaymentStatus::NeedsAttention => {
                    self.set_status(key, PaymentStatus::Voided);
                }
                PaymentStatus::Reversing => self.finish_reversal(key, PaymentStatus::Voided, now),
                PaymentStatus::Open if self.policy.release_on_canceled => {
                    let live = self.live_hold_of(payment.order.as_ref(), now).and_then(|h| self.book.by_id(h.id));
                    if let Some(slot) = live {
                        self.leave(slot, HoldStatus::Released, EntryKind::Released, now);
                    }
                }
                _ => {}
            }
        }
        Settlement::Recorded
    }

    fn refunded(&mut self, key: &PaymentKey, now: Time) -> Settlement {
        let Some(payment) = self.payments.get(key).map(|p| p.value.clone()) else { return Settlement::Recorded };
        if payment.money.amount.is_none_or(|amount| payment.refunded < amount) {
            return Settlement::Recorded;
        }
        match payment.status {
            PaymentStatus::Reversing => self.finish_reversal(key, PaymentStatus::Refunded, now),
            PaymentStatus::Settled => {
                self.set_status(key, PaymentStatus::Refunded);
                // Money that went back was captured, whether or not we were told.
                self.finish_job(key, true, now);
                return self.refund_order(key, &payment, now);
            }
            PaymentStatus::Open | PaymentStatus::Unmatched | PaymentStatus::NeedsAttention => {
                self.set_status(key, PaymentStatus::Refunded);
            }
            PaymentStatus::Refunded | PaymentStatus::Voided => {}
        }
        Settlement::Recorded
    }

    /// The payment that pays for an order was given back in full: the order ends. Other orders are not touched.
    fn refund_order(&mut self, key: &PaymentKey, payment: &Payment, now: Time) -> Settlement {
        let Some(order_id) = self.order_id_of(payment.order.as_ref()) else { return Settlement::Recorded };
        let Some(order) = self.touch_order(&order_id).filter(|o| o.payment.as_ref() == Some(key)) else {
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

    fn finish_reversal(&mut self, key: &PaymentKey, end: PaymentStatus, now: Time) {
        self.set_status(key, end);
        self.finish_job(key, false, now);
    }

    fn finish_job(&mut self, key: &PaymentKey, is_capture: bool, now: Time) {
        let job_key = (key.clone(), is_capture);
        let Some(job) = self.jobs.get_mut(&job_key).filter(|j| j.value.state != JobState::Succeeded) else { return };
        if job.touch() {
            self.changes.jobs.push(job_key);
        }
        job.value.state = JobState::Succeeded;
        self.note_payment(key, EntryKind::RefundSucceeded, now);
    }

    fn money_came(&mut self, key: &PaymentKey, now: Time) -> Settlement {
        let Some(payment) = self.payments.get(key).map(|p| p.value.clone()) else { return Settlement::Recorded };
        if payment.captured && payment.money.amount.is_some_and(|amount| payment.refunded >= amount) {
            return match self.refunded(key, now) {
                Settlement::Recorded => Settlement::Duplicate,
                ended => ended,
            };
        }
        match payment.status {
            PaymentStatus::Settled => {
                if payment.captured {
                    self.finish_job(key, true, now);
                }
                Settlement::Recorded
            }
            PaymentStatus::Reversing => self.upgrade_void(&payment, now),
            PaymentStatus::Refunded | PaymentStatus::Voided => Settlement::Duplicate,
            PaymentStatus::Open | PaymentStatus::Unmatched | PaymentStatus::NeedsAttention => {
                self.decide(&payment, now)
            }
        }
    }

    /// An authorisation that was to be let go turned out to be captured: the money has to be sent back instead.
    fn upgrade_void(&mut self, payment: &Payment, now: Time) -> Settlement {
        let is_void = |j: &&Tracked<Job>| j.value.kind == JobKind::Void && j.value.state != JobState::Succeeded;
        let Some(reason) = self.jobs.get(&(payment.key.clone(), false)).filter(is_void).map(|j| j.value.reason) else {
            return Settlement::Recorded;
        };
        if !payment.captured {
            return Settlement::Recorded;
        }
        self.reverse(payment, reason, now)
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
        if !payment.captured {
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
        let kind = if payment.captured { JobKind::Refund } else { JobKind::Void };
        self.make_job(payment, kind, reason, now);
        Settlement::Reversal { kind, reason }
    }

    fn make_job(&mut self, payment: &Payment, kind: JobKind, reason: JobReason, now: Time) {
        let job = Job {
            payment: payment.key.clone(),
            kind,
            reason,
            state: JobState::Due,
            idempotency_key: format!("holdfast-{}-{}", kind.as_str(), payment.key).into(),
            money: payment.money,
            created_at: now,
        };
        let key = (payment.key.clone(), kind == JobKind::Capture);
        if let Some(before) = self.jobs.get_mut(&key) {
            if before.touch() {
                self.changes.jobs.push(key);
            }
            before.value = job;
        } else {
            self.jobs.insert(key.clone(), Tracked { value: job, mark: Mark::New });
            self.changes.jobs.push(key);
        }
        let entry = match kind {
            JobKind::Refund => EntryKind::RefundDue,
            JobKind::Void => EntryKind::VoidDue,
            JobKind::Capture => EntryKind::CaptureDue,
        };
        self.note_payment(&payment.key, entry, now);
    }

    fn wait(&mut self, payment: &Payment, now: Time) -> Settlement {
        if payment.status == PaymentStatus::Open {
            self.set_status(&payment.key, PaymentStatus::Unmatched);
            // The grace runs from here, not from an attempt that failed long ago.
            if let Some(tracked) = self.payments.get_mut(&payment.key) {
                tracked.value.received_at = now;
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
        let known = waiting.iter().filter_map(|key| self.payments.get(key).map(|p| p.value.clone()));
        let mut waiting: Vec<Payment> = known.collect();
        waiting.sort_by(|a, b| (a.received_at, &a.key).cmp(&(b.received_at, &b.key)));
        for payment in waiting {
            if matches!(payment.status, PaymentStatus::Unmatched | PaymentStatus::NeedsAttention) {
                self.decide(&payment, now);
            }
        }
        self.find_hold(hold.id).cloned()
    }

    /// Payments that wait although their order has a hold by now are decided: on a shared database, the two may have
    /// come in at the same moment on two nodes. Those that waited too long need a person, or go back where the shop
    /// wants that.
    pub(super) fn look_at_waiting(&mut self, now: Time) {
        for key in std::mem::take(&mut self.stale) {
            let Some(payment) = self.payments.get(&key).map(|p| p.value.clone()) else { continue };
            if payment.status != PaymentStatus::Unmatched {
                continue;
            }
            let order = self.order_id_of(payment.order.as_ref());
            let is_confirmed = order.is_some_and(|id| self.confirmed_order(&id).is_some());
            if is_confirmed || self.hold_of(payment.order.as_ref(), now).is_some() {
                self.decide(&payment, now);
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

    fn order_id_of(&self, named: Option<&OrderRef>) -> Option<OrderId> {
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
