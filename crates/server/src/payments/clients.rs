//! The clients of the providers that there are keys for.

use super::config::PaymentsConfig;
use super::provider::{Provider, adyen, stripe};
use crate::config::ConfigError;
use std::sync::Arc;

/// Where Adyen's test system is; the live one has a prefix of the shop's own.
const ADYEN_TEST: &str = "https://checkout-test.adyen.com/v72";

/// One client for each provider that can be asked.
pub(super) fn all(config: &PaymentsConfig) -> Result<Vec<Arc<dyn Provider>>, ConfigError> {
    let mut all: Vec<Arc<dyn Provider>> = Vec::new();
    if let Some(key) = &config.stripe.api_key {
        let client = stripe::Stripe::new(&stripe::Settings {
            api_key: &key.0,
            api_base: config.stripe.api_base.as_deref().unwrap_or(stripe::API_BASE),
            api_version: stripe::API_VERSION,
            tells_reasons: config.stripe.refund_reason.unwrap_or(true),
        });
        all.push(Arc::new(client.map_err(ConfigError)?));
    }
    if let Some(key) = &config.adyen.api_key {
        let client = adyen::Adyen::new(&adyen::Settings {
            api_key: &key.0,
            api_base: config.adyen.api_base.as_deref().unwrap_or(ADYEN_TEST),
            merchant_account: config.adyen.merchant_account.as_deref().unwrap_or_default(),
        });
        all.push(Arc::new(client.map_err(ConfigError)?));
    }
    Ok(all)
}
