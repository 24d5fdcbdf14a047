//! Change, extend, release.

use crate::support::{Call, Server, brief_cart, cart, eventually, millis, shared, with, without};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

/// Waits until a hold of a second has lapsed.
pub fn lapse(server: &Server, hold: &str) {
    eventually("the hold lapses", Duration::from_secs(5), || {
        (server.get(hold).is(200)["status"] == "expired").then_some(())
    });
}

#[test]
fn a_change_takes_and_gives_only_the_difference() {
    let server = shared();
    server.stock("VERB-1A", 5);
    server.stock("VERB-1B", 5);
    let body = with(with(cart("verb-1", "VERB-1A", 4), "amount", 400), "currency", "EUR");
    let hold = server.hold(&body);
    let before = server.get(&hold).is(200);
    let items = json!([{"sku": "VERB-1B", "quantity": 2}, {"sku": "VERB-1A", "quantity": 5}]);
    let changed = server.patch(&hold, &json!({"items": items, "amount": 700})).is(200);
    let mut expected = before;
    expected["items"] = json!([{"sku": "VERB-1A", "quantity": 5}, {"sku": "VERB-1B", "quantity": 2}]);
    expected["amount"] = json!(700);
    assert_eq!(changed, expected, "id and deadline stay");
    assert_eq!(server.get(&hold).is(200), expected);
    assert_eq!((server.counters("VERB-1A"), server.counters("VERB-1B")), ((0, 5, 0), (3, 2, 0)));

    let too_many =
        json!({"items": [{"sku": "VERB-1A", "quantity": 6}, {"sku": "VERB-1B", "quantity": 1}], "amount": 1});
    let short = server.patch(&hold, &too_many).refused(409, "sold_out");
    assert_eq!(short["items"], json!([{"sku": "VERB-1A", "requested": 6, "available": 5}]));
    server.patch(&hold, &json!({"items": [{"sku": "VERB-1Z", "quantity": 1}]})).refused(422, "unknown_sku");
    assert_eq!(server.get(&hold).is(200), expected, "a change that fails moves nothing");
    assert_eq!((server.counters("VERB-1A"), server.counters("VERB-1B")), ((0, 5, 0), (3, 2, 0)));

    assert_eq!(server.patch(&hold, &json!({"payment_ref": "stripe:pi_1"})).is(200), expected);
    assert_eq!(server.patch(&hold, &json!({"amount": 0})).is(200)["amount"], 0);
    server.patch(&hold, &json!({"items": [{"sku": "VERB-1B", "quantity": 1}]})).is(200);
    assert_eq!((server.counters("VERB-1A"), server.counters("VERB-1B")), ((5, 0, 0), (4, 1, 0)));
    server.patch(&hold, &json!({})).refused(422, "invalid_request");
    server.patch(&hold, &json!({"items": []})).invalid(&["/items"]);
    server.patch(&hold, &json!({"ttl_seconds": 9})).invalid(&["/ttl_seconds"]);
    server.patch(&hold, &json!({"amount": -1})).invalid(&["/amount"]);
    server.patch(&hold, &json!({"payment_ref": ""})).invalid(&["/payment_ref"]);
    server.patch(&hold, &json!({"items": [{"sku": "VERB-1B", "quantity": 0}]})).invalid(&["/items/0/quantity"]);
}

#[test]
fn a_change_keeps_the_limit_per_customer() {
    let server = shared();
    server.stock("VERB-2", 10);
    let anonymous = server.hold(&cart("verb-2a", "VERB-2", 2));
    let named = server.hold(&with(cart("verb-2b", "VERB-2", 2), "customer_id", "c-2"));
    server.put("/v1/stock/VERB-2", &json!({"total": 10, "limit_per_customer": 3})).is(200);
    let to = |hold: &str, units: u64| server.patch(hold, &json!({"items": [{"sku": "VERB-2", "quantity": units}]}));
    assert_eq!(to(&anonymous, 3).refused(422, "customer_required"), json!({"skus": ["VERB-2"]}));
    to(&anonymous, 1).is(200);
    to(&named, 3).is(200);
    let refused = to(&named, 4).refused(409, "customer_limit");
    assert_eq!(refused, json!({"sku": "VERB-2", "limit_per_customer": 3, "has": 0, "requested": 4}));
}

#[test]
fn an_extension_moves_the_deadline_forward_only() {
    let folder = Arc::new(tempdir().unwrap());
    let server =
        Server::with(&folder, &["--max-hold-ttl", "100", "--max-hold-lifetime", "100", "--default-hold-ttl", "50"]);
    server.stock("A", 5);
    let hold = server.hold(&cart("o", "A", 1));
    let before = server.get(&hold).is(200);
    let extend = |ttl: u64| server.post(&format!("{hold}/extend"), &json!({"ttl_seconds": ttl}));
    assert_eq!(extend(10).is(200), before, "never back");
    let later = extend(90).is(200);
    assert!(millis(&later["expires_at"]) >= millis(&before["expires_at"]) + 40_000);
    assert_eq!(without(later.clone(), &["expires_at"]), without(before, &["expires_at"]));
    // By now a millisecond has passed since the hold was made.
    std::thread::sleep(Duration::from_millis(2));
    extend(100).refused(409, "extension_limit");
    assert_eq!(server.get(&hold).is(200), later, "a refused extension moves nothing");
    for bad in [
        json!({}),
        json!({"ttl_seconds": 0}),
        json!({"ttl_seconds": 101}),
        json!({"ttl_seconds": "9"}),
        json!({"ttl_seconds": null}),
        json!({"ttl_seconds": 1.0}),
    ] {
        server.post(&format!("{hold}/extend"), &bad).invalid(&["/ttl_seconds"]);
    }
    server.post(&format!("{hold}/extend"), &json!({"ttl": 1})).refused(422, "invalid_request");
    server.post("/v1/holds", &brief_cart("p", "A", 1, 101)).invalid(&["/ttl_seconds"]);
}

#[test]
fn a_release_gives_back_once() {
    let server = shared();
    server.stock("VERB-3", 5);
    let hold = server.hold(&cart("verb-3", "VERB-3", 3));
    let release = || server.touch(&format!("{hold}/release"));
    let released = release().is(200);
    assert_eq!(released["status"], "released");
    server.hold(&cart("verb-3-next", "VERB-3", 5));
    assert_eq!(release().is(200), released, "the same answer again");
    assert_eq!(server.post(&format!("{hold}/release"), &json!({})).is(200), released, "an empty object is fine");
    assert_eq!(server.counters("VERB-3"), (0, 5, 0), "and nothing moved");
    server.post(&format!("{hold}/release"), &json!({"why": "x"})).invalid(&["/why"]);
    server.patch(&hold, &json!({"amount": 1})).refused(410, "hold_expired");
    server.post(&format!("{hold}/extend"), &json!({"ttl_seconds": 9})).refused(410, "hold_expired");
}

#[test]
fn a_former_holder_touches_nothing_that_is_somebody_elses() {
    let server = shared();
    server.stock("VERB-4", 1);
    let lapsed = server.hold(&brief_cart("verb-4", "VERB-4", 1, 1));
    lapse(&server, &lapsed);
    let next = server.hold(&cart("verb-4-next", "VERB-4", 1));
    assert_eq!(server.touch(&format!("{lapsed}/release")).is(200)["status"], "expired");
    server.post(&format!("{lapsed}/extend"), &json!({"ttl_seconds": 9})).refused(410, "hold_expired");
    server.patch(&lapsed, &json!({"items": [{"sku": "VERB-4", "quantity": 1}]})).refused(410, "hold_expired");
    let gone = server.touch(&format!("{lapsed}/confirm")).refused(409, "stock_gone");
    assert_eq!(gone, json!({"items": [{"sku": "VERB-4", "requested": 1, "available": 0}]}));
    assert_eq!(server.get(&next).is(200)["status"], "held");
    assert_eq!(server.counters("VERB-4"), (0, 1, 0));
    server.get("/v1/orders/verb-4").refused(404, "not_found");
}

#[test]
fn the_verbs_take_posts_only() {
    let server = shared();
    server.stock("VERB-8", 1);
    let hold = server.hold(&cart("verb-8", "VERB-8", 1));
    for verb in ["extend", "release", "confirm"] {
        Call::new("GET", &format!("{hold}/{verb}")).to(&server).refused(405, "method_not_allowed");
    }
    server.touch(&format!("{hold}/cancel")).refused(404, "not_found");
    server.touch(&format!("{hold}/release/")).refused(404, "not_found");
    server.delete(&hold).refused(405, "method_not_allowed");
}
