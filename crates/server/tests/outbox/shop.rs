//! Makes ledger entries, drives relays, and checks what was told.

use super::desk::TestDesk;
use holdfast_engine::clock::monotonic;
use holdfast_engine::domain::{
    Command, HoldId, HoldRequest, Lines, Money, OrderId, Outcome, SetStock, Sku, Total, Ttl,
};
use holdfast_engine::{Engine, LedgerFilter, Now};
use holdfast_server::outbox::{Desk, OutboxMetrics, Pass, Relay, SinkConfig, StartAt};
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// One event as a receiver or a consumer saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub id: String,
    pub key: Option<String>,
    pub event_type: String,
}

async fn ask(engine: &dyn Engine, batch: Vec<Command>) -> Vec<Outcome> {
    engine.apply(batch, Now::Clock).await.unwrap().into_iter().map(Result::unwrap).collect()
}

/// So many orders of a SKU with an odd name, each held, extended and confirmed: three entries an order, interleaved.
pub async fn trade(desk: &TestDesk, name: &str, orders: usize) {
    let engine = &*desk.engine;
    let sku = Sku::new("ÄPFEL \"rot\" 50%/kg").unwrap();
    if engine.stock(&sku).await.unwrap().is_none() {
        let total = Total::new(1_000_000).unwrap();
        let set = SetStock { sku: sku.clone(), total, limit_per_customer: None, if_version: None };
        ask(engine, vec![Command::SetStock(set)]).await;
    }
    let hold = |n: usize| {
        Command::Hold(Box::new(HoldRequest {
            id: HoldId::from_u128(0),
            order_id: OrderId::new(&format!("{name}-{n}")).unwrap(),
            lines: Lines::new(vec![(sku.clone(), 1)]).unwrap(),
            ttl: Ttl::new(600, 3600).unwrap(),
            customer_id: None,
            money: Money::default(),
            payment_ref: None,
            metadata: None,
        }))
    };
    let held = ask(engine, (0..orders).map(hold).collect()).await;
    let ids: Vec<HoldId> = held
        .iter()
        .map(|outcome| match outcome {
            Outcome::Held { hold, .. } => hold.id,
            other => panic!("{other:?}"),
        })
        .collect();
    let extend = |hold: &HoldId| Command::Extend { hold: *hold, ttl: Ttl::new(1200, 3600).unwrap() };
    ask(engine, ids.iter().map(extend).collect()).await;
    ask(engine, ids.iter().map(|hold| Command::Confirm { hold: *hold, payment_ref: None }).collect()).await;
}

/// Ids of all entries, in order.
pub async fn all_ids(desk: &TestDesk) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), 0);
    loop {
        let page = desk.engine.ledger(LedgerFilter { after, ..LedgerFilter::default() }, 500).await.unwrap();
        let Some(last) = page.items.last() else { return ids };
        after = last.seq;
        ids.extend(page.items.iter().map(|numbered| format!("{:020}", numbered.seq)));
    }
}

/// A relay that begins with the ledger's first entry.
pub fn relay(desk: &Arc<TestDesk>, config: &SinkConfig) -> Relay {
    let mut config = config.clone();
    config.from = StartAt::Start;
    let desk: Arc<dyn Desk> = desk.clone();
    Relay::new(desk, &config, &OutboxMetrics::default()).unwrap()
}

/// Makes passes until the sink has everything. Waits of the schedule pass on the test's clock; a broker that is starting
/// needs real time.
pub async fn drain(desk: &TestDesk, relay: &mut Relay) {
    let start = monotonic();
    loop {
        match relay.once().await.unwrap() {
            Pass::Idle => return,
            Pass::More => {}
            Pass::Wait(time) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                desk.pass(time);
            }
            other => panic!("{other:?}"),
        }
        assert!(start.elapsed() < Duration::from_mins(1), "the sink never has everything");
    }
}

/// Passes until one is not `More`.
pub async fn settle(relay: &mut Relay) -> Pass {
    loop {
        let pass = relay.once().await.unwrap();
        if pass != Pass::More {
            return pass;
        }
    }
}

/// Everything was told, and nothing of a key before what came before it.
pub fn assert_complete(told: &[Told], ids: &[String]) {
    let mut known: Vec<&str> = told.iter().map(|event| event.id.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known, ids, "everything is told, and nothing else");
    let mut last: HashMap<&str, &str> = HashMap::new();
    for event in told {
        let last = last.entry(event.key.as_deref().unwrap_or_default()).or_default();
        // An event that is told again is one that was told before: only a new one moves on.
        if event.id.as_str() > *last {
            let skipped = told.iter().find(|other| other.key == event.key && *other.id > **last && other.id < event.id);
            assert_eq!(skipped, None, "told before what came before it: {event:?}");
            *last = &event.id;
        }
    }
}

pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// The server that `cargo xtask test` has started; in CI it must be there.
pub fn shared(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{variable} is not set");
        skipped(&format!("{variable} is not set; run the tests with `cargo xtask test`"));
    }
    url
}

/// Whether a test that starts its own server can run; in CI it must.
pub fn must(is_here: bool, package: &str) -> bool {
    if !is_here {
        assert!(std::env::var_os("CI").is_none(), "{package} is missing");
        skipped(&format!("{package} is missing"));
    }
    is_here
}

/// A name that no other test has.
pub fn fresh(kind: &str) -> String {
    format!("{kind}-{}", &holdfast_engine::clock::random_token()[..12])
}
