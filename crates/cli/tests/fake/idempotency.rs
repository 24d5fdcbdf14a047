//! Idempotency keys: what is kept, what is not, and what a repeated key is told.

use crate::rig::{Provider, refused, rule};
use serde_json::json;

const SAME_KEY: &str = "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than 'k' if you meant to execute a different request.";

#[test]
fn a_key_is_carried_out_once() {
    let provider = Provider::start();
    let (intent, charge) = provider.paid();
    let form = format!("payment_intent={intent}&amount=400&metadata[a]=1");
    let first = provider.keyed("k", "/v1/refunds", &form);
    assert_eq!(first.header("idempotent-replayed"), None);
    let again = provider.keyed("k", "/v1/refunds", &format!("metadata[a]=1&amount=400&payment_intent={intent}"));
    assert_eq!((again.status, &again.body), (200, &first.body), "the order of parameters does not matter");
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.header("request-id"), first.header("request-id"));
    assert_eq!(provider.charge(&charge)["amount_refunded"], 400);
    let other = provider.keyed("k", "/v1/refunds", &format!("payment_intent={intent}&amount=500"));
    let error = refused(&other, 400, None::<&str>);
    assert_eq!((&error["type"], &error["message"]), (&"idempotency_error".into(), &SAME_KEY.into()));
    let elsewhere = provider.keyed("k", &format!("/v1/payment_intents/{intent}/cancel"), "");
    assert_eq!(refused(&elsewhere, 400, None::<&str>)["type"], "idempotency_error");
    refused(&provider.keyed(&"k".repeat(256), "/v1/refunds", &form), 400, None::<&str>);
    provider.keyed(&"k".repeat(255), "/v1/refunds", &form).is(200);
}

#[test]
fn every_call_that_changes_something_keeps_its_key() {
    let provider = Provider::start();
    let (authorized, _) = provider.authorized();
    let (canceled, _) = provider.authorized();
    let session = "mode=payment&success_url=http://x&line_items[0][price_data][currency]=eur&line_items[0][price_data][unit_amount]=5&line_items[0][price_data][product_data][name]=n";
    for (n, (path, form)) in [
        ("/v1/payment_intents".to_owned(), "amount=1&currency=eur&payment_method=pm_card_visa&confirm=true"),
        (format!("/v1/payment_intents/{authorized}/capture"), ""),
        (format!("/v1/payment_intents/{canceled}/cancel"), ""),
        ("/v1/checkout/sessions".to_owned(), session),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("key-{n}");
        let first = provider.keyed(&key, &path, form);
        first.is(200);
        let again = provider.keyed(&key, &path, form);
        assert_eq!((again.is(200), again.header("idempotent-replayed")), (first.json(), Some("true")), "{path}");
    }
}

#[test]
fn refusals_are_kept_unless_the_parameters_were_at_fault() {
    let provider = Provider::start();
    let (intent, _) = provider.paid();
    let cancel = format!("/v1/payment_intents/{intent}/cancel");
    refused(&provider.keyed("state", &cancel, ""), 400, "payment_intent_unexpected_state");
    assert_eq!(provider.keyed("state", &cancel, "").header("idempotent-replayed"), Some("true"));
    refused(
        &provider.keyed("fault", "/v1/refunds", &format!("payment_intent={intent}&amount=x")),
        400,
        "parameter_invalid_integer",
    );
    provider.keyed("fault", "/v1/refunds", &format!("payment_intent={intent}&amount=1")).is(200);
    refused(&provider.keyed("missing", "/v1/refunds", "payment_intent=pi_no"), 404, "resource_missing");
    provider.keyed("missing", "/v1/refunds", &format!("payment_intent={intent}&amount=1")).is(200);
    let declined = "amount=1&currency=eur&payment_method=pm_card_chargeDeclined&confirm=true";
    refused(&provider.keyed("card", "/v1/payment_intents", declined), 402, "card_declined");
    let again = provider.keyed("card", "/v1/payment_intents", declined);
    assert_eq!((again.status, again.header("idempotent-replayed")), (402, Some("true")));
}

#[test]
fn a_failure_of_the_provider_is_kept() {
    let provider = Provider::start();
    let (intent, charge) = provider.paid();
    let form = format!("payment_intent={intent}");
    provider.script(&rule("refund", "error"));
    assert_eq!(refused(&provider.keyed("k", "/v1/refunds", &form), 500, None::<&str>)["type"], "api_error");
    assert_eq!(provider.charge(&charge)["amount_refunded"], 0);
    for _ in 0..2 {
        let again = provider.keyed("k", "/v1/refunds", &form);
        assert_eq!((again.status, again.header("idempotent-replayed")), (500, Some("true")));
    }
    provider.script(&rule("refund", "error_after"));
    refused(&provider.keyed("k2", "/v1/refunds", &form), 500, None::<&str>);
    assert_eq!(provider.charge(&charge)["amount_refunded"], 1000, "it was done all the same");
    assert_eq!(provider.keyed("k2", "/v1/refunds", &form).status, 500);
}

#[test]
fn a_key_in_flight_is_told_so_and_then_answered() {
    let provider = Provider::start();
    let (intent, _) = provider.paid();
    let form = format!("payment_intent={intent}");
    provider.script(&rule("refund", json!({"slow": {"ms": 1500}})));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| provider.keyed("k", "/v1/refunds", &form).is(200));
        // The refund is in the books at once, its answer is not out yet.
        crate::support::eventually("it is done", crate::rig::PATIENCE, || {
            (provider.books()["refunds"] != json!([])).then_some(())
        });
        let early = refused(&provider.keyed("k", "/v1/refunds", &form), 409, "idempotency_key_in_use");
        let text = "There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through): k. Please try again later.";
        assert_eq!(early["message"], text);
        let first = slow.join().unwrap();
        assert_eq!(provider.keyed("k", "/v1/refunds", &form).is(200), first);
    });
}

#[test]
fn forgotten_keys_are_carried_out_again() {
    let provider = Provider::start();
    let (intent, charge) = provider.paid();
    let form = format!("payment_intent={intent}&amount=100");
    let first = provider.keyed("k", "/v1/refunds", &form).is(200);
    provider.call(&crate::support::Call::new("DELETE", "/_control/keys")).is(200);
    assert_ne!(provider.keyed("k", "/v1/refunds", &form).is(200)["id"], first["id"]);
    assert_eq!(provider.charge(&charge)["amount_refunded"], 200);
}
