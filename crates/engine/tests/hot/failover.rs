//! A primary dies whose replica does not have everything, and the replica is promoted where the engine looks.

use super::crowd::{Crowd, accounted};
use super::on_ledgers;
use super::rig::{HEALED, Lock, Rig, ask, confirm, held, insist, own_redis, serves, settled, stocked};
use crate::common::databases::{Kind, until};
use crate::common::make::{captured, cart};
use crate::common::proxy::Proxy;
use holdfast_engine::clock::monotonic;
use holdfast_engine::domain::{Outcome, PaymentStatus, Refusal, Settlement};
use holdfast_engine::{Durability, Engine, EngineError, redis};
use holdfast_services::Redis;
use std::sync::Arc;
use std::time::Duration;

on_ledgers! {
    what_neither_the_replica_nor_the_ledger_had_is_lost_and_nothing_else
    with_the_ledger_as_its_memory_nothing_answered_is_lost
    a_hold_is_promised_once_a_replica_has_it
}

/// A primary and its replica behind one address.
struct Pair {
    rig: Rig,
    replica: Redis,
    proxy: Proxy,
    engine: Arc<dyn Engine>,
}

impl Pair {
    async fn start(ledger: Kind, durability: Durability) -> Option<Self> {
        let rig = Rig::start(ledger, &["appendonly no"]).await?.durable(durability);
        let replica = own_redis(&["appendonly no"])?;
        tokio::task::block_in_place(|| replica.replicate(&rig.redis)).unwrap();
        let proxy = Proxy::start(rig.redis.port()).await;
        let engine = rig.node_through(&proxy).await;
        stocked(&*engine, "HOT", 100).await;
        for n in 0..10 {
            // On a busy machine the replica may still be on its way, and the first of these in doubt.
            insist(&*engine, cart(&format!("O{n}"), &[("HOT", 1)]).ttl(3_600)).await.unwrap();
        }
        settled(&rig.store, &*engine).await;
        assert_eq!(rig.redis.command(&["WAIT", "1", "5000"]).unwrap(), "1");
        Some(Self { rig, replica, proxy, engine })
    }

    /// From now on the replica hears nothing more.
    fn cut_off(&self) {
        self.replica.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    }

    fn kill_the_primary(&mut self) {
        tokio::task::block_in_place(|| self.rig.redis.kill());
        self.proxy.cut();
    }

    fn promote(&mut self) {
        self.replica.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
        self.proxy.lead(self.replica.port());
        self.rig.store.config.url = self.replica.url();
    }
}

async fn what_neither_the_replica_nor_the_ledger_had_is_lost_and_nothing_else(ledger: Kind) {
    let Some(mut pair) = Pair::start(ledger, Durability::Memory).await else { return };
    let engine = pair.engine.clone();
    pair.cut_off();
    let lock = Lock::on(&pair.rig.store.ledger).await;
    // The first is on its way to the ledger; those after it stay where they are.
    let mut late = vec![held(&ask(&*engine, cart("L0", &[("HOT", 1)])).await.unwrap()).clone()];
    pair.rig.store.ledger.until_locks_are_waited_for(1, 0).await;
    for n in 1..10 {
        late.push(held(&ask(&*engine, cart(&format!("L{n}"), &[("HOT", 1)])).await.unwrap()).clone());
    }
    pair.kill_the_primary();
    assert!(engine.health().await.problem.is_some());
    pair.promote();
    // The first to come may find its connection broken.
    until("it says that it is audited", async || {
        let refused = ask(&*engine, cart("X", &[("HOT", 1)])).await;
        assert!(refused.is_err(), "{refused:?}");
        matches!(refused, Err(EngineError::Auditing(_)))
    })
    .await;
    assert!(engine.health().await.problem.is_some_and(|why| why.starts_with("auditing")));
    lock.let_go().await;
    serves(&*engine).await;
    let all = settled(&pair.rig.store, &*engine).await;
    let (known, found) = (all.holds.len() as u64, engine.hold(late[0].id).await.unwrap().is_some());
    assert_eq!(known, 10 + u64::from(found), "the ten from before, and perhaps the one that was on its way");
    assert_eq!((all.stocks[0].available, all.stocks[0].held), (100 - known, known));
    for lost in &late[1..] {
        assert_eq!(engine.hold(lost.id).await.unwrap(), None);
    }
    // Whoever comes with one of them is told, and money that was paid for it is kept in sight.
    assert_eq!(ask(&*engine, confirm(late[5].id)).await.unwrap(), Err(Refusal::NotFound));
    let paid = ask(&*engine, captured("pi-6").order("L6")).await.unwrap();
    assert_eq!(paid, Ok(Outcome::Settled(Settlement::Unmatched)));
    let again = ask(&*engine, cart("L7", &[("HOT", 1)])).await.unwrap();
    assert!(matches!(&again, Ok(Outcome::Held { hold, replay: false }) if hold.id != late[7].id), "{again:?}");
    let rest = 100 - known - 1;
    assert!(ask(&*engine, cart("REST", &[("HOT", rest)])).await.unwrap().is_ok());
    assert!(ask(&*engine, cart("MORE", &[("HOT", 1)])).await.unwrap().is_err());
    let all = settled(&pair.rig.store, &*engine).await;
    assert_eq!(all.payments[0].status, PaymentStatus::Unmatched);
}

async fn with_the_ledger_as_its_memory_nothing_answered_is_lost(ledger: Kind) {
    let Some(mut pair) = Pair::start(ledger, Durability::Ledger).await else { return };
    let engine = pair.engine.clone();
    pair.cut_off();
    let lock = Lock::on(&pair.rig.store.ledger).await;
    let ask_apart = |order: String| {
        let engine = engine.clone();
        tokio::spawn(async move { ask(&*engine, cart(&order, &[("HOT", 1)])).await })
    };
    let mut asked = vec![ask_apart("L0".into())];
    pair.rig.store.ledger.until_locks_are_waited_for(1, 0).await;
    asked.extend((1..10).map(|n| ask_apart(format!("L{n}"))));
    let has_all = async || pair.rig.redis.command(&["DBSIZE"]).unwrap().parse::<u32>().unwrap() >= 40;
    until("Redis has them", has_all).await;
    assert!(asked.iter().all(|task| !task.is_finished()), "nobody is promised what the ledger does not have");
    pair.kill_the_primary();
    pair.promote();
    lock.let_go().await;
    serves(&*engine).await;
    // The new epoch's log soon is longer than the old one's.
    for n in 0..30 {
        ask(&*engine, cart(&format!("N{n}"), &[("HOT", 1)])).await.unwrap().unwrap();
    }
    let mut unknown = 0;
    for task in asked {
        match task.await.unwrap() {
            Ok(answer) => assert_eq!(engine.hold(held(&answer).id).await.unwrap().as_ref(), Some(held(&answer))),
            Err(EngineError::Unknown(_)) => unknown += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(unknown >= 9, "{unknown} were not promised");
    settled(&pair.rig.store, &*engine).await;
}

async fn a_hold_is_promised_once_a_replica_has_it(ledger: Kind) {
    let Some(mut pair) = Pair::start(ledger, Durability::Replicated).await else { return };
    let engine = pair.engine.clone();
    pair.replica.freeze();
    let start = monotonic();
    let unsure = ask(&*engine, cart("L0", &[("HOT", 1)])).await;
    assert!(matches!(unsure, Err(EngineError::Unknown(_))), "{unsure:?}");
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    pair.replica.thaw();
    let again = insist(&*engine, cart("L0", &[("HOT", 1)])).await;
    assert!(matches!(again, Ok(Outcome::Held { replay: true, .. })), "{again:?}");

    stocked(&*engine, "MANY", 100_000).await;
    let other = redis::open(&pair.rig.through(&pair.proxy)).await.unwrap();
    let crowd = Crowd::start(&[engine.clone(), other.clone()], "MANY", 12);
    crowd.served(100, HEALED).await;
    // Dead in the midst of it; what it had not yet told the replica it has promised to nobody.
    pair.kill_the_primary();
    until("the replica has noticed", async || {
        pair.replica.command(&["INFO", "replication"]).unwrap().contains("master_link_status:down")
    })
    .await;
    let replica = own_redis(&["appendonly no"]).unwrap();
    pair.promote();
    tokio::task::block_in_place(|| replica.replicate(&pair.replica)).unwrap();
    crowd.served(100, HEALED).await;
    let (told, _) = crowd.stop().await;
    serves(&*other).await;
    settled(&pair.rig.store, &*engine).await;
    assert_eq!(accounted(&*other, &told).await, 0, "nothing that was promised is lost");
}
