//! Many shoppers at once, through the lanes: exactly as many are served as there are units, and every race has one
//! winner. Told once, and run on the embedded engine, on one node of a database with one worker and with four, and on
//! two nodes of one database. Every invariant is checked at the end, as each node sees it.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database, Kind};
use common::gate::Gated;
use common::invariants::{check, everything};
use common::make::{
    Cart, START, adjust, authorized, captured, cart, lines, order_id, payment, reference, refunded, set, sku,
};
use common::redis::{Hot, HotStore};
use holdfast_engine::domain::{Command, Hold, HoldStatus, Outcome, PaymentStatus, Refusal, SetStock, Settlement};
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Answer, Engine, EngineError, HoldFilter, Lanes, LanesConfig, Now, Strategy};
use std::any::Any;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::task::JoinSet;

/// One node: an engine and the lane in front of it.
struct Node {
    engine: Arc<dyn Engine>,
    lanes: Lanes,
}

/// Nodes on the same stock, and whatever must live as long as they do.
struct Shop {
    nodes: Vec<Node>,
    _keep: Box<dyn Any + Send>,
}

impl Shop {
    fn new(engines: Vec<Arc<dyn Engine>>, workers: usize, keep: impl Any + Send) -> Self {
        let config = LanesConfig { workers, ..LanesConfig::default() };
        let node = |engine: Arc<dyn Engine>| Node { lanes: Lanes::start(engine.clone(), &config).unwrap(), engine };
        Self { nodes: engines.into_iter().map(node).collect(), _keep: Box::new(keep) }
    }

    fn engine(&self) -> &dyn Engine {
        &*self.nodes[0].engine
    }

    async fn stocked(&self, stock: SetStock) {
        self.nodes[0].lanes.submit(Command::SetStock(stock)).await.unwrap().unwrap();
    }

    /// Submits everything at once, each from a task of its own, to one node after the other; the answers in the order
    /// of the requests.
    async fn all_at_once(&self, commands: Vec<Command>) -> Vec<Answer> {
        let mut tasks = JoinSet::new();
        for (n, command) in commands.into_iter().enumerate() {
            let lanes = self.nodes[n % self.nodes.len()].lanes.clone();
            tasks.spawn(async move { (n, lanes.submit(command).await.unwrap()) });
        }
        let mut answers = tasks.join_all().await;
        answers.sort_by_key(|(n, _)| *n);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// The same to every node, at the same moment.
    async fn to_all(&self, batch: &[Command], now: Now) -> Vec<Vec<Answer>> {
        let asked = self.nodes.iter().map(|node| node.engine.apply(batch.to_vec(), now));
        futures_util::future::join_all(asked).await.into_iter().map(Result::unwrap).collect()
    }
}

fn embedded() -> Shop {
    let folder = tempfile::tempdir().unwrap();
    Shop::new(vec![Arc::new(Embedded::open(folder.path()).unwrap())], 1, folder)
}

/// Nodes on a fresh namespace.
async fn nodes(kind: Kind, strategy: Strategy, nodes: usize, workers: usize) -> Option<Shop> {
    let database = Database::shared(kind, strategy).await?;
    let mut engines = Vec::new();
    for _ in 0..nodes {
        engines.push(database.node().await);
    }
    Some(Shop::new(engines, workers, ()))
}

/// Nodes on a fresh namespace of a hot store and of its ledger.
async fn hot_nodes(hot: Hot, ledger: Kind, nodes: usize, workers: usize) -> Option<Shop> {
    let store = HotStore::shared(hot, ledger).await?;
    let mut engines = Vec::new();
    for _ in 0..nodes {
        engines.push(store.node().await);
    }
    Some(Shop::new(engines, workers, ()))
}

macro_rules! tests {
    ($open:expr; $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                let Some(shop) = $open else { return };
                super::$name(&shop).await;
                for node in &shop.nodes {
                    check(&*node.engine).await;
                }
            }
        )*
    };
}

macro_rules! subject {
    ($subject:ident, $open:expr) => {
        mod $subject {
            #[allow(clippy::wildcard_imports)]
            use super::*;

            tests! { $open;
                exactly_as_many_are_served_as_there_are_units
                carts_of_many_units_never_share_one
                the_same_request_from_many_clicks_is_one_hold
                releases_and_confirmations_race_and_each_hold_ends_once
                a_limit_is_exact_under_two_hundred_clicks
                a_payment_event_told_twenty_times_at_once_has_one_effect
                one_payment_told_by_different_events_at_once_has_one_effect
                different_facts_of_one_payment_told_at_once_are_all_kept
                carts_that_share_skus_crosswise_never_surface_a_deadlock
                a_payment_that_meets_the_hold_of_its_order_ends_settled
                lapsed_units_wanted_by_all_at_once_have_one_owner
                a_sweep_in_between_hides_no_unit
                an_adjustment_with_a_key_happens_once_however_many_ask
                a_return_with_a_key_happens_once_however_many_ask
                a_sku_that_all_create_at_once_is_created_once
            }
        }
    };
}

macro_rules! strategies {
    ($kind:ident, $of:expr; $($strategy:ident = $word:expr),*) => {
        mod $kind {
            #[allow(clippy::wildcard_imports)]
            use super::*;

            $(mod $strategy {
                #[allow(clippy::wildcard_imports)]
                use super::*;

                subject!(four_workers, nodes($of, $word, 1, 4).await);
                subject!(two_nodes, nodes($of, $word, 2, 2).await);
            })*
        }
    };
}

mod on_disk {
    use super::*;
    subject!(embedded, Some(super::embedded()));
}

strategies!(postgres, Kind::Postgres; row_lock = Strategy::RowLock, optimistic = Strategy::Optimistic,
    skip_locked = Strategy::SkipLocked, redlock = Strategy::Redlock);
strategies!(mariadb, Kind::MariaDb; row_lock = Strategy::RowLock, optimistic = Strategy::Optimistic,
    skip_locked = Strategy::SkipLocked, redlock = Strategy::Redlock);

macro_rules! hot_stores {
    ($($module:ident = $hot:expr, $ledger:expr;)+) => {
        $(mod $module {
            #[allow(clippy::wildcard_imports)]
            use super::*;

            subject!(four_workers, hot_nodes($hot, $ledger, 1, 4).await);
            subject!(two_nodes, hot_nodes($hot, $ledger, 2, 2).await);
        })+
    };
}

hot_stores! {
    redis_on_postgres = Hot::Single, Kind::Postgres;
    redis_on_mariadb = Hot::Single, Kind::MariaDb;
    redis_cluster_on_postgres = Hot::Cluster, Kind::Postgres;
}

fn hold(answer: &Answer) -> Option<&Hold> {
    match answer {
        Ok(Outcome::Held { hold, .. }) => Some(hold),
        _ => None,
    }
}

async fn exactly_as_many_are_served_as_there_are_units(shop: &Shop) {
    shop.stocked(set("HOT", 137)).await;
    let carts = (0..2000).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).into()).collect();
    let answers = shop.all_at_once(carts).await;
    let ids: BTreeSet<_> = answers.iter().filter_map(hold).map(|h| h.id).collect();
    assert_eq!(ids.len(), 137);
    let refused = answers.iter().filter(|a| matches!(a, Err(Refusal::SoldOut { may_return: true, .. }))).count();
    assert_eq!(refused, 2000 - 137);
    let all = check(shop.engine()).await;
    assert_eq!((all.stocks[0].available, all.stocks[0].held), (0, 137));
}

async fn carts_of_many_units_never_share_one(shop: &Shop) {
    shop.stocked(set("HOT", 500)).await;
    let carts = (0..600).map(|n| cart(&format!("O{n}"), &[("HOT", 1 + n % 7)]).into()).collect();
    let answers = shop.all_at_once(carts).await;
    let units: u64 = answers.iter().filter_map(hold).map(|h| h.lines.quantity_of(&sku("HOT"))).sum();
    assert_eq!(units, 500, "there was always somebody who wanted one more");
    assert_eq!(check(shop.engine()).await.stocks[0].held, 500);
}

async fn the_same_request_from_many_clicks_is_one_hold(shop: &Shop) {
    shop.stocked(set("HOT", 1000)).await;
    // Each order's clicks go to every node.
    let carts = (0..1000).map(|n| cart(&format!("O{}", n / 25), &[("HOT", 2)]).into()).collect();
    let answers = shop.all_at_once(carts).await;
    let ids: BTreeSet<_> = answers.iter().filter_map(hold).map(|h| h.id).collect();
    assert_eq!(ids.len(), 40);
    let made = answers.iter().filter(|a| matches!(a, Ok(Outcome::Held { replay: false, .. }))).count();
    let replayed = answers.iter().filter(|a| matches!(a, Ok(Outcome::Held { replay: true, .. }))).count();
    assert_eq!((made, replayed), (40, 960));
    assert_eq!(check(shop.engine()).await.stocks[0].held, 80);
}

async fn releases_and_confirmations_race_and_each_hold_ends_once(shop: &Shop) {
    shop.stocked(set("HOT", 200)).await;
    let carts = (0..200).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).into()).collect();
    let held = shop.all_at_once(carts).await;
    let mut race: Vec<Command> = Vec::new();
    for hold in held.iter().map(|a| hold(a).unwrap().id) {
        race.push(Command::Release { hold });
        race.push(Command::Confirm { hold, payment_ref: None });
        race.push(Command::Release { hold });
    }
    // Others want whatever is given back.
    race.extend((0..100).map(|n| cart(&format!("P{n}"), &[("HOT", 1)]).into()));
    let order: Vec<usize> = (0..race.len()).map(|n| n * 331 % race.len()).collect();
    assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), race.len(), "every command, in a mixed order");
    let answers = shop.all_at_once(order.iter().map(|n| race[*n].clone()).collect()).await;
    for (n, answer) in order.iter().zip(&answers) {
        let Command::Confirm { hold, .. } = &race[*n] else {
            continue;
        };
        let status = shop.engine().hold(*hold).await.unwrap().unwrap().status;
        match answer {
            Ok(Outcome::Order(order)) => assert_eq!((status, order.hold_id), (HoldStatus::Confirmed, *hold)),
            Err(Refusal::StockGone(_)) => assert_eq!(status, HoldStatus::Released),
            other => panic!("{other:?}"),
        }
    }
    let all = check(shop.engine()).await;
    let sold = answers.iter().filter(|a| matches!(a, Ok(Outcome::Order(_)))).count() as u64;
    let more = answers.iter().filter(|a| hold(a).is_some()).count() as u64;
    assert_eq!((all.stocks[0].sold, all.stocks[0].held), (sold, more));
    assert_eq!(all.stocks[0].total(), 200);
}

async fn a_limit_is_exact_under_two_hundred_clicks(shop: &Shop) {
    shop.stocked(SetStock { limit_per_customer: Some(Some(3)), ..set("HOT", 1000) }).await;
    let carts = (0..200).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).by("ann").into()).collect();
    let answers = shop.all_at_once(carts).await;
    let held: Vec<_> = answers.iter().filter_map(hold).map(|h| h.id).collect();
    assert_eq!(held.len(), 3);
    assert_eq!(answers.iter().filter(|a| matches!(a, Err(Refusal::CustomerLimit { has: 3, .. }))).count(), 197);
    // One is bought and two are released while two hundred others ask: at no time may more than three be hers.
    let mut race: Vec<Command> = (200..400).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).by("ann").into()).collect();
    race.insert(50, Command::Confirm { hold: held[0], payment_ref: None });
    race.insert(100, Command::Release { hold: held[1] });
    race.insert(150, Command::Release { hold: held[2] });
    let answers = shop.all_at_once(race).await;
    assert!(answers.iter().filter(|a| hold(a).is_some()).count() <= 2, "{answers:?}");
    let all = check(shop.engine()).await;
    let more = answers.iter().filter_map(hold).count() as u64;
    let counters = (all.stocks[0].available, all.stocks[0].held, all.stocks[0].sold);
    assert_eq!(counters, (999 - more, more, 1), "losers burn nothing");
}

async fn a_payment_event_told_twenty_times_at_once_has_one_effect(shop: &Shop) {
    shop.stocked(set("HOT", 5)).await;
    for round in 0..5 {
        let order = format!("O{round}");
        shop.nodes[0].lanes.submit(cart(&order, &[("HOT", 1)]).into()).await.unwrap().unwrap();
        let event: Command = captured(&format!("pi-{order}")).order(&order).into();
        let answers = shop.all_at_once(vec![event; 20]).await;
        let effects = answers.iter().filter(|a| matches!(a, Ok(Outcome::Settled(Settlement::Confirmed(_))))).count();
        let seen = answers.iter().filter(|a| matches!(a, Ok(Outcome::Settled(Settlement::Duplicate)))).count();
        assert_eq!((effects, seen), (1, 19), "{answers:?}");
    }
    assert_eq!(check(shop.engine()).await.stocks[0].sold, 5);
}

async fn one_payment_told_by_different_events_at_once_has_one_effect(shop: &Shop) {
    shop.stocked(set("HOT", 5)).await;
    for round in 0..5 {
        let order = format!("O{round}");
        shop.nodes[0].lanes.submit(cart(&order, &[("HOT", 1)]).into()).await.unwrap().unwrap();
        let told = |n| captured(&format!("pi-{order}")).order(&order).event(&format!("evt-{order}-{n}")).into();
        let answers = shop.all_at_once((0..20).map(told).collect()).await;
        let effects = answers.iter().filter(|a| matches!(a, Ok(Outcome::Settled(Settlement::Confirmed(_))))).count();
        assert_eq!(effects, 1, "{answers:?}");
    }
    let all = check(shop.engine()).await;
    assert_eq!((all.stocks[0].sold, all.refunds.len()), (5, 0));
}

/// Nobody knows the order yet, so there is no row of it that could be locked.
async fn different_facts_of_one_payment_told_at_once_are_all_kept(shop: &Shop) {
    shop.stocked(set("HOT", 100)).await;
    for round in 0..20 {
        let (id, order) = (format!("pi-{round}"), format!("O{round}"));
        let facts = vec![
            authorized(&id).order(&order).into(),
            captured(&id).order(&order).into(),
            refunded(&id, 7).order(&order).into(),
        ];
        shop.all_at_once(facts).await;
        let told = shop.engine().payments(None, 0, 100).await.unwrap().items;
        let told = told.iter().find(|p| p.key == payment(&id)).unwrap();
        assert_eq!((told.authorized, told.captured, told.refunded), (true, true, 7), "{round}: {told:?}");
    }
}

async fn carts_that_share_skus_crosswise_never_surface_a_deadlock(shop: &Shop) {
    let names: Vec<String> = (0..12).map(|n| format!("S{n}")).collect();
    for name in &names {
        shop.stocked(set(name, 1_000)).await;
    }
    let asked = |n: usize| -> Command {
        let at = |k: usize| names[(n * 7 + k * 5) % names.len()].as_str();
        cart(&format!("O{n}"), &[(at(0), 1), (at(1), 1), (at(2), 1), (at(3), 1)]).into()
    };
    let held = shop.all_at_once((0..300).map(asked).collect()).await;
    // What ends names no SKU: which rows to lock is only known after looking.
    let ends = |(n, answer): (usize, &Answer)| -> Command {
        let hold = hold(answer).unwrap().id;
        match n % 3 {
            0 => Command::Release { hold },
            1 => Command::Confirm { hold, payment_ref: None },
            _ => captured(&format!("pi-{n}")).order(&format!("O{n}")).into(),
        }
    };
    let mut race: Vec<Command> = held.iter().enumerate().map(ends).collect();
    race.extend((300..500).map(asked));
    let answers = shop.all_at_once(race).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let all = check(shop.engine()).await;
    let sold: u64 = all.stocks.iter().map(|s| s.sold).sum();
    let held: u64 = all.stocks.iter().map(|s| s.held).sum();
    assert_eq!((sold, held), (200 * 4, 200 * 4));
}

async fn a_payment_that_meets_the_hold_of_its_order_ends_settled(shop: &Shop) {
    shop.stocked(set("HOT", 100)).await;
    let last = shop.nodes.last().unwrap();
    for round in 0..40 {
        let (id, order) = (format!("pi-{round}"), format!("O{round}"));
        let paid = shop.nodes[0].lanes.submit(captured(&id).order(&order).into());
        let held = last.lanes.submit(cart(&order, &[("HOT", 1)]).into());
        let (paid, held) = tokio::join!(paid, held);
        assert!(matches!(paid, Ok(Ok(Outcome::Settled(_)))) && matches!(held, Ok(Ok(_))), "{paid:?} {held:?}");
    }
    last.lanes.submit(Command::Sweep { limit: 100 }).await.unwrap().unwrap();
    let all = check(shop.engine()).await;
    let strays: Vec<_> = all.payments.iter().filter(|p| p.status != PaymentStatus::Settled).collect();
    assert!(strays.is_empty(), "{strays:?}");
    assert_eq!((all.orders.len(), all.stocks[0].sold), (40, 40));
}

async fn lapsed_units_wanted_by_all_at_once_have_one_owner(shop: &Shop) {
    for round in 0..8 {
        let (name, start) = (format!("S{round}"), START.plus_seconds(round * 1_000));
        let mut make = vec![Command::SetStock(set(&name, 5))];
        make.extend((0..5).map(|n| cart(&format!("O{round}-{n}"), &[(&name, 1)]).ttl(60).into()));
        let held = shop.nodes[0].engine.apply(make, Now::At(start)).await.unwrap();
        let later = Now::At(start.plus_seconds(60));
        let mut race = Vec::new();
        for (n, hold) in held.iter().filter_map(hold).enumerate() {
            race.push(vec![cart(&format!("P{round}-{n}"), &[(&name, 1)]).into()]);
            race.push(vec![Command::Confirm { hold: hold.id, payment_ref: None }]);
            race.push(vec![captured(&format!("pi-{round}-{n}")).order(&format!("O{round}-{n}")).into()]);
            race.push(vec![Command::Sweep { limit: 2 }, Command::Release { hold: hold.id }]);
        }
        let asked = race.into_iter().enumerate().map(|(n, batch)| {
            let engine = shop.nodes[(n / 4 + n) % shop.nodes.len()].engine.clone();
            tokio::spawn(async move { engine.apply(batch, later).await.unwrap() })
        });
        for answers in asked.collect::<Vec<_>>() {
            answers.await.unwrap();
        }
        let all = check(shop.engine()).await;
        let stock = all.stock(&sku(&name)).unwrap();
        assert_eq!(stock.total(), 5);
        // Each payment has an order or goes back: check() has seen to it.
        assert_eq!(all.payments.len(), 5 * (round as usize + 1));
    }
}

/// The unit can be had before the sweep, and after it; so it can be had while it runs.
async fn a_sweep_in_between_hides_no_unit(shop: &Shop) {
    let last = shop.nodes.last().unwrap();
    for round in 0..60 {
        let (name, start) = (format!("S{round}"), START.plus_seconds(round * 1_000));
        let make = vec![Command::SetStock(set(&name, 1)), cart(&format!("O{round}"), &[(&name, 1)]).ttl(60).into()];
        assert!(shop.nodes[0].engine.apply(make, Now::At(start)).await.unwrap().iter().all(Result::is_ok));
        let later = Now::At(start.plus_seconds(60));
        let swept = shop.nodes[0].engine.apply(vec![Command::Sweep { limit: 9 }], later);
        let held = last.engine.apply(vec![cart(&format!("P{round}"), &[(&name, 1)]).into()], later);
        let (swept, held) = tokio::join!(swept, held);
        assert!(matches!(swept.unwrap()[..], [Ok(_)]));
        let held = held.unwrap();
        assert!(matches!(held[..], [Ok(Outcome::Held { .. })]), "{round}: {held:?}");
    }
}

async fn an_adjustment_with_a_key_happens_once_however_many_ask(shop: &Shop) {
    shop.stocked(set("HOT", 10)).await;
    for round in 0..5 {
        let mut command = adjust("HOT", 3);
        let Command::AdjustStock { key, .. } = &mut command else { panic!("{command:?}") };
        *key = Some(reference(&format!("delivery-{round}")));
        let answers = shop.all_at_once(vec![command; 20]).await;
        let changes = answers.iter().filter(|a| matches!(a, Ok(Outcome::Stock { changed: true, .. }))).count();
        assert_eq!((changes, answers.iter().filter(|a| a.is_ok()).count()), (1, 20), "{answers:?}");
    }
    assert_eq!(check(shop.engine()).await.stocks[0].available, 25);
}

async fn a_return_with_a_key_happens_once_however_many_ask(shop: &Shop) {
    shop.stocked(set("HOT", 10)).await;
    let lane = &shop.nodes[0].lanes;
    let held = lane.submit(cart("O1", &[("HOT", 10)]).by("ann").into()).await.unwrap();
    lane.submit(Command::Confirm { hold: hold(&held).unwrap().id, payment_ref: None }).await.unwrap().unwrap();
    for round in 0..5 {
        let key = Some(reference(&format!("parcel-{round}")));
        let back = Command::Return { order: order_id("O1"), lines: lines(&[("HOT", 1)]), key };
        let answers = shop.all_at_once(vec![back; 20]).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
    let all = check(shop.engine()).await;
    assert_eq!((all.stocks[0].available, all.stocks[0].sold), (5, 5));
}

async fn a_sku_that_all_create_at_once_is_created_once(shop: &Shop) {
    for round in 0..10 {
        let name = format!("S{round}");
        let answers = shop.to_all(&[Command::SetStock(set(&name, 9))], Now::Clock).await;
        let made = answers.iter().filter(|a| matches!(a[0], Ok(Outcome::Stock { created: true, .. }))).count();
        assert_eq!(made, 1, "{answers:?}");
    }
    let all = check(shop.engine()).await;
    assert_eq!((all.stocks.len(), all.ledger.len()), (10, 10));
}

/// Whoever locks rows waits for whoever has; nothing has to be decided again.
async fn nodes_that_lock_wait_for_one_another(kind: Kind) {
    let Some(shop) = nodes(kind, Strategy::RowLock, 2, 3).await else { return };
    shop.stocked(set("HOT", 10_000)).await;
    for round in 0..10 {
        let carts = (0..60).map(|n| cart(&format!("O{round}-{n}"), &[("HOT", 1)]).into()).collect();
        assert!(shop.all_at_once(carts).await.iter().all(Result::is_ok));
    }
    for node in &shop.nodes {
        assert_eq!(node.engine.health().await.retries, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_on_postgres_that_lock_wait_for_one_another() {
    nodes_that_lock_wait_for_one_another(Kind::Postgres).await;
}

/// The embedded engine on its own.
async fn embedded_shop(stock: SetStock) -> Shop {
    let shop = embedded();
    shop.stocked(stock).await;
    shop
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_lane_answers_at_once_and_applies_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let embedded: Arc<dyn Engine> = Arc::new(Embedded::open(folder.path()).unwrap());
    let gated = Arc::new(Gated::new(embedded.clone()));
    let lanes = Lanes::start(gated.clone(), &LanesConfig { depth: 8, max_batch: 4, ..LanesConfig::default() }).unwrap();
    let first = tokio::spawn(submit(lanes.clone(), Command::SetStock(set("HOT", 100))));
    gated.entered().await;
    let mut waiting = Vec::new();
    for n in 0..8 {
        let mut future = Box::pin(submit(lanes.clone(), cart(&format!("O{n}"), &[("HOT", 1)]).into()));
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waiting.push(future);
    }
    assert_eq!(lanes.waiting(), 8);
    for n in 0..50 {
        let mut future = Box::pin(submit(lanes.clone(), cart(&format!("X{n}"), &[("HOT", 1)]).into()));
        let at_once = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(at_once, Poll::Ready(Err(EngineError::Overloaded)), "the gate is still closed");
    }
    gated.open();
    first.await.unwrap().unwrap().unwrap();
    for future in waiting {
        future.await.unwrap().unwrap();
    }
    let all = check(&*embedded).await;
    assert_eq!(all.stocks[0].held, 8);
    assert!(all.holds.iter().all(|h| h.order_id.as_str().starts_with('O')), "nothing was applied of what was refused");
    submit(lanes, cart("X0", &[("HOT", 1)]).into()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_slow_in_one_lane_does_not_stand_in_the_way_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let embedded: Arc<dyn Engine> = Arc::new(Embedded::open(folder.path()).unwrap());
    embedded.apply(vec![Command::SetStock(set("HOT", 10))], Now::Clock).await.unwrap();
    let gated = Arc::new(Gated::with_free_holds(embedded.clone()));
    let lanes = Lanes::start(gated.clone(), &LanesConfig { depth: 4, max_batch: 4, ..LanesConfig::default() }).unwrap();
    let first = tokio::spawn(submit(lanes.clone(), Command::SetStock(set("COLD", 1))));
    gated.entered().await;
    let mut waiting = Vec::new();
    for n in 0..4 {
        let mut future = Box::pin(submit(lanes.clone(), Command::SetStock(set(&format!("S{n}"), 1))));
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waiting.push(future);
    }
    assert_eq!(lanes.waiting(), 4);
    let refused = submit(lanes.clone(), Command::SetStock(set("S9", 1))).await;
    assert_eq!(refused, Err(EngineError::Overloaded), "each lane has its own depth");
    for n in 0..10 {
        submit(lanes.clone(), cart(&format!("O{n}"), &[("HOT", 1)]).into()).await.unwrap().unwrap();
    }
    assert!(!first.is_finished() && !lanes.is_closed());
    gated.open();
    first.await.unwrap().unwrap().unwrap();
    for future in waiting {
        future.await.unwrap().unwrap();
    }
    assert_eq!((lanes.waiting(), check(&*embedded).await.stocks.len()), (0, 6));
}

async fn submit(lanes: Lanes, command: Command) -> Result<Answer, EngineError> {
    lanes.submit(command).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_caller_that_hangs_up_leaves_a_whole_hold_or_none() {
    let shop = embedded_shop(set("HOT", 10_000)).await;
    shop.stocked(set("COLD", 10_000)).await;
    let lanes = &shop.nodes[0].lanes;
    let asked = |n: u64| -> Cart { cart(&format!("O{n}"), &[("HOT", 1), ("COLD", 1 + n % 3)]) };
    for n in 0..2000 {
        let mut future = Box::pin(submit(lanes.clone(), asked(n).into()));
        // One in four hangs up before the request has left; the others after, at no particular moment.
        if n % 4 != 0 {
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        if n % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    // The lane serves in order: once this is answered, so is everything before it.
    lanes.submit(Command::Sweep { limit: 1 }).await.unwrap().unwrap();
    let all = check(shop.engine()).await;
    for hold in &all.holds {
        let n: u64 = hold.order_id.as_str()[1..].parse().unwrap();
        assert_eq!(hold.lines, asked(n).0.lines, "whole");
    }
    let again = shop.all_at_once((0..2000).map(|n| asked(n).into()).collect()).await;
    assert!(again.iter().all(|a| hold(a).is_some()), "business as usual");
    assert!(all.holds.len() >= 1000, "most requests had left: {}", all.holds.len());
    let never_left = again.iter().step_by(4).filter(|a| matches!(a, Ok(Outcome::Held { replay: false, .. }))).count();
    assert_eq!(never_left, 500);
    let all = check(shop.engine()).await;
    assert_eq!((all.stocks[1].held, all.holds.len()), (2000, 2000));
    let one = HoldFilter { order_id: Some(order_id("O1")), ..HoldFilter::default() };
    assert_eq!(shop.engine().holds(one, 10).await.unwrap().items.len(), 1);
    assert_eq!(everything(shop.engine()).await.holds.len(), 2000);
}
