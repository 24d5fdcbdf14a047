//! What a shopper could still pay is closed when the hold lapses or is released.

use crate::rig::PATIENCE;
use crate::shop::{Shop, priced};
use crate::support::{eventually, with};
use serde_json::{Value, json};

fn open_intent(shop: &Shop, order: &str) -> String {
    let form = format!("amount=1500&currency=usd&metadata[order_id]={order}");
    shop.provider.post("/v1/payment_intents", &form).is(200)["id"].as_str().unwrap().to_owned()
}

fn status(shop: &Shop, kind: &str, id: &str) -> Value {
    shop.booked(kind, id)[0]["status"].clone()
}

#[test]
fn an_intent_is_canceled_when_its_hold_lapses_or_is_released() {
    let shop = Shop::open();
    shop.server().stock("A", 3);
    let lapsing = open_intent(&shop, "O1");
    let cart = with(with(priced("O1"), "ttl_seconds", 1), "payment_ref", format!("stripe:{lapsing}"));
    shop.server().hold(&cart);
    let released = open_intent(&shop, "O2");
    let path = shop.server().hold(&with(priced("O2"), "payment_ref", released.as_str()));
    let kept = open_intent(&shop, "O3");
    shop.server().hold(&with(priced("O3"), "payment_ref", kept.as_str()));
    shop.server().touch(&format!("{path}/release")).is(200);
    for id in [&lapsing, &released] {
        eventually("it is canceled", PATIENCE, || (status(&shop, "payment_intents", id) == "canceled").then_some(()));
    }
    assert_eq!(status(&shop, "payment_intents", &kept), "requires_payment_method");
    shop.provider.post(&format!("/v1/payment_intents/{lapsing}/confirm"), "payment_method=pm_card_visa").is(400);
    shop.balances();
}

#[test]
fn an_intent_that_a_new_hold_of_the_order_uses_is_left_open() {
    let shop = Shop::open();
    shop.server().stock("A", 2);
    let intent = open_intent(&shop, "O1");
    let cart = with(priced("O1"), "payment_ref", intent.as_str());
    let first = shop.server().hold(&cart);
    shop.server().touch(&format!("{first}/release")).is(200);
    shop.server().hold(&cart);
    // One that is released later and is canceled shows that the first was looked at.
    let other = open_intent(&shop, "O2");
    let path = shop.server().hold(&with(priced("O2"), "payment_ref", other.as_str()));
    shop.server().touch(&format!("{path}/release")).is(200);
    eventually("it is canceled", PATIENCE, || (status(&shop, "payment_intents", &other) == "canceled").then_some(()));
    shop.provider.post(&format!("/v1/payment_intents/{intent}/confirm"), "payment_method=pm_card_visa").is(200);
    shop.becomes("O1", "confirmed");
    shop.balances();
}

#[test]
fn a_session_is_expired_even_if_the_provider_is_away_for_a_while() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    let form = "mode=payment&success_url=https://shop.example&line_items[0][quantity]=1&line_items[0][price_data][currency]=usd&line_items[0][price_data][unit_amount]=1500&line_items[0][price_data][product_data][name]=Palm&client_reference_id=O1";
    let session = shop.provider.post("/v1/checkout/sessions", form).is(200)["id"].as_str().unwrap().to_owned();
    let path = shop.server().hold(&with(priced("O1"), "payment_ref", format!("stripe:{session}")));
    shop.provider.script(&json!([{"on": "expire", "do": {"down": {"seconds": 2}}}]));
    shop.server().touch(&format!("{path}/release")).is(200);
    eventually("it is expired", PATIENCE, || (status(&shop, "sessions", &session) == "expired").then_some(()));
}

#[test]
fn a_payment_that_was_faster_is_decided_as_any_other() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    let intent = open_intent(&shop, "O1");
    let path = shop.server().hold(&with(priced("O1"), "payment_ref", intent.as_str()));
    shop.provider.control("webhooks", &json!({"hold": true}));
    shop.provider.post(&format!("/v1/payment_intents/{intent}/confirm"), "payment_method=pm_card_visa").is(200);
    shop.server().touch(&format!("{path}/release")).is(200);
    shop.hold("O2");
    shop.provider.control("webhooks", &json!({"hold": false}));
    shop.provider.control("webhooks/release", &json!({}));
    assert_eq!(shop.refund(&intent, "succeeded")["reason"], "stock_gone");
    shop.balances();
}
