//! The command line of `holdfast drill`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  holdfast drill
      42,000 shoppers on 350 units within 80 s, against a server of its own in a temporary folder beside you
  holdfast drill --shoppers 2000 --units 50 --over 10s --seed 7
  holdfast drill --waiting-room 100
      the same through a waiting room: who is let in, how fast, and how fast holds are then
  holdfast drill --url http://127.0.0.1:8080 --api-key hf_… --webhook-secret whsec_…
      against a running server, started with
        HOLDFAST_STRIPE_API_BASE=http://127.0.0.1:12111   (the fake provider, see --provider-listen)
        HOLDFAST_STRIPE_API_KEY=sk_test_drill             (any that starts with sk_)
        HOLDFAST_STRIPE_WEBHOOK_SECRETS=whsec_…           (the same as --webhook-secret)

The payment provider is a fake one, and no money moves. The drill leaves its SKUs, holds and orders in the server. Exit
code 1 when a promise was broken.";

/// Replay a flash sale with shoppers who pay late, twice or not at all, and judge what is left.
#[derive(Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A running server, with test data only (default: start one)
    #[arg(long, value_name = "URL", requires = "webhook_secret")]
    pub(super) url: Option<String>,
    /// API key for --url, with the role admin
    #[arg(long, value_name = "KEY", env = "HOLDFAST_KEY", hide_env_values = true, requires = "url")]
    pub(super) api_key: Option<String>,
    /// What the fake provider signs its webhooks to --url with
    #[arg(
        long,
        value_name = "SECRET",
        env = "HOLDFAST_DRILL_WEBHOOK_SECRET",
        hide_env_values = true,
        requires = "url"
    )]
    pub(super) webhook_secret: Option<String>,
    /// Where the fake provider serves for --url
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:12111", requires = "url")]
    pub(super) provider_listen: SocketAddr,
    /// How many come
    #[arg(long, value_name = "N", default_value_t = 42_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(super) shoppers: u32,
    /// How many units there are
    #[arg(long, value_name = "N", default_value_t = 350, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) units: u32,
    /// Within how long they come, e.g. 80s or 2m
    #[arg(long, value_name = "TIME", default_value = "80s", value_parser = humantime::parse_duration)]
    pub(super) over: Duration,
    /// How long a hold lives, in seconds (default: a tenth of --over)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) ttl: Option<u32>,
    /// What is sold; it must not exist yet (default: a name of its own)
    #[arg(long, value_name = "SKU")]
    pub(super) sku: Option<String>,
    /// Everybody goes through a waiting room that lets in so many a second
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) waiting_room: Option<u32>,
    /// Connections that the shoppers share
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) connections: u16,
    /// What goes wrong at the provider, as a script of `holdfast fake-payments` (default: see docs/drill.md)
    #[arg(long, value_name = "FILE.json")]
    pub(super) script: Option<PathBuf>,
    /// How long what is left over may take to settle after the last shopper
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(super) patience: Duration,
    /// The same shoppers for the same number
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Write the verdict and everything measured to this file
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

impl Args {
    /// Seconds a hold lives. Short enough that many lapse within the run.
    pub(super) fn ttl(&self) -> u32 {
        self.ttl.unwrap_or_else(|| (self.over.as_secs() / 10).clamp(2, 600) as u32)
    }
}
