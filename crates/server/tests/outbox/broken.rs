//! Brokers that end in the middle of a stream. Each test starts its own.

use super::desk::TestDesk;
use super::shop::{Told, all_ids, assert_complete, drain, must, relay, trade};
use super::{kafka, nats, rabbitmq};
use holdfast_engine::clock::monotonic;
use holdfast_server::outbox::{Pass, SinkConfig, admin};
use holdfast_services::{Kafka, Nats, RabbitMq, Signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Entries are made, and a relay tells them, until the returned flag is set and the sink has everything.
fn stream(config: &SinkConfig) -> (Arc<TestDesk>, Arc<AtomicBool>, tokio::task::JoinHandle<bool>) {
    let (desk, done) = (TestDesk::new(), Arc::new(AtomicBool::new(false)));
    let mut relay = relay(&desk, config);
    let (making, ending) = (desk.clone(), done.clone());
    let task = tokio::spawn(async move {
        let (start, mut trades, mut failed) = (monotonic(), 0, false);
        while !ending.load(Ordering::Relaxed) {
            assert!(start.elapsed() < Duration::from_mins(1), "the broker never comes back");
            trade(&making, &format!("o{trades}"), 20).await;
            trades += 1;
            // Pauses of the schedule pass in real time here: a broker needs some to come back.
            if let Pass::Wait(_) = relay.once().await.unwrap() {
                failed = true;
                making.pass(Duration::from_secs(5));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        drain(&making, &mut relay).await;
        failed
    });
    (desk, done, task)
}

/// Waits until so many events were told.
async fn reached(desk: &TestDesk, sink: &str, count: u64) {
    let start = monotonic();
    loop {
        let state = admin::state(desk, sink).await.unwrap();
        if state.is_some_and(|state| state.cursor >= count) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "the sink is not served");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn cursor(desk: &TestDesk, sink: &str) -> u64 {
    admin::state(desk, sink).await.unwrap().unwrap().cursor
}

fn check(told: &[Told], ids: &[String], failed: bool) {
    assert!(failed, "the relay noticed that the broker was away");
    assert_complete(told, ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_killed_in_mid_stream_misses_nothing() {
    if !must(Nats::is_here(), Nats::PACKAGE) {
        return;
    }
    let mut server = Nats::start().unwrap();
    let place = nats::Place::on(&server.url());
    let (desk, done, task) = stream(&place.config());
    reached(&desk, "nats", 200).await;
    server.stop(Signal::Kill);
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.go_on().unwrap();
    let told = cursor(&desk, "nats").await;
    reached(&desk, "nats", told + 100).await;
    done.store(true, Ordering::Relaxed);
    let failed = task.await.unwrap();
    check(&place.read().await, &all_ids(&desk).await, failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_killed_in_mid_stream_misses_nothing() {
    if !must(RabbitMq::is_here(), RabbitMq::PACKAGE) {
        return;
    }
    let mut server = tokio::task::spawn_blocking(RabbitMq::start).await.unwrap().unwrap();
    let place = rabbitmq::Place::on(&server.url());
    place.bind("#").await;
    let (desk, done, task) = stream(&place.config());
    reached(&desk, "rabbitmq", 200).await;
    server.kill();
    let server = tokio::task::spawn_blocking(move || server.go_on().map(|()| server)).await.unwrap().unwrap();
    let told = cursor(&desk, "rabbitmq").await;
    reached(&desk, "rabbitmq", told + 100).await;
    done.store(true, Ordering::Relaxed);
    let failed = task.await.unwrap();
    check(&place.read().await, &all_ids(&desk).await, failed);
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_down_in_mid_stream_misses_nothing() {
    if !must(Kafka::is_here(), Kafka::PACKAGE) {
        return;
    }
    let server = Kafka::start().unwrap();
    let place = kafka::Place::on(server.url());
    let (desk, done, task) = stream(&place.config());
    reached(&desk, "kafka", 200).await;
    server.down().unwrap();
    // The client tries for five seconds by itself before the relay hears of it.
    let start = monotonic();
    loop {
        let state = admin::state(&*desk, "kafka").await.unwrap().unwrap();
        if state.away > 0 || start.elapsed() > Duration::from_secs(15) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.up().unwrap();
    let told = cursor(&desk, "kafka").await;
    reached(&desk, "kafka", told + 100).await;
    done.store(true, Ordering::Relaxed);
    let failed = task.await.unwrap();
    check(&place.read(), &all_ids(&desk).await, failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_that_falls_silent_is_given_up_in_time_and_misses_nothing() {
    if !must(Nats::is_here(), Nats::PACKAGE) {
        return;
    }
    let server = Nats::start().unwrap();
    let place = nats::Place::on(&server.url());
    let (desk, done, task) = stream(&place.config());
    reached(&desk, "nats", 200).await;
    server.freeze();
    let start = monotonic();
    while admin::state(&*desk, "nats").await.unwrap().unwrap().away == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "a silent broker is not given up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.thaw();
    let told = cursor(&desk, "nats").await;
    reached(&desk, "nats", told + 100).await;
    done.store(true, Ordering::Relaxed);
    let failed = task.await.unwrap();
    check(&place.read().await, &all_ids(&desk).await, failed);
}
