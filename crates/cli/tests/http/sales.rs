//! `/v1/sales`: made, changed, paused, removed; and what holds of their SKUs are answered.

use crate::support::webhook::hex;
use crate::support::{Call, Connection, Server, cart, eventually, holdfast, millis, shared, skipped, with};
use holdfast_engine::clock::{monotonic, wall};
use holdfast_services::Redis;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::tempdir;

/// A moment so many seconds from now, as the server writes it.
pub fn in_seconds(seconds: i64) -> String {
    let at = Duration::from_millis(u64::try_from(wall().millis() + seconds * 1000).unwrap());
    humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + at).to_string()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn a_sale_is_made_read_changed_and_removed() {
    let server = shared();
    let body = json!({"skus": ["SALE-1A", "SALE-1B"], "starts_at": in_seconds(3600), "ends_at": null,
        "hold_ttl_seconds": 300, "rate": {"per_second": 200, "burst": 500}, "per_client": {"per_second": 5, "burst": 10},
        "per_sku": null, "waiting_room": {"max_active": 500, "admit_per_second": 50, "turn_seconds": 60,
        "session_seconds": 600, "prequeue_seconds": 900, "order": "draw"}, "ingest": "direct"});
    let sale = server.put("/v1/sales/sale-1", &body).is(201);
    assert_eq!(
        (&sale["sale"], &sale["status"], &sale["paused"]),
        (&json!("sale-1"), &json!("scheduled"), &json!(false))
    );
    for name in ["skus", "starts_at", "ends_at", "hold_ttl_seconds", "per_sku", "waiting_room", "ingest"] {
        assert_eq!(sale[name], body[name], "{name}");
    }
    assert_eq!((sale["rate"]["burst"].as_u64(), sale["rate"]["per_second"].as_f64()), (Some(500), Some(200.0)));
    assert_eq!(server.get("/v1/sales/sale-1").is(200), sale);
    let again = server.put("/v1/sales/sale-1", &with(body, "hold_ttl_seconds", 60)).is(200);
    assert_eq!((&again["hold_ttl_seconds"], &again["created_at"]), (&json!(60), &sale["created_at"]));
    assert_eq!(again["draw_commitment"], sale["draw_commitment"], "it was promised");
    assert!(again["revision"].as_u64() > sale["revision"].as_u64());
    let all = server.get("/v1/sales").is(200);
    assert!(all["items"].as_array().unwrap().contains(&again));
    assert_eq!(server.delete("/v1/sales/sale-1").status, 204);
    for path in ["/v1/sales/sale-1", "/v1/sales/sale-1/draw"] {
        server.get(path).refused(404, "not_found");
    }
    server.delete("/v1/sales/sale-1").refused(404, "not_found");
    server.touch("/v1/sales/sale-1/pause").refused(404, "not_found");
}

#[test]
fn a_sku_is_in_one_open_sale_at_most() {
    let server = shared();
    let skus = |skus: Value| json!({"skus": skus});
    server.put("/v1/sales/sale-2a", &skus(json!(["SALE-2A", "SALE-2B"]))).is(201);
    let refused =
        server.put("/v1/sales/sale-2b", &skus(json!(["SALE-2B", "SALE-2C"]))).refused(409, "sku_in_other_sale");
    assert_eq!((&refused["sku"], &refused["sale"]), (&json!("SALE-2B"), &json!("sale-2a")));
    server.get("/v1/sales/sale-2b").refused(404, "not_found");
    server.put("/v1/sales/sale-2a", &skus(json!(["SALE-2A"]))).is(200);
    server.put("/v1/sales/sale-2b", &skus(json!(["SALE-2B", "SALE-2C"]))).is(201);
    let over = with(skus(json!(["SALE-2A"])), "ends_at", in_seconds(-1));
    server.put("/v1/sales/sale-2a", &over).is(200);
    server.put("/v1/sales/sale-2b", &skus(json!(["SALE-2A", "SALE-2B"]))).is(200);
    server.put("/v1/sales/sale-2a", &skus(json!(["SALE-2A"]))).refused(409, "sku_in_other_sale");
}

#[test]
fn bad_sales_are_refused_with_their_places() {
    let server = shared();
    let bad = |body: Value, pointer: &str| {
        let refused = server.put("/v1/sales/sale-3", &body).refused(422, "invalid_request");
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused}");
    };
    bad(json!({"skus": []}), "/skus");
    bad(json!({"skus": ["A"], "waiting_room": {"max_active": 0, "admit_per_second": 1}}), "/waiting_room/max_active");
    bad(json!({"skus": ["A"], "hold_ttl_seconds": 3601}), "/hold_ttl_seconds");
    bad(json!({"skus": ["A"], "rate": {"per_second": 1, "burst": 1, "brust": 2}}), "/rate/brust");
    bad(json!({"skus": ["A"], "rate": {"per_second": 1e-9, "burst": 1}}), "/rate/per_second");
    server.put("/v1/sales/sale%2F3", &json!({"skus": ["A"]})).refused(422, "invalid_request");
    server.get("/v1/sales/sale-3").refused(404, "not_found");
}

#[test]
fn holds_obey_the_times_of_their_sale() {
    let server = shared();
    server.stock("SALE-4", 10);
    server.stock("SALE-4-FREE", 10);
    let start = in_seconds(2);
    let body = json!({"skus": ["SALE-4"], "starts_at": start, "hold_ttl_seconds": 77});
    server.put("/v1/sales/sale-4", &body).is(201);
    let early = server.post("/v1/holds", &cart("sale-4", "SALE-4", 1)).refused(403, "sale_not_started");
    assert_eq!((&early["starts_at"], &early["sale"]), (&json!(start), &json!("sale-4")));
    let free = server.post("/v1/holds", &cart("sale-4-free", "SALE-4-FREE", 1)).is(201);
    let path = format!("/v1/holds/{}", free["id"].as_str().unwrap());
    let grown = json!({"items": [{"sku": "SALE-4-FREE", "quantity": 1}, {"sku": "SALE-4", "quantity": 1}]});
    server.patch(&path, &grown).refused(403, "sale_not_started");
    let hold = eventually("the sale starts", Duration::from_secs(10), || {
        let answer = server.post("/v1/holds", &cart("sale-4", "SALE-4", 1));
        (answer.status != 403).then(|| answer.is(201))
    });
    assert_eq!(millis(&hold["expires_at"]) - millis(&hold["created_at"]), 77_000);
    let told = server.post("/v1/holds", &with(cart("sale-4-told", "SALE-4", 1), "ttl_seconds", 90)).is(201);
    assert_eq!(millis(&told["expires_at"]) - millis(&told["created_at"]), 90_000);
    server.patch(&path, &grown).is(200);
    server.put("/v1/sales/sale-4", &json!({"skus": ["SALE-4"], "ends_at": in_seconds(-1)})).is(200);
    server.post("/v1/holds", &cart("sale-4-late", "SALE-4", 1)).refused(410, "sale_ended");
    assert_eq!(server.post("/v1/holds", &cart("sale-4", "SALE-4", 1)).is(200), hold, "what was held is told again");
    let more = json!({"items": [{"sku": "SALE-4-FREE", "quantity": 1}, {"sku": "SALE-4", "quantity": 2}]});
    server.patch(&path, &more).refused(410, "sale_ended");
    server.patch(&path, &grown).is(200);
    server.patch(&path, &json!({"items": [{"sku": "SALE-4", "quantity": 1}]})).is(200);
    server.touch(&format!("/v1/holds/{}/confirm", hold["id"].as_str().unwrap())).is(200);
    assert_eq!(server.delete("/v1/sales/sale-4").status, 204);
    server.post("/v1/holds", &cart("sale-4-after", "SALE-4", 1)).is(201);
}

#[test]
fn a_pause_stops_new_holds_only() {
    let server = shared();
    server.stock("SALE-5", 10);
    server.put("/v1/sales/sale-5", &json!({"skus": ["SALE-5"]})).is(201);
    let hold = server.post("/v1/holds", &cart("sale-5", "SALE-5", 1)).is(201);
    assert_eq!(server.touch("/v1/sales/sale-5/pause").is(200)["status"], "paused");
    let refused = server.post("/v1/holds", &cart("sale-5b", "SALE-5", 1));
    refused.refused(503, "sale_paused");
    assert!(refused.header("retry-after").is_some());
    server.touch(&format!("/v1/holds/{}/confirm", hold["id"].as_str().unwrap())).is(200);
    assert_eq!(server.touch("/v1/sales/sale-5/resume").is(200)["status"], "open");
    server.post("/v1/holds", &cart("sale-5b", "SALE-5", 1)).is(201);
}

#[test]
fn sales_survive_a_kill() {
    let mut server = Server::fresh();
    server.stock("A", 10);
    let sale = server.put("/v1/sales/drop", &json!({"skus": ["A"], "starts_at": in_seconds(3600)})).is(201);
    server.touch("/v1/sales/drop/pause").is(200);
    server.put("/v1/sales/gone", &json!({"skus": ["B"]})).is(201);
    assert_eq!(server.delete("/v1/sales/gone").status, 204);
    server = Server::with(&server.kill(), &[]);
    let after = server.get("/v1/sales/drop").is(200);
    assert_eq!((&after["draw_commitment"], &after["paused"]), (&sale["draw_commitment"], &json!(true)));
    server.post("/v1/holds", &cart("O", "A", 1)).refused(403, "sale_not_started");
    server.get("/v1/sales/gone").refused(404, "not_found");
}

#[test]
fn the_seed_is_told_when_the_sale_has_started_and_not_before() {
    let server = shared();
    let body = |start: String| json!({"skus": ["SALE-6"], "starts_at": start});
    let sale = server.put("/v1/sales/sale-6", &body(in_seconds(3600))).is(201);
    let draw = server.get("/v1/sales/sale-6/draw").is(200);
    assert_eq!(draw, json!({"commitment": sale["draw_commitment"]}));
    server.put("/v1/sales/sale-6", &body(in_seconds(-1))).is(200);
    let draw = server.get("/v1/sales/sale-6/draw").is(200);
    let seed = bytes(draw["seed"].as_str().unwrap());
    assert_eq!(seed.len(), 32);
    assert_eq!(draw["commitment"], hex(&Sha256::digest(&seed)));
    let moved = server.put("/v1/sales/sale-6", &body(in_seconds(3600))).is(200);
    assert_ne!(moved["draw_commitment"], sale["draw_commitment"], "that seed is known");
    assert_eq!(server.get("/v1/sales/sale-6/draw").is(200)["seed"], Value::Null);
}

fn limited(skus: &[&str], name: &str, rate: Value) -> Value {
    with(json!({"skus": skus}), name, rate)
}

#[test]
fn of_a_crowd_exactly_the_burst_is_admitted() {
    let server = shared();
    server.stock("SALE-7", 5000);
    let body = limited(&["SALE-7"], "rate", json!({"per_second": 0.0001, "burst": 120}));
    server.put("/v1/sales/sale-7", &body).is(201);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = |worker: usize| {
            let server = &server;
            move || {
                let mut connection = Connection::open(server.port);
                let order = |n: usize| cart(&format!("sale-7-{worker}-{n}"), "SALE-7", 1);
                let call = |n: usize| Call::new("POST", "/v1/holds").json(&order(n));
                (0..100).map(|n| connection.call(&call(n)).status).collect::<Vec<_>>()
            }
        };
        let workers: Vec<_> = (0..20).map(|worker| scope.spawn(ask(worker))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let count = |status: u16| statuses.iter().filter(|s| **s == status).count();
    assert_eq!((count(201), count(429)), (120, 1880));
    assert_eq!(server.counters("SALE-7").1, 120);
    let metrics = server.get("/metrics").text();
    for (outcome, count) in [("allowed", 120), ("denied", 1880), ("shadow", 0)] {
        let line = format!(
            "holdfast_rate_limit_requests_total{{sale=\"sale-7\",policy=\"sale\",outcome=\"{outcome}\"}} {count}\n"
        );
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
}

#[test]
fn who_is_too_fast_is_told_when_to_come_again() {
    let server = shared();
    server.stock("SALE-8", 10);
    let body = limited(&["SALE-8"], "rate", json!({"per_second": 0.4, "burst": 1}));
    server.put("/v1/sales/sale-8", &body).is(201);
    server.post("/v1/holds", &cart("sale-8", "SALE-8", 1)).is(201);
    let answer = server.post("/v1/holds", &cart("sale-8b", "SALE-8", 1));
    let told = answer.refused(429, "rate_limited");
    let wait = told["retry_after_ms"].as_u64().unwrap();
    assert!((1..=2500).contains(&wait), "{told}");
    assert_eq!(answer.header("retry-after").unwrap(), wait.div_ceil(1000).to_string());
    assert_eq!((&told["violated"], &told["sale"]), (&json!(["sale"]), &json!("sale-8")));
    assert!(answer.header("ratelimit-policy").is_some() && answer.header("ratelimit").is_some());
    assert_eq!(server.post("/v1/holds", &cart("sale-8", "SALE-8", 1)).status, 200, "known already");
    std::thread::sleep(Duration::from_millis(wait));
    server.post("/v1/holds", &cart("sale-8b", "SALE-8", 1)).is(201);
    server.put("/v1/sales/sale-8", &limited(&["SALE-8"], "rate", json!({"per_second": 0, "burst": 1}))).is(200);
    server.post("/v1/holds", &cart("sale-8c", "SALE-8", 1)).refused(503, "sale_paused");
    let shadow = with(body, "shadow", true);
    server.put("/v1/sales/sale-8", &shadow).is(200);
    for n in 0..5 {
        server.post("/v1/holds", &cart(&format!("sale-8-shadow-{n}"), "SALE-8", 1)).is(201);
    }
}

#[test]
fn sold_out_is_told_first_and_costs_nothing() {
    let server = shared();
    server.stock("SALE-9", 1);
    server.put("/v1/sales/sale-9", &limited(&["SALE-9"], "rate", json!({"per_second": 0.001, "burst": 2}))).is(201);
    let hold = server.hold(&cart("sale-9", "SALE-9", 1));
    for n in 0..20 {
        let answer = server.post("/v1/holds", &cart(&format!("sale-9-{n}"), "SALE-9", 1));
        assert_eq!(answer.refused(409, "sold_out")["may_return"], true);
        assert!(answer.header("retry-after").is_none());
    }
    server.touch(&format!("{hold}/release")).is(200);
    // What came back is seen at once, and is sold at the pace of the sale.
    server.put("/v1/stock/SALE-9", &json!({"total": 50})).is(200);
    let statuses: Vec<u16> =
        (0..20).map(|n| server.post("/v1/holds", &cart(&format!("sale-9b-{n}"), "SALE-9", 1)).status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
}

#[test]
fn each_client_has_a_bucket_of_its_own() {
    let mut command = holdfast();
    command.env("HOLDFAST_TRUSTED_PROXIES", "127.0.0.0/8");
    let server = Server::with_command(command, &Arc::new(tempdir().unwrap()), &[]);
    server.stock("A", 100);
    server.put("/v1/sales/drop", &limited(&["A"], "per_client", json!({"per_second": 0.001, "burst": 2}))).is(201);
    let mut count = 0;
    let mut ask = |from: &str, customer: Option<&str>| {
        count += 1;
        let body = cart(&format!("O{count}"), "A", 1);
        let body = customer.map_or(body.clone(), |customer| with(body, "customer_id", customer));
        Call::new("POST", "/v1/holds").header("X-Forwarded-For", from).json(&body).to(&server).status
    };
    assert_eq!([(); 3].map(|()| ask("6.6.6.6", None)), [201, 201, 429]);
    assert_eq!([(); 3].map(|()| ask("9.9.9.9, 7.7.7.7", None)), [201, 201, 429], "the first hop is made up");
    assert_eq!(ask("1.1.1.1, 7.7.7.7", None), 429);
    assert_eq!(ask("2001:db8::1", None), 201);
    assert_eq!(ask("2001:db8::2", None), 201);
    assert_eq!(ask("2001:db8::3", None), 429, "a /64 is one client");
    assert_eq!([(); 3].map(|()| ask("6.6.6.6", Some("cus_1"))), [201, 201, 429]);
    assert_eq!(ask("8.8.8.8", Some("cus_1")), 429);
    assert_eq!(ask("6.6.6.6", Some("cus_2")), 201);
}

#[test]
fn two_nodes_share_one_budget_and_survive_its_loss() {
    if !Redis::is_here() {
        assert!(std::env::var_os("CI").is_none(), "Redis is not here");
        return skipped("no Redis here");
    }
    let redis = Redis::start().unwrap();
    let start = |sku: &str| {
        let mut command = holdfast();
        command.env("HOLDFAST_COORDINATION", redis.url()).env("HOLDFAST_NODES", "2");
        let server = Server::with_command(command, &Arc::new(tempdir().unwrap()), &[]);
        server.stock(sku, 5000);
        server
    };
    // Two shops of their own with a sale of one name have one budget: what nodes of one shop have as well.
    let nodes = [start("A"), start("A")];
    let sale = |rate: Value, fallback: &str| {
        for server in &nodes {
            let body = with(limited(&["A"], "rate", rate.clone()), "rate_fallback", fallback);
            let status = server.put("/v1/sales/drop", &body).status;
            assert!(status == 200 || status == 201);
        }
    };
    sale(json!({"per_second": 0.0001, "burst": 100}), "local");
    let ask = |node: usize, name: &str| nodes[node].post("/v1/holds", &cart(name, "A", 1));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                scope.spawn(move || {
                    (0..40).map(|n| ask(worker % 2, &format!("O-{worker}-{n}")).status).collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let count = |status: u16| statuses.iter().filter(|s| **s == status).count();
    assert_eq!((count(201), count(429)), (100, 220));
    let refused = ask(0, "O-late");
    assert_eq!(refused.refused(429, "rate_limited")["violated"], json!(["sale"]));
    redis.freeze();
    let start = monotonic();
    let alone: Vec<u16> = (0..60).map(|n| ask(0, &format!("O-alone-{n}")).status).collect();
    let admitted = alone.iter().filter(|status| **status == 201).count();
    assert_eq!(admitted, 50, "half of the budget is this node's: {alone:?}");
    sale(json!({"per_second": 0.0001, "burst": 100}), "closed");
    ask(0, "O-closed").refused(503, "overloaded");
    sale(json!({"per_second": 0.0001, "burst": 100}), "open");
    ask(0, "O-open").is(201);
    assert!(start.elapsed() < Duration::from_secs(5), "nobody waits for a Redis that is frozen");
    assert!(nodes[0].get("/metrics").text().contains("outcome=\"degraded\""));
    redis.thaw();
    sale(json!({"per_second": 0.0001, "burst": 100}), "closed");
    eventually("it is asked again", Duration::from_secs(10), || (ask(0, "O-again").status == 429).then_some(()));
}

#[test]
fn a_cart_over_two_sales_takes_from_both_or_from_none() {
    let server = shared();
    server.stock("SALE-10A", 100);
    server.stock("SALE-10B", 100);
    let rate = |burst: u32| json!({"per_second": 0.001, "burst": burst});
    server.put("/v1/sales/sale-10a", &limited(&["SALE-10A"], "rate", rate(3))).is(201);
    server.put("/v1/sales/sale-10b", &limited(&["SALE-10B"], "rate", rate(1))).is(201);
    server.post("/v1/holds", &cart("sale-10", "SALE-10B", 1)).is(201);
    let items = json!([{"sku": "SALE-10A", "quantity": 1}, {"sku": "SALE-10B", "quantity": 1}]);
    for n in 0..5 {
        let body = json!({"order_id": format!("sale-10-{n}"), "items": items});
        assert_eq!(server.post("/v1/holds", &body).refused(429, "rate_limited")["sale"], "sale-10b");
    }
    let statuses =
        [0, 1, 2, 3].map(|n| server.post("/v1/holds", &cart(&format!("sale-10a-{n}"), "SALE-10A", 1)).status);
    assert_eq!(statuses, [201, 201, 201, 429], "nothing was taken by those who were refused");
}
