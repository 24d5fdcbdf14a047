//! Refunds made at the provider, and facts that come out of order.

use crate::common::lab::Lab;
use crate::common::make::{authorized, canceled, captured, cart, payment, refunded};
use holdfast_engine::domain::{EntryKind, JobState, OrderStatus, PaymentStatus, Policy, Settlement};

async fn paid(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)]).by("ann").costs(100, "EUR")).await;
    let settled = lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    assert!(matches!(settled, Settlement::Confirmed(_)), "{settled:?}");
}

pub async fn a_full_refund_ends_the_order_and_restocks(lab: &mut Lab) {
    paid(lab).await;
    let settled = lab.pay(refunded("pi_1", 100)).await;
    let Settlement::OrderRefunded(order) = settled else { panic!("{settled:?}") };
    assert_eq!(order.status, OrderStatus::Refunded);
    assert_eq!(lab.order("O1").await, Some(order));
    assert_eq!(lab.counts("A").await, (5, 0, 0));
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Refunded);
    assert_eq!(lab.pay(refunded("pi_1", 100).event("again")).await, Settlement::Duplicate);
    assert_eq!(lab.pay(captured("pi_1").event("late")).await, Settlement::Duplicate, "terminal");
    assert_eq!(lab.counts("A").await, (5, 0, 0));
}

pub async fn a_partial_refund_is_recorded_only(lab: &mut Lab) {
    paid(lab).await;
    assert_eq!(lab.pay(refunded("pi_1", 40)).await, Settlement::Recorded);
    assert_eq!(lab.pay(refunded("pi_1", 99)).await, Settlement::Recorded);
    assert_eq!(lab.pay(refunded("pi_1", 40).event("late")).await, Settlement::Duplicate, "totals never go back");
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::Confirmed);
    assert_eq!(lab.counts("A").await, (3, 0, 2));
    assert!(matches!(lab.pay(refunded("pi_1", 100)).await, Settlement::OrderRefunded(_)));
}

pub async fn a_refund_after_a_return_gives_back_only_the_rest(lab: &mut Lab) {
    paid(lab).await;
    lab.give_back("O1", &[("A", 1)], None).await.unwrap();
    lab.pay(refunded("pi_1", 100)).await;
    assert_eq!(lab.counts("A").await, (5, 0, 0));
    assert!(lab.give_back("O1", &[("A", 1)], None).await.is_err(), "all of it is back");
}

pub async fn a_refund_without_restock_leaves_the_units_sold(lab: &mut Lab) {
    let mut lab = lab.under(Policy { restock_on_refund: false, ..Policy::default() }).await;
    paid(&mut lab).await;
    let settled = lab.pay(refunded("pi_1", 100)).await;
    assert!(matches!(settled, Settlement::OrderRefunded(_)), "{settled:?}");
    assert_eq!(lab.counts("A").await, (3, 0, 2));
    lab.give_back("O1", &[("A", 2)], None).await.unwrap();
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::Refunded);
    assert_eq!(lab.counts("A").await, (5, 0, 0));
}

pub async fn a_refunded_duplicate_does_not_touch_the_order(lab: &mut Lab) {
    paid(lab).await;
    lab.pay(captured("pi_2").order("O1").brings(100, "EUR")).await;
    assert_eq!(lab.pay(refunded("pi_2", 100)).await, Settlement::Recorded);
    assert_eq!(lab.payment_status("pi_2").await, PaymentStatus::Refunded);
    assert_eq!(lab.everything().await.refunds[0].state, JobState::Succeeded);
    let order = lab.order("O1").await.unwrap();
    assert_eq!((order.status, order.payment), (OrderStatus::Confirmed, Some(payment("pi_1"))));
    assert_eq!(lab.counts("A").await, (3, 0, 2));
}

pub async fn another_payment_does_not_revive_a_refunded_order(lab: &mut Lab) {
    paid(lab).await;
    lab.pay(refunded("pi_1", 100)).await;
    let second = lab.pay(captured("pi_2").order("O1").brings(100, "EUR")).await;
    assert!(matches!(second, Settlement::Reversal { .. }), "{second:?}");
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::Refunded);
}

pub async fn a_refund_told_before_its_capture_ends_the_order_as_after_it(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).costs(100, "EUR")).await;
    assert_eq!(lab.pay(refunded("pi_1", 100).order("O1").brings(100, "EUR")).await, Settlement::Recorded);
    assert_eq!(lab.hold(hold.id).await, hold, "no money came that could have gone back");
    let settled = lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    assert!(matches!(settled, Settlement::OrderRefunded(_)), "{settled:?}");
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Refunded);
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::Refunded);
    assert_eq!(lab.counts("A").await, (5, 0, 0));
    assert_eq!(lab.everything().await.refunds, []);
    assert_eq!(lab.pay(captured("pi_1").event("another")).await, Settlement::Duplicate, "an end is never left");
}

pub async fn a_refund_told_before_an_order_is_known_counts(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)]).costs(100, "EUR")).await;
    assert_eq!(lab.pay(refunded("pi_1", 100)).await, Settlement::Ignored);
    lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Refunded);
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::Refunded);
}

pub async fn a_refund_of_an_authorised_order_ends_its_capture_too(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)]).costs(100, "EUR")).await;
    lab.pay(authorized("pi_1").order("O1").brings(100, "EUR")).await;
    let settled = lab.pay(refunded("pi_1", 100)).await;
    assert!(matches!(settled, Settlement::OrderRefunded(_)), "{settled:?}");
    assert_eq!(lab.count(EntryKind::RefundSucceeded).await, 1, "nothing is left to capture");
    assert_eq!(lab.pay(captured("pi_1").brings(100, "EUR")).await, Settlement::Duplicate);
    assert_eq!(lab.counts("A").await, (5, 0, 0));
}

pub async fn a_refund_of_a_smaller_capture_is_full(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)])).await;
    lab.pay(authorized("pi_1").order("O1").brings(100, "EUR")).await;
    assert_eq!(lab.pay(refunded("pi_1", 80)).await, Settlement::Recorded, "told before the capture of 80 was");
    lab.pay(captured("pi_1").brings(80, "EUR")).await;
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::Refunded, "the order of the facts is nothing");
    assert_eq!(lab.counts("A").await, (5, 0, 0));
}

pub async fn a_refund_of_a_smaller_capture_ends_a_reversal(lab: &mut Lab) {
    paid(lab).await;
    lab.pay(authorized("pi_2").order("O1").brings(100, "EUR")).await;
    lab.pay(refunded("pi_2", 80)).await;
    lab.pay(captured("pi_2").brings(80, "EUR")).await;
    assert_eq!(lab.payment_status("pi_2").await, PaymentStatus::Refunded);
    assert_eq!(lab.everything().await.refunds[0].state, JobState::Succeeded);
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::Confirmed);
}

pub async fn an_unmatched_payment_that_went_back_pays_for_nothing(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    lab.pay(refunded("pi_1", 100)).await;
    lab.pay(authorized("pi_2").order("O1").brings(100, "EUR")).await;
    lab.pay(canceled("pi_2")).await;
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    assert_eq!(lab.hold(hold.id).await, hold, "still held");
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Refunded);
    assert_eq!(lab.payment_status("pi_2").await, PaymentStatus::Voided);
}

pub async fn a_fact_after_a_refund_gives_the_customer_credit(lab: &mut Lab) {
    lab.limited("A", 5, 2).await;
    lab.held(cart("O1", &[("A", 2)]).by("ann").costs(100, "EUR")).await;
    lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    assert!(lab.ask(cart("O2", &[("A", 1)]).by("ann")).await.is_err());
    lab.pay(refunded("pi_1", 100)).await;
    lab.held(cart("O2", &[("A", 2)]).by("ann")).await;
}
