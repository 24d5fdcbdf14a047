//! The relay: cursors, leases, the schedule. The sink is a receiver of webhooks.

use super::desk::TestDesk;
use super::receiver::Receiver;
use super::shop::{all_ids, assert_complete, drain, relay, settle, trade};
use holdfast_engine::clock::monotonic;
use holdfast_server::outbox::{Desk, OutboxMetrics, Pass, Relay, SinkState, StartAt, admin, run};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

async fn state(desk: &TestDesk, sink: &str) -> SinkState {
    admin::state(desk, sink).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_told_once_and_in_order_while_nothing_breaks() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 20).await;
    let mut relay = relay(&desk, &receiver.config("crm"));
    drain(&desk, &mut relay).await;
    assert_eq!(receiver.ids(), all_ids(&desk).await);
    trade(&desk, "p", 3).await;
    drain(&desk, &mut relay).await;
    assert_eq!(receiver.ids(), all_ids(&desk).await);
    assert_eq!(relay.once().await.unwrap(), Pass::Idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_sink_begins_at_the_end_and_gets_only_its_kinds() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "before", 7).await;
    let mut config = receiver.config("crm");
    config.kinds = Some(vec!["held".into()]);
    let mut relay = Relay::new(desk.clone(), &config, &OutboxMetrics::default()).unwrap();
    assert_eq!(settle(&mut relay).await, Pass::Idle);
    trade(&desk, "after", 5).await;
    drain(&desk, &mut relay).await;
    let told = receiver.told();
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(told.iter().all(|event| event.event_type == "dev.holdfast.held.v1"));
    assert!(told.iter().all(|event| event.key.as_deref().unwrap().starts_with("after-")));
    assert_eq!(state(&desk, "crm").await.cursor, desk.end(0).await.unwrap(), "what is not for it is passed as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_any_ledger_is_found() {
    let desk = TestDesk::new();
    assert_eq!(desk.end(0).await.unwrap(), 0);
    for orders in [1, 1, 2, 5, 11] {
        trade(&desk, &format!("o{orders}-{}", desk.end(0).await.unwrap()), orders).await;
        let end = all_ids(&desk).await.len() as u64;
        for hint in [0, 1, end / 2, end - 1, end] {
            assert_eq!(desk.end(hint).await.unwrap(), end, "from {hint}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_between_answer_and_cursor_costs_a_repetition() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 2).await;
    let mut dies = relay(&desk, &receiver.config("crm"));
    dies.once().await.unwrap();
    // The first write takes the lease, the second one would move the cursor.
    desk.fail_write(2);
    dies.once().await.unwrap_err();
    let first = receiver.ids();
    assert_eq!(first, all_ids(&desk).await);
    let mut other = relay(&desk, &receiver.config("crm"));
    assert_eq!(other.once().await.unwrap(), Pass::Elsewhere, "its lease goes on");
    desk.pass(Duration::from_secs(31));
    drain(&desk, &mut other).await;
    assert_eq!(receiver.ids(), [first.clone(), first].concat(), "the same ids again");
    assert_complete(&receiver.told(), &all_ids(&desk).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_owner_moves_no_cursor() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 3).await;
    let (mut stale, mut next) = (relay(&desk, &receiver.config("crm")), relay(&desk, &receiver.config("crm")));
    stale.once().await.unwrap();
    receiver.close();
    let late = tokio::spawn(async move { stale.once().await });
    receiver.arrival().await;
    assert_eq!(next.once().await.unwrap(), Pass::Elsewhere);
    // It is stuck in the middle of its batch for longer than its lease lasts, and another node takes over.
    desk.pass(Duration::from_secs(31));
    let taken = tokio::spawn(async move { (next.once().await, next) });
    receiver.arrival().await;
    receiver.open(1000);
    assert_eq!(late.await.unwrap().unwrap(), Pass::Elsewhere, "its write is refused");
    let (pass, mut next) = taken.await.unwrap();
    assert_eq!(pass.unwrap(), Pass::More);
    drain(&desk, &mut next).await;
    let ids = all_ids(&desk).await;
    assert_eq!(state(&desk, "crm").await.cursor, ids.len() as u64);
    assert_complete(&receiver.told(), &ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_a_person_sets_wins_over_a_pass_under_way() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 3).await;
    let mut relay = relay(&desk, &receiver.config("crm"));
    drain(&desk, &mut relay).await;
    let count = receiver.ids().len();
    trade(&desk, "p", 1).await;
    receiver.close();
    let pass = tokio::spawn(async move { (relay.once().await, relay) });
    for _ in 0..=count {
        receiver.arrival().await;
    }
    assert_eq!(admin::replay_from(&*desk, "crm", 2).await.unwrap(), 2);
    receiver.open(1000);
    let (made, mut relay) = pass.await.unwrap();
    assert_eq!(made.unwrap(), Pass::Elsewhere);
    drain(&desk, &mut relay).await;
    let ids = all_ids(&desk).await;
    assert!(receiver.ids().ends_with(&ids[2..]), "everything after 2 is told again");
    assert_eq!(admin::replay_from(&*desk, "crm", 1_000_000).await.unwrap(), ids.len() as u64, "not beyond the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_whole_schedule_an_event_is_a_dead_letter_and_the_next_one_goes_on() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let mut relay = relay(&desk, &receiver.config("crm"));
    receiver.answer(200, &[], "");
    (0..10).for_each(|_| receiver.answer(500, &[], "broken\u{7}"));
    let mut waited = Duration::ZERO;
    for _ in 0..9 {
        let Pass::Wait(time) = settle(&mut relay).await else { panic!("it waits for the next attempt") };
        assert_eq!(relay.once().await.map(|pass| matches!(pass, Pass::Wait(_))), Ok(true), "not before its time");
        desk.pass(time);
        waited += time;
    }
    assert!(waited > Duration::from_hours(72), "{waited:?}");
    drain(&desk, &mut relay).await;
    let dead = admin::dead(&*desk, "crm", 0, 10).await.unwrap();
    let [letter] = &dead[..] else { panic!("{dead:?}") };
    assert_eq!((letter.seq, letter.attempts, letter.error.as_str()), (2, 10, "answered 500: broken"));
    let ids = all_ids(&desk).await;
    let told = receiver.ids();
    assert_eq!(told[0], ids[0]);
    assert_eq!(told[1..11], vec![ids[1].clone(); 10], "the same id at every attempt");
    assert_eq!(told[11..], ids[2..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_tells_what_is_committed_at_once_and_hands_over_when_it_stops() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    let (wake, (stop, stopped)) = (Arc::new(Notify::new()), watch::channel(false));
    let looping = tokio::spawn(run(relay(&desk, &receiver.config("crm")), wake.clone(), stopped));
    let start = monotonic();
    for n in 0..8 {
        trade(&desk, &format!("o{n}"), 1).await;
        wake.notify_waiters();
        // The first trade also makes the SKU.
        for _ in 0..if n == 0 { 4 } else { 3 } {
            tokio::time::timeout(Duration::from_secs(10), receiver.arrival()).await.unwrap();
        }
    }
    assert!(start.elapsed() < Duration::from_secs(7), "without being woken, it looks once a second");
    stop.send(true).unwrap();
    looping.await.unwrap();
    assert_eq!(receiver.ids(), all_ids(&desk).await);
    trade(&desk, "p", 1).await;
    let mut other = relay(&desk, &receiver.config("crm"));
    assert_eq!(other.once().await.unwrap(), Pass::More, "the lease was given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_counted() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let metrics = OutboxMetrics::default();
    let mut registry = Registry::with_prefix("holdfast");
    metrics.register(&mut registry);
    let mut config = receiver.config("crm");
    config.from = StartAt::Start;
    let mut relay = Relay::new(desk.clone(), &config, &metrics).unwrap();
    let counted = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        ["sink_lag_entries", "sink_sent_events_total", "sink_failures_total", "sink_dead_letters_total"].map(|name| {
            let line = text.lines().find(|line| line.starts_with(&format!("holdfast_{name}{{sink=\"crm\"}}")));
            line.unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
        })
    };
    receiver.answer(204, &[], "");
    receiver.answer(500, &[], "");
    assert!(matches!(settle(&mut relay).await, Pass::Wait(_)));
    assert_eq!(counted(), [3, 1, 1, 0]);
    admin::skip(&*desk, "crm").await.unwrap();
    drain(&desk, &mut relay).await;
    assert_eq!(counted(), [0, 3, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_those_of_one_event() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let mut relay = relay(&desk, &receiver.config("crm"));
    for _ in 0..3 {
        receiver.answer(500, &[], "");
        let Pass::Wait(time) = settle(&mut relay).await else { panic!("it failed") };
        desk.pass(time);
    }
    assert_eq!(state(&desk, "crm").await.attempts, 3);
    receiver.answer(204, &[], "");
    receiver.answer(500, &[], "");
    let Pass::Wait(time) = settle(&mut relay).await else { panic!("it failed") };
    let after = state(&desk, "crm").await;
    assert_eq!((after.head, after.cursor, after.attempts), (Some(2), 1, 1), "another event, another schedule");
    assert!(time < Duration::from_secs(6), "{time:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_for_as_long_as_a_batch_takes() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let (mut slow, mut other) = (relay(&desk, &receiver.config("crm")), relay(&desk, &receiver.config("crm")));
    slow.once().await.unwrap();
    receiver.close();
    let pass = tokio::spawn(async move { slow.once().await });
    receiver.arrival().await;
    let until = state(&desk, "crm").await.until;
    desk.pass(Duration::from_secs(25));
    let start = monotonic();
    while state(&desk, "crm").await.until == until {
        assert!(start.elapsed() < Duration::from_secs(10), "the lease is not renewed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    desk.pass(Duration::from_secs(25));
    assert_eq!(other.once().await.unwrap(), Pass::Elsewhere, "50 seconds after the batch began");
    receiver.open(1000);
    assert_eq!(pass.await.unwrap().unwrap(), Pass::More);
}
