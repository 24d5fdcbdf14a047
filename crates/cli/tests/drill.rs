//! The drill: a whole sale against the real binary, a sale in which a promise is broken on purpose, and a server that
//! was not told of the provider.

#![allow(missing_docs, unreachable_pub)]
// clippy.toml allows these in functions marked as tests; the helpers here are test code as well.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, unused_imports, reason = "shared with the HTTP tests, which use all of it")]
#[path = "http/support/mod.rs"]
mod support;

use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;
use support::{Server, holdfast};

fn drill(folder: &Path, flags: &[&str]) -> (Output, String) {
    let output = holdfast().arg("drill").args(flags).current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned();
    (output, text)
}

fn report(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("out.json")).unwrap()).unwrap()
}

#[test]
fn a_sale_ends_with_every_unit_and_every_payment_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let sale = ["--shoppers", "1500", "--units", "40", "--over", "6s", "--seed", "7", "--json", "out.json"];
    let (output, text) = drill(folder.path(), &sale);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("Every promise was kept"), "{text}");
    let report = report(folder.path());
    let verdict = &report["verdict"];
    assert_eq!((&verdict["oversold"], &verdict["stranded"], &verdict["breaches"]), (&0.into(), &0.into(), &json!([])));
    let n = |name: &str| verdict[name].as_u64().unwrap();
    assert_eq!(n("captures"), n("orders") + n("refunds"), "{verdict}");
    // Units that came back after the last shopper are left over.
    assert!(n("orders") == n("sold") && (30..=40).contains(&n("sold")), "{verdict}");
    assert!(n("refunds") > 0 && n("voids") > 0, "a sale in which nothing went wrong: {verdict}");
    assert!(report["refused"]["count"].as_u64().unwrap() > 1000, "{report}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the server's folder is removed");
}

#[test]
fn a_waiting_room_lets_in_no_more_than_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let sale = ["--shoppers", "1200", "--units", "60", "--over", "4s", "--ttl", "4", "--waiting-room", "20"];
    let (output, text) = drill(folder.path(), &[&sale[..], &["--seed", "7", "--json", "out.json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{text}");
    let report = report(folder.path());
    let room = &report["waiting_room"];
    let number = |value: &Value| value.as_f64().unwrap();
    assert!((250.0..350.0).contains(&number(&room["arrived_per_second"])), "{room}");
    let rate = number(&room["admitted_per_second"]);
    assert!((0.0..=21.5).contains(&rate), "{room}");
    let (admitted, away) = (number(&room["admitted"]["count"]), number(&room["turned_away"]));
    assert!(admitted >= 60.0 && admitted + away >= 1200.0, "{room}");
    let verdict = &report["verdict"];
    assert_eq!((&verdict["oversold"], &verdict["stranded"]), (&0.into(), &0.into()), "{verdict}");
    assert!(number(&verdict["sold"]) >= 50.0, "{verdict}");
}

#[test]
fn money_that_does_not_go_back_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let script = json!([{"on": "refund", "do": {"refuse": {"code": "charge_disputed"}}, "times": 1}]);
    std::fs::write(folder.path().join("script.json"), script.to_string()).unwrap();
    let sale = ["--shoppers", "600", "--units", "30", "--over", "4s", "--seed", "7", "--patience", "10s"];
    let (output, text) =
        drill(folder.path(), &[&sale[..], &["--script", "script.json", "--json", "out.json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{text}");
    let breaches = report(folder.path())["verdict"]["breaches"].clone();
    let ids = |promise: &str| {
        let found = breaches.as_array().unwrap().iter().find(|breach| breach["promise"] == promise);
        found.unwrap_or_else(|| panic!("{promise} is not in {breaches}"))["ids"].clone()
    };
    let stuck = ids("reversal_carried_out");
    assert_eq!(stuck.as_array().unwrap().len(), 1);
    assert_eq!(ids("payment_settles_once"), stuck);
    assert!(text.contains(stuck[0].as_str().unwrap()), "{text}");
}

#[test]
fn a_server_that_was_not_told_of_the_provider_is_named_before_anybody_comes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::fresh();
    let url = format!("http://127.0.0.1:{}", server.port);
    let flags = ["--url", &url, "--webhook-secret", "whsec_not_told", "--provider-listen", "127.0.0.1:0"];
    let (output, text) = drill(folder.path(), &[&flags[..], &["--patience", "1s"]].concat());
    assert_eq!(output.status.code(), Some(2), "{text}");
    for variable in ["HOLDFAST_STRIPE_API_BASE=http://127.0.0.1:", "HOLDFAST_STRIPE_WEBHOOK_SECRETS"] {
        assert!(text.contains(variable), "{text}");
    }
    assert!(!text.contains("whsec_not_told"), "{text}");
}

#[test]
fn a_running_server_needs_a_secret_and_a_name_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (output, text) = drill(folder.path(), &["--url", "http://127.0.0.1:1"]);
    assert!(output.status.code() == Some(2) && text.contains("--webhook-secret"), "{text}");
    let server = Server::fresh();
    server.stock("TAKEN", 3);
    let url = format!("http://127.0.0.1:{}", server.port);
    let flags = ["--url", &url, "--webhook-secret", "whsec_x", "--provider-listen", "127.0.0.1:0", "--sku", "TAKEN"];
    let (output, text) = drill(folder.path(), &flags);
    assert!(output.status.code() == Some(2) && text.contains("TAKEN exists already"), "{text}");
}

#[test]
fn the_help_has_an_example() {
    let (_, text) = drill(Path::new("."), &["--help"]);
    assert!(text.contains("Examples") && text.contains("--shoppers 2000 --units 50"), "{text}");
}
