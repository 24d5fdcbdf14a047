//! Carts at every limit, and beyond.

use crate::support::{Answer, Call, Server, shared};
use serde_json::{Value, json};

fn raw(server: &Server, body: &str) -> Answer {
    Call::new("POST", "/v1/holds").raw("application/json", body).to(server)
}

#[test]
fn quantities() {
    let server = shared();
    server.stock("NUM-1", 2_000_000);
    let ask = |quantity: &str| {
        raw(&server, &format!("{{\"order_id\":\"num-1\",\"items\":[{{\"sku\":\"NUM-1\",\"quantity\":{quantity}}}]}}"))
    };
    let bad = [
        "0",
        "-1",
        "-0",
        "1.0",
        "1e0",
        "1E0",
        "0.5",
        "\"1\"",
        "true",
        "false",
        "null",
        "[1]",
        "{}",
        "1000001",
        "4294967297",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1e400",
        "-9223372036854775809",
    ];
    for quantity in bad {
        ask(quantity).invalid(&["/items/0/quantity"]);
    }
    for no_json in ["01", "+1", "0x1", "NaN", "Infinity", "1,", "", "1 1", "1_000"] {
        ask(no_json).refused(422, "invalid_request");
    }
    server.get("/v1/holds?order_id=num-1").is(200)["items"].as_array().unwrap().is_empty().then_some(()).unwrap();
    assert_eq!(server.counters("NUM-1"), (2_000_000, 0, 0), "nothing held");
    ask("1000000").is(201);
    assert_eq!(server.counters("NUM-1"), (1_000_000, 1_000_000, 0));
}

#[test]
fn sums_are_checked_and_never_wrap() {
    let server = shared();
    server.stock("NUM-2", 2_000_000);
    let ask = |quantities: &[u64]| {
        let items: Vec<Value> = quantities.iter().map(|q| json!({"sku": "NUM-2", "quantity": q})).collect();
        server.post("/v1/holds", &json!({"order_id": "num-2", "items": items}))
    };
    ask(&[1_000_000, 1]).invalid(&["/items/1/quantity"]);
    ask(&[1, 0]).invalid(&["/items/1/quantity"]);
    ask(&[u64::MAX, 2]).invalid(&["/items/0/quantity"]);
    ask(&[1 << 63, 1 << 63, 1]).invalid(&["/items/0/quantity"]);
    ask(&[1 << 32, 1]).invalid(&["/items/0/quantity"]);
    ask(&[500_000, 400_000, 100_001]).invalid(&["/items/2/quantity"]);
    assert_eq!(ask(&[500_000, 400_000, 100_000]).is(201)["items"], json!([{"sku": "NUM-2", "quantity": 1_000_000}]));
}

#[test]
fn lines() {
    let server = shared();
    let table: String = (0..101).map(|n| format!("NUM-3-{n:03},1000\n")).collect();
    server.import("", format!("sku,total\n{table}")).is(200);
    let items = |count: usize| -> Value {
        (0..count).rev().map(|n| json!({"sku": format!("NUM-3-{n:03}"), "quantity": 1})).collect()
    };
    let same: Value = (0..101).map(|_| json!({"sku": "NUM-3-000", "quantity": 1})).collect();
    let ask = |items: &Value| server.post("/v1/holds", &json!({"order_id": "num-3", "items": items}));
    ask(&items(0)).invalid(&["/items"]);
    ask(&items(101)).invalid(&["/items"]);
    ask(&same).invalid(&["/items"]);
    let hold = ask(&items(100)).is(201);
    assert_eq!(hold["items"].as_array().unwrap().len(), 100);
    assert_eq!(hold["items"][0]["sku"], "NUM-3-000", "sorted");
    for shape in [json!(null), json!({}), json!("NUM-3-000"), json!([null])] {
        let pointer = if shape.is_array() { "/items/0" } else { "/items" };
        ask(&shape).invalid(&[pointer]);
    }
    ask(&json!([{"sku": "NUM-3-000"}])).invalid(&["/items/0/quantity"]);
    ask(&json!([{"quantity": 1}])).invalid(&["/items/0/sku"]);
    ask(&json!([{"sku": "NUM-3-000", "quantity": 1, "price": 1}])).invalid(&["/items/0/price"]);
    for bad in [json!(""), json!(" x"), json!("x\u{0}"), json!("x".repeat(129)), json!("é".repeat(65))] {
        ask(&json!([{"sku": "NUM-3-000", "quantity": 1}, {"sku": bad, "quantity": 1}])).invalid(&["/items/1/sku"]);
    }
    ask(&json!([{"sku": 17, "quantity": 1}])).invalid(&["/items/0/sku"]);
    // A list where an object belongs is no cart, however well its values would fit.
    ask(&json!([["NUM-3-000", 1]])).invalid(&["/items/0"]);
    raw(&server, r#"["num-3-list",[{"sku":"NUM-3-000","quantity":1}],null,null,null,null,null,null]"#).invalid(&[""]);
}

#[test]
fn seconds() {
    let server = shared();
    server.stock("NUM-4", 10);
    let ask = |ttl: &str| {
        raw(
            &server,
            &format!(
                "{{\"order_id\":\"num-4-{ttl}\",\"items\":[{{\"sku\":\"NUM-4\",\"quantity\":1}}],\"ttl_seconds\":{ttl}}}"
            ),
        )
    };
    for bad in
        ["0", "3601", "-1", "1.5", "600.0", "6e2", "true", "{}", "4294967296", "4294967297", "18446744073709551616"]
    {
        ask(bad).invalid(&["/ttl_seconds"]);
    }
    raw(&server, "{\"order_id\":\"n\",\"items\":[],\"ttl_seconds\":\"600\"}").invalid(&["/ttl_seconds"]);
    ask("1").is(201);
    ask("3600").is(201);
    assert_eq!(ask("null").is(201)["status"], "held", "null is as if not told");
}

#[test]
fn money() {
    let server = shared();
    server.stock("NUM-5", 100);
    let ask = |order: &str, amount: &str, currency: &str| {
        let body = format!(
            "{{\"order_id\":\"{order}\",\"items\":[{{\"sku\":\"NUM-5\",\"quantity\":1}}],\"amount\":{amount},\"currency\":{currency}}}"
        );
        raw(&server, &body)
    };
    for bad in ["-1", "1.0", "150e2", "\"15000\"", "true", "9007199254740992", "18446744073709551616"] {
        ask("num-5", bad, "\"EUR\"").invalid(&["/amount"]);
    }
    for bad in ["\"\"", "\"EU\"", "\"EURO\"", "\"E1R\"", "\"€UR\"", "\"eüs\"", "978", "\" EUR\"", "[]"] {
        ask("num-5", "1", bad).invalid(&["/currency"]);
    }
    assert_eq!(ask("num-5-a", "9007199254740991", "\"jpy\"").is(201)["currency"], "JPY");
    assert_eq!(ask("num-5-a", "9007199254740991", "\"JPY\"").is(200)["amount"], 9_007_199_254_740_991_u64);
    assert_eq!(ask("num-5-b", "0", "\"uSd\"").is(201)["amount"], 0);
    ask("num-5-a", "9007199254740990", "\"JPY\"").refused(409, "order_conflict");
}
