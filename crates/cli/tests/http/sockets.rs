//! Clients that idle, pipeline, hang up, or speak something else.

use crate::support::{Call, Connection, Server, cart, eventually, shared, skipped};
use holdfast_engine::clock::monotonic;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn five_thousand_idle_connections_keep_nobody_waiting() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    if limit.maximum.is_some_and(|most| most < 6000) {
        skipped(&format!("this machine allows {limit:?} open files, not 6,000"));
        return;
    }
    let server = Server::fresh();
    server.stock("A", 100);
    let idle: Vec<TcpStream> = (0..5000).map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    let metric = |text: &str| -> Option<u64> {
        text.lines().find_map(|l| l.strip_prefix("holdfast_http_connections "))?.parse().ok()
    };
    eventually("all are accepted", Duration::from_secs(10), || {
        metric(&server.get("/metrics").text()).filter(|n| *n > 5000)
    });
    let start = monotonic();
    for n in 0..20 {
        server.post("/v1/holds", &cart(&format!("o-{n}"), "A", 1)).is(201);
    }
    assert!(start.elapsed() < Duration::from_secs(5), "20 holds took {:?}", start.elapsed());
    drop(idle);
    eventually("all are gone", Duration::from_secs(10), || metric(&server.get("/metrics").text()).filter(|n| *n < 10));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = shared();
    server.stock("SOCK-1", 60);
    let mut connection = Connection::open(server.port);
    let mut bytes = Vec::new();
    for n in 0..60 {
        bytes.extend(Call::new("POST", "/v1/holds").json(&cart(&format!("sock-1-{n}"), "SOCK-1", 1)).bytes());
        bytes.extend(Call::new("GET", "/v1/stock/SOCK-1").bytes());
        bytes.extend(Call::new("GET", "/v1/nowhere").bytes());
    }
    connection.send(&bytes);
    for n in 0..60 {
        assert_eq!(connection.answer().is(201)["order_id"], format!("sock-1-{n}"));
        assert_eq!(connection.answer().is(200)["held"], n + 1, "an answered hold is seen by the next request");
        connection.answer().refused(404, "not_found");
    }
}

#[test]
fn a_connection_is_kept_and_closed_as_asked() {
    let server = shared();
    let mut connection = Connection::open(server.port);
    for _ in 0..3 {
        connection.call(&Call::new("GET", "/healthz")).is(200);
    }
    connection.call(&Call::new("POST", "/v1/holds").raw("application/json", "{")).refused(422, "invalid_request");
    connection.call(&Call::new("GET", "/healthz")).is(200);
    connection.call(&Call::new("GET", "/healthz").header("connection", "close")).is(200);
    assert!(connection.is_closed());
    let mut old = Connection::open(server.port);
    old.send(b"GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(old.answer().status, 200);
    assert!(old.is_closed());
}

#[test]
fn what_is_not_http_is_cut_and_nobody_else_notices() {
    let server = shared();
    let mut kept = Connection::open(server.port);
    let long = format!("GET /v1/stock/{} HTTP/1.1\r\nhost: h\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5000));
    for bad in [
        "\r\n\r\nHELLO\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nbad header\r\n\r\n",
        "POST /v1/holds HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        "POST /v1/holds HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        "POST /v1/holds HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        &long,
        &many,
    ] {
        let mut connection = Connection::open(server.port);
        connection.send(bad.as_bytes());
        let status = connection.try_answer("GET").map(|a| a.status);
        assert!(matches!(status, None | Some(400..=499 | 505)), "{:?}: {status:?}", &bad[..bad.len().min(60)]);
        assert!(connection.is_closed());
        kept.call(&Call::new("GET", "/healthz")).is(200);
    }
}

#[test]
fn clients_that_hang_up_leave_whole_holds_or_none() {
    let server = Server::fresh();
    server.stock("A", 1_000_000);
    server.stock("B", 1_000_000);
    let bytes = |n: usize| {
        let body =
            json!({"order_id": format!("o-{n}"), "items": [{"sku": "A", "quantity": 1}, {"sku": "B", "quantity": 2}]});
        Call::new("POST", "/v1/holds").json(&body).bytes()
    };
    let whole = bytes(0).len();
    for n in 0..2000 {
        let bytes = bytes(n);
        let cut = if n % 3 == 0 { bytes.len() } else { n * 7919 % (whole + 1) };
        let mut connection = Connection::open(server.port);
        connection.send(&bytes[..cut.min(bytes.len())]);
    }
    // Business as usual, and it is over soon.
    server.post("/v1/holds", &json!({"order_id": "usual", "items": [{"sku": "A", "quantity": 1}]})).is(201);
    let settled = || {
        let before = server.counters("A");
        std::thread::sleep(Duration::from_millis(100));
        (server.counters("A") == before).then_some(before)
    };
    let (_, held, _) = eventually("it settles", Duration::from_secs(10), settled);
    assert!((1..=2001).contains(&held), "{held} were held");
    let expected = json!([{"sku": "A", "quantity": 1}, {"sku": "B", "quantity": 2}]);
    let mut holds: Vec<Value> = Vec::new();
    let mut after = String::new();
    while holds.is_empty() || !after.is_empty() {
        let page = server.get(&format!("/v1/holds?limit=1000{after}")).is(200);
        holds.extend(page["items"].as_array().unwrap().iter().cloned());
        after = page["next"].as_str().map_or(String::new(), |next| format!("&after={next}"));
    }
    assert_eq!(holds.len() as u64, held);
    assert!(holds.iter().filter(|h| h["order_id"] != "usual").all(|h| h["items"] == expected));
    assert_eq!(server.counters("B"), (1_000_000 - 2 * (held - 1), 2 * (held - 1), 0));
}
