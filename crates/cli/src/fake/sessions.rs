//! Checkout sessions: the provider's own payment page, and the shopper who pays there. Must never take money in a
//! session that is not open.

use super::books::Books;
use super::error::Refused;
use super::form::Form;
use super::intents::Making;
use super::objects::{Session, SessionStatus};
use serde_json::Value;

/// A session may expire from half an hour to a day after it was made.
const SHORTEST: i64 = 30 * 60;
const LONGEST: i64 = 24 * 3600;

impl Books {
    /// `POST /v1/checkout/sessions`
    pub(super) fn create_session(&mut self, mut form: Form) -> Result<Value, Refused> {
        let mode = form.word("mode", &["payment"])?;
        mode.ok_or_else(|| Refused::missing_parameter("mode"))?;
        let (amount_total, currency) = total(&mut form)?;
        let client_reference_id = form.text("client_reference_id");
        let email = form.text("customer_email");
        let metadata = form.metadata("metadata")?;
        let for_intent = form.metadata("payment_intent_data[metadata]")?;
        let is_manual =
            form.word("payment_intent_data[capture_method]", &["automatic", "automatic_async", "manual"])?;
        let expires_at = form.number("expires_at")?.map(u64::cast_signed);
        let success_url = form.text("success_url");
        form.text("cancel_url");
        form.list("payment_method_types");
        form.done()?;
        success_url.ok_or_else(|| Refused::missing_parameter("success_url"))?;
        if client_reference_id.as_ref().is_some_and(|id| id.chars().count() > 200) {
            let fault = "client_reference_id has up to 200 characters.";
            return Err(Refused::parameter(None, "client_reference_id", fault));
        }
        let expires_at = expires_at.unwrap_or(self.now + LONGEST);
        if !(self.now + SHORTEST..=self.now + LONGEST).contains(&expires_at) {
            let fault = "The expires_at timestamp must be from 30 minutes to 24 hours from Checkout Session creation.";
            return Err(Refused::parameter(None, "expires_at", fault));
        }
        let session = Session {
            id: self.id("cs_test"),
            status: SessionStatus::Open,
            amount_total,
            currency,
            client_reference_id,
            email,
            metadata,
            for_intent,
            is_manual: is_manual == Some("manual"),
            intent: None,
            expires_at,
            created: self.now,
        };
        let view = session.view();
        self.sessions.put(&session.id.clone(), session);
        Ok(view)
    }

    fn session(&mut self, id: &str) -> Result<&mut Session, Refused> {
        self.sessions.get_mut(id).ok_or_else(|| Refused::no_such("checkout.session", id, "session"))
    }

    /// `GET /v1/checkout/sessions/{id}`
    pub(super) fn retrieve_session(&mut self, id: &str, form: Form) -> Result<Value, Refused> {
        form.done()?;
        self.session(id).map(|session| session.view())
    }

    /// `POST /v1/checkout/sessions/{id}/expire`: only while it is open.
    pub(super) fn expire_session(&mut self, id: &str, form: Form) -> Result<Value, Refused> {
        form.done()?;
        let session = self.session(id)?;
        only_open(session, "expired")?;
        session.status = SessionStatus::Expired;
        let (view, intent) = (session.view(), session.intent.clone());
        self.tell("checkout.session.expired", intent.as_deref().unwrap_or(id), view.clone());
        if let Some(intent) = intent {
            self.end(&intent, Some("expired"));
        }
        Ok(view)
    }

    /// The shopper pays with this card. A declined one may be followed by another.
    pub(super) fn pay_session(&mut self, id: &str, card: &str) -> Result<Value, Refused> {
        let session = self.session(id)?;
        only_open(session, "paid")?;
        let session = session.clone();
        let intent = match session.intent {
            Some(intent) => intent,
            None => {
                let intent = self.make_intent(Making {
                    amount: session.amount_total,
                    currency: session.currency,
                    is_manual: session.is_manual,
                    metadata: session.for_intent,
                    receipt_email: session.email,
                    session: Some(session.id),
                });
                self.tell_intent("payment_intent.created", &intent);
                self.session(id)?.intent = Some(intent.clone());
                intent
            }
        };
        self.charge(&intent, card, None)?;
        let session = self.session(id)?;
        session.status = SessionStatus::Complete;
        let view = session.view();
        self.tell("checkout.session.completed", &intent, view.clone());
        Ok(view)
    }
}

fn only_open(session: &Session, done: &str) -> Result<(), Refused> {
    if session.status == SessionStatus::Open {
        return Ok(());
    }
    let status = session.status.as_str();
    Err(Refused::plain(format!(
        "Only Checkout Sessions with a status in [\"open\"] can be {done}. This Checkout Session has a status of {status}."
    )))
}

/// What all lines come to, and in which currency.
fn total(form: &mut Form) -> Result<(u64, String), Refused> {
    let (mut total, mut currency) = (0, None);
    for n in (0..).take_while(|n| *n < 100) {
        if !form.has_item("line_items", n) {
            break;
        }
        let field = |name: &str| format!("line_items[{n}]{name}");
        let quantity = form.number(&field("[quantity]"))?.unwrap_or(1);
        let name = field("[price_data][unit_amount]");
        let each = form.amount(&name)?.ok_or_else(|| Refused::missing_parameter(&name))?;
        let name = field("[price_data][product_data][name]");
        form.text(&name).ok_or_else(|| Refused::missing_parameter(&name))?;
        let name = field("[price_data][currency]");
        let told = form.currency(&name)?;
        if currency.as_ref().is_some_and(|currency| *currency != told) {
            return Err(Refused::parameter(None, &name, "All lines must have the same currency."));
        }
        currency = Some(told);
        total += quantity.saturating_mul(each);
    }
    match currency {
        Some(currency) if (1..=99_999_999).contains(&total) => Ok((total, currency)),
        Some(_) => Err(Refused::parameter(None, "line_items", "The total must have 1 to 8 digits and not be 0.")),
        None => Err(Refused::missing_parameter("line_items")),
    }
}
