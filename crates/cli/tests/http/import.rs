//! `POST /v1/stock/import`.

use crate::support::{Call, Server, cart, shared};
use serde_json::{Value, json};

pub fn report(created: u64, updated: u64, unchanged: u64) -> Value {
    json!({"created": created, "updated": updated, "unchanged": unchanged, "failed": 0, "errors": []})
}

#[test]
fn a_table_sets_totals_and_limits() {
    let server = shared();
    let set = server.import("", "sku,total,limit_per_customer\nIMP-1A,350,2\nIMP-1B,0,\n\"IMP-1C\",\"7\",\"1\"\n");
    assert_eq!(set.is(200), report(3, 0, 0));
    assert_eq!(server.get("/v1/stock/IMP-1A").is(200)["limit_per_customer"], 2);
    assert_eq!(server.get("/v1/stock/IMP-1B").is(200)["limit_per_customer"], Value::Null);
    let again = server.import("?mode=set", "sku,total,limit_per_customer\nIMP-1A,350,\nIMP-1B,5,\nIMP-1C,7,2\n");
    assert_eq!(again.is(200), report(0, 2, 1), "an empty limit leaves the limit as it is");
    assert_eq!(server.get("/v1/stock/IMP-1A").is(200)["limit_per_customer"], 2);
    assert_eq!(server.get("/v1/stock/IMP-1A").is(200)["version"], 1);
    let no_limit = server.import("", "sku,total\nIMP-1C,8\n");
    assert_eq!(no_limit.is(200), report(0, 1, 0));
    assert_eq!(server.get("/v1/stock/IMP-1C").is(200)["limit_per_customer"], 2);
}

#[test]
fn adding_adds_takes_and_creates() {
    let server = shared();
    assert_eq!(server.import("?mode=add", "sku,total\nIMP-2A,5\nIMP-2A,6\nIMP-2B,0\n").is(200), report(2, 1, 0));
    assert_eq!(server.counters("IMP-2A"), (11, 0, 0));
    server.hold(&cart("imp-2", "IMP-2A", 4));
    let taken = server.import(
        "?mode=add",
        "sku,total\nIMP-2A,-7\nIMP-2A,-1\nIMP-2C,-1\nIMP-2A,+1\nIMP-2A,--1\nIMP-2A,-\nIMP-2B,-0\n",
    );
    let taken = taken.is(200);
    assert_eq!((&taken["updated"], &taken["unchanged"], &taken["failed"]), (&json!(1), &json!(1), &json!(5)));
    let errors: Vec<_> = taken["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["line"].as_u64().unwrap(), e["code"].as_str().unwrap()))
        .collect();
    let invalid = "invalid_request";
    assert_eq!(errors, [(3, "insufficient_available"), (4, "not_found"), (5, invalid), (6, invalid), (7, invalid)]);
    assert_eq!(server.counters("IMP-2A"), (0, 4, 0), "held units stay held");
    server.import("?mode=add", "sku,total,limit_per_customer\nIMP-2A,1,1\n").refused(422, "invalid_request");
    let many = server.import("?mode=add", "sku,total\nIMP-2A,999999999996\nIMP-2A,1\nIMP-2A,1000000000001\n").is(200);
    assert_eq!((&many["updated"], &many["errors"][0]["code"]), (&json!(1), &json!("total_too_large")));
    assert_eq!(many["errors"][1]["code"], invalid);
}

#[test]
fn byte_order_marks_line_ends_and_quotes() {
    let server = shared();
    assert_eq!(server.import("", "\u{feff}sku,total\r\nIMP-3A,1\r\nIMP-3B,2").is(200), report(2, 0, 0));
    assert_eq!(server.import("", "\u{feff}\"sku\",\"total\"\n\"IMP-3 \"\"C\"\", x\",3\n").is(200), report(1, 0, 0));
    assert_eq!(server.counters("IMP-3 \"C\", x"), (3, 0, 0));
    assert_eq!(server.import("", "sku,total\rIMP-3D,4\r").is(200), report(1, 0, 0));
    assert_eq!(server.import("", "sku,total\n").is(200), report(0, 0, 0));
    assert_eq!(server.import("", "sku,total").is(200), report(0, 0, 0));
    assert_eq!(
        server.import("", "sku,total\n\n\r\n\nIMP-3E,5\n\n").is(200),
        report(1, 0, 0),
        "empty lines are nothing"
    );
    let duplicates = server.import("", "sku,total\nIMP-3A,5\nIMP-3A,6\nIMP-3A,6\nimp-3a,1\n");
    assert_eq!(duplicates.is(200), report(1, 2, 1), "a later line comes after an earlier one");
    assert_eq!(server.counters("IMP-3A"), (6, 0, 0));
}

/// Checks that line `at` of the table is told as failed, with every kind of line end.
#[track_caller]
fn fails_at(server: &Server, table: &str, at: &[u64]) {
    for end in ["\n", "\r\n"] {
        let told = server.import("", table.replace('\n', end)).is(200);
        let errors = told["errors"].as_array().unwrap();
        let lines: Vec<u64> = errors.iter().map(|e| e["line"].as_u64().unwrap()).collect();
        assert_eq!(lines, at, "{table:?} with {end:?}: {told}");
        assert_eq!(told["failed"], at.len());
        assert!(errors.iter().all(|e| e["code"] == "invalid_request" && !e["detail"].as_str().unwrap().is_empty()));
    }
}

#[test]
fn each_bad_line_is_told_with_its_number_and_the_rest_goes_on() {
    let server = shared();
    fails_at(&server, "sku,total\nIMP-4,1\nIMP-4,x\nIMP-4,2\nIMP-4,y", &[3, 5]);
    fails_at(&server, "sku,total\n,1\n \n\"\",1\n a,1\na ,1\n", &[2, 3, 4, 5, 6]);
    fails_at(&server, "sku,total\n\n\nIMP-4,x\n\nIMP-4,y\n", &[4, 6]);
    fails_at(&server, "sku,total\n\"IMP\n4\",1\nIMP-4,x\n", &[2, 4]);
    fails_at(&server, "sku,total\nIMP-4\nIMP-4,1,2\nIMP-4,1,\nIMP-4,1\n", &[2, 3, 4]);
    fails_at(
        &server,
        "sku,total\nIMP-4,-1\nIMP-4,1.0\nIMP-4,1e3\nIMP-4, 1\nIMP-4,1 \nIMP-4,\nIMP-4,0x1\nIMP-4,1_000\n",
        &[2, 3, 4, 5, 6, 7, 8, 9],
    );
    fails_at(&server, "sku,total\nIMP-4,1000000000001\nIMP-4,18446744073709551616\nIMP-4,+1\nIMP-4,٣\n", &[2, 3, 4, 5]);
    fails_at(
        &server,
        "sku,total,limit_per_customer\nIMP-4,1,0\nIMP-4,1,-1\nIMP-4,1\nIMP-4,1,x\nIMP-4,1,3\n",
        &[2, 3, 4, 5],
    );
    assert_eq!(server.get("/v1/stock/IMP-4").is(200)["limit_per_customer"], 3, "the good line was applied");
    let bytes = server.import("", b"sku,total\nIMP-4,7\nIMP\xff4,1\nIMP\x004,1\nIMP-4,8\n".to_vec()).is(200);
    let lines: Vec<_> = bytes["errors"].as_array().unwrap().iter().map(|e| e["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 4], "{bytes}");
    assert_eq!(bytes["errors"][0]["sku"], "IMP\u{fffd}4");
    assert_eq!(server.counters("IMP-4"), (8, 0, 0));
}

#[test]
fn held_units_stay_held() {
    let server = shared();
    server.stock("IMP-5", 5);
    let hold = server.hold(&cart("imp-5", "IMP-5", 3));
    let told = server.import("", "sku,total\nIMP-5,2\nIMP-5,0\nIMP-5,4\n").is(200);
    assert_eq!(told["updated"], 1);
    let error = |line: u64| json!({"line": line, "sku": "IMP-5", "code": "total_below_committed", "detail": "3 units are held or sold"});
    assert_eq!(told["errors"], json!([error(2), error(3)]));
    assert_eq!(server.counters("IMP-5"), (1, 3, 0));
    server.touch(&format!("{hold}/confirm")).is(200);
    server.import("", "sku,total\nIMP-5,3\n").is(200);
    assert_eq!(server.counters("IMP-5"), (0, 0, 3));
}

#[test]
fn what_is_no_such_table() {
    let server = shared();
    for bad in [
        "",
        "\n\n",
        "sku\nIMP-6\n",
        "total,sku\n1,IMP-6\n",
        "SKU,Total\nIMP-6,1\n",
        "sku;total\nIMP-6;1\n",
        "IMP-6,1\n",
        "sku,total,\nIMP-6,1,\n",
        "sku, total\nIMP-6,1\n",
        "sku,total,limit\nIMP-6,1,1\n",
        "{\"sku\":\"IMP-6\"}",
        "sku,total,limit_per_customer,x\nIMP-6,1,1,1\n",
        "sku\ttotal\nIMP-6\t1\n",
    ] {
        server.import("", bad).refused(422, "invalid_request");
    }
    server.import("", b"\xff\xfes\x00k\x00u\x00".to_vec()).refused(422, "invalid_request");
    for bad in ["?mode=replace", "?mode=", "?mode=SET", "?mod=add", "?mode=set&mode=add", "?limit=1"] {
        server.import(bad, "sku,total\nIMP-6,1\n").refused(422, "invalid_request");
    }
    let typed = |kind: &str| Call::new("POST", "/v1/stock/import").raw(kind, "sku,total\nIMP-6,1\n").to(&server);
    for bad in ["application/json", "text/plain", "", "text/csvx", "multipart/form-data; boundary=x"] {
        typed(bad).refused(415, "unsupported_media_type");
    }
    server.touch("/v1/stock/import").refused(415, "unsupported_media_type");
    server.get("/v1/stock/IMP-6").refused(404, "not_found");
    typed("Text/CSV; charset=utf-8; header=present").is(200);
}
