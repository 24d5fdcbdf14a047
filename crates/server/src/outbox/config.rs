//! What can be configured of sinks: `[[sinks]]` of the file, or variables for one sink of each kind.
//!
//! URLs and secrets never appear in a log or an error.

use super::event::Identity;
use super::http::HttpSink;
use super::kafka::KafkaSink;
use super::nats::NatsSink;
use super::rabbitmq::RabbitSink;
use super::sink::Sink;
use crate::config::ConfigError;
use holdfast_domain::EntryKind;
use rustls::ClientConfig;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;

/// The protocol of a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SinkKind {
    /// Signed requests, as Standard Webhooks has them.
    Http,
    /// Records in a Kafka topic.
    Kafka,
    /// Messages for a RabbitMQ exchange.
    RabbitMq,
    /// Messages in a NATS JetStream stream.
    Nats,
}

impl SinkKind {
    /// Its name in a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Kafka => "kafka",
            Self::RabbitMq => "rabbitmq",
            Self::Nats => "nats",
        }
    }
}

/// Where a sink begins that was never started before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartAt {
    /// With the ledger's first entry.
    Start,
    /// With what is recorded from then on.
    #[default]
    End,
}

/// How to log in to Kafka.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Sasl {
    /// PLAIN: the password is sent.
    #[serde(rename = "plain")]
    Plain,
    /// SCRAM-SHA-256.
    #[serde(rename = "scram-sha-256")]
    Scram256,
    /// SCRAM-SHA-512.
    #[serde(rename = "scram-sha-512")]
    Scram512,
}

/// One `[[sinks]]` table. What is not of its kind is refused by [`SinkConfig::check`].
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkConfig {
    /// Its name in the API, in metrics, and of its cursor: lower-case letters, digits and `-`.
    pub name: String,
    /// Its protocol.
    pub kind: SinkKind,
    /// Where it is: `https://…`, `amqp://…`, `nats://…`, or for Kafka `host:port,host:port`.
    pub url: String,
    /// Only entries of these kinds; all of them if not told.
    pub kinds: Option<Vec<String>>,
    /// Where it begins.
    #[serde(default)]
    pub from: StartAt,
    /// The CloudEvents source; `/holdfast` if not told.
    pub source: Option<String>,
    /// What CloudEvents types begin with; `dev.holdfast` if not told.
    pub type_prefix: Option<String>,
    /// PEM certificates to trust besides the public ones.
    pub ca: Option<PathBuf>,
    /// HTTP: what requests are signed with; one signature for each.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// HTTP: addresses that are not public are fine, and so is no TLS.
    #[serde(default)]
    pub allow_private: bool,
    /// Kafka: the topic; `holdfast` if not told.
    pub topic: Option<String>,
    /// Kafka: whether to use TLS.
    #[serde(default)]
    pub tls: bool,
    /// Kafka: how to log in, with `username` and `password`.
    pub sasl: Option<Sasl>,
    /// Kafka: the user.
    pub username: Option<String>,
    /// Kafka: the user's password.
    pub password: Option<String>,
    /// RabbitMQ: the exchange; `holdfast` if not told.
    pub exchange: Option<String>,
    /// RabbitMQ: one routing key for all messages; the entry's kind if not told.
    pub routing_key: Option<String>,
    /// NATS: what subjects begin with; `holdfast` if not told.
    pub subject: Option<String>,
    /// NATS: make this stream, for all such subjects, if it is missing.
    #[serde(default)]
    pub create: bool,
    /// NATS: the name of the stream to make; `holdfast` if not told.
    pub stream: Option<String>,
}

/// Without the URL and the secrets.
impl fmt::Debug for SinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkConfig").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl SinkConfig {
    /// A sink with nothing but what it must have.
    pub fn new(name: &str, kind: SinkKind, url: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            url: url.to_owned(),
            kinds: None,
            from: StartAt::End,
            source: None,
            type_prefix: None,
            ca: None,
            secrets: Vec::new(),
            allow_private: false,
            topic: None,
            tls: false,
            sasl: None,
            username: None,
            password: None,
            exchange: None,
            routing_key: None,
            subject: None,
            create: false,
            stream: None,
        }
    }

    /// Refuses what makes no sense, in words that name the sink and the way out.
    pub fn check(&self) -> Result<(), ConfigError> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(is_name) {
            let what = format!("sink {:?}: a name has 1 to 64 lower-case letters, digits and -", self.name);
            return Err(ConfigError(what));
        }
        self.refuse_foreign()?;
        self.entry_kinds()?;
        let identity = self.identity();
        let is_plain = |text: &str| !text.is_empty() && text.len() <= 256 && text.chars().all(|c| c.is_ascii_graphic());
        if !is_plain(&identity.source) {
            return Err(self.bad("source must be a URI reference: printable ASCII without spaces"));
        }
        let is_type = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !is_plain(&identity.type_prefix) || !identity.type_prefix.chars().all(is_type) {
            return Err(self.bad("type_prefix must have letters, digits, and . - _ only, such as com.example.shop"));
        }
        self.connect().map(drop)
    }

    /// Members that are of another kind.
    fn refuse_foreign(&self) -> Result<(), ConfigError> {
        let members = [
            ("secrets", !self.secrets.is_empty(), SinkKind::Http),
            ("allow_private", self.allow_private, SinkKind::Http),
            ("topic", self.topic.is_some(), SinkKind::Kafka),
            ("tls", self.tls, SinkKind::Kafka),
            ("sasl", self.sasl.is_some(), SinkKind::Kafka),
            ("username", self.username.is_some(), SinkKind::Kafka),
            ("password", self.password.is_some(), SinkKind::Kafka),
            ("exchange", self.exchange.is_some(), SinkKind::RabbitMq),
            ("routing_key", self.routing_key.is_some(), SinkKind::RabbitMq),
            ("subject", self.subject.is_some(), SinkKind::Nats),
            ("create", self.create, SinkKind::Nats),
            ("stream", self.stream.is_some(), SinkKind::Nats),
        ];
        match members.into_iter().find(|(_, is_set, kind)| *is_set && *kind != self.kind) {
            Some((member, _, kind)) => Err(self.bad(&format!("{member} is for sinks of kind {}", kind.as_str()))),
            None => Ok(()),
        }
    }

    /// An error that names this sink.
    pub(super) fn bad(&self, what: &str) -> ConfigError {
        ConfigError(format!("sink {}: {what}", self.name))
    }

    /// How to connect by TLS.
    pub(super) fn tls_client(&self) -> Result<ClientConfig, ConfigError> {
        holdfast_engine::tls::client(self.ca.as_deref()).map_err(|e| self.bad(&e.to_string()))
    }

    /// The kinds that it is for; `None` for all.
    pub(super) fn entry_kinds(&self) -> Result<Option<Vec<EntryKind>>, ConfigError> {
        let Some(names) = &self.kinds else { return Ok(None) };
        let known = || EntryKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");
        let read = |name: &String| {
            EntryKind::parse(name)
                .ok_or_else(|| self.bad(&format!("{name:?} is no kind of entry; those are {}", known())))
        };
        let kinds: Vec<EntryKind> = names.iter().map(read).collect::<Result<_, _>>()?;
        if kinds.is_empty() {
            return Err(self.bad("kinds is empty, so it would get nothing; leave it out for all kinds"));
        }
        Ok(Some(kinds))
    }

    pub(super) fn identity(&self) -> Identity {
        let default = Identity::default();
        Identity {
            source: self.source.as_deref().map_or(default.source, Into::into),
            type_prefix: self.type_prefix.as_deref().map_or(default.type_prefix, Into::into),
        }
    }

    /// The sink itself. It connects when it has something to send.
    pub(super) fn connect(&self) -> Result<Box<dyn Sink>, ConfigError> {
        Ok(match self.kind {
            SinkKind::Http => Box::new(HttpSink::new(self)?),
            SinkKind::Kafka => Box::new(KafkaSink::new(self)?),
            SinkKind::RabbitMq => Box::new(RabbitSink::new(self)?),
            SinkKind::Nats => Box::new(NatsSink::new(self)?),
        })
    }
}

/// Checks each, and that no two have one name.
pub fn check_all(sinks: &[SinkConfig]) -> Result<(), ConfigError> {
    for (index, sink) in sinks.iter().enumerate() {
        sink.check()?;
        if sinks[..index].iter().any(|earlier| earlier.name == sink.name) {
            return Err(sink.bad("another sink has this name; each needs a cursor of its own"));
        }
    }
    Ok(())
}

/// The sinks that variables tell of, one a kind, each named like its kind: `HOLDFAST_SINK_HTTP_URL` with
/// `HOLDFAST_SINK_HTTP_SECRETS` (separated by commas), `HOLDFAST_SINK_KAFKA_BROKERS`, `HOLDFAST_SINK_RABBITMQ_URL`,
/// `HOLDFAST_SINK_NATS_URL`.
pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Vec<SinkConfig>, ConfigError> {
    let told = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let all = [
        (SinkKind::Http, "HOLDFAST_SINK_HTTP_URL"),
        (SinkKind::Kafka, "HOLDFAST_SINK_KAFKA_BROKERS"),
        (SinkKind::RabbitMq, "HOLDFAST_SINK_RABBITMQ_URL"),
        (SinkKind::Nats, "HOLDFAST_SINK_NATS_URL"),
    ];
    let mut sinks = Vec::new();
    for (kind, name) in all {
        let Some(url) = told(name) else { continue };
        let mut sink = SinkConfig::new(kind.as_str(), kind, url.trim());
        if kind == SinkKind::Http {
            let secrets = told("HOLDFAST_SINK_HTTP_SECRETS").unwrap_or_default();
            sink.secrets = secrets.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect();
        }
        sinks.push(sink);
    }
    check_all(&sinks)?;
    Ok(sinks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

    fn read(text: &str) -> Result<SinkConfig, String> {
        let sink: SinkConfig = toml::from_str(text).map_err(|e| e.to_string())?;
        sink.check().map_err(|e| e.0)?;
        Ok(sink)
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        let fine =
            format!("name = \"crm\"\nkind = \"http\"\nurl = \"https://example.com/in\"\nsecrets = [\"{SECRET}\"]\n");
        assert_eq!(read(&fine).unwrap().kind, SinkKind::Http);
        for (text, word) in [
            (format!("{fine}colour = 1"), "colour"),
            (format!("{fine}topic = \"t\""), "topic is for sinks of kind kafka"),
            (format!("{fine}kinds = [\"sold\"]"), "confirmed_late"),
            (format!("{fine}kinds = []"), "kinds is empty"),
            (format!("{fine}source = \"a b\""), "source"),
            (format!("{fine}type_prefix = \"a b\""), "type_prefix"),
            (fine.replace("crm", "CRM"), "lower-case"),
            (fine.replace("https", "http"), "allow_private"),
            (fine.replace("https", "ftp"), "https"),
            (fine.replace("example.com", "127.0.0.1"), "allow_private"),
            (fine.replace("example.com", "[::ffff:10.0.0.1]"), "allow_private"),
            (fine.replace("example.com", "2130706433"), "allow_private"),
            (fine.replace(SECRET, "whsec_c2hvcnQ="), "24"),
            (fine.replace(SECRET, "plain"), "whsec_"),
            ("name = \"k\"\nkind = \"kafka\"\nurl = \"nowhere\"".into(), "host:port"),
            ("name = \"k\"\nkind = \"kafka\"\nurl = \"a:1\"\nsasl = \"plain\"".into(), "username"),
            ("name = \"r\"\nkind = \"rabbitmq\"\nurl = \"http://a\"".into(), "amqp"),
            ("name = \"n\"\nkind = \"nats\"\nurl = \"http://a\"".into(), "nats://"),
            ("name = \"n\"\nkind = \"nats\"\nurl = \"nats://a\"\nsubject = \"a b\"".into(), "subject"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(word), "{text}\n{error}");
            assert!(!error.contains(SECRET), "{error}");
        }
    }

    #[test]
    fn one_sink_of_each_kind_by_variables() {
        let told = [
            ("HOLDFAST_SINK_HTTP_URL", "https://example.com/in"),
            (
                "HOLDFAST_SINK_HTTP_SECRETS",
                "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD, whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            ),
            ("HOLDFAST_SINK_KAFKA_BROKERS", "a:9092,b:9092"),
            ("HOLDFAST_SINK_RABBITMQ_URL", "amqp://user:hidden@host/shop"),
            ("HOLDFAST_SINK_NATS_URL", "nats://host"),
        ];
        let get = |name: &str| told.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let sinks = from_variables(get).unwrap();
        let names: Vec<&str> = sinks.iter().map(|sink| sink.name.as_str()).collect();
        assert_eq!(names, ["http", "kafka", "rabbitmq", "nats"]);
        assert_eq!(sinks[0].secrets.len(), 2);
        let shown = format!("{sinks:?}");
        assert!(!shown.contains("hidden") && !shown.contains("whsec"), "{shown}");
        assert!(from_variables(|_| None).unwrap().is_empty());
        let twice = [sinks[3].clone(), sinks[3].clone()];
        assert!(check_all(&twice).unwrap_err().0.contains("another sink"));
        let unsigned = |name: &str| (name == "HOLDFAST_SINK_HTTP_URL").then(|| "https://example.com".to_owned());
        assert!(from_variables(unsigned).unwrap_err().0.contains("secrets"));
    }
}
