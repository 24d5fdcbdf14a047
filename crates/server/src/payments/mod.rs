//! Money: what payment providers tell us, and what we ask of them. Decides no rule: facts go to the domain as they are.

mod clients;
mod config;
mod provider;
pub(crate) mod receipt;
mod routes;
mod runner;
mod window;

pub use config::{AdyenConfig, PaymentsConfig, Secret, StandardConfig, StripeConfig};
pub(crate) use receipt::signature::{Keys, sign_standard};
pub(crate) use routes::{__path_receive_webhook, receive_webhook};
pub(crate) use window::{KINDS as WINDOW_KINDS, Windows};

use crate::app::Shared;
use crate::config::ConfigError;
use provider::Provider;
use receipt::adyen::Capture;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// The providers as they are configured.
pub(crate) struct Payments {
    stripe_keys: Option<Keys>,
    adyen_keys: Option<Keys>,
    standard_keys: Option<Keys>,
    livemode: Option<bool>,
    merchant_account: Option<String>,
    capture: Capture,
    pub(crate) providers: Vec<Arc<dyn Provider>>,
    /// Windows are closed when holds lapse.
    pub(crate) closes_windows: bool,
    /// Something may have become due.
    pub(crate) wake: Notify,
}

impl Payments {
    pub(crate) fn new(config: &PaymentsConfig) -> Result<Self, ConfigError> {
        let providers = clients::all(config)?;
        let closes_windows = config.stripe.close_windows.unwrap_or(config.stripe.api_key.is_some());
        Ok(Self {
            stripe_keys: config.stripe.keys()?,
            adyen_keys: config.adyen.keys()?,
            standard_keys: config.standard.keys()?,
            livemode: config.stripe.livemode,
            merchant_account: config.adyen.merchant_account.clone(),
            capture: config.adyen.capture()?,
            closes_windows: closes_windows && !providers.is_empty(),
            providers,
            wake: Notify::new(),
        })
    }
}

/// Starts what carries out what is owed.
pub(crate) fn start(app: &Shared, stop: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
    runner::warn_of_idle(&app.payments);
    let run = |provider: &Arc<dyn Provider>| tokio::spawn(runner::run(app.clone(), provider.clone(), stop.clone()));
    app.payments.providers.iter().map(run).collect()
}
