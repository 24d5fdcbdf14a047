//! Notes, and what is owed at providers.

use super::rows;
use super::sql;
use super::tx::{MyTx, list, one, size};
use crate::Note;
use crate::sql::{Fault, NoteTx};
use async_trait::async_trait;
use holdfast_domain::{Job, PaymentKey, Time};

#[async_trait]
impl NoteTx for MyTx {
    async fn note(&mut self, name: &str) -> Result<Option<(String, Note)>, Fault> {
        self.one(sql!("note"), vec![one(name)], rows::note).await
    }

    async fn notes(&mut self, after: &str, before: &str, limit: usize) -> Result<Vec<(String, Note)>, Fault> {
        self.all(sql!("notes"), vec![one(after), one(before), size(limit)], rows::note).await
    }

    async fn put_note(&mut self, name: &str, version: u64, text: Option<&str>) -> Result<bool, Fault> {
        let version = version as i64;
        let (sql, values) = match (version, text) {
            (0, Some(text)) => (sql!("insert_note"), vec![name.into(), text.into()]),
            (_, Some(text)) => (sql!("update_note"), vec![text.into(), name.into(), version.into()]),
            (_, None) => (sql!("delete_note"), vec![name.into(), version.into()]),
        };
        let told = self.touch(sql.to_owned(), values).await?;
        Ok(told == 1)
    }

    async fn due_jobs(&mut self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, Fault> {
        self.all(sql!("due_jobs"), vec![one(provider), one(now.millis()), size(limit)], rows::job).await
    }

    async fn jobs_of(&mut self, key: &PaymentKey) -> Result<Vec<Job>, Fault> {
        let binds = [key.provider.as_str(), key.payment_id.as_str()].map(|text| list([text]));
        self.all(sql!("jobs"), binds.into(), rows::job).await
    }
}
