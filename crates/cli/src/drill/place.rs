//! Where a drill takes place: the fake provider, and a server that knows it: one of our own, or a running one. Before
//! anybody comes, one payment shows that the two hear each other.

use super::args::Args;
use super::evidence::{Books, order};
use super::plan::{Behaviour, Shopper};
use super::pool::Pool;
use super::shop::Shop;
use crate::api::Api;
use crate::fake::{Provider, Settings, Webhooks};
use crate::server::{self, End, Server, Target};
use holdfast_engine::clock::{monotonic, random_seed, random_token};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// How long the server may take at most to hear of the probe's payments, and to send one of them back.
const PROBE: Duration = Duration::from_secs(20);
/// How often to look.
const LOOK: Duration = Duration::from_millis(100);
/// Where the server takes events.
const WEBHOOKS: &str = "/v1/webhooks/stripe";
const PROVIDER_KEY: &str = "sk_test_drill";

/// Both sides.
pub(super) struct Place {
    pub(super) target: Target,
    pub(super) provider: Provider,
    /// The way to the provider.
    pub(super) bank: Target,
    own: Option<(Server, TempDir)>,
}

impl Place {
    /// Starts what has to be started.
    pub(super) async fn open(args: &Args, seed: u64, folder: &Path) -> Result<Self, String> {
        let secret = args.webhook_secret.clone().unwrap_or_else(|| format!("whsec_{}", random_token()));
        let webhooks = Webhooks { secrets: vec![secret.clone()], attempts: 40, ..Webhooks::default() };
        let listen = if args.url.is_some() { args.provider_listen } else { ([127, 0, 0, 1], 0).into() };
        // A running server may remember the payments of an earlier drill: its ids must not come again.
        let seed = if args.url.is_some() { random_seed() } else { seed };
        let provider = Provider::start(Settings::new(listen, webhooks, seed)).await?;
        let bank = server::target(&provider.url, Some(PROVIDER_KEY)).await?;
        let (url, own) = match &args.url {
            Some(url) => (url.trim_end_matches('/').to_owned(), None),
            None => {
                let made = tempfile::Builder::new().prefix("holdfast-drill-").tempdir_in(folder);
                let data = made.map_err(|e| format!("no temporary folder in {}: {e}", folder.display()))?;
                let variables = [
                    ("HOLDFAST_STRIPE_API_BASE", provider.url.clone()),
                    ("HOLDFAST_STRIPE_API_KEY", PROVIDER_KEY.into()),
                    ("HOLDFAST_STRIPE_WEBHOOK_SECRETS", secret),
                ];
                let server = Server::start(data.path(), &variables).await?;
                (format!("http://{}", server.target.host), Some((server, data)))
            }
        };
        provider.send_to(format!("{url}{WEBHOOKS}"))?;
        let target = server::target(&url, args.api_key.as_deref()).await?;
        Ok(Self { target, provider, bank, own })
    }

    /// The provider's books.
    pub(super) fn books(&self) -> Result<Books, String> {
        serde_json::from_value(self.provider.books()).map_err(|e| format!("the provider's books: {e}"))
    }

    /// One order that is paid twice: it must be confirmed, and one payment must come back.
    pub(super) async fn probe(&self, run: &str, patience: Duration) -> Result<(), String> {
        let limit = patience.min(PROBE);
        let sku = format!("{run}-probe");
        let mut api = Api::new(&self.target);
        api.create(std::slice::from_ref(&sku), 1).await?;
        let shop = Shop::new(Pool::new(&self.target, 2), Pool::new(&self.bank, 2), sku, format!("{run}-probe"), 300)?;
        let shopper = Shopper {
            number: 0,
            at: Duration::ZERO,
            behaviour: Behaviour::PaysTwice,
            is_manual: false,
            by_hold: false,
            tells_payment: false,
            pace: 0.0,
        };
        let hold = shop.hold(&shopper, monotonic(), None).await.ok_or("the server refused a hold of a fresh SKU")?;
        for number in 1..=2 {
            let intent = shop.intent(&shopper, &hold, number).await.ok_or("the provider refused a payment")?;
            shop.pay(&intent, "pm_card_visa").await;
        }
        let id = shop.order(0);
        let is_confirmed = within(limit, async || Ok(order(&mut api, &id).await?.is_some())).await?;
        if !is_confirmed {
            return Err(self.deaf("did not confirm an order that was paid for", limit));
        }
        let came_back = within(limit, async || Ok(!self.books()?.refunds.is_empty())).await?;
        if !came_back {
            return Err(self.deaf("did not send the second payment of an order back", limit));
        }
        within(limit, async || Ok(self.books()?.undelivered_events == 0)).await?;
        self.provider.forget();
        Ok(())
    }

    fn deaf(&self, what: &str, limit: Duration) -> String {
        let answers = self.provider.last_answers();
        format!(
            "the server {what} within {} s. Webhooks to {WEBHOOKS} were answered {answers:?} (0 is no answer). It must have been started with HOLDFAST_STRIPE_API_BASE={}, HOLDFAST_STRIPE_API_KEY={PROVIDER_KEY} and HOLDFAST_STRIPE_WEBHOOK_SECRETS with the --webhook-secret of this drill",
            limit.as_secs(),
            self.provider.url,
        )
    }

    /// Stops what was started.
    pub(super) async fn close(self) -> Result<(), String> {
        match self.own {
            Some((server, _data)) => server.stop(End::Term).await.map(|_| ()),
            None => Ok(()),
        }
    }
}

/// Looks again and again; whether it came true in time.
async fn within(limit: Duration, mut look: impl AsyncFnMut() -> Result<bool, String>) -> Result<bool, String> {
    let began = monotonic();
    while !look().await? {
        if began.elapsed() > limit {
            return Ok(false);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(true)
}
