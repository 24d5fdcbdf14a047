//! `holdfast audit`: compares counters with the ledger, the holds and the orders.

use crate::engine::{Choice, EngineArgs};
use crate::{Failure, client};
use clap::Parser;
use holdfast_engine::AuditReport;
use holdfast_server::FileConfig;
use serde_json::{Value, json};
use std::path::Path;

#[derive(Parser)]
#[command(after_help = "Examples:
  holdfast audit                              # reads ./holdfast-data, also while a server runs on it
  holdfast audit --url http://127.0.0.1:8080  # asks a running server
  HOLDFAST_ENGINE=postgres://… holdfast audit # reads the database, whoever else uses it
  HOLDFAST_ENGINE=redis://… HOLDFAST_LEDGER=postgres://… holdfast audit

Exit code: 0 clean, 1 drift found, 2 the audit could not run.")]
pub(crate) struct Args {
    #[command(flatten)]
    engine: EngineArgs,
    /// Ask this server instead.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The key for --url, with role admin.
    #[arg(long, env = "HOLDFAST_API_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let report = match &args.url {
        Some(url) => client::post(url, "/v1/audit", args.key.as_deref())?,
        None => told(&own(&args.engine)?),
    };
    let is_clean = report["clean"] == json!(true);
    if args.json {
        println!("{report:#}");
    } else {
        println!("{} SKUs against {} ledger entries", report["skus"], report["entries"]);
        for drift in report["drift"].as_array().into_iter().flatten() {
            println!(
                "drift: {} {}: expected {}, actual {}, difference {}",
                drift["sku"],
                drift["field"].as_str().unwrap_or_default(),
                drift["expected"],
                drift["actual"],
                drift["difference"]
            );
        }
        println!("{}", if is_clean { "clean" } else { "NOT clean" });
    }
    if is_clean { Ok(()) } else { Err(Failure::Found) }
}

/// Audits without a server.
fn own(args: &EngineArgs) -> Result<AuditReport, Failure> {
    match args.choose(&FileConfig::default(), holdfast_engine::domain::Policy::default())? {
        Choice::Embedded { data_dir, .. } => from_folder(&data_dir),
        shared @ (Choice::Database(..) | Choice::Redis(_)) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { Ok(shared.open().await?.audit().await?) })
        }
    }
}

fn from_folder(data_dir: &Path) -> Result<AuditReport, Failure> {
    if !data_dir.join("holdfast.db").exists() {
        return Err(Failure::Told(format!(
            "there is no store in {}; name its folder with --data-dir, a database with --engine, or a server with --url",
            data_dir.display()
        )));
    }
    Ok(holdfast_engine::embedded::audit_folder(data_dir)?)
}

fn told(report: &AuditReport) -> Value {
    let drift: Vec<Value> = report
        .drift
        .iter()
        .map(|d| {
            json!({"sku": d.sku, "field": d.field, "expected": d.expected, "actual": d.actual, "difference": d.actual - d.expected})
        })
        .collect();
    json!({"clean": drift.is_empty(), "skus": report.skus, "entries": report.entries, "drift": drift})
}
