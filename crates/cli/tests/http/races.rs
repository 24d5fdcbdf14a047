//! Many at once: exactly as many as there are, exactly one of each.

use crate::support::{Answer, Call, Connection, Server, brief_cart, cart, shared, with};
use serde_json::{Value, json};
use std::sync::Barrier;

/// Sends all calls at the same moment, each on a connection of its own.
fn at_once(server: &Server, calls: &[Call]) -> Vec<Answer> {
    let barrier = Barrier::new(calls.len());
    std::thread::scope(|scope| {
        let one = |call: &Call| {
            let mut connection = Connection::open(server.port);
            barrier.wait();
            connection.call(call)
        };
        let threads: Vec<_> = calls.iter().map(|call| scope.spawn(move || one(call))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|a| a.status == status).count()
}

fn hold(cart: &Value) -> Call {
    Call::new("POST", "/v1/holds").json(cart)
}

#[test]
fn two_hundred_buyers_for_twenty_units() {
    let server = shared();
    server.stock("RACE-1", 20);
    let calls: Vec<Call> = (0..200).map(|n| hold(&cart(&format!("race-1-{n}"), "RACE-1", 1))).collect();
    let answers = at_once(&server, &calls);
    assert_eq!((count(&answers, 201), count(&answers, 409)), (20, 180));
    assert_eq!(server.counters("RACE-1"), (0, 20, 0));
    let confirms: Vec<Call> = answers
        .iter()
        .filter_map(|a| a.header("location"))
        .flat_map(|path| {
            let call = Call::new("POST", &format!("{path}/confirm"));
            [call.clone(), call]
        })
        .collect();
    assert_eq!(count(&at_once(&server, &confirms), 200), 40);
    assert_eq!(server.counters("RACE-1"), (0, 0, 20), "exactly as many are sold as there were");
}

#[test]
fn two_hundred_clicks_of_one_customer() {
    let server = shared();
    server.put("/v1/stock/RACE-2", &json!({"total": 500, "limit_per_customer": 3})).is(201);
    let calls: Vec<Call> =
        (0..200).map(|n| hold(&with(cart(&format!("race-2-{n}"), "RACE-2", 1), "customer_id", "c"))).collect();
    let answers = at_once(&server, &calls);
    assert_eq!((count(&answers, 201), count(&answers, 409)), (3, 197));
    assert_eq!(server.counters("RACE-2"), (497, 3, 0), "losers burn no units");
}

#[test]
fn one_order_many_times() {
    let server = shared();
    server.stock("RACE-3", 500);
    let answers = at_once(&server, &vec![hold(&cart("race-3", "RACE-3", 2)); 100]);
    assert_eq!((count(&answers, 201), count(&answers, 200)), (1, 99));
    assert!(answers.iter().all(|a| a.json()["id"] == answers[0].json()["id"]));
    assert_eq!(server.counters("RACE-3"), (498, 2, 0));
    let calls: Vec<Call> = (1..=50).map(|n| hold(&cart("race-3-other", "RACE-3", n))).collect();
    let answers = at_once(&server, &calls);
    assert_eq!((count(&answers, 201), count(&answers, 409)), (1, 49));
}

#[test]
fn carts_in_every_order_never_deadlock() {
    let server = shared();
    for sku in ["RACE-4A", "RACE-4B", "RACE-4C"] {
        server.stock(sku, 100);
    }
    let calls: Vec<Call> = (0..90)
        .map(|n| {
            let mut skus = ["RACE-4A", "RACE-4B", "RACE-4C"];
            skus.rotate_left(n % 3);
            let items: Vec<Value> = skus.iter().map(|sku| json!({"sku": sku, "quantity": 2})).collect();
            hold(&json!({"order_id": format!("race-4-{n}"), "items": items}))
        })
        .collect();
    let answers = at_once(&server, &calls);
    assert_eq!((count(&answers, 201), count(&answers, 409)), (50, 40));
    for sku in ["RACE-4A", "RACE-4B", "RACE-4C"] {
        assert_eq!(server.counters(sku), (0, 100, 0));
    }
}

#[test]
fn a_confirmation_races_a_release_and_a_change() {
    let server = shared();
    server.stock("RACE-5", 1000);
    for n in 0..20 {
        let before = server.counters("RACE-5");
        let path = server.hold(&cart(&format!("race-5-{n}"), "RACE-5", 5));
        let verbs = [
            Call::new("POST", &format!("{path}/confirm")),
            Call::new("POST", &format!("{path}/release")),
            Call::new("PATCH", &path).json(&json!({"items": [{"sku": "RACE-5", "quantity": 7}]})),
            Call::new("POST", &format!("{path}/confirm")),
            Call::new("POST", &format!("{path}/release")),
        ];
        let answers = at_once(&server, &verbs);
        assert!(answers.iter().all(|a| [200, 409, 410].contains(&a.status)), "{answers:?}");
        assert_eq!((answers[0].status, answers[3].status), (200, 200), "the money is there, and so are the units");
        let units = server.get(&path).is(200)["items"][0]["quantity"].as_u64().unwrap();
        assert_eq!(server.counters("RACE-5"), (before.0 - units, 0, before.2 + units));
    }
}

#[test]
fn an_expiry_races_the_payment() {
    let server = shared();
    server.stock("RACE-6", 10);
    let paths: Vec<String> =
        (0..10).map(|n| server.hold(&brief_cart(&format!("race-6-{n}"), "RACE-6", 1, 1))).collect();
    let answers: Vec<(Answer, Answer)> = std::thread::scope(|scope| {
        let rivals = scope.spawn(|| {
            let mut taken = Vec::new();
            while taken.len() < 40 {
                let cart = cart(&format!("race-6-rival-{}", taken.len()), "RACE-6", 1);
                taken.push(server.post("/v1/holds", &cart));
                std::thread::sleep(std::time::Duration::from_millis(40));
            }
            taken
        });
        std::thread::sleep(std::time::Duration::from_millis(980));
        let pay = |path: &String| (server.touch(&format!("{path}/confirm")), server.get(path));
        let paid: Vec<_> = paths.iter().map(pay).collect();
        let rivals = rivals.join().unwrap();
        let (sold, held) = (count_first(&paid), count(&rivals, 201));
        assert_eq!(
            server.counters("RACE-6"),
            (10 - (sold + held) as u64, held as u64, sold as u64),
            "one owner a unit"
        );
        paid
    });
    for (confirm, hold) in answers {
        let expected = if confirm.status == 200 { "confirmed" } else { "expired" };
        assert_eq!(hold.is(200)["status"], expected, "{}", confirm.text());
    }
}

fn count_first(answers: &[(Answer, Answer)]) -> usize {
    answers.iter().filter(|(confirm, _)| confirm.status == 200).count()
}

#[test]
fn a_stock_sync_races_the_shoppers() {
    let server = shared();
    server.stock("RACE-7", 100);
    let mut calls: Vec<Call> = (0..60).map(|n| hold(&cart(&format!("race-7-{n}"), "RACE-7", 1))).collect();
    let sync =
        |total: u64| Call::new("PUT", "/v1/stock/RACE-7").header("if-match", "\"1\"").json(&json!({"total": total}));
    calls.extend([sync(80), sync(90), sync(70), sync(95)]);
    let answers = at_once(&server, &calls);
    assert_eq!(count(&answers[60..], 200), 1, "one sync wins");
    assert_eq!(count(&answers[60..], 412), 3);
    assert_eq!(count(&answers, 201), 60);
    let (available, held, _) = server.counters("RACE-7");
    assert_eq!(held, 60, "and erases no sale");
    assert!([10, 20, 30, 35].contains(&available));
}
