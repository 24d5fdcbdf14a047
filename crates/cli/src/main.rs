//! The binary `holdfast`: one verb a file.

mod admission_args;
mod api;
mod audit;
mod bench;
mod client;
mod doctor;
mod drill;
mod engine;
mod fake;
mod http;
mod import;
mod keys;
mod latencies;
mod migrate;
mod payment_args;
mod random;
mod redis_args;
mod serve;
mod server;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Holds stock while shoppers pay. Never sells a unit twice, never strands one.
#[derive(Parser)]
#[command(
    name = "holdfast",
    version,
    after_help = "Example:\n  holdfast serve\n  holdfast import stock.csv\n  holdfast audit"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the service.
    Serve(Box<serve::Args>),
    /// Create or change many SKUs of a running service from a CSV file.
    Import(import::Args),
    /// Compare counters with the ledger, the holds and the orders.
    Audit(Box<audit::Args>),
    /// Look at a deployment, and say what to do.
    Doctor(Box<doctor::Args>),
    /// Move a whole store from its folder into an empty database.
    Migrate(Box<migrate::Args>),
    /// Make API keys.
    Keys(keys::Args),
    /// Print the OpenAPI document.
    #[command(after_help = "Example:\n  holdfast openapi > holdfast.json")]
    Openapi,
    /// Measure this machine: holds per second, latencies, and the check that nothing was oversold.
    Bench(Box<bench::Args>),
    /// Replay a flash sale with shoppers who pay late, twice or not at all, and judge what is left.
    Drill(Box<drill::Args>),
    /// Run a fake payment provider, shaped like Stripe, for tests and drills. It moves no money.
    FakePayments(fake::Args),
}

/// How a verb ends when it is not simply done.
pub(crate) enum Failure {
    /// Something went wrong; told on standard error, exit code 2.
    Told(String),
    /// The verb worked and found something bad, already told; exit code 1.
    Found,
}

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Told(error.to_string())
    }
}

fn wait_for(verb: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(verb)
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Serve(args) => serve::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Migrate(args) => migrate::run(&args),
        Verb::Keys(args) => keys::run(&args),
        Verb::Openapi => {
            println!("{}", holdfast_server::openapi_json());
            Ok(())
        }
        Verb::Bench(args) => wait_for(bench::run(*args)),
        Verb::Drill(args) => wait_for(drill::run(*args)),
        Verb::FakePayments(args) => fake::run(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Found) => ExitCode::from(1),
        Err(Failure::Told(why)) => {
            eprintln!("holdfast: {why}");
            ExitCode::from(2)
        }
    }
}
