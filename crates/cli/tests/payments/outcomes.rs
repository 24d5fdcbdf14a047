//! What becomes of a payment and its order when nothing goes wrong in between.

use crate::rig::PATIENCE;
use crate::shop::Shop;
use crate::support::eventually;
use serde_json::json;

#[test]
fn a_payment_in_time_confirms_and_is_kept() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.hold("O1");
    let payment = shop.pay("O1");
    let order = shop.becomes("O1", "confirmed");
    assert_eq!((&order["payment"]["payment_id"], &order["payment"]["status"]), (&json!(payment), &json!("settled")));
    assert_eq!(shop.refunds().len(), 0);
    shop.balances();
}

#[test]
fn a_late_payment_is_refunded_once() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.lose("O1");
    let payment = shop.pay("O1");
    let refund = shop.refund(&payment, "succeeded");
    assert_eq!(
        (&refund["kind"], &refund["reason"], &refund["error"]),
        (&json!("refund"), &json!("stock_gone"), &json!(null))
    );
    let booked = shop.booked("refunds", &payment);
    assert_eq!(booked.len(), 1, "{booked:?}");
    assert_eq!((&booked[0]["id"], &booked[0]["reason"]), (&refund["reference"], &json!("requested_by_customer")));
    assert_eq!(booked[0]["metadata"]["cause"], "stock_gone");
    shop.balances();
}

#[test]
fn a_second_payment_is_refunded_and_the_order_stays() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.hold("O1");
    let payments = [shop.pay("O1"), shop.pay("O1")];
    let refund = eventually("one of them goes back", PATIENCE, || {
        shop.refunds().into_iter().find(|refund| refund["status"] == "succeeded")
    });
    assert_eq!(refund["reason"], "duplicate_payment");
    assert!(payments.iter().any(|payment| refund["payment_id"] == payment.as_str()));
    assert_eq!(shop.becomes("O1", "confirmed")["payment"]["status"], "settled");
    shop.balances();
}

#[test]
fn an_authorisation_confirms_and_is_captured() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.hold("O1");
    let payment = shop.authorize("O1");
    shop.becomes("O1", "confirmed");
    eventually("it is captured", PATIENCE, || shop.order("O1").filter(|order| order["payment"]["captured"] == true));
    assert_eq!(shop.booked("payment_intents", &payment)[0]["status"], "succeeded");
    shop.provider.settled();
    let entries = shop.server().get("/v1/ledger?order_id=O1").is(200);
    let captured = entries["items"].as_array().unwrap().iter().filter(|e| e["kind"] == "payment_captured").count();
    assert_eq!(captured, 1, "our own capture is told by its webhook as well: {entries}");
    shop.balances();
}

#[test]
fn an_authorisation_that_comes_too_late_is_voided_without_a_refund() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.lose("O1");
    let payment = shop.authorize("O1");
    assert_eq!(shop.refund(&payment, "succeeded")["kind"], "void");
    assert_eq!(shop.booked("payment_intents", &payment)[0]["status"], "canceled");
    assert_eq!(shop.booked("refunds", &payment).len(), 0, "no fee");
    shop.balances();
}

#[test]
fn an_authorisation_that_cannot_be_captured_ends_its_order() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.hold("O1");
    shop.provider.script(&json!([{"on": "capture", "do": {"down": {"seconds": 1}}}]));
    let payment = shop.authorize("O1");
    shop.becomes("O1", "confirmed");
    shop.provider.control(&format!("payment_intents/{payment}/lapse"), &json!({}));
    let order = shop.becomes("O1", "capture_failed");
    assert_eq!(order["items"][0]["returned"], 1);
    assert_eq!(shop.server().counters("A"), (1, 0, 0));
    assert_eq!(shop.refund(&payment, "succeeded")["reason"], "capture_failed");
    shop.balances();
    shop.close("needs attention");
}

#[test]
fn a_refund_made_at_the_provider_ends_the_order() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.hold("O1");
    let payment = shop.pay("O1");
    shop.becomes("O1", "confirmed");
    shop.provider.post("/v1/refunds", &format!("payment_intent={payment}&amount=500")).is(200);
    shop.provider.settled();
    assert_eq!(shop.becomes("O1", "confirmed")["payment"]["refunded"], 500, "a part is written down only");
    shop.provider.post("/v1/refunds", &format!("payment_intent={payment}")).is(200);
    shop.becomes("O1", "refunded");
    assert_eq!(shop.server().counters("A"), (1, 0, 0));
    assert_eq!(shop.refunds().len(), 0, "nothing is owed");
}

#[test]
fn a_payment_that_came_before_its_hold_is_kept() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.pay("O1");
    shop.provider.settled();
    let hold = shop.server().post("/v1/holds", &crate::shop::priced("O1")).is(201);
    assert_eq!(hold["status"], "confirmed");
    shop.balances();
}
