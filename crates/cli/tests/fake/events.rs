//! Webhooks: shape, signature, order, and everything that may happen to them on the way.

use crate::receiver::Endpoint;
use crate::rig::{Provider, rule};
use serde_json::{Value, json};

const SECRET: &str = "whsec_fake_1";

fn pair() -> (Provider, Endpoint) {
    let endpoint = Endpoint::open();
    let provider = Provider::with(&["--webhook-url", &endpoint.url, "--webhook-secret", SECRET]);
    (provider, endpoint)
}

#[test]
fn an_event_has_the_shape_and_the_signature() {
    let (provider, endpoint) = pair();
    let form = "amount=1000&currency=eur&payment_method=pm_card_visa&confirm=true&metadata[hold_id]=h_1";
    let answer = provider.keyed("my-key", "/v1/payment_intents", form);
    let arrived = endpoint.take(3);
    let kinds: Vec<&str> = arrived.iter().map(super::receiver::Arrived::kind).collect();
    assert_eq!(kinds, ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"]);
    for arrived in &arrived {
        assert_eq!(arrived.signatures.len(), 1);
        assert!(arrived.is_signed_with(SECRET) && !arrived.is_signed_with("whsec_fake_2"));
        assert!((arrived.second - arrived.event["created"].as_i64().unwrap()).abs() < 60);
    }
    let mut event = arrived[2].event.clone();
    assert!(arrived[2].id().starts_with("evt_"));
    assert_eq!(event["request"], json!({"id": answer.header("request-id"), "idempotency_key": "my-key"}));
    assert_eq!(event["data"]["object"], answer.json(), "the object as it was answered");
    for name in ["id", "created", "request", "data"] {
        event.as_object_mut().unwrap().remove(name);
    }
    let rest = json!({"object": "event", "api_version": "2026-10-28.endive", "livemode": false,
        "pending_webhooks": 1, "type": "payment_intent.succeeded"});
    assert_eq!(event, rest);
    provider.settled();
    assert!(endpoint.is_empty(), "what was answered 200 does not come again");
}

#[test]
fn an_event_comes_again_until_it_is_taken() {
    let (provider, endpoint) = pair();
    endpoint.answers(&[503, 302, 400]);
    provider.post("/v1/payment_intents", "amount=1&currency=eur").is(200);
    let arrived = endpoint.take(4);
    assert!(arrived.iter().all(|one| one.event == arrived[0].event && one.is_signed_with(SECRET)));
    provider.settled();
    assert!(endpoint.is_empty());
    let listed = &provider.events()[0];
    assert_eq!((&listed["answers"], &listed["delivery"]), (&json!([503, 302, 400, 200]), &"delivered".into()));
}

#[test]
fn an_event_is_given_up_in_the_end_and_can_be_sent_by_hand() {
    let (provider, endpoint) = pair();
    provider.control("webhooks", &json!({"attempts": 2}));
    endpoint.answers(&[500, 500]);
    provider.post("/v1/payment_intents", "amount=1&currency=eur").is(200);
    let first = endpoint.take(2)[0].id().to_owned();
    provider.settled();
    assert_eq!(provider.events()[0]["delivery"], "given_up");
    provider.control("webhooks/resend", &json!({"event": first}));
    assert_eq!(endpoint.next().id(), first);
}

#[test]
fn secrets_rotate() {
    let (provider, endpoint) = pair();
    provider.control("webhooks", &json!({"secrets": [SECRET, "whsec_fake_2"]}));
    provider.post("/v1/payment_intents", "amount=1&currency=eur").is(200);
    let both = endpoint.next();
    assert!(both.signatures.len() == 2 && both.is_signed_with(SECRET) && both.is_signed_with("whsec_fake_2"));
    provider.control("webhooks", &json!({"secrets": ["whsec_fake_2"]}));
    provider.post("/v1/payment_intents", "amount=1&currency=eur").is(200);
    let new = endpoint.next();
    assert!(!new.is_signed_with(SECRET) && new.is_signed_with("whsec_fake_2"));
}

#[test]
fn an_event_comes_twice_at_once_or_as_two() {
    let (provider, endpoint) = pair();
    let pay = || provider.post("/v1/payment_intents", "amount=1&currency=eur").is(200);
    provider.script(&rule("webhook", "double"));
    pay();
    let twice = endpoint.take(2);
    assert_eq!(twice[0].event, twice[1].event);
    provider.script(&rule("webhook", "two_events"));
    pay();
    let two = endpoint.take(2);
    assert_ne!(two[0].id(), two[1].id());
    assert_eq!(two[0].event["data"], two[1].event["data"]);
    provider.settled();
    assert!(endpoint.is_empty());
}

#[test]
fn events_are_overtaken_and_late() {
    let (provider, endpoint) = pair();
    provider.script(&json!([
        {"on": "webhook", "do": {"overtaken": {"ms": 20_000}}, "type": "charge.succeeded"},
    ]));
    provider.paid();
    assert_eq!(endpoint.kinds(3), ["payment_intent.created", "payment_intent.succeeded", "charge.succeeded"]);
    provider.script(&rule("webhook", json!({"overtaken": {"ms": 30}})));
    provider.post("/v1/payment_intents", "amount=1&currency=eur").is(200);
    assert_eq!(endpoint.next().kind(), "payment_intent.created", "with nothing to overtake it, it comes all the same");
    provider.script(&rule("webhook", json!({"delay": {"ms": 30}})));
    provider.post("/v1/payment_intents", "amount=1&currency=eur").is(200);
    assert_eq!(endpoint.next().kind(), "payment_intent.created");
}

#[test]
fn events_are_held_back_and_released_in_either_order() {
    let (provider, endpoint) = pair();
    provider.control("webhooks", &json!({"hold": true}));
    let (intent, _) = provider.paid();
    provider.post("/v1/refunds", &format!("payment_intent={intent}")).is(200);
    assert_eq!(provider.books()["undelivered_events"], 5);
    assert!(provider.events().iter().all(|event| event["delivery"] == "held"));
    provider.control("webhooks", &json!({"hold": false}));
    assert_eq!(provider.control("webhooks/release", &json!({"reversed": true})), json!({"released": 5}));
    let mut forward = provider.told();
    forward.reverse();
    assert_eq!(endpoint.kinds(5), forward);
    provider.script(&json!([{"on": "webhook", "do": "hold", "times": 1, "type": "payment_intent.succeeded"}]));
    provider.paid();
    assert_eq!(endpoint.kinds(2), ["payment_intent.created", "charge.succeeded"]);
    provider.control("webhooks/release", &json!({}));
    assert_eq!(endpoint.kinds(1), ["payment_intent.succeeded"]);
}

#[test]
fn an_endpoint_that_is_away_gets_its_events_when_it_is_back() {
    let (provider, endpoint) = pair();
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    provider.control("webhooks", &json!({"url": format!("http://{nowhere}/hook")}));
    provider.post("/v1/payment_intents", "amount=1&currency=eur").is(200);
    crate::support::eventually("an attempt was made", crate::rig::PATIENCE, || {
        let answers = provider.events()[0]["answers"].clone();
        (answers != json!([])).then(|| assert_eq!(answers[0], 0))
    });
    provider.control("webhooks", &json!({"url": endpoint.url}));
    assert_eq!(endpoint.next().kind(), "payment_intent.created");
}

#[test]
fn without_an_endpoint_events_are_only_listed() {
    let provider = Provider::start();
    provider.paid();
    let events = provider.events();
    assert!(events.iter().all(|event| event["delivery"] == "given_up" && event["answers"] == json!([])));
    assert_eq!(events[0]["event"]["pending_webhooks"], Value::from(0));
}
