//! Events in a NATS JetStream stream: binary mode, each acknowledged by the stream before the next one of its key.

use super::config::SinkConfig;
use super::event::{DATA_TYPE, Event, runs};
use super::sink::{Failure, Sent, Sink, told};
use crate::config::ConfigError;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::{self, Context, stream};
use async_nats::{ConnectOptions, HeaderMap, ServerAddr};
use async_trait::async_trait;
use rustls::ClientConfig;
use std::fmt::Write;
use std::time::Duration;

/// How long it may take to connect, and to get an acknowledgement.
const PATIENCE: Duration = Duration::from_secs(10);

/// See the file's header.
pub(super) struct NatsSink {
    servers: Vec<ServerAddr>,
    tls: ClientConfig,
    subject: String,
    /// The stream to make when it is missing.
    create: Option<String>,
    context: Option<Context>,
}

impl NatsSink {
    pub(super) fn new(config: &SinkConfig) -> Result<Self, ConfigError> {
        let is_ours = |url: &str| url.starts_with("nats://") || url.starts_with("tls://");
        let read = |url: &str| url.trim().parse::<ServerAddr>().ok().filter(|_| is_ours(url.trim()));
        let servers: Option<Vec<ServerAddr>> = config.url.split(',').map(read).collect();
        let servers = servers.ok_or_else(|| {
            config.bad("url must be nats://host:4222 or tls://host:4222; several are separated by commas")
        })?;
        let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let subject = config.subject.clone().unwrap_or_else(|| "holdfast".into());
        if subject.len() > 128 || !subject.split('.').all(|token| !token.is_empty() && token.chars().all(is_token)) {
            return Err(config.bad("subject must have letters, digits, - and _ only, in parts separated by dots"));
        }
        let stream = config.stream.clone().unwrap_or_else(|| "holdfast".into());
        if stream.is_empty() || !stream.chars().all(is_token) {
            return Err(config.bad("stream must have letters, digits, - and _ only"));
        }
        let create = config.create.then_some(stream);
        Ok(Self { servers, tls: config.tls_client()?, subject, create, context: None })
    }

    async fn connect(&self) -> Result<Context, Failure> {
        // Without reconnects of its own: what it had buffered would be sent late, after what was sent instead.
        let options = ConnectOptions::new()
            .name("holdfast")
            .connection_timeout(PATIENCE)
            .max_reconnects(1)
            .tls_client_config(self.tls.clone());
        let client = options.connect(&self.servers[..]).await.map_err(|e| Failure::Away(told(&e)))?;
        let mut context = jetstream::new(client);
        context.set_timeout(PATIENCE);
        if let Some(name) = &self.create {
            let subjects = vec![format!("{}.>", self.subject)];
            let stream = stream::Config { name: name.clone(), subjects, ..stream::Config::default() };
            let made = context.get_or_create_stream(stream).await;
            made.map_err(|e| Failure::transient(format!("the stream {name} cannot be made: {}", told(&e))))?;
        }
        Ok(context)
    }

    /// Sends events of different keys together, and waits for all of them. How many of the first were accepted, and
    /// what was wrong with the next one.
    async fn run(&self, context: &Context, run: &[Event]) -> Result<(), (usize, Failure)> {
        let mut acks = Vec::with_capacity(run.len());
        for event in run {
            let subject = format!("{}.{}", self.subject, event.kind.as_str());
            let data = event.data.get().as_bytes().to_vec();
            acks.push(context.publish_with_headers(subject, headers(event), data.into()).await);
        }
        for (accepted, ack) in acks.into_iter().enumerate() {
            let taken = match ack {
                Ok(ack) => ack.await,
                Err(error) => Err(error),
            };
            // A duplicate is in the stream already: as good as sent.
            taken.map_err(|error| (accepted, self.judge(&error)))?;
        }
        Ok(())
    }

    fn judge(&self, error: &PublishError) -> Failure {
        match error.kind() {
            PublishErrorKind::StreamNotFound => Failure::transient(format!(
                "no stream takes the subjects {}.>; make one, or set create = true",
                self.subject
            )),
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => Failure::Away(told(error)),
            PublishErrorKind::MaxPayloadExceeded => Failure::Refused(told(error)),
            _ => Failure::transient(told(error)),
        }
    }
}

#[async_trait]
impl Sink for NatsSink {
    async fn send(&mut self, events: &[Event]) -> Sent {
        // Taken out, so that a connection on which something was left half-way is never used again.
        let context = match self.context.take() {
            Some(context) => context,
            None => match self.connect().await {
                Ok(context) => context,
                Err(failure) => return Sent::up_to(0, failure),
            },
        };
        let mut done = 0;
        for run in runs(events) {
            if let Err((accepted, failure)) = self.run(&context, run).await {
                return Sent::up_to(done + accepted, failure);
            }
            done += run.len();
        }
        self.context = Some(context);
        Sent::all(events)
    }

    fn batch(&self) -> usize {
        256
    }
}

/// The attributes, the type of the data, and the id by which the stream knows duplicates.
fn headers(event: &Event) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", encoded(&format!("{}/{}", event.source, event.id)));
    headers.insert("ce-datacontenttype", DATA_TYPE);
    for (name, value) in event.attributes() {
        headers.insert(format!("ce-{name}"), encoded(value));
    }
    headers
}

/// Percent-encodes what a header may not have: spaces, quotes, percent signs, and all that is not printable ASCII.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'%') {
            out.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn a_header_is_printable_ascii() {
        assert_eq!(encoded("order/Ä \"1\" 50%"), "order/%C3%84%20%221%22%2050%25");
        assert_eq!(encoded("a-b_c~!"), "a-b_c~!");
    }
}
