//! Redis forgets: its scripts, its memory, everything.

use super::crowd::{Crowd, accounted};
use super::on_ledgers;
use super::rig::{Busy, HEALED, Rig, ask, confirm, held, insist, serves, settled, stocked};
use crate::common::databases::Kind;
use crate::common::make::{captured, cart};
use holdfast_engine::clock::monotonic;
use holdfast_engine::domain::{Command, Outcome, Refusal, Settlement};
use holdfast_engine::{Durability, EngineError};
use std::time::Duration;

on_ledgers! {
    scripts_flushed_in_mid_load_cost_nothing
    a_redis_that_keeps_its_file_loses_no_answer
    an_empty_redis_is_filled_from_the_ledger
    everything_flushed_in_mid_load_oversells_nothing
    a_node_that_nobody_uses_any_more_ends
}

async fn scripts_flushed_in_mid_load_cost_nothing(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let mut busy = Busy::start(vec![rig.node().await, rig.node().await], 16).await;
    for _ in 0..20 {
        rig.redis.command(&["SCRIPT", "FLUSH", "SYNC"]).unwrap();
        busy.load.served(10, HEALED).await;
    }
    let errors = busy.heals(&rig.store).await;
    assert_eq!(errors, [], "nobody noticed");
}

async fn a_redis_that_keeps_its_file_loses_no_answer(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let mut rig = rig.durable(Durability::Aof);
    let mut busy = Busy::start(vec![rig.node().await, rig.node().await], 16).await;
    for _ in 0..3 {
        tokio::task::block_in_place(|| {
            rig.redis.kill();
            rig.redis.restart().unwrap();
        });
        busy.load.served(60, HEALED).await;
    }
    assert!(!busy.heals(&rig.store).await.is_empty(), "it was noticed");
}

/// With nothing under way: the same before and after, to the letter.
async fn an_empty_redis_is_filled_from_the_ledger(ledger: Kind) {
    let Some(mut rig) = Rig::start(ledger, &["appendonly no"]).await else { return };
    let engine = rig.node().await;
    stocked(&*engine, "HOT", 10).await;
    let mut limited = crate::common::make::set("FEW", 10);
    limited.limit_per_customer = Some(Some(2));
    ask(&*engine, Command::SetStock(limited)).await.unwrap().unwrap();
    let first = ask(&*engine, cart("O1", &[("HOT", 2), ("FEW", 1)]).by("ann")).await.unwrap();
    ask(&*engine, cart("O2", &[("HOT", 3)])).await.unwrap().unwrap();
    let bought = ask(&*engine, cart("O3", &[("HOT", 1), ("FEW", 1)]).by("ann")).await.unwrap();
    ask(&*engine, confirm(held(&bought).id)).await.unwrap().unwrap();
    let early = ask(&*engine, captured("pi-4").order("O4")).await.unwrap();
    assert_eq!(early, Ok(Outcome::Settled(Settlement::Unmatched)));
    let before = settled(&rig.store, &*engine).await;

    tokio::task::block_in_place(|| rig.redis.kill());
    let start = monotonic();
    let failed = ask(&*engine, cart("O9", &[("HOT", 1)])).await;
    assert!(matches!(failed, Err(EngineError::Unavailable(_) | EngineError::Unknown(_))), "{failed:?}");
    let failed = ask(&*engine, confirm(held(&first).id)).await;
    assert!(matches!(failed, Err(EngineError::Unavailable(_))), "{failed:?}");
    assert!(start.elapsed() < Duration::from_secs(6), "both were told in time: {:?}", start.elapsed());
    assert!(engine.health().await.problem.is_some());
    tokio::task::block_in_place(|| rig.redis.restart().unwrap());
    serves(&*engine).await;
    assert_eq!(settled(&rig.store, &*engine).await, before, "as if nothing had been");

    // What counts is counted: units, the limit, orders and payments that wait.
    let more = ask(&*engine, cart("O5", &[("HOT", 5)])).await.unwrap();
    assert!(matches!(more, Err(Refusal::SoldOut { .. })), "{more:?}");
    let more = ask(&*engine, cart("O5", &[("FEW", 1)]).by("ann")).await.unwrap();
    assert!(matches!(more, Err(Refusal::CustomerLimit { has: 2, .. })), "{more:?}");
    assert_eq!(ask(&*engine, cart("O3", &[("HOT", 1)])).await.unwrap(), Err(Refusal::AlreadyConfirmed));
    let again = ask(&*engine, cart("O1", &[("HOT", 2), ("FEW", 1)]).by("ann")).await.unwrap();
    assert_eq!(again, Ok(Outcome::Held { hold: held(&first).clone(), replay: true }));
    ask(&*engine, cart("O4", &[("HOT", 1)])).await.unwrap().unwrap();
    let all = settled(&rig.store, &*engine).await;
    assert_eq!((all.stocks[1].available, all.stocks[1].held, all.stocks[1].sold), (3, 5, 2));
}

async fn everything_flushed_in_mid_load_oversells_nothing(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let engines = [rig.node().await, rig.node().await];
    stocked(&*engines[0], "HOT", 100_000).await;
    let crowd = Crowd::start(&engines, "HOT", 12);
    for _ in 0..4 {
        crowd.served(60, HEALED).await;
        rig.redis.command(&["FLUSHALL", "SYNC"]).unwrap();
    }
    crowd.served(60, HEALED).await;
    let (told, errors) = crowd.stop().await;
    let is_allowed = |e: &EngineError| !matches!(e, EngineError::Corrupt(_) | EngineError::Overloaded);
    assert!(errors.iter().all(is_allowed), "{errors:?}");
    let is_told = |e: &EngineError| matches!(e, EngineError::Auditing(_));
    assert!(errors.iter().any(is_told), "it says what it does: {errors:?}");
    for engine in &engines {
        serves(&**engine).await;
    }
    let all = settled(&rig.store, &*engines[1]).await;
    assert_eq!(all.stocks[0].total(), 100_000);
    let lost = accounted(&*engines[0], &told).await;
    println!("{lost} of {} holds were lost", told.len());
    // Sold to the last unit, and not one more.
    let left = all.stocks[0].available;
    assert!(insist(&*engines[0], cart("LAST", &[("HOT", left)])).await.is_ok());
    assert!(insist(&*engines[1], cart("NONE", &[("HOT", 1)])).await.is_err());
}

async fn a_node_that_nobody_uses_any_more_ends(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let engine = rig.node().await;
    stocked(&*engine, "HOT", 1).await;
    let clients = || rig.redis.command(&["CLIENT", "LIST"]).unwrap().lines().filter(|l| !l.is_empty()).count();
    assert_eq!(clients(), 2, "its connection and ours");
    drop(engine);
    rig.alone().await;
}
