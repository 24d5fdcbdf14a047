//! Kafka as another client reads it.

use super::desk::TestDesk;
use super::shop::{Told, all_ids, assert_complete, drain, fresh, must, relay, settle, shared, trade};
use holdfast_server::outbox::{Pass, SinkConfig, SinkKind, admin};
use holdfast_services::Kafka;
use serde_json::Value;
use std::collections::HashMap;

/// A topic of its own on some broker.
pub struct Place {
    url: String,
    name: String,
}

impl Place {
    pub fn shared() -> Option<Self> {
        Some(Self::on(&shared("HOLDFAST_TEST_KAFKA")?))
    }

    pub fn on(url: &str) -> Self {
        Self { url: url.to_owned(), name: fresh("shop") }
    }

    pub fn config(&self) -> SinkConfig {
        let mut config = SinkConfig::new("kafka", SinkKind::Kafka, &self.url);
        config.topic = Some(self.name.clone());
        config
    }

    /// Records in order of partition and offset.
    pub fn records(&self) -> Vec<Value> {
        let text = Kafka::read_at(&self.url, &self.name).unwrap();
        let mut records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        records.sort_by_key(|record| (record["partition"].as_u64(), record["offset"].as_u64()));
        records
    }

    pub fn read(&self) -> Vec<Told> {
        let told = |record: &Value| {
            let headers = headers(record);
            let get = |name: &str| headers.get(name).cloned();
            Told { id: get("ce_id").unwrap(), key: get("ce_partitionkey"), event_type: get("ce_type").unwrap() }
        };
        self.records().iter().map(told).collect()
    }
}

fn headers(record: &Value) -> HashMap<String, String> {
    let flat: Vec<String> = serde_json::from_value(record["headers"].clone()).unwrap();
    flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_has_its_attributes_in_headers_and_its_key() {
    let Some(place) = Place::shared() else { return };
    let desk = TestDesk::new();
    trade(&desk, "ö 1", 8).await;
    drain(&desk, &mut relay(&desk, &place.config())).await;
    let records = place.records();
    let find = |id: &str| records.iter().find(|record| headers(record)["ce_id"] == id).unwrap();
    let record = find("00000000000000000002");
    let headers = headers(record);
    assert_eq!(record["key"], "ö 1-0");
    assert_eq!((headers["ce_subject"].as_str(), headers["ce_partitionkey"].as_str()), ("order/ö 1-0", "ö 1-0"));
    assert_eq!((headers["ce_specversion"].as_str(), headers["content-type"].as_str()), ("1.0", "application/json"));
    let data: Value = serde_json::from_str(record["payload"].as_str().unwrap()).unwrap();
    assert_eq!((&data["seq"], &data["kind"]), (&2.into(), &"held".into()));
    let partitions: std::collections::HashSet<_> = records.iter().map(|record| record["partition"].as_u64()).collect();
    assert!(partitions.len() > 1, "orders are spread");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_answers_decides_what_becomes_of_an_event() {
    if !must(Kafka::is_here(), Kafka::PACKAGE) {
        return;
    }
    let kafka = Kafka::start().unwrap();
    let place = Place::on(kafka.url());
    kafka.topic(&place.name, 1).unwrap();
    let desk = TestDesk::new();
    trade(&desk, "o", 1).await;
    let mut relay = relay(&desk, &place.config());
    // 29: not allowed to write to the topic. That may change.
    kafka.fail(29).unwrap();
    assert!(matches!(settle(&mut relay).await, Pass::Wait(_)));
    let state = admin::state(&*desk, "kafka").await.unwrap().unwrap();
    assert_eq!((state.cursor, state.attempts), (0, 1));
    admin::enable(&*desk, "kafka").await.unwrap();
    // 10: too large. The batch is sent event by event, and the first of them is too large by itself.
    kafka.fail(10).unwrap();
    kafka.fail(10).unwrap();
    drain(&desk, &mut relay).await;
    let dead = admin::dead(&*desk, "kafka", 0, 10).await.unwrap();
    assert_eq!(dead.iter().map(|letter| letter.seq).collect::<Vec<_>>(), [1]);
    let told: Vec<String> = place.read().into_iter().map(|event| event.id).collect();
    assert_eq!(told, all_ids(&desk).await[1..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_partitions_that_fail_the_earliest_event_counts() {
    if !must(Kafka::is_here(), Kafka::PACKAGE) {
        return;
    }
    let kafka = Kafka::start().unwrap();
    let place = Place::on(kafka.url());
    kafka.topic(&place.name, 4).unwrap();
    let desk = TestDesk::new();
    trade(&desk, "o", 20).await;
    let mut relay = relay(&desk, &place.config());
    // Two of the four requests fail.
    kafka.fail(29).unwrap();
    kafka.fail(29).unwrap();
    assert!(matches!(settle(&mut relay).await, Pass::Wait(_)));
    admin::enable(&*desk, "kafka").await.unwrap();
    drain(&desk, &mut relay).await;
    assert_complete(&place.read(), &all_ids(&desk).await);
}
