//! What each of Adyen's events means for us.

use super::*;
use holdfast_domain::OrderRef;
use serde_json::json;

/// An item about the payment PAY1: itself, or a modification MOD1 of it.
fn item(code: &str, success: &str, is_modification: bool) -> Value {
    let (psp, original) = if is_modification { ("MOD1", "PAY1") } else { ("PAY1", "") };
    json!({"eventCode": code, "success": success, "pspReference": psp, "originalReference": original,
        "merchantAccountCode": "Shop", "merchantReference": "ORDER-1", "amount": {"value": 1500, "currency": "EUR"}})
}

fn receive(item: &Value, capture: Capture) -> Result<Received, BadEvent> {
    let body = json!({"live": "false", "notificationItems": [{"NotificationRequestItem": item}]}).to_string();
    let notification = read(body.as_bytes())?;
    assert_eq!((notification.items.len(), notification.live), (1, Some(false)));
    notification.items[0].received(notification.live, Some("Shop"), capture)
}

fn fact(item: &Value) -> PaymentFact {
    let mut received = receive(item, Capture::Manual).unwrap();
    assert_eq!((received.facts.len(), received.ignored), (1, None));
    assert_eq!(received.event_id, received.facts[0].event_id);
    received.facts.remove(0)
}

#[test]
fn an_authorisation_names_the_order_and_the_money() {
    let told = fact(&item("AUTHORISATION", "true", false));
    assert_eq!(told.event_id.as_str(), "AUTHORISATION:PAY1:true");
    assert_eq!(told.payment.to_string(), "adyen:PAY1");
    assert_eq!(told.kind, PaymentKind::Authorized);
    assert!(matches!(&told.order, Some(OrderRef::Order(id)) if id.as_str() == "ORDER-1"));
    assert_eq!(told.money, Money { amount: Some(1500), currency: Currency::new("EUR") });
    let at_once = receive(&item("AUTHORISATION", "true", false), Capture::Automatic).unwrap();
    assert_eq!(at_once.facts[0].kind, PaymentKind::Captured);
    let mut by_hold = item("AUTHORISATION", "true", false);
    by_hold["merchantReference"] = json!("0198c7f2-0000-7000-8000-000000000001");
    assert!(matches!(fact(&by_hold).order, Some(OrderRef::Hold(_))));
    by_hold["merchantReference"] = json!("");
    assert_eq!(fact(&by_hold).order, None);
}

#[test]
fn modifications_are_about_the_original_payment() {
    let mut refund = item("REFUND", "true", true);
    refund["merchantReference"] = json!("refund by somebody else");
    let told = fact(&refund);
    assert_eq!(told.event_id.as_str(), "REFUND:MOD1:true");
    assert_eq!((told.payment.payment_id.as_str(), told.reference.unwrap().as_str()), ("PAY1", "MOD1"));
    assert_eq!(told.order, None, "whatever its maker called it, it names no order");
    assert_eq!(told.money, Money::default(), "what went back is not what the payment brought");
    let mut absent = item("CAPTURE", "true", false);
    absent.as_object_mut().unwrap().remove("originalReference");
    assert_eq!(fact(&absent).payment.payment_id.as_str(), "PAY1");
}

#[test]
fn kinds() {
    let with_action = |action: &str| {
        let mut item = item("CANCEL_OR_REFUND", "true", true);
        item["additionalData"] = json!({"modification.action": action});
        item
    };
    for (item, kind) in [
        (item("AUTHORISATION", "false", false), PaymentKind::Failed),
        (item("CAPTURE", "true", true), PaymentKind::Captured),
        (item("CAPTURE", "false", true), PaymentKind::CaptureFailed),
        (item("CAPTURE_FAILED", "true", true), PaymentKind::CaptureFailed),
        (item("CANCELLATION", "true", true), PaymentKind::Canceled),
        (item("TECHNICAL_CANCEL", "true", true), PaymentKind::Canceled),
        (with_action("cancel"), PaymentKind::Canceled),
        (with_action("refund"), PaymentKind::RefundedBy(1500)),
        (item("REFUND", "true", true), PaymentKind::RefundedBy(1500)),
        (item("REFUND", "false", true), PaymentKind::RefundFailed),
        (item("CANCELLATION", "false", true), PaymentKind::RefundFailed),
        (item("REFUND_FAILED", "true", true), PaymentKind::RefundFailed),
        (item("REFUNDED_REVERSED", "true", true), PaymentKind::RefundFailed),
        (item("CHARGEBACK", "true", true), PaymentKind::Disputed),
        (item("NOTIFICATION_OF_CHARGEBACK", "true", true), PaymentKind::Disputed),
        (item("EXPIRE", "true", true), PaymentKind::Canceled),
        (item("OFFER_CLOSED", "true", false), PaymentKind::Failed),
    ] {
        assert_eq!(fact(&item).kind, kind, "{item}");
    }
    for ignored in [
        item("EXPIRE", "false", true),
        item("CANCEL_OR_REFUND", "true", true),
        item("CHARGEBACK_REVERSED", "true", true),
        item("REPORT_AVAILABLE", "true", false),
        item("VOID_PENDING_REFUND", "true", true),
    ] {
        let received = receive(&ignored, Capture::Manual).unwrap();
        assert!(received.facts.is_empty() && received.ignored.is_some(), "{ignored}");
    }
}

#[test]
fn another_merchant_account_is_not_ours() {
    let mut other = item("AUTHORISATION", "true", false);
    other["merchantAccountCode"] = json!("Elsewhere");
    assert_eq!(receive(&other, Capture::Manual).unwrap().ignored, Some("another merchant account"));
}

#[test]
fn what_we_act_on_is_read_strictly_and_nothing_else() {
    let with = |name: &str, value: Value, code: &str| {
        let mut item = item(code, "true", false);
        item[name] = value;
        receive(&item, Capture::Manual)
    };
    for value in [json!(null), json!({"value": -5, "currency": "EUR"}), json!({"value": 5, "currency": "EURO"})] {
        let error = with("amount", value.clone(), "AUTHORISATION").unwrap_err();
        assert!(error.detail.contains("notificationItems[0].NotificationRequestItem.amount"), "{error}");
        assert!(with("amount", value, "REPORT_AVAILABLE").is_ok());
    }
    for value in [json!({"value": "5", "currency": "EUR"}), json!({"value": 1.5, "currency": "EUR"}), json!(7)] {
        assert!(with("amount", value, "REPORT_AVAILABLE").is_err(), "it cannot even be verified");
    }
    assert!(with("success", json!("maybe"), "AUTHORISATION").is_err());
    assert_eq!(with("success", json!(true), "AUTHORISATION").unwrap().facts[0].kind, PaymentKind::Authorized);
    for (name, value) in [
        ("pspReference", json!("")),
        ("pspReference", json!("a\nb")),
        ("pspReference", json!("x".repeat(300))),
        ("originalReference", json!("a\u{0}")),
        ("eventCode", json!(null)),
    ] {
        assert!(with(name, value, "AUTHORISATION").is_err(), "{name}");
    }
    for body in ["", "[]", "{}", r#"{"notificationItems":[]}"#, r#"{"notificationItems":[{}]}"#, r#"{"live":1}"#] {
        assert!(read(body.as_bytes()).is_err(), "{body}");
    }
}
