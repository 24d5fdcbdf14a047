//! The shopper who came too late is written to: once the money is on its way back, and once it is there.

use crate::rig::PATIENCE;
use crate::shop::Shop;
use crate::support::eventually;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// A server that takes every mail, but for the first few, which it is too busy for.
fn postbox(busy: usize) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("smtp://{}?tls=none", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut busy = busy;
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut out = stream;
            let mut say = |line: &str| out.write_all(format!("{line}\r\n").as_bytes());
            let _ = say("220 here");
            while let Some(Ok(line)) = lines.next() {
                let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
                let answer = match verb.as_str() {
                    "MAIL" if busy > 0 => {
                        busy -= 1;
                        "451 come back later"
                    }
                    "DATA" => {
                        let _ = say("354 go on");
                        let mail: Vec<String> =
                            lines.by_ref().map_while(Result::ok).take_while(|line| line != ".").collect();
                        if tell.send(mail.join("\n")).is_err() {
                            return;
                        }
                        "250 taken"
                    }
                    "QUIT" => "221 bye",
                    _ => "250 fine",
                };
                let _ = say(answer);
            }
        }
    });
    (url, told)
}

fn header<'a>(mail: &'a str, name: &str) -> &'a str {
    let line = mail.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name} in {mail}")).trim()
}

#[test]
fn a_late_payer_is_told_that_the_money_is_on_its_way_and_that_it_is_back() {
    let (url, mails) = postbox(1);
    let from = "Palm Shop <orders@palm.example>";
    let shop = Shop::with(&[("HOLDFAST_SMTP_URL", &url), ("HOLDFAST_MAIL_FROM", from)]);
    shop.server().stock("A", 1);
    shop.lose("O1");
    shop.provider.script(&json!([{"on": "refund", "do": {"refund_pending": {"ms": 500, "then": "succeeded"}}}]));
    let payment = shop.pay("O1");
    shop.refund(&payment, "succeeded");
    let mut got: Vec<String> = Vec::new();
    eventually("two mails came", PATIENCE, || {
        got.extend(mails.try_iter());
        (got.len() == 2).then_some(())
    });
    assert_ne!(header(&got[0], "Message-ID:"), header(&got[1], "Message-ID:"));
    for mail in &got {
        assert_eq!(header(mail, "To:"), "jo@example.org");
        assert!(header(mail, "From:").contains("orders@palm.example"));
        assert!(header(mail, "Message-ID:").ends_with("@palm.example>"));
        assert!(mail.contains("15.00 USD") && mail.contains("O1") && mail.contains("text/html"), "{mail}");
    }
    // Whoever paid in time hears nothing from us.
    shop.server().put("/v1/stock/A", &json!({"total": 2})).is(200);
    shop.hold("O3");
    shop.pay("O3");
    shop.becomes("O3", "confirmed");
    shop.balances();
    assert_eq!(mails.try_iter().count(), 0);
}

#[test]
fn settings_that_cannot_work_keep_the_server_from_starting() {
    let refused = |variables: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        let (code, log) = crate::support::refused_start(folder.path(), &[], variables);
        assert_eq!(code, Some(2), "{log}");
        log
    };
    let log = refused(&[("HOLDFAST_SMTP_URL", "smtp://user:hidden@mail.example")]);
    assert!(log.contains("HOLDFAST_MAIL_FROM") && !log.contains("hidden"), "{log}");
    let log =
        refused(&[("HOLDFAST_SMTP_URL", "imap://user:hidden@mail.example"), ("HOLDFAST_MAIL_FROM", "a@b.example")]);
    assert!(log.contains("smtp") && !log.contains("hidden"), "{log}");
    let log = refused(&[("HOLDFAST_STRIPE_API_KEY", "whsec_hidden_hidden")]);
    assert!(log.contains("sk_") && !log.contains("hidden"), "{log}");
    let log = refused(&[("HOLDFAST_STRIPE_WEBHOOK_SECRETS", "sk_live_hidden")]);
    assert!(log.contains("whsec_") && !log.contains("hidden"), "{log}");
    let log = refused(&[("HOLDFAST_SINK_NATS_URL", "http://hidden@mail.example")]);
    assert!(log.contains("nats://") && !log.contains("hidden"), "{log}");
}
