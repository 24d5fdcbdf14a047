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

async fn nodes_that_start_at_once_make_the_tables_once(kind: Kind) {
    for _ in 0..5 {
        let Some(database) = Database::shared(kind, Strategy::RowLock).await else { return };
        let nodes = futures_util::future::join_all((0..4).map(|_| database.try_node())).await;
        let nodes: Vec<_> = nodes.into_iter().map(Result::unwrap).collect();
        let mut raw = database.raw().await;
        assert_eq!(raw.rows(&kind.words("SELECT version FROM schema_version")).await.unwrap(), [["1"]]);
        assert_eq!(raw.one("SELECT count(*) FROM totals").await, "1");
        nodes[0].apply(vec![Command::SetStock(set("A", 5))], Now::Clock).await.unwrap().remove(0).unwrap();
        for node in &nodes {
            assert_eq!(check(&**node).await.stocks.len(), 1);
        }
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
    assert!(why.contains("version 99") && why.contains("version 1;") && why.contains("newer holdfast"), "{why}");
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
const WHOLE: [&str; 9] =
    ["audit_held", "audit_last", "audit_stock", "counts", "insert_entries", "moved", "note_move", "set_moving", "told"];

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

            #[tokio::test]
            async fn tables_of_a_newer_version_are_left_alone() {
                super::tables_of_a_newer_version_are_left_alone($kind).await;
            }

            #[tokio::test]
            async fn a_database_that_cannot_be_opened_is_told_with_the_way_out() {
                super::a_database_that_cannot_be_opened_is_told_with_the_way_out($kind).await;
            }
        })+
    };
}

kinds!(postgres = Kind::Postgres, mariadb = Kind::MariaDb);
