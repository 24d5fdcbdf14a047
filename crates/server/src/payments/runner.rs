//! Carries out what is owed at a provider: single bounded passes that any number of nodes may make at once. Whoever takes
//! a job is alone in it for a while; whatever happens to that node, the job is taken again, and the provider is then
//! looked at before it is asked once more.

use super::Payments;
use super::provider::{Provider, Reply, Trouble};
use super::routes::settle;
use crate::app::Shared;
use futures_util::{StreamExt, stream};
use holdfast_domain::{
    Command, Job, JobReport, JobTurn, Money, OrderRef, Outcome, PaymentFact, PaymentKind, Ref, Refusal, Time,
};
use holdfast_engine::clock::random_seed;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Jobs looked at in one pass, and how many of them are under way at once.
const PAGE: usize = 64;
const AT_ONCE: usize = 8;
/// How long a job is a node's own, and how often a node that is still about it says so. What was in the hands of a node
/// that died waits for no longer than that.
const LEASE: u32 = 30;
const KEEP: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(75);
/// Between two passes when nothing is due.
const PAUSE: Duration = Duration::from_secs(1);
/// After this time the provider's word on what it accepted is asked for.
const LOOK_AGAIN: u32 = 1800;
/// A wrong key stops everything until a person has seen to it.
const HALTED: u32 = 60;
/// The longest wait between two attempts.
const LONGEST: u32 = 600;
/// What could not be done in this time waits for a person.
const GIVE_UP: u32 = 3 * 24 * 3600;
/// The same for what the provider has accepted: banks take their time.
const LONGEST_PENDING: u32 = 30 * 24 * 3600;

/// Passes until stopped: woken when something may have become due, and now and then in any case.
pub(crate) async fn run(app: Shared, provider: Arc<dyn Provider>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let woken = app.payments.wake.notified();
        let is_busy = run_once(&app, &provider).await;
        let pause = if is_busy { Duration::ZERO } else { PAUSE };
        tokio::select! { () = sleep(pause) => {}, () = woken => {}, _ = stop.changed() => {} }
    }
}

/// One pass. Whether there may be more to do at once.
async fn run_once(app: &Shared, provider: &Arc<dyn Provider>) -> bool {
    let due = match app.engine.due_jobs(provider.name(), app.engine.time(), PAGE).await {
        Ok(due) => due,
        Err(error) => {
            tracing::warn!(%error, "what is due at the provider cannot be read");
            return false;
        }
    };
    let is_full = due.len() == PAGE;
    let moved = stream::iter(due).map(|job| work(app, provider, job)).buffer_unordered(AT_ONCE);
    let moved = moved.filter(|moved| std::future::ready(*moved)).count().await;
    is_full && moved > 0
}

/// Takes a job, asks the provider, and notes what became of it. False if somebody else has it, or it could not be noted.
async fn work(app: &Shared, provider: &Arc<dyn Provider>, due: Job) -> bool {
    let Some(job) = report(app, &due, JobTurn::Take { seconds: LEASE }).await else { return false };
    let turn = kept(app, &job, attempt(app, provider, &job)).await;
    let is_told = report(app, &job, turn).await.is_some();
    // A void that turned out to be a refund, or an order's next step, may be due by now.
    app.payments.wake.notify_waiters();
    is_told
}

/// Keeps the job a node's own for as long as it is about it.
async fn kept(app: &Shared, job: &Job, about: impl Future<Output = JobTurn>) -> JobTurn {
    let mut about = std::pin::pin!(about);
    loop {
        tokio::select! {
            turn = &mut about => return turn,
            () = sleep(KEEP) => {
                // If it cannot be kept, whoever takes it looks before asking, and our own report is refused.
                report(app, job, JobTurn::Keep { attempt: job.attempts, seconds: LEASE }).await;
            }
        }
    }
}

/// The job afterwards; nothing if it is not for us.
async fn report(app: &Shared, job: &Job, turn: JobTurn) -> Option<Job> {
    let report = JobReport { payment: job.payment.clone(), kind: job.kind, turn };
    match app.decide(Command::Job(Box::new(report))).await {
        Ok(Ok(Outcome::Job(job))) => Some(job),
        Ok(Err(refusal)) if !matches!(refusal, Refusal::JobNotDue(_)) => {
            tracing::error!(payment = %job.payment, code = refusal.code(), "a job could not be noted");
            None
        }
        // Somebody else's; or the engine failed and says why in the log, and the job is taken again when its time with us
        // is over.
        Ok(_) | Err(_) => None,
    }
}

async fn attempt(app: &Shared, provider: &Arc<dyn Provider>, job: &Job) -> JobTurn {
    if job.money.amount == Some(0) {
        // Nothing came, so nothing has to go anywhere.
        return JobTurn::Done { attempt: job.attempts, reference: None };
    }
    let order = match app.engine.payment(&job.payment).await {
        Ok(found) => found.and_then(|(payment, _)| payment.order).map(|named| match named {
            OrderRef::Order(id) => id.to_string(),
            OrderRef::Hold(id) => id.to_string(),
        }),
        Err(error) => return later(job, app.engine.time(), &format!("the payment cannot be read: {error}"), None),
    };
    let (kind, payment) = (job.kind.as_str(), &job.payment);
    let asked = timeout(PATIENCE, provider.carry_out(job, order.as_deref(), job.attempts > 1)).await;
    let now = app.engine.time();
    let outcome = |word: &'static str| app.metrics.job(provider.name(), kind, word);
    match asked {
        Ok(Reply::Done { reference }) => {
            outcome("done");
            tracing::info!(%payment, kind, reason = job.reason.as_str(), attempt = job.attempts, "carried out");
            JobTurn::Done { attempt: job.attempts, reference }
        }
        Ok(Reply::Accepted { reference }) => {
            outcome("accepted");
            if job.created_at.plus_seconds(LONGEST_PENDING) < now {
                return failed(job, "accepted thirty days ago, and the provider has not said how it ended");
            }
            tracing::info!(%payment, kind, reason = job.reason.as_str(), attempt = job.attempts, "accepted");
            JobTurn::Accepted { attempt: job.attempts, reference, seconds: LOOK_AGAIN }
        }
        Ok(Reply::IsCaptured) => {
            outcome("was_captured");
            captured_after_all(app, provider, job, now).await
        }
        Ok(Reply::NotCaptured) => {
            outcome("failed");
            failed(job, "the provider says that nothing was captured, so there is nothing to give back")
        }
        Ok(Reply::Later { error, retry_after }) => {
            outcome("later");
            later(job, now, &error, retry_after)
        }
        Ok(Reply::Halt { error }) => {
            outcome("halted");
            tracing::error!(provider = provider.name(), error, "the provider does not let us in: check its API key");
            JobTurn::Later { attempt: job.attempts, error: error.into(), seconds: HALTED }
        }
        Ok(Reply::Failed { error }) => {
            outcome("failed");
            failed(job, &error)
        }
        Err(_) => {
            outcome("later");
            later(job, now, "the provider did not answer in time", None)
        }
    }
}

fn failed(job: &Job, error: &str) -> JobTurn {
    let (payment, kind, reason) = (&job.payment, job.kind.as_str(), job.reason.as_str());
    tracing::error!(%payment, kind, reason, attempt = job.attempts, error, "needs attention");
    JobTurn::Failed { attempt: job.attempts, error: error.into() }
}

/// Another try, each time a little later; a person's, after days.
fn later(job: &Job, now: Time, error: &str, retry_after: Option<u64>) -> JobTurn {
    if job.created_at.plus_seconds(GIVE_UP) < now {
        return failed(job, &format!("tried for three days; last: {error}"));
    }
    let seconds = backoff(job.attempts, retry_after, random_seed());
    let (payment, kind) = (&job.payment, job.kind.as_str());
    tracing::warn!(%payment, kind, attempt = job.attempts, error, seconds, "is tried again");
    JobTurn::Later { attempt: job.attempts, error: error.into(), seconds }
}

/// 1, 2, 4 … seconds with some chance in them, and never less than the provider asked for.
fn backoff(attempts: u32, retry_after: Option<u64>, seed: u64) -> u32 {
    let step = 1_u32 << attempts.saturating_sub(1).min(9);
    let chance = (seed % u64::from(step.div_ceil(2))) as u32;
    let asked = retry_after.map_or(0, |asked| u32::try_from(asked).unwrap_or(u32::MAX).min(24 * 3600));
    (step + chance).min(LONGEST).max(asked)
}

/// The money of an authorisation that was to be let go was captured meanwhile: a fact like any other, whoever tells it.
async fn captured_after_all(app: &Shared, provider: &Arc<dyn Provider>, job: &Job, now: Time) -> JobTurn {
    let facts = match timeout(PATIENCE, provider.look(&job.payment.payment_id)).await {
        Ok(Ok(facts)) => facts,
        Ok(Err(Trouble::Later { error, retry_after })) => return later(job, now, &error, retry_after),
        Ok(Err(Trouble::Halt { error } | Trouble::Failed { error })) => return later(job, now, &error, None),
        Err(_) => return later(job, now, "the provider did not answer in time", None),
    };
    let is_captured = facts.iter().any(|fact| fact.kind == PaymentKind::Captured);
    for fact in facts.into_iter().chain((!is_captured).then(|| captured(job)).flatten()) {
        if settle(app, fact).await.is_err() {
            return later(job, now, "the engine could not note that the money was captured", None);
        }
    }
    // The void is a refund by now, and this is the void's report: it is refused, as it should be.
    later(job, now, "the money was captured meanwhile", None)
}

fn captured(job: &Job) -> Option<PaymentFact> {
    Some(PaymentFact {
        event_id: Ref::new(&format!("holdfast-look-{}", job.payment.payment_id.as_str())).ok()?,
        payment: job.payment.clone(),
        kind: PaymentKind::Captured,
        order: None,
        money: Money { ..job.money },
        email: None,
        reference: None,
    })
}

/// Says at the start what will not be done.
pub(crate) fn warn_of_idle(payments: &Payments) {
    let has = |name: &str| payments.providers.iter().any(|provider| provider.name() == name);
    for (name, is_heard, variable) in [
        ("stripe", payments.stripe_keys.is_some(), "HOLDFAST_STRIPE_API_KEY"),
        ("adyen", payments.adyen_keys.is_some(), "HOLDFAST_ADYEN_API_KEY"),
    ] {
        if is_heard && !has(name) {
            tracing::warn!(
                provider = name,
                "{variable} is not set: refunds, voids and captures are told as events and not carried out"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_heed_the_provider() {
        assert_eq!(backoff(1, None, 0), 1);
        assert!((2..=3).contains(&backoff(2, None, 7)));
        assert!((256..=383).contains(&backoff(9, None, 12_345)));
        assert_eq!(backoff(500, None, u64::MAX), LONGEST);
        assert_eq!(backoff(1, Some(30), 0), 30);
        assert_eq!(backoff(9, Some(1), 0), 256);
        assert_eq!(backoff(1, Some(u64::MAX), 0), 24 * 3600);
    }
}
