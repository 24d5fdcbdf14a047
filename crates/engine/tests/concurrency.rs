//! Many shoppers at once, through the lanes, on one hot SKU: exactly as many are served as there are units.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::gate::Gated;
use common::invariants::{check, everything};
use common::make::{Cart, cart, order_id, set, sku};
use holdfast_engine::domain::{Command, Hold, HoldStatus, Outcome, Refusal, SetStock};
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Answer, Engine, EngineError, HoldFilter, Lanes, LanesConfig};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::task::JoinSet;

struct Shop {
    _folder: tempfile::TempDir,
    engine: Arc<dyn Engine>,
    lanes: Lanes,
}

async fn shop(stock: SetStock) -> Shop {
    let folder = tempfile::tempdir().unwrap();
    let engine: Arc<dyn Engine> = Arc::new(Embedded::open(folder.path()).unwrap());
    let lanes = Lanes::start(engine.clone(), &LanesConfig::default()).unwrap();
    lanes.submit(Command::SetStock(stock)).await.unwrap().unwrap();
    Shop { _folder: folder, engine, lanes }
}

/// Submits everything at once, each from a task of its own; the answers in the order of the requests.
async fn all_at_once(lanes: &Lanes, commands: Vec<Command>) -> Vec<Answer> {
    let mut tasks = JoinSet::new();
    for (n, command) in commands.into_iter().enumerate() {
        let lanes = lanes.clone();
        tasks.spawn(async move { (n, lanes.submit(command).await.unwrap()) });
    }
    let mut answers = tasks.join_all().await;
    answers.sort_by_key(|(n, _)| *n);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn hold(answer: &Answer) -> Option<&Hold> {
    match answer {
        Ok(Outcome::Held { hold, .. }) => Some(hold),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_as_many_are_served_as_there_are_units() {
    let shop = shop(set("HOT", 137)).await;
    let carts = (0..2000).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).into()).collect();
    let answers = all_at_once(&shop.lanes, carts).await;
    let ids: BTreeSet<_> = answers.iter().filter_map(hold).map(|h| h.id).collect();
    assert_eq!(ids.len(), 137);
    let refused = answers.iter().filter(|a| matches!(a, Err(Refusal::SoldOut { may_return: true, .. }))).count();
    assert_eq!(refused, 2000 - 137);
    let all = check(&*shop.engine).await;
    assert_eq!((all.stocks[0].available, all.stocks[0].held), (0, 137));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn carts_of_many_units_never_share_one() {
    let shop = shop(set("HOT", 500)).await;
    let carts = (0..600).map(|n| cart(&format!("O{n}"), &[("HOT", 1 + n % 7)]).into()).collect();
    let answers = all_at_once(&shop.lanes, carts).await;
    let units: u64 = answers.iter().filter_map(hold).map(|h| h.lines.quantity_of(&sku("HOT"))).sum();
    assert_eq!(units, 500, "there was always somebody who wanted one more");
    assert_eq!(check(&*shop.engine).await.stocks[0].held, 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_request_from_many_clicks_is_one_hold() {
    let shop = shop(set("HOT", 1000)).await;
    let carts = (0..1000).map(|n| cart(&format!("O{}", n % 40), &[("HOT", 2)]).into()).collect();
    let answers = all_at_once(&shop.lanes, carts).await;
    let ids: BTreeSet<_> = answers.iter().filter_map(hold).map(|h| h.id).collect();
    assert_eq!(ids.len(), 40);
    let made = answers.iter().filter(|a| matches!(a, Ok(Outcome::Held { replay: false, .. }))).count();
    let replayed = answers.iter().filter(|a| matches!(a, Ok(Outcome::Held { replay: true, .. }))).count();
    assert_eq!((made, replayed), (40, 960));
    assert_eq!(check(&*shop.engine).await.stocks[0].held, 80);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn releases_and_confirmations_race_and_each_hold_ends_once() {
    let shop = shop(set("HOT", 200)).await;
    let carts = (0..200).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).into()).collect();
    let held = all_at_once(&shop.lanes, carts).await;
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
    let answers = all_at_once(&shop.lanes, order.iter().map(|n| race[*n].clone()).collect()).await;
    for (n, answer) in order.iter().zip(&answers) {
        let Command::Confirm { hold, .. } = &race[*n] else {
            continue;
        };
        let status = shop.engine.hold(*hold).await.unwrap().unwrap().status;
        match answer {
            Ok(Outcome::Order(order)) => assert_eq!((status, order.hold_id), (HoldStatus::Confirmed, *hold)),
            Err(Refusal::StockGone(_)) => assert_eq!(status, HoldStatus::Released),
            other => panic!("{other:?}"),
        }
    }
    let all = check(&*shop.engine).await;
    let sold = answers.iter().filter(|a| matches!(a, Ok(Outcome::Order(_)))).count() as u64;
    let more = answers.iter().filter(|a| hold(a).is_some()).count() as u64;
    assert_eq!((all.stocks[0].sold, all.stocks[0].held), (sold, more));
    assert_eq!(all.stocks[0].total(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_limit_is_exact_under_two_hundred_clicks() {
    let limited = SetStock { limit_per_customer: Some(Some(3)), ..set("HOT", 1000) };
    let shop = shop(limited).await;
    let carts = (0..200).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).by("ann").into()).collect();
    let answers = all_at_once(&shop.lanes, carts).await;
    let held: Vec<_> = answers.iter().filter_map(hold).map(|h| h.id).collect();
    assert_eq!(held.len(), 3);
    assert_eq!(answers.iter().filter(|a| matches!(a, Err(Refusal::CustomerLimit { has: 3, .. }))).count(), 197);
    all_at_once(&shop.lanes, held.iter().map(|id| Command::Confirm { hold: *id, payment_ref: None }).collect()).await;
    let carts = (200..400).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).by("ann").into()).collect();
    let answers = all_at_once(&shop.lanes, carts).await;
    assert!(answers.iter().all(|a| matches!(a, Err(Refusal::CustomerLimit { .. }))));
    let all = check(&*shop.engine).await;
    assert_eq!((all.stocks[0].available, all.stocks[0].held, all.stocks[0].sold), (997, 0, 3), "losers burn nothing");
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

async fn submit(lanes: Lanes, command: Command) -> Result<Answer, EngineError> {
    lanes.submit(command).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_caller_that_hangs_up_leaves_a_whole_hold_or_none() {
    let shop = shop(set("HOT", 10_000)).await;
    shop.lanes.submit(Command::SetStock(set("COLD", 10_000))).await.unwrap().unwrap();
    let asked = |n: u64| -> Cart { cart(&format!("O{n}"), &[("HOT", 1), ("COLD", 1 + n % 3)]) };
    for n in 0..2000 {
        let mut future = Box::pin(submit(shop.lanes.clone(), asked(n).into()));
        // One in four hangs up before the request has left; the others after, at no particular moment.
        if n % 4 != 0 {
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        if n % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    // The lane serves in order: once this is answered, so is everything before it.
    shop.lanes.submit(Command::Sweep { limit: 1 }).await.unwrap().unwrap();
    let all = check(&*shop.engine).await;
    for hold in &all.holds {
        let n: u64 = hold.order_id.as_str()[1..].parse().unwrap();
        assert_eq!(hold.lines, asked(n).0.lines, "whole");
    }
    let again = all_at_once(&shop.lanes, (0..2000).map(|n| asked(n).into()).collect()).await;
    assert!(again.iter().all(|a| hold(a).is_some()), "business as usual");
    assert!(all.holds.len() >= 1000, "most requests had left: {}", all.holds.len());
    let never_left = again.iter().step_by(4).filter(|a| matches!(a, Ok(Outcome::Held { replay: false, .. }))).count();
    assert_eq!(never_left, 500);
    let all = check(&*shop.engine).await;
    assert_eq!((all.stocks[1].held, all.holds.len()), (2000, 2000));
    let one = HoldFilter { order_id: Some(order_id("O1")), ..HoldFilter::default() };
    assert_eq!(shop.engine.holds(one, 10).await.unwrap().items.len(), 1);
    assert_eq!(everything(&*shop.engine).await.holds.len(), 2000);
}
