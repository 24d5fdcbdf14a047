//! What the provider keeps, and how each object reads. Nothing here decides anything.

use super::form::Metadata;
use serde_json::{Value, json};

/// How long an authorisation can be captured: seven days, as cards have it.
const CAPTURABLE: i64 = 7 * 86_400;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $member:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $name { $($(#[$of])* $member,)* }

        impl $name {
            /// The provider's word for it.
            pub(super) const fn as_str(self) -> &'static str {
                match self { $(Self::$member => $word,)* }
            }
        }
    };
}

words! {
    /// Where a PaymentIntent stands.
    IntentStatus {
        RequiresPaymentMethod = "requires_payment_method",
        RequiresConfirmation = "requires_confirmation",
        RequiresCapture = "requires_capture",
        Canceled = "canceled",
        Succeeded = "succeeded",
    }
}

words! {
    /// Where a refund stands.
    RefundStatus {
        Pending = "pending",
        Succeeded = "succeeded",
        Failed = "failed",
    }
}

words! {
    /// Where a Checkout session stands.
    SessionStatus {
        Open = "open",
        Complete = "complete",
        Expired = "expired",
    }
}

/// A payment in the making.
#[derive(Debug, Clone)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) amount: u64,
    pub(super) currency: String,
    pub(super) is_manual: bool,
    pub(super) status: IntentStatus,
    pub(super) amount_capturable: u64,
    pub(super) amount_received: u64,
    pub(super) payment_method: Option<String>,
    pub(super) receipt_email: Option<String>,
    pub(super) metadata: Metadata,
    pub(super) latest_charge: Option<String>,
    pub(super) last_payment_error: Value,
    pub(super) canceled_at: Option<i64>,
    pub(super) cancellation_reason: Option<&'static str>,
    /// The Checkout session that made it.
    pub(super) session: Option<String>,
    pub(super) created: i64,
}

impl Intent {
    /// As it reads, with the charge's id or the charge itself.
    pub(super) fn view(&self, latest_charge: &Value) -> Value {
        json!({
            "id": self.id, "object": "payment_intent", "amount": self.amount,
            "amount_capturable": self.amount_capturable, "amount_received": self.amount_received,
            "canceled_at": self.canceled_at, "cancellation_reason": self.cancellation_reason,
            "capture_method": if self.is_manual { "manual" } else { "automatic" },
            "client_secret": format!("{}_secret_fake", self.id), "confirmation_method": "automatic",
            "created": self.created, "currency": self.currency, "customer": null,
            "last_payment_error": self.last_payment_error, "latest_charge": latest_charge, "livemode": false,
            "metadata": self.metadata, "payment_method": self.payment_method, "payment_method_types": ["card"],
            "receipt_email": self.receipt_email, "status": self.status.as_str(),
        })
    }

    /// As it reads in an event or an answer that expands nothing.
    pub(super) fn brief(&self) -> Value {
        self.view(&json!(self.latest_charge))
    }
}

/// One attempt to take money.
#[derive(Debug, Clone)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) intent: String,
    pub(super) amount: u64,
    pub(super) amount_captured: u64,
    /// What went back or was let go.
    pub(super) amount_refunded: u64,
    pub(super) currency: String,
    pub(super) is_captured: bool,
    pub(super) is_disputed: bool,
    /// Why the bank said no, if it did.
    pub(super) failure: Option<&'static str>,
    pub(super) receipt_email: Option<String>,
    /// As the PaymentIntent had it at that moment.
    pub(super) metadata: Metadata,
    pub(super) created: i64,
}

impl Charge {
    /// As it reads.
    pub(super) fn view(&self) -> Value {
        let failed = self.failure.is_some();
        json!({
            "id": self.id, "object": "charge", "amount": self.amount, "amount_captured": self.amount_captured,
            "amount_refunded": self.amount_refunded, "captured": self.is_captured, "created": self.created,
            "currency": self.currency, "disputed": self.is_disputed,
            "failure_code": failed.then_some("card_declined"),
            "failure_message": failed.then_some("Your card was declined."), "livemode": false,
            "metadata": self.metadata, "paid": !failed, "payment_intent": self.intent,
            "payment_method_details": {"type": "card", "card": {"capture_before": self.created + CAPTURABLE}},
            "receipt_email": self.receipt_email, "refunded": self.amount_refunded == self.amount,
            "status": if failed { "failed" } else { "succeeded" },
        })
    }
}

/// Money on its way back.
#[derive(Debug, Clone)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) intent: String,
    pub(super) charge: String,
    pub(super) amount: u64,
    pub(super) currency: String,
    pub(super) status: RefundStatus,
    pub(super) reason: Option<&'static str>,
    pub(super) failure_reason: Option<String>,
    pub(super) metadata: Metadata,
    pub(super) created: i64,
}

impl Refund {
    /// As it reads.
    pub(super) fn view(&self) -> Value {
        let mut view = json!({
            "id": self.id, "object": "refund", "amount": self.amount, "charge": self.charge, "created": self.created,
            "currency": self.currency, "metadata": self.metadata, "payment_intent": self.intent,
            "reason": self.reason, "status": self.status.as_str(),
        });
        if let Some(reason) = &self.failure_reason {
            view["failure_reason"] = reason.as_str().into();
        }
        if self.status == RefundStatus::Pending {
            view["pending_reason"] = "processing".into();
        }
        view
    }
}

/// The provider's own payment page for one order.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) status: SessionStatus,
    pub(super) amount_total: u64,
    pub(super) currency: String,
    pub(super) client_reference_id: Option<String>,
    pub(super) email: Option<String>,
    pub(super) metadata: Metadata,
    /// What its PaymentIntent will have.
    pub(super) for_intent: Metadata,
    pub(super) is_manual: bool,
    pub(super) intent: Option<String>,
    pub(super) expires_at: i64,
    pub(super) created: i64,
}

impl Session {
    /// As it reads.
    pub(super) fn view(&self) -> Value {
        // An authorisation is no payment yet.
        let is_paid = self.status == SessionStatus::Complete && !self.is_manual;
        json!({
            "id": self.id, "object": "checkout.session", "amount_total": self.amount_total,
            "client_reference_id": self.client_reference_id, "created": self.created, "currency": self.currency,
            "customer_details": {"email": self.email}, "expires_at": self.expires_at, "livemode": false,
            "metadata": self.metadata, "mode": "payment", "payment_intent": self.intent,
            "payment_status": if is_paid { "paid" } else { "unpaid" }, "status": self.status.as_str(),
            "url": (self.status == SessionStatus::Open).then(|| format!("https://checkout.stripe.com/c/pay/{}", self.id)),
        })
    }
}
