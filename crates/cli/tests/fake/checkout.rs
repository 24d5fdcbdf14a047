//! Checkout sessions.

use crate::rig::{Provider, refused};
use crate::support::Call;
use serde_json::{Value, json};

const LINE: &str = "line_items[0][price_data][currency]=eur&line_items[0][price_data][unit_amount]=500&line_items[0][price_data][product_data][name]=Shoe&line_items[0][quantity]=2";

fn made(provider: &Provider, more: &str) -> Value {
    let form = format!(
        "mode=payment&success_url=http://shop/ok&{LINE}&client_reference_id=A-1&metadata[order_id]=A-1&payment_intent_data[metadata][hold_id]=h-1{more}"
    );
    provider.post("/v1/checkout/sessions", &form).is(200)
}

fn id(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

fn pay(provider: &Provider, session: &str, card: &str) -> crate::support::Answer {
    let body = json!({"payment_method": card});
    provider.call(&Call::new("POST", &format!("/_control/sessions/{session}/pay")).json(&body))
}

#[test]
fn a_shopper_pays_in_an_open_session() {
    let provider = Provider::start();
    let session = made(&provider, "");
    assert_eq!((&session["status"], &session["payment_status"]), (&"open".into(), &"unpaid".into()));
    assert_eq!((&session["amount_total"], &session["payment_intent"]), (&1000.into(), &Value::Null));
    refused(&pay(&provider, id(&session), "pm_card_chargeDeclined"), 402, "card_declined");
    let paid = pay(&provider, id(&session), "pm_card_visa").is(200);
    assert_eq!((&paid["status"], &paid["payment_status"]), (&"complete".into(), &"paid".into()));
    assert_eq!(provider.get(&format!("/v1/checkout/sessions/{}", id(&session))).is(200), paid);
    let intent = provider.intent(paid["payment_intent"].as_str().unwrap());
    assert_eq!(intent["metadata"], json!({"hold_id": "h-1"}), "the session's own metadata is not copied");
    assert_eq!(
        provider.told(),
        [
            "payment_intent.created",
            "charge.failed",
            "payment_intent.payment_failed",
            "charge.succeeded",
            "payment_intent.succeeded",
            "checkout.session.completed",
        ]
    );
    refused(&pay(&provider, id(&session), "pm_card_visa"), 400, None::<&str>);
    let expire = provider.post(&format!("/v1/checkout/sessions/{}/expire", id(&session)), "");
    refused(&expire, 400, None::<&str>);
}

#[test]
fn an_open_session_expires_once_and_takes_its_intent_with_it() {
    let provider = Provider::start();
    let session = made(&provider, "");
    refused(&pay(&provider, id(&session), "pm_card_chargeDeclined"), 402, "card_declined");
    let now = provider.get(&format!("/v1/checkout/sessions/{}", id(&session))).is(200);
    let intent = now["payment_intent"].as_str().unwrap();
    let cancel = provider.post(&format!("/v1/payment_intents/{intent}/cancel"), "");
    refused(&cancel, 400, "payment_intent_unexpected_state");
    let path = format!("/v1/checkout/sessions/{}/expire", id(&session));
    assert_eq!(provider.post(&path, "").is(200)["status"], "expired");
    assert_eq!(provider.intent(intent)["status"], "canceled");
    assert_eq!(provider.told()[3..], ["checkout.session.expired", "payment_intent.canceled"]);
    refused(&provider.post(&path, ""), 400, None::<&str>);
    refused(&pay(&provider, id(&session), "pm_card_visa"), 400, None::<&str>);
}

#[test]
fn a_session_may_only_authorise() {
    let provider = Provider::start();
    let session = made(&provider, "&payment_intent_data[capture_method]=manual");
    let paid = pay(&provider, id(&session), "pm_card_visa").is(200);
    assert_eq!((&paid["status"], &paid["payment_status"]), (&"complete".into(), &"unpaid".into()));
    let intent = paid["payment_intent"].as_str().unwrap();
    let canceled = provider.post(&format!("/v1/payment_intents/{intent}/cancel"), "").is(200);
    assert_eq!(canceled["status"], "canceled");
}

#[test]
fn a_session_needs_lines_and_time() {
    let provider = Provider::start();
    let create = |form: &str| provider.post("/v1/checkout/sessions", form);
    refused(&create(&format!("success_url=http://x&{LINE}")), 400, "parameter_missing");
    refused(&create("mode=payment&success_url=http://x"), 400, "parameter_missing");
    refused(&create(&format!("mode=payment&{LINE}")), 400, "parameter_missing");
    let soon = format!("mode=payment&success_url=http://x&{LINE}&expires_at=1760000000");
    assert_eq!(refused(&create(&soon), 400, None::<&str>)["param"], "expires_at");
    let twice = LINE.replace("[0]", "[1]").replace("=eur", "=usd");
    refused(&create(&format!("mode=payment&success_url=http://x&{LINE}&{twice}")), 400, None::<&str>);
    refused(
        &create(&format!("mode=payment&success_url=http://x&{LINE}&line_items[0][prise]=1")),
        400,
        "parameter_unknown",
    );
}
