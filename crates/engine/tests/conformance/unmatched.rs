//! Money that comes before its order is known: it waits, is settled when the hold appears, and is never forgotten.

use crate::common::lab::Lab;
use crate::common::make::{authorized, captured, cart, failed, payment};
use holdfast_engine::domain::{
    Command, EntryKind, HoldStatus, JobKind, JobReason, Outcome, PaymentStatus, Policy, Settlement,
};

pub async fn an_unmatched_payment_is_settled_when_its_hold_appears(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    assert_eq!(lab.pay(captured("pi_1").order("O1")).await, Settlement::Unmatched);
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Unmatched);
    assert_eq!(lab.pay(captured("pi_1").order("O1").event("resent")).await, Settlement::Duplicate);
    lab.wait(899);
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    assert_eq!(hold.status, HoldStatus::Confirmed, "in the same step");
    assert_eq!(lab.order("O1").await.unwrap().payment, Some(payment("pi_1")));
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Settled);
    assert_eq!(lab.counts("A").await, (3, 0, 2));
}

pub async fn an_unmatched_payment_of_the_wrong_amount_goes_back(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.pay(captured("pi_1").order("O1").brings(99, "EUR")).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).costs(100, "EUR")).await;
    assert_eq!(hold.status, HoldStatus::Held);
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Reversing);
    assert_eq!(lab.everything().await.refunds[0].reason, JobReason::AmountMismatch);
}

pub async fn two_unmatched_payments_pay_once(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.pay(captured("pi_1").order("O1")).await;
    lab.wait(1);
    lab.pay(captured("pi_2").order("O1")).await;
    lab.held(cart("O1", &[("A", 2)])).await;
    assert_eq!(lab.order("O1").await.unwrap().payment, Some(payment("pi_1")), "the first one");
    assert_eq!(lab.payment_status("pi_2").await, PaymentStatus::Reversing);
    assert_eq!(lab.everything().await.refunds[0].reason, JobReason::DuplicatePayment);
}

pub async fn an_unmatched_payment_needs_a_person_after_the_grace(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.pay(captured("pi_1").order("O1")).await;
    lab.wait(899);
    lab.sweep().await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Unmatched);
    lab.wait(1);
    lab.sweep().await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::NeedsAttention);
    lab.sweep().await;
    assert_eq!(lab.count(EntryKind::PaymentNeedsAttention).await, 1);
    assert_eq!(lab.everything().await.refunds, [], "never sent back unasked");
    let hold = lab.held(cart("O1", &[("A", 1)])).await;
    assert_eq!(hold.status, HoldStatus::Confirmed, "still settled when its hold appears");
}

pub async fn the_grace_runs_from_the_money_not_from_a_failed_attempt(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.pay(failed("pi_1").order("O1")).await;
    lab.wait(900);
    let answers = lab.ask_all(vec![captured("pi_1").order("O1").into(), Command::Sweep { limit: 9 }]).await;
    assert_eq!(answers[0], Ok(Outcome::Settled(Settlement::Unmatched)));
    lab.sweep().await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Unmatched);
    lab.wait(900);
    lab.sweep().await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::NeedsAttention);
}

pub async fn an_unmatched_payment_goes_back_where_the_shop_wants_that(lab: &mut Lab) {
    let mut lab = lab.under(Policy { reverse_unmatched: true, ..Policy::default() }).await;
    lab.stocked("A", 5).await;
    lab.pay(captured("pi_1").order("O1")).await;
    lab.pay(authorized("pi_2").order("O2")).await;
    lab.wait(900);
    lab.sweep().await;
    let jobs = lab.everything().await.refunds;
    assert_eq!(
        jobs.iter().map(|j| (j.kind, j.reason)).collect::<Vec<_>>(),
        [(JobKind::Refund, JobReason::Unmatched), (JobKind::Void, JobReason::Unmatched)]
    );
    let hold = lab.held(cart("O1", &[("A", 1)])).await;
    assert_eq!(hold.status, HoldStatus::Held, "what goes back pays for nothing");
}
