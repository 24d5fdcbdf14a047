//! Faults that real shops shipped, each told as one short story.

use crate::common::lab::Lab;
use crate::common::make::{captured, cart, set, sku};
use holdfast_engine::domain::{Command, HoldStatus, MAX_QUANTITY, Outcome, Refusal, SetStock, Settlement};

pub async fn one_owner_per_unit_when_expiry_races_the_payment(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    let answers = lab
        .ask_all(vec![captured("pi_1").order("O1").into(), Command::Sweep { limit: 9 }, cart("O2", &[("A", 1)]).into()])
        .await;
    assert!(matches!(&answers[0], Ok(Outcome::Settled(Settlement::Confirmed(o))) if o.late), "{answers:?}");
    assert!(matches!(answers[2], Err(Refusal::SoldOut { .. })));
    assert_eq!(lab.counts("A").await, (0, 0, 1));
}

pub async fn one_owner_per_unit_when_another_buys_first(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.held(cart("O1", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    let answers = lab
        .ask_all(vec![cart("O2", &[("A", 1)]).into(), captured("pi_1").order("O1").into(), Command::Sweep { limit: 9 }])
        .await;
    assert!(matches!(&answers[0], Ok(Outcome::Held { .. })), "{answers:?}");
    assert!(matches!(&answers[1], Ok(Outcome::Settled(Settlement::Reversal { .. }))), "{answers:?}");
    assert_eq!(lab.counts("A").await, (0, 1, 0));
}

pub async fn a_stock_sync_does_not_erase_a_sale(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    let seen = lab.stock("A").await.version;
    let hold = lab.held(cart("O1", &[("A", 4)])).await;
    lab.confirmed(hold.id).await;
    let sync = SetStock { if_version: Some(seen), ..set("A", 12) };
    lab.ask(Command::SetStock(sync.clone())).await.unwrap();
    assert_eq!(lab.counts("A").await, (8, 0, 4), "totals, not remainders");
    assert_eq!(lab.ask(Command::SetStock(sync)).await, Err(Refusal::VersionMismatch(Some(seen + 1))));
}

pub async fn lines_of_one_sku_are_summed_before_they_are_checked(lab: &mut Lab) {
    lab.limited("A", 3, 9).await;
    let twice = lab.ask(cart("O1", &[("A", 2), ("A", 2)]).by("ann")).await;
    assert!(matches!(twice, Err(Refusal::SoldOut { .. })), "{twice:?}");
    lab.limited("A", 30, 3).await;
    let over = Refusal::CustomerLimit { sku: sku("A"), limit: 3, has: 0, requested: 4 };
    assert_eq!(lab.ask(cart("O1", &[("A", 2), ("A", 2)]).by("ann")).await, Err(over));
}

pub async fn a_big_cart_is_held_and_released_whole(lab: &mut Lab) {
    let names: Vec<String> = (0..100).map(|n| format!("S{n:03}")).collect();
    let make = names.iter().map(|name| Command::SetStock(set(name, u64::from(MAX_QUANTITY)))).collect();
    lab.ask_all(make).await;
    let asked: Vec<(&str, u64)> = names.iter().map(|n| (n.as_str(), u64::from(MAX_QUANTITY))).collect();
    let hold = lab.held(cart("O1", &asked)).await;
    assert_eq!(lab.counts("S099").await, (0, u64::from(MAX_QUANTITY), 0));
    assert_eq!(lab.released(hold.id).await, HoldStatus::Released);
    assert_eq!(lab.counts("S000").await, (u64::from(MAX_QUANTITY), 0, 0));
}
