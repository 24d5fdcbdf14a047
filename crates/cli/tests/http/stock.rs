//! `/v1/stock`: set, read, list, adjust, forget.

use crate::support::{Call, Server, brief_cart, cart, encoded, eventually, shared, stock_path, with};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_sku_is_created_changed_read_and_forgotten() {
    let server = shared();
    let path = stock_path("STOCK-1");
    let created = server.put(&path, &json!({"total": 350, "limit_per_customer": 2}));
    let expected = json!({"sku": "STOCK-1", "total": 350, "available": 350, "held": 0, "sold": 0,
        "limit_per_customer": 2, "version": 1});
    assert_eq!(created.is(201), expected);
    assert_eq!(created.header("etag"), Some("\"1\""));
    assert_eq!(server.get(&path).is(200), expected);

    let changed = server.put(&path, &json!({"total": 340}));
    assert_eq!(changed.is(200), with(with(with(expected, "total", 340), "available", 340), "version", 2));
    assert_eq!(changed.header("etag"), Some("\"2\""));
    let same = server.put(&path, &json!({"total": 340, "limit_per_customer": 2}));
    assert_eq!(same.is(200)["version"], 2, "setting what is there is no change");
    assert_eq!(server.put(&path, &json!({"total": 340, "limit_per_customer": null})).is(200)["limit_per_customer"], Value::Null);
    assert_eq!(server.get(&path).header("etag"), Some("\"3\""));

    let gone = server.delete(&path);
    assert_eq!((gone.status, gone.body.len()), (204, 0));
    server.get(&path).refused(404, "not_found");
    server.delete(&path).refused(404, "not_found");
    assert_eq!(server.put(&path, &json!({"total": 0})).is(201)["version"], 1);
}

#[test]
fn if_match_compares_and_sets() {
    let server = shared();
    let path = stock_path("STOCK-2");
    let set = |total: u64, version: &str| {
        Call::new("PUT", &path).header("if-match", version).json(&json!({"total": total})).to(&server)
    };
    let absent = set(1, "\"1\"").refused(412, "version_mismatch");
    assert_eq!(absent, json!({}), "a version that was expected of nothing");
    server.stock("STOCK-2", 10);
    assert_eq!(set(11, "\"1\"").is(200)["version"], 2);
    assert_eq!(set(12, "\"1\"").refused(412, "version_mismatch"), json!({"version": 2}));
    assert_eq!(set(12, "2").is(200)["version"], 3, "quotes may be left out");
    set(12, "\"0\"").refused(412, "version_mismatch");
    for odd in ["", "*", "W/\"3\"", "\"three\"", "\"3", "-3", "\"18446744073709551616\"", "\"3\", \"4\""] {
        set(13, odd).refused(422, "invalid_request");
    }
    server.hold(&cart("stock-2", "STOCK-2", 1));
    assert_eq!(server.get(&path).is(200)["version"], 3, "holds do not count");
    let remove = |version: &str| Call::new("DELETE", &path).header("if-match", version).to(&server);
    assert_eq!(remove("\"2\"").refused(412, "version_mismatch"), json!({"version": 3}));
    remove("\"3\"").refused(409, "stock_in_use");
}

#[test]
fn units_that_are_held_or_sold_are_never_taken() {
    let server = shared();
    server.stock("STOCK-3", 10);
    let path = stock_path("STOCK-3");
    let sold = server.hold(&cart("stock-3a", "STOCK-3", 2));
    server.touch(&format!("{sold}/confirm")).is(200);
    let held = server.hold(&cart("stock-3b", "STOCK-3", 3));
    let refused = server.put(&path, &json!({"total": 4, "limit_per_customer": 1})).refused(409, "total_below_committed");
    assert_eq!(refused, json!({"committed": 5}));
    assert_eq!(server.get(&path).is(200)["limit_per_customer"], Value::Null, "nothing changed");
    assert_eq!(server.delete(&path).refused(409, "stock_in_use"), json!({"held": 3, "sold": 2}));
    server.put(&path, &json!({"total": 5})).is(200);
    assert_eq!(server.counters("STOCK-3"), (0, 3, 2));
    let adjust = |delta: i64| server.post(&format!("{path}/adjust"), &json!({"delta": delta, "reason": "damaged"}));
    assert_eq!(adjust(-1).refused(409, "insufficient_available"), json!({"available": 0}));
    server.touch(&format!("{held}/release")).is(200);
    adjust(-3).is(200);
    assert_eq!(server.counters("STOCK-3"), (0, 0, 2));
    assert_eq!(server.delete(&path).refused(409, "stock_in_use"), json!({"held": 0, "sold": 2}));
}

#[test]
fn adjusting_with_a_key_is_done_once() {
    let server = shared();
    server.stock("STOCK-4", 10);
    let path = format!("{}/adjust", stock_path("STOCK-4"));
    let adjust = |key: &str, body: &Value| Call::new("POST", &path).header("idempotency-key", key).json(body).to(&server);
    let damaged = json!({"delta": -5, "reason": "damaged"});
    let first = adjust("stock-4", &damaged);
    assert_eq!(first.is(200)["total"], 5);
    assert_eq!(first.header("etag"), Some("\"2\""));
    assert_eq!(adjust("\"stock-4\"", &damaged).is(200)["total"], 5, "in quotes it is the same key");
    for other in [json!({"delta": -4, "reason": "damaged"}), json!({"delta": -5, "reason": "lost"}), json!({"delta": -5})] {
        adjust("stock-4", &other).refused(422, "idempotency_key_reused");
    }
    let elsewhere = format!("{}/adjust", stock_path("STOCK-4-B"));
    let elsewhere = Call::new("POST", &elsewhere).header("idempotency-key", "stock-4").json(&damaged);
    elsewhere.to(&server).refused(422, "idempotency_key_reused");
    adjust("stock-4-refused", &json!({"delta": -6})).refused(409, "insufficient_available");
    assert_eq!(adjust("stock-4-refused", &json!({"delta": 2})).is(200)["total"], 7, "a refusal uses no key up");
    assert_eq!(adjust("stock-4", &damaged).is(200)["total"], 7, "the answer tells the state as of now");
    for odd in ["", "\"\"", "x\u{e9}", &"x".repeat(256)] {
        adjust(odd, &damaged).refused(422, "invalid_request");
    }
    adjust(&"x".repeat(255), &json!({"delta": 1})).is(200);
    server.post(&path, &json!({"delta": 1})).is(200);
    assert_eq!(server.post(&path, &json!({"delta": 1})).is(200)["total"], 10, "without a key each one counts");
    server.post(&format!("{}/adjust", stock_path("STOCK-4-NONE")), &damaged).refused(404, "not_found");
}

#[test]
fn totals_limits_and_deltas_at_their_ends() {
    const MAX: u64 = 1_000_000_000_000;
    let server = shared();
    let path = stock_path("STOCK-5");
    let put = |total: &str, limit: &str| {
        let body = format!("{{\"total\":{total},\"limit_per_customer\":{limit}}}");
        Call::new("PUT", &path).raw("application/json", body).to(&server)
    };
    for bad in ["-1", "1.0", "1e0", "\"1\"", "true", "null", "[1]", "{}", "1000000000001", "18446744073709551616", "-0", "01"] {
        let pointers = put(bad, "1").refused(422, "invalid_request")["errors"].clone();
        let pointer = if bad == "01" { "" } else { "/total" };
        assert!(pointers[0]["pointer"].as_str().is_some_and(|p| p.starts_with(pointer)), "{bad}: {pointers}");
    }
    for bad in ["0", "-1", "1.5", "\"2\"", "false", "1000000000001"] {
        put("1", bad).invalid(&["/limit_per_customer"]);
    }
    put("1000000000001", "0").invalid(&["/total", "/limit_per_customer"]);
    server.get(&path).refused(404, "not_found");
    assert_eq!(put("1000000000000", "1000000000000").is(201)["available"], MAX);
    assert_eq!(put("0", "1").is(200)["available"], 0);

    let adjust = |delta: &str| {
        let body = format!("{{\"delta\":{delta}}}");
        Call::new("POST", &format!("{path}/adjust")).raw("application/json", body).to(&server)
    };
    for bad in ["1.0", "1e0", "\"1\"", "true", "null", "1000000000001", "-1000000000001", "9223372036854775808"] {
        adjust(bad).invalid(&["/delta"]);
    }
    adjust("-9223372036854775808").invalid(&["/delta"]);
    assert_eq!(adjust("1000000000000").is(200)["total"], MAX);
    adjust("1").refused(409, "total_too_large");
    adjust("0").is(200);
    assert_eq!(adjust("-1000000000000").is(200)["total"], 0);
    let reason = |reason: &str| server.post(&format!("{path}/adjust"), &json!({"delta": 1, "reason": reason}));
    reason(&"r".repeat(255)).is(200);
    reason(&"r".repeat(256)).invalid(&["/reason"]);
    reason("line\nbreak").invalid(&["/reason"]);
    adjust("1,\"delta\":1").invalid(&["/delta"]);
    adjust("1,\"why\":\"no\"").invalid(&["/why"]);
    put("1", "1,\"limit\":1").invalid(&["/limit"]);
    server.put(&path, &json!({"limit_per_customer": 1})).invalid(&["/total"]);
}

#[test]
fn names_that_are_no_skus() {
    let server = shared();
    for (bad, status, code) in [
        (" a".to_owned(), 404, "not_found"),
        ("a\n".to_owned(), 404, "not_found"),
        ("\u{85}".to_owned(), 404, "not_found"),
        ("x".repeat(129), 404, "not_found"),
    ] {
        server.get(&stock_path(&bad)).refused(status, code);
        server.delete(&stock_path(&bad)).refused(status, code);
        server.post(&format!("{}/adjust", stock_path(&bad)), &json!({"delta": 1})).refused(status, code);
        server.put(&stock_path(&bad), &json!({"total": 1})).invalid(&["/sku"]);
    }
    server.put("/v1/stock/%FF", &json!({"total": 1})).refused(422, "invalid_request");
    server.get("/v1/stock/%C3%28").refused(422, "invalid_request");
    server.put(&stock_path(&"x".repeat(128)), &json!({"total": 1})).is(201);
}

#[test]
fn a_list_in_byte_order_page_by_page() {
    let server = Server::fresh();
    let mut skus: Vec<String> = (0..25).map(|n| format!("L-{n:02}")).collect();
    skus.extend(["l-00", "É", "E\u{301}", "🦊", "a/b?&=", "Z"].map(str::to_owned));
    for sku in skus.iter().rev() {
        server.stock(sku, 1);
    }
    skus.sort();
    for limit in [1, 7, 31, 1000] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/v1/stock?limit={limit}{after}")).is(200);
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= limit);
            seen.extend(items.iter().map(|i| i["sku"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={}", encoded(next));
        }
        assert_eq!(seen, skus, "limit={limit}");
    }
    assert_eq!(server.get("/v1/stock").is(200)["items"].as_array().unwrap().len(), 31);
    for bad in ["limit=0", "limit=1001", "limit=-1", "limit=ten", "limit=", "limit=1&limit=2", "limt=1", "after=", "sku=L-00"] {
        server.get(&format!("/v1/stock?{bad}")).refused(422, "invalid_request");
    }
}

#[test]
fn units_of_a_lapsed_hold_count_as_available() {
    let server = shared();
    server.stock("STOCK-6", 5);
    let path = stock_path("STOCK-6");
    let hold = server.hold(&brief_cart("stock-6", "STOCK-6", 5, 1));
    server.put(&path, &json!({"total": 4})).refused(409, "total_below_committed");
    eventually("the hold lapses", Duration::from_secs(5), || (server.counters("STOCK-6") == (5, 0, 0)).then_some(()));
    assert_eq!(server.get(&hold).is(200)["status"], "expired");
    assert_eq!(server.put(&path, &json!({"total": 4})).is(200)["available"], 4);
    assert_eq!(server.delete(&path).status, 204);
}
