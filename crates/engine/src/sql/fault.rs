//! What a database can answer instead of an answer, by what may be believed afterwards.

use crate::EngineError;
use crate::records::Corrupt;
use std::fmt;

/// Why a transaction did not end well. Causes are for logs only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing was applied, and the same may work at once: a deadlock, a row that somebody else made or changed.
    Again(String),
    /// Nothing was applied.
    Unavailable(String),
    /// It may have been applied.
    Unknown(String),
    /// What is stored contradicts the rules; nothing was applied.
    Corrupt(String),
}

impl From<Corrupt> for Fault {
    fn from(found: Corrupt) -> Self {
        Self::Corrupt(found.0)
    }
}

impl From<Fault> for EngineError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Again(why) | Fault::Unavailable(why) => Self::Unavailable(why),
            Fault::Unknown(why) => Self::Unknown(why),
            Fault::Corrupt(why) => Self::Corrupt(why),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Again(why) | Self::Unavailable(why) | Self::Unknown(why) | Self::Corrupt(why) => f.write_str(why),
        }
    }
}

/// Why an engine could not be opened, in words that name the way out. Never tells the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError(pub(crate) String);

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenError {}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        Self(fault.to_string())
    }
}
