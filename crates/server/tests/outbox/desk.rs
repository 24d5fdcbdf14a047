//! A desk for tests: the ledger of a real engine, notes in memory, a clock that a test puts forward, and writes that fail
//! when a test says so.

use async_trait::async_trait;
use holdfast_engine::domain::Time;
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Engine, EngineError, LedgerFilter, NumberedEntry, Page};
use holdfast_server::outbox::{Desk, Note};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub struct TestDesk {
    pub engine: Arc<dyn Engine>,
    notes: Mutex<BTreeMap<String, Note>>,
    ahead: AtomicI64,
    /// The write that fails: 1 is the next one.
    fails: AtomicU32,
    _folder: TempDir,
}

impl TestDesk {
    pub fn new() -> Arc<Self> {
        let folder = TempDir::new().unwrap();
        let engine = Arc::new(Embedded::open(folder.path()).unwrap());
        let (notes, ahead, fails) = (Mutex::default(), AtomicI64::new(0), AtomicU32::new(0));
        Arc::new(Self { engine, notes, ahead, fails, _folder: folder })
    }

    /// Puts the clock forward.
    pub fn pass(&self, time: Duration) {
        self.ahead.fetch_add(time.as_millis() as i64, Ordering::Relaxed);
    }

    /// The nth write from now on fails, as if the node died just before it.
    pub fn fail_write(&self, nth: u32) {
        self.fails.store(nth, Ordering::Relaxed);
    }
}

#[async_trait]
impl Desk for TestDesk {
    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError> {
        Ok(self.notes.lock().unwrap().get(name).cloned())
    }

    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError> {
        let notes = self.notes.lock().unwrap();
        let is_in = |name: &str| name.starts_with(prefix) && after.is_none_or(|after| name > after);
        let found = notes.iter().filter(|(name, _)| is_in(name)).take(limit);
        Ok(found.map(|(name, note)| (name.clone(), note.clone())).collect())
    }

    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError> {
        assert!(name.len() <= 255 && text.is_none_or(|text| text.len() <= 64 << 10), "{name}");
        if self.fails.load(Ordering::Relaxed) > 0 && self.fails.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(EngineError::Unavailable("a test said so".into()));
        }
        let mut notes = self.notes.lock().unwrap();
        if notes.get(name).map_or(0, |note| note.version) != version {
            return Ok(false);
        }
        match text {
            Some(text) => notes.insert(name.to_owned(), Note { version: version + 1, text: text.to_owned() }),
            None => notes.remove(name),
        };
        Ok(true)
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Page<NumberedEntry>, EngineError> {
        self.engine.ledger(LedgerFilter { after, ..LedgerFilter::default() }, limit).await
    }

    fn time(&self) -> Time {
        Time::from_millis(self.engine.time().millis() + self.ahead.load(Ordering::Relaxed))
    }
}
