//! Sending money back, once.
//!
//! Stripe keeps what became of an idempotency key for a day, and an internal error as well as a success. So after that
//! time, and wherever an answer leaves doubt, the refunds of the payment are listed first: each of ours carries the
//! job's key in its metadata. Nothing is ever asked for under a new key before the list has shown that there is nothing.

use super::intent::Ended;
use super::{Answer, Form, Reply, SLOW_SECONDS, Stripe, Trouble, code, message, reference};
use crate::payments::provider::{fitting_key, is_plain_id};
use holdfast_domain::Job;
use holdfast_engine::clock;
use serde_json::Value;

/// Stripe may forget a key after 24 hours.
const KEY_LIVES_MS: i64 = 23 * 3600 * 1000;
const MAX_KEY_BYTES: usize = 255;
const MAX_PAGES: usize = 20;

/// One refund of the payment, as listed.
struct Listed {
    id: String,
    status: String,
    amount: u64,
    job: Option<String>,
}

impl Listed {
    fn read(refund: &Value) -> Option<Self> {
        let text = |name: &str| refund.get(name)?.as_str().map(str::to_owned);
        let job = refund.pointer("/metadata/holdfast_job").and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            id: text("id")?,
            status: text("status").unwrap_or_default(),
            amount: refund["amount"].as_u64()?,
            job,
        })
    }

    fn has_failed(&self) -> bool {
        matches!(self.status.as_str(), "failed" | "canceled")
    }
}

/// What a refund is about.
struct Target<'a> {
    job: &'a Job,
    /// `payment_intent` or `charge`, and its id.
    by: &'static str,
    id: String,
    key: String,
}

impl Stripe {
    pub(super) async fn refund(&self, job: &Job, again: bool) -> Result<Reply, Trouble> {
        if job.money.amount == Some(0) {
            return Ok(Reply::Done { reference: None });
        }
        let Some(id) = self.intent_of(job.payment.payment_id.as_str()).await? else {
            return Err(self.bad("the session has no payment intent: give its money back in Stripe's dashboard"));
        };
        let by = if id.starts_with("ch_") { "charge" } else { "payment_intent" };
        let key = fitting_key(&job.idempotency_key, MAX_KEY_BYTES).into_owned();
        let target = Target { job, by, id, key };
        if let Some(refund) = job.reference.as_ref().map(holdfast_domain::Ref::as_str).filter(|r| r.starts_with("re_"))
            && is_plain_id(refund)
        {
            // It was accepted under this id: that refund is the only one that matters.
            let answer = self.get(&format!("/v1/refunds/{refund}")).await?;
            if answer.status != 404 {
                return if answer.is_success() { self.told(&answer) } else { Err(self.trouble(&answer)) };
            }
        }
        let is_old = clock::wall().millis() - job.created_at.millis() > KEY_LIVES_MS;
        if again
            && is_old
            && let Some(reply) = self.found(&target).await?
        {
            return Ok(reply);
        }
        let answer = self.create(&target, job.money.amount, &target.key).await?;
        if answer.is_success() {
            return self.told(&answer);
        }
        self.not_created(&target, &answer, again).await
    }

    async fn create(&self, target: &Target<'_>, amount: Option<u64>, key: &str) -> Result<Answer, Trouble> {
        let mut form: Form<'_> = vec![(target.by, target.id.clone())];
        form.extend(amount.map(|a| ("amount", a.to_string())));
        if self.tells_reasons {
            // Of the three that there are, the one without consequences for the shopper's card.
            form.push(("reason", "requested_by_customer".to_owned()));
        }
        form.push(("metadata[holdfast_job]", target.key.clone()));
        form.push(("metadata[cause]", target.job.reason.as_str().to_owned()));
        self.post("/v1/refunds", &form, Some(key)).await
    }

    /// What a refund says of itself. That it was made does not mean that the money arrived.
    fn told(&self, answer: &Answer) -> Result<Reply, Trouble> {
        let refund = reference(answer.text("/id"));
        if refund.is_none() {
            // Whoever answered so was not Stripe, or was not well.
            return Err(self.trouble(answer));
        }
        self.by_status(answer.text("/status").unwrap_or_default(), refund, answer.text("/failure_reason"))
    }

    fn by_status(
        &self,
        status: &str,
        refund: Option<holdfast_domain::Ref>,
        why: Option<&str>,
    ) -> Result<Reply, Trouble> {
        match status {
            "succeeded" => Ok(Reply::Done { reference: refund }),
            "failed" | "canceled" => {
                let id = refund.as_ref().map_or("?", holdfast_domain::Ref::as_str);
                Err(self.bad(&format!("refund {id} has {status}: {}", why.unwrap_or("stripe does not say why"))))
            }
            // `pending`, `requires_action`, and whatever may come to be: a webhook tells the end.
            _ => Ok(Reply::Accepted { reference: refund }),
        }
    }

    async fn not_created(&self, target: &Target<'_>, answer: &Answer, again: bool) -> Result<Reply, Trouble> {
        let trouble = self.trouble(answer);
        let is_replayed = answer.flag("idempotent-replayed") == Some(true);
        if again && is_replayed && answer.status < 500 && matches!(trouble, Trouble::Failed { .. }) {
            return self.refused_before(target).await;
        }
        match (answer.status, code(answer)) {
            (400, Some("charge_disputed" | "refund_disputed_payment")) => Err(trouble),
            (400, _) if message(answer).contains("does not have a successful charge") => {
                self.nothing_captured(target, answer).await
            }
            (500..=599, _) => self.after_error(target, answer, trouble, again).await,
            // Anything else that cannot be repeated: perhaps because it has been done.
            (400 | 402, _) if matches!(trouble, Trouble::Failed { .. }) => {
                self.after_refusal(target, answer, trouble).await
            }
            _ => Err(trouble),
        }
    }

    /// A person wants it tried again, and the key only tells what was refused before. If nothing came of it, and of no
    /// later attempt either, this attempt has a key of its own.
    async fn refused_before(&self, target: &Target<'_>) -> Result<Reply, Trouble> {
        if let Some(reply) = self.found(target).await? {
            return Ok(reply);
        }
        let key = derived_key(target, &format!("attempt-{}", target.job.attempts));
        let answer = self.create(target, target.job.money.amount, &key).await?;
        if answer.is_success() {
            return self.told(&answer);
        }
        let trouble = self.trouble(&answer);
        match trouble {
            Trouble::Failed { .. } => self.after_refusal(target, &answer, trouble).await,
            _ => Err(trouble),
        }
    }

    /// An error that is remembered under the key is told for a day; what it left behind is in the list.
    async fn after_error(
        &self,
        target: &Target<'_>,
        answer: &Answer,
        trouble: Trouble,
        again: bool,
    ) -> Result<Reply, Trouble> {
        let is_replayed = answer.flag("idempotent-replayed") == Some(true);
        if !again && !is_replayed && answer.flag("stripe-should-retry") != Some(false) {
            return Err(trouble);
        }
        if let Some(reply) = self.found(target).await? {
            return Ok(reply);
        }
        if !is_replayed {
            return Err(trouble);
        }
        self.refused_before(target).await
    }

    async fn after_refusal(&self, target: &Target<'_>, answer: &Answer, trouble: Trouble) -> Result<Reply, Trouble> {
        let listed = self.list(target).await?;
        if let Some(reply) = self.adopt(target, &listed)? {
            return Ok(reply);
        }
        let gone: u64 = listed.iter().filter(|r| !r.has_failed()).map(|r| r.amount).sum();
        if code(answer) == Some("charge_already_refunded") || target.job.money.amount.is_some_and(|a| gone >= a) {
            return self.complete(&listed, trouble);
        }
        // Somebody gave a part of it back. What is left is ours to give, under a key that is about so much.
        let rest = target.job.money.amount.map(|a| a - gone).filter(|_| gone > 0 && is_about_amount(answer));
        let Some(rest) = rest else { return Err(trouble) };
        let answer = self.create(target, Some(rest), &derived_key(target, &format!("rest-{rest}"))).await?;
        if answer.is_success() { self.told(&answer) } else { Err(self.trouble(&answer)) }
    }

    /// All of it has been given back, by whomever: the refund that is not through yet is the one to wait for.
    fn complete(&self, listed: &[Listed], trouble: Trouble) -> Result<Reply, Trouble> {
        let mut stands = listed.iter().filter(|r| !r.has_failed());
        let pending = listed.iter().find(|r| !r.has_failed() && r.status != "succeeded");
        match pending.or_else(|| stands.next()) {
            Some(refund) => self.by_status(&refund.status, reference(Some(&refund.id)), None),
            None => Err(trouble),
        }
    }

    /// Our refund, if it is in the list.
    async fn found(&self, target: &Target<'_>) -> Result<Option<Reply>, Trouble> {
        let listed = self.list(target).await?;
        self.adopt(target, &listed)
    }

    fn adopt(&self, target: &Target<'_>, listed: &[Listed]) -> Result<Option<Reply>, Trouble> {
        let ours = listed.iter().filter(|r| r.job.as_deref() == Some(&*target.key));
        // Should one have failed and another not, the one that stands counts.
        let Some(ours) = ours.min_by_key(|r| r.has_failed()) else { return Ok(None) };
        self.by_status(&ours.status, reference(Some(&ours.id)), None).map(Some)
    }

    async fn list(&self, target: &Target<'_>) -> Result<Vec<Listed>, Trouble> {
        let mut listed: Vec<Listed> = Vec::new();
        for _ in 0..MAX_PAGES {
            let after = listed.last().map(|last| format!("&starting_after={}", last.id)).unwrap_or_default();
            let answer = self.get(&format!("/v1/refunds?{}={}&limit=100{after}", target.by, target.id)).await?;
            let Some(page) = answer.body.get("data").and_then(Value::as_array).filter(|_| answer.is_success()) else {
                return Err(self.trouble(&answer));
            };
            let read: Option<Vec<_>> = page.iter().map(Listed::read).collect();
            let read = read.filter(|refunds| refunds.iter().all(|r| is_plain_id(&r.id)));
            listed.extend(read.ok_or_else(|| self.bad("the list of refunds has one in it that cannot be read"))?);
            if answer.body.get("has_more").and_then(Value::as_bool) != Some(true) {
                return Ok(listed);
            }
        }
        Err(self.bad("the payment has more refunds than can be looked through"))
    }

    /// No money came: then none can be sent back, and none shall come any more.
    async fn nothing_captured(&self, target: &Target<'_>, answer: &Answer) -> Result<Reply, Trouble> {
        if target.by == "charge" {
            return Ok(Reply::NotCaptured);
        }
        let now = self.get(&format!("/v1/payment_intents/{}", target.id)).await?;
        match now.text("/status") {
            Some("canceled") => Ok(Reply::NotCaptured),
            // The charge is not booked yet.
            Some("succeeded" | "processing") => {
                Err(Trouble::Later { error: self.http.clean(message(answer)), retry_after: Some(SLOW_SECONDS) })
            }
            Some(_) if now.is_success() => match self.cancel(&target.id, "abandoned").await? {
                Ended::Canceled => Ok(Reply::Done { reference: reference(Some(&target.id)) }),
                Ended::Succeeded => Err(Trouble::Later { error: self.http.clean(message(answer)), retry_after: None }),
                Ended::Refused { status, answer } => Err(self.refused(&status, &answer)),
            },
            _ => Err(self.trouble(&now)),
        }
    }
}

/// A key besides the job's own, for the one case in which that is spent: the same whenever it is the same case.
fn derived_key(target: &Target<'_>, case: &str) -> String {
    fitting_key(&format!("{}-{case}", target.job.idempotency_key), MAX_KEY_BYTES).into_owned()
}

fn is_about_amount(answer: &Answer) -> bool {
    code(answer) == Some("amount_too_large")
        || answer.text("/error/param") == Some("amount")
        || message(answer).contains("greater than")
}
