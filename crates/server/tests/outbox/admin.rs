//! What a person does about sinks, over HTTP: dead letters, replays, skipping, enabling.

use super::desk::TestDesk;
use super::receiver::Receiver;
use super::shop::{all_ids, drain, relay, settle, trade};
use axum::Router;
use axum::body::Body;
use holdfast_server::outbox::api::{Outbox, routes};
use holdfast_server::outbox::{Pass, SinkConfig};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt;

/// The routes as a server has them.
struct Api(Router);

impl Api {
    fn new(desk: &Arc<TestDesk>, sinks: &[SinkConfig]) -> Self {
        let (router, _) = routes::<Outbox>().split_for_parts();
        Self(router.with_state(Outbox::new(desk.clone(), sinks)))
    }

    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = hyper::Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = Body::from(body.map(|body| body.to_string()).unwrap_or_default());
        let response = self.0.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_seen_and_sent_again() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let config = receiver.config("crm");
    let api = Api::new(&desk, std::slice::from_ref(&config));
    let (_, before) = api.call("GET", "/v1/sinks", None).await;
    assert_eq!(before["items"][0]["cursor"], Value::Null);
    let mut relay = relay(&desk, &config);
    // Two events in a row that a person gives up, each after one attempt.
    for seq in [1, 2] {
        receiver.answer(500, &[], "no");
        assert!(matches!(settle(&mut relay).await, Pass::Wait(_)));
        let (_, sinks) = api.call("GET", "/v1/sinks", None).await;
        let sink = &sinks["items"][0];
        assert_eq!(
            (&sink["kind"], &sink["attempts"], &sink["last_error"]),
            (&json!("http"), &json!(1), &json!("answered 500: no"))
        );
        assert_eq!((&sink["cursor"], &sink["lag"], &sink["dead"]), (&json!(seq - 1), &json!(5 - seq), &json!(seq - 1)));
        assert!(sink["next_attempt_at"].is_string());
        assert_eq!(api.call("POST", "/v1/sinks/crm/skip", None).await, (200, json!({"skipped": seq})));
        assert_eq!(relay.once().await.unwrap(), Pass::More);
    }
    drain(&desk, &mut relay).await;
    assert_eq!(api.call("POST", "/v1/sinks/crm/skip", None).await, (200, json!({"skipped": null})));
    let ids = all_ids(&desk).await;
    assert_eq!(receiver.ids(), [&ids[..2], &ids[2..]].concat());

    let (_, first) = api.call("GET", "/v1/sinks/crm/dead?limit=1", None).await;
    assert_eq!((&first["items"][0]["seq"], &first["next"]), (&json!(1), &json!("1")));
    assert_eq!(first["items"][0]["error"], "skipped: answered 500: no");
    let (_, second) = api.call("GET", "/v1/sinks/crm/dead?limit=1&after=1", None).await;
    assert_eq!((&second["items"][0]["seq"], &second["next"]), (&json!(2), &Value::Null));

    // One that fails again stays, with the new error; the other one goes.
    receiver.answer(422, &[], "still no");
    let (status, replayed) = api.call("POST", "/v1/sinks/crm/replay", Some(json!({"dead": true}))).await;
    assert_eq!((status, replayed), (200, json!({"replayed": 2})));
    drain(&desk, &mut relay).await;
    assert_eq!(receiver.ids()[4..], ids[..2]);
    let (_, left) = api.call("GET", "/v1/sinks/crm/dead", None).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&left["items"][0]["error"], &left["items"][0]["replay"]),
        (&json!("answered 422: still no"), &json!(false))
    );
    assert_eq!(api.call("POST", "/v1/sinks/crm/replay", Some(json!({"seq": 1}))).await, (200, json!({"replayed": 1})));
    drain(&desk, &mut relay).await;
    assert_eq!(receiver.ids()[6..], ids[..1]);
    assert_eq!(api.call("GET", "/v1/sinks/crm/dead", None).await.1["items"], json!([]));
    assert_eq!(api.call("POST", "/v1/sinks/crm/replay", Some(json!({"seq": 1}))).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_a_broken_sink_waits_like_everything_else() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let config = receiver.config("crm");
    let api = Api::new(&desk, std::slice::from_ref(&config));
    let mut relay = relay(&desk, &config);
    receiver.answer(500, &[], "");
    settle(&mut relay).await;
    api.call("POST", "/v1/sinks/crm/skip", None).await;
    drain(&desk, &mut relay).await;
    receiver.answer(410, &[], "");
    api.call("POST", "/v1/sinks/crm/replay", Some(json!({"dead": true}))).await;
    assert_eq!(settle(&mut relay).await, Pass::Disabled);
    let (_, sinks) = api.call("GET", "/v1/sinks", None).await;
    assert_eq!((&sinks["items"][0]["dead"], &sinks["items"][0]["disabled"]), (&json!(1), &json!("answered 410:")));
    assert_eq!(api.call("POST", "/v1/sinks/crm/enable", None).await, (200, json!({"enabled": true})));
    drain(&desk, &mut relay).await;
    let (_, sinks) = api.call("GET", "/v1/sinks", None).await;
    assert_eq!((&sinks["items"][0]["dead"], &sinks["items"][0]["disabled"]), (&json!(0), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_requests_are_told_what_is_wrong() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    let api = Api::new(&desk, &[receiver.config("crm")]);
    for (method, path) in [("GET", "none/dead"), ("POST", "none/skip"), ("POST", "none/enable")] {
        assert_eq!(api.call(method, &format!("/v1/sinks/{path}"), None).await.0, 404, "{path}");
    }
    assert_eq!(api.call("POST", "/v1/sinks/none/replay", Some(json!({"after": 0}))).await.0, 404);
    for body in [
        json!({}),
        json!({"dead": false}),
        json!({"after": 1, "dead": true}),
        json!({"form": 1}),
        json!([1]),
        json!({"after": -1}),
    ] {
        let (status, problem) = api.call("POST", "/v1/sinks/crm/replay", Some(body.clone())).await;
        assert_eq!((status, &problem["code"]), (422, &json!("invalid_request")), "{body}");
    }
    assert_eq!(api.call("POST", "/v1/sinks/crm/replay", None).await.0, 415);
    for query in ["limit=0", "limit=1001", "after=x", "colour=1"] {
        assert_eq!(api.call("GET", &format!("/v1/sinks/crm/dead?{query}"), None).await.0, 422, "{query}");
    }
    assert_eq!(api.call("POST", "/v1/sinks/crm/enable", None).await, (200, json!({"enabled": false})));
    // Before its first pass, a cursor may be set all the same.
    assert_eq!(api.call("POST", "/v1/sinks/crm/replay", Some(json!({"after": 0}))).await, (200, json!({"cursor": 0})));
    assert_eq!(api.call("GET", "/v1/sinks", None).await.1["items"][0]["cursor"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_enables_after_skipping_gives_the_event_another_chance() {
    let (desk, receiver) = (TestDesk::new(), Receiver::start().await);
    trade(&desk, "o", 1).await;
    let config = receiver.config("crm");
    let api = Api::new(&desk, std::slice::from_ref(&config));
    let mut relay = relay(&desk, &config);
    receiver.answer(500, &[], "");
    settle(&mut relay).await;
    assert_eq!(api.call("POST", "/v1/sinks/crm/skip", None).await.1, json!({"skipped": 1}));
    assert_eq!(api.call("POST", "/v1/sinks/crm/enable", None).await.0, 200);
    drain(&desk, &mut relay).await;
    assert_eq!(receiver.ids()[1..], all_ids(&desk).await);
    assert_eq!(api.call("GET", "/v1/sinks/crm/dead", None).await.1["items"], json!([]));
}
