//! The verbs besides `serve`: import, keys, openapi, help.

use crate::support::{Server, cart, holdfast};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use tempfile::tempdir;

fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = holdfast().args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn import(server: &Server, table: &Path, flags: &[&str]) -> (Option<i32>, String, String) {
    let url = format!("http://127.0.0.1:{}", server.port);
    run(&[&["import", table.to_str().unwrap(), "--url", &url], flags].concat())
}

#[test]
fn import_tells_what_came_of_it() {
    let server = Server::fresh();
    let folder = tempdir().unwrap();
    let table = folder.path().join("stock.csv");
    let write = |text: &str| std::fs::write(&table, text).unwrap();
    write("\u{feff}sku,total,limit_per_customer\r\nA,10,2\r\n\"b \"\"x\"\"\",5,\r\n");
    let done = import(&server, &table, &[]);
    assert_eq!((done.0, done.1.as_str()), (Some(0), "created 2, updated 0, unchanged 0, failed 0\n"), "{}", done.2);
    assert_eq!(server.get("/v1/stock/A").is(200)["limit_per_customer"], 2);
    let hold = json!({"order_id": "o", "customer_id": "c", "items": [{"sku": "A", "quantity": 2}]});
    server.hold(&hold);

    write("sku,total\nA,1\n\"b \"\"x\"\"\",6\n,3\nA,10\n");
    let (code, out, _) = import(&server, &table, &[]);
    let expected = "line 2: \"A\": total_below_committed: 2 units are held or sold
line 4: \"\": invalid_request: sku must not be empty
created 0, updated 1, unchanged 1, failed 2
";
    assert_eq!((code, out.as_str()), (Some(1), expected));
    let (code, out, _) = import(&server, &table, &["--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["failed"], &report["errors"][1]["line"]), (Some(1), &json!(2), &json!(4)));

    write("sku,total\nA,5\nNEW,1\n");
    assert_eq!(import(&server, &table, &["--mode", "add"]).1, "created 1, updated 1, unchanged 0, failed 0\n");
    assert_eq!(server.counters("A"), (13, 2, 0));
}

#[test]
fn an_import_that_cannot_run() {
    let folder = tempdir().unwrap();
    let table = folder.path().join("stock.csv");
    std::fs::write(&table, "sku,total\nA,1\n").unwrap();
    let path = table.to_str().unwrap();
    let mut command = holdfast();
    command.env("HOLDFAST_API_KEYS", "ops:admin:the-admin-key-of-this-test,shop:checkout:the-checkout-key-of-this");
    let server = Server::with_command(command, &Arc::new(tempdir().unwrap()), &[]).keyed("the-admin-key-of-this-test");
    for (flags, told) in [
        ([].as_slice(), "401 unauthenticated"),
        (&["--key", "the-checkout-key-of-this"], "403 forbidden"),
        (&["--mode", "replace"], "replace"),
    ] {
        let (code, out, error) = import(&server, &table, flags);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{error}");
        assert!(error.contains(told), "{error}");
    }
    let by_variable = holdfast()
        .args(["import", path])
        .env("HOLDFAST_URL", format!("http://127.0.0.1:{}", server.port))
        .env("HOLDFAST_API_KEY", "the-admin-key-of-this-test")
        .output()
        .unwrap();
    assert_eq!(by_variable.status.code(), Some(0));

    std::fs::write(&table, "A;1\n").unwrap();
    let (code, _, error) = import(&server, &table, &["--key", "the-admin-key-of-this-test"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("422 invalid_request") && error.contains("sku,total"), "{error}");
    let (code, _, error) = run(&["import", "nowhere.csv"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("cannot read nowhere.csv"), "{error}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, _, error) = run(&["import", path, "--url", &format!("http://{free}")]);
    assert_eq!(code, Some(2));
    assert!(error.contains("is the server running there?"), "{error}");
}

#[test]
fn a_key_is_random_and_told_once() {
    let (code, key, how) = run(&["keys", "new", "--name", "storefront", "--role", "read"]);
    let key = key.trim_end();
    assert_eq!((code, key.len(), &key[..3]), (Some(0), 67, "hf_"));
    assert!(
        how.contains(&format!("HOLDFAST_API_KEYS=\"storefront:read:{key}\"")) && how.contains("[[api_keys]]"),
        "{how}"
    );
    assert_ne!(run(&["keys", "new"]).1.trim_end(), key);
    for bad in [["--name", ""], ["--name", "a:b"], ["--name", "a,b"], ["--role", "boss"]] {
        assert_eq!(run(&[&["keys", "new"], bad.as_slice()].concat()).0, Some(2), "{bad:?}");
    }
    assert_eq!(run(&["keys"]).0, Some(2));
}

#[test]
fn help_shows_an_example() {
    for verb in [
        &["--help"][..],
        &["serve", "--help"],
        &["import", "--help"],
        &["audit", "--help"],
        &["migrate", "--help"],
        &["keys", "new", "--help"],
        &["openapi", "--help"],
        &["bench", "--help"],
    ] {
        let (code, out, _) = run(verb);
        assert_eq!(code, Some(0), "{verb:?}");
        assert!(out.contains("Example") && out.contains("\n  holdfast "), "{verb:?} shows no example:\n{out}");
    }
    for wrong in [&[][..], &["sell"], &["serve", "extra"], &["openapi", "--json"]] {
        let (code, out, error) = run(wrong);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{wrong:?}");
        assert!(error.contains("Usage: holdfast"), "{error}");
    }
    let (code, version, _) = run(&["--version"]);
    assert_eq!((code, version), (Some(0), format!("holdfast {}\n", env!("CARGO_PKG_VERSION"))));
    let secret = holdfast().args(["import", "--help"]).env("HOLDFAST_API_KEY", "hf_secret").output().unwrap();
    assert!(!String::from_utf8_lossy(&secret.stdout).contains("hf_secret"));
    let secret = holdfast().args(["serve", "--help"]).env("HOLDFAST_API_KEYS", "a:read:hf_secret").output().unwrap();
    assert!(!String::from_utf8_lossy(&secret.stdout).contains("hf_secret"));
}

#[test]
fn an_import_goes_on_where_holds_are() {
    let server = Server::fresh();
    server.stock("A", 5);
    server.hold(&cart("o", "A", 5));
    let folder = tempdir().unwrap();
    let table = folder.path().join("big.csv");
    let lines: String = (0..20_000).map(|n| format!("SKU-{n},{n}\n")).collect();
    std::fs::write(&table, format!("sku,total\nA,4\n{lines}A,6\n")).unwrap();
    let (code, out, _) = import(&server, &table, &[]);
    assert_eq!(code, Some(1));
    assert!(out.ends_with("created 20000, updated 1, unchanged 0, failed 1\n"), "{out}");
    assert_eq!(server.counters("A"), (1, 5, 0));
}
