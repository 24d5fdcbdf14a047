//! `/v1/ledger`, and the lists of payments and refunds, which nothing fills yet.

use crate::support::{Call, Server, brief_cart, cart, encoded, eventually, millis};
use serde_json::{Value, json};
use std::time::Duration;

fn all(server: &Server, query: &str) -> Vec<Value> {
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/ledger?{query}{after}")).is(200);
        seen.extend(page["items"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next"].as_str() else { return seen };
        after = format!("&after={}", encoded(next));
    }
}

/// kind, SKU, available, held, sold, order, reason.
fn told(entries: &[Value]) -> Vec<Value> {
    let names = ["kind", "sku", "available", "held", "sold", "order_id", "reason"];
    entries.iter().map(|e| names.iter().map(|n| e[n].clone()).collect()).collect()
}

#[test]
fn every_movement_is_an_entry_and_their_sum_is_the_stock() {
    let server = Server::fresh();
    server.put("/v1/stock/A", &json!({"total": 9, "limit_per_customer": 9})).is(201);
    server.stock("B", 5);
    server.post("/v1/stock/A/adjust", &json!({"delta": -1, "reason": "damaged \"x\""})).is(200);
    server.put("/v1/stock/A", &json!({"total": 10, "limit_per_customer": null})).is(200);
    let hold =
        server.hold(&json!({"order_id": "o-1", "items": [{"sku": "A", "quantity": 2}, {"sku": "B", "quantity": 1}]}));
    server.patch(&hold, &json!({"items": [{"sku": "A", "quantity": 3}]})).is(200);
    server.post(&format!("{hold}/extend"), &json!({"ttl_seconds": 900})).is(200);
    server.touch(&format!("{hold}/confirm")).is(200);
    server.post("/v1/orders/o-1/returns", &json!({"items": [{"sku": "A", "quantity": 1}]})).is(200);
    let released = server.hold(&cart("o-2", "B", 1));
    server.touch(&format!("{released}/release")).is(200);
    server.touch(&format!("{released}/confirm")).is(200);
    let brief = server.hold(&brief_cart("o-3", "B", 2, 1));
    eventually("the sweep", Duration::from_secs(10), || (all(&server, "order_id=o-3").len() == 2).then_some(()));
    assert_eq!(server.get(&brief).is(200)["status"], "expired");
    server.stock("C", 3);
    server.delete("/v1/stock/C");

    let entries = all(&server, "limit=1000");
    let expected = [
        json!(["received", "A", 9, 0, 0, null, null]),
        json!(["received", "B", 5, 0, 0, null, null]),
        json!(["adjusted", "A", -1, 0, 0, null, "damaged \"x\""]),
        json!(["adjusted", "A", 2, 0, 0, null, "total set to 10"]),
        json!(["held", "A", -2, 2, 0, "o-1", null]),
        json!(["held", "B", -1, 1, 0, "o-1", null]),
        json!(["changed", "A", -1, 1, 0, "o-1", null]),
        json!(["changed", "B", 1, -1, 0, "o-1", null]),
        json!(["extended", null, 0, 0, 0, "o-1", null]),
        json!(["confirmed", "A", 0, -3, 3, "o-1", null]),
        json!(["returned", "A", 1, 0, -1, "o-1", null]),
        json!(["held", "B", -1, 1, 0, "o-2", null]),
        json!(["released", "B", 1, -1, 0, "o-2", null]),
        json!(["confirmed_late", "B", -1, 0, 1, "o-2", null]),
        json!(["held", "B", -2, 2, 0, "o-3", null]),
        json!(["expired", "B", 2, -2, 0, "o-3", null]),
        json!(["received", "C", 3, 0, 0, null, null]),
        json!(["removed", "C", -3, 0, 0, null, null]),
    ];
    assert_eq!(told(&entries), expected);
    let numbers: Vec<u64> = entries.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=18).collect::<Vec<_>>());
    assert!(entries.windows(2).all(|w| millis(&w[0]["at"]) <= millis(&w[1]["at"])));
    assert_eq!(entries[4]["hold_id"], hold.rsplit('/').next().unwrap());

    for limit in ["limit=1", "limit=4", "limit=18"] {
        assert_eq!(all(&server, limit), entries);
        let of_b: Vec<Value> = entries.iter().filter(|e| e["sku"] == "B").cloned().collect();
        assert_eq!(all(&server, &format!("sku=B&{limit}")), of_b);
        let of_order: Vec<Value> = entries.iter().filter(|e| e["order_id"] == "o-1").cloned().collect();
        assert_eq!(all(&server, &format!("order_id=o-1&{limit}")), of_order);
        let both: Vec<Value> = of_b.into_iter().filter(|e| e["order_id"] == "o-1").collect();
        assert_eq!(all(&server, &format!("order_id=o-1&sku=B&{limit}")), both);
        assert_eq!(all(&server, &format!("sku=b&{limit}")), [Value::Null; 0]);
    }
    for sku in ["A", "B"] {
        let sum =
            |name: &str| entries.iter().filter(|e| e["sku"] == sku).map(|e| e[name].as_i64().unwrap()).sum::<i64>();
        let (available, held, sold) = server.counters(sku);
        assert_eq!(
            [sum("available"), sum("held"), sum("sold")],
            [available, held, sold].map(|n| i64::try_from(n).unwrap())
        );
    }
    for bad in [
        "limit=0",
        "limit=1001",
        "limit=1.0",
        "after=x",
        "after=-1",
        "after=1.0",
        "sku=",
        "order_id=",
        "skus=A",
        "sku=%20A",
        "order_id=a%00",
    ] {
        server.get(&format!("/v1/ledger?{bad}")).refused(422, "invalid_request");
    }
    assert_eq!(server.get("/v1/ledger?after=18446744073709551615").is(200), json!({"items": [], "next": null}));
    server.get("/v1/ledger?after=18446744073709551616").refused(422, "invalid_request");
    server.touch("/v1/ledger").refused(405, "method_not_allowed");
}

#[test]
fn what_is_refused_leaves_no_entry() {
    let server = Server::fresh();
    server.stock("A", 1);
    server.hold(&cart("o-1", "A", 1));
    let before = all(&server, "");
    server.post("/v1/holds", &cart("o-1", "A", 1)).is(200);
    server.post("/v1/holds", &cart("o-2", "A", 1)).refused(409, "sold_out");
    server.post("/v1/holds", &cart("o-1", "A", 2)).refused(409, "order_conflict");
    server.put("/v1/stock/A", &json!({"total": 0})).refused(409, "total_below_committed");
    server.put("/v1/stock/A", &json!({"total": 1})).is(200);
    assert_eq!(all(&server, ""), before);
}

#[test]
fn payments_and_refunds_are_empty_lists_with_strict_queries() {
    let server = Server::fresh();
    let empty = json!({"items": [], "next": null});
    let known = [
        ("payments", ["open", "unmatched", "needs_attention", "settled", "reversing", "refunded", "voided"].as_slice()),
        ("refunds", &["due", "requested", "succeeded", "needs_attention"]),
    ];
    for (list, statuses) in known {
        assert_eq!(server.get(&format!("/v1/{list}")).is(200), empty);
        for status in statuses {
            assert_eq!(server.get(&format!("/v1/{list}?status={status}&after=0&limit=1")).is(200), empty);
        }
        server.get(&format!("/v1/{list}?status=paid")).invalid(&["/status"]);
        for bad in ["status=", "limit=0", "limit=1001", "after=x", "state=due"] {
            server.get(&format!("/v1/{list}?{bad}")).refused(422, "invalid_request");
        }
        Call::new("POST", &format!("/v1/{list}")).to(&server).refused(405, "method_not_allowed");
    }
}

#[test]
fn a_query_that_is_not_utf8_is_refused_and_not_read_as_another_name() {
    let server = Server::fresh();
    server.stock("A", 1);
    for query in ["/v1/ledger?sku=%FF", "/v1/holds?order_id=%C3%28", "/v1/stock?after=a%80"] {
        server.get(query).refused(422, "invalid_request");
    }
    server.get("/v1/ledger?sku=%C3%89&order_id=100%25").is(200);
}

#[test]
fn half_a_quoted_key_is_no_key() {
    let server = Server::fresh();
    server.stock("A", 1);
    let adjust = |key: &str| {
        let call = Call::new("POST", "/v1/stock/A/adjust").header("Idempotency-Key", key);
        call.json(&json!({"delta": 1})).to(&server)
    };
    for key in ["\"", "\"a", "a\"", "\"a\"b\""] {
        adjust(key).refused(422, "invalid_request");
    }
    assert_eq!(adjust("\"a\"").is(200)["available"], 2);
    assert_eq!(adjust("a").is(200)["available"], 2, "quoted or bare, it is the same key");
}
