//! Letting an authorisation go, capturing it, and closing the window in which a shopper can pay.
//!
//! None of these can move money twice: what the payment's state does not allow, Stripe refuses, and the state says why.

use super::{Answer, Closed, Form, Reply, SLOW_SECONDS, Stripe, Trouble, code, id_of, reference};
use holdfast_domain::{Job, JobReason};

/// What became of a cancellation.
pub(super) enum Ended {
    /// It is canceled, by us or before.
    Canceled,
    /// The money came.
    Succeeded,
    /// It was refused; the payment is in this state.
    Refused { status: String, answer: Answer },
}

impl Stripe {
    pub(super) async fn void(&self, job: &Job) -> Result<Reply, Trouble> {
        let intent = self.authorised(job).await?;
        let reason = if job.reason == JobReason::DuplicatePayment { "duplicate" } else { "abandoned" };
        match self.cancel(&intent, reason).await? {
            Ended::Canceled => Ok(Reply::Done { reference: reference(Some(&intent)) }),
            Ended::Succeeded => Ok(Reply::IsCaptured),
            Ended::Refused { status, answer } => Err(self.refused(&status, &answer)),
        }
    }

    pub(super) async fn capture(&self, job: &Job) -> Result<Reply, Trouble> {
        let intent = self.authorised(job).await?;
        let amount = job.money.amount.map(|a| ("amount_to_capture", a.to_string()));
        let form: Form<'_> = amount.into_iter().collect();
        let answer = self.post(&format!("/v1/payment_intents/{intent}/capture"), &form, None).await?;
        if answer.is_success() && answer.text("/id").is_some() {
            let charge = reference(id_of(answer.body.get("latest_charge")).or(answer.text("/id")));
            return Ok(match answer.text("/status") {
                Some("succeeded") => Reply::Done { reference: charge },
                _ => Reply::Accepted { reference: charge },
            });
        }
        match code(&answer) {
            Some("charge_already_captured") => Ok(Reply::Done { reference: None }),
            Some("payment_intent_unexpected_state") => match self.status(&intent, &answer).await?.as_str() {
                "succeeded" => Ok(Reply::Done { reference: None }),
                "processing" => Err(self.refused("processing", &answer)),
                _ => Err(self.trouble(&answer)),
            },
            _ => Err(self.trouble(&answer)),
        }
    }

    /// The intent that was authorised.
    async fn authorised(&self, job: &Job) -> Result<String, Trouble> {
        let intent = self.intent_of(job.payment.payment_id.as_str()).await?;
        intent.ok_or_else(|| self.bad("the session has no payment intent: there is no authorisation in it"))
    }

    /// Cancels an intent, or expires the session it belongs to.
    pub(super) async fn cancel(&self, intent: &str, reason: &str) -> Result<Ended, Trouble> {
        let form: Form<'_> =
            self.tells_reasons.then(|| ("cancellation_reason", reason.to_owned())).into_iter().collect();
        let answer = self.post(&format!("/v1/payment_intents/{intent}/cancel"), &form, None).await?;
        if answer.is_success() && answer.text("/status") == Some("canceled") {
            return Ok(Ended::Canceled);
        }
        if answer.status != 400 {
            return Err(self.trouble(&answer));
        }
        let status = self.status(intent, &answer).await?;
        match status.as_str() {
            "canceled" => Ok(Ended::Canceled),
            "succeeded" => Ok(Ended::Succeeded),
            "requires_payment_method" | "requires_confirmation" | "requires_action" => {
                if self.expire_session_of(intent).await? {
                    Ok(Ended::Canceled)
                } else {
                    Ok(Ended::Refused { status, answer })
                }
            }
            _ => Ok(Ended::Refused { status, answer }),
        }
    }

    pub(super) fn refused(&self, status: &str, answer: &Answer) -> Trouble {
        match (status, self.trouble(answer)) {
            // The bank has not said yet: then it is one or the other.
            ("processing", Trouble::Failed { error }) => Trouble::Later { error, retry_after: Some(SLOW_SECONDS) },
            (_, trouble) => trouble,
        }
    }

    /// A Checkout's intent is ended by ending its session. False if it has none that is open.
    async fn expire_session_of(&self, intent: &str) -> Result<bool, Trouble> {
        let sessions = self.get(&format!("/v1/checkout/sessions?payment_intent={intent}&limit=1")).await?;
        if !sessions.is_success() {
            return match self.trouble(&sessions) {
                Trouble::Failed { .. } => Ok(false),
                trouble => Err(trouble),
            };
        }
        let Some(session) = sessions.text("/data/0/id").filter(|id| super::is_plain_id(id)) else { return Ok(false) };
        Ok(self.close_session(session).await? == Closed::Closed)
    }

    /// The state of an intent, as the answer that refused something tells it, or as it is now.
    async fn status(&self, intent: &str, answer: &Answer) -> Result<String, Trouble> {
        if let Some(status) = answer.text("/error/payment_intent/status") {
            return Ok(status.to_owned());
        }
        let now = self.get(&format!("/v1/payment_intents/{intent}")).await?;
        match now.text("/status") {
            Some(status) if now.is_success() => Ok(status.to_owned()),
            _ => Err(self.trouble(&now)),
        }
    }

    /// Looks first: an authorised payment could be canceled, too, and is money that may still buy the units.
    pub(super) async fn close_intent(&self, intent: &str) -> Result<Closed, Trouble> {
        let now = self.get(&format!("/v1/payment_intents/{intent}")).await?;
        if now.status == 404 {
            return Ok(Closed::Unknown);
        }
        match now.text("/status") {
            Some("canceled") => return Ok(Closed::Closed),
            Some("succeeded" | "requires_capture" | "processing") => return Ok(Closed::AlreadyPaid),
            Some(_) if now.is_success() => {}
            _ => return Err(self.trouble(&now)),
        }
        match self.cancel(intent, "abandoned").await? {
            Ended::Canceled => Ok(Closed::Closed),
            Ended::Succeeded => Ok(Closed::AlreadyPaid),
            Ended::Refused { status, .. } if matches!(status.as_str(), "requires_capture" | "processing") => {
                Ok(Closed::AlreadyPaid)
            }
            Ended::Refused { answer, .. } => Err(self.trouble(&answer)),
        }
    }

    pub(super) async fn close_session(&self, session: &str) -> Result<Closed, Trouble> {
        let answer = self.post(&format!("/v1/checkout/sessions/{session}/expire"), &Form::new(), None).await?;
        if answer.is_success() && answer.text("/status") == Some("expired") {
            return Ok(Closed::Closed);
        }
        if answer.status == 404 {
            return Ok(Closed::Unknown);
        }
        if answer.status != 400 {
            return Err(self.trouble(&answer));
        }
        // Only an open session can be expired: what it is instead says whether somebody paid.
        let now = self.get(&format!("/v1/checkout/sessions/{session}")).await?;
        match now.text("/status") {
            Some("expired") => Ok(Closed::Closed),
            Some("complete") => Ok(Closed::AlreadyPaid),
            _ if now.is_success() => Err(self.trouble(&answer)),
            _ => Err(self.trouble(&now)),
        }
    }
}
