//! `holdfast audit`: compares counters with the ledger, the holds and the orders.

use crate::{Failure, client};
use clap::Parser;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Parser)]
#[command(after_help = "Examples:
  holdfast audit                              # reads ./holdfast-data, also while a server runs on it
  holdfast audit --url http://127.0.0.1:8080  # asks a running server

Exit code: 0 clean, 1 drift found, 2 the audit could not run.")]
pub(crate) struct Args {
    /// The folder of the embedded engine; it is only read.
    #[arg(long, env = "HOLDFAST_DATA_DIR", default_value = "./holdfast-data", value_name = "DIR")]
    data_dir: PathBuf,
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
        None => from_folder(args)?,
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

fn from_folder(args: &Args) -> Result<Value, Failure> {
    if !args.data_dir.join("holdfast.db").exists() {
        return Err(Failure::Told(format!(
            "there is no store in {}; name its folder with --data-dir, or a server with --url",
            args.data_dir.display()
        )));
    }
    let report = holdfast_engine::embedded::audit_folder(&args.data_dir)?;
    let drift: Vec<Value> = report
        .drift
        .iter()
        .map(|d| {
            json!({"sku": d.sku, "field": d.field, "expected": d.expected, "actual": d.actual, "difference": d.actual - d.expected})
        })
        .collect();
    Ok(json!({"clean": drift.is_empty(), "skus": report.skus, "entries": report.entries, "drift": drift}))
}
