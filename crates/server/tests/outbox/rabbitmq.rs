//! RabbitMQ as a consumer sees it.

use super::desk::TestDesk;
use super::shop::{Told, all_ids, drain, fresh, relay, settle, shared, trade};
use holdfast_server::outbox::{Pass, SinkConfig, SinkKind, admin};
use lapin::message::BasicGetMessage;
use lapin::options::{BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties, ExchangeKind};
use serde_json::Value;

/// An exchange of its own on some server, and a durable queue.
pub struct Place {
    url: String,
    name: String,
}

impl Place {
    pub async fn shared() -> Option<Self> {
        let place = Self::on(&shared("HOLDFAST_TEST_RABBITMQ")?);
        place.bind("#").await;
        Some(place)
    }

    pub fn on(url: &str) -> Self {
        Self { url: url.to_owned(), name: fresh("shop") }
    }

    pub fn config(&self) -> SinkConfig {
        let mut config = SinkConfig::new("rabbitmq", SinkKind::RabbitMq, &self.url);
        config.exchange = Some(self.name.clone());
        config
    }

    async fn channel(&self) -> (Connection, Channel) {
        let connection = Connection::connect(&self.url, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        (connection, channel)
    }

    /// Has messages with such keys kept.
    pub async fn bind(&self, key: &str) {
        let (_connection, channel) = self.channel().await;
        let name = || self.name.as_str().into();
        let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        channel.exchange_declare(name(), ExchangeKind::Topic, durable, FieldTable::default()).await.unwrap();
        channel.queue_declare(name(), QueueDeclareOptions::durable(), FieldTable::default()).await.unwrap();
        let bind = QueueBindOptions::default();
        channel.queue_bind(name(), name(), key.into(), bind, FieldTable::default()).await.unwrap();
    }

    pub async fn messages(&self) -> Vec<BasicGetMessage> {
        let (_connection, channel) = self.channel().await;
        let mut messages = Vec::new();
        let get = BasicGetOptions { no_ack: true };
        while let Some(message) = channel.basic_get(self.name.as_str().into(), get).await.unwrap() {
            messages.push(message);
        }
        messages
    }

    pub async fn read(&self) -> Vec<Told> {
        let told = |message: &BasicGetMessage| Told::from(&serde_json::from_slice::<Value>(&message.data).unwrap());
        self.messages().await.iter().map(told).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_persistent_and_has_its_id() {
    let Some(place) = Place::shared().await else { return };
    let desk = TestDesk::new();
    trade(&desk, "ö 1", 1).await;
    drain(&desk, &mut relay(&desk, &place.config())).await;
    let messages = place.messages().await;
    let message = &messages[1];
    assert_eq!(message.routing_key.as_str(), "held");
    let properties = &message.properties;
    assert_eq!(properties.delivery_mode(), &Some(2));
    assert_eq!(properties.content_type().as_ref().unwrap().as_str(), "application/cloudevents+json");
    assert_eq!(properties.message_id().as_ref().unwrap().as_str(), "00000000000000000002");
    let event: Value = serde_json::from_slice(&message.data).unwrap();
    assert_eq!((&event["subject"], &event["data"]["seq"]), (&"order/ö 1-0".into(), &2.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_no_queue_takes_is_not_sent() {
    let Some(place) = Place::shared().await else { return };
    let place = Place::on(&place.url);
    let desk = TestDesk::new();
    trade(&desk, "o", 1).await;
    let mut relay = relay(&desk, &place.config());
    // The exchange is made, and nothing is bound to it.
    for attempt in 1..=9 {
        let Pass::Wait(time) = settle(&mut relay).await else { panic!("it came back") };
        let state = admin::state(&*desk, "rabbitmq").await.unwrap().unwrap();
        assert_eq!((state.cursor, state.attempts), (0, attempt));
        assert!(state.last_error.as_deref().unwrap().contains("bind a queue"), "{state:?}");
        desk.pass(time);
    }
    // Queues for orders only: the event of the SKU is given up, the others go on.
    for key in ["held", "extended", "confirmed"] {
        place.bind(key).await;
    }
    drain(&desk, &mut relay).await;
    let dead = admin::dead(&*desk, "rabbitmq", 0, 10).await.unwrap();
    assert_eq!(dead.iter().map(|letter| letter.seq).collect::<Vec<_>>(), [1]);
    let ids = all_ids(&desk).await;
    let read = |told: Vec<Told>| {
        let mut ids: Vec<String> = told.into_iter().map(|event| event.id).collect();
        // The one after it was under way together with it, and is told again.
        ids.dedup();
        ids
    };
    assert_eq!(read(place.read().await), ids[1..]);
    place.bind("received").await;
    assert_eq!(admin::replay_dead(&*desk, "rabbitmq", None).await.unwrap(), 1);
    drain(&desk, &mut relay).await;
    assert_eq!(read(place.read().await), ids[..1]);
    assert!(admin::dead(&*desk, "rabbitmq", 0, 10).await.unwrap().is_empty());
}
