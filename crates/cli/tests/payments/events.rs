//! What happened is told to the shop's other systems, signed, in order, and again when it is asked for.

use crate::rig::PATIENCE;
use crate::shop::Shop;
use crate::support::eventually;
use crate::support::webhook::{STANDARD_SECRET, mac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// Requests as they came: headers in lower case, and the body.
type Requests = Arc<Mutex<Vec<(Vec<(String, String)>, String)>>>;

/// A receiver that answers with these statuses first, and 200 from then on.
fn receiver(statuses: Vec<u16>) -> (u16, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Requests::default();
    let kept = requests.clone();
    std::thread::spawn(move || {
        let mut statuses = statuses.into_iter();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while let Some(request) = read(&mut reader) {
                let status = statuses.next().unwrap_or(200);
                if status == 200 {
                    kept.lock().unwrap().push(request);
                }
                let _ = stream.write_all(format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").as_bytes());
            }
        }
    });
    (port, requests)
}

fn read(reader: &mut impl BufRead) -> Option<(Vec<(String, String)>, String)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((headers, String::from_utf8(body).ok()?))
}

fn kinds(requests: &Requests) -> Vec<String> {
    let requests = requests.lock().unwrap();
    let kind =
        |body: &String| serde_json::from_str::<Value>(body).unwrap()["data"]["kind"].as_str().unwrap().to_owned();
    requests.iter().map(|(_, body)| kind(body)).collect()
}

#[test]
fn a_sink_gets_every_entry_signed_and_in_order_and_can_be_replayed() {
    let (port, requests) = receiver(vec![503]);
    let mut shop = Shop::open();
    let (folder, _) = shop.server.take().unwrap().stop();
    let file = folder.path().join("holdfast.toml");
    let sink = format!(
        "[[sinks]]\nname = \"crm\"\nkind = \"http\"\nurl = \"http://127.0.0.1:{port}/in\"\nsecrets = [\"{STANDARD_SECRET}\"]\nallow_private = true\nfrom = \"start\"\n"
    );
    std::fs::write(&file, sink).unwrap();
    shop.variables.push(("HOLDFAST_CONFIG".into(), file.to_str().unwrap().into()));
    shop.start();
    shop.server().stock("A", 2);
    shop.hold("O1");
    shop.pay("O1");
    shop.becomes("O1", "confirmed");
    let told = eventually("everything came", PATIENCE, || {
        let kinds = kinds(&requests);
        kinds.iter().any(|kind| kind == "confirmed").then_some(kinds)
    });
    assert_eq!(told, ["received", "held", "payment_captured", "confirmed"]);
    let key = STANDARD.decode(STANDARD_SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    for (headers, body) in requests.lock().unwrap().iter() {
        let header =
            |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap();
        let signed = format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp"));
        assert_eq!(header("webhook-signature"), format!("v1,{}", STANDARD.encode(mac(&key, signed.as_bytes()))));
        assert_eq!(header("content-type"), "application/cloudevents+json");
        let event: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&event["specversion"], &event["id"]), (&json!("1.0"), &json!(header("webhook-id"))));
    }
    let sinks = shop.server().get("/v1/sinks").is(200);
    let crm = &sinks["items"][0];
    assert_eq!((&crm["name"], &crm["cursor"], &crm["dead"]), (&json!("crm"), &json!(4), &json!(0)), "{sinks}");
    shop.server().post("/v1/sinks/crm/replay", &json!({"after": 2})).is(200);
    eventually("the last two came again", PATIENCE, || (kinds(&requests).len() == 6).then_some(()));
    assert_eq!(kinds(&requests)[4..], ["payment_captured", "confirmed"]);
    shop.server().get("/v1/sinks/erp/dead").refused(404, "not_found");
}
