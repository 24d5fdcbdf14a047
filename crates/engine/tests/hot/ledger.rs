//! The ledger is slow, stopped, or will not take something. Holds go on for as long as the backlog allows.

use super::on_ledgers;
use super::rig::{Busy, HEALED, Rig, ask, confirm, held, insist, serves, settled, stocked};
use crate::common::databases::{Kind, until};
use crate::common::make::{captured, cart};
use holdfast_engine::clock::monotonic;
use holdfast_engine::domain::{Hold, Outcome};
use holdfast_engine::{EngineError, Lanes, LanesConfig};
use holdfast_services::Signal;
use std::time::Duration;

on_ledgers! {
    holds_go_on_without_the_ledger_until_the_backlog_is_full
    holds_do_not_queue_behind_what_needs_the_ledger
    a_ledger_restarted_in_mid_load_costs_no_answer
    a_hold_that_the_ledger_will_not_take_is_parked_alone
}

async fn holds_go_on_without_the_ledger_until_the_backlog_is_full(ledger: Kind) {
    let Some((mut rig, server)) = Rig::with_server(ledger, &[]).await else { return };
    rig.store.config.backlog = 50;
    rig.store.config.ledger.timeout = Duration::from_secs(2);
    rig.store.config.ledger.wait = Duration::from_secs(2);
    let engine = rig.node().await;
    stocked(&*engine, "HOT", 1_000).await;
    let first = held(&ask(&*engine, cart("O", &[("HOT", 1)])).await.unwrap()).clone();
    settled(&rig.store, &*engine).await;
    server.freeze();
    let (start, mut made) = (monotonic(), Vec::new());
    let refused = loop {
        match ask(&*engine, cart(&format!("O{}", made.len()), &[("HOT", 1)])).await {
            Ok(answer) => made.push(held(&answer).clone()),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, EngineError::Overloaded);
    assert!((50..=52).contains(&made.len()), "{} were made", made.len());
    assert!(start.elapsed() < Duration::from_secs(2), "nobody waited: {:?}", start.elapsed());
    let asked = [confirm(first.id), captured("pi-1").order("O").into()];
    for command in asked.clone() {
        let start = monotonic();
        let failed = ask(&*engine, command).await;
        assert!(matches!(failed, Err(EngineError::Unavailable(_) | EngineError::Unknown(_))), "{failed:?}");
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    }
    assert!(engine.health().await.problem.is_some());
    server.thaw();
    serves(&*engine).await;
    for command in asked {
        insist(&*engine, command).await.unwrap();
    }
    let all = settled(&rig.store, &*engine).await;
    assert_eq!((all.stocks[0].held, all.stocks[0].sold), (made.len() as u64, 1));
    for hold in &made {
        assert_eq!(engine.hold(hold.id).await.unwrap().as_ref(), Some(hold));
    }
    assert!(ask(&*engine, cart("AGAIN", &[("HOT", 1)])).await.unwrap().is_ok());
}

async fn holds_do_not_queue_behind_what_needs_the_ledger(ledger: Kind) {
    let Some((rig, server)) = Rig::with_server(ledger, &[]).await else { return };
    let engine = rig.node().await;
    stocked(&*engine, "HOT", 1_000).await;
    let first = held(&ask(&*engine, cart("O", &[("HOT", 1)])).await.unwrap()).clone();
    let lanes = Lanes::start(engine.clone(), &LanesConfig::default()).unwrap();
    server.freeze();
    let confirmed: Vec<_> = (0..4)
        .map(|n| {
            let lanes = lanes.clone();
            let id = if n == 0 { first.id } else { holdfast_engine::domain::HoldId::from_u128(n) };
            tokio::spawn(async move { lanes.submit(confirm(id)).await })
        })
        .collect();
    for n in 0..20 {
        let held =
            tokio::time::timeout(Duration::from_secs(1), lanes.submit(cart(&format!("O{n}"), &[("HOT", 1)]).into()));
        assert!(held.await.unwrap().unwrap().is_ok(), "{n}");
    }
    assert!(confirmed.iter().all(|task| !task.is_finished()), "they still wait");
    server.thaw();
    for task in confirmed {
        let _ = task.await.unwrap();
    }
    insist(&*engine, confirm(first.id)).await.unwrap();
    settled(&rig.store, &*engine).await;
}

async fn a_ledger_restarted_in_mid_load_costs_no_answer(ledger: Kind) {
    let Some((rig, mut server)) = Rig::with_server(ledger, &[]).await else { return };
    let mut busy = Busy::start(vec![rig.node().await, rig.node().await], 12).await;
    for how in [Signal::Interrupt, Signal::Kill] {
        tokio::task::block_in_place(|| server.restart(how));
        busy.load.served(60, HEALED).await;
    }
    assert!(!busy.heals(&rig.store).await.is_empty(), "it was noticed");
}

/// Five holds that were logged as one step, one of which a constraint refuses.
async fn a_hold_that_the_ledger_will_not_take_is_parked_alone(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let engine = rig.node().await;
    stocked(&*engine, "HOT", 10).await;
    stocked(&*engine, "COLD", 10).await;
    let mut raw = rig.store.ledger.raw().await;
    raw.run("ALTER TABLE holds ADD CONSTRAINT poison CHECK (order_id <> 'O1')").await.unwrap();
    let carts = (0..5).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).into()).collect();
    let answers = engine.apply(carts, holdfast_engine::Now::Clock).await.unwrap();
    let made: Vec<Hold> = answers.iter().map(|answer| held(answer).clone()).collect();
    ask(&*engine, cart("LATER", &[("COLD", 1)])).await.unwrap().unwrap();
    until("it is parked", async || raw.one("SELECT count(*) FROM hot_parked").await == "1").await;
    let all = crate::common::invariants::everything(&*engine).await;
    let known: Vec<&str> = all.holds.iter().map(|hold| hold.order_id.as_str()).collect();
    assert_eq!(known, ["O0", "O2", "O3", "O4", "LATER"], "the others are written down");
    // Business as usual, and the audit names what a person has to look at.
    let order = ask(&*engine, confirm(made[4].id)).await.unwrap();
    assert!(matches!(order, Ok(Outcome::Order(_))), "{order:?}");
    let drift = engine.audit().await.unwrap().drift;
    let named: Vec<_> = drift.iter().map(|d| (d.sku.as_str(), d.field, d.actual - d.expected)).collect();
    assert_eq!(named, [("HOT", "redis_available", -1), ("HOT", "redis_held", 1)]);
}
