//! Strategy `redlock`: a node that is paused past its lease sells nothing twice, a row refuses a fence lower than it has
//! seen, and a shop whose lock nodes are gone goes on.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database, Kind, lock_nodes, skipped, until};
use common::invariants::check;
use common::make::{cart, set, sku};
use holdfast_engine::domain::Command;
use holdfast_engine::{Answer, Engine, Now, SqlConfig, Strategy};
use holdfast_services::Redis;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

async fn hold(engine: &dyn Engine, order: &str) -> Answer {
    loop {
        // A server may have ended what was paused; asking again is safe.
        if let Ok(mut answers) = engine.apply(vec![cart(order, &[("HOT", 1)]).into()], Now::Clock).await {
            return answers.remove(0);
        }
    }
}

async fn stocked(database: &Database, units: u64) -> Arc<dyn Engine> {
    let engine = database.node().await;
    engine.apply(vec![Command::SetStock(set("HOT", units))], Now::Clock).await.unwrap().remove(0).unwrap();
    engine
}

async fn fence(database: &Database) -> u64 {
    database.raw().await.one("SELECT fence FROM stock WHERE sku = 'HOT'").await.parse().unwrap()
}

async fn a_row_refuses_a_fence_lower_than_it_has_seen(kind: Kind) {
    let Some(database) = Database::shared(kind, Strategy::Redlock).await else { return };
    let engine = stocked(&database, 10).await;
    let first = fence(&database).await;
    assert!(first > 0, "it was written under a lease");
    hold(&*engine, "O1").await.unwrap();
    let second = fence(&database).await;
    assert!(second > first && engine.health().await.retries == 0);
    // Somebody has written it under a lease of the far future.
    database.raw().await.run("UPDATE stock SET fence = 9000000000000000").await.unwrap();
    hold(&*engine, "O2").await.unwrap();
    let retries = engine.health().await.retries;
    assert!(retries >= 6, "it was decided again until it went by locks, not {retries} times");
    assert_eq!(fence(&database).await, 9_000_000_000_000_000);
    assert_eq!(check(&*engine).await.stocks[0].held, 2);
    // Others do not ask for it.
    let mut plain = database.clone();
    plain.config.strategy = Strategy::RowLock;
    let plain = plain.node().await;
    hold(&*plain, "O3").await.unwrap();
    assert_eq!(plain.health().await.retries, 0);
}

async fn without_lock_nodes_a_shop_goes_on(kind: Kind) {
    if !Redis::is_here() {
        return skipped(&format!("{} is not on this machine", Redis::PACKAGE));
    }
    let Some(mut database) = Database::shared(kind, Strategy::Redlock).await else { return };
    let mut redis = Redis::start().unwrap();
    database.config.lock_nodes = vec![redis.url()];
    let engine = stocked(&database, 100).await;
    let before = fence(&database).await;
    redis.freeze();
    hold(&*engine, "O1").await.unwrap();
    redis.thaw();
    redis.kill();
    hold(&*engine, "O2").await.unwrap();
    assert_eq!(fence(&database).await, before, "there were no leases");
    redis.restart().unwrap();
    let orders = AtomicU64::new(3);
    until("there are leases again", async || {
        let order = format!("O{}", orders.fetch_add(1, Ordering::Relaxed));
        tokio::time::sleep(Duration::from_millis(200)).await;
        hold(&*engine, &order).await.unwrap();
        fence(&database).await > before
    })
    .await;
    assert_eq!(check(&*engine).await.stocks[0].held, orders.into_inner() - 1);
}

const CHILD: &str = "HOLDFAST_TEST_SELLER";
const UNITS: u64 = 1_000_000;

/// What the child does: sells until nothing is left, and tells each order that it has got.
fn sell(database: &Database) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = database.node().await;
        for n in 0.. {
            if hold(&*engine, &format!("C{n}")).await.is_err() {
                break;
            }
            println!("\nsold C{n}");
        }
    });
}

/// A node in a process of its own.
fn seller(test: &str, database: &Database) -> Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{} {}", database.config.schema, database.config.url))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn a_node_paused_past_its_lease_in_mid_batch_sells_nothing_twice(kind: Kind, test: &str) {
    if let Ok(place) = std::env::var(CHILD) {
        let (schema, url) = place.split_once(' ').unwrap();
        let patience = Duration::from_secs(20);
        let config = SqlConfig { schema: schema.to_owned(), lock_nodes: lock_nodes(), ..SqlConfig::new(url) };
        let config = SqlConfig { strategy: Strategy::Redlock, wait: patience, timeout: patience, ..config };
        return sell(&Database { kind, config });
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(mut database) = runtime.block_on(Database::shared(kind, Strategy::Redlock)) else { return };
    // Who is paused may have a lock that is waited for meanwhile.
    database.config.timeout = Duration::from_secs(3);
    let engine = runtime.block_on(stocked(&database, UNITS));
    let mut child = seller(test, &database);
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut sold = |end: usize| {
        let lines = told.by_ref().filter(|line| line.starts_with("sold "));
        lines.take(end).count()
    };
    let to_child = |signal: &str| {
        let told = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(told.unwrap().success());
    };
    let (mut ours, mut theirs) = (0, 0);
    for round in 0..4 {
        theirs += sold(5 + round);
        to_child("-STOP");
        // Longer than a lease lasts. Whatever it has locked it keeps; what it has read goes stale.
        let end = holdfast_engine::clock::monotonic() + Duration::from_millis(2_600);
        while holdfast_engine::clock::monotonic() < end {
            runtime.block_on(hold(&*engine, &format!("P{ours}"))).unwrap();
            ours += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        to_child("-CONT");
    }
    // A few units are left, that both want.
    let few = async || {
        let held = engine.stock(&sku("HOT")).await.unwrap().unwrap().held;
        let few = Command::SetStock(set("HOT", held + 300));
        engine.apply(vec![few], Now::Clock).await.is_ok_and(|answers| answers[0].is_ok())
    };
    runtime.block_on(until("few units are left", few));
    while runtime.block_on(hold(&*engine, &format!("P{ours}"))).is_ok() {
        ours += 1;
    }
    theirs += sold(usize::MAX);
    assert!(child.wait().unwrap().success());
    let stock = runtime.block_on(check(&*engine)).stocks.remove(0);
    assert_eq!((stock.held, stock.available), (ours + theirs as u64, 0), "{ours} ours, {theirs} theirs");
    assert!(ours > 20 && theirs > 20, "both sold: {ours}, {theirs}");
}

macro_rules! kinds {
    ($($module:ident = $kind:expr, $paused:ident;)+) => {
        $(
            mod $module {
                use super::Kind;

                #[tokio::test]
                async fn a_row_refuses_a_fence_lower_than_it_has_seen() {
                    super::a_row_refuses_a_fence_lower_than_it_has_seen($kind).await;
                }

                #[tokio::test]
                async fn without_lock_nodes_a_shop_goes_on() {
                    super::without_lock_nodes_a_shop_goes_on($kind).await;
                }
            }

            #[test]
            fn $paused() {
                a_node_paused_past_its_lease_in_mid_batch_sells_nothing_twice($kind, stringify!($paused));
            }
        )+
    };
}

kinds! {
    postgres = Kind::Postgres, a_node_on_postgres_that_was_paused_in_mid_batch_sells_nothing_twice;
    mariadb = Kind::MariaDb, a_node_on_mariadb_that_was_paused_in_mid_batch_sells_nothing_twice;
}
