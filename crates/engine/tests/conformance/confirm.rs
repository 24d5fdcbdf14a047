//! Confirming in time and late, and what comes back afterwards.

use crate::common::lab::Lab;
use crate::common::make::{cart, sku};
use holdfast_engine::domain::{Command, EntryKind, HoldStatus, OrderStatus, Outcome, Refusal, Short};

pub async fn a_live_hold_becomes_an_order(lab: &mut Lab) {
    lab.stocked("A", 3).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).by("ann").costs(100, "EUR")).await;
    lab.wait(599);
    let order = lab.confirmed(hold.id).await;
    assert_eq!((order.hold_id, order.late, order.confirmed_at), (hold.id, false, lab.now));
    assert_eq!((order.status, order.payment.clone()), (OrderStatus::Confirmed, None));
    assert_eq!((order.customer_id.clone(), order.money), (hold.customer_id, hold.money));
    assert_eq!(lab.order("O1").await, Some(order.clone()));
    assert_eq!(lab.hold(hold.id).await.status, HoldStatus::Confirmed);
    assert_eq!(lab.counts("A").await, (1, 0, 2));
    assert_eq!(lab.confirmed(hold.id).await, order, "the same answer again");
    lab.wait(10_000);
    assert_eq!(lab.confirmed(hold.id).await, order, "also much later");
    assert_eq!(lab.sweep().await, 0, "a confirmed hold does not lapse");
    assert_eq!(lab.counts("A").await, (1, 0, 2));
}

pub async fn a_confirmation_may_name_the_providers_object(lab: &mut Lab) {
    lab.stocked("A", 3).await;
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    lab.ask(Command::Confirm { hold: hold.id, payment_ref: Some("pi_7".into()) }).await.unwrap();
    assert_eq!(lab.hold(hold.id).await.payment_ref.as_deref(), Some("pi_7"));
}

pub async fn late_confirm_takes_units_again(lab: &mut Lab) {
    lab.stocked("A", 2).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).ttl(60)).await;
    lab.wait(60);
    let order = lab.confirmed(hold.id).await;
    assert!(order.late);
    assert_eq!(lab.counts("A").await, (0, 0, 2));
    assert_eq!(lab.story("A").await, ["received", "held", "expired", "confirmed_late"]);
    let hold = lab.hold(hold.id).await;
    assert_eq!((hold.status, hold.late), (HoldStatus::Confirmed, true));
    assert_eq!(lab.confirmed(hold.id).await, order, "the same answer again");
}

pub async fn late_confirm_works_after_a_sweep_and_after_a_release(lab: &mut Lab) {
    lab.stocked("A", 3).await;
    let swept = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    let released = lab.held(cart("O2", &[("A", 1)]).ttl(600)).await;
    lab.released(released.id).await;
    lab.wait(60);
    assert_eq!(lab.sweep().await, 1);
    assert!(lab.confirmed(swept.id).await.late);
    assert!(lab.confirmed(released.id).await.late);
    assert_eq!(lab.counts("A").await, (1, 0, 2));
}

pub async fn late_confirm_is_all_or_nothing(lab: &mut Lab) {
    lab.stocked("A", 2).await;
    lab.stocked("B", 2).await;
    let hold = lab.held(cart("O1", &[("A", 2), ("B", 2)]).ttl(60)).await;
    lab.wait(60);
    let other = lab.held(cart("O2", &[("B", 1)])).await;
    let gone = Refusal::StockGone(vec![Short { sku: sku("B"), requested: 2, available: 1 }]);
    assert_eq!(lab.confirm(hold.id).await, Err(gone));
    assert_eq!(lab.counts("A").await, (2, 0, 0));
    assert_eq!(lab.counts("B").await, (1, 1, 0));
    assert_eq!(lab.order("O1").await, None);
    lab.released(other.id).await;
    assert!(lab.confirmed(hold.id).await.late, "not remembered: the units are back");
}

pub async fn late_confirm_may_take_units_of_other_lapsed_holds(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let first = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    let second = lab.held(cart("O2", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    assert!(lab.confirmed(first.id).await.late);
    assert_eq!(lab.hold(second.id).await.status, HoldStatus::Expired);
    assert_eq!(lab.counts("A").await, (0, 0, 1));
}

pub async fn a_newer_hold_of_the_order_ends_when_an_older_is_confirmed(lab: &mut Lab) {
    lab.stocked("A", 3).await;
    let older = lab.held(cart("O1", &[("A", 3)]).ttl(60)).await;
    lab.wait(60);
    let newer = lab.held(cart("O1", &[("A", 2)]).ttl(600)).await;
    let order = lab.confirmed(older.id).await;
    assert_eq!((order.hold_id, order.late), (older.id, true), "the newer hold's units count towards it");
    assert_eq!(lab.counts("A").await, (0, 0, 3));
    assert_eq!(lab.hold(newer.id).await.status, HoldStatus::Released);
    assert_eq!(lab.confirm(newer.id).await, Err(Refusal::AlreadyConfirmed));
    assert_eq!(lab.release(newer.id).await.map(|_| ()), Ok(()));
    assert_eq!(lab.counts("A").await, (0, 0, 3));
}

pub async fn a_newer_hold_stays_when_the_older_cannot_be_confirmed(lab: &mut Lab) {
    lab.stocked("A", 3).await;
    let older = lab.held(cart("O1", &[("A", 3)]).ttl(60)).await;
    lab.wait(60);
    let newer = lab.held(cart("O1", &[("A", 1)])).await;
    lab.held(cart("O2", &[("A", 1)])).await;
    let gone = Refusal::StockGone(vec![Short { sku: sku("A"), requested: 3, available: 2 }]);
    assert_eq!(lab.confirm(older.id).await, Err(gone));
    assert_eq!(lab.hold(newer.id).await.status, HoldStatus::Held);
    assert!(!lab.confirmed(newer.id).await.late);
    assert_eq!(lab.confirm(older.id).await, Err(Refusal::AlreadyConfirmed));
}

pub async fn a_newer_hold_that_lapsed_too_is_expired_not_released(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let older = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    let newer = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    lab.confirmed(older.id).await;
    assert_eq!(lab.hold(newer.id).await.status, HoldStatus::Expired);
    assert_eq!(lab.count(EntryKind::Released).await, 0);
    assert_eq!(lab.counts("A").await, (4, 0, 1));
}

pub async fn a_return_gives_back_no_more_than_was_bought(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.stocked("B", 5).await;
    let hold = lab.held(cart("O1", &[("A", 3), ("B", 1)])).await;
    lab.confirmed(hold.id).await;
    assert_eq!(lab.give_back("O1", &[("A", 4)], None).await, Err(Refusal::ReturnExceedsOrder(sku("A"))));
    assert_eq!(lab.give_back("O1", &[("A", 1), ("C", 1)], None).await, Err(Refusal::ReturnExceedsOrder(sku("C"))));
    assert_eq!(lab.counts("A").await, (2, 0, 3), "nothing came back");
    let Ok(Outcome::Order(order)) = lab.give_back("O1", &[("A", 2)], None).await else { panic!() };
    assert_eq!((order.lines[0].returned, order.status), (2, OrderStatus::Confirmed));
    assert_eq!(lab.counts("A").await, (4, 0, 1));
    assert_eq!(lab.give_back("O1", &[("A", 2)], None).await, Err(Refusal::ReturnExceedsOrder(sku("A"))));
    let Ok(Outcome::Order(order)) = lab.give_back("O1", &[("A", 1), ("B", 1)], None).await else { panic!() };
    assert_eq!(order.status, OrderStatus::Returned, "every unit is back");
    assert_eq!(lab.order("O1").await, Some(order));
    assert_eq!((lab.counts("A").await, lab.counts("B").await), ((5, 0, 0), (5, 0, 0)));
    assert_eq!(lab.ask(cart("O1", &[("A", 1)])).await, Err(Refusal::AlreadyConfirmed), "the order stays an order");
}

pub async fn a_return_with_a_key_happens_once(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 4)])).await;
    lab.confirmed(hold.id).await;
    let other = lab.held(cart("O2", &[("A", 1)])).await;
    lab.confirmed(other.id).await;
    assert_eq!(lab.give_back("O1", &[("A", 9)], Some("r1")).await, Err(Refusal::ReturnExceedsOrder(sku("A"))));
    let first = lab.give_back("O1", &[("A", 1)], Some("r1")).await;
    assert!(first.is_ok(), "a refusal leaves the key unused");
    assert_eq!(lab.give_back("O1", &[("A", 1)], Some("r1")).await, first);
    assert_eq!(lab.counts("A").await, (1, 0, 4));
    assert_eq!(lab.give_back("O1", &[("A", 2)], Some("r1")).await, Err(Refusal::KeyReused));
    assert_eq!(lab.give_back("O2", &[("A", 1)], Some("r1")).await, Err(Refusal::KeyReused));
    lab.give_back("O1", &[("A", 1)], Some("r2")).await.unwrap();
    assert_eq!(lab.counts("A").await, (2, 0, 3));
}

pub async fn a_batch_decides_in_order(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let answers = lab.ask_all(vec![
        cart("O1", &[("A", 1)]).into(),
        cart("O2", &[("A", 1)]).into(),
        cart("O1", &[("A", 1)]).into(),
        cart("O1", &[("A", 2)]).into(),
    ]);
    let answers = answers.await;
    assert!(matches!(answers[0], Ok(Outcome::Held { replay: false, .. })), "{answers:?}");
    assert!(matches!(answers[1], Err(Refusal::SoldOut { .. })));
    assert!(matches!(answers[2], Ok(Outcome::Held { replay: true, .. })));
    assert_eq!(answers[3], Err(Refusal::OrderConflict));
}
