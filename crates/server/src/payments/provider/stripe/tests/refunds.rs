//! Refunds: once, whatever gets lost.

use super::*;

fn refund(id: &str, status: &str, amount: u64, job: Option<&str>) -> Value {
    json!({"id": id, "object": "refund", "status": status, "amount": amount, "payment_intent": "pi_1",
        "metadata": job.map_or(json!({}), |job| json!({"holdfast_job": job}))})
}

fn list(refunds: impl IntoIterator<Item = Value>) -> Act {
    ok(json!({"object": "list", "data": Vec::from_iter(refunds), "has_more": false}))
}

const OURS: Option<&str> = Some("holdfast-refund-stripe:pi_1");
const CREATE: &str = "POST /v1/refunds";
const LIST: &str = "GET /v1/refunds?payment_intent=pi_1&limit=100";

fn old() -> Job {
    Job { created_at: Time::from_millis(clock::wall().millis() - 24 * 3600 * 1000), ..job(JobKind::Refund) }
}

#[tokio::test]
async fn a_refund_is_asked_for_under_the_jobs_key() {
    let server = Scripted::start([ok(refund("re_1", "succeeded", 1500, OURS))]).await;
    let told = client(&server).carry_out(&job(JobKind::Refund), Some("ORDER-1"), false).await;
    assert_eq!(short(&told), "done re_1");
    let asked = &server.asked()[0];
    assert_eq!((asked.line.as_str(), asked.headers["idempotency-key"].as_str()), (CREATE, OURS.unwrap()));
    let expected = [
        ("payment_intent", "pi_1"),
        ("amount", "1500"),
        ("reason", "requested_by_customer"),
        ("metadata[holdfast_job]", "holdfast-refund-stripe:pi_1"),
        ("metadata[cause]", "stock_gone"),
    ];
    assert_eq!(asked.form(), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn charges_and_sessions_are_refunded_too() {
    let by = |payment: &str| Job {
        payment: PaymentKey { provider: id("stripe"), payment_id: id(payment) },
        ..job(JobKind::Refund)
    };
    let server = Scripted::start([ok(refund("re_1", "pending", 1500, None))]).await;
    client(&server).carry_out(&by("ch_1"), None, false).await;
    assert_eq!(server.asked()[0].form()[0], ("charge".to_owned(), "ch_1".to_owned()));
    let session = |intent: Value| ok(json!({"id": "cs_1", "payment_intent": intent}));
    let server = Scripted::start([session(json!({"id": "pi_1"})), ok(refund("re_1", "pending", 1500, None))]).await;
    client(&server).carry_out(&by("cs_1"), None, false).await;
    assert_eq!(server.asked()[1].form()[0], ("payment_intent".to_owned(), "pi_1".to_owned()));
    assert_eq!(reply(&by("cs_1"), vec![session(json!(null))]).await, "failed");
    let free = Job { money: Money { amount: Some(0), currency: None }, ..by("cs_1") };
    assert_eq!(reply(&free, vec![]).await, "done -", "there is nothing to give back");
}

#[tokio::test]
async fn a_key_that_is_too_long_is_digested_everywhere() {
    let long = Job { idempotency_key: "k".repeat(300).into(), ..job(JobKind::Refund) };
    let server = Scripted::start([ok(refund("re_1", "pending", 1500, None))]).await;
    client(&server).carry_out(&long, None, false).await;
    let asked = &server.asked()[0];
    let key = asked.headers["idempotency-key"].clone();
    assert_eq!(key.len(), 64);
    assert!(asked.form().contains(&("metadata[holdfast_job]".to_owned(), key)));
}

#[tokio::test]
async fn made_does_not_mean_arrived() {
    for (status, expected) in [
        ("succeeded", "done re_1"),
        ("pending", "accepted re_1"),
        ("requires_action", "accepted re_1"),
        ("failed", "failed"),
        ("canceled", "failed"),
    ] {
        let act = ok(refund("re_1", status, 1500, OURS));
        assert_eq!(reply(&job(JobKind::Refund), vec![act]).await, expected, "{status}");
        // Accepted once, it is that refund which is asked about.
        let accepted = Job { reference: Some(id("re_1")), ..old() };
        let (reply, lines) = run(&accepted, true, vec![ok(refund("re_1", status, 1500, OURS))]).await;
        assert_eq!((reply.as_str(), lines), (expected, vec!["GET /v1/refunds/re_1".to_owned()]));
    }
}

#[tokio::test]
async fn refusals() {
    for (acts, expected) in [
        (vec![error(400, "charge_disputed", "Charge ch_1 has been charged back")], "failed"),
        (vec![error(400, "refund_disputed_payment", "disputed")], "failed"),
        (vec![error(400, "balance_insufficient", "Insufficient funds")], "later 3600"),
        (vec![error(400, "insufficient_funds", "Insufficient funds")], "later 3600"),
        (vec![error(400, "idempotency_error", "Keys for idempotent requests"), list([])], "failed"),
        (vec![error(400, "parameter_unknown", "Received unknown parameter"), list([])], "failed"),
        (vec![error(400, "x", "?"), Act::Drop], "later"),
    ] {
        assert_eq!(reply(&job(JobKind::Refund), acts).await, expected);
    }
}

#[tokio::test]
async fn what_was_refunded_already_is_done() {
    let already = || error(400, "charge_already_refunded", "Charge ch_1 has already been refunded.");
    let refund_job = job(JobKind::Refund);
    let ours = list([refund("re_2", "succeeded", 1500, OURS), refund("re_1", "failed", 1500, None)]);
    assert_eq!(reply(&refund_job, vec![already(), ours]).await, "done re_2");
    let by_hand = list([refund("re_2", "succeeded", 1000, None), refund("re_1", "succeeded", 500, None)]);
    assert_eq!(reply(&refund_job, vec![already(), by_hand]).await, "done re_2");
    let under_way = list([refund("re_2", "succeeded", 1000, None), refund("re_1", "pending", 500, None)]);
    assert_eq!(reply(&refund_job, vec![already(), under_way]).await, "accepted re_1");
    let unknown = Job { money: Money::default(), ..job(JobKind::Refund) };
    let by_hand = list([refund("re_1", "succeeded", 1500, None)]);
    assert_eq!(reply(&unknown, vec![already(), by_hand]).await, "done re_1");
    assert_eq!(reply(&refund_job, vec![already(), list([refund("re_1", "failed", 1500, None)])]).await, "failed");
}

#[tokio::test]
async fn other_parameters_under_our_key_adopt_what_is_there() {
    let clash =
        error(400, "idempotency_error", "Keys for idempotent requests can only be used with the same parameters");
    let acts = vec![clash, list([refund("re_1", "pending", 1500, OURS)])];
    assert_eq!(reply(&job(JobKind::Refund), acts).await, "accepted re_1");
}

#[tokio::test]
async fn what_is_left_is_given_back_under_a_key_of_its_own() {
    for refusal in [
        error(400, "amount_too_large", "Refund amount is greater than charge amount"),
        error(400, "", "Refund amount (15.00) is greater than unrefunded amount on charge (11.00)"),
    ] {
        let part = list([refund("re_2", "failed", 900, None), refund("re_1", "succeeded", 400, None)]);
        let server = Scripted::start([refusal, part, ok(refund("re_3", "succeeded", 1100, OURS))]).await;
        assert_eq!(short(&client(&server).carry_out(&job(JobKind::Refund), None, false).await), "done re_3");
        let asked = server.asked();
        assert_eq!(server.lines(), [CREATE, LIST, CREATE]);
        assert_eq!(asked[2].headers["idempotency-key"], "holdfast-refund-stripe:pi_1-rest-1100");
        assert_eq!(asked[2].form()[1], ("amount".to_owned(), "1100".to_owned()));
        assert_eq!(asked[2].form()[3].1, OURS.unwrap(), "found again by the job's key");
    }
    let refusal = error(400, "amount_too_large", "greater than");
    assert_eq!(reply(&job(JobKind::Refund), vec![refusal, list([])]).await, "failed", "nobody gave a part back");
    let refusal = error(400, "amount_too_large", "greater than");
    let ours = list([refund("re_3", "succeeded", 1100, OURS), refund("re_1", "succeeded", 400, None)]);
    assert_eq!(reply(&job(JobKind::Refund), vec![refusal, ours]).await, "done re_3", "the rest, its answer lost");
}

#[tokio::test]
async fn after_a_day_the_list_is_asked_first() {
    let (reply, lines) = run(&old(), true, vec![list([refund("re_1", "succeeded", 1500, OURS)])]).await;
    assert_eq!((reply.as_str(), lines), ("done re_1", vec![LIST.to_owned()]));
    let other = refund("re_0", "succeeded", 400, Some("holdfast-refund-stripe:pi_1~2"));
    let (reply, lines) = run(&old(), true, vec![list([other]), ok(refund("re_1", "pending", 1500, OURS))]).await;
    assert_eq!((reply.as_str(), lines), ("accepted re_1", vec![LIST.to_owned(), CREATE.to_owned()]));
    let (reply, lines) = run(&old(), true, vec![error(500, "", "")]).await;
    assert_eq!((reply.as_str(), lines), ("later", vec![LIST.to_owned()]), "nothing is made that may be there");
    let (_, lines) = run(&old(), false, vec![ok(refund("re_1", "pending", 1500, OURS))]).await;
    assert_eq!(lines, [CREATE], "nobody has asked yet");
    let (_, lines) = run(&job(JobKind::Refund), true, vec![ok(refund("re_1", "pending", 1500, OURS))]).await;
    assert_eq!(lines, [CREATE], "the key still tells what became of it");
}

#[tokio::test]
async fn the_list_is_read_to_its_end() {
    let page = |refunds: Vec<Value>| ok(json!({"data": refunds, "has_more": true}));
    let acts = vec![page(vec![refund("re_9", "succeeded", 1, None)]), list([refund("re_1", "succeeded", 1500, OURS)])];
    let (reply, lines) = run(&old(), true, acts).await;
    assert_eq!((reply.as_str(), lines[1].as_str()), ("done re_1", format!("{LIST}&starting_after=re_9").as_str()));
    let unreadable = ok(json!({"data": [{"id": "re_1"}], "has_more": false}));
    assert_eq!(run(&old(), true, vec![unreadable]).await.0, "failed", "what cannot be read may be ours");
}

#[tokio::test]
async fn an_error_that_is_told_again_is_looked_behind() {
    let replayed = |status| {
        Act::Answer(
            status,
            vec![("idempotent-replayed", "true")],
            json!({"error": {"type": "api_error", "message": "x"}}),
        )
    };
    let acts = vec![replayed(500), list([refund("re_1", "succeeded", 1500, OURS)])];
    assert_eq!(run(&job(JobKind::Refund), true, acts).await.0, "done re_1", "it had been made all the same");

    for status in [500, 400] {
        let acts: Vec<Act> =
            [replayed(status)].into_iter().chain((status == 500).then(|| list([]))).chain([list([])]).collect();
        let acts = acts.into_iter().chain([ok(refund("re_1", "succeeded", 1500, OURS))]);
        let server = Scripted::start(acts).await;
        let again = Job { attempts: 7, ..job(JobKind::Refund) };
        assert_eq!(short(&client(&server).carry_out(&again, None, true).await), "done re_1");
        let last = server.asked().pop().unwrap();
        assert_eq!(last.headers["idempotency-key"], "holdfast-refund-stripe:pi_1-attempt-7");
    }

    let acts = vec![error(500, "", "fresh"), list([])];
    let (reply, lines) = run(&job(JobKind::Refund), true, acts).await;
    assert_eq!((reply.as_str(), lines), ("later", vec![CREATE.to_owned(), LIST.to_owned()]));
    let (reply, lines) = run(&job(JobKind::Refund), false, vec![error(500, "", "first")]).await;
    assert_eq!((reply.as_str(), lines), ("later", vec![CREATE.to_owned()]), "the same key, soon");
    let told_not_to = Act::Answer(500, vec![("stripe-should-retry", "false")], json!({}));
    let acts = vec![told_not_to, list([refund("re_1", "pending", 1500, OURS)])];
    assert_eq!(run(&job(JobKind::Refund), false, acts).await.0, "accepted re_1");
}

#[tokio::test]
async fn where_nothing_was_captured_nothing_can_be_any_more() {
    let none = || error(400, "", "This PaymentIntent (pi_1) does not have a successful charge to refund.");
    let refund = job(JobKind::Refund);
    assert_eq!(reply(&refund, vec![none(), state("canceled")]).await, "not captured");
    let (told, lines) = run(&refund, false, vec![none(), state("requires_capture"), state("canceled")]).await;
    assert_eq!((told.as_str(), lines[2].as_str()), ("done pi_1", "POST /v1/payment_intents/pi_1/cancel"));
    assert_eq!(reply(&refund, vec![none(), state("processing")]).await, "later 3600");
    assert_eq!(reply(&refund, vec![none(), state("requires_capture"), unexpected_state("succeeded")]).await, "later");
    assert_eq!(reply(&refund, vec![none(), error(500, "", "")]).await, "later");
}
