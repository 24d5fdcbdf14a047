//! Our own format, for a provider of your own: Standard Webhooks with `{"type":"payment.captured","data":{…}}`.
//!
//! Nobody else defines it, so that what is wrong is told instead of passed over; only members we do not know are ignored.

use super::{BadEvent, Object, Received, provider, read_json};
use holdfast_domain::{HoldId, Money, OrderId, OrderRef, PaymentFact, PaymentKey, PaymentKind, Ref};

/// Reads an event; `id` is the header `webhook-id`.
pub(crate) fn facts(id: &str, body: &[u8]) -> Result<Received, BadEvent> {
    let json = read_json(body)?;
    let event = Object::new(&json, "")?;
    let event_id = Ref::new(id).map_err(|e| BadEvent::new(format!("webhook-id {e}")))?;
    let event_type = event.required("type")?;
    let kind = event_type.as_str().strip_prefix("payment.").unwrap_or(event_type.as_str());
    if !KINDS.contains(&kind) {
        return Ok(Received::new(event_id, event_type, None, Err("of a kind that says nothing about orders")));
    }
    let fact = fact(&event_id, kind, &event.object("data")?)?;
    Ok(Received::new(event_id, event_type, None, Ok(vec![fact])))
}

const KINDS: [&str; 9] = [
    "authorized",
    "captured",
    "failed",
    "canceled",
    "refunded",
    "capture_failed",
    "refund_failed",
    "disputed",
    "named",
];

fn fact(event_id: &Ref, kind: &str, data: &Object<'_>) -> Result<PaymentFact, BadEvent> {
    let amount = data.amount("amount")?;
    let kind = match kind {
        "authorized" => PaymentKind::Authorized,
        "captured" => PaymentKind::Captured,
        "failed" => PaymentKind::Failed,
        "canceled" => PaymentKind::Canceled,
        "capture_failed" => PaymentKind::CaptureFailed,
        "refund_failed" => PaymentKind::RefundFailed,
        "disputed" => PaymentKind::Disputed,
        "refunded" => {
            let total = data.amount("refunded")?.or(amount);
            PaymentKind::Refunded(total.ok_or_else(|| data.bad("refunded", "is missing: the sum given back so far"))?)
        }
        _ => PaymentKind::Named,
    };
    let brings = matches!(kind, PaymentKind::Authorized | PaymentKind::Captured);
    Ok(PaymentFact {
        event_id: event_id.clone(),
        payment: PaymentKey { provider: provider("standard")?, payment_id: data.required("payment_id")? },
        kind,
        order: order(data)?,
        money: Money { amount: amount.filter(|_| brings), currency: data.currency("currency")? },
        email: data.email("email"),
        reference: data.reference("reference")?,
    })
}

fn order(data: &Object<'_>) -> Result<Option<OrderRef>, BadEvent> {
    if let Some(text) = data.text("hold_id")? {
        let id = HoldId::parse(text).ok_or_else(|| data.bad("hold_id", "must be the id of a hold"))?;
        return Ok(Some(OrderRef::Hold(id)));
    }
    let Some(text) = data.text("order_id")? else { return Ok(None) };
    OrderId::new(text).map(|id| Some(OrderRef::Order(id))).map_err(|e| data.bad("order_id", &e.to_string()))
}

/// A captured payment.
#[cfg(test)]
pub(crate) const EXAMPLE: &str = r#"{"type":"payment.captured","timestamp":"2026-11-30T12:04:10Z","data":{"payment_id":"pay_81","order_id":"ORDER-1","amount":15000,"currency":"USD","email":"jo@example.org"}}"#;

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::Currency;
    use serde_json::{Value, json};

    fn receive(kind: &str, data: &Value) -> Result<Received, BadEvent> {
        facts("msg_1", json!({"type": kind, "data": data}).to_string().as_bytes())
    }

    fn fact(kind: &str, data: &Value) -> PaymentFact {
        receive(kind, data).unwrap().facts.remove(0)
    }

    #[test]
    fn the_example_says_it_all() {
        let received = facts("msg_1", EXAMPLE.as_bytes()).unwrap();
        assert_eq!((received.event_id.as_str(), received.event_type.as_str()), ("msg_1", "payment.captured"));
        let fact = &received.facts[0];
        assert_eq!((fact.payment.to_string(), fact.kind), ("standard:pay_81".to_owned(), PaymentKind::Captured));
        assert_eq!(fact.money, Money { amount: Some(15000), currency: Currency::new("USD") });
        assert_eq!(fact.email.as_deref(), Some("jo@example.org"));
        assert_eq!((&fact.event_id, fact.reference.as_ref()), (&received.event_id, None));
        assert!(matches!(&fact.order, Some(OrderRef::Order(id)) if id.as_str() == "ORDER-1"));
    }

    #[test]
    fn kinds_with_and_without_the_prefix() {
        let data = json!({"payment_id": "p", "amount": 700, "reference": "r1", "surprise": [1]});
        for (name, kind) in [
            ("authorized", PaymentKind::Authorized),
            ("captured", PaymentKind::Captured),
            ("failed", PaymentKind::Failed),
            ("canceled", PaymentKind::Canceled),
            ("refunded", PaymentKind::Refunded(700)),
            ("capture_failed", PaymentKind::CaptureFailed),
            ("refund_failed", PaymentKind::RefundFailed),
            ("disputed", PaymentKind::Disputed),
            ("named", PaymentKind::Named),
        ] {
            for name in [name.to_owned(), format!("payment.{name}")] {
                let fact = fact(&name, &data);
                assert_eq!(fact.kind, kind, "{name}");
                assert_eq!(fact.reference.unwrap().as_str(), "r1");
                let brings = matches!(kind, PaymentKind::Authorized | PaymentKind::Captured);
                assert_eq!(fact.money.amount, brings.then_some(700), "{name}");
            }
        }
        for unknown in ["payment.pondered", "payment.payment.captured", "Captured", "order.captured"] {
            let received = receive(unknown, &json!(null)).unwrap();
            assert!(received.facts.is_empty() && received.ignored.is_some(), "{unknown}");
        }
        assert_eq!(
            fact("refunded", &json!({"payment_id": "p", "amount": 700, "refunded": 300})).kind,
            PaymentKind::Refunded(300)
        );
    }

    #[test]
    fn a_hold_goes_before_an_order() {
        let id = "0198c7f2-0000-7000-8000-000000000001";
        let both = json!({"payment_id": "p", "order_id": "O", "hold_id": id});
        assert_eq!(fact("captured", &both).order, HoldId::parse(id).map(OrderRef::Hold));
        let looks_so = json!({"payment_id": "p", "order_id": id});
        assert!(matches!(fact("captured", &looks_so).order, Some(OrderRef::Order(_))));
        assert_eq!(fact("captured", &json!({"payment_id": "p"})).order, None);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (data, place) in [
            (json!(null), "data"),
            (json!({}), "data.payment_id"),
            (json!({"payment_id": ""}), "data.payment_id"),
            (json!({"payment_id": "p\n"}), "data.payment_id"),
            (json!({"payment_id": "p", "hold_id": "h_1"}), "data.hold_id"),
            (json!({"payment_id": "p", "order_id": " O"}), "data.order_id"),
            (json!({"payment_id": "p", "amount": "15000"}), "data.amount"),
            (json!({"payment_id": "p", "amount": -1}), "data.amount"),
            (json!({"payment_id": "p", "currency": "dollars"}), "data.currency"),
            (json!({"payment_id": "p", "reference": 7}), "data.reference"),
        ] {
            let error = receive("captured", &data).unwrap_err();
            assert_eq!(error.detail.split(' ').next(), Some(place), "{data}");
        }
        assert!(receive("refunded", &json!({"payment_id": "p"})).unwrap_err().detail.contains("refunded"));
        assert!(facts("", EXAMPLE.as_bytes()).unwrap_err().detail.contains("webhook-id"));
        assert!(facts("msg_1", b"{\"type\":").is_err());
        assert_eq!(fact("captured", &json!({"payment_id": "p", "email": "nobody"})).email, None);
    }
}
