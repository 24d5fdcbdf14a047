//! What Redis's errors mean for whoever waits. Must never call something undone that may have been done.

use super::config::Address;
use redis::{ServerError, Value};
use std::fmt;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetError {
    /// Nothing was done. Carries the cause, for logs only.
    Unavailable(String),
    /// It was sent and may have been done. Carries the cause, for logs only.
    Unknown(String),
    /// Another server process than expected serves the partition, and nothing was done. Carries its identity.
    Changed(String),
    /// What the command or the script itself answered: a bug or a damaged store.
    Command(String),
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) | Self::Unknown(why) | Self::Command(why) => write!(f, "Redis: {why}"),
            Self::Changed(to) => write!(f, "Redis: another server process serves the partition now: {to}"),
        }
    }
}

impl std::error::Error for NetError {}

/// Why a server did not run a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another server has the slot.
    Moved(Address),
    /// The slot is on its way to another server, and these keys are not here.
    Ask(Address),
    /// The same may be asked again in a moment.
    Later,
    /// It is no primary any more.
    Demoted,
    /// No use asking again at once.
    Unable,
}

/// What an error means if it says that the command was not run; otherwise the command itself failed.
///
/// A script that fails half-way may have written. The errors below come before its first write: Redis looks at memory,
/// replicas and its role before the first write of a script and never after it.
pub(super) fn refusal(error: &ServerError, asked: &Address) -> Option<Refusal> {
    let details = error.details().unwrap_or_default();
    let target = || details.split_whitespace().nth(1).and_then(|text| Address::told(text, asked));
    let is_of_script = details.contains("script:") || details.contains("@user_script");
    Some(match error.code() {
        "MOVED" => target().map_or(Refusal::Later, Refusal::Moved),
        "ASK" => target().map_or(Refusal::Later, Refusal::Ask),
        "TRYAGAIN" | "CLUSTERDOWN" => Refusal::Later,
        "READONLY" | "MASTERDOWN" | "UNBLOCKED" => Refusal::Demoted,
        "ERR" if details.starts_with("WAIT cannot be used with replica") => Refusal::Demoted,
        "LOADING" | "OOM" | "NOREPLICAS" | "MISCONF" | "BUSY" | "NOAUTH" | "WRONGPASS" => Refusal::Unable,
        "NOPERM" if !is_of_script => Refusal::Unable,
        "ERR" if details.starts_with("max number of clients") => Refusal::Unable,
        _ => return None,
    })
}

/// As Redis wrote it.
pub(super) fn text(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

/// One answer of several, of which others may have been run.
pub(super) fn answer(value: Value, asked: &Address) -> Result<Value, NetError> {
    match value {
        Value::ServerError(error) => {
            let why = format!("{asked}: {}", text(&error));
            Err(match refusal(&error, asked) {
                Some(_) => NetError::Unavailable(why),
                None => NetError::Command(text(&error)),
            })
        }
        value => Ok(value),
    }
}
