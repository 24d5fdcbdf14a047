//! Limits per customer: what is held and bought counts, returns give credit back, a decrease is never refused.

use crate::common::lab::Lab;
use crate::common::make::{captured, cart, set, sku};
use holdfast_engine::domain::{Command, JobKind, JobReason, Outcome, Refusal, SetStock, Settlement};

fn over(has: u64, requested: u64) -> Refusal {
    Refusal::CustomerLimit { sku: sku("A"), limit: 2, has, requested }
}

pub async fn what_is_held_and_bought_counts(lab: &mut Lab) {
    lab.limited("A", 10, 2).await;
    let first = lab.held(cart("O1", &[("A", 1)]).by("ann")).await;
    assert_eq!(lab.ask(cart("O2", &[("A", 2)]).by("ann")).await, Err(over(1, 2)));
    lab.confirmed(first.id).await;
    assert_eq!(lab.ask(cart("O2", &[("A", 2)]).by("ann")).await, Err(over(1, 2)));
    lab.held(cart("O2", &[("A", 1)]).by("ann")).await;
    assert_eq!(lab.ask(cart("O3", &[("A", 1)]).by("ann")).await, Err(over(2, 1)));
    lab.held(cart("O3", &[("A", 2)]).by("bob")).await;
    assert_eq!(lab.counts("A").await, (6, 3, 1));
}

pub async fn released_and_lapsed_holds_give_credit_back(lab: &mut Lab) {
    lab.limited("A", 10, 2).await;
    let first = lab.held(cart("O1", &[("A", 2)]).by("ann")).await;
    lab.released(first.id).await;
    lab.held(cart("O2", &[("A", 2)]).by("ann").ttl(60)).await;
    assert_eq!(lab.ask(cart("O3", &[("A", 1)]).by("ann")).await, Err(over(2, 1)));
    lab.wait(60);
    lab.held(cart("O3", &[("A", 2)]).by("ann")).await;
}

pub async fn a_return_gives_credit_back(lab: &mut Lab) {
    lab.limited("A", 10, 2).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).by("ann")).await;
    lab.confirmed(hold.id).await;
    assert_eq!(lab.ask(cart("O2", &[("A", 1)]).by("ann")).await, Err(over(2, 1)));
    lab.give_back("O1", &[("A", 1)], None).await.unwrap();
    lab.held(cart("O2", &[("A", 1)]).by("ann")).await;
    assert_eq!(lab.ask(cart("O3", &[("A", 1)]).by("ann")).await, Err(over(2, 1)));
}

pub async fn a_return_gives_credit_back_within_its_batch(lab: &mut Lab) {
    lab.limited("A", 10, 2).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).by("ann")).await;
    lab.confirmed(hold.id).await;
    let back = Command::Return {
        order: crate::common::make::order_id("O1"),
        lines: crate::common::make::lines(&[("A", 2)]),
        key: None,
    };
    let answers = lab.ask_all(vec![back, cart("O2", &[("A", 2)]).by("ann").into()]).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(lab.ask(cart("O3", &[("A", 1)]).by("ann")).await, Err(over(2, 1)));
}

pub async fn a_purchase_counts_within_its_batch(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).by("ann")).await;
    let limit = Command::SetStock(SetStock { limit_per_customer: Some(Some(2)), ..set("A", 10) });
    let confirm = Command::Confirm { hold: hold.id, payment_ref: None };
    let answers = lab.ask_all(vec![confirm, limit, cart("O2", &[("A", 1)]).by("ann").into()]).await;
    assert_eq!(answers[2], Err(over(2, 1)));
}

pub async fn a_customer_is_required_where_a_limit_is(lab: &mut Lab) {
    lab.limited("A", 10, 2).await;
    lab.limited("B", 10, 2).await;
    lab.stocked("C", 10).await;
    let asked = cart("O1", &[("C", 1), ("B", 1), ("A", 1)]);
    assert_eq!(lab.ask(asked).await, Err(Refusal::CustomerRequired(vec![sku("A"), sku("B")])));
    lab.held(cart("O1", &[("C", 9)])).await;
}

pub async fn a_limit_may_come_later_and_go_again(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    let hold = lab.held(cart("O1", &[("A", 3)]).by("ann")).await;
    lab.confirmed(hold.id).await;
    lab.limited("A", 10, 2).await;
    assert_eq!(lab.ask(cart("O2", &[("A", 1)]).by("ann")).await, Err(over(3, 1)));
    let asked = SetStock { limit_per_customer: Some(None), ..set("A", 10) };
    lab.ask(Command::SetStock(asked)).await.unwrap();
    lab.held(cart("O2", &[("A", 5)]).by("ann")).await;
}

pub async fn setting_a_total_leaves_the_limit(lab: &mut Lab) {
    lab.limited("A", 10, 2).await;
    lab.stocked("A", 20).await;
    assert_eq!(lab.stock("A").await.limit_per_customer, Some(2));
    assert_eq!(lab.ask(cart("O1", &[("A", 3)]).by("ann")).await, Err(over(0, 3)));
}

pub async fn a_change_is_limited_but_a_decrease_never_refused(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    lab.stocked("B", 10).await;
    let hold = lab.held(cart("O1", &[("A", 5)]).by("ann")).await;
    lab.limited("A", 10, 2).await;
    lab.change(hold.id, &[("A", 4), ("B", 1)]).await.unwrap();
    assert_eq!(lab.change(hold.id, &[("A", 5)]).await, Err(over(0, 5)));
    lab.change(hold.id, &[("A", 1)]).await.unwrap();
    assert_eq!(lab.change(hold.id, &[("A", 3)]).await, Err(over(0, 3)), "its own units are no second claim");
    lab.change(hold.id, &[("A", 2)]).await.unwrap();
    lab.confirmed(hold.id).await;
    let nobody = lab.held(cart("O2", &[("B", 1)])).await;
    let grown = lab.change(nobody.id, &[("A", 1), ("B", 1)]).await;
    assert_eq!(grown, Err(Refusal::CustomerRequired(vec![sku("A")])));
}

pub async fn a_late_confirmation_is_limited_too(lab: &mut Lab) {
    lab.limited("A", 10, 2).await;
    let lapsed = lab.held(cart("O1", &[("A", 2)]).by("ann").ttl(60)).await;
    lab.wait(60);
    let second = lab.held(cart("O2", &[("A", 1)]).by("ann")).await;
    assert!(matches!(lab.confirm(lapsed.id).await, Err(Refusal::StockGone(_))));
    let settled = lab.pay(captured("pi_1").order("O1")).await;
    assert_eq!(settled, Settlement::Reversal { kind: JobKind::Refund, reason: JobReason::StockGone });
    lab.released(second.id).await;
    assert!(lab.confirmed(lapsed.id).await.late);
}

pub async fn a_rival_of_another_customer_does_not_lift_the_limit(lab: &mut Lab) {
    lab.limited("A", 10, 2).await;
    let older = lab.held(cart("O1", &[("A", 2)]).by("ann").ttl(60)).await;
    lab.wait(60);
    let bought = lab.held(cart("O2", &[("A", 2)]).by("ann")).await;
    lab.confirmed(bought.id).await;
    let newer = lab.held(cart("O1", &[("A", 2)]).by("bob")).await;
    let late = lab.confirm(older.id).await;
    assert!(matches!(late, Err(Refusal::StockGone(_))), "ann has her two: {late:?}");
    assert!(!lab.confirmed(newer.id).await.late);
}

pub async fn a_payment_after_a_release_in_its_batch_is_limited_too(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    let first = lab.held(cart("O1", &[("A", 1)]).by("ann")).await;
    let second = lab.held(cart("O2", &[("A", 2)]).by("ann")).await;
    lab.confirmed(second.id).await;
    lab.limited("A", 10, 2).await;
    let batch = vec![Command::Release { hold: first.id }, captured("pi_1").order("O1").into()];
    let answers = lab.ask_all(batch).await;
    let gone = Settlement::Reversal { kind: JobKind::Refund, reason: JobReason::StockGone };
    assert_eq!(answers[1], Ok(Outcome::Settled(gone)));
}
