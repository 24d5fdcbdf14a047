//! What a payment settles: every row of the table in docs/rules.md.

use crate::common::lab::Lab;
use crate::common::make::{authorized, canceled, captured, cart, failed, order_id, payment};
use holdfast_engine::domain::{
    EntryKind, HoldStatus, JobKind, JobReason, JobState, OrderStatus, PaymentStatus, Policy, Settlement,
};

fn refund(reason: JobReason) -> Settlement {
    Settlement::Reversal { kind: JobKind::Refund, reason }
}

fn void(reason: JobReason) -> Settlement {
    Settlement::Reversal { kind: JobKind::Void, reason }
}

/// An order that payment `pi_1` confirmed.
async fn paid(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)]).costs(100, "EUR")).await;
    let settled = lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    assert!(matches!(settled, Settlement::Confirmed(_)), "{settled:?}");
}

pub async fn a_captured_payment_confirms_a_live_hold(lab: &mut Lab) {
    paid(lab).await;
    let order = lab.order("O1").await.unwrap();
    assert_eq!((order.payment, order.late, order.status), (Some(payment("pi_1")), false, OrderStatus::Confirmed));
    assert_eq!(lab.counts("A").await, (3, 0, 2));
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Settled);
    assert_eq!(lab.everything().await.refunds, []);
    assert_eq!(lab.count(EntryKind::CaptureDue).await, 0);
}

pub async fn a_payment_may_name_the_hold(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    let settled = lab.pay(captured("pi_1").hold(hold.id)).await;
    let Settlement::Confirmed(order) = settled else { panic!("{settled:?}") };
    assert_eq!((order.order_id, order.hold_id), (order_id("O1"), hold.id));
}

pub async fn the_same_event_settles_once(lab: &mut Lab) {
    paid(lab).await;
    for _ in 0..3 {
        assert_eq!(lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await, Settlement::Duplicate);
    }
    assert_eq!(lab.count(EntryKind::PaymentCaptured).await, 1);
    assert_eq!(lab.counts("A").await, (3, 0, 2));
}

pub async fn the_same_fact_under_another_event_settles_once(lab: &mut Lab) {
    paid(lab).await;
    let again = captured("pi_1").order("O1").brings(100, "EUR").event("another");
    assert_eq!(lab.pay(again).await, Settlement::Duplicate);
    assert_eq!(lab.count(EntryKind::PaymentCaptured).await, 1);
    assert_eq!(lab.everything().await.refunds, []);
}

pub async fn the_same_event_twice_in_a_batch_settles_once(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)])).await;
    let fact = || captured("pi_1").order("O1");
    let answers = lab.ask_all(vec![fact().into(), fact().into(), fact().event("other").into()]).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(lab.count(EntryKind::PaymentCaptured).await, 1);
    assert_eq!(lab.counts("A").await, (3, 0, 2));
}

pub async fn an_event_is_seen_once_whatever_it_says_the_second_time(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)])).await;
    assert_eq!(lab.pay(failed("pi_1").order("O1").event("evt")).await, Settlement::Recorded);
    assert_eq!(lab.pay(captured("pi_1").order("O1").event("evt")).await, Settlement::Duplicate);
    assert_eq!(lab.pay(captured("pi_2").order("O1").event("evt")).await, Settlement::Duplicate);
    assert_eq!(lab.order("O1").await, None);
    let settled = lab.pay(captured("pi_1").order("O1").event("evt-2")).await;
    assert!(matches!(settled, Settlement::Confirmed(_)), "{settled:?}");
}

pub async fn a_payment_without_an_order_is_not_ours(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    assert_eq!(lab.pay(captured("pi_1")).await, Settlement::Ignored);
    assert_eq!(lab.everything().await.payments, []);
    lab.held(cart("O1", &[("A", 1)])).await;
    let told = lab.pay(captured("pi_1").order("O1")).await;
    assert!(matches!(told, Settlement::Confirmed(_)), "what was ignored was not remembered: {told:?}");
}

pub async fn a_payment_of_another_amount_or_currency_goes_back(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).costs(100, "EUR")).await;
    let wrong = [
        captured("pi_1").order("O1").brings(99, "EUR"),
        captured("pi_2").order("O1").brings(101, "EUR"),
        captured("pi_3").order("O1").brings(100, "USD"),
        captured("pi_4").order("O1"),
    ];
    for fact in wrong {
        assert_eq!(lab.pay(fact.clone()).await, refund(JobReason::AmountMismatch), "{fact:?}");
    }
    assert_eq!(lab.hold(hold.id).await, hold, "the hold stays as it is");
    assert_eq!(lab.everything().await.refunds.len(), 4);
    let right = lab.pay(captured("pi_5").order("O1").brings(100, "eur")).await;
    assert!(matches!(right, Settlement::Confirmed(_)));
}

pub async fn only_what_was_asked_is_compared(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)])).await;
    let settled = lab.pay(captured("pi_1").order("O1").brings(7, "JPY")).await;
    assert!(matches!(settled, Settlement::Confirmed(_)), "{settled:?}");
}

pub async fn an_order_confirmed_without_a_payment_gets_its_payment(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).costs(100, "EUR")).await;
    lab.confirmed(hold.id).await;
    assert_eq!(lab.pay(captured("pi_0").order("O1").brings(1, "EUR")).await, refund(JobReason::AmountMismatch));
    let settled = lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    let Settlement::Attached(order) = settled else { panic!("{settled:?}") };
    assert_eq!(order.payment, Some(payment("pi_1")));
    assert_eq!(lab.order("O1").await, Some(order));
    assert_eq!(lab.counts("A").await, (3, 0, 2));
    assert_eq!(lab.pay(captured("pi_2").order("O1").brings(100, "EUR")).await, refund(JobReason::DuplicatePayment));
}

pub async fn a_second_payment_goes_back(lab: &mut Lab) {
    paid(lab).await;
    assert_eq!(lab.pay(captured("pi_2").order("O1").brings(100, "EUR")).await, refund(JobReason::DuplicatePayment));
    assert_eq!(lab.order("O1").await.unwrap().payment, Some(payment("pi_1")));
    assert_eq!(lab.counts("A").await, (3, 0, 2));
    let job = lab.everything().await.refunds.remove(0);
    assert_eq!((job.payment, job.state), (payment("pi_2"), JobState::Due));
    assert_eq!(job.money, crate::common::make::money(100, "EUR"));
    lab.pay(captured("pi_2").order("O1").brings(100, "EUR").event("resent")).await;
    assert_eq!(lab.everything().await.refunds.len(), 1, "exactly one refund, also after resends");
}

pub async fn a_payment_for_a_lapsed_hold_confirms_late(lab: &mut Lab) {
    lab.stocked("A", 2).await;
    lab.held(cart("O1", &[("A", 2)]).ttl(60)).await;
    lab.wait(60);
    let settled = lab.pay(captured("pi_1").order("O1")).await;
    let Settlement::Confirmed(order) = settled else { panic!("{settled:?}") };
    assert!(order.late);
    assert_eq!(lab.counts("A").await, (0, 0, 2));
}

pub async fn a_payment_for_a_swept_or_released_hold_confirms_late(lab: &mut Lab) {
    lab.stocked("A", 4).await;
    lab.held(cart("O1", &[("A", 2)]).ttl(60)).await;
    let released = lab.held(cart("O2", &[("A", 2)])).await;
    lab.released(released.id).await;
    lab.wait(60);
    lab.sweep().await;
    for (id, order) in [("pi_1", "O1"), ("pi_2", "O2")] {
        let settled = lab.pay(captured(id).order(order)).await;
        assert!(matches!(&settled, Settlement::Confirmed(order) if order.late), "{settled:?}");
    }
    assert_eq!(lab.counts("A").await, (0, 0, 4));
}

pub async fn a_payment_whose_units_are_gone_goes_back(lab: &mut Lab) {
    lab.stocked("A", 2).await;
    let lapsed = lab.held(cart("O1", &[("A", 2)]).ttl(60)).await;
    lab.wait(60);
    let owner = lab.held(cart("O2", &[("A", 1)])).await;
    assert_eq!(lab.pay(captured("pi_1").order("O1")).await, refund(JobReason::StockGone));
    assert_eq!(lab.counts("A").await, (1, 1, 0));
    assert_eq!(lab.hold(lapsed.id).await.status, HoldStatus::Expired);
    lab.released(owner.id).await;
    assert_eq!(lab.pay(captured("pi_1").order("O1").event("resent")).await, Settlement::Duplicate);
    assert_eq!(lab.order("O1").await, None, "a payment that goes back never confirms");
    assert_eq!(lab.everything().await.refunds.len(), 1);
}

pub async fn a_payment_finds_the_orders_live_hold_before_its_lapsed_ones(lab: &mut Lab) {
    lab.stocked("A", 9).await;
    lab.held(cart("O1", &[("A", 5)]).ttl(60)).await;
    lab.wait(60);
    let newer = lab.held(cart("O1", &[("A", 2)]).ttl(60)).await;
    let settled = lab.pay(captured("pi_1").order("O1")).await;
    assert!(matches!(&settled, Settlement::Confirmed(o) if o.hold_id == newer.id && !o.late), "{settled:?}");
}

pub async fn a_payment_finds_the_orders_latest_lapsed_hold(lab: &mut Lab) {
    lab.stocked("A", 9).await;
    lab.held(cart("O1", &[("A", 5)]).ttl(60)).await;
    lab.wait(60);
    let newer = lab.held(cart("O1", &[("A", 2)]).ttl(60)).await;
    lab.wait(60);
    lab.sweep().await;
    let settled = lab.pay(captured("pi_1").order("O1")).await;
    assert!(matches!(&settled, Settlement::Confirmed(o) if o.hold_id == newer.id && o.late), "{settled:?}");
}

pub async fn a_failed_or_canceled_attempt_releases_nothing(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    assert_eq!(lab.pay(failed("pi_1").order("O1")).await, Settlement::Recorded);
    assert_eq!(lab.pay(canceled("pi_2").order("O1")).await, Settlement::Recorded);
    assert_eq!(lab.hold(hold.id).await, hold);
    assert_eq!(lab.pay(failed("pi_1").order("O1").event("again")).await, Settlement::Duplicate);
    let settled = lab.pay(captured("pi_1").order("O1")).await;
    assert!(matches!(settled, Settlement::Confirmed(_)), "an attempt's end never undoes a later success");
    assert_eq!(lab.pay(failed("pi_3").order("O1")).await, Settlement::Recorded);
    assert_eq!(lab.pay(canceled("pi_3").order("O1")).await, Settlement::Recorded);
    assert_eq!(lab.counts("A").await, (3, 0, 2));
}

pub async fn a_canceled_payment_releases_where_the_shop_wants_that(lab: &mut Lab) {
    let mut lab = lab.under(Policy { release_on_canceled: true, ..Policy::default() }).await;
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    lab.pay(failed("pi_1").order("O1")).await;
    assert_eq!(lab.hold(hold.id).await.status, HoldStatus::Held);
    lab.pay(canceled("pi_1").order("O1")).await;
    assert_eq!(lab.hold(hold.id).await.status, HoldStatus::Released);
    assert_eq!(lab.counts("A").await, (5, 0, 0));
    lab.stocked("A", 2).await;
    let other = lab.held(cart("O2", &[("A", 2)])).await;
    lab.pay(captured("pi_2").order("O2")).await;
    lab.pay(canceled("pi_3").order("O2")).await;
    assert_eq!(lab.hold(other.id).await.status, HoldStatus::Confirmed);
}

pub async fn an_authorisation_confirms_and_makes_a_capture_due(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)]).costs(100, "EUR")).await;
    let settled = lab.pay(authorized("pi_1").order("O1").brings(100, "EUR")).await;
    assert!(matches!(settled, Settlement::Confirmed(_)), "{settled:?}");
    assert_eq!(lab.count(EntryKind::CaptureDue).await, 1);
    assert_eq!(lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await, Settlement::Recorded);
    assert_eq!(lab.count(EntryKind::RefundSucceeded).await, 1, "the capture was carried out");
    assert_eq!(lab.counts("A").await, (3, 0, 2));
    assert_eq!(lab.everything().await.refunds, []);
}

pub async fn an_authorisation_that_pays_for_nothing_is_voided(lab: &mut Lab) {
    paid(lab).await;
    assert_eq!(lab.pay(authorized("pi_2").order("O1").brings(100, "EUR")).await, void(JobReason::DuplicatePayment));
    lab.pay(canceled("pi_2").order("O1")).await;
    assert_eq!(lab.payment_status("pi_2").await, PaymentStatus::Voided);
    assert_eq!(lab.everything().await.refunds[0].state, JobState::Succeeded);
    // No provider should tell that; but money that came all the same is nobody's to keep.
    assert_eq!(lab.pay(captured("pi_2").order("O1").brings(100, "EUR")).await, refund(JobReason::DuplicatePayment));
}

pub async fn a_void_becomes_a_refund_when_the_money_was_captured(lab: &mut Lab) {
    paid(lab).await;
    lab.pay(authorized("pi_2").order("O1").brings(100, "EUR")).await;
    let before = lab.everything().await.refunds.remove(0);
    assert_eq!(before.kind, JobKind::Void);
    assert_eq!(lab.pay(captured("pi_2").order("O1").brings(100, "EUR")).await, refund(JobReason::DuplicatePayment));
    let after = lab.everything().await.refunds;
    assert_eq!((after.len(), after[0].kind, after[0].state), (1, JobKind::Refund, JobState::Due));
    assert_ne!(after[0].idempotency_key, before.idempotency_key, "another request to the provider");
}
