//! `/v1/audit`, and `holdfast audit`.

use crate::support::{Server, cart, holdfast, millis, without};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The verb on a folder: exit code, standard output, standard error.
fn audit(folder: &Path, flags: &[&str]) -> (Option<i32>, String, String) {
    let output = holdfast().arg("audit").arg("--data-dir").arg(folder).args(flags).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn clean_and_not_clean() {
    let mut server = Server::fresh();
    server.stock("A", 10);
    server.stock("B", 10);
    let sold = server.hold(&cart("o-1", "A", 2));
    server.touch(&format!("{sold}/confirm")).is(200);
    server.hold(&cart("o-2", "A", 3));
    let first = server.get("/v1/audit").is(200);
    millis(&first["at"]);
    assert_eq!(without(first.clone(), &["at"]), json!({"clean": true, "skus": 2, "entries": 5, "drift": []}));
    assert_eq!(server.get("/v1/audit").is(200), first, "the last report");
    server.stock("C", 1);
    let second = server.touch("/v1/audit").is(200);
    assert_eq!((&second["skus"], &second["entries"]), (&json!(3), &json!(6)));
    assert_eq!(server.get("/v1/audit").is(200), second);

    let data = server.data_dir();
    let (code, out, _) = audit(&data, &[]);
    assert_eq!((code, out.as_str()), (Some(0), "3 SKUs against 6 ledger entries\nclean\n"), "while the server runs");
    let url = format!("http://127.0.0.1:{}", server.port);
    assert_eq!(audit(Path::new("nowhere"), &["--url", &url]).0, Some(0));

    // Somebody writes into the store behind the server's back.
    let store = rusqlite::Connection::open(data.join("holdfast.db")).unwrap();
    store.busy_timeout(Duration::from_secs(5)).unwrap();
    store.execute("UPDATE stock SET held = held + 1 WHERE sku = 'A'", []).unwrap();
    store.execute("UPDATE stock SET sold = 4 WHERE sku = 'B'", []).unwrap();
    drop(store);
    let drift = |sku: &str, field: &str, expected: i64, actual: i64| {
        let difference = actual - expected;
        json!({"sku": sku, "field": field, "expected": expected, "actual": actual, "difference": difference})
    };
    let mut expected = vec![
        drift("A", "held", 3, 4),
        drift("A", "held_by_holds", 3, 4),
        drift("B", "sold", 0, 4),
        drift("B", "sold_by_orders", 0, 4),
    ];
    let sorted = |report: &Value| {
        let mut drift = report["drift"].as_array().unwrap().clone();
        drift.sort_by_key(ToString::to_string);
        drift
    };
    expected.sort_by_key(ToString::to_string);
    let report = server.touch("/v1/audit").is(200);
    assert_eq!((&report["clean"], sorted(&report)), (&json!(false), expected.clone()));
    assert!(server.get("/metrics").text().contains("holdfast_audit_drift 4\n"));
    let (code, out, _) = audit(&data, &["--json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["clean"], sorted(&told)), (Some(1), &json!(false), expected));
    let (code, out, _) = audit(Path::new("nowhere"), &["--url", &url]);
    assert_eq!(code, Some(1));
    assert!(
        out.contains("drift: \"A\" held: expected 3, actual 4, difference 1") && out.ends_with("NOT clean\n"),
        "{out}"
    );

    server.signal(Signal::TERM);
    let (status, log) = server.wait(Duration::from_secs(30));
    assert_eq!(status.code(), Some(0));
    assert!(log.contains("drift") && log.contains("\"sku\":\"A\""), "each difference is an error in the log: {log}");
    assert_eq!(audit(&data, &[]).0, Some(1), "without a server as well");
}

#[test]
fn an_audit_that_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, error) = audit(folder.path(), &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(error.contains("there is no store in") && error.contains("--data-dir"), "{error}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, _, error) = audit(folder.path(), &["--url", &format!("http://{free}")]);
    assert_eq!(code, Some(2));
    assert!(error.contains(&free.to_string()), "{error}");
    let (code, _, error) = audit(folder.path(), &["--url", "https://localhost"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("http://HOST:PORT"), "{error}");
    let mut command = holdfast();
    command.env("HOLDFAST_API_KEYS", "ops:admin:the-admin-key-of-this-test");
    let server =
        Server::with_command(command, &Arc::new(tempfile::tempdir().unwrap()), &[]).keyed("the-admin-key-of-this-test");
    let url = format!("http://127.0.0.1:{}", server.port);
    let (code, _, error) = audit(folder.path(), &["--url", &url]);
    assert_eq!(code, Some(2));
    assert!(error.contains("401 unauthenticated"), "{error}");
    let (code, out, _) = audit(folder.path(), &["--url", &url, "--key", "the-admin-key-of-this-test"]);
    assert_eq!((code, out.as_str()), (Some(0), "0 SKUs against 0 ledger entries\nclean\n"));
    std::fs::write(folder.path().join("holdfast.db"), "this is no store at all, but long enough to be looked at")
        .unwrap();
    assert_eq!(audit(folder.path(), &[]).0, Some(2));
}
