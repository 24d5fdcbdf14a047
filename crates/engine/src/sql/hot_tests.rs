//! What every database is asked for an engine that decides elsewhere, on real servers: those that `cargo xtask test`
//! has started. Without one, a CI run fails; elsewhere its test is skipped and says so.

use super::engine::read;
use super::hot_store::{HotRow, HotTx, Parked};
use super::store::{Mode, Store, Tx};
use super::{Fault, SqlConfig, Strategy};
use crate::{Engine, Now};
use holdfast_domain::{
    Command, CustomerId, HoldId, HoldRequest, HoldStatus, Lines, Money, OrderId, OrderRef, Outcome, PaymentFact,
    PaymentKey, PaymentKind, Ref, SetStock, Sku, Time, Total, Ttl,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The shop's time: long ago, so that by the database's clock every hold has lapsed.
const NOW: Now = Now::At(Time::from_millis(1_000_000));
/// Who has not come by then waits.
const WHILE: Duration = Duration::from_millis(200);

/// How the server that this variable names is used, with the patience that a busy machine asks for.
pub(crate) fn server(variable: &str) -> Option<SqlConfig> {
    let Ok(url) = std::env::var(variable) else {
        let why = format!("{variable} is not set; run the tests with `cargo xtask test`");
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("SKIPPED: {why}");
        return None;
    };
    let patience = Duration::from_secs(20);
    // Some of the units stand in rows of their own, which is the hardest way to know how many are left.
    let strategy = Strategy::SkipLocked;
    Some(SqlConfig { strategy, wait: patience, timeout: patience, schema: fresh_name(), ..SqlConfig::new(url) })
}

/// A name that no other test uses.
pub(crate) fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("hot{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Everything, on a store whose tables are in place and empty, and an engine over the same.
pub(crate) async fn all<S: Store>(store: S, engine: &dyn Engine) {
    let store = Arc::new(store);
    partitions_are_made_locked_and_written(&store).await;
    a_step_is_noted_once(&store).await;
    steps_are_listed_and_forgotten(&store).await;
    facts_are_parked(&store).await;
    everything_is_read_for_a_rebuild(&*store, engine).await;
}

/// Writes in a transaction and commits it.
macro_rules! write {
    ($store:expr, $tx:ident => $write:expr) => {{
        let mut $tx = $store.begin(Mode::Locking).await.unwrap();
        let told = $write.await.unwrap();
        $tx.commit().await.unwrap();
        told
    }};
}

fn at(millis: i64) -> Time {
    Time::from_millis(millis)
}

fn row(part: u32) -> HotRow {
    HotRow { part, epoch: 0, is_auditing: false, since: at(0), server: String::new(), drained_epoch: 0, drained_seq: 0 }
}

async fn partitions_are_made_locked_and_written<S: Store>(store: &Arc<S>) {
    write!(store, tx => tx.hot_make(3));
    let written = HotRow {
        part: 1,
        epoch: 4,
        is_auditing: true,
        since: at(77),
        server: "süd 6379".into(),
        drained_epoch: 3,
        drained_seq: i64::MAX,
    };
    write!(store, tx => tx.hot_write(std::slice::from_ref(&written)));
    write!(store, tx => tx.hot_make(4));
    write!(store, tx => tx.hot_make(0));
    let all = [row(0), written.clone(), row(2), row(3)];
    let (now, found) = read!(store, tx => tx.hot_rows(&[3, 1, 0, 2, 9], false).await).unwrap();
    assert_eq!(found, all, "in order, and what was there has stayed");
    let told = read!(store, tx => tx.told().await).unwrap();
    assert!(now <= told.now && now.millis() > told.now.millis() - 60_000, "the database's clock");
    assert_eq!(read!(store, tx => tx.hot_rows(&[], false).await).unwrap().1, [], "none asked for, none found");

    let mut first = store.begin(Mode::Locking).await.unwrap();
    assert_eq!(first.hot_rows(&[2, 1], true).await.unwrap().1, all[1..3]);
    // A row beside those that are locked is not waited for.
    let mut beside = store.begin(Mode::Locking).await.unwrap();
    assert_eq!(beside.hot_rows(&[0, 3], true).await.unwrap().1.len(), 2);
    beside.roll_back().await;
    let other = store.clone();
    let mut second = tokio::spawn(async move {
        let mut tx = other.begin(Mode::Locking).await.unwrap();
        let found = tx.hot_rows(&[1, 2], true).await.unwrap();
        tx.roll_back().await;
        found
    });
    assert!(tokio::time::timeout(WHILE, &mut second).await.is_err(), "it waits for the locks");
    let (before, _) = first.hot_rows(&[], false).await.unwrap();
    let moved = [HotRow { epoch: 5, ..written }, HotRow { drained_seq: 12, ..row(2) }];
    first.hot_write(&moved).await.unwrap();
    first.commit().await.unwrap();
    let (now, found) = second.await.unwrap();
    assert_eq!(found, moved, "what is told is as of when the locks were had");
    assert!(now >= before, "and so is the clock");

    let mut tx = store.begin(Mode::Locking).await.unwrap();
    let lost = tx.hot_write(&[row(9)]).await;
    assert!(matches!(lost, Err(Fault::Corrupt(_))), "{lost:?}");
}

async fn a_step_is_noted_once<S: Store>(store: &Arc<S>) {
    let mut first = store.begin(Mode::Locking).await.unwrap();
    assert!(first.hot_step("once", "of the first", at(1)).await.unwrap());
    let other = store.clone();
    let mut second = tokio::spawn(async move {
        let mut tx = other.begin(Mode::Locking).await.unwrap();
        let noted = tx.hot_step("once", "", at(2)).await.unwrap();
        // The transaction goes on, whatever it was told.
        assert!(tx.hot_step("besides", "x", at(2)).await.unwrap());
        tx.commit().await.unwrap();
        noted
    });
    assert!(tokio::time::timeout(WHILE, &mut second).await.is_err(), "it waits for the one before");
    first.commit().await.unwrap();
    assert!(!second.await.unwrap(), "the second finds the step noted");
    let effects = async |token: &str| read!(store, tx => tx.hot_step_of(token).await).unwrap();
    assert_eq!(effects("once").await.as_deref(), Some("of the first"), "and has not changed it");
    assert_eq!(effects("besides").await.as_deref(), Some("x"));
    assert_eq!(effects("ONCE").await, None, "bytes are compared");

    // What was undone was never noted.
    let mut undone = store.begin(Mode::Locking).await.unwrap();
    assert!(undone.hot_step("again", "undone", at(3)).await.unwrap());
    undone.roll_back().await;
    // Many at once: one is told so, the others find it noted or are asked to decide again.
    let race = (0..4).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut tx = store.begin(Mode::Locking).await.unwrap();
            match tx.hot_step("again", &format!("of {n}"), at(3)).await {
                Ok(noted) => {
                    tx.commit().await.unwrap();
                    noted
                }
                Err(Fault::Again(_)) => false,
                Err(fault) => panic!("{fault}"),
            }
        })
    });
    let noted = futures_util::future::join_all(race).await;
    assert_eq!(noted.into_iter().filter(|noted| *noted.as_ref().unwrap()).count(), 1);
    write!(store, tx => tx.hot_forget(&["once", "besides", "again"].map(String::from), at(0)));
}

async fn steps_are_listed_and_forgotten<S: Store>(store: &Arc<S>) {
    let long = "ü".repeat(100_000);
    let mut tx = store.begin(Mode::Locking).await.unwrap();
    for (token, effects, millis) in
        [("b", "2", 20), ("a", "3", 30), ("c", &long, 10), ("gone", "", 10), ("late", "", 40), ("B", "4", 30)]
    {
        assert!(tx.hot_step(token, effects, at(millis)).await.unwrap(), "{token}");
    }
    assert_eq!(tx.hot_steps(9).await.unwrap().len(), 4, "what it has written it sees");
    tx.commit().await.unwrap();
    let list = async |limit| {
        let found = read!(store, tx => tx.hot_steps(limit).await).unwrap();
        found.into_iter().map(|(token, _)| token).collect::<Vec<_>>()
    };
    assert_eq!(list(9).await, ["c", "b", "B", "a"], "oldest first, without those given up");
    assert_eq!(list(2).await, ["c", "b"]);
    let effects = async |token: &str| read!(store, tx => tx.hot_step_of(token).await).unwrap();
    assert_eq!(effects("c").await.unwrap(), long);
    assert_eq!(effects("gone").await.unwrap(), "");

    write!(store, tx => tx.hot_forget(&["c", "B", "late", "unknown"].map(String::from), at(40)));
    assert_eq!(list(9).await, ["b", "a"]);
    assert_eq!(effects("gone").await, None, "given up long ago");
    assert_eq!(effects("late").await.unwrap(), "", "a step given up just now stays given up");
    let late = write!(store, tx => tx.hot_step("late", "5", at(50)));
    assert!(!late, "and must never commit");
    write!(store, tx => tx.hot_forget(&[], at(41)));
    assert_eq!(effects("late").await, None);
    assert_eq!(list(9).await, ["b", "a"]);
}

async fn facts_are_parked<S: Store>(store: &Arc<S>) {
    write!(store, tx => tx.hot_park(&[], at(1)));
    assert_eq!(read!(store, tx => tx.hot_parked().await).unwrap(), 0);
    let parked = |seq| Parked { part: 2, epoch: 1, seq, fact: "f".repeat(70_000), why: "no such hold".into() };
    // The same fact may be parked twice: a person looks at them.
    write!(store, tx => tx.hot_park(&[parked(1), parked(2), parked(2)], at(9)));
    assert_eq!(read!(store, tx => tx.hot_parked().await).unwrap(), 3);
}

fn sku(text: &str) -> Sku {
    Sku::new(text).unwrap()
}

fn order(text: &str) -> OrderId {
    OrderId::new(text).unwrap()
}

fn reference(text: &str) -> Ref {
    Ref::new(text).unwrap()
}

fn customer(text: &str) -> CustomerId {
    CustomerId::new(text).unwrap()
}

fn lines(asked: &[(&str, u64)]) -> Lines {
    Lines::new(asked.iter().map(|(text, units)| (sku(text), *units)).collect()).unwrap()
}

async fn apply(engine: &dyn Engine, command: Command) -> Outcome {
    engine.apply(vec![command], NOW).await.unwrap().remove(0).unwrap()
}

async fn hold(engine: &dyn Engine, id: &str, by: Option<&str>, asked: &[(&str, u64)]) -> HoldId {
    let asked = HoldRequest {
        id: HoldId::from_u128(0),
        order_id: order(id),
        lines: lines(asked),
        ttl: Ttl::new(600, u32::MAX).unwrap(),
        customer_id: by.map(customer),
        money: Money::default(),
        payment_ref: None,
        metadata: None,
    };
    match apply(engine, Command::Hold(Box::new(asked))).await {
        Outcome::Held { hold, .. } => hold.id,
        other => panic!("{other:?}"),
    }
}

fn payment(id: &str) -> PaymentKey {
    PaymentKey { provider: reference("stripe"), payment_id: reference(id) }
}

async fn pay(engine: &dyn Engine, id: &str, order: Option<OrderRef>) {
    let fact = PaymentFact {
        event_id: reference(&format!("evt-{id}")),
        payment: payment(id),
        kind: PaymentKind::Captured,
        order,
        money: Money::default(),
        email: None,
        reference: None,
    };
    apply(engine, Command::Settle(Box::new(fact))).await;
}

/// All pages of one row each, by an expression over the transaction and the last row.
macro_rules! pages {
    ($store:expr, $tx:ident, $last:ident => $read:expr) => {{
        let mut all = Vec::new();
        let mut $tx = $store.begin(Mode::ReadOnly).await.unwrap();
        loop {
            let $last = all.last();
            let page = $read.await.unwrap();
            if page.is_empty() {
                $tx.roll_back().await;
                break all;
            }
            assert_eq!(page.len(), 1);
            all.extend(page);
        }
    }};
}

async fn everything_is_read_for_a_rebuild<S: Store>(store: &S, engine: &dyn Engine) {
    for (text, total) in [("HOT", 50), ("COLD", 20), ("cold", 7)] {
        let total = Total::new(total).unwrap();
        apply(
            engine,
            Command::SetStock(SetStock { sku: sku(text), total, limit_per_customer: None, if_version: None }),
        )
        .await;
    }
    let bought: [(_, _, &[_]); 4] = [
        ("b-1", "ann", &[("HOT", 2), ("COLD", 1)]),
        ("B-1", "carol", &[("COLD", 3)]),
        ("a-1", "bob", &[("HOT", 1)]),
        ("a-2", "ann", &[("HOT", 1)]),
    ];
    let mut orders = Vec::new();
    for (id, by, asked) in bought {
        orders.push((order(id), hold(engine, id, Some(by), asked).await));
        pay(engine, &format!("pi-{id}"), Some(OrderRef::Order(order(id)))).await;
    }
    apply(engine, Command::Return { order: order("a-1"), lines: lines(&[("HOT", 1)]), key: None }).await;
    let held = [
        hold(engine, "h-1", None, &[("HOT", 3), ("COLD", 1)]).await,
        hold(engine, "h-2", Some("ann"), &[("HOT", 4)]).await,
        hold(engine, "h-3", None, &[("HOT", 5)]).await,
        hold(engine, "h-4", None, &[("cold", 1)]).await,
    ];
    apply(engine, Command::Release { hold: held[2] }).await;
    // Two wait for their orders' holds; the third was told of no order, the fourth of a hold that nobody knows.
    pay(engine, "early-2", Some(OrderRef::Order(order("w-1")))).await;
    pay(engine, "lost", None).await;
    pay(engine, "odd", Some(OrderRef::Hold(HoldId::from_u128(7)))).await;
    pay(engine, "early-1", Some(OrderRef::Order(order("w-2")))).await;

    let found = pages!(store, tx, last => tx.held_after(last.map(|hold: &holdfast_domain::Hold| hold.id), 1));
    assert_eq!(found.iter().map(|hold| hold.id).collect::<Vec<_>>(), [held[0], held[1], held[3]]);
    assert!(found.iter().all(|hold| hold.status == HoldStatus::Held));
    assert_eq!(found[0].lines, lines(&[("HOT", 3), ("COLD", 1)]), "a cart of two SKUs is one hold");

    orders.sort();
    let found = pages!(store, tx, last => tx.orders_after(last.map(|(order, _): &(OrderId, HoldId)| order), 1));
    assert_eq!(found, orders);
    assert_eq!(found[0].0, order("B-1"), "in byte order");

    let found = pages!(store, tx, last => {
        let after = last.map(|(customer, sku, _): &(CustomerId, Sku, i64)| (customer, sku));
        tx.bought_after(after, 1)
    });
    let expected = [("ann", "COLD", 1), ("ann", "HOT", 3), ("carol", "COLD", 3)];
    assert_eq!(
        found,
        expected.map(|(by, text, units)| (customer(by), sku(text), units)),
        "what came back is not there"
    );

    let found =
        pages!(store, tx, last => tx.waiting_after(last.map_or(0, |(n, ..): &(i64, OrderId, PaymentKey)| *n), 1));
    let told: Vec<_> = found.iter().map(|(_, order, payment)| (order.clone(), payment.clone())).collect();
    assert_eq!(told, [(order("w-1"), payment("early-2")), (order("w-2"), payment("early-1"))]);

    let found = pages!(store, tx, last => tx.stocks_after(last.map(|stock: &holdfast_domain::Stock| &stock.sku), 1));
    let told: Vec<_> = found.iter().map(|s| (s.sku.as_str(), s.available, s.held, s.sold)).collect();
    assert_eq!(told, [("COLD", 15, 1, 4), ("HOT", 40, 7, 3), ("cold", 6, 1, 0)], "lapsed, and held all the same");

    // The same under a transaction that writes.
    let mut tx = store.begin(Mode::Locking).await.unwrap();
    assert_eq!(tx.stocks_after(None, 9).await.unwrap(), found);
    assert_eq!(tx.held_after(Some(held[0]), 9).await.unwrap().len(), 2);
    assert_eq!(tx.orders_after(None, 9).await.unwrap().len(), 4);
    assert_eq!(tx.bought_after(None, 9).await.unwrap().len(), 3);
    assert_eq!(tx.waiting_after(0, 9).await.unwrap().len(), 2);
    tx.roll_back().await;
}
