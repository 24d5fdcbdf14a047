//! `POST /v1/holds` and the reads: `GET /v1/holds/{id}`, `GET /v1/holds`.

use crate::support::{Server, brief_cart, cart, encoded, eventually, millis, shared, with, without};
use serde_json::{Value, json};
use std::time::Duration;

const FRESH: [&str; 3] = ["id", "created_at", "expires_at"];

#[test]
fn a_hold_is_made_with_everything_and_read_again() {
    let server = shared();
    server.stock("HOLD-1A", 10);
    server.stock("HOLD-1B", 10);
    let body = json!({"order_id": "hold-1", "ttl_seconds": 600, "customer_id": "cus_9", "amount": 15000, "currency": "usd",
        "items": [{"sku": "HOLD-1B", "quantity": 1}, {"sku": "HOLD-1A", "quantity": 2}, {"sku": "HOLD-1B", "quantity": 3}],
        "payment_ref": "stripe:pi_3N", "metadata": {"cart": "c_77", "a": "ü"}});
    let answer = server.post("/v1/holds", &body);
    let hold = answer.is(201);
    let id = hold["id"].as_str().unwrap();
    assert_eq!(answer.header("location"), Some(&*format!("/v1/holds/{id}")));
    assert_eq!((id.len(), &id[14..15]), (36, "7"), "{id} is a UUIDv7");
    assert_eq!(millis(&hold["expires_at"]) - millis(&hold["created_at"]), 600_000);
    let expected = json!({"order_id": "hold-1", "status": "held", "customer_id": "cus_9", "amount": 15000, "currency": "USD",
        "items": [{"sku": "HOLD-1A", "quantity": 2}, {"sku": "HOLD-1B", "quantity": 4}],
        "metadata": {"cart": "c_77", "a": "ü"}, "late": false});
    assert_eq!(without(hold.clone(), &FRESH), expected, "lines are summed and sorted");
    assert_eq!(server.get(&format!("/v1/holds/{id}")).is(200), hold);
    assert_eq!(server.get(&format!("/v1/holds/{}", id.to_uppercase())).is(200), hold);
    assert_eq!((server.counters("HOLD-1A"), server.counters("HOLD-1B")), ((8, 2, 0), (6, 4, 0)));
}

#[test]
fn what_is_not_told_is_null_and_the_ttl_is_the_default() {
    let server = shared();
    server.stock("HOLD-2", 10);
    let hold = server.post("/v1/holds", &cart("hold-2", "HOLD-2", 1)).is(201);
    assert_eq!(millis(&hold["expires_at"]) - millis(&hold["created_at"]), 600_000);
    for name in ["customer_id", "amount", "currency", "metadata"] {
        assert_eq!(hold.get(name), Some(&Value::Null), "{name} in {hold}");
    }
}

#[test]
fn the_same_cart_again_is_the_same_hold() {
    let server = shared();
    server.stock("HOLD-3A", 10);
    server.stock("HOLD-3B", 10);
    let items = json!([{"sku": "HOLD-3A", "quantity": 2}, {"sku": "HOLD-3B", "quantity": 1}]);
    let body = json!({"order_id": "hold-3", "items": items, "customer_id": "c", "amount": 5, "currency": "EUR"});
    let first = server.post("/v1/holds", &body).is(201);
    let again = json!({"order_id": "hold-3", "customer_id": "c", "amount": 5, "currency": "eUr", "ttl_seconds": 9,
        "items": [{"sku": "HOLD-3B", "quantity": 1}, {"sku": "HOLD-3A", "quantity": 1}, {"sku": "HOLD-3A", "quantity": 1}],
        "payment_ref": "other", "metadata": {"other": "yes"}});
    let replay = server.post("/v1/holds", &again);
    assert_eq!(replay.is(200), first, "the deadline stays, and so does everything else");
    assert!(replay.header("location").is_some());
    let other_carts = [
        with(body.clone(), "customer_id", "d"),
        with(body.clone(), "amount", 6),
        with(body.clone(), "currency", "USD"),
        with(body.clone(), "items", json!([{"sku": "HOLD-3A", "quantity": 2}])),
        cart("hold-3", "HOLD-3A", 2),
        cart("hold-3", "HOLD-3-UNKNOWN", 1),
    ];
    for other in other_carts {
        assert_eq!(server.post("/v1/holds", &other).refused(409, "order_conflict"), json!({}), "{other}");
    }
    assert_eq!(server.counters("HOLD-3A"), (8, 2, 0), "held once");
    let id = first["id"].as_str().unwrap();
    server.touch(&format!("/v1/holds/{id}/release")).is(200);
    let anew = server.post("/v1/holds", &cart("hold-3", "HOLD-3A", 1)).is(201);
    assert_ne!(anew["id"], first["id"], "after a release the order may take a new hold");
    server.touch(&format!("/v1/holds/{}/confirm", anew["id"].as_str().unwrap())).is(200);
    server.post("/v1/holds", &cart("hold-3", "HOLD-3A", 1)).refused(409, "already_confirmed");
    server.post("/v1/holds", &cart("hold-3", "HOLD-3-UNKNOWN", 1)).refused(409, "already_confirmed");
}

#[test]
fn what_cannot_be_held_holds_nothing() {
    let server = shared();
    server.stock("HOLD-4A", 5);
    server.stock("HOLD-4B", 1);
    let two = |a: u64, b: u64| json!({"order_id": "hold-4", "items": [{"sku": "HOLD-4A", "quantity": a}, {"sku": "HOLD-4B", "quantity": b}]});
    let unknown = json!({"order_id": "hold-4", "items": [{"sku": "HOLD-4Z", "quantity": 1}, {"sku": "HOLD-4A", "quantity": 9}, {"sku": "HOLD-4Y", "quantity": 1}]});
    let refused = server.post("/v1/holds", &unknown).refused(422, "unknown_sku");
    assert_eq!(refused, json!({"skus": ["HOLD-4Y", "HOLD-4Z"]}));
    let short = server.post("/v1/holds", &two(2, 2)).refused(409, "sold_out");
    assert_eq!(short, json!({"items": [{"sku": "HOLD-4B", "requested": 2, "available": 1}], "may_return": false}));
    server.hold(&cart("hold-4-other", "HOLD-4B", 1));
    let short = server.post("/v1/holds", &two(2, 1)).refused(409, "sold_out");
    assert_eq!(short, json!({"items": [{"sku": "HOLD-4B", "requested": 1, "available": 0}], "may_return": true}));
    let short = server.post("/v1/holds", &two(6, 3)).refused(409, "sold_out");
    let both =
        json!([{"sku": "HOLD-4A", "requested": 6, "available": 5}, {"sku": "HOLD-4B", "requested": 3, "available": 0}]);
    assert_eq!(short, json!({"items": both, "may_return": false}), "of HOLD-4A nobody holds any");
    assert_eq!((server.counters("HOLD-4A"), server.counters("HOLD-4B")), ((5, 0, 0), (0, 1, 0)), "nothing was held");
    server.put("/v1/stock/HOLD-4B", &json!({"total": 2})).is(200);
    server.post("/v1/holds", &two(2, 1)).is(201);
}

#[test]
fn a_limit_per_customer_is_kept() {
    let server = shared();
    for sku in ["HOLD-5A", "HOLD-5B"] {
        server.put(&format!("/v1/stock/{sku}"), &json!({"total": 10, "limit_per_customer": 2})).is(201);
    }
    let both =
        json!({"order_id": "hold-5", "items": [{"sku": "HOLD-5B", "quantity": 1}, {"sku": "HOLD-5A", "quantity": 1}]});
    let refused = server.post("/v1/holds", &both).refused(422, "customer_required");
    assert_eq!(refused, json!({"skus": ["HOLD-5A", "HOLD-5B"]}));
    let by = |order: &str, units: u64| with(cart(order, "HOLD-5A", units), "customer_id", "c-5");
    let limit =
        |has: u64, asked: u64| json!({"sku": "HOLD-5A", "limit_per_customer": 2, "has": has, "requested": asked});
    assert_eq!(server.post("/v1/holds", &by("hold-5a", 3)).refused(409, "customer_limit"), limit(0, 3));
    let first = server.hold(&by("hold-5a", 1));
    server.touch(&format!("{first}/confirm")).is(200);
    let second = server.hold(&by("hold-5b", 1));
    assert_eq!(server.post("/v1/holds", &by("hold-5c", 1)).refused(409, "customer_limit"), limit(2, 1));
    server.hold(&with(cart("hold-5d", "HOLD-5A", 2), "customer_id", "C-5"));
    server.touch(&format!("{second}/release")).is(200);
    server.hold(&by("hold-5c", 1));
    assert_eq!(server.counters("HOLD-5A"), (6, 3, 1));
}

#[test]
fn a_lapsed_hold_frees_its_units_and_its_order_at_once() {
    let server = shared();
    // A machine that is busy with something else may look late once, but not again and again.
    let at_once = (0..3).any(|round| lateness(&server, round) < 400);
    assert!(at_once, "sold late, as if waiting for the sweep");
}

/// How long after the deadline the units of a hold were sold to the next.
fn lateness(server: &Server, round: u32) -> u64 {
    let (sku, order, rival) = (format!("HOLD-6-{round}"), format!("hold-6-{round}"), format!("hold-6-{round}-next"));
    server.stock(&sku, 2);
    let made = server.post("/v1/holds", &brief_cart(&order, &sku, 2, 1)).is(201);
    assert_eq!(millis(&made["expires_at"]) - millis(&made["created_at"]), 1000);
    server.post("/v1/holds", &cart(&rival, &sku, 1)).refused(409, "sold_out");
    // The first request that succeeds is the proof: nothing waits for a sweep.
    let next = eventually("the units are sellable", Duration::from_secs(5), || {
        let answer = server.post("/v1/holds", &cart(&rival, &sku, 1));
        (answer.status == 201).then(|| answer.json())
    });
    assert!(millis(&next["created_at"]) >= millis(&made["expires_at"]), "never early");
    assert_eq!(server.get(&format!("/v1/holds/{}", made["id"].as_str().unwrap())).is(200)["status"], "expired");
    assert_eq!(server.counters(&sku), (1, 1, 0));
    server.post("/v1/holds", &cart(&order, &sku, 2)).refused(409, "sold_out");
    let again = server.post("/v1/holds", &cart(&order, &sku, 1)).is(201);
    assert_ne!(again["id"], made["id"]);
    millis(&next["created_at"]) - millis(&made["expires_at"])
}

#[test]
fn reading_what_is_not_there() {
    let server = shared();
    for id in [
        "0198c7f2-0000-7000-8000-000000000000",
        "1",
        "not-a-uuid",
        "0198c7f2000070008000000000000000",
        "%00",
        "..%2Fstock",
    ] {
        server.get(&format!("/v1/holds/{id}")).refused(404, "not_found");
        for verb in ["release", "confirm"] {
            server.touch(&format!("/v1/holds/{id}/{verb}")).refused(404, "not_found");
        }
        server.post(&format!("/v1/holds/{id}/extend"), &json!({"ttl_seconds": 1})).refused(404, "not_found");
        server.patch(&format!("/v1/holds/{id}"), &json!({"amount": 1})).refused(404, "not_found");
    }
    server.get("/v1/holds/%FF").refused(422, "invalid_request");
}

#[test]
fn lists_are_filtered_and_paged() {
    let server = Server::fresh();
    server.stock("A", 100);
    server.stock("B", 100);
    let mut ids = Vec::new();
    for n in 0..12 {
        let mut body = cart(&format!("o-{n}"), "A", 1);
        body["items"].as_array_mut().unwrap().push(json!({"sku": if n % 3 == 0 { "B" } else { "A" }, "quantity": 2}));
        ids.push(server.hold(&body));
    }
    server.touch(&format!("{}/release", ids[1])).is(200);
    server.touch(&format!("{}/confirm", ids[3])).is(200);
    let brief = server.hold(&brief_cart("o-brief", "A", 1, 1));
    let list = |query: &str| -> Vec<String> {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/v1/holds?{query}{after}")).is(200);
            let path = |h: &Value| format!("/v1/holds/{}", h["id"].as_str().unwrap());
            seen.extend(page["items"].as_array().unwrap().iter().map(path));
            let Some(next) = page["next"].as_str() else { return seen };
            after = format!("&after={}", encoded(next));
        }
    };
    let third: Vec<String> = ids.iter().step_by(3).cloned().collect();
    let all: Vec<String> = ids.iter().chain([&brief]).cloned().collect();
    for limit in ["limit=1", "limit=5", "limit=1000"] {
        assert_eq!(list(limit), all, "in the order in which they were made");
        assert_eq!(list(&format!("sku=B&{limit}")), third, "a cart with two lines is listed once");
        assert_eq!(list(&format!("order_id=o-4&{limit}")), [ids[4].clone()]);
        assert_eq!(list(&format!("order_id=o-3&sku=B&status=confirmed&{limit}")), [ids[3].clone()]);
        assert_eq!(list(&format!("status=released&{limit}")), [ids[1].clone()]);
        assert_eq!(list(&format!("sku=b&{limit}")), [""; 0]);
    }
    eventually("the brief hold reads expired", Duration::from_secs(5), || {
        (list("status=expired") == [brief.clone()]).then_some(())
    });
    assert_eq!(list("status=held&sku=A").len(), 10);
    assert_eq!(list("status=held").len(), 10);
    for bad in [
        "status=",
        "status=HELD",
        "status=paid",
        "limit=0",
        "limit=1001",
        "after=x",
        "after=-1",
        "order=o-1",
        "sku=",
        "order_id=%20a",
        "sku=A&sku=B",
    ] {
        server.get(&format!("/v1/holds?{bad}")).refused(422, "invalid_request");
    }
}
