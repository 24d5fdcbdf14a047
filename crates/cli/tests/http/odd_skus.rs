//! Names that other systems choke on, through every door: path, body, list, CSV, ledger and audit.

use crate::support::{Call, Server, cart, encoded, stock_path};
use serde_json::{Value, json};

const ODD: &[&str] = &[
    "a/b",
    "/",
    "//",
    "a+b",
    "+",
    "100%",
    "%2F",
    "%",
    "a b  c",
    "{x}",
    "{",
    "}",
    "\"",
    "'",
    "it's \"so\"",
    "🦊",
    "👩‍👧",
    "__proto__",
    "constructor",
    "null",
    "true",
    "0",
    "0017",
    "17",
    "1e3",
    "NaN",
    "import",
    "adjust",
    ".",
    "..",
    "../..",
    "a",
    "A",
    "É",
    "E\u{301}",
    "ß",
    "SS",
    "ı",
    "I",
    "?",
    "#",
    "&a=b",
    "a=b&c",
    ";",
    ",",
    "a,b",
    "\\",
    "\\n",
    "\u{feff}a",
    "\u{200b}",
    "<b>",
    "--",
    "-1",
    "=1+1",
    "'; DROP TABLE stock; --",
    "\u{202e}abc",
    "\u{fb01}",
    "fi",
    "\u{c5}",
    "\u{212b}",
    "中文",
    "e\u{301}\u{323}",
    "e\u{323}\u{301}",
];

fn csv(sku: &str) -> String {
    format!("\"{}\"", sku.replace('"', "\"\""))
}

#[test]
fn they_are_all_different_and_come_back_byte_for_byte() {
    let server = Server::fresh();
    let table: String = ODD.iter().map(|sku| format!("{},7\n", csv(sku))).collect();
    let report = server.import("", format!("sku,total\n{table}")).is(200);
    assert_eq!(report["created"], ODD.len(), "{report}");
    for (n, sku) in ODD.iter().enumerate() {
        let total = 100 + n as u64;
        let set = server.put(&stock_path(sku), &json!({"total": total})).is(200);
        assert_eq!((&set["sku"], &set["total"]), (&json!(sku), &json!(total)));
    }
    for (n, sku) in ODD.iter().enumerate() {
        let path = stock_path(sku);
        assert_eq!(server.get(&path).is(200)["total"], 100 + n, "{sku:?} is nobody else");
        let adjusted = server.post(&format!("{path}/adjust"), &json!({"delta": 1, "reason": sku})).is(200);
        assert_eq!((&adjusted["sku"], &adjusted["available"]), (&json!(sku), &json!(101 + n)));

        // The same odd name serves as an order's, a customer's and a note's.
        let mut body = cart(sku, sku, 2);
        body["customer_id"] = json!(sku);
        body["metadata"] = json!({(*sku): sku});
        let hold = server.hold(&body);
        let read = server.get(&hold).is(200);
        assert_eq!(read["items"], json!([{"sku": sku, "quantity": 2}]));
        assert_eq!((&read["order_id"], &read["customer_id"]), (&json!(sku), &json!(sku)));
        assert_eq!(read["metadata"], json!({(*sku): sku}));

        for filter in ["sku", "order_id"] {
            let found = server.get(&format!("/v1/holds?{filter}={}", encoded(sku))).is(200);
            assert_eq!(found["items"], json!([read]), "{filter} {sku:?}");
        }
        server.touch(&format!("{hold}/confirm")).is(200);
        let order = server.get(&format!("/v1/orders/{}", encoded(sku))).is(200);
        assert_eq!(order["items"], json!([{"sku": sku, "quantity": 2, "returned": 0}]));
        let returned = format!("/v1/orders/{}/returns", encoded(sku));
        server.post(&returned, &json!({"items": [{"sku": sku, "quantity": 1}]})).is(200);

        let kinds = |filter: &str| -> Vec<Value> {
            let page = server.get(&format!("/v1/ledger?{filter}={}", encoded(sku))).is(200);
            let items = page["items"].as_array().unwrap();
            assert!(items.iter().all(|e| e["sku"] == *sku), "{filter} {sku:?}: {items:?}");
            items.iter().map(|e| e["kind"].clone()).collect()
        };
        assert_eq!(kinds("sku"), ["received", "adjusted", "adjusted", "held", "confirmed", "returned"], "{sku:?}");
        assert_eq!(kinds("order_id"), ["held", "confirmed", "returned"], "{sku:?}");
    }
    let listed = server.get("/v1/stock?limit=1000").is(200);
    let listed: Vec<&str> = listed["items"].as_array().unwrap().iter().map(|s| s["sku"].as_str().unwrap()).collect();
    let mut sorted = ODD.to_vec();
    sorted.sort_unstable();
    assert_eq!(listed, sorted);

    let report = server.touch("/v1/audit").is(200);
    assert_eq!((&report["clean"], &report["skus"]), (&json!(true), &json!(ODD.len())));
    let folder = server.stop().0;
    let server = Server::with(&folder, &[]);
    for (n, sku) in ODD.iter().enumerate() {
        assert_eq!(server.counters(sku), (100 + n as u64, 0, 1), "{sku:?} after a restart");
    }
}

#[test]
fn a_sku_called_import_is_like_any_other() {
    let server = Server::fresh();
    let path = "/v1/stock/import";
    server.get(path).refused(404, "not_found");
    let created = Call::new("PUT", path).json(&json!({"total": 3})).to(&server);
    assert_eq!((created.is(201)["sku"].as_str(), created.header("etag")), (Some("import"), Some("\"1\"")));
    assert_eq!(server.get(path).is(200)["total"], 3);
    assert_eq!(server.post("/v1/stock/import/adjust", &json!({"delta": 1})).is(200)["total"], 4);
    server.import("", "sku,total\nimport,9\n").is(200);
    assert_eq!(server.get("/v1/stock/%69mport").is(200)["total"], 9, "encoded, it is the same name");
    Call::new("DELETE", path).header("if-match", "\"1\"").to(&server).refused(412, "version_mismatch");
    assert_eq!(server.delete(path).status, 204);
}

#[test]
fn the_audit_names_an_odd_sku_exactly() {
    let server = Server::fresh();
    server.stock("a/b \"🦊\"", 5);
    server.hold(&cart("o", "a/b \"🦊\"", 2));
    let data = server.data_dir();
    let folder = server.stop().0;
    let store = rusqlite::Connection::open(data.join("holdfast.db")).unwrap();
    store.execute("UPDATE stock SET available = available + 3", []).unwrap();
    drop(store);
    let mut server = Server::with(&folder, &[]);
    let report = server.touch("/v1/audit").is(200);
    assert_eq!(report["clean"], false);
    let drift = json!({"sku": "a/b \"🦊\"", "field": "available", "expected": 3, "actual": 6, "difference": 3});
    assert_eq!(report["drift"], json!([drift]));
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait(std::time::Duration::from_secs(30)).0.code(), Some(0));
}
