//! What was answered survives: `kill -9` under load two hundred times over, a second opener, a store of another
//! version.
//!
//! The test starts itself again as the child that is killed. The child prints each answer once it has it; the parent
//! opens what is left and looks for every answer that was printed.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::dice::Dice;
use common::make::{captured, cart, lines, order_id, reference, set};
use holdfast_engine::clock::{monotonic, random_seed};
use holdfast_engine::domain::{Command, HoldId, HoldStatus, Outcome, PaymentStatus, Settlement};
use holdfast_engine::embedded::{Embedded, Failure};
use holdfast_engine::{Answer, Engine, Lanes, LanesConfig, Now};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

const FOLDER: &str = "HOLDFAST_TEST_KILLED_IN";
const SEED: &str = "HOLDFAST_TEST_SEED";
const KILLS: u32 = 220;
const SHOPPERS: u64 = 32;
const SKUS: [&str; 3] = ["HOT", "WARM", "COLD"];

#[test]
fn what_was_answered_survives_kill_9() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let seed = std::env::var(SEED).unwrap().parse().unwrap();
        return shop_until_killed(Path::new(&folder), seed);
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
        let acknowledged = kill_one(folder.path(), dice.next(), &mut dice);
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
    for kind in ["held ", "confirmed ", "released ", "paid ", "returned "] {
        assert!(all.iter().filter(|line| line.starts_with(kind)).count() > 100, "hardly any answer was {kind}");
    }
}

/// Starts a child, kills it at a random moment, and gives the answers that it had printed in full.
fn kill_one(folder: &Path, seed: u64, dice: &mut Dice) -> Vec<String> {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_was_answered_survives_kill_9", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    // Most children die while they serve, some while they open the store.
    if dice.once_in(10) {
        std::thread::sleep(Duration::from_micros(dice.below(20_000)));
    } else {
        let mut line = String::new();
        while !line.starts_with("ready") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the child ended before it served");
        }
        std::thread::sleep(Duration::from_micros(2_000 + dice.below(40_000)));
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "the child was killed by a signal: {status}");
    let mut printed = Vec::new();
    std::io::Read::read_to_end(&mut output, &mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
    let is_answer =
        |line: &&str| ["held ", "confirmed ", "released ", "paid ", "returned "].iter().any(|k| line.starts_with(k));
    whole.lines().filter(is_answer).map(str::to_owned).collect()
}

/// Panics unless the store knows what this answer said.
async fn find(engine: &Embedded, line: &str) {
    let mut words = line.split(' ').skip(1);
    let id = HoldId::parse(words.next().unwrap()).unwrap();
    let order = order_id(words.next().unwrap());
    let hold = engine.hold(id).await.unwrap().unwrap_or_else(|| panic!("lost: {line}"));
    assert_eq!(hold.order_id, order);
    let order = engine.order(&order).await.unwrap();
    match line.split(' ').next().unwrap() {
        "held" => {}
        "released" => assert_eq!(hold.status, HoldStatus::Released, "{line}"),
        "confirmed" => assert_eq!((hold.status, order.unwrap().order.hold_id), (HoldStatus::Confirmed, id), "{line}"),
        "returned" => assert_eq!(order.unwrap().order.lines[0].kept(), 0, "{line}"),
        "paid" => assert_eq!(order.unwrap().payment.unwrap().status, PaymentStatus::Settled, "{line}"),
        other => panic!("{other}"),
    }
}

fn shop_until_killed(folder: &Path, seed: u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine: Arc<dyn Engine> = Arc::new(Embedded::open(folder).unwrap());
        let lanes = Lanes::start(engine, &LanesConfig::default()).unwrap();
        println!("\nready");
        let shoppers: Vec<_> = (0..SHOPPERS).map(|n| tokio::spawn(shop(lanes.clone(), seed, n))).collect();
        for shopper in shoppers {
            shopper.await.unwrap();
        }
    });
    unreachable!("shoppers never stop");
}

fn tell(word: &str, hold: HoldId, order: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{word} {hold} {order}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

async fn shop(lanes: Lanes, seed: u64, shopper: u64) {
    let mut dice = Dice::new(seed ^ (shopper << 32));
    for visit in 0_u64.. {
        let order = format!("{seed:x}-{shopper}-{visit}");
        let asked = [(dice.one_of(&SKUS), 1 + dice.below(3)), (dice.one_of(&SKUS), 1)];
        let Ok(Outcome::Held { hold, .. }) = submit(&lanes, cart(&order, &asked)).await else { panic!("not held") };
        tell("held", hold.id, &order);
        match dice.below(5) {
            0 => {
                submit(&lanes, Command::Release { hold: hold.id }).await.unwrap();
                tell("released", hold.id, &order);
            }
            1 | 2 => {
                submit(&lanes, Command::Confirm { hold: hold.id, payment_ref: None }).await.unwrap();
                tell("confirmed", hold.id, &order);
                let line = hold.lines.iter().next().unwrap();
                let back = Command::Return {
                    order: order_id(&order),
                    lines: lines(&[(line.sku.as_str(), line.quantity.get())]),
                    key: Some(reference(&format!("back-{order}"))),
                };
                if dice.once_in(2) {
                    submit(&lanes, back).await.unwrap();
                    tell("returned", hold.id, &order);
                }
            }
            3 => {
                let settled = submit(&lanes, captured(&format!("pi-{order}")).order(&order)).await;
                assert!(matches!(settled, Ok(Outcome::Settled(Settlement::Confirmed(_)))), "{settled:?}");
                tell("paid", hold.id, &order);
            }
            _ => {}
        }
    }
}

async fn submit(lanes: &Lanes, command: impl Into<Command>) -> Answer {
    lanes.submit(command.into()).await.unwrap()
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
    assert!(matches!(refused, Failure::Version { found: 99, known: 1 }), "{refused:?}");
    assert!(refused.to_string().contains("version 99"), "{refused}");
    version(1);
    let again = Embedded::open(folder.path()).unwrap();
    let answers = again.apply_now(vec![cart("O1", &[("A", 5)]).into()], Now::Clock).unwrap();
    assert!(answers[0].is_ok(), "nothing was lost meanwhile: {answers:?}");
}
