//! Ends and beginnings: a graceful stop, a crash, a restart.

use crate::support::{Call, Connection, Server, brief_cart, cart, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

/// Holds one unit of A again and again until the server goes away; the orders that were acknowledged.
fn shop(port: u16, name: usize, acknowledged: &Mutex<Vec<String>>) {
    let mut connection = Connection::open(port);
    for n in 0.. {
        let order = format!("o-{name}-{n}");
        let call = Call::new("POST", "/v1/holds").json(&cart(&order, "A", 1));
        if connection.try_send(&call.bytes()).is_err() {
            return;
        }
        let Some(answer) = connection.try_answer("POST") else {
            return;
        };
        answer.is(201);
        acknowledged.lock().unwrap().push(order);
        if answer.header("connection") == Some("close") {
            return;
        }
    }
}

/// Runs shoppers until there are some acknowledged holds, then does `end`; the acknowledged orders.
fn under_load(port: u16, end: impl FnOnce()) -> Vec<String> {
    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for name in 0..8 {
            let acknowledged = &acknowledged;
            scope.spawn(move || shop(port, name, acknowledged));
        }
        eventually("some holds", Duration::from_secs(20), || (acknowledged.lock().unwrap().len() > 200).then_some(()));
        end();
    });
    acknowledged.into_inner().unwrap()
}

fn finds(server: &Server, orders: &[String], shoppers: u64) {
    for order in orders {
        let found = server.get(&format!("/v1/holds?order_id={order}")).is(200);
        assert_eq!(found["items"][0]["status"], "held", "{order} was acknowledged");
        assert_eq!(found["items"].as_array().unwrap().len(), 1);
    }
    let held = server.counters("A").1;
    let least = orders.len() as u64;
    assert!((least..=least + shoppers).contains(&held), "{held} held, {least} acknowledged");
    server.is_clean();
}

#[test]
fn a_stop_under_load_loses_nothing() {
    let mut server = Server::fresh();
    server.stock("A", 1_000_000);
    let folder = server.folder().clone();
    let orders = under_load(server.port, || {
        server.signal(Signal::TERM);
        let (status, log) = server.wait(Duration::from_secs(30));
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("stopping") && log.contains("\"stopped\""), "{log}");
    });
    finds(&Server::with(&folder, &[]), &orders, 8);
}

#[test]
fn a_crash_under_load_loses_nothing_that_was_acknowledged() {
    let server = Server::fresh();
    server.stock("A", 1_000_000);
    let (port, mut folder) = (server.port, None);
    let orders = under_load(port, || folder = Some(server.kill()));
    let server = Server::with(&folder.unwrap(), &[]);
    finds(&server, &orders, 8);
    let again = server.post("/v1/holds", &cart(&orders[0], "A", 1));
    again.is(200);
}

#[test]
fn a_request_that_has_begun_is_answered_before_the_end() {
    let mut server = Server::fresh();
    server.stock("A", 5);
    let body = cart("o-1", "A", 1).to_string();
    let head = format!(
        "POST /v1/holds HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut begun = Connection::open(server.port);
    begun.send(format!("{head}{}", &body[..10]).as_bytes());
    let mut table = Connection::open(server.port);
    table.send(b"POST /v1/stock/import HTTP/1.1\r\nhost: h\r\ncontent-type: text/csv\r\ncontent-length: 18\r\n\r\nsku,total\nB,");
    let mut idle = Connection::open(server.port);
    idle.call(&Call::new("GET", "/healthz")).is(200);
    // The server has certainly read what was sent before the request that it has just answered on another connection.
    server.get("/healthz").is(200);
    std::thread::sleep(Duration::from_millis(100));

    server.signal(Signal::TERM);
    assert!(idle.is_closed(), "an idle connection ends");
    eventually("nobody new is served", Duration::from_secs(5), || {
        std::net::TcpStream::connect(("127.0.0.1", server.port)).is_err().then_some(())
    });
    begun.send(&body.as_bytes()[10..]);
    let answer = begun.answer();
    answer.is(201);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(begun.is_closed());
    table.send(b"7\nC,8\n");
    assert_eq!(table.answer().is(200)["created"], 2);
    let folder = server.folder().clone();
    assert_eq!(server.wait(Duration::from_secs(10)).0.code(), Some(0));

    let server = Server::with(&folder, &[]);
    assert_eq!((server.counters("A"), server.counters("B")), ((4, 1, 0), (7, 0, 0)));
}

#[test]
fn an_interrupt_is_a_stop_too() {
    let mut server = Server::fresh();
    server.signal(Signal::INT);
    assert_eq!(server.wait(Duration::from_secs(10)).0.code(), Some(0));
}

#[test]
fn a_restart_keeps_everything() {
    let server = Server::fresh();
    server.put("/v1/stock/A", &json!({"total": 50, "limit_per_customer": 9})).is(201);
    let held = server.hold(&json!({"order_id": "o-1", "items": [{"sku": "A", "quantity": 2}], "customer_id": "c", "amount": 7, "currency": "eur",
        "metadata": {"k": "ü\"\\"}, "payment_ref": "p"}));
    let released = server.hold(&json!({"order_id": "o-2", "items": [{"sku": "A", "quantity": 1}], "customer_id": "c"}));
    server.touch(&format!("{released}/release")).is(200);
    let sold = server.hold(&json!({"order_id": "o-3", "items": [{"sku": "A", "quantity": 3}], "customer_id": "c"}));
    server.touch(&format!("{sold}/confirm")).is(200);
    let give = |server: &Server| {
        let call = Call::new("POST", "/v1/orders/o-3/returns").header("idempotency-key", "rma");
        call.json(&json!({"items": [{"sku": "A", "quantity": 1}]})).to(server).is(200)
    };
    give(&server);
    let brief = server.hold(
        &json!({"order_id": "o-4", "items": [{"sku": "A", "quantity": 5}], "customer_id": "d", "ttl_seconds": 1}),
    );
    let read = |server: &Server| -> Vec<Value> {
        let paths = [
            "/v1/stock",
            "/v1/holds?status=held&order_id=o-1",
            "/v1/holds?status=released",
            "/v1/orders/o-3",
            "/v1/ledger?limit=8",
            held.as_str(),
        ];
        paths.iter().map(|path| server.get(path).is(200)).collect()
    };
    eventually("the brief hold lapses", Duration::from_secs(5), || (server.counters("A").1 == 2).then_some(()));
    let before = read(&server);
    let server = Server::with(&server.stop().0, &[]);
    assert_eq!(read(&server), before, "after a stop");
    let server = Server::with(&server.kill(), &[]);
    assert_eq!(read(&server), before, "after a crash");
    assert_eq!(server.get(&brief).is(200)["status"], "expired");
    give(&server);
    assert_eq!(server.counters("A"), (46, 2, 2), "the key of the return is remembered");
    let over = json!({"order_id": "o-5", "items": [{"sku": "A", "quantity": 6}], "customer_id": "c"});
    assert_eq!(server.post("/v1/holds", &over).refused(409, "customer_limit")["has"], 4, "and what the customer has");
    assert_eq!(server.post("/v1/holds", &json!({"order_id": "o-1", "items": [{"sku": "A", "quantity": 2}], "customer_id": "c", "amount": 7, "currency": "EUR"})).status, 200);
}

#[test]
fn a_hold_lapses_while_the_server_is_down() {
    let server = Server::fresh();
    server.stock("A", 1);
    let brief = server.hold(&brief_cart("o", "A", 1, 1));
    let (folder, _) = server.stop();
    std::thread::sleep(Duration::from_millis(1100));
    let server = Server::with(&folder, &[]);
    server.post("/v1/holds", &cart("p", "A", 1)).is(201);
    assert_eq!(server.get(&brief).is(200)["status"], "expired");
}
