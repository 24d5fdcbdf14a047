//! `holdfast fake-payments`: the fake payment provider as a command.

use super::{Provider, Settings, Webhooks};
use crate::Failure;
use clap::Parser;
use holdfast_engine::clock::random_seed;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
#[command(after_help = "Example:
  holdfast fake-payments --webhook-url http://127.0.0.1:8080/v1/webhooks/stripe --webhook-secret whsec_of_the_fake
  HOLDFAST_STRIPE_API_BASE=http://127.0.0.1:12111 HOLDFAST_STRIPE_API_KEY=sk_test_fake \\
    HOLDFAST_STRIPE_WEBHOOK_SECRETS=whsec_of_the_fake holdfast serve

It moves no money. What it serves, and how a script reads, is in docs/drill.md.")]
pub(crate) struct Args {
    /// The address to serve on.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:12111")]
    listen: SocketAddr,
    /// Where events are sent (default: nowhere; they are listed at /_control/events).
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    /// What events are signed with; once for each signature.
    #[arg(long, value_name = "SECRET", env = "HOLDFAST_FAKE_WEBHOOK_SECRET", hide_env_values = true)]
    webhook_secret: Vec<String>,
    /// What goes wrong, and how often.
    #[arg(long, value_name = "FILE.json")]
    script: Option<PathBuf>,
    /// The same ids and the same dice for the same number.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Serves until told to stop.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    if args.webhook_url.is_some() && args.webhook_secret.is_empty() {
        return Err("--webhook-url needs a --webhook-secret: an event without a signature is refused".into());
    }
    let webhooks = Webhooks { url: args.webhook_url, secrets: args.webhook_secret, ..Webhooks::default() };
    let mut settings = Settings::new(args.listen, webhooks, args.seed.unwrap_or_else(random_seed));
    if let Some(file) = &args.script {
        let json = std::fs::read(file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        settings = settings.with_script(&json).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let provider = Provider::start(settings).await?;
        println!("listening on {}", provider.url);
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        Ok(())
    })
}
