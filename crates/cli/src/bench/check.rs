//! The end check: what the server counts, against what its answers said.

use crate::api::{Api, Stock};
use holdfast_engine::Engine;
use holdfast_engine::domain::Sku;
use serde::Serialize;
use std::collections::HashMap;

/// What was promised to the callers of some SKUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Promised<'a> {
    /// The SKUs.
    pub(super) skus: &'a [String],
    /// Units of each when it started.
    pub(super) total: u64,
    /// Units of each that were accepted.
    pub(super) accepted: &'a [u64],
    /// Units of each of which nobody knows.
    pub(super) in_doubt: &'a [u64],
    /// All those holds should still be live.
    pub(super) all_live: bool,
}

/// What the check found. All but `in_doubt` are to be 0, and the audit clean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    /// Units promised or held beyond the stock.
    pub(super) oversold: u64,
    /// Units that the server has held for nobody.
    pub(super) stranded: u64,
    /// Units accepted that the server does not have held.
    pub(super) lost: u64,
    /// Units of which nobody knows, because an answer was lost.
    pub(super) in_doubt: u64,
    /// Differences that the audit found.
    pub(super) drift: u64,
    /// The check could not be made.
    pub(super) unchecked: u64,
}

impl Verdict {
    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            oversold: self.oversold + other.oversold,
            stranded: self.stranded + other.stranded,
            lost: self.lost + other.lost,
            in_doubt: self.in_doubt + other.in_doubt,
            drift: self.drift + other.drift,
            unchecked: self.unchecked + other.unchecked,
        }
    }

    /// Nothing went wrong.
    pub(super) fn is_good(&self) -> bool {
        Self { in_doubt: 0, ..*self } == Self::default()
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "oversold {}, stranded {}, lost {}", self.oversold, self.stranded, self.lost)?;
        if self.in_doubt > 0 {
            write!(f, ", in doubt {}", self.in_doubt)?;
        }
        if self.unchecked > 0 {
            return write!(f, "; NOT ALL COULD BE CHECKED");
        }
        if self.drift == 0 { f.write_str("; audit clean") } else { write!(f, "; AUDIT FOUND {} DRIFTS", self.drift) }
    }
}

/// Reads the SKUs back, runs an audit, and compares.
pub(super) async fn check(api: &mut Api, promised: Promised<'_>) -> Result<Verdict, String> {
    let stocks = api.stocks(promised.skus).await?;
    let verdict = compare(&stocks, promised);
    let audit = api.audit().await?;
    let drift = (audit.drift.len() as u64).max(u64::from(!audit.clean));
    Ok(Verdict { drift: verdict.drift + drift, ..verdict })
}

/// The counters of an engine in process.
pub(super) async fn stocks(engine: &dyn Engine) -> Result<Vec<Stock>, String> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = engine.stocks(after.as_ref(), 1000).await.map_err(|e| e.to_string())?;
        found.extend(page.items.iter().map(|stock| Stock {
            sku: stock.sku.to_string(),
            total: stock.total(),
            available: stock.available,
            held: stock.held,
            sold: stock.sold,
        }));
        let Some(next) = page.next else { return Ok(found) };
        after = Some(Sku::new(&next).map_err(|e| e.to_string())?);
    }
}

/// Differences that the audit of an engine in process finds.
pub(super) async fn drift(engine: &dyn Engine) -> Result<u64, String> {
    engine.audit().await.map(|report| report.drift.len() as u64).map_err(|e| e.to_string())
}

/// Compares counters with promises.
pub(super) fn compare(stocks: &[Stock], promised: Promised<'_>) -> Verdict {
    let by_sku: HashMap<&str, &Stock> = stocks.iter().map(|stock| (stock.sku.as_str(), stock)).collect();
    let mut verdict = Verdict::default();
    for (n, sku) in promised.skus.iter().enumerate() {
        let (accepted, in_doubt) = (promised.accepted[n], promised.in_doubt[n]);
        let Some(stock) = by_sku.get(sku.as_str()) else {
            verdict.lost += accepted;
            continue;
        };
        let claimed = stock.held + stock.sold;
        let whole = stock.available + claimed == stock.total && stock.total == promised.total;
        verdict.oversold += claimed.max(accepted).saturating_sub(promised.total);
        verdict.stranded += claimed.saturating_sub(accepted + in_doubt);
        verdict.drift += u64::from(!whole);
        verdict.in_doubt += in_doubt;
        if promised.all_live {
            verdict.lost += accepted.saturating_sub(claimed);
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(held: u64, accepted: u64, in_doubt: u64) -> Verdict {
        let stock = Stock { sku: "S".into(), total: 10, available: 10_u64.saturating_sub(held), held, sold: 0 };
        let skus = ["S".to_owned()];
        let (accepted, in_doubt) = ([accepted], [in_doubt]);
        compare(&[stock], Promised { skus: &skus, total: 10, accepted: &accepted, in_doubt: &in_doubt, all_live: true })
    }

    #[test]
    fn each_way_to_be_wrong_is_told() {
        assert!(found(7, 7, 0).is_good());
        assert!(found(8, 7, 1).is_good() && found(7, 7, 1).is_good(), "an unknown hold may be there or not");
        assert_eq!(found(9, 7, 1).stranded, 1);
        assert_eq!(found(6, 7, 0).lost, 1);
        assert_eq!(found(10, 12, 0).oversold, 2, "more was promised than there was");
        assert_eq!(found(12, 12, 0).oversold, 2, "more is held than there was");
        assert_eq!(found(12, 12, 0).drift, 1, "and the counters do not add up");
        assert!(!found(12, 12, 0).is_good());
    }
}
