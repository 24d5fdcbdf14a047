//! The audit of a running engine: the ledger against itself, and Redis against the ledger.
//!
//! A SKU is compared while it is frozen and its log is written down, so that shoppers who come and go are no drift. Steps
//! that are under way count as drift only if they still do after a while.

use super::core::{Core, ledger_error};
use super::script::Call;
use super::steps::Wanted;
use crate::sql::PAGE;
use crate::{AuditReport, Drift, EngineError};
use holdfast_domain::{HoldId, HoldStatus, Sku, Stock, Time};
use std::time::Duration;

/// SKUs that are frozen together.
const TOGETHER: usize = 50;
/// How often a difference is looked at again before it is told.
const LOOKS: u32 = 6;

impl Core {
    pub(super) async fn audit(&self) -> Result<AuditReport, EngineError> {
        self.drain_all().await?;
        let mut report = self.ledger.reads().audit().await?;
        let mut after: Option<Sku> = None;
        loop {
            let page = self.ledger.stocks_after(after.as_ref()).await.map_err(ledger_error)?;
            for some in page.chunks(TOGETHER) {
                let skus: Vec<Sku> = some.iter().map(|stock| stock.sku.clone()).collect();
                report.drift.extend(self.drift_of(&skus).await?);
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.sku.clone()),
                _ => break,
            }
        }
        report.at = self.now();
        Ok(report)
    }

    async fn drift_of(&self, skus: &[Sku]) -> Result<Vec<Drift>, EngineError> {
        let mut drift = Vec::new();
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(Duration::from_millis(20 << look)).await;
                // What a node that died left decided is no drift: it only has not been told.
                self.apply_noted(Time::default()).await?;
            }
            drift = self.compare(skus).await?;
            if drift.is_empty() {
                break;
            }
        }
        Ok(drift)
    }

    async fn compare(&self, skus: &[Sku]) -> Result<Vec<Drift>, EngineError> {
        let mut wanted = Wanted { only_looks: true, ..Wanted::default() };
        wanted.frozen.skus.extend(skus.iter().cloned());
        self.want_order(None, &mut wanted);
        let held = self.hold_still(&wanted).await?;
        let compared = self.compare_frozen(skus).await;
        self.let_go(&held).await?;
        compared
    }

    async fn compare_frozen(&self, skus: &[Sku]) -> Result<Vec<Drift>, EngineError> {
        self.drain_all().await?;
        let mut drift = Vec::new();
        for sku in skus {
            let part = self.partitions.of_sku(sku);
            let done = self.call(part, &Call::one("counters", [sku.as_str()]), None).await?;
            let reply = done.answers.first();
            let count = |at| reply.and_then(|reply| reply.number(at));
            let (mut here, there) = ([count(0), count(1), count(2)], self.ledger_stock(sku).await?);
            if self.partitions.count() > 1 {
                // The first part that lapsed ended the whole hold in the ledger; the others follow when they are met.
                let ended = self.ended_parts(sku).await?;
                here[0] = here[0].map(|units| units + ended);
                here[1] = here[1].map(|units| units - ended);
            }
            let there = there.map_or([None; 3], |s| [s.available, s.held, s.sold].map(|n| i64::try_from(n).ok()));
            for (field, (actual, expected)) in
                ["redis_available", "redis_held", "redis_sold"].into_iter().zip(here.into_iter().zip(there))
            {
                if actual != expected {
                    let (expected, actual) = (expected.unwrap_or_default(), actual.unwrap_or_default());
                    drift.push(Drift { sku: sku.to_string(), field, expected, actual });
                }
            }
        }
        Ok(drift)
    }

    /// Units of parts that lie in Redis although their hold has ended.
    async fn ended_parts(&self, sku: &Sku) -> Result<i64, EngineError> {
        let done = self.call(self.partitions.of_sku(sku), &Call::one("members", [sku.as_str()]), None).await?;
        let Some(reply) = done.answers.first() else { return Ok(0) };
        let mut units = 0;
        for at in (0..reply.len()).step_by(2) {
            let Some(id) = reply.text(at).and_then(HoldId::parse) else { continue };
            let hold = self.ledger.reads().hold(id).await?;
            if hold.is_some_and(|hold| matches!(hold.status, HoldStatus::Expired | HoldStatus::Released)) {
                units += reply.number(at + 1).unwrap_or_default();
            }
        }
        Ok(units)
    }

    async fn ledger_stock(&self, sku: &Sku) -> Result<Option<Stock>, EngineError> {
        self.ledger.stored(sku).await.map_err(ledger_error)
    }
}
