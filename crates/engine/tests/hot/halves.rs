//! A node dies between any two steps of what it does: of a command that Redis does not decide alone, and of writing down.
//! The node that dies lives on a runtime of its own that is ended at once, with all its connections.

use super::on_ledgers;
use super::rig::{Rig, ask, confirm, held, insist, settled, stocked};
use crate::common::databases::Kind;
use crate::common::make::{adjust, captured, cart, lines, order_id, reference, set, sku};
use crate::common::proxy::{Cut, Proxy};
use holdfast_engine::domain::{Command, EntryKind, Hold, HoldStatus, Outcome};
use holdfast_engine::{Engine, RedisConfig, redis};
use std::time::Duration;

on_ledgers! {
    a_node_that_dies_between_any_two_steps_leaves_all_or_nothing
}

/// Where it dies.
#[derive(Debug, Clone, Copy)]
pub enum At {
    /// At the second word to Redis, after the first.
    Redis(&'static str, &'static str, Cut),
    /// At the second word to the ledger, after the first. It hears each statement once a connection.
    Ledger(&'static str, &'static str, Cut),
}

const PLACES: [At; 8] = [
    At::Redis("", "freeze", Cut::Silence),
    At::Redis("", "freeze", Cut::Deaf),
    At::Ledger("", "INSERT INTO hot_steps", Cut::Silence),
    At::Ledger("", "INSERT INTO hot_steps", Cut::Deaf),
    At::Ledger("INSERT INTO hot_steps", "COMMIT", Cut::Silence),
    At::Ledger("INSERT INTO hot_steps", "COMMIT", Cut::Deaf),
    At::Redis("", "apply", Cut::Silence),
    At::Redis("", "apply", Cut::Deaf),
];

/// Starts a node, lets it do this, and ends it there; whether it got that far.
pub async fn die(rig: &Rig, at: At, commands: Vec<Command>) -> bool {
    let mut to_redis = Proxy::start(rig.redis.port()).await;
    let mut to_ledger = Proxy::start(rig.store.ledger.port()).await;
    let mut config = RedisConfig { timeout: Duration::from_mins(1), ..rig.through(&to_redis) };
    config.ledger.url = rig.store.ledger.through(to_ledger.port).config.url;
    let life = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let engine = life.spawn(async move { redis::open(&config).await.unwrap() }).await.unwrap();
    match at {
        At::Redis(first, word, cut) => to_redis.plan_after(first, word, cut),
        At::Ledger(first, word, cut) => to_ledger.plan_after(first, word, cut),
    }
    let node = engine.clone();
    let last = life.spawn(async move { node.apply(commands, holdfast_engine::Now::Clock).await });
    let is_there = tokio::select! {
        () = to_redis.done() => true,
        () = to_ledger.done() => true,
        () = tokio::time::sleep(Duration::from_secs(10)) => false,
    };
    if !is_there && last.is_finished() {
        println!("{at:?} was not reached: {:?}", last.await);
    } else {
        last.abort();
    }
    life.shutdown_background();
    drop(engine);
    to_redis.cut();
    to_ledger.cut();
    is_there
}

/// A command on things of its own, and what must be so once it was done exactly once.
struct Case {
    name: String,
    hold: Hold,
    command: Command,
}

const KINDS: [&str; 8] = ["confirm", "late", "release", "change", "pay", "set", "adjust", "remove"];

impl Case {
    async fn make(engine: &dyn Engine, kind: &str, n: usize) -> Self {
        let name = format!("{kind}-{n}");
        stocked(engine, &name, 10).await;
        let other = format!("{name}-other");
        if kind == "change" {
            stocked(engine, &other, 10).await;
        }
        let hold = held(&insist(engine, cart(&name, &[(&name, 2)]).by(&name)).await).clone();
        if matches!(kind, "late" | "remove") {
            insist(engine, Command::Release { hold: hold.id }).await.unwrap();
        }
        let command = match kind {
            "confirm" | "late" => confirm(hold.id),
            "release" => Command::Release { hold: hold.id },
            "change" => {
                let lines = Some(lines(&[(&name, 1), (&other, 3)]));
                Command::Change { hold: hold.id, lines, amount: None, payment_ref: None }
            }
            "pay" => captured(&format!("pi-{name}")).order(&name).into(),
            "set" => Command::SetStock(set(&name, 20)),
            "adjust" => match adjust(&name, 5) {
                Command::AdjustStock { sku, delta, reason, create, .. } => {
                    Command::AdjustStock { sku, delta, reason, create, key: Some(reference(&name)) }
                }
                other => panic!("{other:?}"),
            },
            "remove" => Command::RemoveStock { sku: sku(&name), if_version: None },
            other => panic!("{other}"),
        };
        Self { name, hold, command }
    }

    /// The same again until there is an answer, then what has to be so.
    async fn check(&self, engine: &dyn Engine) {
        let answer = insist(engine, self.command.clone()).await;
        assert!(answer.is_ok() || self.name.starts_with("remove"), "{}: {answer:?}", self.name);
        let stock = engine.stock(&sku(&self.name)).await.unwrap();
        let counts = stock.map(|s| (s.available, s.held, s.sold));
        let hold = engine.hold(self.hold.id).await.unwrap().unwrap();
        let order = engine.order(&order_id(&self.name)).await.unwrap();
        let (counters, status) = match self.name.split('-').next().unwrap() {
            "confirm" | "late" | "pay" => (Some((8, 0, 2)), HoldStatus::Confirmed),
            "release" => (Some((10, 0, 0)), HoldStatus::Released),
            "change" => (Some((9, 1, 0)), HoldStatus::Held),
            "set" => (Some((18, 2, 0)), HoldStatus::Held),
            "adjust" => (Some((13, 2, 0)), HoldStatus::Held),
            "remove" => (None, HoldStatus::Released),
            other => panic!("{other}"),
        };
        assert_eq!((counts, hold.status), (counters, status), "{}", self.name);
        assert_eq!(order.is_some(), status == HoldStatus::Confirmed, "{}", self.name);
        if self.name.starts_with("change") {
            assert_eq!(hold.lines, lines(&[(&self.name, 1), (&format!("{}-other", self.name), 3)]));
        }
    }
}

async fn a_node_that_dies_between_any_two_steps_leaves_all_or_nothing(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let survivor = rig.node().await;
    let (mut cases, mut deaths) = (Vec::new(), 0);
    for kind in KINDS {
        for (n, at) in PLACES.into_iter().enumerate() {
            let case = Case::make(&*survivor, kind, n).await;
            if die(&rig, at, vec![case.command.clone()]).await {
                deaths += 1;
            } else {
                println!("{} was done before {at:?}", case.name);
            }
            cases.push(case);
        }
    }
    assert_eq!(deaths, cases.len(), "each died where it should");
    // Half of them are asked for at once, while what was left behind is still in the way; the others once it is gone.
    let (now, later): (Vec<_>, Vec<_>) = cases.iter().enumerate().partition(|(n, _)| n % 2 == 1);
    futures_util::future::join_all(now.iter().map(|(_, case)| case.check(&*survivor))).await;
    settled(&rig.store, &*survivor).await;
    for (_, case) in later {
        case.check(&*survivor).await;
    }
    let all = settled(&rig.store, &*survivor).await;
    let count = |kind| all.ledger.iter().filter(|n| n.entry.kind == kind).count();
    let of = |kinds: &[&str]| cases.iter().filter(|c| kinds.contains(&c.name.split('-').next().unwrap())).count();
    assert_eq!(count(EntryKind::Removed), of(&["remove"]));
    assert_eq!(all.orders.len(), of(&["confirm", "late", "pay"]));
    assert!(matches!(ask(&*survivor, cart("NEXT", &[("set-0", 1)])).await.unwrap(), Ok(Outcome::Held { .. })));
}
