//! `POST /v1/holds/{id}/confirm`, in time and late.

use super::hold_verbs::lapse;
use crate::support::{brief_cart, cart, millis, shared, with, without};
use serde_json::{Value, json};

#[test]
fn a_confirmation_makes_an_order_once() {
    let server = shared();
    server.stock("VERB-5", 5);
    let hold = server.hold(&cart("verb-5", "VERB-5", 2));
    let confirm = |body: &Value| server.post(&format!("{hold}/confirm"), body);
    confirm(&json!({"payment": "x"})).invalid(&["/payment"]);
    confirm(&json!({"payment_ref": 1})).invalid(&["/payment_ref"]);
    confirm(&json!({"payment_ref": ""})).invalid(&["/payment_ref"]);
    let order = confirm(&json!({"payment_ref": "stripe:pi_5"})).is(200);
    let id = hold.rsplit('/').next().unwrap();
    let expected = json!({"order_id": "verb-5", "hold_id": id, "status": "confirmed", "late": false, "payment": null,
        "items": [{"sku": "VERB-5", "quantity": 2, "returned": 0}]});
    millis(&order["confirmed_at"]);
    assert_eq!(without(order.clone(), &["confirmed_at"]), expected);
    assert_eq!(server.touch(&format!("{hold}/confirm")).is(200), order, "the same order again");
    assert_eq!(confirm(&json!({})).is(200), order);
    assert_eq!(server.get("/v1/orders/verb-5").is(200), order);
    assert_eq!(server.get(&hold).is(200)["status"], "confirmed");
    assert_eq!(server.counters("VERB-5"), (3, 0, 2));
    server.touch(&format!("{hold}/release")).refused(409, "already_confirmed");
    server.patch(&hold, &json!({"amount": 1})).refused(409, "already_confirmed");
    server.post(&format!("{hold}/extend"), &json!({"ttl_seconds": 9})).refused(409, "already_confirmed");
}

#[test]
fn a_late_confirmation_takes_the_units_again() {
    let server = shared();
    server.stock("VERB-6A", 2);
    server.stock("VERB-6B", 2);
    let mut body = brief_cart("verb-6", "VERB-6A", 2, 1);
    body["items"].as_array_mut().unwrap().push(json!({"sku": "VERB-6B", "quantity": 2}));
    let lapsed = server.hold(&body);
    lapse(&server, &lapsed);
    let thief = server.hold(&cart("verb-6-thief", "VERB-6B", 1));
    let gone = server.touch(&format!("{lapsed}/confirm")).refused(409, "stock_gone");
    assert_eq!(gone, json!({"items": [{"sku": "VERB-6B", "requested": 2, "available": 1}]}));
    assert_eq!(server.counters("VERB-6A"), (2, 0, 0), "all or nothing");
    server.touch(&format!("{thief}/release")).is(200);
    let order = server.touch(&format!("{lapsed}/confirm")).is(200);
    assert_eq!((&order["late"], &order["status"]), (&json!(true), &json!("confirmed")));
    let hold = server.get(&lapsed).is(200);
    assert_eq!((&hold["late"], &hold["status"]), (&json!(true), &json!("confirmed")));
    assert_eq!((server.counters("VERB-6A"), server.counters("VERB-6B")), ((0, 0, 2), (0, 0, 2)));
    assert_eq!(server.touch(&format!("{lapsed}/confirm")).is(200), order);
}

#[test]
fn a_late_confirmation_ends_a_newer_hold_of_the_order_and_keeps_the_limit() {
    let server = shared();
    server.put("/v1/stock/VERB-7", &json!({"total": 9, "limit_per_customer": 2})).is(201);
    let by = |order: &str, units: u64| with(cart(order, "VERB-7", units), "customer_id", "c-7");
    let first = server.hold(&by("verb-7", 2));
    server.touch(&format!("{first}/release")).is(200);
    let second = server.hold(&by("verb-7", 1));
    assert_eq!(server.touch(&format!("{first}/confirm")).is(200)["late"], true, "a released hold can be paid as well");
    assert_eq!(server.get(&second).is(200)["status"], "released");
    assert_eq!(server.counters("VERB-7"), (7, 0, 2));
    server.touch(&format!("{second}/confirm")).refused(409, "already_confirmed");

    server.put("/v1/stock/VERB-7", &json!({"total": 9, "limit_per_customer": 4})).is(200);
    let third = server.hold(&by("verb-7-third", 2));
    server.touch(&format!("{third}/release")).is(200);
    server.hold(&by("verb-7-fourth", 1));
    assert_eq!(server.touch(&format!("{third}/confirm")).refused(409, "stock_gone"), json!({"items": []}));
    assert_eq!(server.counters("VERB-7"), (6, 1, 2));
}
