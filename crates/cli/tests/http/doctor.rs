//! `holdfast doctor` beside servers and when none runs.

use crate::redis::Shop;
use crate::support::{Server, cart, holdfast, skipped};
use holdfast_services::{Postgres, Redis};
use serde_json::Value;
use std::process::Command;

/// Exit code, and the findings as JSON.
fn doctor(mut command: Command, flags: &[&str]) -> (Option<i32>, Value) {
    let output = command.arg("doctor").arg("--json").args(flags).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (output.status.code(), told)
}

fn level<'a>(told: &'a Value, name: &str) -> &'a str {
    let all = told["findings"].as_array().unwrap();
    let found = all.iter().find(|finding| finding["name"].as_str().is_some_and(|told| told.starts_with(name)));
    found.unwrap_or_else(|| panic!("nothing about {name} in {told:#}"))["level"].as_str().unwrap()
}

#[test]
fn a_folder() {
    let mut command = holdfast();
    command.args(["doctor", "--data-dir", "nowhere"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("problem  folder: ") && text.contains("-> name the folder"), "{text}");
    let server = Server::fresh();
    server.stock("A", 3);
    let data = server.data_dir();
    let flags = ["--data-dir", data.to_str().unwrap()];
    let (code, told) = doctor(holdfast(), &flags);
    assert_eq!((code, level(&told, "folder"), level(&told, "drift")), (Some(0), "ok", "ok"));
    let (folder, _) = server.stop();
    let store = rusqlite::Connection::open(folder.path().join("data/holdfast.db")).unwrap();
    store.execute("UPDATE stock SET held = held + 1", []).unwrap();
    drop(store);
    let (code, told) = doctor(holdfast(), &flags);
    assert_eq!((code, level(&told, "drift"), &told["healthy"]), (Some(1), "problem", &Value::Bool(false)));
}

#[test]
fn a_database() {
    let Ok(url) = std::env::var("HOLDFAST_TEST_POSTGRES") else { return skipped("HOLDFAST_TEST_POSTGRES is not set") };
    let schema = format!("doctor_{}", std::process::id());
    let command = || {
        let mut command = holdfast();
        command.env("HOLDFAST_ENGINE", &url).env("HOLDFAST_DATABASE_SCHEMA", &schema);
        command
    };
    let (code, told) = doctor(command(), &[]);
    assert_eq!((code, level(&told, "schema version")), (Some(1), "problem"), "{told:#}");
    let ask = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'");
    assert_eq!(Postgres::sql_at(&url, &ask).unwrap().trim(), "0", "no tables are made by looking");
    let server = Server::with_command(command(), &std::sync::Arc::new(tempfile::tempdir().unwrap()), &[]);
    server.stock("A", 3);
    let (code, told) = doctor(command(), &[]);
    assert_eq!(code, Some(0), "{told:#}");
    for name in ["schema version", "CHECK constraints", "rows violating", "connections", "database clock", "drift"] {
        assert_eq!(level(&told, name), "ok", "{name}: {told:#}");
    }
    drop(server);
    let sql = format!(
        "ALTER TABLE {schema}.stock DROP CONSTRAINT stock_counters; UPDATE {schema}.stock SET held = -1, available = 4"
    );
    Postgres::sql_at(&url, &sql).unwrap();
    let (code, told) = doctor(command(), &["--database-pool", "1000"]);
    assert_eq!(code, Some(1));
    for name in ["CHECK constraints", "rows violating", "connections"] {
        assert_eq!(level(&told, name), "problem", "{name}: {told:#}");
    }
    let mut nobody = holdfast();
    nobody.env("HOLDFAST_ENGINE", "mysql://u:s3cret@127.0.0.1:1/d");
    let (code, told) = doctor(nobody, &[]);
    assert_eq!((code, level(&told, "database reachable")), (Some(1), "problem"));
    assert!(!told.to_string().contains("s3cret"), "{told}");
}

#[test]
fn redis_and_its_ledger() {
    let Ok(mut redis) = Redis::start() else { return skipped("Redis is not on this machine") };
    let Some(shop) = Shop::with_postgres(&redis.url()) else { return };
    let (code, told) = doctor(shop.command(), &[]);
    assert_eq!((code, level(&told, "ledger: schema version")), (Some(1), "problem"), "{told:#}");
    let server = shop.serve(&["--audit-interval", "0"]);
    server.stock("A", 10);
    let hold = server.hold(&cart("o-1", "A", 2));
    server.touch(&format!("{hold}/confirm")).is(200);
    server.hold(&cart("o-2", "A", 1));
    let (code, told) = doctor(shop.command(), &[]);
    assert_eq!(code, Some(0), "{told:#}");
    for name in
        ["redis reachable", "appendonly", "appendfsync", "maxmemory-policy", "redis clock", "partitions", "backlog"]
    {
        assert_eq!(level(&told, name), "ok", "{name}: {told:#}");
    }
    for name in ["steps left half-way", "parked facts", "drift", "ledger: CHECK constraints", "ledger: connections"] {
        assert_eq!(level(&told, name), "ok", "{name}: {told:#}");
    }
    let (code, told) = doctor(shop.command(), &["--durability", "replicated"]);
    assert_eq!((code, level(&told, "replicas")), (Some(1), "problem"), "no replica is there");
    redis.command(&["CONFIG", "SET", "appendfsync", "everysec"]).unwrap();
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    let (code, told) = doctor(shop.command(), &["--durability", "aof"]);
    assert_eq!(code, Some(1));
    assert_eq!((level(&told, "appendfsync"), level(&told, "maxmemory-policy")), ("problem", "problem"));
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).unwrap();
    server.stop();
    assert_eq!(doctor(shop.command(), &[]).0, Some(0), "nothing serves, and all is well");

    redis.command(&["FLUSHALL"]).unwrap();
    let (code, told) = doctor(shop.command(), &[]);
    assert_eq!((code, level(&told, "partition 0")), (Some(1), "problem"), "{told:#}");
    let rows = shop.sql("SELECT epoch, is_auditing FROM hot_partitions");
    assert!(rows.trim().ends_with("1|f"), "looking has begun no audit: {rows}");
    assert_eq!(redis.command(&["DBSIZE"]).unwrap().trim(), "0", "and filled nothing");
    drop(shop.serve(&[]));
    assert_eq!(doctor(shop.command(), &[]).0, Some(0));
    redis.kill();
    let (code, told) = doctor(shop.command(), &["--redis-timeout-ms", "200"]);
    assert_eq!((code, level(&told, "redis reachable")), (Some(1), "problem"));
}
