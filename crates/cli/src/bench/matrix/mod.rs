//! The comparison matrix: engines and strategies side by side, in process, each row with empty tables of its own.

mod args;
mod charts;
mod csv;
mod html;
mod measure;
mod place;
mod report;

pub(crate) use args::MatrixArgs;

use super::Args;
use super::args::Yardstick;
use super::check::Verdict;
use super::database::{command_line, shown};
use super::litter::Litter;
use super::machine::Machine;
use super::pgbench;
use super::store::Store;
use args::{Case, Kind, cases};
use holdfast_engine::Database;
use holdfast_engine::clock::wall;
use report::{Report, Row, judge};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Measures every row, tells and writes the report; what counts for the exit code.
pub(super) async fn run(args: &Args, folder: &Path, litter: &Litter) -> Result<Option<Verdict>, String> {
    let cases = cases(&args.matrix, &args.scenario)?;
    let url = yardstick_url(args, &cases)?;
    let mut report = Report {
        machine: Machine { durability: "embedded: the log is synced before any answer", ..Machine::look(folder) },
        began: humantime::format_rfc3339_seconds(UNIX_EPOCH + millis(wall().millis())).to_string(),
        command: command_line(std::env::args(), &secrets(args)),
        clients: args.clients,
        seconds: args.seconds.as_secs_f64(),
        databases: databases(args, &cases).await?,
        rows: Vec::new(),
        yardstick: match url {
            Some(url) => Some(pgbench::yardstick(url, args.seconds, litter).await?),
            None => None,
        },
        verdict: Verdict::default(),
    };
    let done = measure(args, &cases, folder, litter, &mut report.rows).await;
    // What was measured before a failure is told all the same.
    report.verdict = judge(&report.rows);
    print!("{}", report.text());
    write(args, &report)?;
    done?;
    Ok(report.rows.iter().any(|row| !row.is_unsafe).then_some(report.verdict))
}

async fn measure(
    args: &Args,
    cases: &[Case],
    folder: &Path,
    litter: &Litter,
    rows: &mut Vec<Row>,
) -> Result<(), String> {
    for (n, case) in cases.iter().enumerate() {
        let title = format!("{}/{} {}", n + 1, cases.len(), case.title());
        let row = measure::measure(args, case, &title, folder, litter).await;
        rows.push(row.map_err(|why| format!("{}: {why}", case.title()))?);
        litter.clean().await?;
    }
    Ok(())
}

fn write(args: &Args, report: &Report) -> Result<(), String> {
    let put = |file: &Path, bytes: Vec<u8>| std::fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()));
    if let Some(file) = &args.json {
        put(file, serde_json::to_vec_pretty(report).map_err(|e| e.to_string())?)?;
    }
    if let Some(file) = &args.matrix.csv {
        put(file, csv::csv(&report.rows)?)?;
    }
    if let Some(file) = &args.matrix.html {
        put(file, html::page(report).into_bytes())?;
    }
    Ok(())
}

/// The stores among the engines, each once: name and URL.
fn urls(cases: &[Case]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for case in cases {
        if let Kind::Database(_, url) | Kind::Redis(url) = &case.engine.kind {
            let place = (case.engine.name.as_str(), url.as_str());
            if !found.contains(&place) {
                found.push(place);
            }
        }
    }
    found
}

/// What each database says about itself; an unreachable one is told before anything is measured.
async fn databases(args: &Args, cases: &[Case]) -> Result<Vec<String>, String> {
    let mut told = Vec::new();
    for (name, url) in urls(cases) {
        let about = async { Store::of(url, args)?.about().await }.await.map_err(|why| format!("{name}: {why}"))?;
        told.extend(about.into_iter().map(|about| format!("{name}: {about}")));
    }
    Ok(told)
}

/// Where the yardstick is put, if one was asked for.
fn yardstick_url<'a>(args: &Args, cases: &'a [Case]) -> Result<Option<&'a str>, String> {
    match args.yardstick {
        None => Ok(None),
        Some(Yardstick::Pgbench) => {
            let is_postgres = |(_, url): &(&str, &str)| Database::of(url) == Some(Database::Postgres);
            let first = urls(cases).into_iter().find(is_postgres).map(|(_, url)| url);
            first.map(Some).ok_or_else(|| "--yardstick pgbench needs an engine on postgres:// in --engines".into())
        }
        Some(Yardstick::Redis) => Err("with --engines, the yardstick is pgbench".into()),
    }
}

fn secrets(args: &Args) -> Vec<(String, String)> {
    let words = args.matrix.engines.iter().chain(&args.matrix.lock_nodes).chain(&args.ledger);
    let urls = words.filter(|word| word.contains("://"));
    urls.map(|url| (url.clone(), shown(url))).collect()
}

fn millis(since: i64) -> Duration {
    Duration::from_millis(u64::try_from(since).unwrap_or_default())
}
