//! What we ask of payment providers: one client each, behind one trait.
//!
//! A client carries out one job at a time and says what became of it; it keeps no state, decides no rule and never asks
//! for the same money twice. When to ask again is the runner's business.

pub(crate) mod adyen;
mod http;
#[cfg(test)]
mod scripted;
pub(crate) mod stripe;

use async_trait::async_trait;
use holdfast_domain::{Job, PaymentFact, Ref};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// A payment provider that does what is owed to it or by it.
#[async_trait]
pub(crate) trait Provider: Send + Sync {
    /// The name that its payments carry.
    fn name(&self) -> &'static str;

    /// Carries the job out, or finds out that it was. `order`: what the payment is for, for the provider's books.
    /// `again`: it was tried before, and the answer may have been lost.
    async fn carry_out(&self, job: &Job, order: Option<&str>, again: bool) -> Reply;

    /// Closes the window in which the shopper can pay, unless money has moved by now.
    async fn close(&self, payment_ref: &str) -> Closed;

    /// What the provider says of a payment now. Nothing, where a provider cannot be asked.
    async fn look(&self, payment: &Ref) -> Result<Vec<PaymentFact>, Trouble>;
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It is done.
    Done {
        /// The provider's id of what it did.
        reference: Option<Ref>,
    },
    /// It is under way, and a webhook will tell the end.
    Accepted {
        /// The provider's id of what it does.
        reference: Option<Ref>,
    },
    /// It was to be voided, but the money was captured by now: it has to be refunded.
    IsCaptured,
    /// It was to be refunded, but no money was captured, and none can be any more.
    NotCaptured,
    /// It could not be done or found out now.
    Later {
        /// Why, in words for people.
        error: String,
        /// Seconds that the provider asks to wait.
        retry_after: Option<u64>,
    },
    /// The provider does not let us in: nothing can be done with these settings, and no attempt was spent.
    Halt {
        /// Why, in words for people.
        error: String,
    },
    /// It will not be done however often it is tried.
    Failed {
        /// Why, in words for people.
        error: String,
    },
}

/// What became of a payment window.
#[allow(clippy::enum_variant_names, reason = "the word is what it is")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Nobody can pay in it any more.
    Closed,
    /// It was paid, or is being paid: webhooks, or a look, tell the rest.
    AlreadyPaid,
    /// The provider knows no such window, or has no way to close it.
    Unknown,
    /// It could not be closed now.
    Later {
        /// Why, in words for people.
        error: String,
        /// Seconds that the provider asks to wait.
        retry_after: Option<u64>,
    },
}

/// Why a provider gave no useful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// As [`Reply::Later`].
    Later {
        /// Why, in words for people.
        error: String,
        /// Seconds that the provider asks to wait.
        retry_after: Option<u64>,
    },
    /// As [`Reply::Halt`].
    Halt {
        /// Why, in words for people.
        error: String,
    },
    /// As [`Reply::Failed`].
    Failed {
        /// Why, in words for people.
        error: String,
    },
}

impl From<Trouble> for Reply {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Later { error, retry_after } => Self::Later { error, retry_after },
            Trouble::Halt { error } => Self::Halt { error },
            Trouble::Failed { error } => Self::Failed { error },
        }
    }
}

impl From<Trouble> for Closed {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Later { error, retry_after } => Self::Later { error, retry_after },
            // A setting may be put right; a window that is not closed costs nothing but a late payment.
            Trouble::Halt { error } | Trouble::Failed { error } => Self::Later { error, retry_after: None },
        }
    }
}

/// The key, or a digest of it where the provider takes no key so long: the same one each time.
fn fitting_key(key: &str, max_bytes: usize) -> Cow<'_, str> {
    if key.len() <= max_bytes && key.bytes().all(|b| b.is_ascii_graphic()) {
        Cow::Borrowed(key)
    } else {
        Cow::Owned(hex::encode(Sha256::digest(key.as_bytes())))
    }
}

/// Whether a provider can have given such an id: nothing in it can lead to another path.
fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_fit_and_stay_the_same() {
        assert_eq!(fitting_key("holdfast-refund-stripe:pi_1~2", 64), "holdfast-refund-stripe:pi_1~2");
        let long = format!("holdfast-refund-stripe:{}", "x".repeat(255));
        let fitting = fitting_key(&long, 64);
        assert_eq!((fitting.len(), fitting_key(&long, 64)), (64, fitting.clone()));
        assert_ne!(fitting_key(&format!("{long}y"), 64), fitting);
        assert_eq!(fitting_key("holdfast-refund-stripe:ü", 64).len(), 64, "a header carries ASCII only");
    }

    #[test]
    fn ids_that_lead_elsewhere_are_none() {
        assert!(is_plain_id("pi_3NxyZ") && is_plain_id("7914073381342284"));
        for bad in ["", "..", "pi_1/cancel", "pi_1?x=1", "pi_1#", "pi%2F", "pi 1", "pï"] {
            assert!(!is_plain_id(bad), "{bad}");
        }
    }
}
