//! `/v1/orders`: read, and take units back.

use crate::support::{Answer, Call, Server, cart, encoded, shared, with};
use serde_json::{Value, json};

fn bought(server: &Server, order: &str, items: &Value) {
    let hold = server.hold(&json!({"order_id": order, "items": items, "customer_id": "c"}));
    server.touch(&format!("{hold}/confirm")).is(200);
}

fn give_back(server: &Server, order: &str, key: Option<&str>, items: &Value) -> Answer {
    let call = Call::new("POST", &format!("/v1/orders/{}/returns", encoded(order)));
    let call = if let Some(key) = key { call.header("idempotency-key", key) } else { call };
    call.json(&json!({"items": items})).to(server)
}

#[test]
fn units_come_back_and_the_order_tells() {
    let server = shared();
    server.stock("ORDER-1A", 5);
    server.stock("ORDER-1B", 5);
    bought(&server, "order-1", &json!([{"sku": "ORDER-1A", "quantity": 3}, {"sku": "ORDER-1B", "quantity": 1}]));
    let one = json!([{"sku": "ORDER-1A", "quantity": 1}]);
    let order = give_back(&server, "order-1", Some("rma-1"), &one).is(200);
    let lines =
        json!([{"sku": "ORDER-1A", "quantity": 3, "returned": 1}, {"sku": "ORDER-1B", "quantity": 1, "returned": 0}]);
    assert_eq!((&order["items"], &order["status"]), (&lines, &json!("confirmed")));
    assert_eq!(server.counters("ORDER-1A"), (3, 0, 2));
    assert_eq!(give_back(&server, "order-1", Some("rma-1"), &one).is(200), order, "once");
    assert_eq!(server.counters("ORDER-1A"), (3, 0, 2));
    give_back(&server, "order-1", Some("rma-1"), &json!([{"sku": "ORDER-1A", "quantity": 2}]))
        .refused(422, "idempotency_key_reused");

    let too_many = json!([{"sku": "ORDER-1B", "quantity": 1}, {"sku": "ORDER-1A", "quantity": 2}, {"sku": "ORDER-1A", "quantity": 1}]);
    let refused = give_back(&server, "order-1", Some("rma-2"), &too_many).refused(409, "return_exceeds_order");
    assert_eq!(refused, json!({"sku": "ORDER-1A"}));
    assert_eq!(server.counters("ORDER-1B"), (4, 0, 1), "all or nothing");
    let foreign = give_back(&server, "order-1", None, &json!([{"sku": "ORDER-1Z", "quantity": 1}]));
    foreign.refused(409, "return_exceeds_order");

    let rest = json!([{"sku": "ORDER-1A", "quantity": 2}, {"sku": "ORDER-1B", "quantity": 1}]);
    let order = give_back(&server, "order-1", Some("rma-2"), &rest).is(200);
    assert_eq!(order["status"], "returned");
    assert_eq!(server.get("/v1/orders/order-1").is(200), order);
    assert_eq!(give_back(&server, "order-1", Some("rma-1"), &one).is(200), order, "a replay tells the state as of now");
    give_back(&server, "order-1", None, &one).refused(409, "return_exceeds_order");
    assert_eq!((server.counters("ORDER-1A"), server.counters("ORDER-1B")), ((5, 0, 0), (5, 0, 0)));
    server.post("/v1/holds", &cart("order-1", "ORDER-1A", 1)).refused(409, "already_confirmed");
}

#[test]
fn returned_units_no_longer_count_towards_the_limit() {
    let server = shared();
    server.put("/v1/stock/ORDER-2", &json!({"total": 5, "limit_per_customer": 1})).is(201);
    bought(&server, "order-2", &json!([{"sku": "ORDER-2", "quantity": 1}]));
    let next = with(cart("order-2-next", "ORDER-2", 1), "customer_id", "c");
    server.post("/v1/holds", &next).refused(409, "customer_limit");
    give_back(&server, "order-2", None, &json!([{"sku": "ORDER-2", "quantity": 1}])).is(200);
    server.hold(&next);
}

#[test]
fn keys_of_returns_and_adjustments_share_one_namespace() {
    let server = shared();
    server.stock("ORDER-3", 5);
    bought(&server, "order-3", &json!([{"sku": "ORDER-3", "quantity": 1}]));
    let adjust =
        Call::new("POST", "/v1/stock/ORDER-3/adjust").header("idempotency-key", "order-3").json(&json!({"delta": 1}));
    adjust.to(&server).is(200);
    let one = json!([{"sku": "ORDER-3", "quantity": 1}]);
    give_back(&server, "order-3", Some("order-3"), &one).refused(422, "idempotency_key_reused");
    assert_eq!(server.counters("ORDER-3"), (5, 0, 1));
}

#[test]
fn what_is_no_order_or_no_return() {
    let server = shared();
    server.stock("ORDER-4", 5);
    server.hold(&cart("order-4-held", "ORDER-4", 1));
    for id in ["order-4-none", "order-4-held", "%20", "a%0Ab", &"x".repeat(256)] {
        server.get(&format!("/v1/orders/{id}")).refused(404, "not_found");
        let body = json!({"items": [{"sku": "ORDER-4", "quantity": 1}]});
        server.post(&format!("/v1/orders/{id}/returns"), &body).refused(404, "not_found");
    }
    bought(&server, "order-4", &json!([{"sku": "ORDER-4", "quantity": 2}]));
    let give = |body: Value| server.post("/v1/orders/order-4/returns", &body);
    give(json!({})).invalid(&["/items"]);
    give(json!({"items": []})).invalid(&["/items"]);
    give(json!({"items": null})).invalid(&["/items"]);
    give(json!({"items": [{"sku": "ORDER-4", "quantity": 0}]})).invalid(&["/items/0/quantity"]);
    give(json!({"items": [{"sku": "ORDER-4", "quantity": 1, "why": "x"}]})).invalid(&["/items/0/why"]);
    give(json!({"items": [{"sku": "ORDER-4", "quantity": 1}], "reason": "x"})).invalid(&["/reason"]);
    let key = Call::new("POST", "/v1/orders/order-4/returns").header("idempotency-key", "").json(&json!({"items": []}));
    key.to(&server).refused(422, "invalid_request");
    server.get("/v1/orders").refused(404, "not_found");
    server.get("/v1/orders/order-4/returns").refused(405, "method_not_allowed");
    assert_eq!(server.counters("ORDER-4"), (2, 1, 2));
}
