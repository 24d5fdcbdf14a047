//! What each of Stripe's events means for us, with the traps that others fell into.

use super::*;
use holdfast_domain::Currency;
use serde_json::json;

const HOLD: &str = "0198c7f2-0000-7000-8000-000000000001";

fn receive(kind: &str, object: &Value) -> Result<Received, BadEvent> {
    let event = json!({"id": "evt_1", "object": "event", "livemode": true, "type": kind, "data": {"object": object}});
    facts(event.to_string().as_bytes(), None)
}

fn fact(kind: &str, object: &Value) -> PaymentFact {
    let mut received = receive(kind, object).unwrap();
    assert_eq!((received.facts.len(), received.ignored, received.livemode), (1, None, Some(true)), "{kind} {object}");
    let fact = received.facts.remove(0);
    assert_eq!((fact.event_id.as_str(), fact.payment.provider.as_str()), ("evt_1", "stripe"));
    fact
}

/// The payment, what happened and the amount.
fn told(kind: &str, object: &Value) -> (String, PaymentKind, Option<u64>) {
    let fact = fact(kind, object);
    (fact.payment.payment_id.as_str().to_owned(), fact.kind, fact.money.amount)
}

fn is_ignored(kind: &str, object: &Value) -> bool {
    let received = receive(kind, object).unwrap();
    received.facts.is_empty() && received.ignored.is_some()
}

#[test]
fn payment_intents() {
    let intent = json!({"id": "pi_1", "amount": 1500, "amount_received": 1400, "amount_capturable": 1300,
        "currency": "eur", "receipt_email": "jo@example.org", "metadata": {"order_id": "O1"}});
    let pi = |kind: PaymentKind, amount: Option<u64>| ("pi_1".to_owned(), kind, amount);
    assert_eq!(told("payment_intent.succeeded", &intent), pi(PaymentKind::Captured, Some(1400)));
    assert_eq!(told("payment_intent.amount_capturable_updated", &intent), pi(PaymentKind::Authorized, Some(1300)));
    // An attempt that failed may be followed by one about another amount.
    assert_eq!(told("payment_intent.payment_failed", &intent), pi(PaymentKind::Failed, None));
    assert_eq!(told("payment_intent.canceled", &intent), pi(PaymentKind::Canceled, None));
    let fact = fact("payment_intent.succeeded", &intent);
    assert_eq!(fact.money.currency, Currency::new("EUR"));
    assert_eq!(fact.email.as_deref(), Some("jo@example.org"));
    assert!(matches!(fact.order, Some(OrderRef::Order(id)) if id.as_str() == "O1"));
    let old = json!({"id": "pi_1", "amount": 1500, "currency": "eur"});
    assert_eq!(told("payment_intent.succeeded", &old), pi(PaymentKind::Captured, Some(1500)));
    assert!(is_ignored("payment_intent.amount_capturable_updated", &json!({"id": "pi_1", "amount_capturable": 0})));
}

#[test]
fn checkout_sessions() {
    let session = |status: &str, intent: Value| {
        json!({"id": "cs_1", "mode": "payment", "payment_status": status, "payment_intent": intent, "amount_total": 900,
            "currency": "usd", "client_reference_id": "O1", "customer_details": {"email": "jo@example.org"}})
    };
    let completed = "checkout.session.completed";
    let pi = json!("pi_1");
    let id = |id: &str| id.to_owned();
    assert_eq!(told(completed, &session("paid", pi.clone())), (id("pi_1"), PaymentKind::Captured, Some(900)));
    assert_eq!(
        told(completed, &session("no_payment_required", json!(null))),
        (id("cs_1"), PaymentKind::Captured, Some(900))
    );
    assert_eq!(told(completed, &session("unpaid", json!({"id": "pi_1"}))), (id("pi_1"), PaymentKind::Named, None));
    let later = "checkout.session.async_payment_succeeded";
    assert_eq!(told(later, &session("paid", pi.clone())), (id("pi_1"), PaymentKind::Captured, Some(900)));
    let failed = "checkout.session.async_payment_failed";
    assert_eq!(told(failed, &session("unpaid", pi.clone())), (id("pi_1"), PaymentKind::Failed, None));
    let expired = "checkout.session.expired";
    assert_eq!(told(expired, &session("unpaid", json!(null))), (id("cs_1"), PaymentKind::Canceled, None));
    assert_eq!(told(expired, &session("unpaid", pi.clone())), (id("pi_1"), PaymentKind::Canceled, None));
    let fact = fact(completed, &session("paid", pi));
    assert_eq!(fact.email.as_deref(), Some("jo@example.org"));
    assert!(matches!(fact.order, Some(OrderRef::Order(id)) if id.as_str() == "O1"));
    assert!(is_ignored(completed, &json!({"id": "cs_1", "mode": "setup", "payment_status": "no_payment_required"})));
    assert!(receive(completed, &json!({"id": "cs_1"})).unwrap_err().detail.contains("payment_status"));
}

#[test]
fn charges() {
    let with = |more: Value| {
        let mut charge = json!({"id": "ch_1", "payment_intent": "pi_1", "amount": 1000, "captured": true,
            "currency": "eur", "billing_details": {"email": "jo@example.org"}});
        charge.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        charge
    };
    let pi = |kind: PaymentKind, amount: Option<u64>| ("pi_1".to_owned(), kind, amount);
    let refunded = |more: Value| told("charge.refunded", &with(more)).1;
    assert_eq!(refunded(json!({"amount_refunded": 400})), PaymentKind::Refunded(400));
    assert_eq!(
        refunded(json!({"amount_captured": 1000, "amount_refunded": 1000, "refunded": true})),
        PaymentKind::Refunded(1000)
    );
    assert_eq!(fact("charge.refunded", &with(json!({"amount_refunded": 1}))).email.as_deref(), Some("jo@example.org"));
    assert_eq!(told("charge.captured", &with(json!({"amount_captured": 800}))), pi(PaymentKind::Captured, Some(800)));
    assert_eq!(told("charge.captured", &with(json!({}))), pi(PaymentKind::Captured, Some(1000)));
    assert_eq!(told("charge.expired", &with(json!({"captured": false}))), pi(PaymentKind::Canceled, None));
    assert_eq!(told("charge.expired", &with(json!({"payment_intent": null}))).0, "ch_1");
    assert!(receive("charge.refunded", &with(json!({}))).unwrap_err().detail.contains("amount_refunded"));
}

#[test]
fn an_authorisation_that_is_let_go_is_no_refund() {
    let charge = json!({"id": "ch_1", "payment_intent": {"id": "pi_1"}, "amount": 1000, "captured": false,
        "amount_captured": 0, "amount_refunded": 1000, "refunded": true});
    assert_eq!(told("charge.refunded", &charge), ("pi_1".to_owned(), PaymentKind::Canceled, None));
}

#[test]
fn what_was_never_captured_was_never_given_back() {
    let charge = |refunded: u64, full: bool| {
        json!({"id": "ch_1", "payment_intent": "pi_1", "amount": 1000, "amount_captured": 700, "captured": true,
            "amount_refunded": refunded, "refunded": full})
    };
    assert!(is_ignored("charge.refunded", &charge(300, false)));
    assert_eq!(told("charge.refunded", &charge(500, false)).1, PaymentKind::Refunded(200));
    assert_eq!(told("charge.refunded", &charge(1000, true)).1, PaymentKind::Refunded(700));
    assert_eq!(told("charge.refunded", &charge(700, true)).1, PaymentKind::Refunded(700));
}

#[test]
fn refunds_and_disputes_carry_their_own_id() {
    let refund =
        |status: &str| json!({"id": "re_1", "amount": 5, "charge": "ch_1", "payment_intent": null, "status": status});
    for (kind, object) in [
        ("refund.failed", refund("failed")),
        ("refund.updated", refund("failed")),
        ("refund.updated", refund("canceled")),
        ("refund.created", refund("failed")),
        ("charge.refund.updated", refund("failed")),
    ] {
        let fact = fact(kind, &object);
        assert_eq!((fact.kind, fact.payment.payment_id.as_str()), (PaymentKind::RefundFailed, "ch_1"));
        assert_eq!((fact.reference.unwrap().as_str(), fact.money), ("re_1", Money::default()));
    }
    let through = fact("refund.updated", &refund("succeeded"));
    assert_eq!((through.kind, through.reference.unwrap().as_str()), (PaymentKind::RefundSucceeded, "re_1"));
    for status in ["pending", "requires_action"] {
        assert!(is_ignored("refund.created", &refund(status)) && is_ignored("refund.updated", &refund(status)));
    }
    let dispute = json!({"id": "dp_1", "charge": {"id": "ch_1"}, "payment_intent": "pi_1", "amount": 5});
    let fact = fact("charge.dispute.created", &dispute);
    assert_eq!((fact.kind, fact.payment.payment_id.as_str()), (PaymentKind::Disputed, "pi_1"));
    assert_eq!(fact.reference.unwrap().as_str(), "dp_1");
    assert!(receive("refund.failed", &json!({"id": "re_1"})).unwrap_err().detail.contains("charge"));
}

#[test]
fn a_hold_goes_before_an_order_goes_before_the_reference() {
    let order = |metadata: Value| {
        fact("payment_intent.canceled", &json!({"id": "pi_1", "metadata": metadata, "client_reference_id": "C"})).order
    };
    let is_order =
        |found: Option<OrderRef>, name: &str| matches!(found, Some(OrderRef::Order(id)) if id.as_str() == name);
    let hold = HoldId::parse(HOLD).map(OrderRef::Hold);
    assert_eq!(order(json!({"hold_id": HOLD, "order_id": "O"})), hold);
    assert!(is_order(order(json!({"hold_id": "h_1", "order_id": "O"})), "O"), "not a hold of ours");
    assert!(is_order(order(json!({"order_id": "O"})), "O"));
    assert!(is_order(order(json!({"order_id": HOLD})), HOLD), "the merchant says that it is an order");
    for none in [json!({}), json!(null), json!([1]), json!({"order_id": 7}), json!({"order_id": "a\nb"})] {
        assert!(is_order(order(none), "C"));
    }
    let session = json!({"id": "cs_1", "payment_status": "unpaid", "client_reference_id": HOLD});
    assert_eq!(fact("checkout.session.completed", &session).order, hold);
    let nothing = json!({"id": "pi_1", "client_reference_id": null});
    assert_eq!(fact("payment_intent.canceled", &nothing).order, None);
}

#[test]
fn other_kinds_are_ignored_whatever_is_in_them() {
    for kind in ["customer.created", "charge.succeeded", "payment_intent.created", "payment_intent.processing", "x"] {
        assert!(is_ignored(kind, &json!(null)), "{kind}");
    }
}

#[test]
fn events_of_the_other_mode_are_ignored() {
    let mode = |live: Value, expect| {
        let event = json!({"id": "evt_1", "object": "event", "livemode": live, "type": "payment_intent.canceled",
            "data": {"object": {"id": "pi_1"}}});
        facts(event.to_string().as_bytes(), expect).unwrap().ignored.is_some()
    };
    assert!(mode(json!(false), Some(true)) && mode(json!(true), Some(false)) && mode(json!(null), Some(true)));
    assert!(!mode(json!(true), Some(true)) && !mode(json!(false), None));
}

#[test]
fn what_we_act_on_is_read_strictly() {
    let succeeded = "payment_intent.succeeded";
    for amount in [json!("1500"), json!(-1), json!(15.5), json!(1.5e3), json!(u64::MAX), json!({})] {
        let error = receive(succeeded, &json!({"id": "pi_1", "amount_received": amount})).unwrap_err();
        assert!(error.detail.starts_with("data.object.amount_received must be"), "{error}");
    }
    for object in [
        json!(null),
        json!([]),
        json!({}),
        json!({"id": ""}),
        json!({"id": "pi\u{7}"}),
        json!({"id": "p".repeat(256)}),
        json!({"id": 5}),
        json!({"id": "pi_1", "currency": "euro"}),
    ] {
        assert!(receive(succeeded, &object).is_err(), "{object}");
    }
    assert!(receive("charge.expired", &json!({"id": "ch_1", "payment_intent": 7})).is_err());
    assert!(receive("charge.expired", &json!({"id": "ch_1", "payment_intent": {}})).is_err());
    for event in [
        r#"{"id":"evt_1","object":"v2.core.event","type":"v1.billing.meter.no_meter_found"}"#,
        r#"{"id":"evt_1","type":"payment_intent.succeeded"}"#,
        r#"{"id":"evt_1","object":"list","type":"payment_intent.succeeded"}"#,
        r#"{"object":"event","type":"payment_intent.succeeded"}"#,
        r#"{"id":"evt_1","object":"event"}"#,
        r#"{"id":"evt_1","object":"event","type":"payment_intent.succeeded"}"#,
        r#"{"id":"evt_1","object":"event","type":"x","livemode":"yes"}"#,
        "[]",
        "",
        "\u{feff}{}",
    ] {
        assert!(facts(event.as_bytes(), None).is_err(), "{event}");
    }
    let thin = facts(br#"{"id":"e","object":"v2.core.event","type":"x"}"#, None).unwrap_err();
    assert!(thin.detail.contains("snapshot"), "{thin}");
}

#[test]
fn an_intent_that_was_looked_up_tells_the_same_facts() {
    let look = |intent: Value| facts_of_intent(&intent).unwrap();
    let intent = |status: &str| {
        json!({"id": "pi_1", "status": status, "amount": 1000, "amount_received": 1000, "amount_capturable": 1000,
            "currency": "eur", "metadata": {"order_id": "O"}, "latest_charge": "ch_1"})
    };
    for (status, kinds) in [
        ("succeeded", vec![PaymentKind::Captured]),
        ("requires_capture", vec![PaymentKind::Authorized]),
        ("canceled", vec![PaymentKind::Canceled]),
        ("requires_action", vec![]),
        ("processing", vec![]),
    ] {
        let told = look(intent(status));
        assert_eq!(told.iter().map(|f| f.kind).collect::<Vec<_>>(), kinds, "{status}");
        assert!(told.iter().all(|f| f.order.is_some() && f.event_id.as_str().starts_with("look:pi_1:")));
    }
    let mut refunded = intent("succeeded");
    refunded["latest_charge"] = json!({"id": "ch_1", "payment_intent": "pi_1", "amount": 1000, "amount_captured": 1000,
        "captured": true, "amount_refunded": 1000, "refunded": true});
    let told = look(refunded);
    assert!(told.iter().all(|f| f.payment.payment_id.as_str() == "pi_1"));
    assert_eq!(told.iter().map(|f| f.kind).collect::<Vec<_>>(), [PaymentKind::Captured, PaymentKind::Refunded(1000)]);
    assert_eq!(
        told.iter().map(|f| f.event_id.as_str()).collect::<Vec<_>>(),
        ["look:pi_1:captured:1000", "look:pi_1:refunded:1000"],
        "two facts with one name would be one"
    );
    let mut other = intent("succeeded");
    other["id"] = json!("PI_1");
    assert_ne!(look(other)[0].event_id, told[0].event_id, "ids are told apart byte by byte");
    let mut canceled = intent("canceled");
    canceled["latest_charge"] = json!({"id": "ch_1", "captured": false, "amount_refunded": 1000});
    assert_eq!(look(canceled).len(), 1);
    assert!(facts_of_intent(&json!({"id": "pi_1"})).is_err());
}
