//! `holdfast migrate`: a shop that outgrows its folder goes on in a database.

use crate::support::{Server, cart, holdfast, skipped, without};
use rustix::process::Signal;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

fn run(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn migrate(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = holdfast();
    command.arg("migrate").args(words);
    run(command)
}

#[test]
fn a_shop_goes_on_in_a_database() {
    let Ok(url) = std::env::var("HOLDFAST_TEST_POSTGRES") else {
        assert!(std::env::var_os("CI").is_none(), "HOLDFAST_TEST_POSTGRES is not set");
        return skipped("HOLDFAST_TEST_POSTGRES is not set; run the tests with `cargo xtask test`");
    };
    let schema = format!("cli_migrate_{}", std::process::id());
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let mut server = Server::with(&folder, &[]);
    let data = server.data_dir();
    let from = format!("embedded:{}", data.display());
    let to = ["--from", &from, "--to", &url, "--database-schema", &schema];
    server.stock("A 🦄", 10);
    let sold = server.hold(&cart("o-1", "A 🦄", 2));
    server.touch(&format!("{sold}/confirm")).is(200);
    let live = server.hold(&cart("o-2", "A 🦄", 3));
    let before = server.get("/v1/ledger").is(200);
    let (code, _, error) = migrate(&to);
    assert_eq!(code, Some(2));
    assert!(error.contains("in use by another holdfast process"), "{error}");
    server.signal(Signal::TERM);
    server.wait(Duration::from_secs(30));

    let (code, out, error) = migrate(&to);
    assert_eq!(code, Some(0), "{error}");
    assert!(out.starts_with("moved 1 SKUs, 1 live holds, 2 holds in all, 1 orders, 0 payments and 4 "), "{out}");
    assert!(out.contains("the audit of the database is clean") && !out.contains("postgres@"), "{out}");
    let (code, out, _) = migrate(&to);
    assert_eq!(code, Some(0));
    assert!(out.contains("was moved to postgres://…@127.0.0.1") && out.contains("nothing is left to do"), "{out}");

    let mut serve = holdfast();
    serve.args(["serve", "--data-dir"]).arg(&data);
    let (code, _, error) = run(serve);
    assert_eq!(code, Some(2));
    assert!(error.contains("was moved into a database") && error.contains("DELETE FROM meta"), "{error}");
    let mut audit = holdfast();
    audit.args(["audit", "--data-dir"]).arg(&data);
    assert_eq!(run(audit).1, "1 SKUs against 4 ledger entries\nclean\n", "an audit may read it");

    let flags = ["--engine", &url, "--database-schema", &schema];
    let server = Server::with(&Arc::new(tempfile::tempdir().unwrap()), &flags);
    assert_eq!(server.get("/v1/ledger").is(200), before);
    assert_eq!(server.counters("A 🦄"), (5, 3, 2));
    let order = server.touch(&format!("{live}/confirm")).is(200);
    assert_eq!(without(order, &["hold_id", "confirmed_at"])["order_id"], json!("o-2"));
    assert_eq!(server.touch("/v1/audit").is(200)["clean"], json!(true));
}

#[test]
fn other_pairs_are_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().to_str().unwrap();
    let database = "postgres://zoe:s3cret@127.0.0.1:1/shop";
    for (words, told) in [
        (&["--from", database, "--to", "mysql://a:s3cret@h/d"][..], "pg_dump"),
        (&["--from", here, "--to", "embedded:elsewhere"], "copy the folder"),
        (&["--from", here, "--to", "oracle://zoe:s3cret@h/d"], "a store is moved into a database"),
        (&["--from", here], "HOLDFAST_ENGINE"),
        (&["--from", here, "--to", database], "there is no store in"),
        (&["--from", "embedded:nowhere", "--to", database], "there is no store in nowhere"),
        (&["--to", database], "there is no store in holdfast-data"),
    ] {
        let (code, out, error) = migrate(words);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words:?}");
        assert!(error.contains(told), "{words:?}: {error}");
        assert!(!error.contains("s3cret") && !error.contains("zoe"), "{error}");
    }
    assert!(!Path::new("nowhere").exists(), "a folder that is not there is not made");
    let mut help = holdfast();
    help.args(["migrate", "--help"]).env("HOLDFAST_ENGINE", "postgres://a:s3cret@h/d");
    assert!(!run(help).1.contains("s3cret"));
}
