//! A whole store moves from a folder into a database: nothing is lost, nothing is told otherwise afterwards, whenever
//! the move is killed; and whatever would let two stores sell the same units is refused.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database as Place, Kind};
use common::dice::Dice;
use common::invariants::{Everything, check, everything};
use common::make::{Fact, START, captured, cart, lines, money, order_id, reference, refunded, set};
use common::random::{Shop, Step};
use holdfast_engine::domain::{
    Command, Hold, HoldId, HoldStatus, OrderRef, Outcome, PaymentStatus, Refusal, Settlement, Time,
};
use holdfast_engine::embedded::{Embedded, Failure, audit_folder};
use holdfast_engine::moving::{MoveError, Progress, Report, from_folder};
use holdfast_engine::{Answer, Database, Engine, Now, SqlConfig, Strategy};
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Stdio;

/// SKUs as nobody should choose them.
const ODD: [&str; 5] = ["'; DROP TABLE stock; --", "a \"quoted\" one", "🦄 pony", "100% %_ \\", "Ä/ä?&="];

/// Where to: a fresh namespace in each database that is there.
async fn targets() -> Vec<SqlConfig> {
    let mut targets = Vec::new();
    for kind in [Kind::Postgres, Kind::MariaDb] {
        targets.extend(Place::shared(kind, Strategy::RowLock).await.map(|place| place.config));
    }
    targets
}

async fn open(config: &SqlConfig) -> Result<std::sync::Arc<dyn Engine>, String> {
    Database::of(&config.url).unwrap().open(config).await.map_err(|e| e.to_string())
}

fn nothing_to_do(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

async fn moved(folder: &Path, config: &SqlConfig) -> Result<Report, String> {
    let database = Database::of(&config.url).unwrap();
    from_folder(folder, database, config, &mut nothing_to_do).await.map_err(|e| e.to_string())
}

fn later(seconds: u32) -> Time {
    START.plus_seconds(seconds)
}

fn ask(engine: &Embedded, command: impl Into<Command>, seconds: u32) -> Answer {
    engine.apply_now(vec![command.into()], Now::At(later(seconds))).unwrap().remove(0)
}

fn held(answer: Answer) -> Hold {
    match answer {
        Ok(Outcome::Held { hold, replay: false }) => hold,
        other => panic!("a new hold was wanted: {other:?}"),
    }
}

fn confirm(engine: &Embedded, hold: HoldId, seconds: u32) {
    let told = ask(engine, Command::Confirm { hold, payment_ref: Some("pi_9".into()) }, seconds);
    assert!(matches!(told, Ok(Outcome::Order(_))), "{told:?}");
}

/// One thing of every kind, at known places; the hold that is live at the end.
fn every_kind(engine: &Embedded) -> Hold {
    for name in ODD {
        let mut asked = set(name, 40);
        asked.limit_per_customer = Some(Some(9));
        ask(engine, Command::SetStock(asked), 0).unwrap();
    }
    ask(engine, Command::SetStock(set("gone", 3)), 0).unwrap();
    ask(engine, Command::RemoveStock { sku: common::make::sku("gone"), if_version: None }, 0).unwrap();
    let asked = |n: u64| [(ODD[0], n), (ODD[2], 1)];
    let bought = held(ask(engine, cart("bought", &asked(3)).by("ann 🦄").costs(100, "EUR"), 1));
    confirm(engine, bought.id, 2);
    let back =
        Command::Return { order: order_id("bought"), lines: lines(&[(ODD[0], 1)]), key: Some(reference("rma-1")) };
    ask(engine, back, 3).unwrap();
    let released = held(ask(engine, cart("released", &asked(1)).by("bob"), 4));
    ask(engine, Command::Release { hold: released.id }, 5).unwrap();
    held(ask(engine, cart("released", &asked(2)).by("bob"), 6));
    let late = held(ask(engine, cart("late", &asked(2)).by("cid").ttl(10), 7));
    ask(engine, Command::Sweep { limit: 100 }, 30).unwrap();
    confirm(engine, late.id, 31);
    held(ask(engine, cart("lapsed", &asked(1)).by("dot").ttl(5), 32));
    let key = Some(reference("count-1"));
    let counted = Command::AdjustStock { sku: common::make::sku(ODD[1]), delta: 5, reason: None, key, create: false };
    ask(engine, counted, 33).unwrap();
    held(ask(engine, cart("paid", &asked(1)).by("eve").costs(100, "EUR"), 34));
    ask(engine, captured("pi-paid").order("paid").brings(100, "EUR"), 35).unwrap();
    held(ask(engine, cart("refunded", &asked(1)).by("fay").costs(100, "EUR"), 36));
    ask(engine, captured("pi-refunded").order("refunded").brings(100, "EUR"), 37).unwrap();
    ask(engine, refunded("pi-refunded", 100), 38).unwrap();
    ask(engine, captured("pi-unmatched").order("nobody's").brings(100, "EUR"), 39).unwrap();
    // Paid twice: the second payment goes back.
    ask(engine, captured("pi-again").order("paid").brings(100, "EUR"), 40).unwrap();
    let mut last = cart("live", &asked(4)).by("gil").costs(7, "USD").ttl(3600);
    last.0.metadata = Some("{\"note\":\"it's \\\"so\\\" 🦄\"}".into());
    held(ask(engine, last, 41))
}

/// A random shop, a month earlier.
fn random_shop(engine: &Embedded, seed: u64, steps: u32) {
    let mut shop = Shop { dice: Dice::new(seed), window: 0, reopens: false, deadlines: 0 };
    let (mut now, mut ids) = (Time::from_millis(START.millis() - 30 * 86_400_000), Vec::new());
    for n in 0..steps {
        shop.window = u64::from(n) / 12;
        match shop.step() {
            Step::Wait(ms) => now = Time::from_millis(now.millis() + ms),
            Step::Reopen => {}
            Step::Batch(asked) => {
                let batch = asked.iter().map(|ask| ask.resolve(&ids)).collect();
                let answers = engine.apply_now(batch, Now::At(now)).unwrap();
                ids.extend(answers.iter().filter_map(|answer| match answer {
                    Ok(Outcome::Held { hold, replay: false }) => Some(hold.id),
                    _ => None,
                }));
            }
        }
    }
    assert!(now < START, "the month was too short");
}

/// The same, told kind by kind so that a difference can be read.
fn assert_same(found: &Everything, expected: &Everything) {
    assert_eq!(found.stocks, expected.stocks);
    assert_eq!(found.holds, expected.holds);
    assert_eq!(found.orders, expected.orders);
    assert_eq!(found.payments, expected.payments);
    assert_eq!(found.refunds, expected.refunds);
    assert_eq!(found.ledger, expected.ledger);
}

/// What was moved goes on: a live hold is confirmed, and whatever is told twice is known.
async fn go_on(engine: &dyn Engine, live: &Hold, now: Time) {
    let ask = async |command: Command| engine.apply(vec![command], Now::At(now)).await.unwrap().remove(0);
    let again = cart("live", &[(ODD[0], 4), (ODD[2], 1)]).by("gil").costs(7, "USD").ttl(3600);
    let told = ask(again.into()).await;
    assert!(matches!(&told, Ok(Outcome::Held { hold, replay: true }) if hold == live), "{told:?}");
    let event = |fact: Fact| ask(fact.into());
    let told = event(captured("pi-paid").order("paid").brings(100, "EUR")).await;
    assert_eq!(told, Ok(Outcome::Settled(Settlement::Duplicate)));
    let back =
        |n| Command::Return { order: order_id("bought"), lines: lines(&[(ODD[0], n)]), key: Some(reference("rma-1")) };
    let told = ask(back(1)).await;
    assert!(matches!(&told, Ok(Outcome::Order(order)) if order.lines[0].returned == 1), "{told:?}");
    assert_eq!(ask(back(2)).await, Err(Refusal::KeyReused));
    let told = ask(cart("more", &[(ODD[0], 8)]).by("ann 🦄").into()).await;
    assert!(matches!(told, Err(Refusal::CustomerLimit { .. })), "what was bought counts: {told:?}");
    let told = ask(Command::Confirm { hold: live.id, payment_ref: None }).await;
    assert!(matches!(&told, Ok(Outcome::Order(order)) if order.hold_id == live.id), "{told:?}");
    let mut hold = cart("nobody's", &[(ODD[3], 1)]).by("hal");
    hold.0.money = money(100, "EUR");
    ask(hold.into()).await.unwrap();
    let all = check(engine).await;
    let waited = all.payments.iter().find(|p| p.key.payment_id.as_str() == "pi-unmatched").unwrap();
    assert_eq!(waited.status, PaymentStatus::Settled, "the payment that waited has found its order");
    assert_eq!(waited.order, Some(OrderRef::Order(order_id("nobody's"))));
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

/// A store with everything in it; the hold that is live, and everything as it is told.
async fn a_store(folder: &Path, seed: u64) -> (Hold, Everything) {
    let engine = Embedded::open(folder).unwrap();
    random_shop(&engine, seed, 400);
    let live = every_kind(&engine);
    drop(engine);
    // Opened again, it reads by the latest recorded moment, as the engines on databases do.
    (live, check(&Embedded::open(folder).unwrap()).await)
}

#[test]
fn everything_is_the_same_afterwards_and_goes_on() {
    run(async {
        for (n, config) in targets().await.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let (live, before) = a_store(folder.path(), 100 + n as u64).await;
            let report = moved(folder.path(), &config).await.unwrap();
            let held = before.holds.iter().filter(|hold| hold.status == HoldStatus::Held).count() as u64;
            assert_eq!((report.counts.holds, report.counts.live_holds), (before.holds.len() as u64, held));
            assert_eq!((report.counts.rows(), report.was_done), (report.moved, false));
            let target = open(&config).await.unwrap();
            assert_same(&check(&*target).await, &before);
            let health = target.health().await;
            assert_eq!((health.skus, health.holds), (before.stocks.len() as u64, held));
            go_on(&*target, &live, later(50)).await;

            let again = moved(folder.path(), &config).await.unwrap();
            assert_eq!((again.was_done, again.moved), (true, 0), "it says so, whatever came since");
            let Err(refused) = Embedded::open(folder.path()) else { panic!("a moved folder was opened") };
            assert!(matches!(refused, Failure::Moved(_)), "{refused:?}");
            let told = refused.to_string();
            assert!(told.contains("DELETE FROM meta") && told.contains("empty that database"), "{told}");
            assert_eq!(audit_folder(folder.path()).unwrap().drift, [], "an audit may read it");
        }
    });
}

#[test]
fn a_move_that_is_stopped_after_every_page_goes_on() {
    run(async {
        for config in targets().await {
            let folder = tempfile::tempdir().unwrap();
            let (live, before) = a_store(folder.path(), 7).await;
            let database = Database::of(&config.url).unwrap();
            let (mut runs, mut done) = (0, 0);
            loop {
                runs += 1;
                let mut pages = 0;
                let mut one_page = |progress: Progress| {
                    assert!(progress.done >= done && progress.done <= progress.rows, "{progress:?} after {done}");
                    done = progress.done;
                    pages += 1;
                    if pages == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                match from_folder(folder.path(), database, &config, &mut one_page).await {
                    Ok(report) => break assert!(!report.was_done),
                    Err(why) => assert_eq!(why, MoveError::Stopped),
                }
                let half = open(&config).await.err().unwrap();
                assert!(half.contains("half-filled by `holdfast migrate`"), "{half}");
                let Err(refused) = Embedded::open(folder.path()) else { panic!("a folder was opened while it moves") };
                assert!(matches!(refused, Failure::Moving(_)), "{refused:?}");
            }
            assert!(runs >= 9, "{runs}");
            let target = open(&config).await.unwrap();
            assert_same(&check(&*target).await, &before);
            go_on(&*target, &live, later(50)).await;
        }
    });
}

#[test]
fn what_would_sell_the_same_units_twice_is_refused() {
    run(async {
        for config in targets().await {
            let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let nothing = moved(folder.path(), &config).await.unwrap_err();
            assert!(nothing.contains("there is no store in"), "{nothing}");
            let engine = Embedded::open(folder.path()).unwrap();
            every_kind(&engine);
            let in_use = moved(folder.path(), &config).await.unwrap_err();
            assert!(in_use.contains("in use by another holdfast process"), "{in_use}");
            drop(engine);

            every_kind(&Embedded::open(other.path()).unwrap());
            let database = Database::of(&config.url).unwrap();
            let mut calls = 0;
            let mut stop = |_| {
                calls += 1;
                if calls == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            from_folder(folder.path(), database, &config, &mut stop).await.unwrap_err();
            let told = moved(other.path(), &config).await.unwrap_err();
            assert!(told.contains("half-filled with the store from") && told.contains("--from"), "{told}");
            Embedded::open(other.path()).expect("a folder that was refused may be served");
            moved(folder.path(), &config).await.unwrap();
            let told = moved(other.path(), &config).await.unwrap_err();
            assert!(told.contains("name an empty one with --to"), "{told}");
            Embedded::open(other.path()).unwrap();
        }
    });
}

#[test]
fn a_target_that_others_use_is_refused_and_a_node_that_runs_there_is_shut_out() {
    run(async {
        for (used, empty) in targets().await.into_iter().zip(targets().await) {
            let folder = tempfile::tempdir().unwrap();
            every_kind(&Embedded::open(folder.path()).unwrap());
            let node = open(&used).await.unwrap();
            node.apply(vec![captured("pi").order("o").into()], Now::Clock).await.unwrap()[0].clone().unwrap();
            let told = moved(folder.path(), &used).await.unwrap_err();
            assert!(told.contains("holds SKUs, holds or entries of its own"), "{told}");
            Embedded::open(folder.path()).expect("a folder that was refused may be served");

            let node = open(&empty).await.unwrap();
            let database = Database::of(&empty.url).unwrap();
            let mut calls = 0;
            let mut stop = |_| {
                calls += 1;
                if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            from_folder(folder.path(), database, &empty, &mut stop).await.unwrap_err();
            let told = node.apply(vec![Command::SetStock(set("NEW", 5))], Now::Clock).await.unwrap_err();
            assert!(told.to_string().contains("half-filled"), "{told}");
            assert!(node.health().await.problem.is_some());
            let told = moved(folder.path(), &used).await.unwrap_err();
            assert!(told.contains("of its own"), "{told}");
            moved(folder.path(), &empty).await.unwrap();
            let told = moved(folder.path(), &used).await.unwrap_err();
            assert!(told.contains("was moved before, but not to this database"), "{told}");
            node.apply(vec![Command::SetStock(set("NEW", 5))], Now::Clock).await.unwrap()[0].clone().unwrap();
            check(&*node).await;
        }
    });
}

#[test]
fn a_source_with_drift_or_gaps_is_refused() {
    run(async {
        for config in targets().await {
            let folder = tempfile::tempdir().unwrap();
            every_kind(&Embedded::open(folder.path()).unwrap());
            let write = |sql: &str| {
                let db = rusqlite::Connection::open(folder.path().join("holdfast.db")).unwrap();
                assert_eq!(db.execute(sql, []).unwrap(), 1);
            };
            write("UPDATE stock SET held = held + 1 WHERE sku LIKE '%pony'");
            let told = moved(folder.path(), &config).await.unwrap_err();
            assert!(told.contains("not clean"), "{told}");
            write("UPDATE stock SET held = held - 1 WHERE sku LIKE '%pony'");
            write("UPDATE ledger SET seq = 1000 WHERE seq = 3");
            let told = moved(folder.path(), &config).await.unwrap_err();
            assert!(told.contains("without a gap"), "{told}");
            write("UPDATE ledger SET seq = 3 WHERE seq = 1000");
            moved(folder.path(), &config).await.unwrap();
        }
    });
}

const FOLDER: &str = "HOLDFAST_TEST_MOVED_FROM";
const TARGET: &str = "HOLDFAST_TEST_MOVED_TO";

/// The child that is killed: moves, and says at each page how far it is.
fn move_until_killed(folder: &Path) {
    let target = std::env::var(TARGET).unwrap();
    let (schema, url) = target.split_once(' ').unwrap();
    let config = SqlConfig { schema: schema.to_owned(), ..SqlConfig::new(url) };
    run(async {
        let mut tell = |progress: Progress| {
            println!("\nat {}", progress.done);
            ControlFlow::Continue(())
        };
        let told = from_folder(folder, Database::of(url).unwrap(), &config, &mut tell).await;
        println!("\nend {told:?}");
    });
}

/// Kills a child after so many pages and microseconds; whether it had ended before.
fn kill_one(folder: &Path, config: &SqlConfig, dice: &mut Dice) -> bool {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_move_that_is_killed_goes_on", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(TARGET, format!("{} {}", config.schema, config.url))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pages = 1 + dice.below(4);
    let (mut met, mut has_ended) = (0, false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        met += u64::from(line.starts_with("at "));
        if let Some(told) = line.strip_prefix("end ") {
            assert!(told.starts_with("Ok("), "{told}");
            has_ended = true;
        }
        if met == pages {
            std::thread::sleep(std::time::Duration::from_micros(dice.below(60_000)));
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    has_ended
}

#[test]
fn a_move_that_is_killed_goes_on() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return move_until_killed(Path::new(&folder));
    }
    let mut dice = Dice::new(holdfast_engine::clock::random_seed());
    run(async {
        for config in targets().await {
            let folder = tempfile::tempdir().unwrap();
            let engine = Embedded::open(folder.path()).unwrap();
            let live = every_kind(&engine);
            ask(&engine, Command::SetStock(set("HOT", 1_000_000)), 45).unwrap();
            for batch in 0..14 {
                let carts = (0..300).map(|n| cart(&format!("big-{batch}-{n}"), &[("HOT", 1)]).ttl(600).into());
                let answers = engine.apply_now(carts.collect(), Now::At(later(45))).unwrap();
                let confirmed = answers.into_iter().map(held).filter(|hold| hold.id.as_u128() % 3 == 0);
                let confirmed = confirmed.map(|hold| Command::Confirm { hold: hold.id, payment_ref: None });
                engine.apply_now(confirmed.collect(), Now::At(later(45))).unwrap();
            }
            drop(engine);
            let before = everything(&Embedded::open(folder.path()).unwrap()).await;
            let mut kills = 0;
            while !kill_one(folder.path(), &config, &mut dice) {
                kills += 1;
                assert!(kills < 100, "it never ends");
            }
            println!("{kills} kills of a move into {}", Database::of(&config.url).unwrap().as_str());
            assert!(kills > 2, "{kills}");
            let target = open(&config).await.unwrap();
            assert_same(&check(&*target).await, &before);
            go_on(&*target, &live, later(50)).await;
        }
    });
}
