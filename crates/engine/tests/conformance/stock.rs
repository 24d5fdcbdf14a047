//! Stock: set, adjust, limit, remove, and the versions that let a stock sync compare and set.

use crate::common::lab::Lab;
use crate::common::make::{adjust, cart, reference, set, sku};
use holdfast_engine::domain::{Command, EntryKind, MAX_TOTAL, Outcome, Refusal, SetStock};

fn at_version(name: &str, total: u64, version: u64) -> Command {
    Command::SetStock(SetStock { if_version: Some(version), ..set(name, total) })
}

fn remove(name: &str) -> Command {
    Command::RemoveStock { sku: sku(name), if_version: None }
}

fn keyed(name: &str, delta: i64, reason: &str, key: &str) -> Command {
    Command::AdjustStock {
        sku: sku(name),
        delta,
        reason: Some(reason.into()),
        key: Some(reference(key)),
        create: false,
    }
}

pub async fn set_creates_then_moves_available(lab: &mut Lab) {
    let made = lab.ask(Command::SetStock(set("A", 10))).await;
    assert!(matches!(made, Ok(Outcome::Stock { created: true, changed: true, stock }) if stock.version == 1));
    let hold = lab.held(cart("O1", &[("A", 3)])).await;
    lab.confirmed(hold.id).await;
    lab.held(cart("O2", &[("A", 2)])).await;
    let moved = lab.ask(Command::SetStock(set("A", 8))).await;
    assert!(matches!(moved, Ok(Outcome::Stock { created: false, changed: true, stock }) if stock.version == 2));
    assert_eq!(lab.counts("A").await, (3, 2, 3));
    assert_eq!(lab.story("A").await, ["received", "held", "confirmed", "held", "adjusted"]);
}

pub async fn setting_the_same_total_changes_nothing(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    let again = lab.ask(Command::SetStock(set("A", 10))).await;
    assert!(matches!(again, Ok(Outcome::Stock { created: false, changed: false, stock }) if stock.version == 1));
    assert_eq!(lab.story("A").await, ["received"]);
}

pub async fn a_total_below_what_is_committed_is_refused(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    let hold = lab.held(cart("O1", &[("A", 3)])).await;
    lab.confirmed(hold.id).await;
    lab.held(cart("O2", &[("A", 2)])).await;
    assert_eq!(lab.ask(Command::SetStock(set("A", 4))).await, Err(Refusal::TotalBelowCommitted(5)));
    assert_eq!(lab.counts("A").await, (5, 2, 3));
    assert_eq!(lab.stock("A").await.version, 1);
    lab.stocked("A", 5).await;
    assert_eq!(lab.counts("A").await, (0, 2, 3));
}

pub async fn lapsed_holds_do_not_stand_in_the_way_of_a_total(lab: &mut Lab) {
    lab.stocked("A", 10).await;
    lab.held(cart("O1", &[("A", 8)]).ttl(60)).await;
    lab.wait(60);
    lab.stocked("A", 1).await;
    assert_eq!(lab.counts("A").await, (1, 0, 0));
}

pub async fn a_version_is_compared_and_counts_totals_and_limits_only(lab: &mut Lab) {
    assert_eq!(lab.ask(at_version("A", 10, 1)).await, Err(Refusal::VersionMismatch(None)));
    lab.stocked("A", 10).await;
    let hold = lab.held(cart("O1", &[("A", 1)])).await;
    lab.confirmed(hold.id).await;
    lab.held(cart("O2", &[("A", 1)])).await;
    assert_eq!(lab.stock("A").await.version, 1, "holds and sales do not count");
    lab.ask(at_version("A", 12, 1)).await.unwrap();
    assert_eq!(lab.ask(at_version("A", 14, 1)).await, Err(Refusal::VersionMismatch(Some(2))));
    lab.ask(adjust("A", 1)).await.unwrap();
    assert_eq!(lab.stock("A").await.version, 3);
    lab.limited("A", 13, 5).await;
    assert_eq!(lab.stock("A").await.version, 4);
    let at_old = Command::RemoveStock { sku: sku("A"), if_version: Some(3) };
    assert_eq!(lab.ask(at_old).await, Err(Refusal::VersionMismatch(Some(4))));
}

pub async fn adjust_adds_and_takes_what_is_available(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 2)])).await;
    lab.ask(adjust("A", 4)).await.unwrap();
    assert_eq!(lab.counts("A").await, (7, 2, 0));
    lab.ask(adjust("A", -7)).await.unwrap();
    assert_eq!(lab.counts("A").await, (0, 2, 0));
    assert_eq!(lab.ask(adjust("A", -1)).await, Err(Refusal::InsufficientAvailable(0)));
    assert_eq!(lab.ask(adjust("A", i64::MIN)).await, Err(Refusal::InsufficientAvailable(0)));
    assert_eq!(lab.counts("A").await, (0, 2, 0));
}

pub async fn adjust_may_take_lapsed_units(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.held(cart("O1", &[("A", 5)]).ttl(10)).await;
    assert_eq!(lab.ask(adjust("A", -5)).await, Err(Refusal::InsufficientAvailable(0)));
    lab.wait(10);
    lab.ask(adjust("A", -5)).await.unwrap();
    assert_eq!(lab.counts("A").await, (0, 0, 0));
}

pub async fn a_total_has_a_greatest_value(lab: &mut Lab) {
    lab.stocked("A", MAX_TOTAL).await;
    assert_eq!(lab.ask(adjust("A", 1)).await, Err(Refusal::TotalTooLarge));
    assert_eq!(lab.ask(adjust("A", i64::MAX)).await, Err(Refusal::TotalTooLarge));
    let create = Command::AdjustStock { sku: sku("B"), delta: i64::MAX, reason: None, key: None, create: true };
    assert_eq!(lab.ask(create).await, Err(Refusal::TotalTooLarge));
    lab.held(cart("O1", &[("A", 1)])).await;
    assert_eq!(lab.ask(adjust("A", 1)).await, Err(Refusal::TotalTooLarge), "held units are part of the total");
}

pub async fn an_adjustment_with_a_key_happens_once(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    lab.ask(keyed("A", 3, "delivery", "k1")).await.unwrap();
    let again = lab.ask(keyed("A", 3, "delivery", "k1")).await;
    assert!(matches!(again, Ok(Outcome::Stock { changed: false, stock, .. }) if stock.available == 8));
    assert_eq!(lab.ask(keyed("A", 4, "delivery", "k1")).await, Err(Refusal::KeyReused));
    assert_eq!(lab.ask(keyed("A", 3, "stocktake", "k1")).await, Err(Refusal::KeyReused));
    assert_eq!(lab.counts("A").await, (8, 0, 0));
}

pub async fn a_refused_adjustment_leaves_its_key_unused(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    assert_eq!(lab.ask(keyed("A", -2, "loss", "k1")).await, Err(Refusal::InsufficientAvailable(1)));
    lab.ask(adjust("A", 1)).await.unwrap();
    lab.ask(keyed("A", -2, "loss", "k1")).await.unwrap();
    assert_eq!(lab.counts("A").await, (0, 0, 0));
}

pub async fn an_adjustment_that_creates_happens_once_too(lab: &mut Lab) {
    let command = || Command::AdjustStock {
        sku: sku("A"),
        delta: 5,
        reason: None,
        key: Some(reference("import-1")),
        create: true,
    };
    let made = lab.ask(command()).await;
    assert!(matches!(made, Ok(Outcome::Stock { created: true, .. })));
    let again = lab.ask(command()).await;
    assert!(matches!(again, Ok(Outcome::Stock { created: false, changed: false, .. })), "{again:?}");
    assert_eq!(lab.counts("A").await, (5, 0, 0));
}

pub async fn a_key_tells_a_reason_from_a_sku(lab: &mut Lab) {
    lab.stocked("b c", 5).await;
    lab.stocked("c", 5).await;
    lab.ask(keyed("b c", 1, "a", "k1")).await.unwrap();
    assert_eq!(lab.ask(keyed("c", 1, "a b", "k1")).await, Err(Refusal::KeyReused));
    assert_eq!(lab.counts("c").await, (5, 0, 0));
}

pub async fn an_unknown_sku_is_not_adjusted_or_removed(lab: &mut Lab) {
    assert_eq!(lab.ask(adjust("A", 1)).await, Err(Refusal::NotFound));
    assert_eq!(lab.ask(remove("A")).await, Err(Refusal::NotFound));
    let take = Command::AdjustStock { sku: sku("A"), delta: -1, reason: None, key: None, create: true };
    assert_eq!(lab.ask(take).await, Err(Refusal::NotFound));
}

pub async fn remove_forgets_only_what_nobody_has(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    assert_eq!(lab.ask(remove("A")).await, Err(Refusal::StockInUse { held: 2, sold: 0 }));
    lab.confirmed(hold.id).await;
    assert_eq!(lab.ask(remove("A")).await, Err(Refusal::StockInUse { held: 0, sold: 2 }));
    lab.give_back("O1", &[("A", 2)], None).await.unwrap();
    assert_eq!(lab.ask(remove("A")).await, Ok(Outcome::Removed));
    assert_eq!(lab.ask(adjust("A", 1)).await, Err(Refusal::NotFound));
    assert_eq!(lab.ask(cart("O2", &[("A", 1)])).await, Err(Refusal::UnknownSku(vec![sku("A")])));
    assert_eq!(lab.count(EntryKind::Removed).await, 1);
}

pub async fn what_is_in_use_leaves_out_what_has_lapsed(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)])).await;
    lab.confirmed(hold.id).await;
    lab.held(cart("O2", &[("A", 1)]).ttl(60)).await;
    lab.wait(60);
    assert_eq!(lab.ask(remove("A")).await, Err(Refusal::StockInUse { held: 0, sold: 2 }));
}

pub async fn lapsed_holds_do_not_stand_in_the_way_of_removal(lab: &mut Lab) {
    lab.stocked("A", 5).await;
    let hold = lab.held(cart("O1", &[("A", 2)]).ttl(1)).await;
    lab.wait(1);
    assert_eq!(lab.ask(remove("A")).await, Ok(Outcome::Removed));
    let late = lab.confirm(hold.id).await;
    assert!(matches!(late, Err(Refusal::StockGone(_))), "{late:?}");
}

pub async fn a_sku_may_come_and_go_within_one_batch(lab: &mut Lab) {
    let create = |total| Command::SetStock(set("A", total));
    let made = lab.ask_all(vec![create(3), remove("A"), create(4), remove("A"), create(5)]).await;
    assert!(made.iter().all(Result::is_ok), "{made:?}");
    assert_eq!(lab.counts("A").await, (5, 0, 0));
    let again = lab.ask_all(vec![remove("A"), create(6), remove("A"), create(7)]).await;
    assert!(again.iter().all(Result::is_ok), "{again:?}");
    assert_eq!(lab.counts("A").await, (7, 0, 0));
    assert_eq!(lab.stock("A").await.version, 1);
    let gone = lab
        .ask_all(vec![
            remove("A"),
            Command::SetStock(set("B", 1)),
            Command::RemoveStock { sku: sku("B"), if_version: None },
        ])
        .await;
    assert!(gone.iter().all(Result::is_ok), "{gone:?}");
    assert_eq!(lab.everything().await.stocks, []);
}

pub async fn identifiers_are_byte_exact(lab: &mut Lab) {
    let odd =
        ["a", "A", "É", "E\u{301}", "a b", "0017", "17", "__proto__", "null", "a/b", "100%", "{}", "'\"", "🦊", "Ä"];
    for (n, name) in odd.iter().enumerate() {
        lab.stocked(name, n as u64 + 1).await;
    }
    for (n, name) in odd.iter().enumerate() {
        lab.held(cart(name, &[(name, 1)])).await;
        assert_eq!(lab.counts(name).await, (n as u64, 1, 0), "{name}");
    }
    assert_eq!(lab.everything().await.stocks.len(), odd.len());
}
