//! Clients that trickle or say nothing. The slowest test: its name lets it begin among the first.

use crate::support::{Connection, Server, cart};
use holdfast_engine::clock::monotonic;
use rustix::process::Signal;
use std::time::Duration;

/// Sends one byte now and then until the server has had enough: its answer, if it gave one, and after how long.
fn trickle(port: u16, whole: &[u8], so_far: usize) -> (Option<u16>, Duration) {
    let start = monotonic();
    let mut connection = Connection::open(port);
    connection.send(&whole[..so_far]);
    connection.0.get_ref().set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    for byte in &whole[so_far..] {
        // Waiting for an answer is also the pause between two bytes.
        let mut peek = [0];
        match connection.0.get_ref().peek(&mut peek) {
            Ok(0) => break,
            Ok(_) => return (connection.try_answer("POST").map(|a| a.status), start.elapsed()),
            Err(_) => {}
        }
        if connection.try_send(&[*byte]).is_err() {
            break;
        }
    }
    (connection.try_answer("POST").map(|a| a.status), start.elapsed())
}

/// All slow clients at once: each limit is 20 or 30 seconds.
#[test]
fn a_trickling_client_is_cut_while_others_are_served() {
    let server = Server::fresh();
    server.stock("A", 1_000_000);
    let stopping = Server::fresh();
    stopping.stock("A", 5);
    let padding = "x".repeat(10_000);
    let headers = format!("GET /v1/stock/A HTTP/1.1\r\nhost: h\r\nx-slow: {padding}\r\n\r\n").into_bytes();
    let body = format!(
        "POST /v1/holds HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 10000\r\n\r\n{padding}"
    )
    .into_bytes();
    let table = format!("POST /v1/stock/import HTTP/1.1\r\nhost: h\r\ncontent-type: text/csv\r\ncontent-length: 10000\r\n\r\nsku,total\nSLOW,7\n{padding}").into_bytes();
    std::thread::scope(|scope| {
        let slow_headers = scope.spawn(|| trickle(server.port, &headers, 60));
        let slow_body = scope.spawn(|| trickle(server.port, &body, 120));
        let silent = scope.spawn(|| {
            let (start, mut connection) = (monotonic(), Connection::open(server.port));
            (connection.is_closed(), start.elapsed())
        });
        let silent_table = scope.spawn(|| {
            let mut connection = Connection::open(server.port);
            connection.send(&table[..130]);
            connection.answer()
        });
        // A stop waits for what is in flight, but not for ever.
        let stuck = scope.spawn(|| {
            let mut connection = Connection::open(stopping.port);
            connection.send(&body[..200]);
            std::thread::sleep(Duration::from_millis(200));
            let start = monotonic();
            let mut stopping = stopping;
            stopping.signal(Signal::TERM);
            let (status, log) = stopping.wait(Duration::from_secs(28));
            assert_eq!(status.code(), Some(0));
            assert!(log.contains("did not end in time"), "{log}");
            assert!(start.elapsed() > Duration::from_secs(15), "what is in flight is given time");
        });
        let mut order = 0;
        let mut slowest = Duration::ZERO;
        while !slow_headers.is_finished() || !slow_body.is_finished() || !silent.is_finished() {
            let start = monotonic();
            server.post("/v1/holds", &cart(&format!("o-{order}"), "A", 1)).is(201);
            slowest = slowest.max(start.elapsed());
            order += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(slowest < Duration::from_secs(5), "others waited {slowest:?}");
        let limits = Duration::from_secs(25)..Duration::from_secs(40);
        let (status, after) = slow_headers.join().unwrap();
        assert!(matches!(status, None | Some(408)) && limits.contains(&after), "{status:?} after {after:?}");
        let (status, after) = slow_body.join().unwrap();
        assert!(status == Some(408) && limits.contains(&after), "{status:?} after {after:?}");
        let (closed, after) = silent.join().unwrap();
        assert!(closed && limits.contains(&after), "an idle connection was closed after {after:?}");
        silent_table.join().unwrap().refused(408, "request_timeout");
        stuck.join().unwrap();
    });
    assert_eq!(server.counters("SLOW"), (7, 0, 0), "the lines before are applied");
}
