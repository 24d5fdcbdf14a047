//! `holdfast doctor`: looks at a deployment, one line an item, and says what to do.

use crate::Failure;
use crate::engine::{Choice, EngineArgs};
use crate::serve::read_file;
use clap::Parser;
use holdfast_engine::doctor::{Finding, Level};
use serde_json::json;
use std::path::PathBuf;

#[derive(Parser)]
#[command(after_help = "Examples:
  holdfast doctor                                # looks at ./holdfast-data, also while a server runs on it
  HOLDFAST_ENGINE=postgres://… holdfast doctor   # looks at the database, whoever else uses it
  HOLDFAST_ENGINE=redis://… HOLDFAST_LEDGER=postgres://… holdfast doctor
  holdfast doctor --config holdfast.toml --json

It takes nothing over and makes no tables: it may run beside servers, and when none runs.

Exit code: 0 no problem (warnings are none), 1 a problem found, 2 it could not look.")]
pub(crate) struct Args {
    #[command(flatten)]
    engine: EngineArgs,
    /// The configuration file of the server, in TOML.
    #[arg(long, env = "HOLDFAST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let file = read_file(args.config.as_deref())?;
    let findings = look(args.engine.choose(&file, holdfast_engine::domain::Policy::default())?)?;
    let is_good = findings.iter().all(|finding| finding.level < Level::Problem);
    if args.json {
        let told = |f: &Finding| json!({"name": f.name, "level": f.level.as_str(), "told": f.told, "advice": f.advice});
        let all: Vec<_> = findings.iter().map(told).collect();
        println!("{:#}", json!({"healthy": is_good, "findings": all}));
    } else {
        findings.iter().for_each(tell);
    }
    if is_good { Ok(()) } else { Err(Failure::Found) }
}

fn look(choice: Choice) -> Result<Vec<Finding>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        match choice {
            Choice::Embedded { data_dir, .. } => holdfast_engine::embedded::doctor(&data_dir),
            Choice::Database(database, config) => database.doctor(&config).await,
            Choice::Redis(config) => holdfast_engine::redis::doctor(&config).await,
        }
    }))
}

fn tell(finding: &Finding) {
    println!("{:<8} {}: {}", finding.level.as_str(), finding.name, finding.told);
    if !finding.advice.is_empty() {
        println!("         -> {}", finding.advice);
    }
}
