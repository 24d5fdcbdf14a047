//! Somebody else's fake of Stripe signs what we verify, and carries out what we ask. It keeps no idempotency keys and refuses
//! reasons, so this is a smoke test only; the strict fake is ours.

use crate::rig::PATIENCE;
use crate::shop::{priced, webhooks};
use crate::support::{Server, eventually, holdfast, skipped};
use serde_json::Value;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tempfile::tempdir;

const SECRET: &str = "whsec_of_somebody_elses_fake";

struct Foreign {
    child: Child,
    port: u16,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Foreign {
    fn start() -> Option<Self> {
        let Some(program) = std::env::var_os("HOLDFAST_TEST_LOCALSTRIPE") else {
            skipped("HOLDFAST_TEST_LOCALSTRIPE is not set; run the tests with `cargo xtask test`");
            return None;
        };
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(["--from-scratch", "--port", &port.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let foreign = Self { child, port };
        eventually("it listens", PATIENCE, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        Some(foreign)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn post(&self, path: &str, form: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk_test_foreign\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        );
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    fn pay(&self, order: &str) {
        let card = "type=card&card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040&card[cvc]=123";
        let method = self.post("/v1/payment_methods", card);
        let id = method.split("\"id\": \"pm_").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let form = format!("amount=1500&currency=usd&confirm=true&payment_method=pm_{id}&metadata[order_id]={order}");
        self.post("/v1/payment_intents", &form);
    }
}

#[test]
fn what_somebody_else_signs_is_believed_and_what_we_ask_is_done() {
    let Some(foreign) = Foreign::start() else { return };
    let folder = Arc::new(tempdir().unwrap());
    let file = folder.path().join("holdfast.toml");
    std::fs::write(&file, "[stripe]\nrefund_reason = false\n").unwrap();
    let mut command = holdfast();
    command.env("HOLDFAST_STRIPE_API_BASE", foreign.url()).env("HOLDFAST_STRIPE_API_KEY", "sk_test_foreign");
    command.env("HOLDFAST_STRIPE_WEBHOOK_SECRETS", SECRET).env("HOLDFAST_CONFIG", &file);
    let server = Server::with_command(command, &folder, &[]);
    foreign.post("/_config/webhooks/holdfast", &format!("url={}&secret={SECRET}", webhooks(&server)));
    server.stock("A", 1);
    server.hold(&priced("O1"));
    foreign.pay("O1");
    eventually("the order is paid", PATIENCE, || {
        let answer = server.get("/v1/orders/O1");
        (answer.status == 200).then(|| answer.json()).filter(|order| order["payment"]["captured"] == true)
    });
    foreign.pay("O1");
    let refund = eventually("the second payment goes back", PATIENCE, || {
        let refunds = server.get("/v1/refunds").is(200);
        refunds["items"].as_array().unwrap().iter().find(|refund| refund["status"] == "succeeded").cloned()
    });
    assert_eq!(refund["reason"], "duplicate_payment");
    assert!(refund["reference"].as_str().is_some_and(|id| id.starts_with("re_")), "{refund}");
    assert_eq!(refund["error"], Value::Null);
}
