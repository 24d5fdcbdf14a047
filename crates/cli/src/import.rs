//! `holdfast import FILE.csv`: streams a table to a running server, and tells what came of each line.

use crate::{Failure, client};
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;

#[derive(Parser)]
#[command(after_help = "Example:
  printf 'sku,total,limit_per_customer\\nPALM-PRO-BLK,350,2\\n' > stock.csv
  holdfast import stock.csv

Exit code: 0 all lines applied, 1 some failed (each is told), 2 the import could not run.")]
pub(crate) struct Args {
    /// The table: sku,total[,limit_per_customer]
    file: PathBuf,
    /// The server.
    #[arg(long, env = "HOLDFAST_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    url: String,
    /// A key with role admin.
    #[arg(long, env = "HOLDFAST_API_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
    /// Whether a line's total is what is to be, or what is to be added.
    #[arg(long, value_enum, default_value = "set")]
    mode: Mode,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Set,
    Add,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display();
    let file = File::open(&args.file).map_err(|e| format!("cannot read {name}: {e}"))?;
    let size = file.metadata().map_err(|e| format!("cannot read {name}: {e}"))?.len();
    let bar = ProgressBar::new(size);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta}") {
        bar.set_style(style);
    }
    let mode = match args.mode {
        Mode::Set => "set",
        Mode::Add => "add",
    };
    let path = format!("/v1/stock/import?mode={mode}");
    let report = client::upload(&args.url, &path, args.key.as_deref(), bar.wrap_read(file), size)?;
    bar.finish_and_clear();
    tell(&report, args.json);
    if report["failed"] == 0 { Ok(()) } else { Err(Failure::Found) }
}

fn tell(report: &Value, as_json: bool) {
    if as_json {
        println!("{report:#}");
        return;
    }
    for error in report["errors"].as_array().into_iter().flatten() {
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        println!("line {}: {:?}: {}: {}", error["line"], text("sku"), text("code"), text("detail"));
    }
    println!(
        "created {}, updated {}, unchanged {}, failed {}",
        report["created"], report["updated"], report["unchanged"], report["failed"]
    );
}
