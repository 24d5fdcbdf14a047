//! NATS as a consumer sees it.

use super::desk::TestDesk;
use super::shop::{Told, drain, fresh, relay, settle, shared, trade};
use async_nats::jetstream::{self, consumer, stream};
use futures_util::StreamExt;
use holdfast_server::outbox::{Pass, SinkConfig, SinkKind, admin};
use serde_json::Value;
use std::time::Duration;

/// A stream of its own on some server.
pub struct Place {
    url: String,
    name: String,
}

impl Place {
    pub fn shared() -> Option<Self> {
        Some(Self::on(&shared("HOLDFAST_TEST_NATS")?))
    }

    pub fn on(url: &str) -> Self {
        Self { url: url.to_owned(), name: fresh("shop") }
    }

    pub fn config(&self) -> SinkConfig {
        let mut config = SinkConfig::new("nats", SinkKind::Nats, &self.url);
        (config.stream, config.subject, config.create) = (Some(self.name.clone()), Some(self.name.clone()), true);
        config
    }

    async fn context(&self) -> jetstream::Context {
        jetstream::new(async_nats::connect(&self.url).await.unwrap())
    }

    pub async fn messages(&self) -> Vec<jetstream::Message> {
        let mut stream = self.context().await.get_stream(&self.name).await.unwrap();
        let count = stream.info().await.unwrap().state.messages;
        let consumer = stream.create_consumer(consumer::pull::OrderedConfig::default()).await.unwrap();
        let mut messages = consumer.messages().await.unwrap();
        let mut read = Vec::new();
        for _ in 0..count {
            let next = tokio::time::timeout(Duration::from_secs(10), messages.next()).await;
            read.push(next.unwrap().unwrap().unwrap());
        }
        read
    }

    pub async fn read(&self) -> Vec<Told> {
        let told = |message: &jetstream::Message| {
            let header =
                |name: &str| message.headers.as_ref().unwrap().get(name).map(|value| value.as_str().to_owned());
            Told {
                id: header("ce-id").unwrap(),
                key: header("ce-partitionkey"),
                event_type: header("ce-type").unwrap(),
            }
        };
        self.messages().await.iter().map(told).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_its_attributes_in_headers() {
    let Some(place) = Place::shared() else { return };
    let desk = TestDesk::new();
    trade(&desk, "ö 1", 1).await;
    drain(&desk, &mut relay(&desk, &place.config())).await;
    let messages = place.messages().await;
    let headers = |n: usize, name: &str| messages[n].headers.as_ref().unwrap().get(name).unwrap().as_str().to_owned();
    // The first entry is of the SKU, the second one of the order.
    assert_eq!(messages[0].subject.as_str(), format!("{}.received", place.name));
    assert_eq!(headers(0, "ce-subject"), "sku/%C3%84PFEL%20%22rot%22%2050%25/kg");
    assert_eq!(messages[1].subject.as_str(), format!("{}.held", place.name));
    assert_eq!(headers(1, "ce-subject"), "order/%C3%B6%201-0");
    assert_eq!(headers(1, "ce-partitionkey"), "%C3%B6%201-0");
    assert_eq!(headers(1, "ce-specversion"), "1.0");
    assert_eq!(headers(1, "ce-datacontenttype"), "application/json");
    assert_eq!(headers(1, "Nats-Msg-Id"), "/holdfast/00000000000000000002");
    let data: Value = serde_json::from_slice(&messages[1].payload).unwrap();
    assert_eq!((&data["seq"], &data["order_id"]), (&2.into(), &"ö 1-0".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_stream_nothing_counts_as_sent() {
    let Some(place) = Place::shared() else { return };
    let desk = TestDesk::new();
    trade(&desk, "o", 1).await;
    let mut config = place.config();
    (config.create, config.stream) = (false, None);
    let mut relay = relay(&desk, &config);
    assert!(matches!(settle(&mut relay).await, Pass::Wait(_)));
    let state = admin::state(&*desk, "nats").await.unwrap().unwrap();
    assert_eq!((state.cursor, state.attempts), (0, 1));
    assert!(state.last_error.as_deref().unwrap().contains("create = true"), "{state:?}");
    let subjects = vec![format!("{}.>", place.name)];
    let stream = stream::Config { name: place.name.clone(), subjects, ..stream::Config::default() };
    place.context().await.create_stream(stream).await.unwrap();
    drain(&desk, &mut relay).await;
    assert_eq!(place.read().await.len(), 4);
}
