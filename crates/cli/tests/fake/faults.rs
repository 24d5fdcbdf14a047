//! Calls that go wrong on demand.

use crate::rig::{PATIENCE, Provider, refused, rule};
use crate::support::{Call, eventually};
use serde_json::json;

#[test]
fn an_answer_is_lost_after_the_effect_or_before_it() {
    let provider = Provider::start();
    let (intent, charge) = provider.paid();
    let form = format!("payment_intent={intent}");
    provider.script(&json!([{"on": "refund", "do": "lost_before"}, {"on": "refund", "do": "lost_after", "times": 2}]));
    assert!(provider.try_keyed("k", "/v1/refunds", &form).is_none());
    assert_eq!(provider.charge(&charge)["amount_refunded"], 0);
    assert!(provider.try_keyed("k", "/v1/refunds", &form).is_none());
    assert_eq!(provider.charge(&charge)["amount_refunded"], 1000, "done, and nobody was told");
    assert!(provider.try_keyed("k", "/v1/refunds", &form).is_none(), "a repeated answer is lost as well");
    let told = provider.try_keyed("k", "/v1/refunds", &form).unwrap();
    assert_eq!((told.status, told.header("idempotent-replayed")), (200, Some("true")));
    assert_eq!(provider.books()["refunds"].as_array().unwrap().len(), 1);
}

#[test]
fn too_many_calls_are_told_when_to_come_back_and_keep_no_key() {
    let provider = Provider::start();
    let (intent, _) = provider.authorized();
    let capture = format!("/v1/payment_intents/{intent}/capture");
    provider.script(&rule("capture", json!({"rate_limited": {"seconds": 3}})));
    let limited = provider.keyed("k", &capture, "");
    refused(&limited, 429, "rate_limit");
    assert_eq!(limited.header("retry-after"), Some("3"));
    assert_eq!(provider.keyed("k", &capture, "").header("idempotent-replayed"), None);
    assert_eq!(provider.intent(&intent)["status"], "succeeded");
}

#[test]
fn a_provider_that_is_down_answers_nobody_and_comes_back() {
    let provider = Provider::start();
    let (intent, _) = provider.authorized();
    let cancel = format!("/v1/payment_intents/{intent}/cancel");
    provider.script(&rule("cancel", json!({"down": {"seconds": 1}})));
    assert!(provider.try_keyed("k", &cancel, "").is_none());
    assert!(provider.try_keyed("other", "/v1/refunds", "payment_intent=pi_no").is_none(), "all of it is down");
    let answer = eventually("it comes back", PATIENCE, || provider.try_keyed("k", &cancel, ""));
    assert_eq!(answer.is(200)["status"], "canceled");
}

#[test]
fn a_script_refuses_for_good_and_declines() {
    let provider = Provider::start();
    let (paid, _) = provider.paid();
    let (authorized, _) = provider.authorized();
    provider.script(&json!([
        {"on": "refund", "do": {"refuse": {"code": "charge_disputed"}}},
        {"on": "capture", "do": {"refuse": {"code": "capture_charge_authorization_expired"}}},
        {"on": "create", "do": "decline"},
    ]));
    let form = format!("payment_intent={paid}");
    refused(&provider.keyed("r", "/v1/refunds", &form), 400, "charge_disputed");
    assert_eq!(provider.keyed("r", "/v1/refunds", &form).header("idempotent-replayed"), Some("true"));
    let capture = provider.post(&format!("/v1/payment_intents/{authorized}/capture"), "");
    refused(&capture, 400, "capture_charge_authorization_expired");
    let card = "amount=1&currency=eur&payment_method=pm_card_visa&confirm=true";
    refused(&provider.post("/v1/payment_intents", card), 402, "card_declined");
    provider.post("/v1/payment_intents", card).is(200);
}

#[test]
fn a_share_of_calls_goes_wrong() {
    let provider = Provider::start();
    provider.script(&json!([{"on": "create", "do": {"rate_limited": {"seconds": 1}}, "share": 0.5}]));
    let statuses: Vec<u16> =
        (0..60).map(|_| provider.post("/v1/payment_intents", "amount=1&currency=eur").status).collect();
    let limited = statuses.iter().filter(|status| **status == 429).count();
    assert!((10..50).contains(&limited), "{limited} of 60");
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
}

#[test]
fn a_script_that_makes_no_sense_is_refused() {
    let provider = Provider::start();
    let bad = Call::new("POST", "/_control/script").json(&rule("refund", "double"));
    let told = provider.call(&bad).is(400);
    assert!(told["error"]["message"].as_str().unwrap().contains("rule 1"), "{told}");
}

#[test]
fn everything_can_be_forgotten() {
    let provider = Provider::start();
    let (intent, _) = provider.paid();
    provider.call(&Call::new("DELETE", "/_control/data")).is(200);
    assert_eq!(
        provider.books(),
        json!({"payment_intents": [], "charges": [], "refunds": [], "sessions": [], "undelivered_events": 0})
    );
    refused(&provider.get(&format!("/v1/payment_intents/{intent}")), 404, "resource_missing");
}
