//! A node is stopped in the middle of a step for longer than others wait for it: they give the step up and decide
//! otherwise. When it goes on, its transaction comes to nothing.

use super::on_ledgers;
use super::rig::{Rig, ask, confirm, held, impatient, insist, settled, stocked};
use crate::common::databases::{Kind, until};
use crate::common::make::cart;
use crate::common::proxy::{Cut, Proxy};
use holdfast_engine::domain::{Command, HoldId, HoldStatus, Outcome, Refusal};
use holdfast_engine::{RedisConfig, SqlConfig, redis};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

const PLACE: &str = "HOLDFAST_TEST_STOPPED";

on_ledgers! {
    a_step_that_was_given_up_is_not_decided_afterwards
    a_hold_that_lapses_while_it_is_decided_about_stays_its_owners
}

#[test]
fn a_node_stopped_before_postgres_does_nothing_twice() {
    stopped_in_mid_step(Kind::Postgres, "stopped::a_node_stopped_before_postgres_does_nothing_twice");
}

#[test]
fn a_node_stopped_before_mariadb_does_nothing_twice() {
    stopped_in_mid_step(Kind::MariaDb, "stopped::a_node_stopped_before_mariadb_does_nothing_twice");
}

/// Stopped when a hold is frozen and before the ledger is asked.
fn stopped_in_mid_step(ledger: Kind, test: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match std::env::var(PLACE) {
        Ok(place) => runtime.block_on(confirm_slowly(&place)),
        Err(_) => runtime.block_on(overtake(ledger, test)),
    }
}

/// The child: confirms a hold, and says what it was answered.
async fn confirm_slowly(place: &str) {
    let [space, url, schema, sql, hold] = place.split(' ').collect::<Vec<_>>()[..] else { panic!("{place}") };
    let sql = SqlConfig { schema: schema.into(), ..SqlConfig::new(sql) };
    let mut config = RedisConfig { space: space.into(), ..RedisConfig::new(url, sql) };
    impatient(&mut config);
    config.timeout = Duration::from_mins(1);
    let engine = redis::open(&config).await.unwrap();
    println!("\nready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let answer = insist(&*engine, confirm(HoldId::parse(hold).unwrap())).await;
    println!("\nanswer {answer:?}");
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
}

async fn overtake(ledger: Kind, test: &str) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let near = rig.node().await;
    stocked(&*near, "HOT", 1).await;
    let hold = held(&ask(&*near, cart("O1", &[("HOT", 1)])).await.unwrap()).id;
    let mut proxy = Proxy::start(rig.redis.port()).await;
    let (far, sql) = (rig.through(&proxy), &rig.store.ledger.config);
    let place = [&far.space, &far.url, &sql.schema, &sql.url, &hold.to_string()].map(String::as_str).join(" ");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(PLACE, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until_says = |word: &str| {
        let said = told.find(|line| line.as_ref().unwrap().starts_with(word));
        said.unwrap_or_else(|| panic!("it never said {word:?}")).unwrap()
    };
    until_says("ready");
    // The answer to the freezing is on its way for so long that the node is stopped before it is there.
    proxy.delay(Duration::from_millis(150));
    proxy.plan("freeze", Cut::Note);
    drop(child.stdin.take());
    proxy.done().await;
    signal(&child, "-STOP");
    proxy.delay(Duration::ZERO);
    let mut raw = rig.store.ledger.raw().await;
    until("it is given up", async || raw.one("SELECT count(*) FROM hot_steps WHERE effects = ''").await != "0").await;
    // The unit is let go and sold to somebody else meanwhile.
    let released = insist(&*near, Command::Release { hold }).await;
    assert!(matches!(&released, Ok(Outcome::Hold(hold)) if hold.status == HoldStatus::Released), "{released:?}");
    let other = held(&insist(&*near, cart("O2", &[("HOT", 1)])).await).id;
    insist(&*near, confirm(other)).await.unwrap();
    signal(&child, "-CONT");
    let late = until_says("answer");
    assert!(late.contains("StockGone"), "{late}");
    child.wait().unwrap();
    let all = settled(&rig.store, &*near).await;
    assert_eq!((all.stocks[0].sold, all.orders.len()), (1, 1));
}

/// Its transaction is open, and has decided everything, when somebody notes that it is given up.
async fn a_step_that_was_given_up_is_not_decided_afterwards(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let mut proxy = Proxy::start(rig.store.ledger.port()).await;
    let mut config = rig.store.config.clone();
    config.ledger.url = rig.store.ledger.through(proxy.port).config.url;
    config.ledger.timeout = Duration::from_mins(1);
    let (near, far) = (rig.node().await, redis::open(&config).await.unwrap());
    stocked(&*near, "HOT", 1).await;
    let hold = held(&ask(&*near, cart("O1", &[("HOT", 1)]).ttl(3_600)).await.unwrap()).id;
    proxy.plan("INSERT INTO hot_steps", Cut::Pause);
    let slow = far.clone();
    let stopped = tokio::spawn(async move { ask(&*slow, confirm(hold)).await });
    proxy.done().await;
    let mut raw = rig.store.ledger.raw().await;
    until("it is given up", async || raw.one("SELECT count(*) FROM hot_steps WHERE effects = ''").await != "0").await;
    assert!(!stopped.is_finished());
    proxy.go_on();
    // It notices, and does it again from the beginning.
    let late = stopped.await.unwrap();
    assert!(matches!(late, Ok(Ok(Outcome::Order(_)))), "{late:?}");
    assert!(far.health().await.retries > 0, "its first transaction came to nothing");
    assert_eq!(
        insist(&*near, cart("O2", &[("HOT", 1)])).await.map_err(|e| matches!(e, Refusal::SoldOut { .. })),
        Err(true)
    );
    let all = settled(&rig.store, &*near).await;
    assert_eq!((all.stocks[0].sold, all.orders.len()), (1, 1));
}

/// Its deadline passes while the ledger takes its time; whoever wants the unit meanwhile does not get it.
async fn a_hold_that_lapses_while_it_is_decided_about_stays_its_owners(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let mut proxy = Proxy::start(rig.store.ledger.port()).await;
    let mut config = rig.store.config.clone();
    config.ledger.url = rig.store.ledger.through(proxy.port).config.url;
    let (near, far) = (rig.node().await, redis::open(&config).await.unwrap());
    stocked(&*near, "HOT", 1).await;
    let hold = held(&ask(&*near, cart("O1", &[("HOT", 1)]).ttl(1)).await.unwrap()).clone();
    proxy.plan("INSERT INTO hot_steps", Cut::Pause);
    let slow = far.clone();
    let stopped = tokio::spawn(async move { ask(&*slow, confirm(hold.id)).await });
    proxy.done().await;
    until("it has lapsed", async || near.time() > hold.expires_at).await;
    let wanted = ask(&*near, cart("O2", &[("HOT", 1)])).await.unwrap();
    proxy.go_on();
    let late = stopped.await.unwrap();
    let (sold, refused) = (matches!(late, Ok(Ok(Outcome::Order(_)))), matches!(wanted, Err(Refusal::SoldOut { .. })));
    // On a machine that is slow enough it is given up, and lapses; either way the unit has one owner.
    assert!(sold && refused || far.health().await.retries > 0, "{late:?} {wanted:?}");
    let all = settled(&rig.store, &*near).await;
    assert_eq!(all.stocks[0].sold + all.stocks[0].held, 1);
}
