//! Tables and statements: nodes that start at once, a newer version, and every statement as the real server reads and
//! plans it.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database, Kind, Raw};
use common::invariants::check;
use common::make::set;
use holdfast_engine::domain::Command;
use holdfast_engine::{Now, Strategy};
use std::path::Path;

const VERSIONS: [&str; 4] = ["1", "2", "3", "4"];

async fn nodes_that_start_at_once_make_the_tables_once(kind: Kind) {
    for _ in 0..5 {
        let Some(database) = Database::shared(kind, Strategy::RowLock).await else { return };
        let nodes = futures_util::future::join_all((0..4).map(|_| database.try_node())).await;
        let nodes: Vec<_> = nodes.into_iter().map(Result::unwrap).collect();
        let mut raw = database.raw().await;
        let versions = raw.rows(&kind.words("SELECT version FROM schema_version ORDER BY version")).await.unwrap();
        assert_eq!(versions, VERSIONS.map(|version| [version]));
        assert_eq!(raw.one("SELECT count(*) FROM totals").await, "1");
        nodes[0].apply(vec![Command::SetStock(set("A", 5))], Now::Clock).await.unwrap().remove(0).unwrap();
        for node in &nodes {
            assert_eq!(check(&**node).await.stocks.len(), 1);
        }
    }
}

/// The versions that were made, in order.
async fn versions(raw: &mut Raw) -> Vec<String> {
    let kind = match raw {
        Raw::Postgres(_) => Kind::Postgres,
        Raw::MariaDb(_) => Kind::MariaDb,
    };
    raw.rows(&kind.words("SELECT version FROM schema_version ORDER BY version")).await.unwrap().concat()
}

/// A database as version 1 has left it: five units of a SKU, two of them held.
async fn a_store_of_version_1(database: &Database, raw: &mut Raw) {
    let kind = database.kind;
    let (tables, id) = match kind {
        Kind::Postgres => {
            raw.run(&format!("CREATE SCHEMA {}", database.config.schema)).await.unwrap();
            (include_str!("../src/postgres/migrations/1.sql"), "'01890a5d-ac96-774b-bcce-b302099a8057'")
        }
        Kind::MariaDb => (include_str!("../src/mysql/migrations/1.sql"), "X'01890a5dac96774bbcceb302099a8057'"),
    };
    let version = "CREATE TABLE schema_version (version integer PRIMARY KEY,
                   made_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)";
    let rows = [
        "INSERT INTO schema_version (version) VALUES (1)".to_owned(),
        "INSERT INTO stock VALUES ('A', 3, 2, 0, NULL, 1, 2, 0)".to_owned(),
        format!(
            "INSERT INTO holds (id, order_id, status, lines, created_at, expires_at, late)
             VALUES ({id}, 'O1', 'held', '2 A', 2, 4102444800000, false)"
        ),
        format!("INSERT INTO claims (sku, expires_at, hold, quantity) VALUES ('A', 4102444800000, {id}, 2)"),
        format!(
            "INSERT INTO ledger (seq, at, kind, sku, available, held, sold, hold, order_id)
             VALUES (1, 1, 'received', 'A', 5, 0, 0, NULL, NULL), (2, 2, 'held', 'A', -2, 2, 0, {id}, 'O1')"
        ),
        "UPDATE totals SET seq = 2, holds = 1, skus = 1, last_time = 2".to_owned(),
    ];
    let tables = tables.split(";\n").filter(|sql| !sql.trim().is_empty());
    for sql in std::iter::once(version).chain(tables).chain(rows.iter().map(String::as_str)) {
        let sql = kind.words(sql).replace(
            "status, lines,",
            match kind {
                Kind::Postgres => "status, lines,",
                Kind::MariaDb => "status, lines_text,",
            },
        );
        raw.run(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
}

async fn a_store_of_version_1_is_migrated_and_goes_on(kind: Kind) {
    let Some(database) = Database::shared(kind, Strategy::RowLock).await else { return };
    let mut raw = database.raw().await;
    a_store_of_version_1(&database, &mut raw).await;
    if kind == Kind::MariaDb {
        // Tables are made one by one there: a node was killed after the first.
        let first = include_str!("../src/mysql/migrations/2.sql").split(";\n").next().unwrap();
        raw.run(first).await.unwrap();
    }
    let nodes = futures_util::future::join_all((0..3).map(|_| database.try_node())).await;
    let nodes: Vec<_> = nodes.into_iter().map(Result::unwrap).collect();
    assert_eq!(versions(&mut raw).await, VERSIONS);
    let before = check(&*nodes[0]).await;
    assert_eq!((before.stocks[0].available, before.stocks[0].held, before.holds.len()), (3, 2, 1));
    nodes[1].apply(vec![Command::Release { hold: before.holds[0].id }], Now::Clock).await.unwrap().remove(0).unwrap();
    assert_eq!(check(&*nodes[2]).await.stocks[0].available, 5, "what was there can be worked with");
    for table in ["hot_partitions", "hot_steps", "hot_parked"] {
        assert_eq!(raw.one(&format!("SELECT count(*) FROM {table}")).await, "0", "{table}");
    }
}

async fn tables_of_a_newer_version_are_left_alone(kind: Kind) {
    let Some(database) = Database::shared(kind, Strategy::RowLock).await else { return };
    let engine = database.node().await;
    engine.apply(vec![Command::SetStock(set("A", 5))], Now::Clock).await.unwrap().remove(0).unwrap();
    let mut raw = database.raw().await;
    raw.run(&kind.words("INSERT INTO schema_version (version) VALUES (99)")).await.unwrap();
    let Err(refused) = database.try_node().await else { panic!("a newer version was opened") };
    let why = refused.to_string();
    assert!(
        why.contains("version 99")
            && why.contains(&format!("version {};", VERSIONS[VERSIONS.len() - 1]))
            && why.contains("newer holdfast"),
        "{why}"
    );
    raw.run(&kind.words("DELETE FROM schema_version WHERE version = 99")).await.unwrap();
    assert_eq!(check(&*database.node().await).await.stocks.len(), 1, "nothing was lost meanwhile");
}

async fn a_database_that_cannot_be_opened_is_told_with_the_way_out(kind: Kind) {
    let Some(database) = Database::shared(kind, Strategy::RowLock).await else { return };
    // A port that nobody listens at: bound a moment ago, and given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut nowhere = database.through(port);
    nowhere.config.url = nowhere.config.url.replacen('@', ":a-secret@", 1);
    let Err(refused) = nowhere.try_node().await else { panic!("something answered") };
    let why = refused.to_string();
    assert!(why.contains("is the database up") && !why.contains("a-secret"), "{why}");
}

/// Another branch's version may have been there first; and MySQL's statements may have been run but not noted.
async fn a_version_that_is_missing_is_made_up_for(kind: Kind) {
    let Some(database) = Database::shared(kind, Strategy::RowLock).await else { return };
    let engine = database.node().await;
    engine.apply(vec![Command::SetStock(set("A", 5))], Now::Clock).await.unwrap().remove(0).unwrap();
    let mut raw = database.raw().await;
    raw.run(&kind.words("DELETE FROM schema_version WHERE version = 3")).await.unwrap();
    if kind == Kind::Postgres {
        raw.run("ALTER TABLE stock DROP COLUMN fence").await.unwrap();
    }
    let engine = database.node().await;
    engine.apply(vec![Command::SetStock(set("B", 5))], Now::Clock).await.unwrap().remove(0).unwrap();
    assert_eq!(check(&*engine).await.stocks.len(), 2);
    let versions = raw.one(&kind.words("SELECT count(*) FROM schema_version")).await;
    assert_eq!(versions, VERSIONS.len().to_string());
}

/// Every statement of this kind, by its file's name.
fn statements(kind: Kind) -> Vec<(String, String)> {
    let folder = match kind {
        Kind::Postgres => "src/postgres/sql",
        Kind::MariaDb => "src/mysql/sql",
    };
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.unwrap().path();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
    };
    let mut all: Vec<_> = files.map(read).collect();
    all.sort();
    assert!(all.len() > 30, "{} statements", all.len());
    all
}

/// The planner's settings as the engine's sessions have them: told once there, and read from there.
async fn settings_of_the_engine(raw: &mut Raw) {
    let source = include_str!("../src/postgres/connect.rs");
    let settings: Vec<_> = source.split(';').map(str::trim).filter(|s| s.starts_with("SET ")).collect();
    let planner =
        settings.iter().filter(|s| s.contains("enable_") || s.contains("plan_cache_mode") || s.contains("jit"));
    let mut count = 0;
    for setting in planner {
        raw.run(setting).await.unwrap();
        count += 1;
    }
    assert!(count >= 3, "the settings of a session are told elsewhere by now: {settings:?}");
}

/// Reads that are meant to look at everything, or at one row.
const WHOLE: [&str; 10] = [
    "audit_held",
    "audit_last",
    "audit_stock",
    "count_parked",
    "counts",
    "insert_entries",
    "moved",
    "note_move",
    "set_moving",
    "told",
];

async fn every_statement_is_understood_and_finds_its_rows_by_an_index() {
    let Some(database) = Database::shared(Kind::Postgres, Strategy::RowLock).await else { return };
    let _engine = database.node().await;
    let mut raw = database.raw().await;
    settings_of_the_engine(&mut raw).await;
    for (name, sql) in statements(Kind::Postgres) {
        let statement = format!("s_{name}");
        raw.run(&format!("PREPARE {statement} AS {sql}")).await.unwrap_or_else(|e| panic!("{name}.sql: {e}"));
        let parameters =
            format!("SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = '{statement}'");
        let parameters: usize = raw.one(&parameters).await.parse().unwrap();
        let values = if parameters == 0 { String::new() } else { format!("({})", vec!["NULL"; parameters].join(", ")) };
        let plan = raw.rows(&format!("EXPLAIN EXECUTE {statement}{values}")).await.unwrap().concat().join("\n");
        assert!(plan.contains("  (cost"), "{name}: {plan}");
        if !WHOLE.contains(&name.as_str()) {
            assert!(!plan.contains("Seq Scan"), "{name}.sql reads a table from end to end:\n{plan}");
        }
    }
}

async fn every_statement_is_understood_by_mariadb() {
    let Some(database) = Database::shared(Kind::MariaDb, Strategy::RowLock).await else { return };
    let _engine = database.node().await;
    let mut raw = database.raw().await;
    for (name, sql) in statements(Kind::MariaDb) {
        let quoted = sql.replace('\\', "\\\\").replace('\'', "\\'");
        raw.run(&format!("PREPARE s FROM '{quoted}'")).await.unwrap_or_else(|e| panic!("{name}.sql: {e}"));
    }
}

#[tokio::test]
async fn every_statement_is_understood() {
    every_statement_is_understood_and_finds_its_rows_by_an_index().await;
    every_statement_is_understood_by_mariadb().await;
}

macro_rules! kinds {
    ($($module:ident = $kind:expr),+) => {
        $(mod $module {
            use super::Kind;

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn nodes_that_start_at_once_make_the_tables_once() {
                super::nodes_that_start_at_once_make_the_tables_once($kind).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn a_store_of_version_1_is_migrated_and_goes_on() {
                super::a_store_of_version_1_is_migrated_and_goes_on($kind).await;
            }

            #[tokio::test]
            async fn tables_of_a_newer_version_are_left_alone() {
                super::tables_of_a_newer_version_are_left_alone($kind).await;
            }

            #[tokio::test]
            async fn a_version_that_is_missing_is_made_up_for() {
                super::a_version_that_is_missing_is_made_up_for($kind).await;
            }

            #[tokio::test]
            async fn a_database_that_cannot_be_opened_is_told_with_the_way_out() {
                super::a_database_that_cannot_be_opened_is_told_with_the_way_out($kind).await;
            }
        })+
    };
}

kinds!(postgres = Kind::Postgres, mariadb = Kind::MariaDb);
