//! The command line.

use crate::rig::Provider;
use crate::support::{Server, holdfast};
use serde_json::json;

fn refused_start(flags: &[&str]) -> String {
    let mut command = holdfast();
    command.args(["fake-payments", "--listen", "127.0.0.1:0"]).args(flags);
    let (code, log) = Server::spawn(command).err().expect("it must not start");
    assert_eq!(code, Some(2), "{log}");
    log
}

#[test]
fn the_help_has_an_example() {
    let help = holdfast().args(["fake-payments", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("Example") && help.contains("--webhook-secret") && help.contains("--script"), "{help}");
}

#[test]
fn a_script_is_read_from_a_file_and_a_bad_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.json");
    std::fs::write(&file, json!([{"on": "create", "do": "error"}]).to_string()).unwrap();
    let provider = Provider::with(&["--script", file.to_str().unwrap()]);
    assert_eq!(provider.post("/v1/payment_intents", "amount=1&currency=eur").status, 500);
    std::fs::write(&file, r#"[{"on": "create", "do": "explode"}]"#).unwrap();
    let told = refused_start(&["--script", file.to_str().unwrap()]);
    assert!(told.contains("script.json") && told.contains("explode"), "{told}");
}

#[test]
fn an_endpoint_needs_a_secret_and_a_plain_address() {
    let told = refused_start(&["--webhook-url", "http://127.0.0.1:1/hook"]);
    assert!(told.contains("--webhook-secret"), "{told}");
    let told = refused_start(&["--webhook-url", "https://shop/hook", "--webhook-secret", "whsec_very_secret"]);
    assert!(told.contains("http://HOST:PORT/PATH") && !told.contains("whsec_very_secret"), "{told}");
}

#[test]
fn the_same_seed_gives_the_same_ids() {
    let ids = || {
        let provider = Provider::start();
        [provider.paid(), provider.paid()]
    };
    assert_eq!(ids(), ids());
}
