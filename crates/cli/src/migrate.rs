//! `holdfast migrate`: moves a whole store from its folder into an empty database.

use crate::Failure;
use crate::engine::{DatabaseArgs, without_password};
use clap::Parser;
use holdfast_engine::clock::monotonic;
use holdfast_engine::moving::{Progress, Report, from_folder};
use holdfast_engine::{Database, SqlConfig};
use holdfast_server::FileConfig;
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Clocks that differ by more than this, in milliseconds, are told.
const CLOCKS: i64 = 1_000;

#[derive(Parser)]
#[command(after_help = "Example:
  export HOLDFAST_ENGINE=postgres://shop:…@db.internal/shop
  holdfast migrate            # stop the server first; moves ./holdfast-data
  holdfast serve

A move that ends early, however it does, goes on where it was when the same command is run again. Until it is done,
neither the folder nor the database is served; afterwards the database is, and the folder is not any more.

Exit code: 0 everything is in the database, 2 it is not.")]
pub(crate) struct Args {
    /// The store to move: embedded:DIR, or just its folder [default: ./holdfast-data].
    #[arg(long, env = "HOLDFAST_DATA_DIR", value_name = "DIR")]
    from: Option<String>,
    /// The empty database: postgres://user:password@host/database or mysql://…
    #[arg(long, env = "HOLDFAST_ENGINE", value_name = "URL", hide_env_values = true)]
    to: Option<String>,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let folder = source(args.from.as_deref())?;
    let (database, config) = target(args)?;
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} rows {msg} {eta}") {
        bar.set_style(style);
    }
    let start = monotonic();
    let mut is_told = false;
    let mut on_progress = |progress: Progress| {
        if !is_told {
            is_told = true;
            bar.suspend(|| warn_of_clocks(progress.clock_offset_ms));
        }
        bar.set_length(progress.rows);
        bar.set_position(progress.done);
        bar.set_message(progress.phase);
        ControlFlow::Continue(())
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let moved = runtime.block_on(from_folder(&folder, database, &config, &mut on_progress));
    bar.finish_and_clear();
    tell(&moved?, &folder, &config.url, start.elapsed().as_secs_f64());
    Ok(())
}

fn warn_of_clocks(offset_ms: i64) {
    if offset_ms.abs() > CLOCKS {
        let (far, word) = (offset_ms.abs() as f64 / 1_000.0, if offset_ms > 0 { "behind" } else { "ahead of" });
        eprintln!(
            "holdfast: warning: the database's clock is {far:.1} s {word} this machine's, and deadlines are moved as they are: by the database's clock, live holds end that much {}",
            if offset_ms > 0 { "later" } else { "earlier" }
        );
    }
}

/// The folder to move.
fn source(from: Option<&str>) -> Result<PathBuf, Failure> {
    let from = from.unwrap_or("embedded");
    if from.contains("://") {
        return Err(Failure::Told(format!(
            "cannot move from {}: only a folder of the embedded engine is moved; between two databases of one kind, use its own tools (pg_dump, mariadb-dump)",
            without_password(from)
        )));
    }
    let folder = match from.strip_prefix("embedded") {
        Some("" | ":") => "holdfast-data",
        Some(rest) => rest.strip_prefix(':').unwrap_or(from),
        None => from,
    };
    Ok(folder.into())
}

fn target(args: &Args) -> Result<(Database, SqlConfig), Failure> {
    let forms = "postgres://user:password@host/database or mysql://user:password@host/database";
    let Some(url) = &args.to else {
        return Err(Failure::Told(format!("name the database to move to with --to or HOLDFAST_ENGINE: {forms}")));
    };
    let Some(database) = Database::of(url) else {
        return Err(Failure::Told(format!(
            "cannot move to {:?}: a store is moved into a database, {forms}; to put a folder elsewhere, stop the server and copy the folder",
            without_password(url)
        )));
    };
    Ok((database, args.database.config(url.clone(), &FileConfig::default())?))
}

fn tell(report: &Report, folder: &Path, url: &str, seconds: f64) {
    let (counts, folder, url) = (report.counts, folder.display(), without_password(url));
    if report.was_done {
        println!("the store in {folder} was moved to {url} before; nothing is left to do");
        return;
    }
    println!(
        "moved {} SKUs, {} live holds, {} holds in all, {} orders, {} payments and {} ledger entries in {seconds:.1} s",
        counts.skus, counts.live_holds, counts.holds, counts.orders, counts.payments, counts.entries
    );
    if report.moved < counts.rows() {
        println!("{} of {} rows had been moved before", counts.rows() - report.moved, counts.rows());
    }
    println!("the counters are the same, and the audit of the database is clean");
    println!("serve {url} from now on; the folder {folder} is kept, and is not served any more");
}
