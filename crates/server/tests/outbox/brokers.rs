//! What every broker is held to, on the servers that `cargo xtask test` has started.

use super::desk::TestDesk;
use super::receiver::Receiver;
use super::shop::{Told, all_ids, assert_complete, drain, relay, settle, trade};
use super::{kafka, nats, rabbitmq};
use holdfast_engine::clock::monotonic;
use holdfast_server::outbox::{Pass, SinkConfig, SinkKind, admin};
use std::time::Duration;

/// Everything is told in order; a node that dies between the acknowledgement and its cursor costs a repetition.
pub async fn tells_all_in_order(config: &SinkConfig) -> std::sync::Arc<TestDesk> {
    let desk = TestDesk::new();
    trade(&desk, "first", 30).await;
    let mut dies = relay(&desk, config);
    dies.once().await.unwrap();
    desk.fail_write(2);
    dies.once().await.unwrap_err();
    desk.pass(Duration::from_secs(31));
    let mut other = relay(&desk, config);
    drain(&desk, &mut other).await;
    // More than fits into one batch.
    trade(&desk, "second", 150).await;
    drain(&desk, &mut other).await;
    desk
}

/// Which were told more than once.
pub fn repeated(told: &[Told], ids: &[String]) -> usize {
    ids.iter().filter(|id| told.iter().filter(|event| event.id == **id).count() > 1).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_is_told_all_in_order_and_keeps_no_duplicates() {
    let Some(place) = nats::Place::shared() else { return };
    let desk = tells_all_in_order(&place.config()).await;
    let (told, ids) = (place.read().await, all_ids(&desk).await);
    assert_complete(&told, &ids);
    assert_eq!(told.len(), ids.len(), "the stream knows what it has by its id");
}

#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_is_told_all_in_order() {
    let Some(place) = rabbitmq::Place::shared().await else { return };
    let desk = tells_all_in_order(&place.config()).await;
    let (told, ids) = (place.read().await, all_ids(&desk).await);
    assert_complete(&told, &ids);
    assert_eq!(repeated(&told, &ids), 91, "the batch whose cursor was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_is_told_all_in_order() {
    let Some(place) = kafka::Place::shared() else { return };
    let desk = tells_all_in_order(&place.config()).await;
    let (told, ids) = (place.read(), all_ids(&desk).await);
    assert_complete(&told, &ids);
    assert_eq!(repeated(&told, &ids), 91, "the batch whose cursor was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_down_keeps_nobody_waiting() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 5).await;
    // Nobody listens at port 1.
    // More often than an endpoint would be tried; Kafka's client tries for seconds by itself, so only twice.
    let down = [
        (SinkConfig::new("kafka", SinkKind::Kafka, "127.0.0.1:1"), 2),
        (SinkConfig::new("rabbitmq", SinkKind::RabbitMq, "amqp://user:hidden@127.0.0.1:1"), 12),
        (SinkConfig::new("nats", SinkKind::Nats, "nats://user:hidden@127.0.0.1:1"), 12),
    ];
    let loops: Vec<_> = down
        .iter()
        .map(|(config, times)| {
            let (desk, mut relay, name, times) = (desk.clone(), relay(&desk, config), config.name.clone(), *times);
            tokio::spawn(async move {
                for _ in 0..times {
                    let Pass::Wait(time) = settle(&mut relay).await else { panic!("{name} cannot be reached") };
                    assert!(time < Duration::from_secs(70), "{name} is looked for often");
                    desk.pass(time);
                }
                assert!(admin::dead(&*desk, &name, 0, 1).await.unwrap().is_empty(), "that says nothing about an event");
                let state = admin::state(&*desk, &name).await.unwrap().unwrap();
                assert_eq!((state.cursor, state.away, state.attempts), (0, times, 0));
                let error = state.last_error.unwrap();
                assert!(!error.is_empty() && !error.contains("hidden"), "{error}");
            })
        })
        .collect();
    let start = monotonic();
    trade(&desk, "p", 5).await;
    let mut other = relay(&desk, &receiver.config("crm"));
    drain(&desk, &mut other).await;
    assert_eq!(receiver.ids(), all_ids(&desk).await);
    assert!(start.elapsed() < Duration::from_secs(10), "neither holds nor another sink wait for a broker");
    for looping in loops {
        looping.await.unwrap();
    }
}
