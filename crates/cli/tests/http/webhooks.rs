//! `POST /v1/webhooks/{provider}`: who is believed, what is stored, what is answered.

use crate::support::webhook::{
    STRIPE_SECRET, adyen, event, intent, paid, seconds, secrets, standard, stripe, stripe_header,
};
use crate::support::{Call, Server, brief_cart, cart, eventually, holdfast, with};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

fn server() -> Server {
    let mut command = holdfast();
    command.envs(secrets());
    Server::with_command(command, &Arc::new(tempdir().unwrap()), &[])
}

#[track_caller]
fn sent(server: &Server, call: &Call) {
    let answer = call.to(server);
    assert_eq!((answer.status, answer.body.len()), (200, 0), "{}", answer.text());
}

fn order(server: &Server, id: &str) -> Value {
    server.get(&format!("/v1/orders/{id}")).is(200)
}

fn priced(order: &str, quantity: u64) -> Value {
    with(with(cart(order, "A", quantity), "amount", 1500), "currency", "USD")
}

#[test]
fn a_payment_confirms_its_order_however_the_order_is_named() {
    let server = server();
    server.stock("A", 10);
    server.hold(&priced("O1", 1));
    sent(&server, &stripe(&paid("evt_1", "pi_1", "O1")));
    let told = order(&server, "O1");
    assert_eq!((told["status"].as_str(), told["payment"]["payment_id"].as_str()), (Some("confirmed"), Some("pi_1")));
    let hold = server.hold(&priced("O2", 1));
    let by_hold = json!({"hold_id": hold.strip_prefix("/v1/holds/").unwrap()});
    sent(&server, &stripe(&event("evt_2", "payment_intent.succeeded", &intent("pi_2", &by_hold))));
    server.hold(&priced("O3", 1));
    let session = json!({"id": "cs_3", "object": "checkout.session", "payment_intent": "pi_3", "payment_status": "paid",
        "amount_total": 1500, "currency": "usd", "client_reference_id": "O3", "metadata": {}});
    sent(&server, &stripe(&event("evt_3", "checkout.session.completed", &session)));
    server.hold(&priced("O4", 1));
    assert_eq!(adyen("AUTHORISATION", "psp4", "", "O4", true).to(&server).text(), "[accepted]");
    server.hold(&priced("O5", 1));
    let data = json!({"payment_id": "pay_5", "order_id": "O5", "amount": 1500, "currency": "USD"});
    sent(&server, &standard("msg_5", &json!({"type": "payment.captured", "data": data})));
    for (id, captured) in [("O2", true), ("O3", true), ("O4", false), ("O5", true)] {
        assert_eq!(order(&server, id)["payment"]["captured"], captured, "{id}");
    }
    assert_eq!(server.counters("A"), (5, 0, 5));
    assert_eq!(server.get("/v1/payments").is(200)["items"].as_array().unwrap().len(), 5);
}

#[test]
fn what_is_told_twice_or_says_nothing_is_answered_alike() {
    let server = server();
    server.stock("A", 10);
    server.hold(&priced("O1", 1));
    for _ in 0..3 {
        sent(&server, &stripe(&paid("evt_1", "pi_1", "O1")));
    }
    sent(&server, &stripe(&paid("evt_2", "pi_1", "O1")));
    sent(&server, &stripe(&event("evt_3", "customer.created", &json!({"id": "cus_1"}))));
    sent(&server, &stripe(&event("evt_4", "payment_intent.succeeded", &intent("pi_9", &json!({})))));
    assert_eq!(adyen("AUTHORISATION", "psp4", "", "O1", false).to(&server).text(), "[accepted]");
    assert_eq!(adyen("REPORT_AVAILABLE", "psp5", "", "", true).to(&server).text(), "[accepted]");
    assert_eq!(server.counters("A"), (9, 0, 1));
    let payments = server.get("/v1/payments").is(200);
    assert_eq!(payments["items"].as_array().unwrap().len(), 2, "what is not ours is not listed: {payments}");
    let metrics = server.get("/metrics").text();
    for counted in ["duplicate\"} 3", "not_ours\"} 1", "ignored\"} 1", "confirmed\"} 1"] {
        assert!(metrics.contains(counted), "{counted} in {metrics}");
    }
}

#[test]
fn nobody_is_believed_without_a_good_signature() {
    let server = server();
    server.stock("A", 1);
    server.hold(&priced("O1", 1));
    let body = paid("evt_1", "pi_1", "O1").to_string();
    let call = |header: &str, body: &str| {
        let call = Call::new("POST", "/v1/webhooks/stripe").header("stripe-signature", header);
        call.raw("application/json", body).to(&server)
    };
    let good = stripe_header(STRIPE_SECRET, seconds(), &body);
    call("", &body).refused(400, "bad_signature");
    call("t=1,v1=00", &body).refused(400, "bad_signature");
    call(&good.replace("v1=", "v0="), &body).refused(400, "bad_signature");
    call(&good, &body.replace("1500", "1501")).refused(400, "bad_signature");
    call(&stripe_header("whsec_of_somebody_else", seconds(), &body), &body).refused(400, "bad_signature");
    for off in [-301, 302] {
        call(&stripe_header(STRIPE_SECRET, seconds() + off, &body), &body).refused(400, "bad_signature");
    }
    let rest = Call::new("POST", "/v1/webhooks/stripe").raw("application/json", body.clone()).to(&server);
    rest.refused(400, "bad_signature");
    Call::new("POST", "/v1/webhooks/adyen").raw("application/json", "{}").to(&server).refused(400, "bad_event");
    Call::new("POST", "/v1/webhooks/standard").raw("application/json", "{}").to(&server).refused(400, "bad_signature");
    Call::new("POST", "/v1/webhooks/paypal").to(&server).refused(404, "not_found");
    assert_eq!(server.counters("A"), (0, 1, 0));
    assert_eq!(call(&good, &body).status, 200, "with one more space it would not be");
    assert_eq!(server.counters("A"), (0, 0, 1));
}

#[test]
fn several_secrets_are_good_at_once_and_none_is_told() {
    let mut command = holdfast();
    command.env("HOLDFAST_STRIPE_WEBHOOK_SECRETS", format!("whsec_the_older_secret_of_it, {STRIPE_SECRET}"));
    command.env("HOLDFAST_API_KEYS", "ops:admin:0123456789abcdef").env("HOLDFAST_LOG", "debug");
    let server = Server::with_command(command, &Arc::new(tempdir().unwrap()), &[]).keyed("0123456789abcdef");
    let body = event("evt_1", "customer.created", &json!({})).to_string();
    for secret in ["whsec_the_older_secret_of_it", STRIPE_SECRET] {
        let call = Call::new("POST", "/v1/webhooks/stripe")
            .header("stripe-signature", &stripe_header(secret, seconds(), &body))
            .raw("application/json", body.clone());
        assert_eq!(call.to(&server).status, 200, "no API key is needed");
    }
    Call::new("POST", "/v1/webhooks/stripe").raw("text/plain", body).to(&server).refused(400, "bad_signature");
    Call::new("POST", "/v1/webhooks/adyen").to(&server).refused(404, "not_found");
    let (_, log) = server.stop();
    assert!(log.contains("a webhook was refused"), "{log}");
    assert!(!log.contains("whsec_") && !log.contains("of_the_stripe_endpoint"), "{log}");
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    let server = server();
    server.stock("A", 1);
    server.hold(&priced("O1", 1));
    let amount = |value: Value| {
        let mut intent = intent("pi_1", &json!({"order_id": "O1"}));
        intent["amount_received"] = value;
        stripe(&event("evt_1", "payment_intent.succeeded", &intent)).to(&server)
    };
    for bad in [json!("1500"), json!(-5), json!(15.5), json!(u64::MAX)] {
        amount(bad).refused(400, "bad_event");
    }
    let signed = |body: &str| {
        let header = stripe_header(STRIPE_SECRET, seconds(), body);
        Call::new("POST", "/v1/webhooks/stripe").header("stripe-signature", &header).raw("application/json", body)
    };
    signed("no json").to(&server).refused(400, "bad_event");
    signed("{\"object\":\"v2.core.event\",\"id\":\"evt_1\"}").to(&server).refused(400, "bad_event");
    signed(&"x".repeat(300_000)).to(&server).refused(413, "body_too_large");
    assert_eq!(server.counters("A"), (0, 1, 0));
    // A payment of nothing, or in another currency, buys nothing, and what came of it goes back.
    assert_eq!(amount(json!(0)).status, 200);
    let mut other = intent("pi_2", &json!({"order_id": "O1"}));
    other["currency"] = json!("eur");
    sent(&server, &stripe(&event("evt_2", "payment_intent.succeeded", &other)));
    assert_eq!(server.counters("A"), (0, 1, 0));
    let refunds = server.get("/v1/refunds").is(200);
    let told: Vec<_> = refunds["items"].as_array().unwrap().iter().map(|r| (&r["id"], &r["reason"])).collect();
    let mismatch = json!("amount_mismatch");
    assert_eq!(told, [(&json!("stripe:pi_1"), &mismatch), (&json!("stripe:pi_2"), &mismatch)]);
}

#[test]
fn a_payment_before_its_order_waits_for_it() {
    let server = server();
    server.stock("A", 2);
    sent(&server, &stripe(&paid("evt_1", "pi_1", "O1")));
    assert_eq!(server.get("/v1/payments?status=unmatched").is(200)["items"][0]["order_id"], "O1");
    let hold = server.post("/v1/holds", &priced("O1", 1)).is(201);
    assert_eq!(hold["status"], "confirmed");
    assert_eq!(order(&server, "O1")["payment"]["status"], "settled");
}

#[test]
fn a_late_payment_goes_back_and_can_be_tried_again() {
    let server = server();
    server.stock("A", 1);
    server.hold(&with(with(brief_cart("O1", "A", 1, 1), "amount", 1500), "currency", "USD"));
    eventually("the hold lapses", Duration::from_secs(10), || (server.counters("A").0 == 1).then_some(()));
    server.hold(&priced("O2", 1));
    sent(&server, &stripe(&paid("evt_1", "pi_1", "O1")));
    let refund = server.get("/v1/refunds").is(200)["items"][0].clone();
    let told = (refund["id"].as_str(), refund["reason"].as_str(), refund["status"].as_str(), refund["kind"].as_str());
    assert_eq!(told, (Some("stripe:pi_1"), Some("stock_gone"), Some("due"), Some("refund")));
    assert_eq!(server.touch("/v1/refunds/stripe%3Api_1/retry").is(200)["status"], "due");
    server.touch("/v1/refunds/stripe:pi_2/retry").refused(404, "not_found");
    server.touch("/v1/refunds/pi_1/retry").refused(404, "not_found");
    // Without an API key nobody asks the provider. Somebody did it by hand there, and the provider tells.
    let charge = json!({"id": "ch_1", "object": "charge", "payment_intent": "pi_1", "amount": 1500, "captured": true,
        "amount_captured": 1500, "amount_refunded": 1500, "refunded": true, "currency": "usd", "metadata": {}});
    sent(&server, &stripe(&event("evt_2", "charge.refunded", &charge)));
    assert_eq!(server.get("/v1/refunds").is(200)["items"][0]["status"], "succeeded");
    server.touch("/v1/refunds/stripe:pi_1/retry").refused(409, "job_not_due");
    server.get("/v1/orders/O1").refused(404, "not_found");
    assert_eq!(server.counters("A"), (0, 1, 0));
}

#[test]
fn an_authorisation_is_captured_or_its_order_ends() {
    let server = server();
    server.stock("A", 2);
    server.hold(&priced("O1", 1));
    adyen("AUTHORISATION", "psp1", "", "O1", true).to(&server);
    assert_eq!(server.counters("A"), (1, 0, 1));
    adyen("CAPTURE", "psp2", "psp1", "O1", true).to(&server);
    assert_eq!(order(&server, "O1")["payment"]["captured"], true);
    server.hold(&priced("O2", 1));
    adyen("AUTHORISATION", "psp3", "", "O2", true).to(&server);
    adyen("CAPTURE_FAILED", "psp4", "psp3", "O2", true).to(&server);
    assert_eq!(order(&server, "O2")["status"], "capture_failed");
    assert_eq!(server.counters("A"), (1, 0, 1));
    adyen("CANCELLATION", "psp5", "psp3", "", true).to(&server);
    assert_eq!(order(&server, "O2")["payment"]["status"], "voided");
    adyen("REFUND", "psp6", "psp1", "", true).to(&server);
    assert_eq!(order(&server, "O1")["status"], "refunded");
    assert_eq!(server.counters("A"), (2, 0, 0));
    adyen("REFUND_FAILED", "psp6", "psp1", "", true).to(&server);
    eventually("a person is told", Duration::from_secs(10), || {
        let metrics = server.get("/metrics").text();
        metrics.contains("attention_total{kind=\"payment_refund_failed\"} 1").then_some(())
    });
    server.is_clean();
    let (_, log) = server.stop();
    assert!(log.contains("needs attention") && !log.contains("panicked"), "{log}");
}

#[test]
fn a_storm_of_copies_has_one_effect() {
    let server = Arc::new(server());
    server.stock("A", 5);
    server.hold(&priced("O1", 1));
    let senders: Vec<_> = (0..20)
        .map(|n| {
            let server = server.clone();
            std::thread::spawn(move || {
                let event_id = format!("evt_{}", n % 3);
                stripe(&paid(&event_id, "pi_1", "O1")).to(&server).status
            })
        })
        .collect();
    let statuses: Vec<u16> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(server.counters("A"), (4, 0, 1));
    let entries = server.get("/v1/ledger?order_id=O1").is(200);
    let captured = entries["items"].as_array().unwrap().iter().filter(|e| e["kind"] == "payment_captured").count();
    assert_eq!(captured, 1, "{entries}");
}
