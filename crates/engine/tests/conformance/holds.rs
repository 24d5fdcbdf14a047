//! Holds: which refusal comes first, replays, all or nothing, change, extend, release.

use crate::common::lab::Lab;
use crate::common::make::{cart, lines, money, sku};
use holdfast_engine::domain::{Command, HoldId, HoldStatus, Outcome, Refusal, Short};

fn short(name: &str, requested: u64, available: u64) -> Short {
    Short { sku: sku(name), requested, available }
}

pub async fn a_hold_moves_all_its_lines(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.stocked("B", 5).await;
    let hold = lab.held(cart("O1", &[("B", 1), ("A", 2), ("B", 3)]).ttl(90)).await;
    assert_eq!(hold.lines, lines(&[("A", 2), ("B", 4)]), "summed and sorted");
    assert_eq!((hold.created_at, hold.expires_at), (lab.now, lab.now.plus_seconds(90)));
    assert_eq!((hold.status, hold.late), (HoldStatus::Held, false));
    assert_eq!(lab.hold(hold.id).await, hold);
    assert_eq!(lab.counts("A").await, (3, 2, 0));
    assert_eq!(lab.counts("B").await, (1, 4, 0));
}

pub async fn a_confirmed_order_comes_before_every_other_refusal(lab: &mut Lab) {
    lab.limited("A", 1, 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).by("ann")).await;
    lab.confirmed(hold.id).await;
    let again = cart("O1", &[("NO-SUCH", 1), ("A", 9)]);
    assert_eq!(lab.ask(again).await, Err(Refusal::AlreadyConfirmed));
    let same = cart("O1", &[("A", 1)]).by("ann");
    assert_eq!(lab.ask(same).await, Err(Refusal::AlreadyConfirmed));
}

pub async fn the_same_request_is_answered_with_the_same_hold(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let asked = cart("O1", &[("A", 1)]).by("ann").costs(100, "EUR").ttl(60);
    let hold = lab.held(asked.clone()).await;
    lab.wait(59);
    let again = lab.ask(asked.ttl(600)).await;
    assert_eq!(again, Ok(Outcome::Held { hold: hold.clone(), replay: true }), "the deadline is where it was");
    let lower = cart("O1", &[("A", 1)]).by("ann").costs(100, "eur");
    assert_eq!(lab.ask(lower).await, Ok(Outcome::Held { hold, replay: true }));
    assert_eq!(lab.counts("A").await, (0, 1, 0));
}

pub async fn another_cart_for_a_live_order_is_a_conflict(lab: &mut Lab) {
    lab.stocked("A", 9).await;
    lab.stocked("B", 9).await;
    let base = || cart("O1", &[("A", 1)]).by("ann").costs(100, "EUR");
    lab.held(base()).await;
    let others = [
        cart("O1", &[("A", 2)]).by("ann").costs(100, "EUR"),
        cart("O1", &[("A", 1), ("B", 1)]).by("ann").costs(100, "EUR"),
        cart("O1", &[("NO-SUCH", 1)]).by("ann").costs(100, "EUR"),
        cart("O1", &[("A", 1)]).by("bob").costs(100, "EUR"),
        cart("O1", &[("A", 1)]).costs(100, "EUR"),
        cart("O1", &[("A", 1)]).by("ann").costs(101, "EUR"),
        cart("O1", &[("A", 1)]).by("ann").costs(100, "USD"),
        cart("O1", &[("A", 1)]).by("ann"),
    ];
    for other in others {
        assert_eq!(lab.ask(other.clone()).await, Err(Refusal::OrderConflict), "{other:?}");
    }
    assert_eq!(lab.counts("A").await, (8, 1, 0));
}

pub async fn unknown_skus_are_all_listed_before_limits_and_shortage(lab: &mut Lab) {
    lab.limited("A", 0, 1).await;
    let asked = cart("O1", &[("X", 1), ("A", 5), ("W", 1)]);
    assert_eq!(lab.ask(asked).await, Err(Refusal::UnknownSku(vec![sku("W"), sku("X")])));
}

pub async fn a_limit_comes_before_shortage(lab: &mut Lab) {
    lab.limited("A", 0, 1).await;
    lab.stocked("B", 0).await;
    let asked = cart("O1", &[("A", 2), ("B", 1)]);
    assert_eq!(lab.ask(asked.clone()).await, Err(Refusal::CustomerRequired(vec![sku("A")])));
    let over = Refusal::CustomerLimit { sku: sku("A"), limit: 1, has: 0, requested: 2 };
    assert_eq!(lab.ask(asked.by("ann")).await, Err(over));
}

pub async fn shortage_lists_every_short_sku_and_holds_nothing(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.stocked("B", 2).await;
    lab.stocked("C", 1).await;
    let asked = cart("O1", &[("C", 2), ("A", 5), ("B", 3)]);
    let items = vec![short("B", 3, 2), short("C", 2, 1)];
    assert_eq!(lab.ask(asked.clone()).await, Err(Refusal::SoldOut { items, may_return: false }));
    assert_eq!(lab.counts("A").await, (5, 0, 0));
    assert_eq!(lab.counts("B").await, (2, 0, 0));
    lab.stocked("B", 3).await;
    lab.stocked("C", 2).await;
    lab.held(asked).await;
}

pub async fn sold_out_tells_whether_units_may_return(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.stocked("B", 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)])).await;
    let one = |may_return| Err(Refusal::SoldOut { items: vec![short("A", 1, 0)], may_return });
    assert_eq!(lab.ask(cart("O2", &[("A", 1)])).await, one(true));
    let both = cart("O2", &[("A", 1), ("B", 2)]);
    let items = vec![short("A", 1, 0), short("B", 2, 1)];
    assert_eq!(lab.ask(both).await, Err(Refusal::SoldOut { items, may_return: false }), "nobody holds a B");
    lab.confirmed(hold.id).await;
    assert_eq!(lab.ask(cart("O2", &[("A", 1)])).await, one(false));
}

pub async fn a_second_order_is_a_second_claim(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.held(cart("O1", &[("A", 1)]).by("ann")).await;
    let second = lab.ask(cart("O2", &[("A", 1)]).by("ann")).await;
    assert!(matches!(second, Err(Refusal::SoldOut { .. })), "one's own hold gives no credit: {second:?}");
}

pub async fn a_change_is_all_or_nothing_on_the_difference(lab: &mut Lab) {
    lab.stocked("A", 3).await;
    lab.stocked("B", 1).await;
    let hold = lab.held(cart("O1", &[("A", 3)]).costs(300, "EUR")).await;
    lab.wait(5);
    let changed = lab.change(hold.id, &[("A", 2), ("B", 1)]).await;
    let Ok(Outcome::Hold(changed)) = changed else { panic!("{changed:?}") };
    assert_eq!(changed.expires_at, hold.expires_at, "the deadline is where it was");
    assert_eq!((lab.counts("A").await, lab.counts("B").await), ((1, 2, 0), (0, 1, 0)));
    let refused = lab.change(hold.id, &[("A", 1), ("B", 2)]).await;
    assert_eq!(refused, Err(Refusal::SoldOut { items: vec![short("B", 2, 1)], may_return: true }));
    assert_eq!(lab.change(hold.id, &[("A", 1), ("X", 2)]).await, Err(Refusal::UnknownSku(vec![sku("X")])));
    assert_eq!(lab.hold(hold.id).await, changed);
    assert_eq!((lab.counts("A").await, lab.counts("B").await), ((1, 2, 0), (0, 1, 0)));
    lab.confirmed(hold.id).await;
    assert_eq!((lab.counts("A").await, lab.counts("B").await), ((1, 0, 2), (0, 0, 1)));
}

pub async fn a_change_carries_a_new_amount(lab: &mut Lab) {
    lab.stocked("A", 3).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    let change = Command::Change {
        hold: hold.id,
        lines: Some(lines(&[("A", 2)])),
        amount: Some(200),
        payment_ref: Some("pi_2".into()),
    };
    let Ok(Outcome::Hold(changed)) = lab.ask(change.clone()).await else { panic!() };
    assert_eq!(changed.money, money(200, "EUR"));
    assert_eq!(changed.payment_ref.as_deref(), Some("pi_2"));
    assert_eq!(lab.ask(change).await, Ok(Outcome::Hold(changed.clone())), "again is the same");
    assert_eq!(lab.hold(hold.id).await, changed);
    let same = lab.ask(cart("O1", &[("A", 2)]).costs(200, "EUR")).await;
    assert_eq!(same, Ok(Outcome::Held { hold: changed, replay: true }), "a replay compares with what it is now");
}

pub async fn an_extension_moves_the_deadline_forward_only(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).ttl(600)).await;
    lab.wait(100);
    assert_eq!(lab.extend(hold.id, 60).await, Ok(Outcome::Hold(hold.clone())), "never shorter");
    let Ok(Outcome::Hold(longer)) = lab.extend(hold.id, 600).await else { panic!() };
    assert_eq!(longer.expires_at, lab.now.plus_seconds(600));
    lab.wait(599);
    assert!(lab.ask(cart("O2", &[("A", 1)])).await.is_err(), "still held past its first deadline");
    lab.wait(1);
    lab.held(cart("O2", &[("A", 1)])).await;
}

pub async fn an_extension_stops_at_the_greatest_lifetime(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).ttl(600)).await;
    assert_eq!(lab.extend(hold.id, 7201).await, Err(Refusal::ExtensionLimit));
    assert_eq!(lab.hold(hold.id).await, hold, "a failed extension moves nothing");
    lab.extend(hold.id, 3600).await.unwrap();
    lab.wait(3599);
    lab.extend(hold.id, 3601).await.unwrap();
    assert_eq!(lab.hold(hold.id).await.expires_at, hold.created_at.plus_seconds(7200));
    lab.wait(1);
    assert_eq!(lab.extend(hold.id, 3601).await, Err(Refusal::ExtensionLimit));
    lab.wait(3599);
    assert_eq!(lab.release(hold.id).await.map(|_| ()), Ok(()));
    assert_eq!(lab.counts("A").await, (1, 0, 0));
}

pub async fn a_settled_hold_is_not_changed_or_extended(lab: &mut Lab) {
    lab.stocked("A", 9).await;
    let gone = lab.held(cart("O1", &[("A", 1)])).await.id;
    lab.released(gone).await;
    let lapsed = lab.held(cart("O2", &[("A", 1)]).ttl(1)).await.id;
    let sold = lab.held(cart("O3", &[("A", 1)])).await.id;
    lab.confirmed(sold).await;
    lab.wait(1);
    for (hold, refusal) in
        [(gone, Refusal::HoldExpired), (lapsed, Refusal::HoldExpired), (sold, Refusal::AlreadyConfirmed)]
    {
        assert_eq!(lab.change(hold, &[("A", 2)]).await, Err(refusal.clone()));
        assert_eq!(lab.extend(hold, 60).await, Err(refusal));
    }
    assert_eq!(lab.counts("A").await, (8, 0, 1));
}

pub async fn a_release_gives_back_once(lab: &mut Lab) {
    lab.stocked("A", 2).await;
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    assert_eq!(lab.released(hold.id).await, HoldStatus::Released);
    assert_eq!(lab.counts("A").await, (2, 0, 0));
    let other = lab.held(cart("O2", &[("A", 2)])).await;
    assert_eq!(lab.released(hold.id).await, HoldStatus::Released, "the same answer again");
    assert_eq!(lab.counts("A").await, (0, 2, 0), "the units belong to another by now");
    lab.confirmed(other.id).await;
    assert_eq!(lab.release(other.id).await, Err(Refusal::AlreadyConfirmed));
    assert_eq!(lab.counts("A").await, (0, 0, 2));
}

pub async fn an_order_may_be_held_again_after_its_release(lab: &mut Lab) {
    lab.stocked("A", 2).await;
    let first = lab.held(cart("O1", &[("A", 1)])).await;
    lab.released(first.id).await;
    let second = lab.held(cart("O1", &[("A", 2)])).await;
    assert_ne!(first.id, second.id);
    assert_eq!(lab.released(first.id).await, HoldStatus::Released);
    assert_eq!(lab.counts("A").await, (0, 2, 0), "a late release by the former hold touches nothing");
}

pub async fn an_unknown_hold_is_not_found(lab: &mut Lab) {
    let id = HoldId::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);
    assert_eq!(lab.release(id).await, Err(Refusal::NotFound));
    assert_eq!(lab.confirm(id).await, Err(Refusal::NotFound));
    assert_eq!(lab.extend(id, 60).await, Err(Refusal::NotFound));
    assert_eq!(lab.change(id, &[("A", 1)]).await, Err(Refusal::NotFound));
    assert_eq!(lab.give_back("O1", &[("A", 1)], None).await, Err(Refusal::NotFound));
}
