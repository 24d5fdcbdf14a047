//! `POST /v1/stock/import`: tables that are long, slow, cut off or too large.

use super::import::report;
use crate::support::{Connection, Server, eventually, shared, stock_path};
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;

#[test]
fn a_byte_order_mark_may_arrive_alone() {
    let server = shared();
    for parts in [["\u{feff}", "sku,total\r\nIMP-10,1\r\n"], ["\u{feff}s", "ku,total\nIMP-10,1\n"]] {
        let length: usize = parts.iter().map(|p| p.len()).sum();
        let mut connection = Connection::open(server.port);
        let head = "POST /v1/stock/import HTTP/1.1\r\nhost: h\r\ncontent-type: text/csv\r\ncontent-length:";
        connection.send(format!("{head} {length}\r\n\r\n{}", parts[0]).as_bytes());
        std::thread::sleep(Duration::from_millis(100));
        connection.send(parts[1].as_bytes());
        assert_eq!(connection.answer().is(200)["failed"], 0);
    }
    assert_eq!(server.counters("IMP-10"), (1, 0, 0));
}

#[test]
fn a_thousand_errors_are_told_and_all_are_counted() {
    let server = shared();
    let mut table = "sku,total\n".to_owned();
    for n in 0..1500 {
        writeln!(table, "IMP-7,bad{n}").unwrap();
    }
    let told = server.import("", table + "IMP-7,1\n").is(200);
    assert_eq!((&told["failed"], &told["created"]), (&json!(1500), &json!(1)));
    let errors = told["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[999]["line"]), (1000, &json!(1001)));
}

#[test]
fn a_hundred_thousand_lines_go_through_while_others_are_served() {
    let server = Server::fresh();
    let mut table = "sku,total\n".to_owned();
    for n in 0..100_000 {
        writeln!(table, "SKU-{n},{}", n % 1000).unwrap();
    }
    std::thread::scope(|scope| {
        let import = scope.spawn(|| server.import("", table.clone()).is(200));
        let mut served = 0;
        while !import.is_finished() {
            assert_eq!(server.get("/healthz").status, 200);
            server.put("/v1/stock/OTHER", &json!({"total": served})).json();
            served += 1;
        }
        assert_eq!(import.join().unwrap(), report(100_000, 0, 0));
        assert!(served > 3, "only {served} others were served");
    });
    assert_eq!(server.counters("SKU-99999"), (999, 0, 0));
    assert_eq!(server.import("", table).is(200), report(0, 0, 100_000), "again, it changes nothing");
    let audit = server.touch("/v1/audit").is(200);
    assert_eq!((&audit["clean"], &audit["skus"]), (&json!(true), &json!(100_001)));
}

#[test]
fn a_table_that_breaks_off_leaves_whole_lines() {
    let server = shared();
    let mut cut = Connection::open(server.port);
    let head = "POST /v1/stock/import HTTP/1.1\r\nhost: h\r\ncontent-type: text/csv\r\ncontent-length: 10000\r\n\r\n";
    cut.send(format!("{head}sku,total\nIMP-8A,11\nIMP-8B,22\nIMP-8C,3").as_bytes());
    let found = || server.get(&stock_path("IMP-8B")).status == 200;
    eventually("the whole lines are applied", Duration::from_secs(5), || found().then_some(()));
    drop(cut);
    assert_eq!(server.counters("IMP-8A"), (11, 0, 0));
    std::thread::sleep(Duration::from_millis(100));
    server.get("/v1/stock/IMP-8C").refused(404, "not_found");
}

#[test]
fn a_table_beyond_the_limit_is_refused() {
    let server = shared();
    let line = format!("{}\n", "x".repeat(1023)).into_bytes();
    let mut table = b"sku,total\nIMP-9,1\n".to_vec();
    table.extend(line.iter().cycle().take(64 << 20));
    server.import("", table).refused(413, "body_too_large");
}
