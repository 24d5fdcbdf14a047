//! Redis is there and does not do what it is asked: it is a replica, it loads, it is stopped, it is full, it is set to
//! forget. The ledger has no part in it: one kind does.

use super::rig::{Busy, HEALED, Rig, ask, confirm, held, serves, settled, stocked};
use crate::common::databases::{Kind, until};
use crate::common::make::{cart, sku};
use holdfast_engine::clock::monotonic;
use holdfast_engine::{Durability, Engine, EngineError, redis};
use std::sync::Arc;
use std::time::Duration;

/// Each is asked for in turn; what came of it, and that it came in time.
async fn told_in_time(engine: &Arc<dyn Engine>, within: Duration) -> Vec<EngineError> {
    let hold = cart("TRY", &[("TRY", 1)]);
    let mut errors = Vec::new();
    for command in [hold.into(), confirm(holdfast_engine::domain::HoldId::from_u128(7))] {
        let start = monotonic();
        errors.extend(ask(&**engine, command).await.err());
        assert!(start.elapsed() < within, "told after {:?}", start.elapsed());
    }
    errors
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_primary_that_was_demoted_takes_nothing_and_serves_once_promoted() {
    let Some(rig) = Rig::start(Kind::Postgres, &[]).await else { return };
    let engines = vec![rig.node().await, rig.node().await];
    stocked(&*engines[0], "TRY", 5).await;
    let mut busy = Busy::start(engines, 12).await;
    for _ in 0..2 {
        rig.redis.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
        let errors = told_in_time(&busy.engines[0], Duration::from_secs(3)).await;
        let is_told = |e: &EngineError| matches!(e, EngineError::Unavailable(_) | EngineError::Auditing(_));
        assert!(errors.len() == 2 && errors.iter().all(is_told), "{errors:?}");
        assert!(busy.engines[0].health().await.problem.is_some());
        rig.redis.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
        busy.load.served(60, HEALED).await;
    }
    busy.heals(&rig.store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_loads_is_waited_for() {
    let Some(mut rig) = Rig::start(Kind::Postgres, &["appendfsync no"]).await else { return };
    let engine = rig.node().await;
    stocked(&*engine, "TRY", 5).await;
    let hold = ask(&*engine, cart("O1", &[("TRY", 1)])).await.unwrap();
    let junk = "for i = 1, 100000 do redis.call('SET', ARGV[1] .. i, string.rep('x', 100)) end";
    for round in ["a", "b", "c", "d", "e", "f"] {
        rig.redis.command(&["EVAL", junk, "0", round]).unwrap();
    }
    rig.redis.kill();
    let (asker, is_up) = (engine.clone(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let up = is_up.clone();
    let asked = tokio::spawn(async move {
        let mut errors = Vec::new();
        while !up.load(std::sync::atomic::Ordering::Relaxed) {
            errors.extend(told_in_time(&asker, Duration::from_secs(5)).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        errors
    });
    tokio::task::block_in_place(|| rig.redis.restart().unwrap());
    is_up.store(true, std::sync::atomic::Ordering::Relaxed);
    let errors = asked.await.unwrap();
    assert!(errors.iter().any(|e| e.to_string().to_lowercase().contains("loading")), "{errors:?}");
    let is_told = |e: &EngineError| !matches!(e, EngineError::Corrupt(_) | EngineError::Overloaded);
    assert!(errors.iter().all(is_told), "{errors:?}");
    serves(&*engine).await;
    assert_eq!(engine.hold(held(&hold).id).await.unwrap().as_ref(), Some(held(&hold)));
    settled(&rig.store, &*engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stopped_server_is_told_in_time_and_served_again_when_it_goes_on() {
    let Some(rig) = Rig::start(Kind::Postgres, &[]).await else { return };
    let engines = vec![rig.node().await, rig.node().await];
    stocked(&*engines[0], "TRY", 5).await;
    let mut busy = Busy::start(engines, 12).await;
    for _ in 0..2 {
        rig.redis.freeze();
        let errors = told_in_time(&busy.engines[0], Duration::from_secs(6)).await;
        let is_told = |e: &EngineError| matches!(e, EngineError::Unavailable(_) | EngineError::Unknown(_));
        assert!(errors.len() == 2 && errors.iter().all(is_told), "{errors:?}");
        let start = monotonic();
        assert!(busy.engines[1].stock(&sku("TRY")).await.is_err());
        assert!(busy.engines[1].health().await.problem.is_some());
        assert!(start.elapsed() < Duration::from_secs(6));
        rig.redis.thaw();
        busy.load.served(60, HEALED).await;
    }
    busy.heals(&rig.store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn full_memory_is_told_and_leaves_nothing_half_done() {
    let Some(rig) = Rig::start(Kind::Postgres, &[]).await else { return };
    let engines = vec![rig.node().await, rig.node().await];
    stocked(&*engines[0], "TRY", 5).await;
    let mut busy = Busy::start(engines, 12).await;
    for round in 0..6 {
        rig.redis.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
        let full = ask(&*busy.engines[0], cart(&format!("F{round}"), &[("TRY", 1)])).await;
        assert!(matches!(full, Err(EngineError::Unavailable(_))), "{full:?}");
        // What is under way meets it at every point.
        tokio::time::sleep(Duration::from_millis(150 * (round % 3))).await;
        rig.redis.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        busy.load.served(40, HEALED).await;
    }
    let engine = busy.engines[0].clone();
    assert!(!busy.heals(&rig.store).await.is_empty(), "it was noticed");
    assert_eq!(engine.stock(&sku("TRY")).await.unwrap().unwrap().available, 5);
}

#[tokio::test]
async fn a_server_that_would_break_the_promise_is_refused() {
    let Some(rig) = Rig::start(Kind::Postgres, &[]).await else { return };
    let open = async |durability| {
        let config = holdfast_engine::RedisConfig { durability, ..rig.store.config.clone() };
        redis::open(&config).await.map(drop).map_err(|e| e.to_string())
    };
    let set = |name: &str, value: &str| rig.redis.command(&["CONFIG", "SET", name, value]).unwrap();
    set("maxmemory-policy", "allkeys-lru");
    for durability in Durability::ALL {
        let refused = open(durability).await.unwrap_err();
        assert!(refused.contains("allkeys-lru") && refused.contains("noeviction"), "{refused}");
    }
    set("maxmemory-policy", "noeviction");
    set("appendfsync", "everysec");
    let refused = open(Durability::Aof).await.unwrap_err();
    assert!(refused.contains("appendfsync always"), "{refused}");
    open(Durability::Memory).await.unwrap();
    set("appendfsync", "always");
    open(Durability::Aof).await.unwrap();
    until("nothing is left", async || rig.redis.command(&["PING"]).is_ok()).await;
}
