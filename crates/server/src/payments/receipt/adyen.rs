//! Adyen's standard notifications: several items, each signed by itself.
//!
//! What is not signed (`reason`, `eventDate`, `live`, most of `additionalData`) never names money or an order. One item
//! that cannot be used holds up the provider's queue, so only what we act on is read strictly.

use super::{BadEvent, Found, Object, Received, order_or_hold, read_json};
use holdfast_domain::{Currency, Money, PaymentFact, PaymentKey, PaymentKind, Ref};
use serde_json::Value;

/// When the merchant account captures what was authorised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Capture {
    /// When we ask for it.
    #[default]
    Manual,
    /// By itself: an authorisation is as good as a capture.
    Automatic,
}

impl Capture {
    /// Reads `manual` or `automatic`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "manual" => Some(Self::Manual),
            "automatic" => Some(Self::Automatic),
            _ => None,
        }
    }
}

/// One notification, not yet verified.
#[derive(Debug)]
pub(crate) struct Notification {
    /// Whether it is about real money.
    pub(crate) live: Option<bool>,
    /// Its items.
    pub(crate) items: Vec<Item>,
}

/// One item, as it was sent: the signature is over these texts.
#[derive(Debug)]
pub(crate) struct Item {
    place: String,
    psp_reference: String,
    original_reference: String,
    merchant_account: String,
    merchant_reference: String,
    value: String,
    currency: String,
    event_code: String,
    success: String,
    action: Option<String>,
    pub(super) signature: Option<String>,
}

/// Reads a notification; [`super::signature::adyen`] says whether to believe it.
pub(crate) fn read(body: &[u8]) -> Result<Notification, BadEvent> {
    let json = read_json(body)?;
    let root = Object::new(&json, "")?;
    let live = root.text("live")?.and_then(|t| t.parse().ok());
    let Some(Value::Array(items)) = root.get("notificationItems") else {
        return Err(root.bad("notificationItems", "is missing or no list"));
    };
    if items.is_empty() {
        return Err(root.bad("notificationItems", "is empty"));
    }
    let read = |(index, item)| {
        let place = format!("notificationItems[{index}]");
        Item::read(&Object::new(item, place)?.object("NotificationRequestItem")?)
    };
    Ok(Notification { live, items: items.iter().enumerate().map(read).collect::<Result<_, _>>()? })
}

impl Item {
    fn read(item: &Object<'_>) -> Result<Self, BadEvent> {
        let text = |name: &str| item.text(name).map(|t| t.unwrap_or_default().to_owned());
        let (mut value, mut currency) = (String::new(), String::new());
        if item.get("amount").is_some() {
            let amount = item.object("amount")?;
            amount.text("currency")?.unwrap_or_default().clone_into(&mut currency);
            value = match amount.get("value") {
                None => String::new(),
                Some(number) => {
                    number.as_i64().ok_or_else(|| amount.bad("value", "must be a whole number"))?.to_string()
                }
            };
        }
        let success = match item.get("success") {
            Some(Value::Bool(flag)) => flag.to_string(),
            _ => text("success")?,
        };
        let additional = |name: &str| item.get("additionalData")?.get(name)?.as_str().map(str::to_owned);
        Ok(Self {
            place: item.place.to_string(),
            psp_reference: text("pspReference")?,
            original_reference: text("originalReference")?,
            merchant_account: text("merchantAccountCode")?,
            merchant_reference: text("merchantReference")?,
            value,
            currency,
            event_code: text("eventCode")?,
            success,
            action: additional("modification.action"),
            signature: additional("hmacSignature"),
        })
    }

    /// What is signed. Nothing is escaped in it, so that only one part may contain the separator: else the same text
    /// could be cut in two ways.
    pub(super) fn signed_text(&self) -> Option<String> {
        let parts = [
            &self.psp_reference,
            &self.original_reference,
            &self.merchant_account,
            &self.merchant_reference,
            &self.value,
            &self.currency,
            &self.event_code,
            &self.success,
        ];
        let is_clear = parts.iter().enumerate().all(|(at, part)| at == 3 || !part.contains(':'));
        is_clear.then(|| parts.map(String::as_str).join(":"))
    }

    /// What the item tells us. `account` is the merchant account that is ours, if others are told of as well.
    pub(crate) fn received(
        &self,
        live: Option<bool>,
        account: Option<&str>,
        capture: Capture,
    ) -> Result<Received, BadEvent> {
        let bad = |what: &str| BadEvent::new(format!("{}.{what}", self.place));
        let name = |text: &str, what: &str| Ref::new(text).map_err(|e| bad(&format!("{what} {e}")));
        let event_type = name(&self.event_code, "eventCode")?;
        let reference = name(&self.psp_reference, "pspReference")?;
        let event_id = format!("{}:{}:{}", self.event_code, self.psp_reference, self.success);
        let event_id = name(&event_id, "pspReference, with eventCode,")?;
        let found = if account.is_some_and(|ours| ours != self.merchant_account) {
            Err("another merchant account")
        } else {
            self.facts(&event_id, reference, capture)?
        };
        Ok(Received::new(event_id, event_type, live, found))
    }

    fn facts(&self, event_id: &Ref, reference: Ref, capture: Capture) -> Result<Found, BadEvent> {
        let kind = match self.kind(capture)? {
            Ok(kind) => kind,
            Err(why) => return Ok(Err(why)),
        };
        let bad = |what: &str, e: &dyn std::fmt::Display| BadEvent::new(format!("{}.{what} {e}", self.place));
        let is_payment = self.original_reference.is_empty();
        let payment_id = if is_payment {
            reference.clone()
        } else {
            Ref::new(&self.original_reference).map_err(|e| bad("originalReference", &e))?
        };
        // A refund that was told to be through and then failed counts no more; one that was refused never did.
        let is_undone =
            kind == PaymentKind::RefundFailed && self.event_code.starts_with("REFUND") && self.event_code != "REFUND";
        let money = if is_undone || matches!(kind, PaymentKind::Authorized | PaymentKind::Captured) {
            Money { amount: Some(self.amount()?), currency: Some(self.currency()?) }
        } else {
            Money::default()
        };
        Ok(Ok(vec![PaymentFact {
            event_id: event_id.clone(),
            payment: PaymentKey { provider: super::provider("adyen")?, payment_id },
            kind,
            // A modification's reference is whatever its maker wrote there; its payment tells the order.
            order: if is_payment { order_or_hold(&self.merchant_reference) } else { None },
            money,
            email: None,
            reference: (!is_payment).then_some(reference),
        }]))
    }

    fn kind(&self, capture: Capture) -> Result<Result<PaymentKind, &'static str>, BadEvent> {
        const REFUSED: &str = "asked for, and refused by the provider";
        let told = match self.success.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        let success = || told.ok_or_else(|| BadEvent::new(format!("{}.success must be true or false", self.place)));
        Ok(Ok(match self.event_code.as_str() {
            "AUTHORISATION" => match (success()?, capture) {
                (false, _) => PaymentKind::Failed,
                (true, Capture::Manual) => PaymentKind::Authorized,
                (true, Capture::Automatic) => PaymentKind::Captured,
            },
            "CAPTURE" if success()? => PaymentKind::Captured,
            "REFUND" | "CANCELLATION" | "CANCEL_OR_REFUND" if !success()? => PaymentKind::RefundFailed,
            "REFUND" => PaymentKind::RefundedBy(self.amount()?),
            "CAPTURE_FAILED"
            | "TECHNICAL_CANCEL"
            | "REFUND_FAILED"
            | "REFUNDED_REVERSED"
            | "CHARGEBACK"
            | "NOTIFICATION_OF_CHARGEBACK"
            | "EXPIRE"
            | "OFFER_CLOSED"
                if !success()? =>
            {
                return Ok(Err(REFUSED));
            }
            "CAPTURE" | "CAPTURE_FAILED" => PaymentKind::CaptureFailed,
            "CANCELLATION" | "TECHNICAL_CANCEL" | "EXPIRE" => PaymentKind::Canceled,
            "CANCEL_OR_REFUND" => match self.action.as_deref() {
                Some("cancel") => PaymentKind::Canceled,
                Some("refund") => PaymentKind::RefundedBy(self.amount()?),
                _ => return Ok(Err("without additionalData.modification.action: canceled or refunded, nobody knows")),
            },
            "REFUND_FAILED" | "REFUNDED_REVERSED" => PaymentKind::RefundFailed,
            "CHARGEBACK" | "NOTIFICATION_OF_CHARGEBACK" => PaymentKind::Disputed,
            "OFFER_CLOSED" => PaymentKind::Failed,
            _ => return Ok(Err("of a kind that says nothing about orders")),
        }))
    }

    fn amount(&self) -> Result<u64, BadEvent> {
        let amount = self.value.parse().ok().filter(|a| *a <= Money::MAX_AMOUNT);
        amount.ok_or_else(|| {
            BadEvent::new(format!("{}.amount.value must be a whole number from 0 to 2^53 - 1", self.place))
        })
    }

    fn currency(&self) -> Result<Currency, BadEvent> {
        Currency::new(&self.currency)
            .ok_or_else(|| BadEvent::new(format!("{}.amount.currency must be a code of three letters", self.place)))
    }
}

/// An authorisation, as the provider's manual shows it.
#[cfg(test)]
pub(crate) const EXAMPLE: &str = r#"{"live":"false","notificationItems":[{"NotificationRequestItem":{"eventCode":"AUTHORISATION","success":"true","eventDate":"2021-07-17T13:42:40+01:00","pspReference":"7914073381342284","originalReference":"","merchantAccountCode":"TestMerchant","merchantReference":"TestPayment-1407325143704","amount":{"value":1130,"currency":"EUR"},"paymentMethod":"visa","operations":["CANCEL","CAPTURE","REFUND"],"additionalData":{"hmacSignature":"coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="}}}]}"#;

#[cfg(test)]
mod tests;
