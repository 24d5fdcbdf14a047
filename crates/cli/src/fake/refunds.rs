//! Refunds. Must never send back more than was taken.

use super::books::Books;
use super::error::Refused;
use super::form::Form;
use super::objects::{Refund, RefundStatus};
use serde_json::{Value, json};

/// The reasons for which a refund fails.
pub(super) const FAILURES: &[&str] = &[
    "lost_or_stolen_card",
    "expired_or_canceled_card",
    "charge_for_pending_refund_disputed",
    "insufficient_funds",
    "declined",
    "merchant_request",
    "unknown",
];

impl Books {
    /// `POST /v1/refunds`
    pub(super) fn create_refund(&mut self, mut form: Form, status: RefundStatus) -> Result<Value, Refused> {
        let intent = form.text("payment_intent");
        let charge = form.text("charge");
        let amount = form.amount("amount")?;
        let reason = form.word("reason", &["duplicate", "fraudulent", "requested_by_customer"])?;
        let metadata = form.metadata("metadata")?;
        form.done()?;
        let charge = self.refundable(intent, charge)?;
        let Some(charge) = self.charges.get_mut(&charge) else {
            return Err(Refused::no_such("charge", &charge, "charge"));
        };
        let rest = charge.amount - charge.amount_refunded;
        if charge.is_disputed {
            let message = format!("Charge {} has been charged back; cannot issue a refund.", charge.id);
            return Err(Refused::coded("charge_disputed", message));
        }
        if rest == 0 {
            let message = format!("Charge {} has already been refunded.", charge.id);
            return Err(Refused::coded("charge_already_refunded", message));
        }
        let amount = amount.unwrap_or(rest);
        if amount > rest {
            // Copies of this answer disagree about a code; the harder case for a client is none.
            let message = format!("Refund amount ({amount}) is greater than unrefunded amount on charge ({rest})");
            return Err(Refused::plain(message));
        }
        charge.amount_refunded += amount;
        let (payment, charge_id, currency) = (charge.intent.clone(), charge.id.clone(), charge.currency.clone());
        let refund = Refund {
            id: self.id("re"),
            intent: payment.clone(),
            charge: charge_id.clone(),
            amount,
            currency,
            status,
            reason,
            failure_reason: None,
            metadata,
            created: self.now,
        };
        let view = refund.view();
        self.refunds.put(&refund.id.clone(), refund);
        self.tell("refund.created", &payment, view.clone());
        self.tell_charge("charge.refunded", &charge_id);
        Ok(view)
    }

    /// The charge that a refund is for: one that took money.
    fn refundable(&self, intent: Option<String>, charge: Option<String>) -> Result<String, Refused> {
        let (intent, charge) = match (intent, charge) {
            (None, None) => return Err(Refused::missing_parameter("payment_intent")),
            (Some(intent), charge) => (intent, charge),
            (None, Some(charge)) => {
                let found = self.charges.get(&charge).ok_or_else(|| Refused::no_such("charge", &charge, "charge"))?;
                (found.intent.clone(), Some(charge))
            }
        };
        let Some(found) = self.intents.get(&intent) else {
            return Err(Refused::no_such("payment_intent", &intent, "payment_intent"));
        };
        let latest = found.latest_charge.as_ref().and_then(|id| self.charges.get(id)).filter(|c| c.is_captured);
        let Some(latest) = latest else {
            let message = format!("This PaymentIntent ({intent}) does not have a successful charge to refund.");
            return Err(Refused::plain(message));
        };
        match charge {
            Some(charge) if charge != latest.id => Err(Refused::no_such("charge", &charge, "charge")),
            _ => Ok(latest.id.clone()),
        }
    }

    /// `GET /v1/refunds/{id}`
    pub(super) fn retrieve_refund(&self, id: &str, form: Form) -> Result<Value, Refused> {
        form.done()?;
        self.refunds.get(id).map(Refund::view).ok_or_else(|| Refused::no_such("refund", id, "id"))
    }

    /// `GET /v1/refunds`: the newest first.
    pub(super) fn list_refunds(&self, mut form: Form) -> Result<Value, Refused> {
        let intent = form.text("payment_intent");
        let charge = form.text("charge");
        let after = form.text("starting_after");
        let limit = form.number("limit")?.unwrap_or(10);
        form.done()?;
        if !(1..=100).contains(&limit) {
            let fault = "Limit must be between 1 and 100.";
            return Err(Refused::parameter(Some("parameter_invalid_integer"), "limit", fault));
        }
        if let Some(id) = intent.as_ref().filter(|id| self.intents.get(id).is_none()) {
            return Err(Refused::no_such("payment_intent", id, "payment_intent"));
        }
        if let Some(id) = charge.as_ref().filter(|id| self.charges.get(id).is_none()) {
            return Err(Refused::no_such("charge", id, "charge"));
        }
        if let Some(id) = after.as_ref().filter(|id| self.refunds.get(id).is_none()) {
            return Err(Refused::no_such("refund", id, "starting_after"));
        }
        let is_wanted = |refund: &&Refund| {
            intent.as_ref().is_none_or(|id| *id == refund.intent)
                && charge.as_ref().is_none_or(|id| *id == refund.charge)
        };
        let all = self.refunds.all.iter().rev();
        let mut rest: Box<dyn Iterator<Item = &Refund>> = match &after {
            Some(after) => Box::new(all.skip_while(move |refund| refund.id != *after).skip(1)),
            None => Box::new(all),
        };
        let mut found = rest.by_ref().filter(is_wanted);
        let data: Vec<Value> = found.by_ref().take(limit as usize).map(Refund::view).collect();
        let has_more = found.next().is_some();
        Ok(json!({"object": "list", "url": "/v1/refunds", "has_more": has_more, "data": data}))
    }

    /// What becomes of a refund after it was made. A failed one leaves the money with the merchant.
    pub(super) fn settle_refund(
        &mut self,
        id: &str,
        status: RefundStatus,
        failure: Option<&str>,
    ) -> Result<Value, Refused> {
        let refund = self.refunds.get_mut(id).ok_or_else(|| Refused::no_such("refund", id, "id"))?;
        let before = refund.status;
        let is_possible = match status {
            RefundStatus::Pending => false,
            RefundStatus::Succeeded => before == RefundStatus::Pending,
            RefundStatus::Failed => before != RefundStatus::Failed,
        };
        if !is_possible {
            return Err(Refused::plain(format!("A refund that is {} cannot become that.", before.as_str())));
        }
        refund.status = status;
        if status == RefundStatus::Failed {
            refund.failure_reason = Some(failure.unwrap_or("unknown").to_owned());
        }
        let (view, payment, charge, amount) =
            (refund.view(), refund.intent.clone(), refund.charge.clone(), refund.amount);
        if status == RefundStatus::Failed
            && let Some(charge) = self.charges.get_mut(&charge)
        {
            charge.amount_refunded = charge.amount_refunded.saturating_sub(amount);
        }
        self.tell_update("refund.updated", &payment, view.clone(), json!({"status": before.as_str()}));
        if status == RefundStatus::Failed {
            self.tell("refund.failed", &payment, view.clone());
        }
        Ok(view)
    }
}
