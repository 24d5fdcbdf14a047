//! The service on databases: two servers on one of them are one shop.

use crate::support::{Server, brief_cart, cart, eventually, holdfast, refused_start, stock_path};
use holdfast_services::MariaDb;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::tempdir;

/// An engine's URL, and the schema to use there.
type Place = (String, String);

fn variable(name: &str) -> Option<String> {
    let url = std::env::var(name).ok();
    if url.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is not set; run the tests with `cargo xtask test`");
        eprintln!("SKIPPED: {name} is not set; run the tests with `cargo xtask test`");
    }
    url
}

/// An empty place on each database that runs.
fn places() -> Vec<Place> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("h{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut places = Vec::new();
    if let Some(url) = variable("HOLDFAST_TEST_POSTGRES") {
        places.push((url, name.clone()));
    }
    if let Some(url) = variable("HOLDFAST_TEST_MYSQL") {
        MariaDb::sql_at(&url, &format!("CREATE DATABASE {name}")).unwrap();
        let (server, _) = url.rsplit_once('/').unwrap();
        places.push((format!("{server}/{name}"), name));
    }
    places
}

fn serve((url, schema): &Place, flags: &[&str]) -> Server {
    let mut command = holdfast();
    command.env("HOLDFAST_ENGINE", url).env("HOLDFAST_DATABASE_SCHEMA", schema);
    command.envs(std::env::var_os("HOLDFAST_TEST_REDIS").map(|url| ("HOLDFAST_LOCK_NODES", url)));
    Server::with_command(command, &Arc::new(tempdir().unwrap()), flags)
}

/// Those that there is everything for. Lock nodes are known to the servers by the variable.
fn strategies() -> Vec<&'static str> {
    let mut strategies = vec!["row_lock", "optimistic", "skip_locked"];
    if std::env::var_os("HOLDFAST_TEST_REDIS").is_some() {
        strategies.push("redlock");
    } else {
        assert!(std::env::var_os("CI").is_none(), "HOLDFAST_TEST_REDIS is not set");
    }
    strategies
}

/// Holds that this server's janitor has expired.
fn swept(server: &Server) -> u64 {
    let metrics = server.get("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("holdfast_expired_holds_total "));
    line.unwrap().parse().unwrap()
}

/// Makes some holds that lapse at once, and waits until somebody has expired them all; how many each of them has.
fn lapse(servers: &[&Server], round: &str) -> Vec<u64> {
    let before: Vec<u64> = servers.iter().map(|server| swept(server)).collect();
    for n in 0..4 {
        servers[0].hold(&brief_cart(&format!("{round}-{n}"), "A", 1, 1));
    }
    eventually("they are expired", Duration::from_secs(30), || {
        let now: Vec<u64> = servers.iter().zip(&before).map(|(server, before)| swept(server) - before).collect();
        (now.iter().sum::<u64>() == 4).then_some(now)
    })
}

#[test]
fn with_lock_nodes_one_server_sweeps_for_all_until_it_dies() {
    if variable("HOLDFAST_TEST_REDIS").is_none() {
        return;
    }
    let Some(place) = places().into_iter().next() else { return };
    let mut servers = vec![serve(&place, &[]), serve(&place, &[])];
    servers[0].stock("A", 100);
    for round in ["one", "two", "three"] {
        let shares = lapse(&[&servers[0], &servers[1]], round);
        assert!(shares.contains(&0), "one of them does it all: {shares:?}");
    }
    let busy = usize::from(swept(&servers[1]) > 0);
    assert_eq!(swept(&servers[1 - busy]), 0, "the same one each time");
    servers.remove(busy).kill();
    assert_eq!(lapse(&[&servers[0]], "four"), [4], "the other takes over");
}

#[test]
fn two_servers_on_one_database_are_one_shop() {
    for place in places() {
        for strategy in strategies() {
            let (one, two) = (serve(&place, &["--strategy", strategy]), serve(&place, &["--strategy", strategy]));
            let sku = format!("ÅÄ 'Ö/{strategy}");
            let path = stock_path(&sku);
            one.put(&path, &json!({"total": 3, "limit_per_customer": 2})).is(201);
            two.put(&path, &json!({"total": 4, "limit_per_customer": null})).is(200);
            let order = format!("order-{strategy}");
            let first = one.post("/v1/holds", &cart(&order, &sku, 3)).is(201);
            let again = two.post("/v1/holds", &cart(&order, &sku, 3)).is(200);
            assert_eq!(first, again, "the same request on the other server is the same hold");
            two.post("/v1/holds", &cart(&order, &sku, 1)).refused(409, "order_conflict");
            let short = two.post("/v1/holds", &cart(&format!("{order}-b"), &sku, 2)).refused(409, "sold_out");
            assert_eq!(short["may_return"], true, "{short}");
            let id = first["id"].as_str().unwrap();
            let sold = two.post(&format!("/v1/holds/{id}/confirm"), &json!({})).is(200);
            assert_eq!(one.get(&format!("/v1/orders/{order}")).is(200), sold);
            let stock = one.get(&path).is(200);
            assert_eq!(
                stock,
                json!({"sku": sku, "total": 4, "available": 1, "held": 0, "sold": 3,
                    "limit_per_customer": null, "version": 2})
            );
            let entries = two.get(&format!("/v1/ledger?order_id={order}")).is(200);
            let kinds: Vec<&Value> = entries["items"].as_array().unwrap().iter().map(|e| &e["kind"]).collect();
            assert_eq!(kinds, [&json!("held"), &json!("confirmed")]);
            two.get("/readyz").is(200);
            one.is_clean();
        }
    }
}

#[test]
fn a_hundred_shoppers_on_two_servers_buy_what_there_is() {
    for place in places() {
        for strategy in strategies() {
            let servers = [serve(&place, &["--strategy", strategy]), serve(&place, &["--strategy", strategy])];
            let path = format!("/v1/stock/hot-{strategy}");
            servers[0].put(&path, &json!({"total": 37})).is(201);
            let held: usize = std::thread::scope(|scope| {
                let shoppers = (0..100).map(|n| {
                    let (server, strategy) = (&servers[n % 2], strategy);
                    scope.spawn(move || {
                        let order = format!("{strategy}-{n}");
                        let told = server.post("/v1/holds", &cart(&order, &format!("hot-{strategy}"), 1));
                        usize::from(told.status == 201)
                    })
                });
                shoppers.collect::<Vec<_>>().into_iter().map(|shopper| shopper.join().unwrap()).sum()
            });
            assert_eq!(held, 37, "{strategy}");
            let stock = servers[1].get(&path).is(200);
            assert_eq!((&stock["available"], &stock["held"]), (&json!(0), &json!(37)));
        }
    }
}

#[test]
fn every_list_of_holds_can_be_read_to_its_end() {
    for place in places() {
        let (one, two) = (serve(&place, &[]), serve(&place, &[]));
        one.put("/v1/stock/A", &json!({"total": 100})).is(201);
        let hold = |order: &str| one.post("/v1/holds", &cart(order, "A", 1)).is(201)["id"].as_str().unwrap().to_owned();
        let mut ids: Vec<String> = (0..7).map(|n| hold(&format!("o{n}"))).collect();
        // The same order again and again, so that its own list has several pages too.
        for _ in 0..4 {
            one.post(&format!("/v1/holds/{}/release", ids.last().unwrap()), &json!({})).is(200);
            ids.push(hold("o6"));
        }
        for (query, count) in [("", 11), ("status=held", 7), ("sku=A", 11), ("order_id=o6", 5)] {
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let page = two.get(&format!("/v1/holds?limit=2&{query}{after}")).is(200);
                seen.extend(page["items"].as_array().unwrap().iter().map(|h| h["id"].as_str().unwrap().to_owned()));
                let Some(next) = page["next"].as_str() else { break };
                after = format!("&after={next}");
            }
            let expected: Vec<&String> = ids.iter().filter(|id| seen.contains(id)).collect();
            assert_eq!((seen.len(), seen.iter().collect::<Vec<_>>()), (count, expected), "{query}");
        }
        one.get("/v1/holds?after=yesterday").refused(422, "invalid_request");
        one.get("/v1/holds?sku=A&after=0198c7f2-3b5e-7000-9c41-6f0f2a1d8e77").refused(422, "invalid_request");
    }
}

#[test]
fn what_is_imported_is_there_for_all() {
    for place in places() {
        let (one, two) = (serve(&place, &[]), serve(&place, &[]));
        let csv: String =
            std::iter::once("sku,total\n".to_owned()).chain((0..3000).map(|n| format!("S{n:05},{n}\n"))).collect();
        let told = one.import("", csv).is(200);
        assert_eq!((&told["created"], &told["failed"]), (&json!(3000), &json!(0)), "{told}");
        let page = two.get("/v1/stock?after=S02990&limit=100").is(200);
        let skus: Vec<&str> = page["items"].as_array().unwrap().iter().map(|s| s["sku"].as_str().unwrap()).collect();
        assert_eq!(skus, ["S02991", "S02992", "S02993", "S02994", "S02995", "S02996", "S02997", "S02998", "S02999"]);
    }
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
    let log = refused("postgres://shop:s3cret@127.0.0.1:1/shop", &[]);
    assert!(log.contains("is the database up"), "{log}");
    let log = refused("mysql://shop:s3cret@127.0.0.1:1/shop", &[]);
    assert!(log.contains("is the database up"), "{log}");
    let log = refused("mysql://shop:s3cret@127.0.0.1:1", &[]);
    assert!(log.contains("names no database"), "{log}");
    let log = refused("postgres://shop:s3cret@127.0.0.1:notaport/shop", &[]);
    assert!(log.contains("the form is postgres://"), "{log}");
    let log = refused("oracle://shop:s3cret@127.0.0.1/shop", &[]);
    assert!(log.contains("not known") && log.contains("postgres://"), "{log}");
    let log = refused("postgres://shop:s3cret@127.0.0.1/shop", &["--strategy", "naive"]);
    assert!(log.contains("oversells"), "{log}");
    let log = refused("postgres://shop:s3cret@127.0.0.1/shop", &["--strategy", "hope"]);
    assert!(log.contains("row_lock"), "{log}");
    let log = refused("postgres://shop:s3cret@127.0.0.1/shop", &["--strategy", "redlock"]);
    assert!(log.contains("--lock-nodes"), "{log}");
    let log = refused("postgres://shop:s3cret@127.0.0.1/shop", &["--database-schema", "x\"; DROP"]);
    assert!(log.contains("a-z"), "{log}");
    let log = refused("postgres://shop:s3cret@127.0.0.1/shop", &["--database-pool", "0"]);
    assert!(log.contains("database_pool"), "{log}");
    for mistyped in ["postgres:/shop:s3cret@h/x", "shop:s3cret@h/x", "mysql:shop:s3cret@h/x"] {
        assert!(refused(mistyped, &[]).contains("not known"));
    }
    let log = refused("embedded", &["--strategy", "optimistic"]);
    assert!(log.contains("--strategy"), "{log}");
    let log = refused("postgres://shop:s3cret@127.0.0.1/shop", &["--database-ca", "/nowhere.pem"]);
    assert!(log.contains("/nowhere.pem"), "{log}");
}

#[test]
fn a_database_of_another_version_or_with_other_tables_is_left_alone() {
    for place in places() {
        drop(serve(&place, &[]));
        let (url, schema) = &place;
        let newer = if url.starts_with("mysql") {
            MariaDb::sql_at(url, "INSERT INTO holdfast_version (version) VALUES (99)").unwrap();
            vec![("HOLDFAST_ENGINE", url.as_str())]
        } else {
            holdfast_services::Postgres::sql_at(url, &format!("INSERT INTO {schema}.schema_version VALUES (99)"))
                .unwrap();
            vec![("HOLDFAST_ENGINE", url.as_str()), ("HOLDFAST_DATABASE_SCHEMA", schema.as_str())]
        };
        let (code, log) = refused_start(tempdir().unwrap().path(), &[], &newer);
        assert_eq!(code, Some(2));
        assert!(log.contains("99") && log.contains("newer holdfast"), "{log}");
    }
    for (url, _) in places().into_iter().filter(|(url, _)| url.starts_with("mysql")) {
        MariaDb::sql_at(&url, "CREATE TABLE orders (id INT)").unwrap();
        let (code, log) = refused_start(tempdir().unwrap().path(), &[], &[("HOLDFAST_ENGINE", &url)]);
        assert_eq!(code, Some(2));
        assert!(log.contains("a database of its own"), "{log}");
    }
}
