//! What the relay asks of an engine: the ledger, the clock, and notes that are compared and set.

use async_trait::async_trait;
use holdfast_domain::Time;
pub use holdfast_engine::Note;
use holdfast_engine::{EngineError, NumberedEntry, Page};

/// The ledger, the clock and the notes of one engine.
#[async_trait]
pub trait Desk: Send + Sync + 'static {
    /// One note.
    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError>;

    /// Notes whose names begin so, in byte order of their names, after the given name.
    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError>;

    /// Writes a note, or deletes it, if it still has this version; 0 says that there must be none. `false`: it has
    /// another one. A note that was written has the version after this one.
    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError>;

    /// Ledger entries numbered above this, in order and without gaps.
    async fn entries(&self, after: u64, limit: usize) -> Result<Page<NumberedEntry>, EngineError>;

    /// The engine's clock.
    fn time(&self) -> Time;

    /// The number of the last entry, known to be `at_least` this. Numbers have no gaps, so a few looks find it however
    /// long the ledger is.
    async fn end(&self, at_least: u64) -> Result<u64, EngineError> {
        let (mut low, mut step) = (at_least, 1);
        if !self.has_above(low).await? {
            return Ok(low);
        }
        while self.has_above(low + step).await? {
            low += step;
            step *= 2;
        }
        let mut high = low + step;
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.has_above(middle).await? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(high)
    }

    /// Whether the ledger goes on after this number.
    async fn has_above(&self, seq: u64) -> Result<bool, EngineError> {
        let page = self.entries(seq, 1).await?;
        Ok(!page.items.is_empty() || page.next.is_some())
    }
}
