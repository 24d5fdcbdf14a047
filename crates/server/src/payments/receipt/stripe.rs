//! Stripe's events as facts. Shapes follow the endpoint's API version, so that only what we act on is read, and strictly.
//!
//! Never believes an event about its order in time (`created` is in seconds, delivery is in no order), and never takes
//! what an attempt asked for what a payment brought.

use super::{BadEvent, Found, Object, Received, order_or_hold, provider, read_json};
use holdfast_domain::{HoldId, Money, OrderId, OrderRef, PaymentFact, PaymentKey, PaymentKind, Ref};
use serde_json::Value;

/// Reads an event. With `expect_livemode`, one of the other mode is ignored.
pub(crate) fn facts(body: &[u8], expect_livemode: Option<bool>) -> Result<Received, BadEvent> {
    let json = read_json(body)?;
    let event = Object::new(&json, "")?;
    match event.text("object")? {
        Some("event") => {}
        Some("v2.core.event") => {
            return Err(BadEvent::new(
                "this is a thin event, which tells nothing: let the endpoint send snapshot events (event destination with payload style \"snapshot\")",
            ));
        }
        _ => return Err(event.bad("object", "must be \"event\"")),
    }
    let (event_id, event_type) = (event.required("id")?, event.required("type")?);
    let livemode = event.flag("livemode")?;
    let is_acted_on = ACTED_ON.contains(&event_type.as_str());
    let found = if !is_acted_on {
        Err("of a kind that says nothing about orders")
    } else if expect_livemode.is_some() && livemode != expect_livemode {
        Err("of the other mode, live or test, than is expected here")
    } else {
        let object = event.object("data")?.object("object")?;
        Told { event_id: &event_id, object: &object }.found(event_type.as_str())?
    };
    Ok(Received::new(event_id, event_type, livemode, found))
}

/// The kinds to let the endpoint send.
pub(crate) const ACTED_ON: [&str; 16] = [
    "payment_intent.succeeded",
    "payment_intent.amount_capturable_updated",
    "payment_intent.payment_failed",
    "payment_intent.canceled",
    "checkout.session.completed",
    "checkout.session.async_payment_succeeded",
    "checkout.session.async_payment_failed",
    "checkout.session.expired",
    "charge.captured",
    "charge.expired",
    "charge.refunded",
    "charge.refund.updated",
    "charge.dispute.created",
    "refund.created",
    "refund.updated",
    "refund.failed",
];

/// What a payment intent (`GET /v1/payment_intents/{id}` with its latest charge) says of its payment now.
pub(crate) fn facts_of_intent(intent: &Value) -> Result<Vec<PaymentFact>, BadEvent> {
    let intent = Object::new(intent, "payment_intent")?;
    let id = intent.required("id")?;
    let event_type = match intent.text("status")? {
        Some("succeeded") => Some("payment_intent.succeeded"),
        Some("requires_capture") => Some("payment_intent.amount_capturable_updated"),
        Some("canceled") => Some("payment_intent.canceled"),
        Some(_) => None,
        None => return Err(intent.bad("status", "is missing")),
    };
    let told = Told { event_id: &id, object: &intent };
    let mut facts = event_type.map_or(Ok(Ok(Vec::new())), |event_type| told.found(event_type))?.unwrap_or_default();
    if matches!(intent.get("latest_charge"), Some(Value::Object(_))) {
        let charge = intent.object("latest_charge")?;
        // Whether it was captured is told above: only what went back is looked for here.
        if charge.flag("captured")? == Some(true) && charge.amount("amount_refunded")?.is_some_and(|a| a > 0) {
            let told = Told { event_id: &id, object: &charge };
            let mut refunded = told.found("charge.refunded")?.unwrap_or_default();
            refunded.iter_mut().for_each(|fact| fact.payment.payment_id.clone_from(&id));
            facts.extend(refunded);
        }
    }
    // No event tells these: a name by which the same fact, looked up again, is known again.
    for fact in &mut facts {
        let (what, amount) = match fact.kind {
            PaymentKind::Refunded(total) => ("refunded", Some(total)),
            PaymentKind::Captured => ("captured", fact.money.amount),
            PaymentKind::Authorized => ("authorized", fact.money.amount),
            _ => ("canceled", None),
        };
        let name = format!("look:{id}:{what}:{}", amount.unwrap_or_default());
        fact.event_id = Ref::new(&name).map_err(|e| intent.bad("id", &e.to_string()))?;
    }
    Ok(facts)
}

struct Told<'a> {
    event_id: &'a Ref,
    object: &'a Object<'a>,
}

impl Told<'_> {
    fn found(&self, event_type: &str) -> Result<Found, BadEvent> {
        match event_type {
            "payment_intent.succeeded" => self.intent(PaymentKind::Captured, "amount_received"),
            "payment_intent.amount_capturable_updated" => match self.object.amount("amount_capturable")? {
                Some(0) => Ok(Err("nothing can be captured any more")),
                _ => self.intent(PaymentKind::Authorized, "amount_capturable"),
            },
            // Of what an attempt would have brought nothing is told: the next one may be about another amount.
            "payment_intent.payment_failed" => self.one(self.id()?, PaymentKind::Failed, Money::default()),
            "payment_intent.canceled" => self.one(self.id()?, PaymentKind::Canceled, Money::default()),
            _ if event_type.starts_with("checkout.session.") => self.session(event_type),
            "charge.captured" => self.charge_captured(),
            "charge.expired" => self.one(self.payment_of_charge()?, PaymentKind::Canceled, Money::default()),
            "charge.refunded" => self.charge_refunded(),
            "charge.dispute.created" => self.about_charge(PaymentKind::Disputed),
            "refund.failed" => self.about_charge(PaymentKind::RefundFailed),
            _ => match self.object.text("status")? {
                Some("failed" | "canceled") => self.about_charge(PaymentKind::RefundFailed),
                Some("succeeded") => self.about_charge(PaymentKind::RefundSucceeded),
                // How much went back in all is told by the charge.
                _ => Ok(Err("the charge tells how much went back")),
            },
        }
    }

    fn id(&self) -> Result<Ref, BadEvent> {
        self.object.required("id")
    }

    fn intent(&self, kind: PaymentKind, amount: &str) -> Result<Found, BadEvent> {
        let amount = match self.object.amount(amount)? {
            None => self.object.amount("amount")?,
            amount => amount,
        };
        self.one(self.id()?, kind, Money { amount, currency: self.object.currency("currency")? })
    }

    fn session(&self, event_type: &str) -> Result<Found, BadEvent> {
        let payment = match expandable(self.object, "payment_intent")? {
            Some(intent) => intent,
            None => self.id()?,
        };
        if self.object.text("mode")? == Some("setup") {
            return Ok(Err("a session that only saves a card"));
        }
        let captured = || {
            let money =
                Money { amount: self.object.amount("amount_total")?, currency: self.object.currency("currency")? };
            self.one(payment.clone(), PaymentKind::Captured, money)
        };
        match event_type {
            "checkout.session.completed" => match self.object.text("payment_status")? {
                Some("paid" | "no_payment_required") => captured(),
                Some("unpaid") => self.one(payment, PaymentKind::Named, Money::default()),
                _ => Err(self.object.bad("payment_status", "must be paid, unpaid or no_payment_required")),
            },
            "checkout.session.async_payment_succeeded" => captured(),
            "checkout.session.async_payment_failed" => self.one(payment, PaymentKind::Failed, Money::default()),
            _ => self.one(payment, PaymentKind::Canceled, Money::default()),
        }
    }

    fn charge_captured(&self) -> Result<Found, BadEvent> {
        let object = self.object;
        let amount = match object.amount("amount_captured")? {
            None => object.amount("amount")?,
            amount => amount,
        };
        let money = Money { amount, currency: object.currency("currency")? };
        self.one(self.payment_of_charge()?, PaymentKind::Captured, money)
    }

    fn charge_refunded(&self) -> Result<Found, BadEvent> {
        let object = self.object;
        let payment = self.payment_of_charge()?;
        if object.flag("captured")? == Some(false) {
            // Letting an authorisation go is told as a refund, too.
            return self.one(payment, PaymentKind::Canceled, Money::default());
        }
        let refunded = object.amount("amount_refunded")?.ok_or_else(|| object.bad("amount_refunded", "is missing"))?;
        let total = match (object.amount("amount")?, object.amount("amount_captured")?) {
            // Of an authorisation captured in part, the rest counts as refunded, though it never was ours.
            (Some(amount), Some(captured)) if captured < amount && object.flag("refunded")? == Some(true) => captured,
            (Some(amount), Some(captured)) if captured < amount => refunded.saturating_sub(amount - captured),
            _ => refunded,
        };
        if total == 0 {
            return Ok(Err("only what was not captured was let go"));
        }
        let money = Money { amount: None, currency: object.currency("currency")? };
        self.one(payment, PaymentKind::Refunded(total), money)
    }

    /// A refund or a dispute: the payment is its charge's, the reference its own id.
    fn about_charge(&self, kind: PaymentKind) -> Result<Found, BadEvent> {
        let payment = match expandable(self.object, "payment_intent")? {
            Some(intent) => intent,
            None => expandable(self.object, "charge")?
                .ok_or_else(|| self.object.bad("charge", "is missing, and payment_intent too"))?,
        };
        let reference = Some(self.id()?);
        Ok(self.one(payment, kind, Money::default())?.map(|mut facts| {
            facts.iter_mut().for_each(|fact| fact.reference.clone_from(&reference));
            facts
        }))
    }

    fn payment_of_charge(&self) -> Result<Ref, BadEvent> {
        match expandable(self.object, "payment_intent")? {
            Some(intent) => Ok(intent),
            None => self.id(),
        }
    }

    fn one(&self, payment_id: Ref, kind: PaymentKind, money: Money) -> Result<Found, BadEvent> {
        Ok(Ok(vec![PaymentFact {
            event_id: self.event_id.clone(),
            payment: PaymentKey { provider: provider("stripe")?, payment_id },
            kind,
            order: self.order(),
            money,
            email: self.email(),
            reference: None,
        }]))
    }

    /// Others may use the same names on a shared account: what cannot be a name of ours is passed over.
    fn order(&self) -> Option<OrderRef> {
        let metadata = |name: &str| self.object.get("metadata")?.get(name)?.as_str();
        if let Some(id) = metadata("hold_id").and_then(HoldId::parse) {
            return Some(OrderRef::Hold(id));
        }
        if let Some(id) = metadata("order_id").and_then(|text| OrderId::new(text).ok()) {
            return Some(OrderRef::Order(id));
        }
        self.object.get("client_reference_id").and_then(Value::as_str).and_then(order_or_hold)
    }

    fn email(&self) -> Option<Box<str>> {
        let nested = |name: &str| self.object.object(name).ok()?.email("email");
        let own = self.object.email("receipt_email");
        own.or_else(|| nested("customer_details")).or_else(|| nested("billing_details"))
    }
}

/// A member that is null, an id, or the object itself.
fn expandable(object: &Object<'_>, name: &str) -> Result<Option<Ref>, BadEvent> {
    match object.get(name) {
        Some(Value::Object(_)) => object.object(name)?.required("id").map(Some),
        _ => object.reference(name),
    }
}

/// A payment in a Checkout session, as the provider sends it.
#[cfg(test)]
pub(crate) const EXAMPLE: &str = r#"{"id":"evt_1","object":"event","api_version":"2026-10-28.endive","created":1760000000,"livemode":false,"pending_webhooks":1,"request":{"id":null,"idempotency_key":null},"type":"checkout.session.completed","data":{"object":{"id":"cs_1","object":"checkout.session","amount_total":15000,"client_reference_id":"ORDER-1","currency":"usd","customer_details":{"email":"jo@example.org"},"metadata":{},"mode":"payment","payment_intent":"pi_1","payment_status":"paid","status":"complete"}}}"#;

#[cfg(test)]
mod tests;
