//! What Stripe's answers mean: each row of its table of errors once, over a real connection.

use super::super::scripted::{Act, Scripted};
use super::*;
use holdfast_domain::{Currency, JobReason, JobState, Money, PaymentKey, PaymentKind, Time};
use holdfast_engine::clock;
use serde_json::json;

mod refunds;

const KEY: &str = "sk_test_do_not_tell_0123456789";

fn id(text: &str) -> Ref {
    Ref::new(text).unwrap()
}

fn job(kind: JobKind) -> Job {
    Job {
        payment: PaymentKey { provider: id("stripe"), payment_id: id("pi_1") },
        kind,
        reason: JobReason::StockGone,
        state: JobState::Requested,
        idempotency_key: "holdfast-refund-stripe:pi_1".into(),
        money: Money { amount: Some(1500), currency: Currency::new("eur") },
        created_at: clock::wall(),
        attempts: 1,
        next_at: Time::from_millis(0),
        reference: None,
        error: None,
    }
}

fn client(server: &Scripted) -> Stripe {
    client_that_waits(server, ANSWER)
}

fn client_that_waits(server: &Scripted, timeout: Duration) -> Stripe {
    let settings = Settings { api_key: KEY, api_base: &server.url, api_version: API_VERSION, tells_reasons: true };
    Stripe::with_timeout(&settings, timeout).unwrap()
}

fn ok(body: Value) -> Act {
    Act::Answer(200, Vec::new(), body)
}

fn error(status: u16, code: &str, message: &str) -> Act {
    let mut error = json!({"type": "invalid_request_error", "message": message});
    if !code.is_empty() {
        error["code"] = json!(code);
    }
    Act::Answer(status, Vec::new(), json!({"error": error}))
}

fn state(status: &str) -> Act {
    ok(json!({"id": "pi_1", "status": status}))
}

fn unexpected_state(status: &str) -> Act {
    let message = format!("This PaymentIntent's status is {status}.");
    let error = json!({"code": "payment_intent_unexpected_state", "message": message,
        "type": "invalid_request_error", "payment_intent": {"id": "pi_1", "status": status}});
    Act::Answer(400, Vec::new(), json!({"error": error}))
}

/// A reply without its words, which are checked to tell no secret.
fn short(reply: &Reply) -> String {
    match reply {
        Reply::Done { reference } => format!("done {}", reference.as_ref().map_or("-", Ref::as_str)),
        Reply::Accepted { reference } => format!("accepted {}", reference.as_ref().map_or("-", Ref::as_str)),
        Reply::IsCaptured => "captured".into(),
        Reply::NotCaptured => "not captured".into(),
        Reply::Later { error, retry_after } => {
            assert!(!error.contains(KEY) && !error.is_empty(), "{error}");
            retry_after.map_or("later".into(), |s| format!("later {s}"))
        }
        Reply::Halt { error } | Reply::Failed { error } => {
            assert!(!error.contains(KEY) && !error.is_empty(), "{error}");
            if matches!(reply, Reply::Halt { .. }) { "halt".into() } else { "failed".into() }
        }
    }
}

/// Carries the job out against the script; the reply and what was asked.
async fn run(job: &Job, again: bool, acts: Vec<Act>) -> (String, Vec<String>) {
    let server = Scripted::start(acts).await;
    let reply = client(&server).carry_out(job, Some("ORDER-1"), again).await;
    server.asked();
    (short(&reply), server.lines())
}

async fn reply(job: &Job, acts: Vec<Act>) -> String {
    run(job, false, acts).await.0
}

#[tokio::test]
async fn answers_that_say_nothing_about_the_payment() {
    let refund = job(JobKind::Refund);
    let with = |status, headers: Vec<(&'static str, &'static str)>| Act::Answer(status, headers, json!({}));
    for (act, expected) in [
        (error(401, "", &format!("Invalid API Key provided: {KEY}")), "halt"),
        (error(403, "", "The provided key does not have the required permissions."), "halt"),
        (error(404, "resource_missing", "No such payment_intent: 'pi_1'"), "halt"),
        (with(404, vec![]), "later"),
        (with(413, vec![]), "later"),
        (ok(json!({"error": {"message": "somebody's idea of an error"}})), "later"),
        (error(409, "idempotency_key_in_use", "There is currently another in-progress request"), "later"),
        (error(409, "lock_timeout", "This object cannot be accessed right now"), "later"),
        (error(400, "lock_timeout", "This object cannot be accessed right now"), "later"),
        (with(429, vec![("retry-after", "17")]), "later 17"),
        (error(429, "rate_limit", "Too many requests"), "later"),
        (with(503, vec![("retry-after", "Wed, 01 Jan 2121 00:00:00 GMT")]), "later 86400"),
        (error(500, "", "An error occurred"), "later"),
        (with(502, vec![]), "later"),
        (with(418, vec![("stripe-should-retry", "true")]), "later"),
        (with(307, vec![("location", "https://elsewhere.example/")]), "halt"),
        (ok(json!("cut off")), "later"),
        (Act::Drop, "later"),
    ] {
        assert_eq!(reply(&refund, vec![act]).await, expected);
    }
    let server = Scripted::start([Act::Hang]).await;
    let hasty = client_that_waits(&server, Duration::from_millis(200));
    assert_eq!(short(&hasty.carry_out(&refund, None, false).await), "later");
    let server = Scripted::start([]).await;
    let gone = Settings { api_key: KEY, api_base: "http://127.0.0.1:1", api_version: "v", tells_reasons: true };
    let told = Stripe::new(&gone).unwrap().carry_out(&refund, None, false).await;
    assert!(matches!(&told, Reply::Later { error, .. } if error.contains("cannot be reached")), "{told:?}");
    let odd = Job { payment: PaymentKey { provider: id("stripe"), payment_id: id("pi_1/cancel") }, ..refund };
    assert_eq!(short(&client(&server).carry_out(&odd, None, false).await), "failed");
    assert!(server.asked().is_empty(), "an id that leads elsewhere is not asked for");
}

#[tokio::test]
async fn requests_carry_what_stripe_wants() {
    let server = Scripted::start([state("canceled")]).await;
    client(&server).carry_out(&job(JobKind::Void), None, false).await;
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /v1/payment_intents/pi_1/cancel");
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(asked.headers["stripe-version"], API_VERSION);
    assert_eq!(asked.headers["content-type"], "application/x-www-form-urlencoded");
    assert!(!asked.headers.contains_key("idempotency-key"), "an old refusal would be told again under it");
    assert_eq!(asked.body, "cancellation_reason=abandoned");
    let bare = Settings { api_key: KEY, api_base: &server.url, api_version: API_VERSION, tells_reasons: false };
    let server = Scripted::start([state("canceled")]).await;
    let bare = Settings { api_base: &server.url, ..bare };
    Stripe::new(&bare).unwrap().carry_out(&job(JobKind::Void), None, false).await;
    assert_eq!(server.asked()[0].body, "");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let new =
        |api_key, api_version| Stripe::new(&Settings { api_key, api_base: API_BASE, api_version, tells_reasons: true });
    for key in ["pk_live_0123456789", "whsec_0123456789", "", "0123456789"] {
        assert!(!new(key, API_VERSION).unwrap_err().contains("0123456789"));
    }
    assert!(new(KEY, "a b").is_err() && new(KEY, "").is_err());
    assert!(!format!("{:?}", new(KEY, API_VERSION).unwrap()).contains(KEY));
    assert!(new("rk_live_0123456789", API_VERSION).is_ok());
}

#[tokio::test]
async fn voids() {
    let void = job(JobKind::Void);
    let void = |acts| {
        let void = void.clone();
        async move { run(&void, false, acts).await }
    };
    let sessions = |data: Value| ok(json!({"object": "list", "data": data}));
    assert_eq!(void(vec![state("canceled")]).await.0, "done pi_1");
    assert_eq!(void(vec![unexpected_state("canceled")]).await.0, "done pi_1");
    assert_eq!(void(vec![unexpected_state("succeeded")]).await.0, "captured");
    assert_eq!(void(vec![unexpected_state("processing")]).await.0, "later 3600");
    assert_eq!(void(vec![error(400, "", "You cannot cancel this"), state("succeeded")]).await.0, "captured");
    let (reply, lines) = void(vec![
        unexpected_state("requires_payment_method"),
        sessions(json!([{"id": "cs_1"}])),
        ok(json!({"id": "cs_1", "status": "expired"})),
    ])
    .await;
    assert_eq!(reply, "done pi_1", "a Checkout's intent is ended by its session");
    assert_eq!(
        lines[1..],
        ["GET /v1/checkout/sessions?payment_intent=pi_1&limit=1", "POST /v1/checkout/sessions/cs_1/expire"]
    );
    assert_eq!(void(vec![unexpected_state("requires_action"), sessions(json!([]))]).await.0, "failed");
    assert_eq!(void(vec![unexpected_state("requires_action"), error(404, "", "")]).await.0, "failed");
    assert_eq!(void(vec![unexpected_state("requires_action"), error(500, "", "")]).await.0, "later");
    assert_eq!(void(vec![error(404, "resource_missing", "No such payment_intent")]).await.0, "halt");
    assert_eq!(void(vec![ok(json!({"error": {}}))]).await.0, "later");
    assert_eq!(void(vec![Act::Drop]).await.0, "later");
}

#[tokio::test]
async fn a_duplicate_is_canceled_as_one() {
    let server = Scripted::start([state("canceled")]).await;
    let duplicate = Job { reason: JobReason::DuplicatePayment, ..job(JobKind::Void) };
    client(&server).carry_out(&duplicate, None, false).await;
    assert_eq!(server.asked()[0].body, "cancellation_reason=duplicate");
}

#[tokio::test]
async fn captures() {
    let capture = job(JobKind::Capture);
    let server = Scripted::start([ok(json!({"id": "pi_1", "status": "succeeded", "latest_charge": "ch_1"}))]).await;
    assert_eq!(short(&client(&server).carry_out(&capture, None, false).await), "done ch_1");
    let asked = &server.asked()[0];
    assert_eq!(
        (asked.line.as_str(), asked.body.as_str()),
        ("POST /v1/payment_intents/pi_1/capture", "amount_to_capture=1500")
    );
    for (acts, expected) in [
        (vec![ok(json!({"id": "pi_1", "status": "processing", "latest_charge": {"id": "ch_1"}}))], "accepted ch_1"),
        (vec![error(400, "charge_already_captured", "has already been captured")], "done -"),
        (vec![unexpected_state("succeeded")], "done -"),
        (vec![unexpected_state("canceled")], "failed"),
        (vec![unexpected_state("requires_payment_method")], "failed"),
        (vec![unexpected_state("processing")], "later 3600"),
        (vec![error(400, "capture_charge_authorization_expired", "expired")], "failed"),
        (vec![error(402, "capture_charge_authorization_expired", "expired")], "failed"),
        (vec![error(400, "charge_expired_for_capture", "expired")], "failed"),
        (vec![error(400, "amount_too_large", "greater than")], "failed"),
        (vec![error(402, "card_declined", "declined")], "failed"),
        (vec![error(409, "lock_timeout", "busy")], "later"),
        (vec![Act::Drop], "later"),
    ] {
        assert_eq!(reply(&capture, acts).await, expected);
    }
}

#[tokio::test]
async fn windows_are_closed_unless_somebody_paid() {
    let close = |payment_ref: &'static str, acts: Vec<Act>| async move {
        let server = Scripted::start(acts).await;
        let closed = client(&server).close(payment_ref).await;
        server.asked();
        (closed, server.lines())
    };
    let (closed, lines) = close("stripe:pi_1", vec![state("requires_payment_method"), state("canceled")]).await;
    assert_eq!(closed, Closed::Closed);
    assert_eq!(lines, ["GET /v1/payment_intents/pi_1", "POST /v1/payment_intents/pi_1/cancel"]);
    for (status, expected) in [
        ("succeeded", Closed::AlreadyPaid),
        ("requires_capture", Closed::AlreadyPaid),
        ("processing", Closed::AlreadyPaid),
        ("canceled", Closed::Closed),
    ] {
        assert_eq!(close("pi_1", vec![state(status)]).await.0, expected, "{status}");
    }
    let late = vec![state("requires_action"), unexpected_state("succeeded")];
    assert_eq!(close("pi_1", late).await.0, Closed::AlreadyPaid, "paid between the look and the cancellation");
    assert_eq!(close("pi_1", vec![error(404, "resource_missing", "No such")]).await.0, Closed::Unknown);
    assert_eq!(close("pi_1/capture", vec![]).await.0, Closed::Unknown);
    assert!(matches!(close("pi_1", vec![error(500, "", "")]).await.0, Closed::Later { .. }));
    assert!(matches!(close("pi_1", vec![error(401, "", "")]).await.0, Closed::Later { .. }));
    let busy = Act::Answer(429, vec![("retry-after", "5")], json!({}));
    assert!(matches!(close("cs_1", vec![busy]).await.0, Closed::Later { retry_after: Some(5), .. }));
    let session = |status: &str| ok(json!({"id": "cs_1", "status": status}));
    let refused = || error(400, "", "Only Checkout Sessions with a status in [open] can be expired.");
    let (closed, lines) = close("cs_1", vec![session("expired")]).await;
    assert_eq!((closed, lines), (Closed::Closed, vec!["POST /v1/checkout/sessions/cs_1/expire".to_owned()]));
    assert_eq!(close("cs_1", vec![refused(), session("complete")]).await.0, Closed::AlreadyPaid);
    assert_eq!(close("cs_1", vec![refused(), session("expired")]).await.0, Closed::Closed);
    assert_eq!(close("cs_1", vec![error(404, "resource_missing", "No such")]).await.0, Closed::Unknown);
}

#[tokio::test]
async fn a_look_tells_facts() {
    let intent = json!({"id": "pi_1", "status": "succeeded", "amount": 1500, "amount_received": 1500, "currency": "eur",
        "metadata": {"order_id": "O"}, "latest_charge": {"id": "ch_1", "payment_intent": "pi_1", "amount": 1500,
        "amount_captured": 1500, "captured": true, "amount_refunded": 1500, "refunded": true}});
    let server = Scripted::start([ok(intent.clone())]).await;
    let facts = client(&server).look(&id("pi_1")).await.unwrap();
    assert_eq!(facts.iter().map(|f| f.kind).collect::<Vec<_>>(), [PaymentKind::Captured, PaymentKind::Refunded(1500)]);
    assert_eq!(server.lines(), ["GET /v1/payment_intents/pi_1?expand[]=latest_charge"]);

    let server = Scripted::start([ok(json!({"id": "cs_1", "payment_intent": "pi_1"})), ok(intent)]).await;
    let facts = client(&server).look(&id("cs_1")).await.unwrap();
    assert!(facts.iter().all(|f| f.payment.to_string() == "stripe:cs_1"), "known by the session: {facts:?}");

    let server = Scripted::start([ok(json!({"id": "cs_1", "payment_intent": null}))]).await;
    assert_eq!(client(&server).look(&id("cs_1")).await, Ok(Vec::new()));
    for (act, is_failed) in
        [(error(404, "resource_missing", "No such"), false), (Act::Drop, false), (ok(json!({})), true)]
    {
        let server = Scripted::start([act]).await;
        let told = client(&server).look(&id("pi_1")).await.unwrap_err();
        assert_eq!(matches!(told, Trouble::Failed { .. }), is_failed, "{told:?}");
    }
}
