//! Payment providers on the command line. Secrets belong into variables: flags can be read by other users of the machine.

use clap::Args;
use holdfast_server::{FileConfig, MailConfig, PaymentsConfig, Secret};

#[derive(Args)]
#[command(next_help_heading = "Payments and mail")]
pub(crate) struct PaymentArgs {
    /// Stripe's secret key: refunds, captures and voids are made with it.
    #[arg(long, env = "HOLDFAST_STRIPE_API_KEY", value_name = "SK", hide_env_values = true)]
    stripe_api_key: Option<String>,
    /// Signing secrets of Stripe's webhook endpoints: whsec_…,…
    #[arg(long, env = "HOLDFAST_STRIPE_WEBHOOK_SECRETS", value_name = "SECRETS", hide_env_values = true)]
    stripe_webhook_secrets: Option<String>,
    /// Where Stripe's API is [default: https://api.stripe.com].
    #[arg(long, env = "HOLDFAST_STRIPE_API_BASE", value_name = "URL")]
    stripe_api_base: Option<String>,
    /// Adyen's API key: refunds, captures and cancels are asked for with it.
    #[arg(long, env = "HOLDFAST_ADYEN_API_KEY", value_name = "KEY", hide_env_values = true)]
    adyen_api_key: Option<String>,
    /// HMAC keys of Adyen's webhooks, in hexadecimal: KEY,…
    #[arg(long, env = "HOLDFAST_ADYEN_WEBHOOK_SECRETS", value_name = "KEYS", hide_env_values = true)]
    adyen_webhook_secrets: Option<String>,
    /// Where Adyen's API is [default: https://checkout-test.adyen.com/v72].
    #[arg(long, env = "HOLDFAST_ADYEN_API_BASE", value_name = "URL")]
    adyen_api_base: Option<String>,
    /// The merchant account at Adyen.
    #[arg(long, env = "HOLDFAST_ADYEN_MERCHANT_ACCOUNT", value_name = "NAME")]
    adyen_merchant_account: Option<String>,
    /// Secrets of your own provider's Standard Webhooks: whsec_…,…
    #[arg(long, env = "HOLDFAST_STANDARD_WEBHOOK_SECRETS", value_name = "SECRETS", hide_env_values = true)]
    standard_webhook_secrets: Option<String>,
    /// The SMTP server for mail to shoppers whose payment came too late: smtps://user:password@host
    #[arg(long, env = "HOLDFAST_SMTP_URL", value_name = "URL", hide_env_values = true)]
    smtp_url: Option<String>,
    /// Who such mail is from: 'Shop <orders@shop.example>'
    #[arg(long, env = "HOLDFAST_MAIL_FROM", value_name = "SENDER")]
    mail_from: Option<String>,
}

impl PaymentArgs {
    /// What is told here, else what the file says.
    pub(crate) fn choose(&self, file: &FileConfig) -> PaymentsConfig {
        let mut all =
            PaymentsConfig { stripe: file.stripe.clone(), adyen: file.adyen.clone(), standard: file.standard.clone() };
        let secret = |told: &Option<String>, kept: &mut Option<Secret>| {
            if let Some(text) = told {
                *kept = Some(Secret(text.clone()));
            }
        };
        secret(&self.stripe_api_key, &mut all.stripe.api_key);
        secret(&self.stripe_webhook_secrets, &mut all.stripe.webhook_secrets);
        secret(&self.adyen_api_key, &mut all.adyen.api_key);
        secret(&self.adyen_webhook_secrets, &mut all.adyen.webhook_secrets);
        secret(&self.standard_webhook_secrets, &mut all.standard.webhook_secrets);
        let plain = |told: &Option<String>, kept: &mut Option<String>| {
            if told.is_some() {
                kept.clone_from(told);
            }
        };
        plain(&self.stripe_api_base, &mut all.stripe.api_base);
        plain(&self.adyen_api_base, &mut all.adyen.api_base);
        plain(&self.adyen_merchant_account, &mut all.adyen.merchant_account);
        all
    }

    /// The same for mail.
    pub(crate) fn mail(&self, file: &FileConfig) -> MailConfig {
        let mut mail = file.mail.clone();
        if let Some(url) = &self.smtp_url {
            mail.smtp_url = Some(Secret(url.clone()));
        }
        if self.mail_from.is_some() {
            mail.from.clone_from(&self.mail_from);
        }
        mail
    }
}
