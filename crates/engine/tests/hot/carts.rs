//! Carts of several partitions, stopped at each of their steps. Several partitions on one server, behind the proxy.

use super::halves::{At, die};
use super::rig::{HEALED, Rig, ask, confirm, held, insist, settled, stocked, swept};
use crate::common::databases::Kind;
use crate::common::make::{cart, order_id, sku};
use crate::common::proxy::{Cut, Proxy};
use holdfast_engine::domain::{Command, HoldStatus, Outcome, Refusal};
use holdfast_engine::{Engine, EngineError, redis};
use std::sync::Arc;
use std::time::Duration;

/// The steps of a cart that is held, by the words to Redis: the second, once the first was said.
const STEPS: [(&str, &str); 6] =
    [("", "open"), ("", "take"), ("take", "take"), ("", "seal"), ("", "fix"), ("", "complete")];
/// Those of a cart whose second part is refused.
const REFUSED: [(&str, &str); 2] = [("", "drop"), ("", "abort")];
/// Two SKUs of different partitions out of eight.
const PAIR: [&str; 2] = ["HOT", "WARM"];

async fn several() -> Option<Rig> {
    let mut rig = Rig::start(Kind::Postgres, &[]).await?;
    rig.store.config.partitions = Some(8);
    Some(rig)
}

fn wanted(order: &str) -> Command {
    cart(order, &[(PAIR[0], 2), (PAIR[1], 1)]).ttl(3_600).into()
}

async fn counts(engine: &dyn Engine, name: &str) -> (u64, u64, u64) {
    let stock = engine.stock(&sku(name)).await.unwrap().unwrap();
    (stock.available, stock.held, stock.sold)
}

/// Somebody came to where the proxy waits.
async fn reached(proxy: &mut Proxy) {
    assert!(tokio::time::timeout(HEALED, proxy.done()).await.is_ok(), "nobody came so far");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cart_whose_node_dies_at_any_step_is_made_or_given_back() {
    let Some(rig) = several().await else { return };
    let survivor = rig.node().await;
    for name in PAIR {
        stocked(&*survivor, name, 1000).await;
    }
    stocked(&*survivor, "COLD", 0).await;
    let (mut orders, mut refused) = (Vec::new(), Vec::new());
    for cut in [Cut::Silence, Cut::Deaf] {
        for (n, (first, word)) in STEPS.into_iter().enumerate() {
            let order = format!("S{n}{cut:?}");
            assert!(die(&rig, At::Redis(first, word, cut), vec![wanted(&order)]).await, "{first} {word} {cut:?}");
            // What was sealed is made whole, not begun anew.
            let is_sealed = n > 3 || (n == 3 && cut == Cut::Deaf);
            orders.push((order, is_sealed));
        }
        for (n, (first, word)) in REFUSED.into_iter().enumerate() {
            let order = format!("R{n}{cut:?}");
            let asked = cart(&order, &[("COLD", 1), (PAIR[0], 1), (PAIR[1], 1)]);
            assert!(die(&rig, At::Redis(first, word, cut), vec![asked.into()]).await, "{first} {word} {cut:?}");
            refused.push(order);
        }
    }
    // Half of them are asked for at once, the others when what was left behind is done with.
    let (now, later): (Vec<_>, Vec<_>) = orders.iter().enumerate().partition(|(n, _)| n % 2 == 1);
    let retried = now.iter().map(|(_, (order, _))| insist(&*survivor, wanted(order)));
    let mut answers = futures_util::future::join_all(retried).await;
    settled(&rig.store, &*survivor).await;
    let other = rig.node().await;
    for (_, (order, _)) in &later {
        answers.push(insist(&*other, wanted(order)).await);
    }
    let mut holds = Vec::new();
    for ((_, (order, is_sealed)), answer) in now.iter().chain(&later).zip(answers) {
        let Ok(Outcome::Held { hold, replay }) = answer else { panic!("{answer:?}") };
        assert_eq!(replay, *is_sealed, "{order}");
        holds.push(hold);
    }
    for order in &refused {
        let again = ask(&*other, cart(order, &[("COLD", 1), (PAIR[0], 1)])).await.unwrap();
        assert!(matches!(again, Err(Refusal::SoldOut { .. })), "{again:?}");
    }
    settled(&rig.store, &*survivor).await;
    let count = orders.len() as u64;
    assert_eq!(counts(&*survivor, PAIR[0]).await, (1000 - 2 * count, 2 * count, 0));
    assert_eq!(counts(&*survivor, PAIR[1]).await, (1000 - count, count, 0));
    for hold in &holds {
        ask(&*other, confirm(hold.id)).await.unwrap().unwrap();
        assert_eq!(survivor.hold(hold.id).await.unwrap().unwrap().status, HoldStatus::Confirmed);
    }
    let all = swept(&rig.store, &*survivor).await;
    assert_eq!(all.orders.len() as u64, count);
    assert_eq!(counts(&*survivor, PAIR[0]).await, (1000 - 2 * count, 0, 2 * count));
}

/// What it said arrives when others have long been done with its cart.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_step_that_arrives_late_makes_no_cart_twice() {
    let Some(rig) = several().await else { return };
    let survivor = rig.node().await;
    for name in PAIR {
        stocked(&*survivor, name, 1000).await;
    }
    let slow = STEPS.iter().enumerate().map(async |(n, (first, word))| {
        let mut proxy = Proxy::start(rig.redis.port()).await;
        let mut config = rig.through(&proxy);
        config.timeout = Duration::from_mins(1);
        let engine = redis::open(&config).await.unwrap();
        proxy.plan_after(first, word, Cut::Pause);
        let order = format!("S{n}");
        let asked = {
            let (engine, command) = (engine.clone(), wanted(&order));
            tokio::spawn(async move { ask(&*engine, command).await })
        };
        reached(&mut proxy).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!asked.is_finished(), "nobody is answered before {word}");
        // By then it was given up or completed, and somebody else has bought it.
        let again = held(&insist(&*survivor, wanted(&order)).await).clone();
        if n % 2 == 1 {
            insist(&*survivor, confirm(again.id)).await.unwrap();
        }
        proxy.go_on();
        match asked.await.unwrap() {
            Ok(Err(Refusal::AlreadyConfirmed)) => assert_eq!(n % 2, 1),
            Ok(answer) => assert_eq!((held(&answer).id, n % 2), (again.id, 0), "{word}"),
            Err(error) => assert!(matches!(error, EngineError::Unknown(_)), "{error:?}"),
        }
        let order = survivor.order(&order_id(&order)).await.unwrap();
        assert_eq!(order.is_some(), n % 2 == 1);
        engine
    });
    let _slow: Vec<Arc<dyn Engine>> = futures_util::future::join_all(slow).await;
    let half = STEPS.len() as u64 / 2;
    settled(&rig.store, &*survivor).await;
    assert_eq!(counts(&*survivor, PAIR[0]).await, (1000 - 4 * half, 2 * half, 2 * half));
    swept(&rig.store, &*survivor).await;
}

/// Leaves a cart behind that is sealed and of which one part counts: two nodes die of it, the second in recovering it.
async fn leave_half(rig: &Rig, command: Command) {
    rig.alone().await;
    assert!(die(rig, At::Redis("", "seal", Cut::Deaf), vec![command]).await);
    let mut proxy = Proxy::start(rig.redis.port()).await;
    let config = rig.through(&proxy);
    let life = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    proxy.plan_after("fix", "fix", Cut::Silence);
    let node = life.spawn(async move { redis::open(&config).await.unwrap() }).await.unwrap();
    reached(&mut proxy).await;
    drop(node);
    life.shutdown_background();
    proxy.cut();
}

/// The part that counts lapses before anybody finds the cart: it cannot be made whole any more, and never was.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cart_that_lapses_half_made_never_was() {
    let Some(rig) = several().await else { return };
    let engine = rig.node().await;
    for name in PAIR {
        stocked(&*engine, name, 10).await;
    }
    drop(engine);
    let command: Command = cart("HALF", &[(PAIR[0], 2), (PAIR[1], 1)]).ttl(8).into();
    leave_half(&rig, command.clone()).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let engine = rig.node().await;
    insist(&*engine, Command::Sweep { limit: 100 }).await.unwrap();
    let all = settled(&rig.store, &*engine).await;
    assert_eq!(all.holds, [], "the ledger never heard of it");
    for name in PAIR {
        assert_eq!(counts(&*engine, name).await, (10, 0, 0));
    }
    let answer = insist(&*engine, command).await;
    assert!(matches!(answer, Ok(Outcome::Held { replay: false, .. })), "{answer:?}");
    swept(&rig.store, &*engine).await;
}

/// Of a cart that is sealed one part counts already, and for seconds nobody goes on: meanwhile others log far more than the
/// ledger is told at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cart_of_which_one_part_counts_keeps_nobody_waiting_for_ever() {
    let Some(rig) = several().await else { return };
    let engine = rig.node().await;
    for name in PAIR {
        stocked(&*engine, name, 1_000_000).await;
    }
    drop(engine);
    leave_half(&rig, wanted("HALF")).await;
    // The third is busy before it looks for carts that were left.
    let engine = rig.node().await;
    let shop = |n: usize| {
        let engine = engine.clone();
        async move {
            for visit in 0..50 {
                insist(&*engine, cart(&format!("L{n}-{visit}"), &[(PAIR[0], 1), (PAIR[1], 1)]).ttl(3_600))
                    .await
                    .unwrap();
            }
        }
    };
    futures_util::future::join_all((0..24).map(shop)).await;
    let answer = insist(&*engine, wanted("HALF")).await;
    held(&answer);
    settled(&rig.store, &*engine).await;
    assert_eq!(counts(&*engine, PAIR[0]).await.1, 1200 + 2);
    swept(&rig.store, &*engine).await;
}
