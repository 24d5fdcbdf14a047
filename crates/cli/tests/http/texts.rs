//! What a cart may say in words: identifiers, references, notes.

use crate::support::{Call, brief_cart, cart, shared, with};
use serde_json::{Value, json};

#[test]
fn notes() {
    let server = shared();
    server.stock("NUM-6", 100);
    let noted = |order: &str, metadata: &Value| {
        server.post("/v1/holds", &with(cart(order, "NUM-6", 1), "metadata", metadata.clone()))
    };
    let members = |count: usize| -> Value {
        (0..count).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into()
    };
    noted("num-6", &members(51)).invalid(&["/metadata"]);
    noted("num-6", &json!({"a": "x".repeat(8192)})).invalid(&["/metadata"]);
    for bad in [
        json!("x"),
        json!([]),
        json!(1),
        json!({"a": 1}),
        json!({"a": null}),
        json!({"a": {"b": "c"}}),
        json!({"a": ["b"]}),
        json!({"a": true}),
    ] {
        noted("num-6", &bad).invalid(&["/metadata"]);
    }
    assert_eq!(noted("num-6-a", &members(50)).is(201)["metadata"], members(50));
    let full = json!({"a": "ü".repeat(4095), "b": ""});
    noted("num-6-b", &json!({"a": "ü".repeat(4095), "b": "x"})).invalid(&["/metadata"]);
    assert_eq!(noted("num-6-c", &full).is(201)["metadata"], full, "8 KiB to the byte");
    noted("num-6-d", &json!({"a": "ü".repeat(4096)})).invalid(&["/metadata"]);
    assert_eq!(noted("num-6-e", &json!({})).is(201)["metadata"], json!({}));
    assert_eq!(noted("num-6-f", &json!(null)).is(201)["metadata"], Value::Null);
    let odd = json!({"": "", "\u{0}\n\"\\": "\u{7f}\u{2028}🦊", "__proto__": "{}"});
    let hold = noted("num-6-g", &odd).is(201);
    assert_eq!(hold["metadata"], odd);
    assert_eq!(server.get(&format!("/v1/holds/{}", hold["id"].as_str().unwrap())).is(200)["metadata"], odd);
    let twice = |metadata: &str| {
        let items = "[{\"sku\":\"NUM-6\",\"quantity\":1}]";
        let body = format!("{{\"order_id\":\"num-6\",\"items\":{items},\"metadata\":{metadata}}}");
        Call::new("POST", "/v1/holds").raw("application/json", body).to(&server)
    };
    twice(r#"{"a":"1","a":"1"}"#).invalid(&["/metadata"]);
    twice(r#"{"a":"1","\u0061":"2"}"#).invalid(&["/metadata"]);
    twice(r#"{"a":"\ud800"}"#).invalid(&["/metadata"]);
    assert_eq!(twice(r#"{ "a" : "\u00e9" }"#).is(201)["metadata"], json!({"a": "é"}));
}

#[test]
fn identifiers() {
    let server = shared();
    server.stock("NUM-7", 100);
    let customer = |id: Value| server.post("/v1/holds", &with(cart("num-7", "NUM-7", 1), "customer_id", id));
    let order = |id: &str| server.post("/v1/holds", &cart(id, "NUM-7", 1));
    for bad in ["", " ", " a", "a ", "a\tb", "a\u{0}", "\u{9f}", "\u{3000}a", &"x".repeat(256)] {
        order(bad).invalid(&["/order_id"]);
        customer(json!(bad)).invalid(&["/customer_id"]);
        let paid = with(cart("num-7", "NUM-7", 1), "payment_ref", bad);
        if bad.trim_matches(' ') != bad && bad.len() > 1 || bad == " " || bad == "\u{3000}a" {
            continue; // A reference is the provider's; white space around it is the provider's business.
        }
        server.post("/v1/holds", &paid).invalid(&["/payment_ref"]);
    }
    customer(json!(7)).invalid(&["/customer_id"]);
    order(&"x".repeat(255)).is(201);
    order(&"é".repeat(127)).is(201);
    order("a b/c").is(201);
    server.post("/v1/holds", &with(brief_cart("num-7-p", "NUM-7", 1, 60), "payment_ref", "x".repeat(255))).is(201);
    let everything = json!({"order_id": "", "items": [{"sku": "NUM-7", "quantity": 0}], "ttl_seconds": 0, "customer_id": "",
        "amount": 9_007_199_254_740_992_u64, "currency": "x", "payment_ref": "", "metadata": []});
    let all = [
        "/order_id",
        "/items/0/quantity",
        "/ttl_seconds",
        "/customer_id",
        "/amount",
        "/currency",
        "/payment_ref",
        "/metadata",
    ];
    server.post("/v1/holds", &everything).invalid(&all);
}
