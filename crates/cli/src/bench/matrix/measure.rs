//! One row: the last units, the throughput, and the check that every unit is accounted for.

use super::super::Args;
use super::super::args::Scenario;
use super::super::callers::{Calls, Counts, call};
use super::super::check::{Promised, Verdict, compare, drift, stocks};
use super::super::everyday::{PLENTY, names};
use super::super::library::create;
use super::super::litter::Litter;
use super::super::progress::Progress;
use super::args::Case;
use super::place::Place;
use super::report::{LastUnits, Row};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Units of the SKU that everybody wants at once before the throughput is measured.
const LAST_UNITS: u64 = 500;
/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// SKUs, and what was promised of them.
struct Run {
    skus: Arc<[String]>,
    total: u64,
    counts: Counts,
}

/// Measures a row at a place of its own. What that leaves in a database is for the litter to remove.
pub(super) async fn measure(
    args: &Args,
    case: &Case,
    title: &str,
    folder: &Path,
    litter: &Litter,
) -> Result<Row, String> {
    let progress = Progress::new(title);
    progress.say("creating stock");
    let place = Place::make(args, case, folder, litter).await?;
    let mut runs = Vec::new();
    let mut last_units = None;
    if case.scenario == Scenario::Hot {
        let run = run(args, case, &place, Load::last_units(), &progress).await?;
        last_units = Some(LastUnits {
            stock: LAST_UNITS,
            promised: run.counts.accepted[0],
            in_doubt: run.counts.in_doubt[0],
            all_refused_at_the_end: run.counts.stopped == args.clients,
            seconds: run.counts.spent.as_secs_f64(),
        });
        runs.push(run);
    }
    runs.push(run(args, case, &place, Load::of(args, case.scenario), &progress).await?);
    progress.say("checking");
    let retries = place.retries().await;
    let verdict = check(args, &place, &runs, last_units.as_ref()).await?;
    place.leave().await?;
    let failure = runs.iter().find_map(|run| run.counts.failure.as_ref().map(ToString::to_string));
    let measured = runs.last().map(|run| &run.counts.measured).ok_or("nothing ran")?;
    Ok(Row::new(case, args.clients, measured, retries, last_units, verdict, failure))
}

/// What the callers of a run want.
struct Load {
    skus: Arc<[String]>,
    total: u64,
    lines: RangeInclusive<usize>,
    warmup: Duration,
    seconds: Duration,
    until_refused: bool,
}

impl Load {
    fn last_units() -> Self {
        let skus = names("LAST", 1);
        let (warmup, seconds) = (Duration::ZERO, PATIENCE);
        Self { skus, total: LAST_UNITS, lines: 1..=1, warmup, seconds, until_refused: true }
    }

    fn of(args: &Args, scenario: Scenario) -> Self {
        let (kind, skus, total, lines) = match scenario {
            Scenario::Spread => ("SPREAD", 1000, PLENTY, 1..=1),
            Scenario::Cart => ("CART", 100, PLENTY, 3..=10),
            Scenario::Soldout => ("NONE", 1, 0, 1..=1),
            _ => ("HOT", 1, PLENTY, 1..=1),
        };
        let (warmup, seconds) = (args.warmup, args.seconds);
        Self { skus: names(kind, skus), total, lines, warmup, seconds, until_refused: false }
    }
}

async fn run(args: &Args, case: &Case, place: &Place, load: Load, progress: &Progress) -> Result<Run, String> {
    let Load { skus, total, lines, warmup, seconds, until_refused } = load;
    let first = place.nodes.first().ok_or("no node")?;
    create(first.as_ref(), &skus, total).await?;
    let calls = Calls {
        lanes: place.lanes(case, args.clients)?,
        callers: args.clients,
        skus: skus.clone(),
        lines,
        ttl: args.ttl,
        warmup,
        seconds,
        until_refused,
    };
    let counts = call(calls, progress).await?;
    Ok(Run { skus, total, counts })
}

async fn check(args: &Args, place: &Place, runs: &[Run], last_units: Option<&LastUnits>) -> Result<Verdict, String> {
    let first = place.nodes.first().ok_or("no node")?.as_ref();
    let stocks = stocks(first).await?;
    let spent: Duration = runs.iter().map(|run| run.counts.spent).sum();
    let mut verdict = Verdict { drift: drift(first).await?, ..Verdict::default() };
    for run in runs {
        let promised = Promised {
            skus: &run.skus,
            total: run.total,
            accepted: &run.counts.accepted,
            in_doubt: &run.counts.in_doubt,
            all_live: spent < Duration::from_secs(args.ttl.into()),
        };
        verdict = verdict.and(compare(&stocks, promised));
    }
    // Units that nobody got although everybody was refused are stranded, whatever the counters say.
    verdict.stranded = verdict.stranded.max(last_units.map_or(0, LastUnits::unsold));
    Ok(verdict)
}
