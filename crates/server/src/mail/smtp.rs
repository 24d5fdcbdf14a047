//! One SMTP server: a connection for each mail, with a limit on the whole of it.
//!
//! Connections are not kept: one whose dialogue was cut short would be at the wrong step of it, and could take the
//! answer to one mail for that to another. The password never reaches an error or a log line.

use super::MailError;
use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Category;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use std::fmt;
use std::path::Path;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(10);
const SEND: Duration = Duration::from_mins(1);
/// The mail is on its way by then; a server that does not say goodbye is left.
const QUIT: Duration = Duration::from_secs(2);
const MAX_WORDS: usize = 300;

/// Where and how to hand mail in.
pub(super) struct Smtp {
    host: String,
    port: u16,
    tls: Tls,
    credentials: Option<Credentials>,
    hello: ClientId,
    limit: Duration,
    goodbye: Duration,
}

enum Tls {
    /// In the clear.
    None,
    /// Encrypted if the server offers it.
    Opportunistic(TlsParameters),
    /// Encrypted, or not at all.
    Required(TlsParameters),
    /// Encrypted from the first byte.
    Wrapped(TlsParameters),
}

/// Without the credentials.
impl fmt::Debug for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smtp").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Smtp {
    /// `hello` is the name we give ourselves.
    pub(super) fn new(url: &str, ca: Option<&Path>, hello: &str) -> Result<Self, String> {
        let form = "the form is smtp://user:password@host:port or smtps://…, with ?tls=required, opportunistic or none";
        let bad = |what: &str| format!("the SMTP URL (HOLDFAST_SMTP_URL) {what}; {form}");
        let url = Url::parse(url).map_err(|e| bad(&format!("cannot be read: {e}")))?;
        let host = url.host_str().filter(|h| !h.is_empty()).ok_or_else(|| bad("has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(bad("has a path in it"));
        }
        let is_local = matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1");
        let mode = mode(&url, is_local).map_err(|what| bad(&what))?;
        let credentials = credentials(&url).map_err(bad)?;
        if credentials.is_some() && !is_local && matches!(mode, Mode::None | Mode::Opportunistic) {
            return Err(bad("would send the password in the clear: use ?tls=required or smtps://"));
        }
        let tls = || parameters(&host, ca);
        let (tls, port) = match mode {
            Mode::None => (Tls::None, 25),
            Mode::Opportunistic => (Tls::Opportunistic(tls()?), 587),
            Mode::Required => (Tls::Required(tls()?), 587),
            Mode::Wrapped => (Tls::Wrapped(tls()?), 465),
        };
        let port = url.port().unwrap_or(port);
        Ok(Self { host, port, tls, credentials, hello: ClientId::Domain(hello.to_owned()), limit: SEND, goodbye: QUIT })
    }

    #[cfg(test)]
    pub(super) fn impatient(self) -> Self {
        let short = Duration::from_millis(200);
        Self { limit: short, goodbye: short, ..self }
    }

    #[cfg(test)]
    pub(super) fn in_a_hurry(self) -> Self {
        Self { goodbye: Duration::from_millis(50), ..self }
    }

    /// `Ok` once the server has taken the mail.
    pub(super) async fn send(&self, envelope: &Envelope, mail: &[u8]) -> Result<(), MailError> {
        match tokio::time::timeout(self.limit, self.hand_in(envelope, mail)).await {
            Ok(Ok(mut connection)) => {
                let _ = tokio::time::timeout(self.goodbye, connection.quit()).await;
                Ok(())
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(MailError { permanent: false, error: format!("{} did not answer in time", self.name()) }),
        }
    }

    async fn hand_in(&self, envelope: &Envelope, mail: &[u8]) -> Result<AsyncSmtpConnection, MailError> {
        // What fails before the mail is told is a matter of settings or of the server, whatever its code: another
        // mail would fare no better, and this one will do once that is put right.
        let before = |e: Error| self.error(&e, false);
        let mut connection = self.connect().await.map_err(before)?;
        if let Some(credentials) = &self.credentials {
            connection.auth(&[Mechanism::Plain, Mechanism::Login], credentials).await.map_err(before)?;
        }
        let sent = connection.send(envelope, mail).await;
        // 530, 534, 535, 538: the server wants a login or encryption first.
        let is_about_login = |e: &Error| e.status().is_some_and(|code| code.category == Category::Unspecified3);
        sent.map_err(|e| self.error(&e, (e.is_permanent() && !is_about_login(&e)) || e.is_client()))?;
        Ok(connection)
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let wrap = if let Tls::Wrapped(tls) = &self.tls { Some(tls.clone()) } else { None };
        let server = (self.host.as_str(), self.port);
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(server, Some(CONNECT), &self.hello, wrap, None).await?;
        match &self.tls {
            Tls::Required(tls) => connection.starttls(tls.clone(), &self.hello).await?,
            Tls::Opportunistic(tls) if connection.can_starttls() => {
                connection.starttls(tls.clone(), &self.hello).await?;
            }
            Tls::Opportunistic(_) | Tls::None | Tls::Wrapped(_) => {}
        }
        Ok(connection)
    }

    fn name(&self) -> String {
        format!("the SMTP server {}:{}", self.host, self.port)
    }

    fn error(&self, error: &Error, permanent: bool) -> MailError {
        let code = error.status().map(|code| code.to_string()).unwrap_or_default();
        // A server may repeat what it was sent to log in.
        let words = if code.starts_with("53") || code == "504" {
            format!("{} does not let us in: {code}", self.name())
        } else {
            format!("{}: {error}", self.name())
        };
        let error = words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_WORDS).collect();
        MailError { permanent, error }
    }
}

enum Mode {
    None,
    Opportunistic,
    Required,
    Wrapped,
}

fn mode(url: &Url, is_local: bool) -> Result<Mode, String> {
    let mut told = None;
    for (name, value) in url.query_pairs() {
        if name != "tls" {
            return Err(format!("has an option {name:?} that is not known"));
        }
        told = Some(match &*value {
            "required" => Mode::Required,
            "opportunistic" => Mode::Opportunistic,
            "none" => Mode::None,
            _ => return Err("asks for a kind of tls that is not known".into()),
        });
    }
    match (url.scheme(), told) {
        ("smtps", None) => Ok(Mode::Wrapped),
        ("smtps", Some(_)) => Err("is encrypted from the first byte: leave tls out".into()),
        ("smtp", Some(mode)) => Ok(mode),
        ("smtp", None) => Ok(if is_local { Mode::None } else { Mode::Required }),
        _ => Err("must start with smtp:// or smtps://".into()),
    }
}

fn credentials(url: &Url) -> Result<Option<Credentials>, &'static str> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8().map(String::from);
    let user = decode(url.username()).map_err(|_| "has a user that is not UTF-8")?;
    let password = url.password().map(decode).transpose().map_err(|_| "has a password that is not UTF-8")?;
    match (user.is_empty(), password) {
        (true, None) => Ok(None),
        (false, Some(password)) => Ok(Some(Credentials::new(user, password))),
        _ => Err("needs both a user and a password, or neither"),
    }
}

fn parameters(host: &str, ca: Option<&Path>) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(host.to_owned()).certificate_store(CertificateStore::WebpkiRoots);
    if let Some(file) = ca {
        let bad =
            |why: String| format!("cannot use the certificates in {}: {why}; the file must be PEM", file.display());
        let pem = std::fs::read(file).map_err(|e| bad(e.to_string()))?;
        builder = builder.add_root_certificate(Certificate::from_pem(&pem).map_err(|e| bad(e.to_string()))?);
    }
    builder.build().map_err(|e| format!("cannot set up TLS for mail: {e}"))
}
