//! What is owed at a provider, and what became of it. Each job has one idempotency key, made before the provider is asked
//! for the first time and kept for as long as the provider has done nothing under it.

use super::{Inventory, Mark, Tracked};
use crate::{
    EntryKind, Job, JobKind, JobReason, JobReport, JobState, JobTurn, Money, Outcome, Payment, PaymentFact, PaymentKey,
    PaymentKind, PaymentStatus, Ref, Refusal, Time,
};

impl Inventory {
    pub(super) fn make_job(&mut self, payment: &Payment, kind: JobKind, reason: JobReason, now: Time) {
        // What somebody has given back already is not given back again.
        let back = if kind == JobKind::Refund { payment.refunded } else { 0 };
        let money = Money { amount: payment.money.amount.map(|amount| amount.saturating_sub(back)), ..payment.money };
        let job = Job {
            payment: payment.key.clone(),
            kind,
            reason,
            state: JobState::Due,
            idempotency_key: format!("holdfast-{}-{}", kind.as_str(), payment.key).into(),
            money,
            created_at: now,
            attempts: 0,
            next_at: now,
            reference: None,
            error: None,
        };
        let is_capture = kind == JobKind::Capture;
        if let Some(before) = self.touch_job(&payment.key, is_capture) {
            // Whoever is about another job of the payment has a number that is not taken again.
            *before = Job { attempts: before.attempts, ..job };
        } else {
            let key = (payment.key.clone(), is_capture);
            self.jobs.insert(key.clone(), Tracked { value: job, mark: Mark::New });
            self.changes.jobs.push(key);
        }
        let entry = match kind {
            JobKind::Refund => EntryKind::RefundDue,
            JobKind::Void => EntryKind::VoidDue,
            JobKind::Capture => EntryKind::CaptureDue,
        };
        self.note_payment(&payment.key, entry, now);
    }

    /// What is owed of a payment: its capture, or its reversal.
    fn job(&self, payment: &PaymentKey, is_capture: bool) -> Option<&Job> {
        self.jobs.get(&(payment.clone(), is_capture)).map(|job| &job.value)
    }

    /// The refund or void of a payment.
    pub(super) fn reversal(&self, payment: &PaymentKey) -> Option<&Job> {
        self.job(payment, false)
    }

    /// A job, for changing.
    fn touch_job(&mut self, payment: &PaymentKey, is_capture: bool) -> Option<&mut Job> {
        let key = (payment.clone(), is_capture);
        let job = self.jobs.get_mut(&key)?;
        if job.touch() {
            self.changes.jobs.push(key);
        }
        Some(&mut job.value)
    }

    pub(super) fn finish_job(&mut self, key: &PaymentKey, is_capture: bool, reference: Option<&Ref>, now: Time) {
        if self.job(key, is_capture).is_none_or(|job| job.state == JobState::Succeeded) {
            return;
        }
        if let Some(job) = self.touch_job(key, is_capture) {
            job.state = JobState::Succeeded;
            job.error = None;
            job.reference = reference.cloned().or_else(|| job.reference.take());
            self.note_payment(key, EntryKind::RefundSucceeded, now);
        }
    }

    pub(super) fn finish_reversal(&mut self, key: &PaymentKey, end: PaymentStatus, reference: Option<&Ref>, now: Time) {
        self.set_status(key, end);
        let is_open = self.reversal(key).is_some_and(|job| job.state != JobState::Succeeded);
        if is_open && let Some(job) = self.touch_job(key, false) {
            // Money that went back was captured, whether or not we were told.
            job.kind = if end == PaymentStatus::Refunded { JobKind::Refund } else { JobKind::Void };
        }
        self.finish_job(key, false, reference, now);
    }

    /// The job waits for a person.
    pub(super) fn fail_job(&mut self, key: &PaymentKey, is_capture: bool, why: &str, now: Time) {
        if self.job(key, is_capture).is_none_or(|job| job.state == JobState::NeedsAttention) {
            return;
        }
        if let Some(job) = self.touch_job(key, is_capture) {
            job.state = JobState::NeedsAttention;
            job.error = Some(why.into());
            // A capture is nothing to be tried again: its order ends.
            let kind = if is_capture { EntryKind::PaymentCaptureFailed } else { EntryKind::RefundNeedsAttention };
            if !is_capture || !self.payment(key).is_some_and(|p| p.capture_failed) {
                self.note_payment(key, kind, now);
            }
        }
    }

    /// The provider says that a refund did not reach the shopper. If it is ours, a person has to see to it.
    pub(super) fn refund_failed(&mut self, fact: &PaymentFact, now: Time) {
        let key = &fact.payment;
        let Some(job) = self.reversal(key).cloned() else {
            return self.foreign_refund_failed(fact);
        };
        let is_known = fact.reference.is_some() && job.reference.is_some();
        let is_ours = if is_known { job.reference == fact.reference } else { job.state != JobState::Due };
        if !is_ours {
            return self.foreign_refund_failed(fact);
        }
        if let Some(job) = self.touch_job(key, false) {
            job.reference = fact.reference.clone().or_else(|| job.reference.take());
        }
        self.set_status(key, PaymentStatus::Reversing);
        self.fail_job(key, false, "the provider says that it failed", now);
    }

    /// A refund that somebody made at the provider. Another one may fail as well; what it was told to bring counts no more.
    fn foreign_refund_failed(&mut self, fact: &PaymentFact) {
        self.set_refund_failed(&fact.payment, false);
        if let Some(amount) = fact.money.amount
            && let Some(payment) = self.touch_known_payment(&fact.payment)
        {
            payment.refunded = payment.refunded.saturating_sub(amount);
        }
    }

    /// The provider tells of a refund that is through: perhaps it is ours.
    pub(super) fn refund_told(&mut self, fact: &PaymentFact, payment: &Payment, now: Time) {
        let key = &fact.payment;
        let Some(job) = self.reversal(key).cloned() else { return };
        if payment.status != PaymentStatus::Reversing || job.kind != JobKind::Refund {
            return;
        }
        let is_ours = fact.reference.is_some() && fact.reference == job.reference;
        let is_all = matches!(fact.kind, PaymentKind::RefundedBy(_)) && payment.is_refunded() && !payment.refund_failed;
        if (is_ours && job.state != JobState::NeedsAttention) || is_all {
            self.set_refund_failed(key, false);
            self.finish_reversal(key, PaymentStatus::Refunded, fact.reference.as_ref(), now);
        }
    }

    fn set_refund_failed(&mut self, key: &PaymentKey, failed: bool) {
        if self.payment(key).is_some_and(|payment| payment.refund_failed != failed)
            && let Some(payment) = self.touch_known_payment(key)
        {
            payment.refund_failed = failed;
        }
    }

    pub(super) fn report_job(&mut self, report: &JobReport, now: Time) -> Result<Outcome, Refusal> {
        let is_capture = report.kind == JobKind::Capture;
        let job = self.job(&report.payment, is_capture).cloned().ok_or(Refusal::NotFound)?;
        if job.kind != report.kind {
            // A void that was overtaken by a capture has become a refund.
            return Err(Refusal::JobNotDue(job.state));
        }
        match &report.turn {
            JobTurn::Take { seconds } => self.take_job(report, &job, *seconds, now)?,
            JobTurn::Keep { attempt, seconds } => {
                self.taken_job(report, &job, *attempt)?.next_at = now.plus_seconds(*seconds);
            }
            JobTurn::Accepted { attempt, reference, seconds } => {
                let job = self.taken_job(report, &job, *attempt)?;
                job.reference = reference.clone().or_else(|| job.reference.take());
                job.next_at = now.plus_seconds(*seconds);
                job.error = None;
            }
            JobTurn::Done { attempt, reference } => {
                self.taken_job(report, &job, *attempt)?;
                self.job_done(&job, reference.as_ref(), now);
            }
            JobTurn::Later { attempt, error, seconds } => {
                let job = self.taken_job(report, &job, *attempt)?;
                job.error = Some(error.clone());
                job.next_at = now.plus_seconds(*seconds);
            }
            JobTurn::Failed { attempt, error } => {
                self.taken_job(report, &job, *attempt)?;
                self.job_failed(&job, error, now);
            }
            JobTurn::Retry => self.retry_job(report, &job, now)?,
        }
        let job = self.job(&report.payment, is_capture).cloned().ok_or(Refusal::NotFound)?;
        Ok(Outcome::Job(job))
    }

    fn take_job(&mut self, report: &JobReport, job: &Job, seconds: u32, now: Time) -> Result<(), Refusal> {
        if !matches!(job.state, JobState::Due | JobState::Requested) || job.next_at > now {
            return Err(Refusal::JobNotDue(job.state));
        }
        if let Some(job) = self.touch_job(&report.payment, report.kind == JobKind::Capture) {
            job.state = JobState::Requested;
            job.attempts += 1;
            job.next_at = now.plus_seconds(seconds);
        }
        if job.state == JobState::Due {
            self.note_payment(&report.payment, EntryKind::RefundRequested, now);
        }
        Ok(())
    }

    /// The job, for changing by whoever has taken it last.
    fn taken_job(&mut self, report: &JobReport, job: &Job, attempt: u32) -> Result<&mut Job, Refusal> {
        let refusal = Refusal::JobNotDue(job.state);
        if job.state != JobState::Requested || job.attempts != attempt {
            return Err(refusal);
        }
        self.touch_job(&report.payment, report.kind == JobKind::Capture).ok_or(refusal)
    }

    fn job_done(&mut self, job: &Job, reference: Option<&Ref>, now: Time) {
        let key = &job.payment;
        let Some(payment) = self.payment(key).cloned() else { return };
        match job.kind {
            JobKind::Refund => {
                let total = payment.money.amount.or(job.money.amount).unwrap_or(0).max(payment.refunded);
                if let Some(payment) = self.touch_known_payment(key) {
                    payment.refunded = total;
                }
                self.set_refund_failed(key, false);
                self.finish_reversal(key, PaymentStatus::Refunded, reference, now);
            }
            JobKind::Void => self.finish_reversal(key, PaymentStatus::Voided, reference, now),
            JobKind::Capture => {
                if !payment.captured
                    && let Some(payment) = self.touch_known_payment(key)
                {
                    payment.captured = true;
                    self.note_payment(key, EntryKind::PaymentCaptured, now);
                }
                self.finish_job(key, true, reference, now);
                self.follow(key, now);
            }
        }
    }

    fn job_failed(&mut self, job: &Job, why: &str, now: Time) {
        let payment = self.payment(&job.payment).cloned();
        match payment {
            Some(payment) if job.kind == JobKind::Capture && payment.status == PaymentStatus::Settled => {
                self.end_uncaptured(&payment, why, now);
            }
            _ => self.fail_job(&job.payment, job.kind == JobKind::Capture, why, now),
        }
    }

    fn retry_job(&mut self, report: &JobReport, job: &Job, now: Time) -> Result<(), Refusal> {
        if job.state == JobState::Succeeded || job.kind == JobKind::Capture {
            return Err(Refusal::JobNotDue(job.state));
        }
        if let Some(changed) = self.touch_job(&report.payment, report.kind == JobKind::Capture) {
            if job.state == JobState::NeedsAttention {
                changed.state = JobState::Due;
                if changed.reference.take().is_some() {
                    // The provider did something under this key, and it failed: it would tell the same again.
                    changed.idempotency_key = next_key(&job.idempotency_key);
                }
            }
            changed.next_at = now;
        }
        Ok(())
    }
}

/// `key`, `key~2`, `key~3`, …
fn next_key(key: &str) -> Box<str> {
    let counted = key.rsplit_once('~').and_then(|(stem, count)| Some((stem, count.parse::<u32>().ok()?)));
    let (stem, count) = counted.unwrap_or((key, 1));
    format!("{stem}~{}", count + 1).into()
}

#[cfg(test)]
mod tests {
    use super::next_key;

    #[test]
    fn a_spent_key_is_followed_by_another() {
        assert_eq!(&*next_key("holdfast-refund-stripe:pi_1"), "holdfast-refund-stripe:pi_1~2");
        assert_eq!(&*next_key("holdfast-refund-stripe:pi_1~2"), "holdfast-refund-stripe:pi_1~3");
    }
}
