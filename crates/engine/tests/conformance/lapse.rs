//! Expiry: a lapsed hold claims nothing, swept or not, and the janitor only tidies.

use crate::common::lab::Lab;
use crate::common::make::{adjust, cart, sku};
use holdfast_engine::domain::{Command, EntryKind, HoldStatus, Outcome, Refusal};

pub async fn lapsed_units_are_sellable_at_once(lab: &mut Lab) {
    lab.stocked("A", 2).await;
    let first = lab.held(cart("O1", &[("A", 2)]).ttl(60)).await;
    lab.wait(59);
    assert!(matches!(lab.ask(cart("O2", &[("A", 1)])).await, Err(Refusal::SoldOut { .. })));
    lab.wait(1);
    assert_eq!(lab.counts("A").await, (2, 0, 0), "a reader sees it too");
    lab.held(cart("O2", &[("A", 2)])).await;
    assert_eq!(lab.hold(first.id).await.status, HoldStatus::Expired, "in the same step");
    assert_eq!(lab.story("A").await, ["received", "held", "expired", "held"]);
}

pub async fn a_lapsed_cart_gives_back_its_other_skus_too(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.stocked("B", 1).await;
    lab.stocked("C", 1).await;
    lab.held(cart("O1", &[("A", 1), ("B", 1)]).ttl(60)).await;
    lab.held(cart("O2", &[("C", 1)]).ttl(60)).await;
    lab.wait(60);
    lab.held(cart("O3", &[("B", 1), ("C", 1)])).await;
    assert_eq!(lab.counts("A").await, (1, 0, 0));
    lab.held(cart("O4", &[("A", 1)])).await;
}

pub async fn no_more_is_expired_than_a_request_needs_to_be_right(lab: &mut Lab) {
    lab.stocked("A", 4).await;
    for n in 0..4 {
        lab.held(cart(&format!("O{n}"), &[("A", 1)]).ttl(60)).await;
    }
    lab.wait(60);
    lab.held(cart("P1", &[("A", 1)])).await;
    assert_eq!(lab.counts("A").await, (3, 1, 0));
    lab.held(cart("P2", &[("A", 3)])).await;
    assert_eq!(lab.counts("A").await, (0, 4, 0));
    assert_eq!(lab.count(EntryKind::Expired).await, 4);
}

pub async fn the_same_order_may_be_held_anew_after_it_lapsed(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let first = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    let second = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    assert_ne!(first.id, second.id, "a lapsed hold is not replayed");
    assert_eq!(lab.counts("A").await, (0, 1, 0));
    assert_eq!(lab.released(first.id).await, HoldStatus::Expired);
    assert_eq!(lab.counts("A").await, (0, 1, 0));
}

pub async fn a_refusal_may_expire_but_not_move_more(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.stocked("B", 0).await;
    let lapsed = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    assert!(lab.ask(cart("O2", &[("A", 1), ("B", 1)])).await.is_err());
    assert_eq!(lab.counts("A").await, (1, 0, 0));
    assert_eq!(lab.hold(lapsed.id).await.status_at(lab.now), HoldStatus::Expired);
}

pub async fn a_release_of_a_lapsed_hold_says_expired(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    assert_eq!(lab.released(hold.id).await, HoldStatus::Expired);
    assert_eq!(lab.released(hold.id).await, HoldStatus::Expired);
    assert_eq!(lab.counts("A").await, (1, 0, 0));
    assert_eq!(lab.story("A").await, ["received", "held", "expired"]);
}

pub async fn a_sweep_expires_the_oldest_first_and_stops_at_its_limit(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    let mut holds = Vec::new();
    for n in 0..5 {
        holds.push(lab.held(cart(&format!("O{n}"), &[("A", 1)]).ttl(50 - n)).await);
    }
    let live = lab.held(cart("O9", &[("A", 1)]).ttl(100)).await;
    lab.wait(50);
    assert_eq!(lab.ask(Command::Sweep { limit: 2 }).await, Ok(Outcome::Swept { expired: 2, more: true }));
    assert_eq!(lab.hold(holds[4].id).await.status, HoldStatus::Expired);
    assert_eq!(lab.hold(holds[3].id).await.status, HoldStatus::Expired);
    assert_eq!(lab.hold(holds[2].id).await.status, HoldStatus::Held, "recorded; lapsed all the same");
    assert_eq!(lab.sweep().await, 3);
    assert_eq!(lab.sweep().await, 0);
    assert_eq!(lab.hold(live.id).await.status, HoldStatus::Held);
    assert_eq!(lab.counts("A").await, (9, 1, 0));
}

pub async fn a_sweep_expires_the_oldest_first_across_skus(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.stocked("B", 5).await;
    let sold = lab.held(cart("O1", &[("A", 1)]).ttl(20)).await;
    lab.confirmed(sold.id).await;
    let older = lab.held(cart("O2", &[("B", 1)]).ttl(30)).await;
    let newer = lab.held(cart("O3", &[("A", 1)]).ttl(40)).await;
    lab.wait(60);
    assert_eq!(lab.ask(Command::Sweep { limit: 1 }).await, Ok(Outcome::Swept { expired: 1, more: true }));
    assert_eq!(lab.hold(older.id).await.status, HoldStatus::Expired);
    assert_eq!(lab.hold(newer.id).await.status, HoldStatus::Held);
    assert_eq!(lab.sweep().await, 1);
}

pub async fn a_sweep_leaves_alone_what_was_extended_changed_or_settled(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    lab.stocked("B", 10).await;
    let extended = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    let changed = lab.held(cart("O2", &[("A", 1)]).ttl(90)).await;
    let sold = lab.held(cart("O3", &[("A", 1)]).ttl(60)).await;
    let released = lab.held(cart("O4", &[("A", 1)]).ttl(60)).await;
    lab.extend(extended.id, 120).await.unwrap();
    lab.change(changed.id, &[("B", 2)]).await.unwrap();
    lab.confirmed(sold.id).await;
    lab.released(released.id).await;
    lab.wait(60);
    assert_eq!(lab.sweep().await, 0);
    assert_eq!(lab.counts("A").await, (8, 1, 1));
    lab.wait(30);
    assert_eq!(lab.sweep().await, 1);
    assert_eq!(lab.counts("B").await, (10, 0, 0));
    lab.wait(30);
    assert_eq!(lab.sweep().await, 1);
    assert_eq!(lab.counts("A").await, (9, 0, 1));
}

pub async fn once_quiet_nothing_is_stranded(lab: &mut Lab) {
    for name in ["A", "B", "C"] {
        lab.stocked(name, 50).await;
    }
    for n in 0..12_u64 {
        let asked = [("A", n % 3 + 1), ("B", n % 2 + 1), ("C", 1)];
        let hold = lab.held(cart(&format!("O{n}"), &asked).ttl(n + 1)).await;
        match n % 4 {
            0 => drop(lab.confirm(hold.id).await.unwrap()),
            1 => drop(lab.release(hold.id).await.unwrap()),
            2 => drop(lab.change(hold.id, &[("A", 2)]).await.unwrap()),
            _ => {}
        }
        lab.wait(1);
    }
    lab.wait(7200);
    lab.sweep().await;
    let all = lab.everything().await;
    assert!(all.stocks.iter().all(|s| s.held == 0), "{:?}", all.stocks);
    assert!(all.stocks.iter().all(|s| s.total() == 50));
    assert!(all.holds.iter().all(|h| h.status != HoldStatus::Held));
}

pub async fn a_lapsed_hold_moves_no_units_twice(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let lapsed = lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    let owner = lab.held(cart("O2", &[("A", 1)])).await;
    assert_eq!(lab.extend(lapsed.id, 60).await, Err(Refusal::HoldExpired));
    assert_eq!(lab.change(lapsed.id, &[("A", 1)]).await, Err(Refusal::HoldExpired));
    assert_eq!(lab.released(lapsed.id).await, HoldStatus::Expired);
    assert!(matches!(lab.confirm(lapsed.id).await, Err(Refusal::StockGone(_))));
    assert_eq!(lab.sweep().await, 0);
    assert_eq!(lab.counts("A").await, (0, 1, 0));
    assert_eq!(lab.ask(adjust("A", -1)).await, Err(Refusal::InsufficientAvailable(0)));
    lab.confirmed(owner.id).await;
    assert_eq!(lab.everything().await.stock(&sku("A")).map(|s| s.sold), Some(1));
}
