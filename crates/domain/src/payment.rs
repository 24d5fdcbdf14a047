//! What payment providers tell us, and what we owe in return.

use crate::{HoldId, Money, OrderId, Ref, Time};
use std::fmt;

/// A provider's payment: `stripe` and `pi_3N…`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentKey {
    /// The provider's name.
    pub provider: Ref,
    /// The provider's id of the payment.
    pub payment_id: Ref,
}

impl fmt::Display for PaymentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider, self.payment_id)
    }
}

impl fmt::Debug for PaymentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a provider said happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaymentKind {
    /// The money is reserved at the bank.
    Authorized,
    /// The money is ours.
    Captured,
    /// An attempt failed; the shopper may try again.
    Failed,
    /// The provider's object was canceled.
    Canceled,
    /// So much was given back so far, in minor units, all refunds of the payment taken together.
    Refunded(u64),
    /// So much was given back by one refund, in minor units, besides what others gave back.
    RefundedBy(u64),
    /// A capture did not bring the money after all.
    CaptureFailed,
    /// A refund has reached the shopper.
    RefundSucceeded,
    /// A refund, or a void, did not come about after all.
    RefundFailed,
    /// The shopper's bank takes the money back, or asks to.
    Disputed,
    /// Nothing yet, but which order the payment is for.
    Named,
}

/// How a fact names the order it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderRef {
    /// By the merchant's id.
    Order(OrderId),
    /// By the hold's id.
    Hold(HoldId),
}

/// One fact from a provider, verified and parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentFact {
    /// The provider's id of the event, for deduplication.
    pub event_id: Ref,
    /// Which payment.
    pub payment: PaymentKey,
    /// What happened.
    pub kind: PaymentKind,
    /// Which order it is for, if told.
    pub order: Option<OrderRef>,
    /// How much, if told.
    pub money: Money,
    /// Where to write to the shopper, if told.
    pub email: Option<Box<str>>,
    /// The provider's id of the refund, the capture or the dispute that it tells of.
    pub reference: Option<Ref>,
}

/// Where a payment stands with us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentStatus {
    /// Known by name only: no money has moved.
    Open,
    /// Money came before we knew the order.
    Unmatched,
    /// A person must look.
    NeedsAttention,
    /// It pays for its order.
    Settled,
    /// It is to go back, or is on its way.
    Reversing,
    /// All of it went back. Never left again.
    Refunded,
    /// The authorisation was let go. Never left again.
    Voided,
}

impl PaymentStatus {
    const ALL: [Self; 7] = [
        Self::Open,
        Self::Unmatched,
        Self::NeedsAttention,
        Self::Settled,
        Self::Reversing,
        Self::Refunded,
        Self::Voided,
    ];

    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Unmatched => "unmatched",
            Self::NeedsAttention => "needs_attention",
            Self::Settled => "settled",
            Self::Reversing => "reversing",
            Self::Refunded => "refunded",
            Self::Voided => "voided",
        }
    }

    /// Reads the stable name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
}

/// Everything we were told of one payment, and where it stands.
// Facts, not states: each may come true independently of the others, once, in any order.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Which one.
    pub key: PaymentKey,
    /// The order it is for, once told.
    pub order: Option<OrderRef>,
    /// What it brought.
    pub money: Money,
    /// Where to write to the shopper.
    pub email: Option<Box<str>>,
    /// The bank reserved the money.
    pub authorized: bool,
    /// The money is ours.
    pub captured: bool,
    /// An attempt failed.
    pub failed: bool,
    /// It was canceled at the provider.
    pub canceled: bool,
    /// A capture failed for good.
    pub capture_failed: bool,
    /// The refund that we asked for failed, and nobody has asked again.
    pub refund_failed: bool,
    /// Its money is disputed.
    pub disputed: bool,
    /// Minor units given back so far.
    pub refunded: u64,
    /// Where it stands.
    pub status: PaymentStatus,
    /// When we first heard of it, or, if its money came before its order was known, when that was.
    pub received_at: Time,
}

impl Payment {
    /// A payment of which nothing is known but its name.
    pub(crate) fn new(key: PaymentKey, now: Time) -> Self {
        Self {
            key,
            order: None,
            money: Money::default(),
            email: None,
            authorized: false,
            captured: false,
            failed: false,
            canceled: false,
            capture_failed: false,
            refund_failed: false,
            disputed: false,
            refunded: 0,
            status: PaymentStatus::Open,
            received_at: now,
        }
    }

    /// The money came and stayed.
    pub fn is_captured(&self) -> bool {
        self.captured && !self.capture_failed
    }

    /// All of what it brought was given back.
    pub fn is_refunded(&self) -> bool {
        self.money.amount.is_some_and(|amount| amount > 0 && self.refunded >= amount)
    }
}

/// What a job does at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Send captured money back.
    Refund,
    /// Let an authorisation go.
    Void,
    /// Turn an authorisation into money.
    Capture,
}

impl JobKind {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::Void => "void",
            Self::Capture => "capture",
        }
    }

    /// Reads the stable name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Refund, Self::Void, Self::Capture].into_iter().find(|k| k.as_str() == text)
    }
}

/// Why a job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobReason {
    /// The payment is not what the hold asked.
    AmountMismatch,
    /// Another payment pays for the order.
    DuplicatePayment,
    /// The hold had lapsed and the units are gone.
    StockGone,
    /// No hold appeared in time, and the shop wants such money sent back.
    Unmatched,
    /// A confirmed order's payment was only authorised.
    OrderConfirmed,
    /// It could not be captured, and its order ended.
    CaptureFailed,
}

impl JobReason {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AmountMismatch => "amount_mismatch",
            Self::DuplicatePayment => "duplicate_payment",
            Self::StockGone => "stock_gone",
            Self::Unmatched => "unmatched",
            Self::OrderConfirmed => "order_confirmed",
            Self::CaptureFailed => "capture_failed",
        }
    }

    const ALL: [Self; 6] = [
        Self::AmountMismatch,
        Self::DuplicatePayment,
        Self::StockGone,
        Self::Unmatched,
        Self::OrderConfirmed,
        Self::CaptureFailed,
    ];

    /// Reads the stable name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Nobody has asked the provider yet.
    Due,
    /// The provider was asked; the answer may be on its way.
    Requested,
    /// The provider did it.
    Succeeded,
    /// A person must look.
    NeedsAttention,
}

impl JobState {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Requested => "requested",
            Self::Succeeded => "succeeded",
            Self::NeedsAttention => "needs_attention",
        }
    }

    /// Reads the stable name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Due, Self::Requested, Self::Succeeded, Self::NeedsAttention].into_iter().find(|s| s.as_str() == text)
    }
}

/// Something owed at the provider: at most one reversal and one capture a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which payment.
    pub payment: PaymentKey,
    /// What to do.
    pub kind: JobKind,
    /// Why.
    pub reason: JobReason,
    /// How far it is.
    pub state: JobState,
    /// The provider's idempotency key, made once and kept for life.
    pub idempotency_key: Box<str>,
    /// How much.
    pub money: Money,
    /// When it became due.
    pub created_at: Time,
    /// How often somebody took it to ask the provider. A report names the number it was taken with.
    pub attempts: u32,
    /// Nobody takes it before this moment.
    pub next_at: Time,
    /// The provider's id of what it did.
    pub reference: Option<Ref>,
    /// What went wrong last, in words for people.
    pub error: Option<Box<str>>,
}

/// What became of a job: see [`crate::Command::Job`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReport {
    /// Of which payment.
    pub payment: PaymentKey,
    /// What it is about. A report on another kind of job than the payment has by now is refused.
    pub kind: JobKind,
    /// What.
    pub turn: JobTurn,
}

/// The turns that a job takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobTurn {
    /// Somebody is about to ask the provider, and wants to be alone in it for so many seconds.
    Take {
        /// How long.
        seconds: u32,
    },
    /// Whoever has it is still about it, and wants so many seconds more.
    Keep {
        /// The number it was taken with.
        attempt: u32,
        /// How long, from now.
        seconds: u32,
    },
    /// The provider has accepted it and will tell the end later. Look again after so many seconds.
    Accepted {
        /// The number it was taken with.
        attempt: u32,
        /// The provider's id of what it does.
        reference: Option<Ref>,
        /// How long to wait for the provider's word.
        seconds: u32,
    },
    /// The provider did it.
    Done {
        /// The number it was taken with.
        attempt: u32,
        /// The provider's id of what it did.
        reference: Option<Ref>,
    },
    /// It could not be done now.
    Later {
        /// The number it was taken with.
        attempt: u32,
        /// Why, in words for people.
        error: Box<str>,
        /// When to try again.
        seconds: u32,
    },
    /// It will not be done however often it is tried.
    Failed {
        /// The number it was taken with.
        attempt: u32,
        /// Why, in words for people.
        error: Box<str>,
    },
    /// A person wants it tried again.
    Retry,
}
