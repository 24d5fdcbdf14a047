//! The service on Redis with a database as its ledger: the contract, a stop, a restart, a Redis that forgets everything.

use crate::support::{Server, brief_cart, cart, eventually, holdfast, refused_start, skipped, with};
use holdfast_engine::clock::monotonic;
use holdfast_services::{MariaDb, Postgres, Redis};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::tempdir;

/// A key space on a Redis, and an empty ledger.
pub struct Shop {
    redis: String,
    ledger: String,
    pub name: String,
}

fn variable(name: &str) -> Option<String> {
    let url = std::env::var(name).ok();
    if url.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is not set; run the tests with `cargo xtask test`");
        skipped(&format!("{name} is not set; run the tests with `cargo xtask test`"));
    }
    url
}

fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("r{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Shop {
    /// One on the shared Redis for each kind of ledger that runs.
    fn shared() -> Vec<Self> {
        let Some(redis) = variable("HOLDFAST_TEST_REDIS") else { return Vec::new() };
        let mut shops: Vec<Self> = Self::with_postgres(&redis).into_iter().collect();
        if let Some(url) = variable("HOLDFAST_TEST_MYSQL") {
            let name = fresh_name();
            MariaDb::sql_at(&url, &format!("CREATE DATABASE {name}")).unwrap();
            let (server, _) = url.rsplit_once('/').unwrap();
            shops.push(Self { redis, ledger: format!("{server}/{name}"), name });
        }
        shops
    }

    /// On this Redis.
    pub fn with_postgres(redis: &str) -> Option<Self> {
        let ledger = variable("HOLDFAST_TEST_POSTGRES")?;
        Some(Self { redis: redis.to_owned(), ledger, name: fresh_name() })
    }

    /// The program with everything that it has to know of the shop.
    pub fn command(&self) -> Command {
        let mut command = holdfast();
        command.env("HOLDFAST_ENGINE", &self.redis).env("HOLDFAST_LEDGER", &self.ledger);
        command.env("HOLDFAST_DATABASE_SCHEMA", &self.name).env("HOLDFAST_REDIS_SPACE", &self.name);
        command
    }

    pub fn serve(&self, flags: &[&str]) -> Server {
        Server::with_command(self.command(), &Arc::new(tempdir().unwrap()), flags)
    }

    /// The same database as an engine of its own.
    fn serve_ledger(&self) -> Server {
        let mut command = holdfast();
        command.env("HOLDFAST_ENGINE", &self.ledger).env("HOLDFAST_DATABASE_SCHEMA", &self.name);
        Server::with_command(command, &Arc::new(tempdir().unwrap()), &[])
    }

    /// SQL on a PostgreSQL ledger, past the service.
    pub fn sql(&self, sql: &str) -> String {
        Postgres::sql_at(&self.ledger, &format!("SET search_path TO {}; {sql}", self.name)).unwrap()
    }
}

#[test]
fn the_whole_contract() {
    for shop in Shop::shared() {
        for durability in ["memory", "ledger"] {
            let server = shop.serve(&["--durability", durability]);
            let (a, b) = (format!("A {durability} 🦄"), format!("B-{durability}"));
            server.put(&crate::support::stock_path(&a), &json!({"total": 10, "limit_per_customer": 4})).is(201);
            server.stock(&b, 5);
            let order = |n: u32| format!("o-{durability}-{n}");
            let items = json!([{"sku": a, "quantity": 2}, {"sku": b, "quantity": 1}]);
            let both = json!({"order_id": order(1), "items": items, "customer_id": "c"});
            let hold = server.post("/v1/holds", &both).is(201);
            assert_eq!(server.post("/v1/holds", &both).is(200), hold, "the same request is the same hold");
            let of_customer = with(cart(&order(2), &a, 3), "customer_id", "c");
            server.post("/v1/holds", &of_customer).refused(409, "customer_limit");
            let sold_out = server.post("/v1/holds", &cart(&order(2), &b, 5)).refused(409, "sold_out");
            assert_eq!((&sold_out["items"][0]["available"], &sold_out["may_return"]), (&json!(4), &json!(true)));
            server.post("/v1/holds", &cart(&order(2), "nothing", 1)).refused(422, "unknown_sku");
            let path = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
            assert_eq!(server.get(&path).is(200), hold);
            server.post(&format!("{path}/extend"), &json!({"ttl_seconds": 900})).is(200);
            server.patch(&path, &json!({"items": [{"sku": a, "quantity": 3}]})).is(200);
            assert_eq!((server.counters(&a), server.counters(&b)), ((7, 3, 0), (5, 0, 0)));
            server.touch(&format!("{path}/confirm")).is(200);
            server.post("/v1/holds", &both).refused(409, "already_confirmed");
            let again = server.post(&format!("{path}/release"), &json!({}));
            again.refused(409, "already_confirmed");
            let back = json!({"items": [{"sku": a, "quantity": 1}]});
            let returns = format!("/v1/orders/{}/returns", order(1));
            crate::support::Call::new("POST", &returns)
                .header("idempotency-key", &order(1))
                .json(&back)
                .to(&server)
                .is(200);
            assert_eq!(server.counters(&a), (8, 0, 2));
            let other = server.hold(&cart(&order(3), &b, 2));
            assert_eq!(server.post(&format!("{other}/release"), &json!({})).is(200)["status"], "released");
            server.post(&format!("/v1/stock/{b}/adjust"), &json!({"delta": -1, "reason": "damaged"})).is(200);
            assert_eq!(server.counters(&b), (4, 0, 0));
            let entries = server.get(&format!("/v1/ledger?order_id={}", order(1))).is(200);
            let kinds: Vec<&Value> = entries["items"].as_array().unwrap().iter().map(|e| &e["kind"]).collect();
            assert_eq!((kinds.first(), kinds.last()), (Some(&&json!("held")), Some(&&json!("returned"))), "{entries}");
            server.get("/readyz").is(200);
            server.is_clean();
        }
    }
}

#[test]
fn what_lapses_can_be_had_again_and_may_be_confirmed_late() {
    for shop in Shop::shared() {
        let server = shop.serve(&[]);
        server.stock("A", 2);
        let taken = server.hold(&brief_cart("o-1", "A", 2, 1));
        eventually("it lapses", Duration::from_secs(10), || (server.counters("A") == (2, 0, 0)).then_some(()));
        assert_eq!(server.get(&taken).is(200)["status"], "expired");
        let late = server.touch(&format!("{taken}/confirm")).is(200);
        assert_eq!((&late["late"], server.counters("A")), (&json!(true), (0, 0, 2)));
        server.put("/v1/stock/B", &json!({"total": 1})).is(201);
        let slow = server.hold(&brief_cart("o-2", "B", 1, 1));
        eventually("another has it", Duration::from_secs(10), || {
            (server.post("/v1/holds", &cart("o-3", "B", 1)).status == 201).then_some(())
        });
        server.touch(&format!("{slow}/confirm")).refused(409, "stock_gone");
    }
}

#[test]
fn an_import_is_there_for_every_node_and_every_page() {
    for shop in Shop::shared() {
        let (one, two) = (shop.serve(&[]), shop.serve(&[]));
        let rows = (0..700).map(|n| format!("S{n:05},{n}\n"));
        let csv: String = std::iter::once("sku,total\n".to_owned()).chain(rows).collect();
        let told = one.import("", csv).is(200);
        assert_eq!((&told["created"], &told["failed"]), (&json!(700), &json!(0)), "{told}");
        let page = two.get("/v1/stock?after=S00690&limit=100").is(200);
        assert_eq!(page["items"].as_array().unwrap().len(), 9, "{page}");
        let again: String = (1..=300).map(|n| format!("D,{n}\n")).collect();
        let told = one.import("", format!("sku,total\n{again}")).is(200);
        assert_eq!((&told["created"], &told["updated"]), (&json!(1), &json!(299)), "{told}");
        assert_eq!(two.counters("D"), (300, 0, 0), "a later line comes after an earlier one");
        let ids: Vec<String> = (1..6).map(|n| one.hold(&cart(&format!("o{n}"), "S00600", n))).collect();
        let list = two.get("/v1/holds?sku=S00600&status=held&limit=3").is(200);
        assert_eq!((list["items"].as_array().unwrap().len(), list["next"].is_string()), (3, true), "{list}");
        assert_eq!(two.counters("S00600"), (585, 15, 0));
        let (mut after, mut seen) = (String::new(), 0);
        loop {
            let page = two.get(&format!("/v1/ledger?sku=S00600&limit=2{after}")).is(200);
            seen += page["items"].as_array().unwrap().len();
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!((seen, ids.len()), (6, 5), "one entry for the stock, one for each hold");
    }
}

/// Keeps the ledger from writing anything down for a moment.
fn locked(shop: &Shop, seconds: f64) -> std::thread::JoinHandle<()> {
    let sql = format!(
        "SET search_path TO {}; BEGIN; LOCK TABLE hot_partitions IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT",
        shop.name
    );
    let url = shop.ledger.clone();
    let is_locked = "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE l.mode = 'AccessExclusiveLock' AND l.granted AND c.relname = 'hot_partitions'";
    let is_locked = format!("{is_locked} AND n.nspname = '{}'", shop.name);
    let thread = std::thread::spawn(move || drop(Postgres::sql_at(&url, &sql).unwrap()));
    eventually("the table is locked", Duration::from_secs(20), || {
        (shop.sql(&is_locked).trim().ends_with('1')).then_some(())
    });
    thread
}

#[test]
fn a_stop_writes_down_what_was_logged_and_a_restart_goes_on() {
    let Some(redis) = variable("HOLDFAST_TEST_REDIS") else { return };
    let Some(shop) = Shop::with_postgres(&redis) else { return };
    let server = shop.serve(&[]);
    server.stock("A", 100);
    let lock = locked(&shop, 3.0);
    let holds: Vec<String> = (0..20).map(|n| server.hold(&cart(&format!("o-{n}"), "A", 1))).collect();
    assert_eq!(shop.sql("SELECT count(*) FROM holds").trim().lines().last(), Some("0"), "none is written down yet");
    server.stop();
    lock.join().unwrap();
    assert_eq!(shop.sql("SELECT count(*) FROM holds").trim().lines().last(), Some("20"));
    let server = shop.serve(&[]);
    assert_eq!(server.counters("A"), (80, 20, 0));
    server.touch(&format!("{}/confirm", holds[0])).is(200);
    let epoch = shop.sql("SELECT max(epoch) FROM hot_partitions");
    assert_eq!(epoch.trim().lines().last(), Some("1"), "nothing had happened to Redis, so nothing was audited");
}

#[test]
fn a_redis_that_forgets_everything_is_filled_again_while_requests_are_told_to_wait() {
    let Ok(redis) = Redis::start() else { return skipped("Redis is not on this machine") };
    let Some(shop) = Shop::with_postgres(&redis.url()) else { return };
    let server = shop.serve(&[]);
    server.stock("A", 10);
    let sold = server.hold(&cart("o-1", "A", 2));
    server.touch(&format!("{sold}/confirm")).is(200);
    let live = server.hold(&cart("o-2", "A", 3));
    server.get("/v1/ledger").is(200);
    let lock = locked(&shop, 1.5);
    redis.command(&["FLUSHALL"]).unwrap();
    let start = monotonic();
    server.post("/v1/holds", &cart("o-3", "A", 1)).refused(503, "auditing");
    let ready = server.get("/readyz");
    assert_eq!((ready.status, &ready.json()["reason"]), (503, &json!("auditing")), "{}", ready.text());
    let metrics = eventually("the gauge", Duration::from_secs(5), || {
        let text = server.get("/metrics").text();
        text.contains("holdfast_auditing_partitions 1").then_some(text)
    });
    assert!(metrics.contains("holdfast_ready 0") && metrics.contains("holdfast_parked_facts 0"), "{metrics}");
    let hold = eventually("it serves again", Duration::from_secs(30), || {
        let answer = server.post("/v1/holds", &cart("o-3", "A", 1));
        if answer.status == 503 {
            answer.refused(503, "auditing");
            return None;
        }
        Some(answer.is(201))
    });
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    lock.join().unwrap();
    assert_eq!(hold["status"], "held");
    eventually("ready", Duration::from_secs(5), || (server.get("/readyz").status == 200).then_some(()));
    assert_eq!(server.counters("A"), (4, 4, 2));
    server.post("/v1/holds", &cart("o-2", "A", 3)).is(200);
    server.post("/v1/holds", &cart("o-1", "A", 2)).refused(409, "already_confirmed");
    server.touch(&format!("{live}/confirm")).is(200);
    assert_eq!(server.counters("A"), (4, 1, 5));
    server.is_clean();
}

#[test]
fn readiness_tells_what_is_gone() {
    let Ok(mut redis) = Redis::start() else { return skipped("Redis is not on this machine") };
    let Some(shop) = Shop::with_postgres(&redis.url()) else { return };
    let server = shop.serve(&["--redis-timeout-ms", "300"]);
    server.stock("A", 10);
    redis.kill();
    let told = eventually("it is not ready", Duration::from_secs(20), || {
        let ready = server.get("/readyz");
        (ready.status == 503 && ready.text().contains("Redis cannot be reached")).then(|| ready.json())
    });
    assert_eq!(told["status"], "not_ready", "{told}");
    let refused = server.post("/v1/holds", &cart("o-1", "A", 1));
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (503, true), "{}", refused.text());
    redis.restart().unwrap();
    eventually("it serves again", Duration::from_secs(30), || {
        (server.post("/v1/holds", &cart("o-1", "A", 1)).status < 300).then_some(())
    });
    eventually("and is ready", Duration::from_secs(10), || (server.get("/readyz").status == 200).then_some(()));
    assert_eq!(server.counters("A"), (9, 1, 0));
    server.is_clean();
    // What went wrong meanwhile was logged, as it should be.
    server.stop();
}

#[test]
fn a_shop_comes_from_a_folder_and_leaves_for_plain_postgresql() {
    let Some(redis) = variable("HOLDFAST_TEST_REDIS") else { return };
    let Some(shop) = Shop::with_postgres(&redis) else { return };
    let folder = Arc::new(tempdir().unwrap());
    let mut server = Server::with(&folder, &[]);
    server.stock("A", 10);
    let sold = server.hold(&cart("o-1", "A", 2));
    server.touch(&format!("{sold}/confirm")).is(200);
    let live = server.hold(&cart("o-2", "A", 3));
    let data = server.data_dir();
    server.signal(Signal::TERM);
    server.wait(Duration::from_secs(30));
    let mut migrate = holdfast();
    migrate.args(["migrate", "--to", &shop.ledger, "--database-schema", &shop.name, "--from"]).arg(&data);
    assert!(migrate.status().unwrap().success());

    let server = shop.serve(&[]);
    assert_eq!(server.counters("A"), (5, 3, 2), "Redis was filled from the ledger");
    server.touch(&format!("{live}/confirm")).is(200);
    let last = server.hold(&cart("o-3", "A", 1));
    server.stop();

    let mut command = holdfast();
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("HOLDFAST_ENGINE", &shop.ledger)
        .env("HOLDFAST_DATABASE_SCHEMA", &shop.name);
    let (code, log) = Server::spawn(command).err().expect("it must not start");
    assert_eq!(code, Some(2));
    assert!(log.contains("ledger of an engine on Redis") && log.contains("hot_partitions"), "{log}");
    shop.sql("DELETE FROM hot_partitions");
    let server = shop.serve_ledger();
    assert_eq!(server.counters("A"), (4, 1, 5));
    server.touch(&format!("{last}/confirm")).is(200);
    drop(server);
    assert_eq!(shop.serve(&[]).counters("A"), (4, 0, 6), "and back again");
}

#[test]
fn a_start_that_cannot_be_says_why_and_tells_no_password() {
    let folder = tempdir().unwrap();
    let refused = |engine: &str, flags: &[&str]| {
        let (code, log) = refused_start(folder.path(), flags, &[("HOLDFAST_ENGINE", engine)]);
        assert_eq!(code, Some(2), "{log}");
        assert!(!log.contains("s3cret"), "a password was told: {log}");
        log
    };
    let redis = "redis://shop:s3cret@127.0.0.1:1";
    let ledger = ["--ledger", "postgres://shop:s3cret@127.0.0.1:1/shop"];
    let with = |more: &[&'static str]| [&ledger[..], more].concat();
    for (engine, flags, told) in [
        (redis, vec![], "--ledger or HOLDFAST_LEDGER"),
        (redis, vec!["--ledger", "oracle://shop:s3cret@h/d"], "no database that is known"),
        (redis, vec!["--ledger", redis], "no database that is known"),
        (redis, with(&["--strategy", "row_lock"]), "leave out --strategy"),
        (redis, with(&["--durability", "hope"]), "memory, aof, replicated or ledger"),
        (redis, with(&["--redis-partitions", "0"]), "redis_partitions must be from 1"),
        (redis, with(&["--redis-space", "a{b}"]), "redis_space must be"),
        (redis, with(&["--redis-timeout-ms", "1"]), "redis_timeout_ms must be"),
        (redis, with(&["--redis-backlog", "0"]), "redis_backlog must be"),
        (redis, with(&["--redis-replicas", "0"]), "redis_replicas must be"),
        (redis, with(&[]), "is the database up"),
        ("redis://shop:s3cret@127.0.0.1:notaport", with(&[]), "the forms are redis://"),
        ("redis://shop:s3cret@h:1,i:2", with(&[]), "redis+cluster://"),
        ("postgres://shop:s3cret@h/d", with(&[]), "leave out --ledger"),
        ("embedded", with(&[]), "leave out --ledger"),
        ("embedded", vec!["--durability", "aof"], "leave out --durability"),
        ("mysql://shop:s3cret@h/d", vec!["--redis-space", "x"], "leave out --redis-space"),
    ] {
        let log = refused(engine, &flags);
        assert!(log.contains(told), "{engine} {flags:?}: {log}");
    }
    if let (Some(url), name) = (variable("HOLDFAST_TEST_POSTGRES"), fresh_name()) {
        let flags = ["--ledger", &url, "--database-schema", &name, "--redis-timeout-ms", "200"];
        let log = refused(redis, &flags);
        assert!(log.contains("127.0.0.1:1"), "{log}");
    }
}

#[test]
fn each_setting_has_its_variable_and_its_key() {
    let Some(redis) = variable("HOLDFAST_TEST_REDIS") else { return };
    let Some(shop) = Shop::with_postgres(&redis) else { return };
    let folder = Arc::new(tempdir().unwrap());
    let (ledger, name) = (&shop.ledger, &shop.name);
    let file = folder.path().join("holdfast.toml");
    let text = format!(
        "engine = {redis:?}\nledger = {ledger:?}\ndurability = \"aof\"\nredis_space = {name:?}\nredis_partitions = 1
        redis_timeout_ms = 3000\nredis_backlog = 5000\nredis_replicas = 2\ndatabase_schema = {name:?}\nlane_workers = 2\n"
    );
    std::fs::write(&file, text).unwrap();
    let server = Server::with(&folder, &["--config", file.to_str().unwrap()]);
    server.stock("A", 1);
    server.hold(&cart("o", "A", 1));
    drop(server);
    let mut command = shop.command();
    command.env("HOLDFAST_DURABILITY", "memory").env("HOLDFAST_REDIS_PARTITIONS", "1");
    command.env("HOLDFAST_REDIS_TIMEOUT_MS", "3000").env("HOLDFAST_REDIS_BACKLOG", "5000");
    command.env("HOLDFAST_REDIS_REPLICAS", "1");
    let server = Server::with_command(command, &folder, &[]);
    assert_eq!(server.counters("A"), (0, 1, 0));
    drop(server);
    let mut other = shop.command();
    other.args(["serve", "--listen", "127.0.0.1:0"]).env("HOLDFAST_REDIS_PARTITIONS", "2");
    let (code, log) = Server::spawn(other).err().expect("another number of partitions must not start");
    assert_eq!(code, Some(2));
    assert!(log.contains("redis_partitions"), "{log}");
}
