//! P13: the engine in process, through the Rust library: K callers, each with one hold under way, no HTTP.

use super::args::Args;
use super::callers::{Calls, call};
use super::check::{Promised, Verdict, compare, drift, stocks};
use super::everyday::{PLENTY, names};
use super::progress::Progress;
use super::report::Report;
use super::rows::Row;
use holdfast_engine::domain::{Command, Outcome, SetStock, Sku, Total};
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Engine, Lanes, LanesConfig, Now};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// SKUs that are created in one batch.
const TOGETHER: usize = 1000;

/// Runs it in this folder.
pub(super) async fn library(args: &Args, data: &Path, report: &mut Report) -> Result<Verdict, String> {
    let engine: Arc<dyn Engine> = Arc::new(Embedded::open(data).map_err(|e| format!("cannot open the store: {e}"))?);
    let mut verdict = Verdict::default();
    let mut rows = Vec::new();
    for _ in 0..args.rounds {
        for callers in args.concurrencies(&[64, 256, 1024, 4096]) {
            let name = format!("library {callers}");
            let progress = Progress::new(&name);
            progress.say("in process");
            let skus = names("LIB", 1);
            create(engine.as_ref(), &skus, PLENTY).await?;
            let config = LanesConfig::default();
            let config = LanesConfig { depth: config.depth.max(callers), ..config };
            let calls = Calls {
                lanes: vec![Lanes::start(engine.clone(), &config).map_err(|e| e.to_string())?],
                callers,
                skus: skus.clone(),
                lines: 1..=1,
                ttl: args.ttl,
                warmup: args.warmup,
                seconds: args.seconds,
                until_refused: false,
            };
            let counts = call(calls, &progress).await?;
            rows.push(Row::new(&name, callers, None, &counts.measured, 0));
            progress.say("checking");
            let promised = Promised {
                skus: &skus,
                total: PLENTY,
                accepted: &counts.accepted,
                in_doubt: &counts.in_doubt,
                all_live: counts.spent < Duration::from_secs(args.ttl.into()),
            };
            let found = compare(&stocks(engine.as_ref()).await?, promised);
            verdict = verdict.and(Verdict { drift: found.drift + drift(engine.as_ref()).await?, ..found });
        }
    }
    report.settle_rounds(rows);
    report.notes.push("in process: one thread of callers, one thread that writes".into());
    Ok(verdict)
}

/// Creates SKUs with so many units each.
pub(super) async fn create(engine: &dyn Engine, skus: &[String], total: u64) -> Result<(), String> {
    let total = Total::new(total).ok_or("too many units")?;
    let set = |sku: &String| -> Result<Command, String> {
        let sku = Sku::new(sku).map_err(|e| e.to_string())?;
        Ok(Command::SetStock(SetStock { sku, total, limit_per_customer: None, if_version: None }))
    };
    for part in skus.chunks(TOGETHER) {
        let batch = part.iter().map(set).collect::<Result<Vec<_>, _>>()?;
        let answers = engine.apply(batch, Now::Clock).await.map_err(|e| e.to_string())?;
        if let Some(other) = answers.iter().find(|answer| !matches!(answer, Ok(Outcome::Stock { .. }))) {
            return Err(format!("stock was not created: {other:?}"));
        }
    }
    Ok(())
}
