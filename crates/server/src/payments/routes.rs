//! `POST /v1/webhooks/{provider}`: the signature over the bytes as they came, then the facts, each in one durable step
//! of the engine, then the answer. What is told twice, or says nothing to us, is answered like everything else.

use super::receipt::{BadEvent, Received, adyen, signature, standard, stripe};
use crate::app::Shared;
use crate::body::RawBytes;
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response};
use axum::response::IntoResponse;
use holdfast_domain::{Command, Outcome, PaymentFact, Settlement};
use signature::BadSignature;

/// Receive what a payment provider says. The path names the provider: `stripe`, `adyen` or `standard`.
#[utoipa::path(post, path = "/v1/webhooks/{provider}", request_body(content = String, description = "as the provider sends it", content_type = "application/json"), responses(
    (status = 200, description = "stored, or nothing to store"),
    (status = 400, description = "bad_signature, bad_event"),
    (status = 413, description = "body_too_large"),
    (status = 404, description = "no secrets are configured for this provider"),
    (status = 503, description = "not stored: send it again")))]
pub(crate) async fn receive_webhook(
    State(app): State<Shared>,
    Path(provider): Path<String>,
    headers: HeaderMap,
    RawBytes(body): RawBytes,
) -> Result<Response<Body>, Problem> {
    let told = match provider.as_str() {
        "stripe" => from_stripe(&app, &headers, &body),
        "adyen" => from_adyen(&app, &body),
        "standard" => from_standard(&app, &headers, &body),
        _ => return Err(Problem::new("not_found", "the providers are stripe, adyen and standard")),
    };
    let received = told.inspect_err(|problem| {
        app.metrics.webhook(name(&provider), problem.code());
        tracing::warn!(provider, code = problem.code(), detail = problem.detail(), "a webhook was refused");
    })?;
    for event in received {
        if let Some(why) = event.ignored {
            app.metrics.webhook(name(&provider), "ignored");
            tracing::debug!(
                provider,
                event = event.event_id.as_str(),
                kind = event.event_type.as_str(),
                why,
                "ignored"
            );
        }
        for fact in event.facts {
            settle(&app, fact).await?;
        }
    }
    app.payments.wake.notify_waiters();
    Ok(if provider == "adyen" { "[accepted]".into_response() } else { Body::empty().into_response() })
}

/// The name again, as one that no client chose.
fn name(provider: &str) -> &'static str {
    match provider {
        "stripe" => "stripe",
        "adyen" => "adyen",
        _ => "standard",
    }
}

/// Decides what the fact does, and tells the log.
pub(super) async fn settle(app: &Shared, fact: PaymentFact) -> Result<Settlement, Problem> {
    let (payment, event) = (fact.payment.clone(), fact.event_id.clone());
    let provider = name(payment.provider.as_str());
    let Outcome::Settled(settlement) = app.submit(Command::Settle(Box::new(fact))).await? else {
        return Err(Problem::new("engine_unavailable", "the engine gave another answer than was asked for"));
    };
    let (outcome, order) = match &settlement {
        Settlement::Duplicate => ("duplicate", None),
        Settlement::Ignored => ("not_ours", None),
        Settlement::Recorded => ("recorded", None),
        Settlement::Unmatched => ("unmatched", None),
        Settlement::Confirmed(order) => (if order.late { "confirmed_late" } else { "confirmed" }, Some(order)),
        Settlement::Attached(order) => ("attached", Some(order)),
        Settlement::Reversal { .. } => ("reversal", None),
        Settlement::OrderRefunded(order) => ("order_refunded", Some(order)),
        Settlement::CaptureFailed(order) => ("capture_failed", Some(order)),
    };
    app.metrics.webhook(provider, outcome);
    let order = order.map(|order| order.order_id.as_str());
    tracing::info!(%payment, event = event.as_str(), outcome, order, "a payment was told of");
    Ok(settlement)
}

fn unconfigured(what: &str) -> Problem {
    Problem::new("not_found", format!("no webhook secrets are configured for this provider: set {what}"))
}

fn bad_signature(why: BadSignature) -> Problem {
    Problem::new("bad_signature", why.to_string())
}

fn bad_event(bad: BadEvent) -> Problem {
    Problem::new("bad_event", bad.detail)
}

/// A header's text; empty if it is missing, no text, or there twice.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let mut all = headers.get_all(name).iter();
    let first = all.next().filter(|_| all.next().is_none());
    first.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn from_stripe(app: &Shared, headers: &HeaderMap, body: &[u8]) -> Result<Vec<Received>, Problem> {
    let Some(keys) = &app.payments.stripe_keys else { return Err(unconfigured("HOLDFAST_STRIPE_WEBHOOK_SECRETS")) };
    let now = app.engine.time();
    signature::stripe(keys, header(headers, "stripe-signature"), body, now).map_err(bad_signature)?;
    Ok(vec![stripe::facts(body, app.payments.livemode).map_err(bad_event)?])
}

fn from_adyen(app: &Shared, body: &[u8]) -> Result<Vec<Received>, Problem> {
    let Some(keys) = &app.payments.adyen_keys else { return Err(unconfigured("HOLDFAST_ADYEN_WEBHOOK_SECRETS")) };
    let told = adyen::read(body).map_err(bad_event)?;
    signature::adyen(keys, &told.items).map_err(bad_signature)?;
    let (account, capture) = (app.payments.merchant_account.as_deref(), app.payments.capture);
    let received = told.items.iter().map(|item| item.received(told.live, account, capture));
    received.collect::<Result<_, _>>().map_err(bad_event)
}

fn from_standard(app: &Shared, headers: &HeaderMap, body: &[u8]) -> Result<Vec<Received>, Problem> {
    let Some(keys) = &app.payments.standard_keys else { return Err(unconfigured("HOLDFAST_STANDARD_WEBHOOK_SECRETS")) };
    let (id, time) = (header(headers, "webhook-id"), header(headers, "webhook-timestamp"));
    let now = app.engine.time();
    signature::standard(keys, id, time, header(headers, "webhook-signature"), body, now).map_err(bad_signature)?;
    Ok(vec![standard::facts(id, body).map_err(bad_event)?])
}
