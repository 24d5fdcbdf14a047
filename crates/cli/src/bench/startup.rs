//! P9 and P10: how long a start with very many live holds takes, and how much memory each of them needs.

use super::args::Args;
use super::check::{Promised, Verdict, check};
use super::everyday::{PLENTY, names};
use super::load::{Fill, fill};
use super::progress::Progress;
use super::report::Report;
use super::rows::{Ratio, grouped};
use super::shape::{Life, Shape};
use super::tally::Tally;
use super::variables;
use crate::api::Api;
use crate::server::{End, Server};
use std::path::Path;
use std::time::Duration;

/// Connections that make the holds.
const FILLERS: usize = 256;
/// No hold may lapse while this runs; the longest that a server allows by default.
const TTL: u32 = 3600;

/// Runs it in this folder.
pub(super) async fn startup(args: &Args, data: &Path, report: &mut Report) -> Result<Verdict, String> {
    let progress = Progress::new("startup");
    progress.say("creating stock");
    let server = Server::start(data, &variables(None)).await?;
    let empty = server.start;
    let mut api = Api::new(&server.target);
    let skus = names("START", args.startup_skus);
    api.create(&skus, PLENTY).await?;
    let before = server.memory();
    let shape = Shape::holds(&skus, Life::Seconds(TTL), args.random_order_ids);
    let load = Fill { holds: args.startup_holds as u64, clients: FILLERS, threads: args.threads };
    let filled = fill(&server.target, shape, load, &progress).await?;
    let after = server.memory();
    progress.say("stopping and starting");
    let stopped = server.stop(End::Term).await?;
    let calm = Server::start(data, &variables(None)).await?;
    let (after_term, loaded) = (calm.start, calm.memory());
    calm.stop(End::Kill).await?;
    let server = Server::start(data, &variables(None)).await?;
    let after_kill = server.start;
    progress.say("checking");
    let promised =
        Promised { skus: &skus, total: PLENTY, accepted: &filled.accepted, in_doubt: &filled.in_doubt, all_live: true };
    let verdict = check(&mut Api::new(&server.target), promised).await?;
    server.stop(End::Term).await?;
    tell(&Seen { empty, stopped, after_term, after_kill, before, after, loaded }, &filled, skus.len(), report);
    Ok(verdict)
}

/// Times, and bytes of memory.
struct Seen {
    empty: Duration,
    stopped: Duration,
    after_term: Duration,
    after_kill: Duration,
    before: Option<u64>,
    after: Option<u64>,
    loaded: Option<u64>,
}

fn tell(seen: &Seen, filled: &Tally, skus: usize, report: &mut Report) {
    let holds = filled.accepted_in_all();
    report.ratios.push(Ratio {
        promise: "P9",
        what: format!("start with {} live holds on {} SKUs", grouped(holds as f64), grouped(skus as f64)),
        value: seen.after_term.max(seen.after_kill).as_secs_f64(),
        unit: " s",
        bar: Some(10.0),
        less_is_better: true,
    });
    if let (Some(before), Some(after)) = (seen.before, seen.after) {
        report.ratios.push(Ratio {
            promise: "P10",
            what: "memory per live hold (growth of the resident set)".into(),
            value: after.saturating_sub(before) as f64 / holds.max(1) as f64,
            unit: " B",
            bar: Some(600.0),
            less_is_better: true,
        });
    }
    let seconds = |d: Duration| format!("{:.2} s", d.as_secs_f64());
    report.notes.push(format!(
        "start: {} empty, {} after SIGTERM, {} after SIGKILL; stop {}; {} holds made in {}; resident {} MiB, {} MiB after the start",
        seconds(seen.empty),
        seconds(seen.after_term),
        seconds(seen.after_kill),
        seconds(seen.stopped),
        grouped(holds as f64),
        seconds(filled.spent),
        seen.after.unwrap_or_default() >> 20,
        seen.loaded.unwrap_or_default() >> 20,
    ));
}
