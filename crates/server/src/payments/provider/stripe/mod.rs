//! Stripe: refunds, cancellations and captures, found out about before they are asked for again.
//!
//! Errors are told apart by status and `code`, never by `type`. A refund is the only call that can send money twice, so
//! it is the only one with an idempotency key; the others are guarded by the state of the payment, and under a key
//! they would only hear an old error again.

mod intent;
mod refund;
#[cfg(test)]
mod tests;

use super::http::{ANSWER, Answer, Http};
use super::{Closed, Provider, Reply, Trouble, is_plain_id};
use crate::payments::receipt;
use async_trait::async_trait;
use holdfast_domain::{Job, JobKind, PaymentFact, Ref};
use reqwest::Method;
use serde_json::Value;
use std::time::Duration;

/// Where Stripe is.
pub(crate) const API_BASE: &str = "https://api.stripe.com";
/// The shapes that this client was written for.
pub(crate) const API_VERSION: &str = "2026-10-28.endive";
/// Money that is not there yet does not come within seconds.
const SLOW_SECONDS: u64 = 3600;

/// A client.
#[derive(Debug)]
pub(crate) struct Stripe {
    http: Http,
    version: String,
    tells_reasons: bool,
}

/// How to reach Stripe.
#[derive(Clone)]
pub(crate) struct Settings<'a> {
    /// `sk_…` or `rk_…`.
    pub(crate) api_key: &'a str,
    /// See [`API_BASE`].
    pub(crate) api_base: &'a str,
    /// See [`API_VERSION`].
    pub(crate) api_version: &'a str,
    /// Send `reason` and `cancellation_reason`; some test doubles refuse them.
    pub(crate) tells_reasons: bool,
}

/// Fields of a form.
type Form<'a> = Vec<(&'a str, String)>;

impl Stripe {
    /// Refuses settings that cannot work, in words that never repeat the key.
    pub(crate) fn new(settings: &Settings<'_>) -> Result<Self, String> {
        Self::with_timeout(settings, ANSWER)
    }

    fn with_timeout(settings: &Settings<'_>, timeout: Duration) -> Result<Self, String> {
        if !["sk_", "rk_"].iter().any(|prefix| settings.api_key.starts_with(prefix)) {
            return Err("the Stripe API key must be a secret or restricted key: sk_… or rk_…".into());
        }
        if settings.api_version.is_empty() || !settings.api_version.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("the Stripe API version must be one of Stripe's, such as 2026-10-28.endive".into());
        }
        let http = Http::new("stripe", settings.api_base, settings.api_key, timeout)?;
        Ok(Self { http, version: settings.api_version.to_owned(), tells_reasons: settings.tells_reasons })
    }

    async fn get(&self, path: &str) -> Result<Answer, Trouble> {
        self.send(self.http.request(Method::GET, path)).await
    }

    async fn post(&self, path: &str, form: &Form<'_>, idempotency_key: Option<&str>) -> Result<Answer, Trouble> {
        let body = serde_urlencoded::to_string(form).map_err(|e| Trouble::Failed { error: e.to_string() })?;
        let mut request = self.http.request(Method::POST, path).body(body);
        request = request.header("Content-Type", "application/x-www-form-urlencoded");
        if let Some(key) = idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        self.send(request).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Answer, Trouble> {
        let request = request.bearer_auth(self.http.key()).header("Stripe-Version", &self.version);
        self.http.send(request).await
    }

    /// What an answer means that is none of the special cases.
    fn trouble(&self, answer: &Answer) -> Trouble {
        let code = code(answer).unwrap_or_default();
        let words = format!("{code} {}", message(answer));
        match self.http.trouble(answer, words.trim()) {
            // Something on the way answered, not Stripe: that ends nothing.
            Trouble::Failed { error } if code.is_empty() && answer.text("/error/type").is_none() => {
                Trouble::Later { error, retry_after: answer.retry_after }
            }
            // With the key of another account, Stripe does not know what is ours.
            Trouble::Failed { error } if code == "resource_missing" => {
                Trouble::Halt { error: format!("{error} (is the API key of the account that took the payment?)") }
            }
            // Stripe's own word goes before what the status says.
            Trouble::Failed { error } if answer.flag("stripe-should-retry") == Some(true) => {
                Trouble::Later { error, retry_after: answer.retry_after }
            }
            Trouble::Failed { error } if matches!(code, "balance_insufficient" | "insufficient_funds") => {
                Trouble::Later { error, retry_after: Some(SLOW_SECONDS) }
            }
            Trouble::Failed { error } if matches!(code, "lock_timeout" | "rate_limit" | "idempotency_key_in_use") => {
                Trouble::Later { error, retry_after: answer.retry_after }
            }
            trouble => trouble,
        }
    }
}

#[async_trait]
impl Provider for Stripe {
    fn name(&self) -> &'static str {
        "stripe"
    }

    async fn carry_out(&self, job: &Job, _order: Option<&str>, again: bool) -> Reply {
        let reply = match job.kind {
            JobKind::Refund => self.refund(job, again).await,
            JobKind::Void => self.void(job).await,
            JobKind::Capture => self.capture(job).await,
        };
        reply.unwrap_or_else(Reply::from)
    }

    async fn close(&self, payment_ref: &str) -> Closed {
        let id = payment_ref.strip_prefix("stripe:").unwrap_or(payment_ref);
        if !is_plain_id(id) {
            return Closed::Unknown;
        }
        let closed = if id.starts_with("cs_") { self.close_session(id).await } else { self.close_intent(id).await };
        closed.unwrap_or_else(Closed::from)
    }

    async fn look(&self, payment: &Ref) -> Result<Vec<PaymentFact>, Trouble> {
        let Some(intent) = self.intent_of(payment.as_str()).await? else { return Ok(Vec::new()) };
        let answer = self.get(&format!("/v1/payment_intents/{intent}?expand[]=latest_charge")).await?;
        if !answer.is_success() {
            return Err(self.trouble(&answer));
        }
        let facts = receipt::stripe::facts_of_intent(&answer.body).map_err(|e| Trouble::Failed {
            error: self.http.clean(&format!("what stripe says of {intent} cannot be used: {e}")),
        })?;
        // A session's payment is known to us by the session.
        let named = |fact: PaymentFact| PaymentFact {
            payment: holdfast_domain::PaymentKey { payment_id: payment.clone(), ..fact.payment },
            ..fact
        };
        Ok(facts.into_iter().map(named).collect())
    }
}

impl Stripe {
    /// The payment intent behind a payment's id: itself, or a session's, if it has one.
    async fn intent_of(&self, payment_id: &str) -> Result<Option<String>, Trouble> {
        if !is_plain_id(payment_id) {
            return Err(Trouble::Failed { error: format!("{payment_id:?} is no id that stripe gives") });
        }
        if !payment_id.starts_with("cs_") {
            return Ok(Some(payment_id.to_owned()));
        }
        let answer = self.get(&format!("/v1/checkout/sessions/{payment_id}")).await?;
        if !answer.is_success() {
            return Err(self.trouble(&answer));
        }
        Ok(id_of(answer.body.get("payment_intent")).filter(|id| is_plain_id(id)).map(str::to_owned))
    }

    fn bad(&self, what: &str) -> Trouble {
        Trouble::Failed { error: self.http.clean(what) }
    }
}

fn code(answer: &Answer) -> Option<&str> {
    answer.text("/error/code")
}

fn message(answer: &Answer) -> &str {
    answer.text("/error/message").unwrap_or_default()
}

/// An id, or the id of the object that stands in its place.
fn id_of(value: Option<&Value>) -> Option<&str> {
    let value = value?;
    value.as_str().or_else(|| value.get("id")?.as_str()).filter(|id| !id.is_empty())
}

fn reference(id: Option<&str>) -> Option<Ref> {
    id.and_then(|id| Ref::new(id).ok())
}
