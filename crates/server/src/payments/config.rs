//! What can be configured about payment providers. Secrets never appear in a log, an error or a `Debug`.

use super::receipt::adyen::Capture;
use super::receipt::signature::Keys;
use crate::config::ConfigError;
use serde::Deserialize;
use std::fmt;

/// A text that is not shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "set" })
    }
}

/// `[stripe]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripeConfig {
    /// The secret key (`sk_…` or `rk_…`): with it, refunds, captures and voids are made.
    pub api_key: Option<Secret>,
    /// The signing secrets of the webhook endpoints (`whsec_…`), separated by commas.
    pub webhook_secrets: Option<Secret>,
    /// Where Stripe's API is.
    pub api_base: Option<String>,
    /// Only events of this mode count: true for live, false for test. Both, if not told.
    pub livemode: Option<bool>,
    /// Whether a refund names a reason. On, unless told; some stand-ins for Stripe refuse it.
    pub refund_reason: Option<bool>,
    /// Cancel what is still open at Stripe when its hold lapses or is released. On where there is a key.
    pub close_windows: Option<bool>,
}

/// `[adyen]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdyenConfig {
    /// The API key: with it, refunds, captures and cancels are asked for.
    pub api_key: Option<Secret>,
    /// The HMAC keys of the webhooks in hexadecimal, separated by commas.
    pub webhook_secrets: Option<Secret>,
    /// Where Adyen's API is, for live with your prefix.
    pub api_base: Option<String>,
    /// The merchant account; notifications of others are passed over.
    pub merchant_account: Option<String>,
    /// `manual` or `automatic`: whether an authorisation is captured by us or by Adyen at once.
    pub capture: Option<String>,
}

/// `[standard]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandardConfig {
    /// Secrets of the Standard Webhooks (`whsec_…`), separated by commas.
    pub webhook_secrets: Option<Secret>,
}

/// All providers.
#[derive(Debug, Clone, Default)]
pub struct PaymentsConfig {
    /// Stripe.
    pub stripe: StripeConfig,
    /// Adyen.
    pub adyen: AdyenConfig,
    /// A provider of your own.
    pub standard: StandardConfig,
}

/// The secrets under this name, if any are set.
fn keys(
    name: &str,
    secrets: Option<&Secret>,
    read: fn(&str) -> Result<Keys, String>,
) -> Result<Option<Keys>, ConfigError> {
    let told = secrets.map(|secret| read(&secret.0)).transpose();
    told.map_err(|why| ConfigError(format!("{name}: {why}")))
}

impl StripeConfig {
    pub(super) fn keys(&self) -> Result<Option<Keys>, ConfigError> {
        keys("stripe", self.webhook_secrets.as_ref(), Keys::for_stripe)
    }
}

impl AdyenConfig {
    pub(super) fn keys(&self) -> Result<Option<Keys>, ConfigError> {
        keys("adyen", self.webhook_secrets.as_ref(), Keys::for_adyen)
    }

    pub(super) fn capture(&self) -> Result<Capture, ConfigError> {
        match &self.capture {
            None => Ok(Capture::Manual),
            Some(text) => {
                Capture::parse(text).ok_or_else(|| ConfigError("adyen: capture must be manual or automatic".into()))
            }
        }
    }
}

impl StandardConfig {
    pub(super) fn keys(&self) -> Result<Option<Keys>, ConfigError> {
        keys("standard", self.webhook_secrets.as_ref(), Keys::for_standard)
    }
}

impl PaymentsConfig {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// In words that name the setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.stripe.keys()?;
        self.adyen.keys()?;
        self.adyen.capture()?;
        self.standard.keys()?;
        super::clients::all(self)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_and_never_shown() {
        let secret = Secret("whsec_0123456789abcdef".into());
        let stripe = StripeConfig { webhook_secrets: Some(secret), ..StripeConfig::default() };
        let config = PaymentsConfig { stripe, ..PaymentsConfig::default() };
        assert_eq!(config.check(), Ok(()));
        assert!(!format!("{config:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let with =
            |secrets: &str| StripeConfig { webhook_secrets: Some(Secret(secrets.into())), ..StripeConfig::default() };
        let refused = |config: PaymentsConfig| config.check().unwrap_err().0;
        let told = refused(PaymentsConfig { stripe: with("sk_live_51Habcdef0123456789"), ..PaymentsConfig::default() });
        assert!(told.starts_with("stripe: ") && !told.contains("51Habcdef"), "{told}");
        let adyen = AdyenConfig { capture: Some("later".into()), ..AdyenConfig::default() };
        assert!(refused(PaymentsConfig { adyen, ..PaymentsConfig::default() }).contains("manual or automatic"));
        let adyen = AdyenConfig { api_key: Some(Secret("key".into())), ..AdyenConfig::default() };
        assert!(refused(PaymentsConfig { adyen, ..PaymentsConfig::default() }).contains("merchant account"));
    }
}
