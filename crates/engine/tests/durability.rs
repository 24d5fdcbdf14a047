//! What was answered survives: `kill -9` under load two hundred times over, of the embedded engine and of nodes on a
//! database; a second opener, a store of another version.
//!
//! The test starts itself again as the child that is killed. The child prints each answer once it has it; the parent
//! opens what is left and looks for every answer that was printed.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database, Kind, lock_nodes, until};
use common::dice::Dice;
use common::killed::{kill_one, serve_until_killed};
use common::make::{cart, set};
use common::shoppers::{KINDS, SKUS, find};
use holdfast_engine::clock::{monotonic, random_seed};
use holdfast_engine::domain::Command;
use holdfast_engine::embedded::{Embedded, Failure};
use holdfast_engine::{Engine, Lanes, LanesConfig, Now, SqlConfig, Strategy};
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "HOLDFAST_TEST_KILLED_IN";
const DATABASE: &str = "HOLDFAST_TEST_KILLED_ON";
const KILLS: u32 = 220;
/// Per strategy: with two of them on two databases, more than two hundred in all.
const DATABASE_KILLS: u32 = 62;

#[test]
fn what_was_answered_survives_kill_9() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return shop_until_killed(Path::new(&folder));
    }
    let seed = random_seed();
    println!("seed {seed}");
    let mut dice = Dice::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stock = SKUS.iter().map(|name| Command::SetStock(set(name, 1_000_000_000))).collect();
    Embedded::open(folder.path()).unwrap().apply_now(stock, Now::Clock).unwrap();
    let start = monotonic();
    let (mut kills, mut all) = (0, Vec::new());
    while kills < KILLS {
        let place = folder.path().to_str().unwrap();
        let acknowledged = kill_one("what_was_answered_survives_kill_9", FOLDER, place, 0, &mut dice);
        kills += 1;
        let engine = Embedded::open(folder.path()).unwrap();
        runtime.block_on(async {
            for line in &acknowledged {
                find(&engine, line).await;
            }
            assert_eq!(engine.audit().await.unwrap().drift, [], "after {kills} kills");
        });
        all.extend(acknowledged);
    }
    let engine = Embedded::open(folder.path()).unwrap();
    runtime.block_on(async {
        for line in &all {
            find(&engine, line).await;
        }
        let audit = engine.audit().await.unwrap();
        println!(
            "{kills} kills, {} acknowledged answers found, {} ledger entries, {:.1} s",
            all.len(),
            audit.entries,
            start.elapsed().as_secs_f64()
        );
    });
    assert!(kills >= 200, "{kills} kills");
    assert!(all.len() > 2_000, "only {} answers were checked", all.len());
    for kind in KINDS {
        assert!(all.iter().filter(|line| line.starts_with(kind)).count() > 100, "hardly any answer was {kind}");
    }
}

fn shop_until_killed(folder: &Path) {
    serve_until_killed(async || {
        let engine: Arc<dyn Engine> = Arc::new(Embedded::open(folder).unwrap());
        Lanes::start(engine, &LanesConfig::default()).unwrap()
    });
}

macro_rules! killed {
    ($($name:ident: $kind:expr, $strategy:expr;)+) => {
        $(#[test]
        fn $name() {
            nodes_are_killed($kind, $strategy, stringify!($name));
        })+
    };
}

killed! {
    what_a_node_on_postgres_answered_by_row_lock_survives_its_kill_9: Kind::Postgres, Strategy::RowLock;
    what_a_node_on_postgres_answered_by_optimism_survives_its_kill_9: Kind::Postgres, Strategy::Optimistic;
    what_a_node_on_postgres_answered_by_skipping_survives_its_kill_9: Kind::Postgres, Strategy::SkipLocked;
    what_a_node_on_postgres_answered_by_leases_survives_its_kill_9: Kind::Postgres, Strategy::Redlock;
    what_a_node_on_mariadb_answered_by_row_lock_survives_its_kill_9: Kind::MariaDb, Strategy::RowLock;
}

/// The database lives on, and so does another node: what was answered is there at once, and nothing is left open.
fn nodes_are_killed(kind: Kind, strategy: Strategy, test: &str) {
    if let Ok(place) = std::env::var(DATABASE) {
        return shop_on_a_database_until_killed(kind, strategy, &place);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(database) = runtime.block_on(Database::shared(kind, strategy)) else { return };
    let seed = random_seed();
    println!("seed {seed}");
    let (mut dice, start) = (Dice::new(seed), monotonic());
    let engine = runtime.block_on(database.node());
    let stock = SKUS.iter().map(|name| Command::SetStock(set(name, 1_000_000_000))).collect();
    runtime.block_on(engine.apply(stock, Now::Clock)).unwrap();
    let place = format!("{} {}", database.config.schema, database.config.url);
    let mut all = Vec::new();
    let is_enough =
        |all: &[String]| all.len() > 500 && KINDS.iter().all(|kind| all.iter().any(|line| line.starts_with(kind)));
    let mut kills = 0;
    // On a slow machine, it takes more and longer lives to meet every kind of answer.
    while kills < DATABASE_KILLS || (!is_enough(&all) && kills < 4 * DATABASE_KILLS) {
        kills += 1;
        let answers = if kills <= DATABASE_KILLS { 20 } else { 400 };
        let acknowledged = kill_one(test, DATABASE, &place, answers, &mut dice);
        runtime.block_on(async {
            for line in &acknowledged {
                find(&*engine, line).await;
            }
            assert_eq!(engine.audit().await.unwrap().drift, [], "after {kills} kills");
        });
        all.extend(acknowledged);
    }
    runtime.block_on(async {
        for line in &all {
            find(&*engine, line).await;
        }
        until("no transaction is left open", async || database.open_transactions().await == 0).await;
    });
    println!("{kills} kills, {} acknowledged answers found, {:.1} s", all.len(), start.elapsed().as_secs_f64());
    assert!(all.len() > 500, "only {} answers were checked", all.len());
    for kind in KINDS {
        assert!(all.iter().any(|line| line.starts_with(kind)), "no answer was {kind}");
    }
}

fn shop_on_a_database_until_killed(kind: Kind, strategy: Strategy, place: &str) {
    let (schema, url) = place.split_once(' ').unwrap();
    let config = SqlConfig { schema: schema.into(), strategy, lock_nodes: lock_nodes(), ..SqlConfig::new(url) };
    serve_until_killed(async || {
        let engine = Database { kind, config }.node().await;
        Lanes::start(engine, &LanesConfig { workers: 3, ..LanesConfig::default() }).unwrap()
    });
}

#[test]
fn a_second_opener_is_told_who_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = Embedded::open(folder.path()).unwrap();
    let Err(refused) = Embedded::open(folder.path()) else { panic!("two engines opened one folder") };
    assert!(matches!(&refused, Failure::InUse(path) if path == folder.path()), "{refused:?}");
    assert!(refused.to_string().contains("in use"), "{refused}");
    drop(first);
    Embedded::open(folder.path()).unwrap();
}

#[tokio::test]
async fn a_store_of_version_1_is_brought_up_to_date_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let db = rusqlite::Connection::open(folder.path().join("holdfast.db")).unwrap();
    db.execute_batch(include_str!("../src/embedded/sql/schema.sql")).unwrap();
    db.execute_batch(
        "INSERT INTO payments VALUES (1, 'stripe', 'pi_1', 'O1', NULL, 100, 'EUR', NULL, 0, 1, 0, 0, 0, 'reversing', 5);
         INSERT INTO jobs VALUES (1, 'stripe', 'pi_1', 0, 'refund', 'stock_gone', 'due', 'key', 100, 'EUR', 5);
         INSERT INTO ledger VALUES (1, 5, 'refund_due', NULL, 0, 0, 0, NULL, 'O1', 'stripe:pi_1');",
    )
    .unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    drop(db);
    let engine = Embedded::open(folder.path()).unwrap();
    let due = engine.due_jobs("stripe", engine.time(), 10).await.unwrap();
    assert_eq!((due.len(), due[0].attempts, &*due[0].idempotency_key), (1, 0, "key"));
    assert_eq!(engine.put_note("a", 0, Some("b")).await, Ok(true));
    drop(engine);
    let again = Embedded::open(folder.path()).unwrap();
    assert_eq!(again.note("a").await.unwrap().unwrap().text, "b");
    common::invariants::check(&again).await;
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    Embedded::open(folder.path()).unwrap().apply_now(vec![Command::SetStock(set("A", 5))], Now::Clock).unwrap();
    let file = folder.path().join("holdfast.db");
    let version = |of: i64| {
        rusqlite::Connection::open(&file).unwrap().pragma_update(None, "user_version", of).unwrap();
    };
    version(99);
    let Err(refused) = Embedded::open(folder.path()) else { panic!("a newer store was opened") };
    assert!(matches!(refused, Failure::Version { found: 99, known: 2 }), "{refused:?}");
    assert!(refused.to_string().contains("version 99"), "{refused}");
    version(2);
    let again = Embedded::open(folder.path()).unwrap();
    let answers = again.apply_now(vec![cart("O1", &[("A", 5)]).into()], Now::Clock).unwrap();
    assert!(answers[0].is_ok(), "nothing was lost meanwhile: {answers:?}");
}
