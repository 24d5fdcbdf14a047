//! `holdfast bench`: what this machine can do, measured side by side in one run, and whether every unit is accounted
//! for afterwards.

mod args;
mod callers;
mod check;
mod database;
mod everyday;
mod lapse;
mod library;
mod litter;
mod load;
mod machine;
mod matrix;
mod pgbench;
mod progress;
mod promises;
mod redis;
mod report;
mod rows;
mod schedule;
mod shape;
mod startup;
mod store;
mod tally;
mod waiting;
mod worker;

pub(crate) use args::Args;

use crate::Failure;
use crate::server::{self, End, Server, Target};
use args::{Scenario, Yardstick};
use check::Verdict;
use everyday::Everyday;
use holdfast_engine::clock::wall;
use holdfast_engine::redis::Backlog;
use litter::Litter;
use machine::Machine;
use progress::Progress;
use promises::{Subject, Yardsticks};
use report::Report;
use std::path::{Path, PathBuf};
use store::Store;
use tempfile::TempDir;

/// Runs what was asked for and prints the report.
///
/// # Errors
/// When something could not be measured; [`Failure::Found`] when units were oversold, stranded or lost. What was
/// measured is printed before that.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let litter = Litter::default();
    let measured = tokio::select! {
        measured = measure(&args, &litter) => measured,
        // Dropping what runs stops the servers that were started and removes their folders.
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    if let Err(why) = litter.clean().await {
        eprintln!("holdfast: {why}");
    }
    match measured? {
        Some(verdict) if !verdict.is_good() => {
            eprintln!("the end check failed: {verdict}");
            Err(Failure::Found)
        }
        _ => Ok(()),
    }
}

async fn measure(args: &Args, litter: &Litter) -> Result<Option<Verdict>, String> {
    let folder = args.data_dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let folder = std::path::absolute(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    if args.matrix.engines.is_empty() {
        side_by_side(args, &folder, litter).await
    } else {
        matrix::run(args, &folder, litter).await
    }
}

async fn side_by_side(args: &Args, folder: &Path, litter: &Litter) -> Result<Option<Verdict>, String> {
    let store = store_of(args)?;
    let mut report = Report::new(Machine::look(folder), wall().millis(), args.seconds.as_secs_f64());
    let mut yardsticks = Yardsticks::default();
    match (args.yardstick, &args.engine) {
        (Some(Yardstick::Redis), _) => {
            let progress = Progress::new("redis");
            progress.say("redis-benchmark");
            yardsticks.redis = redis::yardstick(folder).await?;
        }
        (Some(Yardstick::Pgbench), Some(url)) if store.as_ref().is_some_and(Store::is_postgres) => {
            yardsticks.pgbench = Some(pgbench::yardstick(url, args.seconds, litter).await?);
        }
        (Some(Yardstick::Pgbench), _) => return Err("--yardstick pgbench needs --engine postgres://…".into()),
        (None, _) => {}
    }
    if let Some(store) = &store {
        report.machine.durability = if store.is_redis() {
            "what holds a hold before its answer: see the durability below"
        } else {
            "the database commits before any answer"
        };
        report.notes.extend(store.about().await?);
    }
    let measured = if args.library {
        let data = temporary(folder)?;
        library::library(args, data.path(), &mut report).await.map(|verdict| report.judge(verdict))
    } else {
        scenarios(args, folder, litter, &mut report).await
    };
    let subject = match &store {
        None => Subject::Folder,
        Some(store) if store.is_redis() => Subject::Redis,
        Some(_) => Subject::Database,
    };
    promises::judge(&mut report, &yardsticks, subject);
    print!("{}", report.text());
    if let Some(file) = &args.json {
        let json = serde_json::to_vec_pretty(&report).map_err(|e| e.to_string())?;
        std::fs::write(file, json).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    measured?;
    Ok(report.verdict)
}

/// The store of `--engine`, if one was named.
fn store_of(args: &Args) -> Result<Option<Store>, String> {
    let Some(url) = &args.engine else {
        let is_stray = args.ledger.is_some() && args.matrix.engines.is_empty();
        return if is_stray {
            Err("--ledger is for an engine on Redis: --engine redis://…".into())
        } else {
            Ok(None)
        };
    };
    Store::of(url, args).map(Some).map_err(|why| format!("--engine must be a store: {why}"))
}

async fn scenarios(args: &Args, folder: &Path, litter: &Litter, report: &mut Report) -> Result<(), String> {
    let (special, everyday): (Vec<_>, Vec<_>) = args
        .scenarios()
        .into_iter()
        .partition(|s| matches!(s, Scenario::Lapse | Scenario::Startup | Scenario::Waiting));
    if !everyday.is_empty() {
        let mut place = Place::open(args, folder, litter).await?;
        let mut runs = Everyday::new(args, &place.target, place.backlog.take());
        let mut done = Ok(());
        for scenario in std::iter::repeat_n(everyday, args.rounds).flatten() {
            done = runs.run(scenario).await;
            if done.is_err() {
                break;
            }
        }
        // What was measured before a failure is told all the same.
        report.settle_rounds(std::mem::take(&mut runs.rows));
        report.notes.append(&mut runs.notes);
        if let Some(verdict) = runs.verdict {
            report.judge(verdict);
        }
        done?;
        place.close().await?;
    }
    for scenario in special {
        if matches!(scenario, Scenario::Lapse | Scenario::Waiting) {
            let place = Place::open(args, folder, litter).await?;
            let verdict = match scenario {
                Scenario::Waiting => waiting::waiting(args, &place.target, report).await?,
                _ => lapse::lapse(args, &place.target, report).await?,
            };
            report.judge(verdict);
            place.close().await?;
        } else if args.url.is_some() || args.engine.is_some() {
            return Err(
                "startup measures a server of its own on the embedded engine: leave out --url and --engine".into()
            );
        } else {
            let data = temporary(folder)?;
            let verdict = startup::startup(args, data.path(), report).await?;
            report.judge(verdict);
        }
    }
    Ok(())
}

fn temporary(folder: &Path) -> Result<TempDir, String> {
    let made = tempfile::Builder::new().prefix("holdfast-bench-").tempdir_in(folder);
    made.map_err(|e| format!("no temporary folder in {}: {e}", folder.display()))
}

/// What a server to measure is started with.
fn variables(store: Option<&Store>) -> Vec<(&'static str, String)> {
    let mut variables = store.map(Store::variables).unwrap_or_default();
    variables.push(("HOLDFAST_BENCH", "1".into()));
    variables
}

/// A server to measure: one of our own in a folder of its own, or a running one.
struct Place {
    target: Target,
    own: Option<(Server, TempDir)>,
    backlog: Option<Backlog>,
}

impl Place {
    async fn open(args: &Args, folder: &Path, litter: &Litter) -> Result<Self, String> {
        if let Some(url) = &args.url {
            return Ok(Self { target: server::target(url, args.key.as_deref()).await?, own: None, backlog: None });
        }
        let data = temporary(folder)?;
        let store = match store_of(args)? {
            Some(store) => Some(store.fresh(litter).await?),
            None => None,
        };
        let server = Server::start(data.path(), &variables(store.as_ref())).await?;
        let backlog = match &store {
            Some(store) => store.backlog().await?,
            None => None,
        };
        Ok(Self { target: server.target.clone(), own: Some((server, data)), backlog })
    }

    async fn close(self) -> Result<(), String> {
        match self.own {
            Some((server, _data)) => server.stop(End::Term).await.map(|_| ()),
            None => Ok(()),
        }
    }
}
