//! What is known of a sink, kept in one note. Whoever writes it has read it before, and loses to whoever was faster.

use super::desk::Desk;
use holdfast_domain::Time;
use holdfast_engine::EngineError;
use serde::{Deserialize, Serialize};

/// The longest error that is kept.
const ERROR_LIMIT: usize = 500;

/// How far a sink is, and who sends to it. Moments are milliseconds of the engine's time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SinkState {
    /// The number of the last entry that it has got, or that was not for it.
    pub cursor: u64,
    /// The node that sends.
    pub owner: String,
    /// Until then no other node does.
    pub until: i64,
    /// The entry that was not accepted.
    pub head: Option<u64>,
    /// Failed attempts to send it.
    pub attempts: u32,
    /// How often in a row the sink could not be reached.
    pub away: u32,
    /// Nothing is sent before then.
    pub next_at: i64,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// Why nothing is sent at all.
    pub disabled: Option<String>,
    /// The entry that a person has given up.
    pub skip: Option<u64>,
    /// Some dead letters are to be sent again.
    pub replay: bool,
}

impl SinkState {
    /// Forgets what failed: the sink is tried at once, with a new schedule.
    pub(super) fn heal(&mut self) {
        (self.head, self.attempts, self.away, self.next_at, self.last_error) = (None, 0, 0, 0, None);
    }

    pub(super) fn fail(&mut self, why: &str) {
        self.last_error = Some(clipped(why));
    }

    pub(super) fn is_leased(&self, now: Time) -> bool {
        !self.owner.is_empty() && now.millis() < self.until
    }
}

/// An error in one line of bounded length.
pub(super) fn clipped(why: &str) -> String {
    let line: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).take(ERROR_LIMIT).collect();
    line.trim().to_owned()
}

pub(super) fn note_name(sink: &str) -> String {
    format!("sink/{sink}")
}

/// The state and its version; `None` for a sink that was never started.
pub(super) async fn read(desk: &dyn Desk, sink: &str) -> Result<Option<(SinkState, u64)>, EngineError> {
    let name = note_name(sink);
    let Some(note) = desk.note(&name).await? else { return Ok(None) };
    Ok(Some((parse(&name, &note.text)?, note.version)))
}

/// Whether it was written: not when somebody else was faster.
pub(super) async fn write(desk: &dyn Desk, sink: &str, version: u64, state: &SinkState) -> Result<bool, EngineError> {
    desk.put_note(&note_name(sink), version, Some(&text(state)?)).await
}

pub(super) fn parse<T: for<'a> Deserialize<'a>>(name: &str, text: &str) -> Result<T, EngineError> {
    serde_json::from_str(text).map_err(|e| EngineError::Corrupt(format!("the note {name} cannot be read: {e}")))
}

pub(super) fn text(value: &impl Serialize) -> Result<String, EngineError> {
    serde_json::to_string(value).map_err(|e| EngineError::Corrupt(format!("a note cannot be written: {e}")))
}
