//! `/v1/stock`: set, read, list, adjust, forget.

use crate::support::{Call, brief_cart, cart, eventually, shared, stock_path, with};
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
    assert_eq!(
        server.put(&path, &json!({"total": 340, "limit_per_customer": null})).is(200)["limit_per_customer"],
        Value::Null
    );
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
    let refused =
        server.put(&path, &json!({"total": 4, "limit_per_customer": 1})).refused(409, "total_below_committed");
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
    let adjust =
        |key: &str, body: &Value| Call::new("POST", &path).header("idempotency-key", key).json(body).to(&server);
    let damaged = json!({"delta": -5, "reason": "damaged"});
    let first = adjust("stock-4", &damaged);
    assert_eq!(first.is(200)["total"], 5);
    assert_eq!(first.header("etag"), Some("\"2\""));
    assert_eq!(adjust("\"stock-4\"", &damaged).is(200)["total"], 5, "in quotes it is the same key");
    for other in
        [json!({"delta": -4, "reason": "damaged"}), json!({"delta": -5, "reason": "lost"}), json!({"delta": -5})]
    {
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
