//! The last line of defence: what the tables refuse whoever asks, and what an audit finds when somebody gets past it.
//!
//! Whoever writes here is the database's owner with a client of their own. Each constraint that the database knows must
//! be among those that were tried.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database, Kind, Raw};
use common::invariants::{check, everything};
use common::make::{authorized, captured, cart, set};
use holdfast_engine::domain::{Command, HoldId, Outcome};
use holdfast_engine::{Drift, Engine, Now, Strategy};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What must be refused, in SQL that every kind of database reads.
const ATTACKS: [&str; 36] = [
    "UPDATE stock SET available = -1",
    "UPDATE stock SET held = -1",
    "UPDATE stock SET sold = -1",
    "UPDATE stock SET available = available - 1000, sold = sold + 1000",
    "UPDATE stock SET carved = -1",
    "UPDATE stock SET carved = available + 1",
    "UPDATE stock SET sku = 'COLD'",
    "INSERT INTO units (sku, n) VALUES ('HOT', 1), ('HOT', 1)",
    "UPDATE holds SET status = 'lost'",
    "UPDATE holds SET order_id = 'HELD'",
    "UPDATE holds SET order_id = 'SOLD' WHERE order_id = 'HELD'",
    "UPDATE holds SET order_id = 'SOLD', status = 'confirmed' WHERE order_id = 'HELD'",
    "UPDATE holds SET id = (SELECT hold FROM orders WHERE order_id = 'SOLD') WHERE order_id = 'HELD'",
    "UPDATE claims SET quantity = 0",
    "INSERT INTO claims (sku, expires_at, hold, quantity) SELECT sku, 1, hold, 1 FROM claims",
    "DELETE FROM holds WHERE status = 'confirmed'",
    "UPDATE orders SET status = 'free'",
    "UPDATE orders SET order_id = 'SOLD'",
    "UPDATE orders SET hold = (SELECT id FROM holds WHERE order_id = 'SOLD')",
    "UPDATE orders SET payment_provider = 'stripe', payment_id = 'pi_1'",
    "UPDATE ledger SET seq = 1",
    "INSERT INTO ledger (seq, at, kind, available, held, sold) SELECT seq, at, kind, 1, 0, 0 FROM ledger",
    "UPDATE purchases SET units = -1",
    "UPDATE purchases SET units = units - 1000",
    "INSERT INTO purchases (customer_id, sku, units) SELECT customer_id, sku, 1 FROM purchases",
    "UPDATE payments SET provider = 'stripe', payment_id = 'pi_1'",
    "UPDATE jobs SET provider = 'stripe', payment_id = 'pi_1', is_capture = (1 = 1)",
    "UPDATE jobs SET idempotency_key = 'the same'",
    "INSERT INTO events (provider, event_id) SELECT provider, event_id FROM events",
    "INSERT INTO totals (id, seq, holds, skus, last_time) VALUES (1, 0, 0, 0, 0)",
    "INSERT INTO totals (id, seq, holds, skus, last_time) VALUES (2, 0, 0, 0, 0)",
    "INSERT INTO moves (id, token, source, phase, last, is_done) VALUES (2, 1, 'x', 'x', '', false)",
    "INSERT INTO moves (id, token, source, phase, last, is_done)
     VALUES (1, 1, 'x', 'x', '', false), (1, 2, 'y', 'y', '', false)",
    "INSERT INTO hot_partitions (part, epoch, is_auditing, since, server, drained_epoch, drained_seq)
     VALUES (0, 1, false, 0, '', 0, 0), (0, 2, false, 0, '', 0, 0)",
    "INSERT INTO hot_steps (token, effects, at) VALUES ('t', 'x', 1), ('t', '', 2)",
    "INSERT INTO notes (name, version, text) VALUES ('n', 1, 'x'), ('n', 2, 'y')",
];

/// What must be refused besides, in the words of each kind.
fn more_attacks(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Postgres => &[
            "INSERT INTO receipts (key, used_for) SELECT key, 'another' FROM receipts",
            "INSERT INTO schema_version (version) SELECT version FROM schema_version",
            "INSERT INTO payments (n, provider, payment_id, authorized, captured, failed, canceled, refunded, status,
                received_at) OVERRIDING SYSTEM VALUE
             SELECT n, 'x', payment_id, authorized, captured, failed, canceled, refunded, status, received_at
             FROM payments",
            "INSERT INTO jobs (n, provider, payment_id, is_capture, kind, reason, state, idempotency_key, created_at)
             OVERRIDING SYSTEM VALUE
             SELECT n, 'x', payment_id, is_capture, kind, reason, state, 'x' || idempotency_key, created_at FROM jobs",
            "INSERT INTO hot_parked (n, part, epoch, seq, fact, why, at) OVERRIDING SYSTEM VALUE
             VALUES (1, 0, 1, 1, 'x', 'y', 1), (1, 0, 1, 2, 'x', 'y', 1)",
        ],
        Kind::MariaDb => &[
            "INSERT INTO receipts (used_key, used_for) SELECT used_key, 'another' FROM receipts",
            "INSERT INTO holdfast_version (version) SELECT version FROM holdfast_version",
            "INSERT INTO hot_parked (n, part, epoch, seq, fact, why, at)
             VALUES (1, 0, 1, 1, 'x', 'y', 1), (1, 0, 1, 2, 'x', 'y', 1)",
        ],
    }
}

/// Every constraint on our tables that can be broken by a value, as the database knows it; `None` where a refusal does
/// not name what was broken.
async fn constraints(database: &Database, raw: &mut Raw) -> Option<BTreeSet<String>> {
    match database.kind {
        Kind::Postgres => {
            let schema = &database.config.schema;
            let known = format!(
                "SELECT conname FROM pg_constraint
                 WHERE connamespace = '{schema}'::regnamespace AND contype IN ('c', 'f', 'p', 'u', 'x')
                 UNION SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
                 WHERE x.indisunique AND i.relnamespace = '{schema}'::regnamespace"
            );
            Some(raw.rows(&known).await.unwrap().into_iter().flatten().collect())
        }
        Kind::MariaDb => None,
    }
}

/// A row of everything: two SKUs, holds and orders of them, payments, one that goes back and one to be captured.
async fn shop(kind: Kind, strategy: Strategy) -> Option<(Database, Arc<dyn Engine>)> {
    let database = Database::shared(kind, strategy).await?;
    let engine = database.node().await;
    let adjust = |key: &str| Command::AdjustStock {
        sku: common::make::sku("HOT"),
        delta: 1,
        reason: None,
        key: Some(common::make::reference(key)),
        create: false,
    };
    let commands: Vec<Command> = vec![
        Command::SetStock(set("HOT", 50)),
        Command::SetStock(set("COLD", 50)),
        adjust("key"),
        cart("HELD", &[("HOT", 3), ("COLD", 1)]).into(),
        cart("SOLD", &[("HOT", 2)]).by("ann").into(),
        captured("pi_1").order("SOLD").into(),
        captured("pi_2").order("SOLD").into(),
        cart("DUE", &[("HOT", 1)]).by("bob").into(),
        authorized("pi_3").order("DUE").into(),
        cart("GONE", &[("HOT", 1)]).into(),
    ];
    let mut answers = engine.apply(commands, Now::Clock).await.unwrap();
    let Some(Ok(Outcome::Held { hold, .. })) = answers.pop() else { panic!("not held") };
    release(&*engine, hold.id).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    Some((database, engine))
}

async fn release(engine: &dyn Engine, hold: HoldId) {
    engine.apply(vec![Command::Release { hold }], Now::Clock).await.unwrap().remove(0).unwrap();
}

async fn the_tables_refuse_what_contradicts_the_rules(kind: Kind) {
    let Some((database, engine)) = shop(kind, Strategy::RowLock).await else { return };
    let before = check(&*engine).await;
    let mut raw = database.raw().await;
    let known = constraints(&database, &mut raw).await;
    let mut tried = BTreeSet::new();
    for attack in ATTACKS.iter().chain(more_attacks(kind)) {
        let refused = raw.run(attack).await;
        let Err(why) = refused else { panic!("the database does as it is told: {attack}") };
        // Class 23: an integrity constraint was violated.
        assert!(why.starts_with("23"), "{attack} is refused for another reason: {why}");
        let name = why.rsplit_once('[').map(|(_, name)| name.trim_end_matches(']').to_owned());
        tried.extend(name);
    }
    if let Some(known) = known {
        assert_eq!(tried, known, "every constraint was tried");
    }
    assert_eq!(everything(&*engine).await, before, "and nothing was changed");
    check(&*engine).await;
}

/// SKU, field and signed difference.
type Found = &'static [(&'static str, &'static str, i64)];

/// What somebody does by hand that the tables cannot refuse: the statement, and what an audit has to say.
const TAMPERINGS: [(&str, Found); 6] = [
    ("UPDATE stock SET available = available + 1 WHERE sku = 'HOT'", &[("HOT", "available", 1)]),
    ("UPDATE stock SET available = available - 7 WHERE sku = 'COLD'", &[("COLD", "available", -7)]),
    (
        "UPDATE stock SET held = held - 2, available = available + 2 WHERE sku = 'HOT'",
        &[("HOT", "available", 2), ("HOT", "held", -2), ("HOT", "held_by_holds", -2)],
    ),
    ("UPDATE stock SET sold = sold + 4 WHERE sku = 'HOT'", &[("HOT", "sold", 4), ("HOT", "sold_by_orders", 4)]),
    ("DELETE FROM claims WHERE sku = 'COLD'", &[("COLD", "held_by_holds", 1)]),
    ("UPDATE orders SET lines = '1 0 HOT' WHERE order_id = 'SOLD'", &[("HOT", "sold_by_orders", 1)]),
];

async fn an_audit_names_what_somebody_did_by_hand(kind: Kind) {
    let Some((database, engine)) = shop(kind, Strategy::RowLock).await else { return };
    check(&*engine).await;
    let mut raw = database.raw().await;
    for (tampering, found) in TAMPERINGS {
        raw.run("BEGIN").await.unwrap();
        raw.run(&kind.words(tampering)).await.unwrap();
        assert_eq!(engine.audit().await.unwrap().drift, [], "an audit sees what is committed");
        raw.run("COMMIT").await.unwrap();
        // One node has audited before and folds what came since; the other folds everything.
        for node in [engine.clone(), database.node().await] {
            let drift = node.audit().await.unwrap().drift;
            let told: Vec<_> = drift.iter().map(|d: &Drift| (&*d.sku, d.field, d.actual - d.expected)).collect();
            assert_eq!(told, found, "{tampering}");
        }
        // The same way back.
        let undo = match tampering.split(' ').next().unwrap() {
            "DELETE" => {
                "INSERT INTO claims (sku, expires_at, hold, quantity)
                 SELECT 'COLD', expires_at, id, 1 FROM holds WHERE order_id = 'HELD'"
            }
            _ if tampering.contains("lines") => "UPDATE orders SET lines = '2 0 HOT' WHERE order_id = 'SOLD'",
            _ => &tampering.replace('+', "~").replace("- ", "+ ").replace('~', "-"),
        };
        raw.run(&kind.words(undo)).await.unwrap();
        assert_eq!(engine.audit().await.unwrap().drift, [], "{undo}");
    }
}

/// Where a node and the tables disagree about what may be, the tables win, and the caller hears no guess.
async fn an_engine_that_meets_what_cannot_be_says_so(kind: Kind, strategy: Strategy) {
    let Some((database, engine)) = shop(kind, strategy).await else { return };
    let mut raw = database.raw().await;
    raw.run(&kind.words("UPDATE holds SET lines = 'nonsense' WHERE order_id = 'HELD'")).await.unwrap();
    let asked = vec![cart("HELD", &[("HOT", 3), ("COLD", 1)]).into()];
    let answer = engine.apply(asked, Now::Clock).await;
    assert!(matches!(answer, Err(holdfast_engine::EngineError::Corrupt(_))), "{answer:?}");
    // Whoever does not meet it is served.
    let other = engine.apply(vec![cart("O2", &[("COLD", 1)]).into()], Now::Clock).await.unwrap();
    assert!(matches!(other[..], [Ok(Outcome::Held { .. })]), "{other:?}");
}

macro_rules! kinds {
    ($($module:ident = $kind:expr),+) => {
        $(mod $module {
            use super::Kind;

            #[tokio::test]
            async fn the_tables_refuse_what_contradicts_the_rules() {
                super::the_tables_refuse_what_contradicts_the_rules($kind).await;
            }

            #[tokio::test]
            async fn an_audit_names_what_somebody_did_by_hand() {
                super::an_audit_names_what_somebody_did_by_hand($kind).await;
            }

            #[tokio::test]
            async fn an_engine_that_meets_what_cannot_be_says_so() {
                for strategy in Kind::STRATEGIES {
                    super::an_engine_that_meets_what_cannot_be_says_so($kind, strategy).await;
                }
            }
        })+
    };
}

kinds!(postgres = Kind::Postgres, mariadb = Kind::MariaDb);
