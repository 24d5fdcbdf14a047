//! A provider that fails in every way that it can: in the end each payment has one order or one refund.

use crate::rig::PATIENCE;
use crate::shop::{SECRET, Shop};
use crate::support::eventually;
use serde_json::{Value, json};

fn late(shop: &Shop, script: &Value) -> String {
    shop.server().stock("A", 1);
    shop.lose("O1");
    shop.provider.script(script);
    shop.pay("O1")
}

/// One refund in the provider's books, whatever happened on the way to it.
fn is_refunded_once(script: &Value) {
    let shop = Shop::open();
    let payment = late(&shop, script);
    shop.refund(&payment, "succeeded");
    assert_eq!(shop.booked("refunds", &payment).len(), 1);
    shop.balances();
}

#[test]
fn an_answer_that_was_lost_before_or_after_the_effect() {
    is_refunded_once(&json!([{"on": "refund", "do": "lost_before", "times": 2}]));
    is_refunded_once(&json!([{"on": "refund", "do": "lost_after", "times": 2}]));
}

#[test]
fn errors_that_the_provider_keeps_under_the_key() {
    is_refunded_once(&json!([{"on": "refund", "do": "error_after"}]));
    is_refunded_once(&json!([{"on": "refund", "do": "error"}]));
}

#[test]
fn a_provider_that_is_busy_slow_or_down() {
    is_refunded_once(&json!([{"on": "refund", "do": {"rate_limited": {"seconds": 1}}, "times": 2}]));
    is_refunded_once(&json!([{"on": "refund", "do": {"slow": {"ms": 800}}}]));
    is_refunded_once(&json!([{"on": "refund", "do": {"down": {"seconds": 3}}}]));
}

#[test]
fn a_refund_that_is_pending_and_then_succeeds() {
    let shop = Shop::open();
    let payment = late(&shop, &json!([{"on": "refund", "do": {"refund_pending": {"ms": 700, "then": "succeeded"}}}]));
    shop.refund(&payment, "succeeded");
    shop.balances();
}

#[test]
fn a_refund_that_fails_at_the_bank_waits_for_a_person_who_tries_again() {
    for fault in [
        json!({"refund_pending": {"ms": 300, "then": "failed"}}),
        json!({"refund_fails_later": {"ms": 300, "reason": "declined"}}),
    ] {
        let shop = Shop::open();
        let payment = late(&shop, &json!([{"on": "refund", "do": fault}]));
        let refund = shop.refund(&payment, "needs_attention");
        assert!(refund["error"].as_str().unwrap().contains("failed"), "{refund}");
        let id = refund["id"].as_str().unwrap();
        shop.server().touch(&format!("/v1/refunds/{id}/retry")).is(200);
        shop.refund(&payment, "succeeded");
        let booked = shop.booked("refunds", &payment);
        let mut statuses: Vec<&str> = booked.iter().map(|r| r["status"].as_str().unwrap()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, ["failed", "succeeded"]);
        shop.balances();
        shop.close("needs attention");
    }
}

#[test]
fn a_refund_that_is_refused_for_good_waits_for_a_person() {
    let shop = Shop::open();
    let payment = late(&shop, &json!([{"on": "refund", "do": {"refuse": {"code": "charge_disputed"}}, "times": 2}]));
    let refund = shop.refund(&payment, "needs_attention");
    assert!(refund["error"].as_str().unwrap().contains("charge_disputed"), "{refund}");
    let id = refund["id"].as_str().unwrap();
    shop.server().touch(&format!("/v1/refunds/{id}/retry")).is(200);
    eventually("it was tried again", PATIENCE, || {
        let refund = shop.refund(&payment, "needs_attention");
        (refund["attempts"].as_u64() > Some(1)).then_some(())
    });
    // Somebody gives the money back by hand, at the provider.
    shop.provider.post("/v1/refunds", &format!("payment_intent={payment}")).is(200);
    shop.refund(&payment, "succeeded");
    shop.balances();
    shop.close("needs attention");
}

#[test]
fn a_refund_that_somebody_made_by_hand_meanwhile() {
    let shop = Shop::open();
    let payment = late(&shop, &json!([{"on": "refund", "do": {"down": {"seconds": 2}}}]));
    shop.refund(&payment, "requested");
    eventually("the provider is back", PATIENCE, || {
        let answer = shop.provider.try_keyed("by hand", "/v1/refunds", &format!("payment_intent={payment}"));
        answer.filter(|answer| answer.status == 200 || answer.status == 400).map(drop)
    });
    shop.refund(&payment, "succeeded");
    assert_eq!(shop.booked("refunds", &payment).len(), 1);
    shop.balances();
}

#[test]
fn webhooks_that_come_twice_late_and_in_any_order() {
    let shop = Shop::open();
    shop.server().stock("A", 4);
    for n in 0..4 {
        shop.hold(&format!("O{n}"));
    }
    shop.lose_all(4, 8);
    shop.provider.script(&json!([
        {"on": "webhook", "do": "double", "share": 0.3},
        {"on": "webhook", "do": "two_events", "share": 0.3},
        {"on": "webhook", "do": {"overtaken": {"ms": 300}}, "share": 0.5},
        {"on": "webhook", "do": {"delay": {"ms": 200}}, "share": 0.5}
    ]));
    for n in 0..8 {
        let order = format!("O{n}");
        if n % 2 == 0 {
            shop.pay(&order)
        } else {
            shop.authorize(&order)
        };
    }
    for n in 0..4 {
        eventually("it is paid", PATIENCE, || {
            shop.order(&format!("O{n}")).filter(|order| order["payment"]["captured"] == true)
        });
    }
    eventually("the others went back", PATIENCE, || {
        (shop.refunds().iter().filter(|refund| refund["status"] == "succeeded").count() == 4).then_some(())
    });
    shop.balances();
    assert_eq!(shop.server().counters("A"), (0, 0, 4));
}

#[test]
fn secrets_that_are_rolled_over() {
    let shop = Shop::open();
    shop.server().stock("A", 2);
    shop.hold("O1");
    shop.provider.control("webhooks", &json!({"secrets": ["whsec_of_nobody_we_know", SECRET]}));
    shop.pay("O1");
    shop.becomes("O1", "confirmed");
    shop.hold("O2");
    shop.provider.control("webhooks", &json!({"secrets": ["whsec_of_nobody_we_know"]}));
    shop.pay("O2");
    eventually("it is refused", PATIENCE, || {
        let events = shop.provider.events();
        events.last().filter(|event| event.to_string().contains("400")).map(drop)
    });
    // The provider sends it again, signed anew.
    shop.provider.control("webhooks", &json!({"secrets": [SECRET]}));
    shop.becomes("O2", "confirmed");
}
