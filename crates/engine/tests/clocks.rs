//! Nodes whose wall clocks are minutes apart agree on every expiry, because the database's clock decides.
//!
//! A node is a process of its own: the test starts itself again under a wall clock that is ahead or behind, and talks
//! to it line by line.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database, Kind, Raw, skipped};
use common::invariants::check;
use common::make::{cart, set};
use holdfast_engine::clock::wall;
use holdfast_engine::domain::{Command, HoldId, Outcome, Refusal};
use holdfast_engine::{Engine, Now, SqlConfig, Strategy};
use holdfast_services::{WALL_CLOCK_FILE, wall_clock};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const NODE: &str = "HOLDFAST_TEST_NODE";
/// Seconds by which the clocks are wrong.
const APART: i64 = 300;

/// A node in a process of its own.
struct Node {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Node {
    fn start(test: &str, database: &Database, library: &Path, offset: i64) -> Self {
        let file = library.with_file_name(format!("offset{offset}"));
        std::fs::write(&file, offset.to_string()).unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(NODE, format!("{} {}", database.config.schema, database.config.url))
            .env("LD_PRELOAD", library)
            .env(WALL_CLOCK_FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut node = Self { child, to, from };
        node.until("ready");
        node
    }

    /// Reads lines until one starts with this; what follows.
    fn until(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "the node ended");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_owned();
            }
        }
    }

    fn ask(&mut self, question: &str) -> String {
        writeln!(self.to, "{question}").unwrap();
        self.until("answer ")
    }

    fn number(&mut self, question: &str) -> i64 {
        self.ask(question).parse().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a node's process does.
fn serve(kind: Kind, strategy: Strategy, place: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (schema, url) = place.split_once(' ').unwrap();
        let config = SqlConfig { schema: schema.into(), strategy, ..SqlConfig::new(url) };
        let engine = Database { kind, config }.node().await;
        println!("\nready");
        for line in std::io::stdin().lines() {
            let line = line.unwrap();
            println!("answer {}", answer(&*engine, &line.split(' ').collect::<Vec<_>>()).await);
        }
    });
}

async fn answer(engine: &dyn Engine, words: &[&str]) -> String {
    match words {
        ["wall"] => wall().millis().to_string(),
        ["time"] => engine.time().millis().to_string(),
        ["offset"] => engine.health().await.clock_offset_ms.to_string(),
        ["hold", order, seconds] => {
            let asked = cart(order, &[("HOT", 1)]).ttl(seconds.parse().unwrap());
            match engine.apply(vec![asked.into()], Now::Clock).await.unwrap().remove(0) {
                Ok(Outcome::Held { hold, .. }) => format!("{} {}", hold.id, hold.expires_at.millis()),
                Err(Refusal::SoldOut { .. }) => "sold out".into(),
                other => panic!("{other:?}"),
            }
        }
        ["look", id] => {
            let hold = engine.hold(HoldId::parse(id).unwrap()).await.unwrap().unwrap();
            format!("{} {}", hold.status_at(engine.time()).as_str(), hold.expires_at.millis())
        }
        other => panic!("{other:?}"),
    }
}

/// The database's clock, in milliseconds.
async fn database_time(kind: Kind, raw: &mut Raw) -> i64 {
    let now = match kind {
        Kind::Postgres => "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
        Kind::MariaDb => "SELECT CAST(unix_timestamp(sysdate(3)) * 1000 AS SIGNED)",
    };
    raw.one(now).await.parse().unwrap()
}

async fn nodes_agree(kind: Kind, strategy: Strategy, test: &str) {
    let Some(database) = Database::shared(kind, strategy).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let library = match wall_clock(folder.path()) {
        Ok(library) => library,
        Err(why) => return skipped(&why),
    };
    let engine = database.node().await;
    engine.apply(vec![Command::SetStock(set("HOT", 2))], Now::Clock).await.unwrap().remove(0).unwrap();
    let mut raw = database.raw().await;
    let mut nodes = [APART, -APART].map(|offset| Node::start(test, &database, &library, offset));
    let [ahead, behind] = &mut nodes;
    let apart = ahead.number("wall") - behind.number("wall");
    assert!(apart > (2 * APART - 5) * 1000, "the clocks are {apart} ms apart");
    for (node, offset) in [(&mut *ahead, APART * 1000), (behind, -APART * 1000)] {
        let (before, told) = (database_time(kind, &mut raw).await, node.number("time"));
        assert!((before - 1_000..=before + 1_000).contains(&told), "{told} is not the database's {before}");
        let told = node.number("offset");
        assert!((told - offset).abs() < 2_000, "who operates it is told: {told} ms");
    }
    // Both ways: what one holds for minutes the other must not take, what one holds for seconds both see lapse.
    for (maker, order) in [(0, "ahead"), (1, "behind")] {
        let now = database_time(kind, &mut raw).await;
        let long = nodes[maker].ask(&format!("hold long-{order} 60"));
        let expires_at: i64 = long.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((now + 59_000..=now + 61_000).contains(&expires_at), "{expires_at} is not a minute after {now}");
        let brief = nodes[maker].ask(&format!("hold brief-{order} 2"));
        assert_eq!(nodes[1 - maker].ask(&format!("hold thief-{order} 60")), "sold out");
        both_see_it_lapse(&mut nodes, kind, &mut raw, &brief).await;
        let taken = nodes[1 - maker].ask(&format!("hold heir-{order} 60"));
        assert_ne!(taken, "sold out", "a lapsed unit is sellable on the other node");
        let id = long.split(' ').next().unwrap();
        for node in &mut nodes {
            assert_eq!(node.ask(&format!("look {id}")), format!("held {expires_at}"));
        }
        engine.apply(vec![Command::SetStock(set("HOT", 4))], Now::Clock).await.unwrap().remove(0).unwrap();
    }
    check(&*engine).await;
}

async fn both_see_it_lapse(nodes: &mut [Node; 2], kind: Kind, raw: &mut Raw, hold: &str) {
    let (id, expires_at) = hold.split_once(' ').unwrap();
    let deadline: i64 = expires_at.parse().unwrap();
    let mut expired = [false; 2];
    while expired != [true; 2] {
        for (node, expired) in nodes.iter_mut().zip(&mut expired) {
            let before = database_time(kind, raw).await;
            let told = node.ask(&format!("look {id}"));
            let after = database_time(kind, raw).await;
            let (status, told_deadline) = told.split_once(' ').unwrap();
            assert_eq!(told_deadline, expires_at);
            if after < deadline {
                assert_eq!(status, "held", "{} ms before its end", deadline - after);
            }
            if before > deadline + 500 {
                assert_eq!(status, "expired", "{} ms after its end", before - deadline);
                *expired = true;
            }
        }
    }
}

fn nodes_whose_clocks_are_minutes_apart_agree(kind: Kind, strategy: Strategy, test: &str) {
    if let Ok(place) = std::env::var(NODE) {
        return serve(kind, strategy, &place);
    }
    tokio::runtime::Runtime::new().unwrap().block_on(nodes_agree(kind, strategy, test));
}

#[test]
fn nodes_on_postgres_agree_on_every_expiry() {
    let test = "nodes_on_postgres_agree_on_every_expiry";
    nodes_whose_clocks_are_minutes_apart_agree(Kind::Postgres, Strategy::RowLock, test);
}

#[test]
fn nodes_that_skip_locked_agree_on_every_expiry() {
    let test = "nodes_that_skip_locked_agree_on_every_expiry";
    nodes_whose_clocks_are_minutes_apart_agree(Kind::Postgres, Strategy::SkipLocked, test);
}

#[test]
fn nodes_on_mariadb_agree_on_every_expiry() {
    let test = "nodes_on_mariadb_agree_on_every_expiry";
    nodes_whose_clocks_are_minutes_apart_agree(Kind::MariaDb, Strategy::RowLock, test);
}
