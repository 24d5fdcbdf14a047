//! An engine as a desk.

use super::desk::{Desk, Note};
use async_trait::async_trait;
use holdfast_domain::Time;
use holdfast_engine::{Engine, EngineError, LedgerFilter, NumberedEntry, Page};
use std::sync::Arc;

/// See the file's header.
pub(crate) struct EngineDesk(pub(crate) Arc<dyn Engine>);

#[async_trait]
impl Desk for EngineDesk {
    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError> {
        self.0.note(name).await
    }

    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError> {
        self.0.notes(prefix, after, limit).await
    }

    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError> {
        self.0.put_note(name, version, text).await
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Page<NumberedEntry>, EngineError> {
        self.0.ledger(LedgerFilter { after, ..LedgerFilter::default() }, limit).await
    }

    fn time(&self) -> Time {
        self.0.time()
    }
}
