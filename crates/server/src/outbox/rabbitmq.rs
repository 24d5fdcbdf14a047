//! Events as persistent messages to a RabbitMQ exchange, confirmed by the broker. A message that no queue takes is
//! confirmed too, after it came back: that is a failure here.

use super::config::SinkConfig;
use super::event::{Event, STRUCTURED_TYPE, runs};
use super::sink::{Failure, Sent, Sink, told};
use crate::config::ConfigError;
use async_rs::Runtime;
use async_trait::async_trait;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions};
use lapin::tcp::OwnedTLSConfig;
use lapin::types::{FieldTable, ShortString};
use lapin::uri::AMQPUri;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ErrorKind, ExchangeKind};
use std::time::Duration;
use tokio::time::timeout;

/// How long it may take to connect, and to get the confirmations of a run.
const PATIENCE: Duration = Duration::from_secs(15);
/// To the protocol, a message that survives a restart.
const PERSISTENT: u8 = 2;

/// See the file's header.
pub(super) struct RabbitSink {
    uri: AMQPUri,
    /// PEM certificates to trust besides the public ones.
    ca: Option<String>,
    exchange: ShortString,
    /// One key for all messages; the entry's kind where there is none.
    routing_key: Option<ShortString>,
    link: Option<Link>,
}

/// The channel ends with its connection, which is therefore kept.
struct Link {
    channel: Channel,
    _connection: Connection,
}

impl RabbitSink {
    pub(super) fn new(config: &SinkConfig) -> Result<Self, ConfigError> {
        // The parser's words would repeat the URL, and with it the password.
        let uri = config.url.parse::<AMQPUri>();
        let uri = uri.map_err(|_| config.bad("url must be amqp://user:password@host:5672/vhost, or amqps://…"))?;
        // Tells what is wrong with the file now instead of at the first event.
        config.tls_client()?;
        let ca = config.ca.as_ref().map(std::fs::read_to_string).transpose();
        let ca = ca.map_err(|e| config.bad(&format!("cannot read the certificates: {e}")))?;
        let short = |name: &str, text: &str| match text.len() {
            ..=255 => Ok(ShortString::from(text)),
            _ => Err(config.bad(&format!("{name} must have at most 255 bytes"))),
        };
        let exchange = short("exchange", config.exchange.as_deref().unwrap_or("holdfast"))?;
        let routing_key = config.routing_key.as_deref().map(|key| short("routing_key", key)).transpose()?;
        Ok(Self { uri, ca, exchange, routing_key, link: None })
    }

    async fn connect(&self) -> Result<Link, Failure> {
        let connect = async {
            let tls = OwnedTLSConfig { identity: None, cert_chain: self.ca.clone() };
            let properties = ConnectionProperties::default().with_connection_name("holdfast".into());
            let runtime = Runtime::tokio_current();
            let uri = self.uri.clone();
            let connection = Connection::connect_uri_with_config(uri, properties, tls, runtime).await?;
            self.declare(&connection).await?;
            let channel = connection.create_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok(Link { channel, _connection: connection })
        };
        match timeout(PATIENCE, connect).await {
            Ok(connected) => connected.map_err(|error: lapin::Error| judge(&error)),
            Err(_) => Err(Failure::Away("the broker did not answer in time".into())),
        }
    }

    /// Makes the exchange if there is none. One that is there is taken as it is.
    async fn declare(&self, connection: &Connection) -> lapin::Result<()> {
        if self.exchange.as_str().is_empty() {
            return Ok(());
        }
        let look = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
        let make = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        // Asking for one that is missing closes the channel.
        for options in [look, make] {
            let channel = connection.create_channel().await?;
            let name = self.exchange.clone();
            let declared = channel.exchange_declare(name, ExchangeKind::Topic, options, FieldTable::default()).await;
            match declared {
                Err(error) if options.passive && matches!(error.kind(), ErrorKind::ProtocolError(_)) => {}
                declared => return declared,
            }
        }
        Ok(())
    }

    /// Sends events of different keys together, and waits for all of them. How many of the first were accepted, and
    /// what was wrong with the next one.
    async fn run(&self, channel: &Channel, run: &[Event]) -> Result<(), (usize, Failure)> {
        let mut confirms = Vec::with_capacity(run.len());
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        for event in run {
            let sent = match event.structured() {
                Err(error) => Err(Failure::Refused(error.to_string())),
                Ok(body) => {
                    let key = self.routing_key.clone().unwrap_or_else(|| event.kind.as_str().into());
                    let properties = properties(event);
                    let sent = channel.basic_publish(self.exchange.clone(), key, options, &body, properties).await;
                    sent.map_err(|error| judge(&error))
                }
            };
            let is_sent = sent.is_ok();
            confirms.push(sent);
            if !is_sent {
                break;
            }
        }
        for (accepted, confirm) in confirms.into_iter().enumerate() {
            let confirmed = match confirm {
                Ok(confirm) => confirm.await.map_err(|error| judge(&error)),
                Err(failure) => Err(failure),
            };
            let failed = match confirmed {
                Ok(Confirmation::Ack(None)) => continue,
                Ok(Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned))) => {
                    Failure::transient(format!(
                        "the message came back ({}): bind a queue for its routing key, or set kinds",
                        returned.reply_text
                    ))
                }
                Ok(Confirmation::Nack(None)) => Failure::transient("the broker did not take the message"),
                Ok(Confirmation::NotRequested) => Failure::transient("the broker does not confirm messages"),
                Err(failure) => failure,
            };
            return Err((accepted, failed));
        }
        Ok(())
    }
}

#[async_trait]
impl Sink for RabbitSink {
    async fn send(&mut self, events: &[Event]) -> Sent {
        // Taken out, so that a channel on which something was left half-way is never used again.
        let link = match self.link.take() {
            Some(link) => link,
            None => match self.connect().await {
                Ok(link) => link,
                Err(failure) => return Sent::up_to(0, failure),
            },
        };
        let mut done = 0;
        for run in runs(events) {
            match timeout(PATIENCE, self.run(&link.channel, run)).await {
                Ok(Ok(())) => done += run.len(),
                Ok(Err((accepted, failure))) => return Sent::up_to(done + accepted, failure),
                Err(_) => return Sent::up_to(done, Failure::Away("the broker did not confirm in time".into())),
            }
        }
        self.link = Some(link);
        Sent::all(events)
    }

    fn batch(&self) -> usize {
        256
    }
}

fn properties(event: &Event) -> BasicProperties {
    BasicProperties::default()
        .with_content_type(STRUCTURED_TYPE.into())
        .with_delivery_mode(PERSISTENT)
        .with_message_id(event.id.as_str().into())
        .with_type(event.event_type.as_str().into())
        .with_app_id("holdfast".into())
        .with_timestamp(event.at.millis().unsigned_abs() / 1000)
}

/// What the broker says about a message or a name may change with its configuration; anything else is a broken line.
fn judge(error: &lapin::Error) -> Failure {
    match error.kind() {
        ErrorKind::ProtocolError(_) => Failure::transient(told(error)),
        _ => Failure::Away(told(error)),
    }
}
