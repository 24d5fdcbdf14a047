//! Notes, and what is owed at providers.

use super::rows;
use super::sql;
use super::tx::{PgTx, size};
use crate::Note;
use crate::sql::{Fault, NoteTx};
use async_trait::async_trait;
use holdfast_domain::{Job, PaymentKey, Time};

#[async_trait]
impl NoteTx for PgTx {
    async fn note(&mut self, name: &str) -> Result<Option<(String, Note)>, Fault> {
        self.one(sql!("note"), &[&name], rows::note).await
    }

    async fn notes(&mut self, after: &str, before: &str, limit: usize) -> Result<Vec<(String, Note)>, Fault> {
        self.all(sql!("notes"), &[&after, &before, &size(limit)], rows::note).await
    }

    async fn put_note(&mut self, name: &str, version: u64, text: Option<&str>) -> Result<bool, Fault> {
        let version = version as i64;
        let told = match (version, text) {
            (0, Some(text)) => self.touch(sql!("insert_note"), &[&name, &text]).await?,
            (_, Some(text)) => self.touch(sql!("update_note"), &[&name, &version, &text]).await?,
            (_, None) => self.touch(sql!("delete_note"), &[&name, &version]).await?,
        };
        Ok(told == 1)
    }

    async fn due_jobs(&mut self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, Fault> {
        self.all(sql!("due_jobs"), &[&provider, &now.millis(), &size(limit)], rows::job).await
    }

    async fn jobs_of(&mut self, key: &PaymentKey) -> Result<Vec<Job>, Fault> {
        self.all(sql!("jobs"), &[&vec![key.provider.as_str()], &vec![key.payment_id.as_str()]], rows::job).await
    }
}
