//! The HTTP sink: what a request looks like, how answers are understood, and where it never goes.

use super::desk::TestDesk;
use super::receiver::{ENDLESS, Receiver, SECRET};
use super::shop::{all_ids, drain, relay, settle, trade};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use holdfast_engine::clock::{monotonic, wall};
use holdfast_server::outbox::{Pass, SinkConfig, SinkKind, admin};
use sha2::Sha256;
use std::time::Duration;

const OTHER: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn sign(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_signed_with_every_secret() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let mut config = receiver.config("crm");
    config.secrets.push(OTHER.into());
    config.source = Some("https://shop.example/holdfast".into());
    config.type_prefix = Some("com.example.shop".into());
    drain(&desk, &mut relay(&desk, &config)).await;
    receiver.requests(|request| {
        assert_eq!(request.header("content-type"), "application/cloudevents+json");
        let (id, timestamp) = (request.header("webhook-id"), request.header("webhook-timestamp"));
        let event = request.event();
        assert_eq!(event["id"], id);
        assert_eq!(event["source"], "https://shop.example/holdfast");
        assert!(event["type"].as_str().unwrap().starts_with("com.example.shop."));
        assert_eq!(event["data"]["seq"].as_u64().unwrap(), id.parse::<u64>().unwrap());
        let age = wall().millis() / 1000 - timestamp.parse::<i64>().unwrap();
        assert!((0..60).contains(&age), "the moment of the attempt");
        let both = [SECRET, OTHER].map(|secret| sign(secret, id, timestamp, &request.body)).join(" ");
        assert_eq!(request.header("webhook-signature"), both);
    });
    assert_eq!(receiver.ids(), all_ids(&desk).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_asks_for_time_gets_it() {
    for status in [429, 502, 503, 504] {
        let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
        trade(&desk, "o", 1).await;
        let mut relay = relay(&desk, &receiver.config("crm"));
        receiver.answer(status, &[("retry-after", "120")], "");
        assert_eq!(settle(&mut relay).await, Pass::Wait(Duration::from_mins(2)), "{status}");
        desk.pass(Duration::from_secs(119));
        assert!(matches!(relay.once().await.unwrap(), Pass::Wait(_)));
        desk.pass(Duration::from_secs(1));
        drain(&desk, &mut relay).await;
        assert_eq!(receiver.ids()[1..], all_ids(&desk).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gone_disables_until_a_person_enables() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let mut relay = relay(&desk, &receiver.config("crm"));
    receiver.answer(410, &[], "moved out");
    assert_eq!(settle(&mut relay).await, Pass::Disabled);
    desk.pass(Duration::from_hours(1000));
    assert_eq!(relay.once().await.unwrap(), Pass::Disabled);
    assert_eq!(receiver.ids().len(), 1);
    let state = admin::state(&*desk, "crm").await.unwrap().unwrap();
    assert_eq!(state.disabled.as_deref(), Some("answered 410: moved out"));
    assert!(admin::enable(&*desk, "crm").await.unwrap());
    drain(&desk, &mut relay).await;
    assert_eq!(receiver.ids()[1..], all_ids(&desk).await, "nothing was left out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let (desk, receiver, other) = (TestDesk::new(), Receiver::start().await, Receiver::start().await);
    trade(&desk, "o", 1).await;
    let mut relay = relay(&desk, &receiver.config("crm"));
    receiver.answer(307, &[("location", &other.url)], "");
    assert!(matches!(settle(&mut relay).await, Pass::Wait(_)));
    assert!(other.ids().is_empty());
    let error = admin::state(&*desk, "crm").await.unwrap().unwrap().last_error.unwrap();
    assert!(error.contains("307") && error.contains("not followed"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let mut relay = relay(&desk, &receiver.config("crm"));
    receiver.answer(500, &[], &format!("{ENDLESS}x"));
    let start = monotonic();
    assert!(matches!(settle(&mut relay).await, Pass::Wait(_)));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let error = admin::state(&*desk, "crm").await.unwrap().unwrap().last_error.unwrap();
    assert_eq!(error.len(), "answered 500: ".len() + 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_inside_is_refused_and_no_connection_is_made() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    // With TLS, so that the scheme is fine; whoever connects is seen by the listener all the same.
    let url = receiver.url.replace("http://127.0.0.1", "https://localhost");
    let mut config = SinkConfig::new("crm", SinkKind::Http, &url);
    config.secrets = vec![SECRET.into()];
    assert!(matches!(settle(&mut relay(&desk, &config)).await, Pass::Wait(_)));
    let refused = admin::state(&*desk, "crm").await.unwrap().unwrap().last_error.unwrap();
    assert!(refused.contains("not public") && refused.contains("allow_private"), "{refused}");
    config.allow_private = true;
    config.name = "other".into();
    assert!(matches!(settle(&mut relay(&desk, &config)).await, Pass::Wait(_)));
    let connected = admin::state(&*desk, "other").await.unwrap().unwrap().last_error.unwrap();
    assert!(!connected.contains("not public"), "with the setting it gets as far as TLS: {connected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_in_the_url_is_used_and_never_told() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let mut config = receiver.config("crm");
    config.url = receiver.url.replace("http://", "http://user:hidden@");
    drain(&desk, &mut relay(&desk, &config)).await;
    receiver.requests(|request| assert!(request.header("authorization").starts_with("Basic ")));
    let mut gone = config.clone();
    gone.url = "http://user:hidden@127.0.0.1:1/".into();
    gone.name = "gone".into();
    assert!(matches!(settle(&mut relay(&desk, &gone)).await, Pass::Wait(_)));
    let error = admin::state(&*desk, "gone").await.unwrap().unwrap().last_error.unwrap();
    assert!(!error.contains("hidden") && !error.is_empty(), "{error}");
}
