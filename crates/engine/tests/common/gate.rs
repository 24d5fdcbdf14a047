//! An engine behind a gate: a batch that has come in waits until the test opens it.

use async_trait::async_trait;
use holdfast_engine::domain::{Command, Hold, HoldId, Job, OrderId, Payment, PaymentKey, Sku, Stock, Time};
use holdfast_engine::{
    Answer, AuditReport, Engine, EngineError, Health, HoldFilter, LedgerFilter, Note, Now, NumberedEntry, OrderView,
    Page,
};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// See the file's header.
pub struct Gated {
    inner: Arc<dyn Engine>,
    gate: Semaphore,
    waiting: Semaphore,
    lanes: usize,
}

impl Gated {
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Self { inner, gate: Semaphore::new(0), waiting: Semaphore::new(0), lanes: 1 }
    }

    /// With a lane for holds before all others, and no gate before holds.
    pub fn with_free_holds(inner: Arc<dyn Engine>) -> Self {
        Self { lanes: 2, ..Self::new(inner) }
    }

    /// Waits until a batch stands before the gate.
    pub async fn entered(&self) {
        self.waiting.acquire().await.unwrap().forget();
    }

    /// Opens the gate for good.
    pub fn open(&self) {
        self.gate.close();
    }
}

#[async_trait]
impl Engine for Gated {
    async fn apply(&self, batch: Vec<Command>, now: Now) -> Result<Vec<Answer>, EngineError> {
        if self.lanes > 1 && batch.iter().all(|command| self.lane_of(command) == 0) {
            return self.inner.apply(batch, now).await;
        }
        self.waiting.add_permits(1);
        // A closed semaphore is an open gate.
        let _ = self.gate.acquire().await;
        self.inner.apply(batch, now).await
    }

    fn is_blocking(&self) -> bool {
        self.inner.is_blocking()
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn lane_of(&self, command: &Command) -> usize {
        usize::from(!matches!(command, Command::Hold(_))) % self.lanes
    }

    async fn stock(&self, sku: &Sku) -> Result<Option<Stock>, EngineError> {
        self.inner.stock(sku).await
    }

    async fn stocks(&self, after: Option<&Sku>, limit: usize) -> Result<Page<Stock>, EngineError> {
        self.inner.stocks(after, limit).await
    }

    async fn hold(&self, id: HoldId) -> Result<Option<Hold>, EngineError> {
        self.inner.hold(id).await
    }

    async fn holds(&self, filter: HoldFilter, limit: usize) -> Result<Page<Hold>, EngineError> {
        self.inner.holds(filter, limit).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<OrderView>, EngineError> {
        self.inner.order(id).await
    }

    async fn ledger(&self, filter: LedgerFilter, limit: usize) -> Result<Page<NumberedEntry>, EngineError> {
        self.inner.ledger(filter, limit).await
    }

    async fn payments(&self, status: Option<String>, after: u64, limit: usize) -> Result<Page<Payment>, EngineError> {
        self.inner.payments(status, after, limit).await
    }

    async fn refunds(&self, state: Option<String>, after: u64, limit: usize) -> Result<Page<Job>, EngineError> {
        self.inner.refunds(state, after, limit).await
    }

    async fn payment(&self, key: &PaymentKey) -> Result<Option<(Payment, Vec<Job>)>, EngineError> {
        self.inner.payment(key).await
    }

    async fn due_jobs(&self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, EngineError> {
        self.inner.due_jobs(provider, now, limit).await
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError> {
        self.inner.note(name).await
    }

    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError> {
        self.inner.notes(prefix, after, limit).await
    }

    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError> {
        self.inner.put_note(name, version, text).await
    }

    async fn audit(&self) -> Result<AuditReport, EngineError> {
        self.inner.audit().await
    }

    async fn health(&self) -> Health {
        self.inner.health().await
    }

    fn time(&self) -> Time {
        self.inner.time()
    }
}
