//! Writes to shoppers whose payment came when nothing was left: a sink of the ledger's entries. At least once each; what
//! is sent again, after a crash, has the same Message-ID.

use crate::config::ConfigError;
use crate::mail::{Mailer, Notice, NoticeKind, Settings};
use crate::outbox::{Done, Event, Failure, Sent, Sink};
use crate::payments::Secret;
use async_trait::async_trait;
use holdfast_domain::{EntryKind, Job, JobKind, JobReason, JobState, OrderRef, PaymentKey, Ref};
use holdfast_engine::Engine;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// What a shopper is told of: that the provider is being asked, and that it has done it.
pub(crate) const KINDS: [EntryKind; 2] = [EntryKind::RefundRequested, EntryKind::RefundSucceeded];
/// What could not be sent for so many seconds becomes a dead letter.
const TRIED_FOR: u32 = 3 * 24 * 3600;
/// Mails of one pass. One that cannot be sent now does not keep the others of its pass from being sent.
const BATCH: usize = 1000;

/// `[mail]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailConfig {
    /// `smtps://user:password@host`. Without it, nobody is written to.
    pub smtp_url: Option<Secret>,
    /// `Shop <orders@shop.example>`.
    pub from: Option<String>,
    /// A folder with templates of the shop's own.
    pub templates: Option<PathBuf>,
    /// PEM certificates to trust besides the public ones.
    pub ca: Option<PathBuf>,
}

impl MailConfig {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// In words that name the setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.mailer().map(drop)
    }

    pub(crate) fn mailer(&self) -> Result<Option<Mailer>, ConfigError> {
        let Some(url) = &self.smtp_url else { return Ok(None) };
        let from = self.from.as_deref().ok_or_else(|| {
            ConfigError("mail: an SMTP server needs a sender: HOLDFAST_MAIL_FROM='Shop <orders@shop.example>'".into())
        })?;
        let settings =
            Settings { smtp_url: &url.0, from, templates: self.templates.as_deref(), ca: self.ca.as_deref() };
        Mailer::new(&settings).map(Some).map_err(|why| ConfigError(format!("mail: {why}")))
    }
}

/// See the file's header.
pub(crate) struct Post {
    engine: Arc<dyn Engine>,
    mailer: Mailer,
    done: Done,
}

impl Post {
    pub(crate) fn new(engine: Arc<dyn Engine>, mailer: Mailer) -> Self {
        Self { engine, mailer, done: Done::default() }
    }

    /// What to write, if anything.
    async fn notice(&self, event: &Event) -> Result<Option<Notice>, Failure> {
        let Some(key) = event.entry.reason.as_deref().and_then(payment) else { return Ok(None) };
        let found = self.engine.payment(&key).await.map_err(|error| Failure::Away(error.to_string()))?;
        let Some((payment, jobs)) = found else { return Ok(None) };
        let Some(job) = jobs.into_iter().find(|job| job.kind != JobKind::Capture) else { return Ok(None) };
        let (Some(kind), Some(to)) = (kind(event.kind, &job), payment.email) else { return Ok(None) };
        let named = match payment.order {
            Some(OrderRef::Order(id)) => Some(id.to_string()),
            Some(OrderRef::Hold(id)) => Some(id.to_string()),
            None => None,
        };
        let order = event.entry.order.as_ref().map(ToString::to_string).or(named).unwrap_or_default();
        Ok(Some(Notice {
            kind,
            to,
            order_id: order.into(),
            provider: key.provider.clone(),
            money: job.money,
            reference: job.reference,
            // Not the job's key: a void that became a refund is told of once.
            idempotency_key: key.to_string().into(),
        }))
    }

    async fn tell(&self, event: &Event) -> Result<(), Failure> {
        let Some(notice) = self.notice(event).await? else { return Ok(()) };
        match self.mailer.send(&notice).await {
            Ok(()) => {
                tracing::info!(seq = event.seq, kind = notice.kind.as_str(), "the shopper was written to");
                Ok(())
            }
            Err(failed) => {
                // Servers like to repeat whom they were asked to write to.
                let why = failed.error.replace(&*notice.to, "the shopper");
                let is_old = event.at.plus_seconds(TRIED_FOR) < self.engine.time();
                Err(if failed.permanent || is_old { Failure::Refused(why) } else { Failure::Away(why) })
            }
        }
    }
}

/// Which of the mails this entry is for. Only those who came too late are written to.
fn kind(entry: EntryKind, job: &Job) -> Option<NoticeKind> {
    match entry {
        _ if job.reason != JobReason::StockGone => None,
        EntryKind::RefundSucceeded => (job.state == JobState::Succeeded).then_some(NoticeKind::RefundDone),
        _ => Some(NoticeKind::WindowLapsed),
    }
}

/// The payment that an entry tells of.
fn payment(reason: &str) -> Option<PaymentKey> {
    let (provider, payment_id) = reason.split_once(':')?;
    Some(PaymentKey { provider: Ref::new(provider).ok()?, payment_id: Ref::new(payment_id).ok()? })
}

#[async_trait]
impl Sink for Post {
    async fn send(&mut self, events: &[Event]) -> Sent {
        let (mut first, mut failed) = (None, 0);
        for (index, event) in events.iter().enumerate() {
            if self.done.has(event) {
                continue;
            }
            match self.tell(event).await {
                Ok(()) => self.done.note(event),
                Err(failure) => {
                    failed += 1;
                    first = first.or(Some((index, failure)));
                    // One shopper's server may be busy; when several fail, it is ours.
                    if failed == 3 {
                        break;
                    }
                }
            }
        }
        self.done.sent(events, first)
    }

    fn batch(&self) -> usize {
        BATCH
    }
}
