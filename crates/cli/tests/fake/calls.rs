//! PaymentIntents, strictly.

use crate::rig::{Provider, refused};
use crate::support::Call;

#[test]
fn a_key_and_a_form_are_asked_for() {
    let provider = Provider::start();
    for call in [
        Call::new("GET", "/v1/payment_intents/pi_1"),
        Call::new("GET", "/v1/payment_intents/pi_1").key("pk_test_1"),
        Call::new("GET", "/v1/payment_intents/pi_1").key("sk_"),
    ] {
        refused(&provider.call(&call), 401, None::<&str>);
    }
    let restricted = Call::new("GET", "/v1/payment_intents/pi_1").key("rk_test_1");
    refused(&provider.call(&restricted), 404, "resource_missing");
    let json = Call::new("POST", "/v1/payment_intents").key("sk_1").raw("application/json", "{}");
    refused(&provider.call(&json), 400, None::<&str>);
    refused(&provider.get("/v1/customers"), 404, None::<&str>);
}

#[test]
fn what_is_unknown_missing_or_out_of_range_is_refused() {
    let provider = Provider::start();
    let create = |form: &str| provider.post("/v1/payment_intents", form);
    for (form, code, param) in [
        ("amount=1000&currency=eur&amout=1", "parameter_unknown", "amout"),
        ("amount=1000&currency=eur&confirm=true", "parameter_missing", "payment_method"),
        ("currency=eur", "parameter_missing", "amount"),
        ("amount=1000", "parameter_missing", "currency"),
        ("amount=0&currency=eur", "parameter_invalid_integer", "amount"),
        ("amount=ten&currency=eur", "parameter_invalid_integer", "amount"),
        ("amount=100000000&currency=eur", "parameter_invalid_integer", "amount"),
    ] {
        assert_eq!(refused(&create(form), 400, code)["param"], param, "{form}");
    }
    refused(&create("amount=1&currency=euro"), 400, None::<&str>);
    refused(&create("amount=1&currency=eur&capture_method=later"), 400, None::<&str>);
    refused(&create("amount=1&currency=eur&payment_method=pm_card_unheard_of"), 404, "resource_missing");
    for path in ["/v1/payment_intents/pi_no", "/v1/refunds/re_no", "/v1/checkout/sessions/cs_no"] {
        refused(&provider.get(path), 404, "resource_missing");
    }
    let (intent, _) = provider.paid();
    refused(&provider.get(&format!("/v1/payment_intents/{intent}?expand[]=customer")), 400, None::<&str>);
    assert_eq!(provider.books()["payment_intents"].as_array().unwrap().len(), 1, "refusals leave nothing behind");
}

#[test]
fn an_intent_is_confirmed_and_its_charge_has_what_it_had() {
    let provider = Provider::start();
    let form = "amount=1000&currency=EUR&receipt_email=a@example.com&metadata[order_id]=A-1&metadata[hold_id]=h";
    let made = provider.post("/v1/payment_intents", form).is(200);
    assert_eq!((&made["status"], &made["currency"]), (&"requires_payment_method".into(), &"eur".into()));
    assert_eq!(made["latest_charge"], serde_json::Value::Null);
    let path = format!("/v1/payment_intents/{}", made["id"].as_str().unwrap());
    refused(&provider.post(&format!("{path}/confirm"), ""), 400, "payment_intent_unexpected_state");
    let paid = provider.post(&format!("{path}/confirm"), "payment_method=pm_card_visa").is(200);
    assert_eq!((&paid["status"], &paid["amount_received"]), (&"succeeded".into(), &1000.into()));
    let expanded = provider.get(&format!("{path}?expand[]=latest_charge")).is(200);
    let charge = &expanded["latest_charge"];
    assert_eq!(charge["id"], paid["latest_charge"]);
    assert_eq!((&charge["captured"], &charge["amount_captured"]), (&true.into(), &1000.into()));
    assert_eq!((&charge["metadata"], &charge["receipt_email"]), (&made["metadata"], &made["receipt_email"]));
    assert_eq!(provider.told(), ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"]);
    let again = provider.post(&format!("{path}/confirm"), "payment_method=pm_card_visa");
    refused(&again, 400, "payment_intent_unexpected_state");
}

#[test]
fn a_declined_card_may_be_followed_by_a_good_one() {
    let provider = Provider::start();
    let form = "amount=1000&currency=eur&payment_method=pm_card_chargeDeclined";
    let made = provider.post("/v1/payment_intents", form).is(200);
    assert_eq!(made["status"], "requires_confirmation");
    let path = format!("/v1/payment_intents/{}", made["id"].as_str().unwrap());
    let error = refused(&provider.post(&format!("{path}/confirm"), ""), 402, "card_declined");
    assert_eq!((&error["type"], &error["decline_code"]), (&"card_error".into(), &"generic_decline".into()));
    assert_eq!(error["payment_intent"]["status"], "requires_payment_method");
    assert_eq!(error["payment_intent"]["last_payment_error"]["code"], "card_declined");
    assert_eq!(provider.told()[1..], ["charge.failed", "payment_intent.payment_failed"]);
    let paid = provider.post(&format!("{path}/confirm"), "payment_method=pm_card_visa").is(200);
    assert_eq!((&paid["status"], &paid["last_payment_error"]), (&"succeeded".into(), &serde_json::Value::Null));
}

#[test]
fn an_authorisation_is_captured_once() {
    let provider = Provider::start();
    let (intent, charge) = provider.authorized();
    let path = format!("/v1/payment_intents/{intent}");
    let before = provider.intent(&intent);
    assert_eq!((&before["status"], &before["amount_capturable"]), (&"requires_capture".into(), &1000.into()));
    let none = refused(&provider.post("/v1/refunds", &format!("payment_intent={intent}")), 400, None::<&str>);
    let text = format!("This PaymentIntent ({intent}) does not have a successful charge to refund.");
    assert_eq!(none["message"], text);
    let too_much = provider.post(&format!("{path}/capture"), "amount_to_capture=1001");
    refused(&too_much, 400, "amount_too_large");
    let captured = provider.post(&format!("{path}/capture"), "").is(200);
    assert_eq!((&captured["status"], &captured["amount_received"]), (&"succeeded".into(), &1000.into()));
    assert_eq!(provider.charge(&charge)["captured"], true);
    assert_eq!(
        provider.told()[1..],
        ["charge.succeeded", "payment_intent.amount_capturable_updated", "charge.captured", "payment_intent.succeeded",]
    );
    refused(&provider.post(&format!("{path}/capture"), ""), 400, "charge_already_captured");
    let cancel = refused(&provider.post(&format!("{path}/cancel"), ""), 400, "payment_intent_unexpected_state");
    assert_eq!(
        cancel["message"],
        "You cannot cancel this PaymentIntent because it has a status of succeeded. Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, requires_action."
    );
    assert_eq!(cancel["payment_intent"]["id"], intent.as_str());
}

#[test]
fn the_rest_of_a_partial_capture_reads_as_a_refund() {
    let provider = Provider::start();
    let (intent, charge) = provider.authorized();
    provider.post(&format!("/v1/payment_intents/{intent}/capture"), "amount_to_capture=600").is(200);
    let charge = provider.charge(&charge);
    assert_eq!((&charge["amount_captured"], &charge["amount_refunded"]), (&600.into(), &400.into()));
    assert_eq!(charge["refunded"], false);
    let list = provider.get(&format!("/v1/refunds?payment_intent={intent}")).is(200);
    assert_eq!(list["data"][0]["amount"], 400);
    refused(&provider.post("/v1/refunds", &format!("payment_intent={intent}&amount=601")), 400, None::<&str>);
    assert_eq!(provider.post("/v1/refunds", &format!("payment_intent={intent}")).is(200)["amount"], 600);
}

#[test]
fn a_canceled_authorisation_reads_as_refunded_and_not_captured() {
    let provider = Provider::start();
    let (intent, charge) = provider.authorized();
    let path = format!("/v1/payment_intents/{intent}");
    refused(&provider.post(&format!("{path}/cancel"), "cancellation_reason=bored"), 400, None::<&str>);
    let canceled = provider.post(&format!("{path}/cancel"), "cancellation_reason=abandoned").is(200);
    assert_eq!((&canceled["status"], &canceled["cancellation_reason"]), (&"canceled".into(), &"abandoned".into()));
    assert!(canceled["canceled_at"].is_i64());
    let charge = provider.charge(&charge);
    assert_eq!((&charge["captured"], &charge["refunded"]), (&false.into(), &true.into()));
    assert_eq!(provider.told()[3..], ["payment_intent.canceled", "charge.refunded"]);
    let capture = refused(&provider.post(&format!("{path}/capture"), ""), 400, "payment_intent_unexpected_state");
    assert_eq!(
        capture["message"],
        "This PaymentIntent could not be captured because it has a status of canceled. Only a PaymentIntent with one of the following statuses may be captured: requires_capture."
    );
    refused(&provider.post(&format!("{path}/cancel"), ""), 400, "payment_intent_unexpected_state");
    assert_eq!(provider.get("/v1/refunds").is(200)["data"], serde_json::json!([]), "no money was taken");
}

#[test]
fn an_authorisation_may_lapse() {
    let provider = Provider::start();
    let (intent, _) = provider.authorized();
    let lapsed = provider.control(&format!("payment_intents/{intent}/lapse"), &serde_json::json!({}));
    assert_eq!((&lapsed["status"], &lapsed["cancellation_reason"]), (&"canceled".into(), &"automatic".into()));
    assert_eq!(provider.told()[3..], ["charge.expired", "payment_intent.canceled", "charge.refunded"]);
}
