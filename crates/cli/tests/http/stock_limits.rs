//! `/v1/stock`: names, numbers and pages at their limits.

use crate::support::{Call, Server, encoded, shared, stock_path};
use serde_json::json;

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
    for bad in
        ["limit=0", "limit=1001", "limit=-1", "limit=ten", "limit=", "limit=1&limit=2", "limt=1", "after=", "sku=L-00"]
    {
        server.get(&format!("/v1/stock?{bad}")).refused(422, "invalid_request");
    }
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
    for bad in
        ["-1", "1.0", "1e0", "\"1\"", "true", "null", "[1]", "{}", "1000000000001", "18446744073709551616", "-0", "01"]
    {
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
