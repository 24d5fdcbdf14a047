//! Dead letters: events that a sink did not accept, by number, until a person sends them again or drops them.

use super::desk::Desk;
use super::event::padded;
use super::state::{parse, text};
use holdfast_engine::EngineError;
use serde::{Deserialize, Serialize};

/// An event that was given up. Its data is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The entry's number.
    pub seq: u64,
    /// When it was given up, in milliseconds of the engine's time since 1970.
    pub at: i64,
    /// Attempts in vain.
    pub attempts: u32,
    /// Why the last one failed.
    pub error: String,
    /// It is about to be sent again.
    #[serde(default)]
    pub replay: bool,
}

pub(super) fn prefix(sink: &str) -> String {
    format!("dead/{sink}/")
}

fn note_name(sink: &str, seq: u64) -> String {
    format!("dead/{sink}/{}", padded(seq))
}

/// A dead letter and the version of its note.
pub(super) type Kept = (DeadLetter, u64);

/// In order of their numbers, above this one.
pub(super) async fn list(desk: &dyn Desk, sink: &str, after: u64, limit: usize) -> Result<Vec<Kept>, EngineError> {
    let after = note_name(sink, after);
    let notes = desk.notes(&prefix(sink), Some(&after), limit).await?;
    notes.iter().map(|(name, note)| Ok((parse(name, &note.text)?, note.version))).collect()
}

pub(super) async fn one(desk: &dyn Desk, sink: &str, seq: u64) -> Result<Option<Kept>, EngineError> {
    let name = note_name(sink, seq);
    let Some(note) = desk.note(&name).await? else { return Ok(None) };
    Ok(Some((parse(&name, &note.text)?, note.version)))
}

/// Keeps a new one. One that is there already stays as it is: the event has died before, and its cursor did not move.
pub(super) async fn keep(desk: &dyn Desk, sink: &str, letter: &DeadLetter) -> Result<(), EngineError> {
    desk.put_note(&note_name(sink, letter.seq), 0, Some(&text(letter)?)).await.map(drop)
}

pub(super) async fn change(desk: &dyn Desk, sink: &str, (letter, version): &Kept) -> Result<bool, EngineError> {
    desk.put_note(&note_name(sink, letter.seq), *version, Some(&text(letter)?)).await
}

pub(super) async fn forget(desk: &dyn Desk, sink: &str, (letter, version): &Kept) -> Result<bool, EngineError> {
    desk.put_note(&note_name(sink, letter.seq), *version, None).await
}
