//! What a database has to be able to do with notes, and with what is owed at providers.

use super::fault::Fault;
use crate::Note;
use async_trait::async_trait;
use holdfast_domain::{Job, PaymentKey, Time};

#[async_trait]
pub(crate) trait NoteTx: Send {
    async fn note(&mut self, name: &str) -> Result<Option<(String, Note)>, Fault>;

    /// Notes named after one name and before another, in byte order.
    async fn notes(&mut self, after: &str, before: &str, limit: usize) -> Result<Vec<(String, Note)>, Fault>;

    /// Writes a note, if it has this version; 0: if there is none. No text removes it. `false`: it had another.
    async fn put_note(&mut self, name: &str, version: u64, text: Option<&str>) -> Result<bool, Fault>;

    /// What is to be done at a provider by now, what has waited longest first.
    async fn due_jobs(&mut self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, Fault>;

    /// The jobs of a payment.
    async fn jobs_of(&mut self, key: &PaymentKey) -> Result<Vec<Job>, Fault>;
}
