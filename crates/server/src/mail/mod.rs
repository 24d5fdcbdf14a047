//! Mail to shoppers whose money goes back: what to say, and handing it to an SMTP server.
//!
//! SMTP has no idempotency: a mail may arrive twice, each time with the same Message-ID. Nothing that a shopper or a
//! shop typed can become a header or a tag, and no address, password or text of a mail is ever logged here.

mod money;
mod smtp;
mod template;
#[cfg(test)]
mod tests;

use holdfast_domain::{Money, Ref};
use holdfast_engine::clock;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message};
use sha2::{Digest, Sha256};
use smtp::Smtp;
use std::fmt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use template::{Templates, Values};

/// How mail is sent.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// `smtp://user:password@host:port`, `smtps://…`; `?tls=required|opportunistic|none`.
    pub(crate) smtp_url: &'a str,
    /// `Shop <orders@shop.example>`.
    pub(crate) from: &'a str,
    /// A folder with templates of the shop's own.
    pub(crate) templates: Option<&'a Path>,
    /// Certificates, in PEM, to trust besides the public ones.
    pub(crate) ca: Option<&'a Path>,
}

/// What a mail is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeKind {
    /// The hold had lapsed and its units were gone; the payment is being returned.
    WindowLapsed,
    /// The provider says that the money was returned.
    RefundDone,
}

impl NoticeKind {
    const ALL: [Self; 2] = [Self::WindowLapsed, Self::RefundDone];

    /// The stable name, as in the names of templates.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::WindowLapsed => "window-lapsed",
            Self::RefundDone => "refund-done",
        }
    }
}

/// One mail to write.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    /// What it is about.
    pub(crate) kind: NoticeKind,
    /// The shopper's address.
    pub(crate) to: Box<str>,
    /// The merchant's order.
    pub(crate) order_id: Box<str>,
    /// Who counts the money: providers differ in the decimals of some currencies.
    pub(crate) provider: Ref,
    /// What goes back.
    pub(crate) money: Money,
    /// The provider's id of the refund.
    pub(crate) reference: Option<Ref>,
    /// The job's key, by which the mail is known again.
    pub(crate) idempotency_key: Box<str>,
}

/// A mail was not sent, as far as we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MailError {
    /// It will not be sent however often it is tried.
    pub(crate) permanent: bool,
    /// Why, in words for people.
    pub(crate) error: String,
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl MailError {
    fn permanent(error: impl Into<String>) -> Self {
        Self { permanent: true, error: error.into() }
    }
}

/// Writes mails and sends them.
#[derive(Debug)]
pub(crate) struct Mailer {
    smtp: Smtp,
    from: Mailbox,
    /// The sender's domain in ASCII.
    domain: String,
    shop: String,
    templates: Templates,
}

impl Mailer {
    /// Refuses settings and templates that cannot work, in words that never repeat a password.
    pub(crate) fn new(settings: &Settings<'_>) -> Result<Self, String> {
        let from: Mailbox = settings.from.parse().map_err(|e| {
            format!("the sender of mail (HOLDFAST_MAIL_FROM) must be like \"Shop <orders@shop.example>\": {e}")
        })?;
        let email = ascii_domain(&from.email).ok_or("the sender's domain cannot be written in ASCII")?;
        let domain = email.domain().to_owned();
        let name = from.name.as_deref().map(str::trim).filter(|n| !n.is_empty());
        let shop = one_line(name.unwrap_or(email.domain()));
        let from = Mailbox::new(from.name.clone(), email);
        let smtp = Smtp::new(settings.smtp_url, settings.ca, &domain)?;
        Ok(Self { smtp, from, domain, shop, templates: Templates::load(settings.templates)? })
    }

    /// Hands a mail to the SMTP server; `Ok` once that has taken it.
    pub(crate) async fn send(&self, notice: &Notice) -> Result<(), MailError> {
        let message = self.message(notice)?;
        self.smtp.send(message.envelope(), &message.formatted()).await
    }

    /// The same for the same notice.
    fn message_id(&self, notice: &Notice) -> String {
        let digest = hex::encode(Sha256::digest(notice.idempotency_key.as_bytes()));
        let what = match notice.kind {
            NoticeKind::WindowLapsed => "refund",
            NoticeKind::RefundDone => "refund-done",
        };
        format!("<{what}-{}@{}>", &digest[..32], self.domain)
    }

    fn message(&self, notice: &Notice) -> Result<Message, MailError> {
        let bad_address = || MailError::permanent("the shopper's address is none that mail can be sent to");
        let to: Address = notice.to.parse().map_err(|_| bad_address())?;
        let to = ascii_domain(&to).ok_or_else(bad_address)?;
        let mail = self.templates.render(notice.kind, &self.values(notice));
        let now = UNIX_EPOCH + Duration::from_millis(clock::wall().millis().unsigned_abs());
        let builder = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(mail.subject)
            .date(now)
            .message_id(Some(self.message_id(notice)))
            // Nobody's absence note should answer it.
            .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".into()));
        let parts =
            MultiPart::alternative().singlepart(SinglePart::plain(mail.text)).singlepart(SinglePart::html(mail.html));
        builder.multipart(parts).map_err(|e| MailError::permanent(format!("the mail cannot be written: {e}")))
    }

    fn values(&self, notice: &Notice) -> Values {
        Values {
            order_id: one_line(&notice.order_id),
            amount: money::words(notice.provider.as_str(), notice.money),
            shop: self.shop.clone(),
            reference: one_line(notice.reference.as_ref().map_or(&notice.order_id, Ref::as_str)),
        }
    }
}

/// The address with its domain as the name system knows it.
fn ascii_domain(address: &Address) -> Option<Address> {
    if address.domain().is_ascii() {
        return Some(address.clone());
    }
    let url = reqwest::Url::parse(&format!("http://{}", address.domain())).ok()?;
    Address::new(address.user(), url.host_str()?).ok()
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c }).collect()
}
