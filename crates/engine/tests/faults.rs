//! What networks and servers do to an engine on a database: answers lost, connections cut, servers restarted, frozen or
//! badly configured, locks held by others, callers who hang up. Whatever was answered is true, whatever was not says
//! so, and service goes on by itself.
//!
//! What hurts a server has one of its own; what hurts a connection goes through a proxy of ours.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database, Kind, Server, until};
use common::invariants::check;
use common::make::{adjust, captured, cart, order_id, reference, set, sku};
use common::proxy::{Cut, Proxy};
use common::shoppers::{Load, SKUS, find};
use holdfast_engine::clock::{monotonic, random_seed};
use holdfast_engine::domain::{Command, Hold, Outcome, PaymentStatus, Refusal, Settlement};
use holdfast_engine::{Answer, Engine, EngineError, HoldFilter, Lanes, LanesConfig, Now, Strategy};
use holdfast_services::Signal;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

/// Service has to be back within this.
const HEALED: Duration = Duration::from_secs(8);

macro_rules! tests {
    ($kind:expr, $strategy:expr; $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::super::$name($kind, $strategy).await;
            }
        )*
    };
}

macro_rules! strategies {
    ($kind:ident, $of:expr; $($strategy:ident = $word:expr),*) => {
        mod $kind {
            $(mod $strategy {
                #[allow(clippy::wildcard_imports)]
                use super::super::*;

                tests! { $of, $word;
                    a_lost_answer_after_commit_is_unknown_and_the_retry_is_a_replay
                    a_commit_that_never_arrived_is_unknown_too_and_the_retry_is_new
                    a_connection_cut_before_the_commit_applies_nothing
                    a_connection_that_falls_silent_is_given_up_in_time
                    connections_cut_in_mid_load_cost_no_answer
                    a_server_restarted_in_mid_load_costs_no_answer
                    killed_sessions_cost_no_answer
                    a_frozen_server_is_told_in_time_and_served_again_when_it_thaws
                    a_full_pool_is_told_in_time_and_drains
                    two_thousand_callers_who_hang_up_leave_nothing_open
                    the_servers_defaults_do_not_matter
                }
            })*
        }
    };
}

strategies!(postgres, Kind::Postgres; row_lock = Strategy::RowLock, optimistic = Strategy::Optimistic,
    skip_locked = Strategy::SkipLocked);
// What its errors mean is the same by every strategy.
strategies!(mariadb, Kind::MariaDb; row_lock = Strategy::RowLock);

async fn ask(engine: &dyn Engine, command: impl Into<Command>) -> Result<Answer, EngineError> {
    engine.apply(vec![command.into()], Now::Clock).await.map(|mut answers| answers.remove(0))
}

async fn stocked(engine: &dyn Engine, name: &str, total: u64) {
    ask(engine, Command::SetStock(set(name, total))).await.unwrap().unwrap();
}

async fn holds_of(engine: &dyn Engine, order: &str) -> Vec<Hold> {
    let filter = HoldFilter { order_id: Some(order_id(order)), ..HoldFilter::default() };
    engine.holds(filter, 10).await.unwrap().items
}

fn is_lost(answer: &Result<Answer, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Unknown(_)))
}

async fn a_lost_answer_after_commit_is_unknown_and_the_retry_is_a_replay(kind: Kind, strategy: Strategy) {
    let Some(database) = Database::shared(kind, strategy).await else { return };
    let mut proxy = Proxy::start(database.port()).await;
    let (near, far) = (database.node().await, database.through(proxy.port).node().await);
    stocked(&*near, "HOT", 10).await;
    let mut lose = async |command: Command| {
        proxy.plan("COMMIT", Cut::Answer);
        let lost = ask(&*far, command.clone()).await;
        assert!(is_lost(&lost), "{lost:?}");
        proxy.done().await;
        // The same again, on another connection; which of the nodes is asked does not matter.
        let again = ask(&*near, command.clone()).await.unwrap();
        (again, ask(&*far, command).await.unwrap())
    };
    let (again, and_again) = lose(cart("O1", &[("HOT", 2)]).into()).await;
    let [made] = &holds_of(&*near, "O1").await[..] else { panic!("one hold was made") };
    let replay = Ok(Outcome::Held { hold: made.clone(), replay: true });
    assert_eq!((again, and_again), (replay.clone(), replay));

    let (again, _) = lose(Command::Confirm { hold: made.id, payment_ref: None }).await;
    assert!(matches!(again, Ok(Outcome::Order(_))), "{again:?}");
    let (again, _) = lose(captured("pi_1").order("O1").into()).await;
    assert_eq!(again, Ok(Outcome::Settled(Settlement::Duplicate)), "recorded with its effect, or not at all");
    let mut more = adjust("HOT", 3);
    if let Command::AdjustStock { key, .. } = &mut more {
        *key = Some(reference("delivery"));
    }
    let (again, _) = lose(more).await;
    assert!(matches!(again, Ok(Outcome::Stock { changed: false, .. })), "{again:?}");

    let all = check(&*near).await;
    assert_eq!((all.stocks[0].available, all.stocks[0].sold, all.holds.len()), (11, 2, 1));
    assert_eq!(all.payments[0].status, PaymentStatus::Settled);
}

async fn a_commit_that_never_arrived_is_unknown_too_and_the_retry_is_new(kind: Kind, strategy: Strategy) {
    let Some(database) = Database::shared(kind, strategy).await else { return };
    let mut proxy = Proxy::start(database.port()).await;
    let far = database.through(proxy.port).node().await;
    stocked(&*far, "HOT", 10).await;
    proxy.plan("COMMIT", Cut::Before);
    let lost = ask(&*far, cart("O1", &[("HOT", 2)])).await;
    assert!(is_lost(&lost), "who has sent it cannot know whether it has arrived: {lost:?}");
    proxy.done().await;
    assert_eq!(holds_of(&*far, "O1").await, []);
    let again = ask(&*far, cart("O1", &[("HOT", 2)])).await.unwrap();
    assert!(matches!(again, Ok(Outcome::Held { replay: false, .. })), "{again:?}");
    assert_eq!(check(&*far).await.stocks[0].held, 2);
}

async fn a_connection_cut_before_the_commit_applies_nothing(kind: Kind, strategy: Strategy) {
    let Some(database) = Database::shared(kind, strategy).await else { return };
    let mut proxy = Proxy::start(database.port()).await;
    let far = database.through(proxy.port).node().await;
    stocked(&*far, "HOT", 10).await;
    let mut asked = cart("the-order", &[("HOT", 2)]);
    asked.0.metadata = Some("{\"note\":\"the-note\"}".into());
    // The one is said when things are looked up, the other when they are written.
    for word in ["the-order", "the-note"] {
        for cut in [Cut::Before, Cut::Answer] {
            proxy.plan(word, cut);
            let failed = ask(&*far, asked.clone()).await;
            assert!(matches!(failed, Err(EngineError::Unavailable(_))), "{word} {cut:?}: {failed:?}");
            proxy.done().await;
            assert_eq!(holds_of(&*far, "the-order").await, [], "{word} {cut:?}");
            let all = check(&*far).await;
            assert_eq!((all.stocks[0].available, all.ledger.len()), (10, 1), "{word} {cut:?}");
        }
    }
    let again = ask(&*far, asked).await.unwrap();
    assert!(matches!(again, Ok(Outcome::Held { replay: false, .. })), "{again:?}");
}

async fn a_connection_that_falls_silent_is_given_up_in_time(kind: Kind, strategy: Strategy) {
    let Some(database) = Database::shared(kind, strategy).await else { return };
    let mut proxy = Proxy::start(database.port()).await;
    let mut far = database.through(proxy.port);
    far.config.timeout = Duration::from_millis(500);
    let far = far.node().await;
    stocked(&*far, "HOT", 10).await;
    let mut asked = cart("the-order", &[("HOT", 2)]);
    asked.0.metadata = Some("{\"note\":\"the-note\"}".into());
    for word in ["the-order", "the-note", "COMMIT"] {
        proxy.plan(word, Cut::Silence);
        let start = monotonic();
        let failed = ask(&*far, asked.clone()).await;
        let took = start.elapsed();
        assert!(took < Duration::from_millis(1_600), "{word}: {took:?}");
        match failed {
            Err(EngineError::Unavailable(_)) => assert_ne!(word, "COMMIT"),
            Err(EngineError::Unknown(_)) => assert_eq!(word, "COMMIT"),
            other => panic!("{word}: {other:?}"),
        }
        proxy.done().await;
        // Whoever asks for the same rows does not wait for the server to notice that nobody is there.
        proxy.cut();
        assert_eq!(check(&*database.node().await).await.holds, [], "{word}");
    }
    let again = ask(&*far, asked).await.unwrap();
    assert!(matches!(again, Ok(Outcome::Held { replay: false, .. })), "{again:?}");
}

/// Two nodes under load.
struct Busy {
    engines: Vec<Arc<dyn Engine>>,
    load: Load,
}

impl Busy {
    async fn start(database: &Database) -> Self {
        let mut engines = Vec::new();
        for _ in 0..2 {
            engines.push(database.node().await);
        }
        for name in SKUS {
            stocked(&*engines[0], name, 1_000_000_000).await;
        }
        let config = LanesConfig { workers: 3, ..LanesConfig::default() };
        let lanes: Vec<_> = engines.iter().map(|e| Lanes::start(e.clone(), &config).unwrap()).collect();
        let seed = random_seed();
        println!("seed {seed}");
        let mut load = Load::start(&lanes, 24, seed);
        load.served(100, HEALED).await;
        Self { engines, load }
    }

    /// Service is back, whatever was answered is there, and nothing was said but what may be.
    async fn heals(mut self) -> Vec<EngineError> {
        self.load.served(150, HEALED).await;
        let (answers, errors) = self.load.stop().await;
        let is_allowed = |e: &EngineError| matches!(e, EngineError::Unavailable(_) | EngineError::Unknown(_));
        assert!(errors.iter().all(is_allowed), "{errors:?}");
        for line in &answers {
            find(&*self.engines[1], line).await;
        }
        check(&*self.engines[0]).await;
        for engine in &self.engines {
            assert_eq!(engine.health().await.problem, None);
        }
        errors
    }
}

async fn connections_cut_in_mid_load_cost_no_answer(kind: Kind, strategy: Strategy) {
    let Some(database) = Database::shared(kind, strategy).await else { return };
    let proxy = Proxy::start(database.port()).await;
    let mut busy = Busy::start(&database.through(proxy.port)).await;
    for round in 0..12 {
        // Slower ones are cut in other places.
        proxy.delay(Duration::from_millis(round % 3));
        proxy.cut();
        busy.load.served(30, HEALED).await;
    }
    proxy.delay(Duration::ZERO);
    assert!(!busy.heals().await.is_empty(), "some were cut while they worked");
}

async fn a_server_restarted_in_mid_load_costs_no_answer(kind: Kind, strategy: Strategy) {
    let Some(mut server) = Server::start(kind, &[]) else { return };
    let mut database = server.database(strategy).await;
    database.config.wait = Duration::from_secs(2);
    database.config.timeout = Duration::from_secs(2);
    let mut busy = Busy::start(&database).await;
    for how in [Signal::Interrupt, Signal::Kill] {
        tokio::task::block_in_place(|| server.restart(how));
        busy.load.served(100, HEALED).await;
    }
    assert!(!busy.heals().await.is_empty(), "it was noticed");
}

async fn killed_sessions_cost_no_answer(kind: Kind, strategy: Strategy) {
    let Some(server) = Server::start(kind, &[]) else { return };
    let database = server.database(strategy).await;
    let mut busy = Busy::start(&database).await;
    let mut killed = 0;
    for _ in 0..10 {
        killed += server.kill_backends(&database).await;
        busy.load.served(30, HEALED).await;
    }
    assert!(killed >= 10, "{killed} sessions were killed");
    assert!(!busy.heals().await.is_empty(), "some were killed while they worked");
    assert_eq!(server.idle_in_transaction(&database).await, 0);
}

async fn a_frozen_server_is_told_in_time_and_served_again_when_it_thaws(kind: Kind, strategy: Strategy) {
    let Some(server) = Server::start(kind, &[]) else { return };
    let mut database = server.database(strategy).await;
    database.config.timeout = Duration::from_millis(500);
    database.config.wait = Duration::from_millis(500);
    let busy = Busy::start(&database).await;
    let engine = database.node().await;
    stocked(&*engine, "RARE", 5).await;
    server.freeze();
    // The first finds connections that worked a moment ago, the others have to make new ones.
    for n in 0..2 {
        let before = monotonic();
        let asked = (0..8).map(|k| {
            let engine = engine.clone();
            tokio::spawn(async move { ask(&*engine, cart(&format!("O{n}-{k}"), &[("RARE", 1)])).await })
        });
        for answer in asked.collect::<Vec<_>>() {
            let answer = answer.await.unwrap();
            assert!(matches!(answer, Err(EngineError::Unavailable(_) | EngineError::Unknown(_))), "{answer:?}");
        }
        let read = engine.stock(&sku("RARE")).await;
        assert!(matches!(read, Err(EngineError::Unavailable(_))), "{read:?}");
        let took = before.elapsed();
        assert!(took < Duration::from_millis(2_500), "a write and a read took {took:?}");
    }
    let health = engine.health().await;
    assert_eq!(health.problem.as_deref(), Some("the database cannot be reached"), "and no more is told");
    server.thaw();
    let start = monotonic();
    until("it serves again", async || engine.health().await.problem.is_none()).await;
    assert!(start.elapsed() < HEALED);
    let held = ask(&*engine, cart("O9", &[("RARE", 1)])).await.unwrap();
    assert!(matches!(held, Ok(_) | Err(Refusal::SoldOut { .. })), "{held:?}");
    busy.heals().await;
}

async fn a_full_pool_is_told_in_time_and_drains(kind: Kind, strategy: Strategy) {
    let Some(mut database) = Database::shared(kind, strategy).await else { return };
    database.config.pool = 2;
    database.config.wait = Duration::from_millis(300);
    database.config.timeout = Duration::from_secs(3);
    let engine = database.node().await;
    stocked(&*engine, "HOT", 10).await;
    stocked(&*engine, "COLD", 10).await;
    let mut outsider = database.raw().await;
    outsider.run("BEGIN").await.unwrap();
    outsider.run("SELECT sku FROM stock WHERE sku = 'HOT' FOR UPDATE").await.unwrap();
    let stuck = ["O1", "O2"].map(|order| {
        let engine = engine.clone();
        tokio::spawn(async move { ask(&*engine, cart(order, &[("HOT", 1)])).await })
    });
    // An optimist gives up a few times before he waits.
    database.until_locks_are_waited_for(2, 200).await;
    let start = monotonic();
    let turned_away = ask(&*engine, cart("O3", &[("COLD", 1)])).await;
    assert!(matches!(turned_away, Err(EngineError::Unavailable(_))), "{turned_away:?}");
    assert!(engine.stock(&sku("COLD")).await.is_err(), "a read waits no longer than a write");
    assert!(start.elapsed() < Duration::from_secs(2), "bounded: {:?}", start.elapsed());
    // Those that wait are told in time too, and have not been applied.
    for stuck in stuck {
        let answer = stuck.await.unwrap();
        assert!(matches!(answer, Err(EngineError::Unavailable(_))), "{answer:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(8), "bounded: {:?}", start.elapsed());
    outsider.run("ROLLBACK").await.unwrap();
    for order in ["O1", "O2", "O3"] {
        let held = ask(&*engine, cart(order, &[("HOT", 1)])).await.unwrap();
        assert!(matches!(held, Ok(Outcome::Held { replay: false, .. })), "{held:?}");
    }
    assert_eq!(check(&*engine).await.holds.len(), 3);
}

async fn two_thousand_callers_who_hang_up_leave_nothing_open(kind: Kind, strategy: Strategy) {
    let Some(server) = Server::start(kind, &[]) else { return };
    let database = server.database(strategy).await;
    let engine = database.node().await;
    let names: Vec<String> = (0..20).map(|n| format!("S{n}")).collect();
    for name in &names {
        stocked(&*engine, name, 1_000).await;
    }
    let asked = |n: u64| cart(&format!("O{n}"), &[(&names[n as usize % 20], 1 + n % 3)]);
    // Half of them wait in a lane, as callers of the service do; a batch of one each would take the others longer.
    let lanes = Lanes::start(engine.clone(), &LanesConfig { workers: 2, ..LanesConfig::default() }).unwrap();
    for n in 0..2_000_u64 {
        let mut request: Pin<Box<dyn Future<Output = Result<Answer, EngineError>> + Send>> =
            if n % 2 == 0 { Box::pin(lanes.submit(asked(n).into())) } else { Box::pin(ask(&*engine, asked(n))) };
        if n % 10 < 2 {
            // Hangs up while it is served.
            let _ = tokio::time::timeout(Duration::from_micros(n * 2), request).await;
        } else {
            let _ = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
    until("nothing is at work", async || database.open_transactions().await == 0).await;
    // Readers have nobody who goes on without them: whatever they leave behind is not used again.
    for n in 0..100 {
        let _ = tokio::time::timeout(Duration::from_micros(n * 30), engine.audit()).await;
        let served = ask(&*engine, Command::Sweep { limit: 1 }).await;
        assert!(served.is_ok(), "after {n} readers hung up: {served:?}");
    }
    let held = ask(&*engine, cart("NEXT", &[("S0", 1)])).await.unwrap();
    assert!(matches!(held, Ok(Outcome::Held { replay: false, .. })), "business as usual: {held:?}");
    until("no session waits in a transaction", async || server.idle_in_transaction(&database).await == 0).await;
    let all = check(&*engine).await;
    for hold in all.holds.iter().filter(|h| h.order_id.as_str() != "NEXT") {
        let n = hold.order_id.as_str()[1..].parse().unwrap();
        assert_eq!(hold.lines, asked(n).0.lines, "whole");
    }
    // Each was on its way before its caller hung up.
    assert_eq!(all.holds.len(), 2_001);
}

/// The one who has waited for longer is the one whom the database gives up: us.
/// Where SKUs are locked: the others do not wait for an outsider, or decide again before there is a deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deadlocks_with_an_outsider_are_settled_inside() {
    a_deadlock_with_an_outsider_is_settled_inside(Kind::Postgres, Strategy::RowLock).await;
    a_deadlock_with_an_outsider_is_settled_inside(Kind::Postgres, Strategy::Optimistic).await;
    a_deadlock_with_an_outsider_is_settled_inside(Kind::MariaDb, Strategy::RowLock).await;
    a_deadlock_with_an_outsider_is_settled_inside(Kind::MariaDb, Strategy::Optimistic).await;
}

async fn a_deadlock_with_an_outsider_is_settled_inside(kind: Kind, strategy: Strategy) {
    let Some(database) = Database::shared(kind, strategy).await else { return };
    let engine = database.node().await;
    stocked(&*engine, "A", 10).await;
    stocked(&*engine, "B", 10).await;
    // In which order a strategy locks rows is its own business, so both ways round are tried.
    for (n, [first, second]) in [["B", "A"], ["A", "B"]].into_iter().enumerate() {
        let mut outsider = database.raw().await;
        let lock = |name| format!("SELECT sku FROM stock WHERE sku = '{name}' FOR UPDATE");
        outsider.run("BEGIN").await.unwrap();
        outsider.run(&lock(first)).await.unwrap();
        let asked = cart(&format!("O{n}"), &[("A", 1), ("B", 1)]);
        let ours = tokio::spawn({
            let engine = engine.clone();
            async move { ask(&*engine, asked).await }
        });
        database.until_locks_are_waited_for(1, 0).await;
        // Whoever is chosen to give way, gives way.
        if let Err(error) = outsider.run(&lock(second)).await {
            assert!(error.starts_with("40"), "{error}");
        }
        outsider.run("ROLLBACK").await.unwrap();
        let held = ours.await.unwrap();
        assert!(matches!(held, Ok(Ok(Outcome::Held { replay: false, .. }))), "{held:?}");
    }
    if kind == Kind::Postgres {
        // MariaDB lets the one go on that has written more, which is us.
        assert!(engine.health().await.retries >= 1, "there was a deadlock, and nobody was told");
    }
    assert_eq!(check(&*engine).await.stocks[0].held, 2);
}

/// What a server can be told to do for everyone who says nothing else: a statement, and one that takes it back.
fn defaults(kind: Kind) -> Vec<(&'static str, String, String)> {
    let all: &[(&str, &str)] = match kind {
        Kind::Postgres => &[
            ("default_transaction_isolation", "'serializable'"),
            ("default_transaction_isolation", "'repeatable read'"),
            ("default_transaction_read_only", "on"),
            ("default_transaction_deferrable", "on"),
            ("synchronous_commit", "off"),
            ("lock_timeout", "1"),
            ("standard_conforming_strings", "off"),
            ("search_path", "pg_catalog"),
            ("timezone", "'Asia/Kathmandu'"),
        ],
        Kind::MariaDb => {
            &[("tx_isolation", "'SERIALIZABLE'"), ("tx_isolation", "'READ-UNCOMMITTED'"), ("autocommit", "0")]
        }
    };
    let statements = |(name, value): &(&'static str, &str)| match kind {
        Kind::Postgres => (
            *name,
            format!("ALTER DATABASE holdfast SET {name} = {value}"),
            format!("ALTER DATABASE holdfast RESET {name}"),
        ),
        Kind::MariaDb => (*name, format!("SET GLOBAL {name} = {value}"), format!("SET GLOBAL {name} = DEFAULT")),
    };
    all.iter().map(statements).collect()
}

/// From now on, what a session that writes entries has set is written down.
async fn watch_sessions(database: &Database) {
    let mut raw = database.raw().await;
    match database.kind {
        Kind::Postgres => {
            raw.run(
                "CREATE TABLE seen (isolation text, synced text);
                 CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
                     INSERT INTO seen
                     VALUES (current_setting('transaction_isolation'), current_setting('synchronous_commit'));
                     RETURN NULL;
                 END $$;
                 CREATE TRIGGER see AFTER INSERT ON ledger FOR EACH STATEMENT EXECUTE FUNCTION see()",
            )
            .await
        }
        Kind::MariaDb => {
            raw.run("CREATE TABLE seen (isolation text, synced text)").await.unwrap();
            raw.run(
                "CREATE TRIGGER see AFTER INSERT ON ledger FOR EACH ROW
                 INSERT INTO seen VALUES (lower(replace(@@tx_isolation, '-', ' ')), 'on')",
            )
            .await
        }
    }
    .unwrap();
}

async fn the_servers_defaults_do_not_matter(kind: Kind, strategy: Strategy) {
    let Some(server) = Server::start(kind, &[]) else { return };
    let mut owner = server.database(strategy).await.raw().await;
    for (name, set_default, reset) in defaults(kind) {
        owner.run(&set_default).await.unwrap();
        let database = server.database(strategy).await;
        let (first, second) = tokio::join!(database.try_node(), database.try_node());
        let nodes = [first, second].map(|node| node.unwrap_or_else(|e| panic!("{name}: {e}")));
        owner.run(&reset).await.unwrap();
        watch_sessions(&database).await;
        stocked(&*nodes[0], "HOT", 20).await;
        let asked = (0..60).map(|n| {
            let engine = nodes[n % 2].clone();
            tokio::spawn(async move { ask(&*engine, cart(&format!("O{n}"), &[("HOT", 1)])).await.unwrap() })
        });
        let mut ids = BTreeSet::new();
        for answer in asked.collect::<Vec<_>>() {
            match answer.await.unwrap() {
                Ok(Outcome::Held { hold, .. }) => ids.insert(hold.id),
                Err(Refusal::SoldOut { .. }) => false,
                other => panic!("{name}: {other:?}"),
            };
        }
        assert_eq!(ids.len(), 20, "{name}");
        assert_eq!(check(&*nodes[1]).await.stocks[0].held, 20);
        let seen = database.raw().await.rows("SELECT DISTINCT isolation, synced FROM seen").await.unwrap();
        assert_eq!(seen, [["read committed", "on"]], "{name}");
    }
}
