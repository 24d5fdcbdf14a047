//! The command line of `holdfast bench`.

use super::matrix::MatrixArgs;
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  holdfast bench
      every everyday scenario against a server of its own, in a temporary folder beside you
  holdfast bench --scenario noop,hot --clients 256 --seconds 10 --rounds 3 --yardstick redis
  holdfast bench --scenario hot --rate 10000
      open loop: a request every 100 µs whatever the answers do; latency counts from when it was due
  holdfast bench --scenario lapse,startup
      a million holds that lapse within one second; a start with a million live holds
  holdfast bench --scenario waiting
      joins and polls of a waiting room with a million tickets
  holdfast bench --library --concurrency 1024,4096
      in process, without HTTP
  holdfast bench --engine postgres://shop:…@db/shop --scenario noop,hot --yardstick pgbench
      a server on a database, beside the usual hold of one transaction each
  holdfast bench --engine redis://redis:6379 --ledger postgres://shop:…@db/shop --scenario hot --yardstick redis
      a server on Redis, beside the usual script
  holdfast bench --engines embedded,postgres://shop:…@db/shop --html report.html
      compare engines and strategies, each in a folder or schema of its own; a page with charts
  holdfast bench --engines postgres://shop:…@db/shop --strategies row_lock,naive --nodes 1,2,4 --scenario hot

Holds are durable before they are answered. Exit code 1 when units were oversold, stranded or lost; what naive oversells
in a comparison does not count, since it is there for that.";

/// Measure this machine: holds per second, latencies, and units oversold and stranded.
#[derive(Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to run, comma-separated; `all` is noop,hot,half,soldout,spread,cart,clients
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',', default_value = "all")]
    pub(super) scenario: Vec<Scenario>,
    /// Connections, each with one request under way
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = count)]
    pub(super) clients: usize,
    /// Threads of the load generator
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub(super) threads: usize,
    /// Open loop: so many requests per second (default: each client sends when it was answered)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rate: Option<u32>,
    /// Before measuring, e.g. 1s or 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(super) warmup: Duration,
    /// Measured time of each scenario
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(super) seconds: Duration,
    /// Repeat the scenarios and report the round with the median throughput
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub(super) rounds: usize,
    /// UUID-like order ids (default: ids that count up)
    #[arg(long)]
    pub(super) random_order_ids: bool,
    /// Lifetime of the holds, in seconds; they are left to lapse
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) ttl: u32,
    /// A running server, with test data only (default: start one)
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    pub(super) url: Option<String>,
    /// API key for --url
    #[arg(long, value_name = "KEY", env = "HOLDFAST_KEY", hide_env_values = true, requires = "url")]
    pub(super) key: Option<String>,
    /// Start the server on this database or Redis, in a schema or key space of its own: postgres://user:password@host/database,
    /// mysql://… or redis://…
    #[arg(long, value_name = "URL", conflicts_with_all = ["url", "library"])]
    pub(super) engine: Option<String>,
    /// The ledger of an engine on Redis, in a schema of its own: postgres://user:password@host/database or mysql://…
    #[arg(long, value_name = "URL")]
    pub(super) ledger: Option<String>,
    /// What must have a hold of an engine on Redis before it is answered: memory, aof, replicated or ledger
    #[arg(long, value_name = "NAME", requires = "ledger")]
    pub(super) durability: Option<String>,
    /// Put the temporary data folder into this one, to measure its disk (default: here)
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// Concurrent holds of `clients` (default 64,256) and of --library (default 64,256,1024,4096)
    #[arg(long, value_name = "K,…", value_delimiter = ',', value_parser = count)]
    pub(super) concurrency: Vec<usize>,
    /// In process, through the Rust library, without HTTP
    #[arg(long, conflicts_with_all = ["url", "rate"])]
    pub(super) library: bool,
    /// Measure something well known beside it
    #[arg(long, value_name = "NAME", value_enum)]
    pub(super) yardstick: Option<Yardstick>,
    /// Holds of `lapse`
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count)]
    pub(super) lapse_holds: usize,
    /// New holds per second during `lapse`
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) lapse_rate: u32,
    /// Live holds of `startup`
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count)]
    pub(super) startup_holds: usize,
    /// SKUs of `startup`
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = count)]
    pub(super) startup_skus: usize,
    /// Tickets of `waiting`
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count)]
    pub(super) tickets: usize,
    /// Write everything measured to this file
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    #[command(flatten)]
    pub(super) matrix: MatrixArgs,
}

/// What can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Scenario {
    /// The everyday ones
    All,
    /// A POST that does nothing: what the HTTP stack can do
    Noop,
    /// One SKU, one unit a hold
    Hot,
    /// As hot, at half of its throughput: the latency of a server that is not saturated
    Half,
    /// A SKU with no units: every hold is refused
    Soldout,
    /// One of 1,000 SKUs
    Spread,
    /// 3 to 10 of 100 SKUs in any order
    Cart,
    /// As hot, with each number of clients that --concurrency lists
    Clients,
    /// Many holds lapse within one second while new ones come in
    Lapse,
    /// The server starts with many live holds; memory per hold
    Startup,
    /// Joins and polls of a waiting room with many tickets
    Waiting,
}

/// What can be measured beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Yardstick {
    /// redis-benchmark with a hold script, on a redis-server of its own
    Redis,
    /// pgbench with a hold a transaction, on the database of --engine or --engines
    Pgbench,
}

impl Args {
    /// The scenarios asked for, in the order in which they run.
    pub(super) fn scenarios(&self) -> Vec<Scenario> {
        use Scenario::{All, Cart, Clients, Half, Hot, Lapse, Noop, Soldout, Spread, Startup, Waiting};
        let everyday = [Noop, Hot, Half, Soldout, Spread, Cart, Clients];
        let asked = |s: Scenario| {
            self.scenario.contains(&s)
                || self.scenario.contains(&All) && everyday.contains(&s)
                || s == Hot && self.scenario.contains(&Half)
        };
        everyday.into_iter().chain([Lapse, Startup, Waiting]).filter(|s| asked(*s)).collect()
    }

    /// The concurrencies asked for, or these.
    pub(super) fn concurrencies(&self, otherwise: &[usize]) -> Vec<usize> {
        if self.concurrency.is_empty() { otherwise.to_vec() } else { self.concurrency.clone() }
    }
}

pub(super) fn count(text: &str) -> Result<usize, String> {
    let number = text.replace('_', "").parse::<usize>().map_err(|e| e.to_string())?;
    if number == 0 { Err("must be at least 1".into()) } else { Ok(number) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let number = number.trim().parse::<f64>().map_err(|_| "give it as 5s or 500ms".to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_unit() {
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("-1").is_err() && duration("soon").is_err());
    }
}
