//! What an engine answers when the infrastructure failed. A refusal is never one of these.

use std::fmt;

/// What the caller may believe after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineError {
    /// The lane is full; nothing was applied.
    Overloaded,
    /// Nothing was applied; carries the cause, for logs only.
    Unavailable(String),
    /// Nothing was applied: what is stored is being compared with the ledger first. Carries the cause, for logs only.
    Auditing(String),
    /// It may have been applied; the same request may be repeated safely. Carries the cause, for logs only.
    Unknown(String),
    /// What is stored contradicts the rules; stop. Carries the finding, for logs only.
    Corrupt(String),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded => f.write_str("the lane is full"),
            Self::Unavailable(why) => write!(f, "the engine is unavailable: {why}"),
            Self::Auditing(why) => write!(f, "the engine is being audited: {why}"),
            Self::Unknown(why) => write!(f, "the outcome is unknown: {why}"),
            Self::Corrupt(why) => write!(f, "the store is corrupt: {why}"),
        }
    }
}

impl std::error::Error for EngineError {}
