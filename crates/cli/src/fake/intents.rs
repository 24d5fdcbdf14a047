//! PaymentIntents: making, confirming, capturing and canceling them, and what the bank does to their charges. Must
//! never take money twice for one intent, nor from a canceled one.

use super::books::Books;
use super::error::Refused;
use super::form::{Form, Metadata};
use super::objects::{Charge, Intent, IntentStatus, Refund, RefundStatus};
use serde_json::{Value, json};

/// Cards that pay, and cards that do not.
const GOOD_CARDS: &[&str] = &["pm_card_visa", "pm_card_mastercard"];
const BAD_CARDS: &[(&str, &str)] =
    &[("pm_card_chargeDeclined", "generic_decline"), ("pm_card_chargeDeclinedInsufficientFunds", "insufficient_funds")];

const CANCELABLE: &[IntentStatus] =
    &[IntentStatus::RequiresPaymentMethod, IntentStatus::RequiresCapture, IntentStatus::RequiresConfirmation];

/// What a new intent is made of.
pub(super) struct Making {
    pub(super) amount: u64,
    pub(super) currency: String,
    pub(super) is_manual: bool,
    pub(super) metadata: Metadata,
    pub(super) receipt_email: Option<String>,
    pub(super) session: Option<String>,
}

/// Whether the bank says yes to this card; the decline code if not.
fn ask_bank(card: &str, scripted: Option<&'static str>) -> Result<Option<&'static str>, Refused> {
    let declined = BAD_CARDS.iter().find(|(bad, _)| *bad == card).map(|(_, code)| *code);
    if declined.is_none() && !GOOD_CARDS.contains(&card) {
        return Err(Refused::no_such("PaymentMethod", card, "payment_method"));
    }
    Ok(declined.or(scripted))
}

impl Books {
    /// `POST /v1/payment_intents`
    pub(super) fn create_intent(&mut self, mut form: Form, decline: Option<&'static str>) -> Result<Value, Refused> {
        let amount = form.amount("amount")?.ok_or_else(|| Refused::missing_parameter("amount"))?;
        let currency = form.currency("currency")?;
        let methods = ["automatic", "automatic_async", "manual"];
        let manual = form.word("capture_method", &methods)? == Some("manual");
        let card_manual = form.word("payment_method_options[card][capture_method]", &["manual"])?.is_some();
        let metadata = form.metadata("metadata")?;
        let receipt_email = form.text("receipt_email");
        let card = form.text("payment_method");
        let is_confirmed = form.flag("confirm")?;
        // Taken, and without effect here: cards are all there is, and nobody is sent to another page.
        form.list("payment_method_types");
        form.text("description");
        form.text("return_url");
        form.flag("automatic_payment_methods[enabled]")?;
        form.word("automatic_payment_methods[allow_redirects]", &["always", "never"])?;
        form.done()?;
        if let Some(card) = &card {
            ask_bank(card, None)?;
        }
        if is_confirmed && card.is_none() {
            return Err(Refused::missing_parameter("payment_method"));
        }
        let is_manual = manual || card_manual;
        let id = self.make_intent(Making { amount, currency, is_manual, metadata, receipt_email, session: None });
        if let (Some(card), Some(intent)) = (&card, self.intents.get_mut(&id)) {
            intent.payment_method = Some(card.clone());
            intent.status = IntentStatus::RequiresConfirmation;
        }
        self.tell_intent("payment_intent.created", &id);
        match card {
            Some(card) if is_confirmed => self.charge(&id, &card, decline),
            _ => self.intent(&id).map(|intent| intent.brief()),
        }
    }

    /// Puts a new intent on the shelf; its id.
    pub(super) fn make_intent(&mut self, making: Making) -> String {
        let id = self.id("pi");
        let Making { amount, currency, is_manual, metadata, receipt_email, session } = making;
        let intent = Intent {
            id: id.clone(),
            amount,
            currency,
            is_manual,
            status: IntentStatus::RequiresPaymentMethod,
            amount_capturable: 0,
            amount_received: 0,
            payment_method: None,
            receipt_email,
            metadata,
            latest_charge: None,
            last_payment_error: Value::Null,
            canceled_at: None,
            cancellation_reason: None,
            session,
            created: self.now,
        };
        self.intents.put(&id, intent);
        id
    }

    fn intent(&mut self, id: &str) -> Result<&mut Intent, Refused> {
        self.intents.get_mut(id).ok_or_else(|| Refused::no_such("payment_intent", id, "intent"))
    }

    /// `GET /v1/payment_intents/{id}`
    pub(super) fn retrieve_intent(&mut self, id: &str, mut form: Form) -> Result<Value, Refused> {
        let expand = form.list("expand");
        form.text("client_secret");
        form.done()?;
        if let Some(other) = expand.iter().find(|name| *name != "latest_charge") {
            let fault = format!("This property cannot be expanded ({other}).");
            return Err(Refused::parameter(None, "expand", fault));
        }
        let intent = self.intent(id)?.clone();
        let charge = intent.latest_charge.as_ref().and_then(|id| self.charges.get(id));
        Ok(match charge {
            Some(charge) if !expand.is_empty() => intent.view(&charge.view()),
            _ => intent.brief(),
        })
    }

    /// `POST /v1/payment_intents/{id}/confirm`
    pub(super) fn confirm(
        &mut self,
        id: &str,
        mut form: Form,
        decline: Option<&'static str>,
    ) -> Result<Value, Refused> {
        let card = form.text("payment_method");
        form.text("return_url");
        form.text("client_secret");
        form.done()?;
        let intent = self.intent(id)?;
        if !matches!(intent.status, IntentStatus::RequiresPaymentMethod | IntentStatus::RequiresConfirmation) {
            let message = format!(
                "You cannot confirm this PaymentIntent because it has a status of {}. Only a PaymentIntent with one of the following statuses may be confirmed: requires_payment_method, requires_confirmation, requires_action.",
                intent.status.as_str()
            );
            return Err(Refused::state(message, intent.brief()));
        }
        let Some(card) = card.or_else(|| intent.payment_method.clone()) else {
            let message = "You cannot confirm this PaymentIntent because it is missing a payment method. Tell one as payment_method.";
            return Err(Refused::state(message, intent.brief()));
        };
        self.charge(id, &card, decline)
    }

    /// The bank is asked for the money of an intent that may be confirmed.
    pub(super) fn charge(&mut self, id: &str, card: &str, decline: Option<&'static str>) -> Result<Value, Refused> {
        let failure = ask_bank(card, decline)?;
        let (charge_id, now) = (self.id("ch"), self.now);
        let intent = self.intent(id)?;
        let is_captured = failure.is_none() && !intent.is_manual;
        let charge = Charge {
            id: charge_id.clone(),
            intent: intent.id.clone(),
            amount: intent.amount,
            amount_captured: if is_captured { intent.amount } else { 0 },
            amount_refunded: 0,
            currency: intent.currency.clone(),
            is_captured,
            is_disputed: false,
            failure,
            receipt_email: intent.receipt_email.clone(),
            metadata: intent.metadata.clone(),
            created: now,
        };
        intent.latest_charge = Some(charge_id.clone());
        intent.last_payment_error = Value::Null;
        let (of_charge, of_intent) = match failure {
            Some(code) => {
                intent.payment_method = None;
                intent.status = IntentStatus::RequiresPaymentMethod;
                intent.last_payment_error = Refused::declined(code, Value::Null).as_payment_error();
                ("charge.failed", "payment_intent.payment_failed")
            }
            None => {
                intent.payment_method = Some(card.to_owned());
                if intent.is_manual {
                    intent.status = IntentStatus::RequiresCapture;
                    intent.amount_capturable = intent.amount;
                    ("charge.succeeded", "payment_intent.amount_capturable_updated")
                } else {
                    intent.status = IntentStatus::Succeeded;
                    intent.amount_received = intent.amount;
                    ("charge.succeeded", "payment_intent.succeeded")
                }
            }
        };
        let view = intent.brief();
        self.charges.put(&charge_id, charge);
        self.tell_charge(of_charge, &charge_id);
        self.tell(of_intent, id, view.clone());
        failure.map_or(Ok(view.clone()), |code| Err(Refused::declined(code, view)))
    }

    /// `POST /v1/payment_intents/{id}/capture`: once only; what is not captured is let go.
    pub(super) fn capture(&mut self, id: &str, mut form: Form) -> Result<Value, Refused> {
        let wanted = form.amount("amount_to_capture")?;
        form.done()?;
        let intent = self.intent(id)?;
        let status = intent.status;
        if status == IntentStatus::Succeeded {
            let message = "This PaymentIntent could not be captured because it has already been captured.";
            return Err(Refused::coded("charge_already_captured", message));
        }
        if status != IntentStatus::RequiresCapture {
            let message = format!(
                "This PaymentIntent could not be captured because it has a status of {}. Only a PaymentIntent with one of the following statuses may be captured: requires_capture.",
                status.as_str()
            );
            return Err(Refused::state(message, intent.brief()));
        }
        let captured = wanted.unwrap_or(intent.amount);
        if captured > intent.amount_capturable {
            let message = "The amount to capture is greater than what can be captured.";
            return Err(Refused::coded("amount_too_large", message));
        }
        let rest = intent.amount - captured;
        intent.status = IntentStatus::Succeeded;
        intent.amount_capturable = 0;
        intent.amount_received = captured;
        let view = intent.brief();
        let charge = intent.latest_charge.clone().unwrap_or_default();
        if let Some(charge) = self.charges.get_mut(&charge) {
            charge.is_captured = true;
            charge.amount_captured = captured;
        }
        self.tell_charge("charge.captured", &charge);
        self.tell("payment_intent.succeeded", id, view.clone());
        if rest > 0 {
            self.let_go_of_rest(&charge, rest);
        }
        Ok(view)
    }

    /// A partial capture shows as a refund of the rest, although that money was never taken.
    fn let_go_of_rest(&mut self, charge: &str, rest: u64) {
        let (id, now) = (self.id("re"), self.now);
        let Some(charge) = self.charges.get_mut(charge) else { return };
        charge.amount_refunded = rest;
        let refund = Refund {
            id: id.clone(),
            intent: charge.intent.clone(),
            charge: charge.id.clone(),
            amount: rest,
            currency: charge.currency.clone(),
            status: RefundStatus::Succeeded,
            reason: None,
            failure_reason: None,
            metadata: Metadata::new(),
            created: now,
        };
        let (payment, charge) = (charge.intent.clone(), charge.id.clone());
        self.tell("refund.created", &payment, refund.view());
        self.refunds.put(&id, refund);
        self.tell_charge("charge.refunded", &charge);
    }

    /// `POST /v1/payment_intents/{id}/cancel`
    pub(super) fn cancel(&mut self, id: &str, mut form: Form) -> Result<Value, Refused> {
        let reasons = ["duplicate", "fraudulent", "requested_by_customer", "abandoned"];
        let reason = form.word("cancellation_reason", &reasons)?;
        form.done()?;
        let intent = self.intent(id)?;
        if !CANCELABLE.contains(&intent.status) {
            let message = format!(
                "You cannot cancel this PaymentIntent because it has a status of {}. Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, requires_action.",
                intent.status.as_str()
            );
            return Err(Refused::state(message, intent.brief()));
        }
        if intent.session.is_some() && intent.status != IntentStatus::RequiresCapture {
            let message =
                "You cannot cancel this PaymentIntent because a Checkout Session made it. Expire the session instead.";
            return Err(Refused::state(message, intent.brief()));
        }
        self.end(id, reason);
        self.intent(id).map(|intent| intent.brief())
    }

    /// Ends an intent that has taken no money. Letting an authorisation go also reads as a refund of its charge.
    pub(super) fn end(&mut self, id: &str, reason: Option<&'static str>) {
        let now = self.now;
        let Ok(intent) = self.intent(id) else { return };
        let was_authorized = intent.status == IntentStatus::RequiresCapture;
        intent.status = IntentStatus::Canceled;
        intent.amount_capturable = 0;
        intent.canceled_at = Some(now);
        intent.cancellation_reason = reason;
        let charge = intent.latest_charge.clone().filter(|_| was_authorized);
        self.tell_intent("payment_intent.canceled", id);
        if let Some(charge) = charge {
            if let Some(charge) = self.charges.get_mut(&charge) {
                charge.amount_refunded = charge.amount;
            }
            self.tell_charge("charge.refunded", &charge);
        }
    }

    /// The bank lets an authorisation lapse.
    pub(super) fn lapse(&mut self, id: &str) -> Result<Value, Refused> {
        let intent = self.intent(id)?;
        if intent.status != IntentStatus::RequiresCapture {
            return Err(Refused::state("Only an authorisation lapses.", intent.brief()));
        }
        let charge = intent.latest_charge.clone().unwrap_or_default();
        self.tell_charge("charge.expired", &charge);
        self.end(id, Some("automatic"));
        self.intent(id).map(|intent| intent.brief())
    }

    /// The shopper's bank takes the payment back; refunds are refused from here on.
    pub(super) fn dispute(&mut self, id: &str) -> Result<Value, Refused> {
        let dispute = self.id("dp");
        let now = self.now;
        let intent = self.intent(id)?;
        let (status, brief) = (intent.status, intent.brief());
        let latest = intent.latest_charge.clone().unwrap_or_default();
        let Some(charge) = self.charges.get_mut(&latest).filter(|_| status == IntentStatus::Succeeded) else {
            return Err(Refused::state("Only money that was taken is disputed.", brief));
        };
        charge.is_disputed = true;
        let view = json!({
            "id": dispute, "object": "dispute", "amount": charge.amount_captured, "charge": charge.id,
            "created": now, "currency": charge.currency, "is_charge_refundable": false, "livemode": false,
            "metadata": {}, "payment_intent": id, "reason": "fraudulent", "status": "needs_response",
        });
        self.tell("charge.dispute.created", id, view.clone());
        Ok(view)
    }
}
