//! Events as records in a Kafka topic: binary mode, acknowledged by all replicas in sync, orders kept apart by key.

use super::config::{Sasl, SinkConfig};
use super::event::{DATA_TYPE, Event};
use super::sink::{Failure, Sent, Sink, told};
use crate::config::ConfigError;
use async_trait::async_trait;
use chrono::DateTime;
use futures_util::future::join_all;
use rskafka::BackoffConfig;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long it may take to connect, and to get the acknowledgements of a batch.
const PATIENCE: Duration = Duration::from_secs(15);
/// The client tries again by itself for so long: leaders move.
const RETRIES: Duration = Duration::from_secs(5);

/// See the file's header.
pub(super) struct KafkaSink {
    brokers: Vec<String>,
    topic: String,
    tls: Option<Arc<ClientConfig>>,
    sasl: Option<SaslConfig>,
    link: Option<Link>,
}

/// The partitions of the topic, in order of their numbers.
struct Link {
    partitions: Vec<PartitionClient>,
}

impl KafkaSink {
    pub(super) fn new(config: &SinkConfig) -> Result<Self, ConfigError> {
        let is_place = |place: &str| {
            place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        let brokers: Vec<String> = config.url.split(',').map(|place| place.trim().to_owned()).collect();
        if !brokers.iter().all(|place| is_place(place) && !place.contains(['/', '@'])) {
            return Err(config.bad("url must be host:port of a broker; several are separated by commas"));
        }
        let topic = config.topic.clone().unwrap_or_else(|| "holdfast".into());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if topic.is_empty() || topic.len() > 249 || !topic.chars().all(is_plain) {
            return Err(config.bad("topic must have 1 to 249 letters, digits, and . _ -"));
        }
        let sasl = match (config.sasl, &config.username, &config.password) {
            (None, None, None) => None,
            (Some(how), Some(username), Some(password)) => {
                let login = Credentials::new(username.clone(), password.clone());
                Some(match how {
                    Sasl::Plain => SaslConfig::Plain(login),
                    Sasl::Scram256 => SaslConfig::ScramSha256(login),
                    Sasl::Scram512 => SaslConfig::ScramSha512(login),
                })
            }
            _ => return Err(config.bad("sasl, username and password belong together: set all of them or none")),
        };
        let tls = config.tls_client()?;
        Ok(Self { brokers, topic, tls: config.tls.then(|| Arc::new(tls)), sasl, link: None })
    }

    async fn connect(&self) -> Result<Link, Failure> {
        let mut builder =
            ClientBuilder::new(self.brokers.clone()).client_id("holdfast").backoff_config(BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(1),
                base: 2.0,
                deadline: Some(RETRIES),
            });
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(tls.clone());
        }
        if let Some(sasl) = &self.sasl {
            builder = builder.sasl_config(sasl.clone());
        }
        let connect = async {
            let client = builder.build().await.map_err(|e| Failure::Away(told(&e)))?;
            let mut numbers = self.partitions(&client).await?;
            if numbers.is_empty() {
                // Brokers that make topics do so when they are asked for one.
                let _ = client.partition_client(&self.topic, 0, UnknownTopicHandling::Error).await;
                numbers = self.partitions(&client).await?;
            }
            if numbers.is_empty() {
                return Err(Failure::transient(format!("there is no topic {}; make it", self.topic)));
            }
            let clients =
                numbers.into_iter().map(|n| client.partition_client(&self.topic, n, UnknownTopicHandling::Error));
            let partitions = join_all(clients).await.into_iter().collect::<Result<Vec<_>, _>>();
            Ok(Link { partitions: partitions.map_err(|e| judge(&e))? })
        };
        let away = || Failure::Away("the brokers did not answer in time".into());
        timeout(PATIENCE, connect).await.unwrap_or_else(|_| Err(away()))
    }

    async fn partitions(&self, client: &Client) -> Result<Vec<i32>, Failure> {
        let topics = client.list_topics().await.map_err(|e| Failure::Away(told(&e)))?;
        let ours = topics.into_iter().find(|topic| topic.name == self.topic);
        Ok(ours.map(|topic| topic.partitions.into_iter().collect()).unwrap_or_default())
    }
}

#[async_trait]
impl Sink for KafkaSink {
    async fn send(&mut self, events: &[Event]) -> Sent {
        // Taken out, so that a connection on which something was left half-way is never used again.
        let link = match self.link.take() {
            Some(link) => link,
            None => match self.connect().await {
                Ok(link) => link,
                Err(failure) => return Sent::up_to(0, failure),
            },
        };
        match timeout(PATIENCE, link.produce(events)).await {
            Ok(Ok(())) => {
                self.link = Some(link);
                Sent::all(events)
            }
            Ok(Err((accepted, failure))) => Sent::up_to(accepted, failure),
            Err(_) => Sent::up_to(0, Failure::Away("the brokers did not answer in time".into())),
        }
    }

    fn batch(&self) -> usize {
        256
    }
}

impl Link {
    /// Sends each partition its events, all partitions at once. A request is written whole or not at all, so events of
    /// a key stay in order. The first event that was not accepted, and what was wrong with it.
    async fn produce(&self, events: &[Event]) -> Result<(), (usize, Failure)> {
        let mut shares: BTreeMap<usize, Vec<(usize, &Event)>> = BTreeMap::new();
        for (index, event) in events.iter().enumerate() {
            shares.entry(partition_of(event, self.partitions.len())).or_default().push((index, event));
        }
        let sending = shares.iter().map(|(partition, share)| produce(&self.partitions[*partition], share));
        let failed = join_all(sending).await.into_iter().filter_map(Result::err).min_by_key(|(index, _)| *index);
        failed.map_or(Ok(()), Err)
    }
}

async fn produce(partition: &PartitionClient, share: &[(usize, &Event)]) -> Result<(), (usize, Failure)> {
    let all = share.iter().map(|(_, event)| record(event)).collect();
    match partition.produce(all, Compression::NoCompression).await {
        Ok(_) => Ok(()),
        // Together they are too large; one of them may be by itself.
        Err(error) if is_too_large(&error) && share.len() > 1 => {
            for (index, event) in share {
                let sent = partition.produce(vec![record(event)], Compression::NoCompression).await;
                sent.map_err(|e| (*index, judge(&e)))?;
            }
            Ok(())
        }
        Err(error) => Err((share[0].0, judge(&error))),
    }
}

fn record(event: &Event) -> Record {
    let mut headers: BTreeMap<String, Vec<u8>> =
        event.attributes().into_iter().map(|(name, value)| (format!("ce_{name}"), value.into())).collect();
    headers.insert("content-type".into(), DATA_TYPE.into());
    Record {
        key: event.key.as_ref().map(|key| key.as_bytes().to_vec()),
        value: Some(event.data.get().as_bytes().to_vec()),
        headers,
        timestamp: DateTime::from_timestamp_millis(event.at.millis()).unwrap_or_default(),
    }
}

fn is_too_large(error: &Error) -> bool {
    matches!(
        error,
        Error::ServerError { protocol_error: ProtocolError::MessageTooLarge | ProtocolError::RecordListTooLarge, .. }
    )
}

fn judge(error: &Error) -> Failure {
    match error {
        error if is_too_large(error) => Failure::Refused(told(error)),
        Error::ServerError { .. } => Failure::transient(told(error)),
        _ => Failure::Away(told(error)),
    }
}

/// Which of so many partitions an event belongs to, as Kafka's own producers choose it: topics of others that have the
/// same keys and as many partitions can be joined with ours.
fn partition_of(event: &Event, partitions: usize) -> usize {
    let key = event.key.as_deref().unwrap_or(&event.id);
    (murmur2(key.as_bytes()) & 0x7fff_ffff) as usize % partitions.max(1)
}

fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let words = data.chunks_exact(4);
    let rest = words.remainder();
    for word in words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::murmur2;

    #[test]
    fn keys_are_spread_as_kafkas_own_producers_do() {
        // Known values of the Java client.
        for (key, hash) in [("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536)]
        {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }
}
