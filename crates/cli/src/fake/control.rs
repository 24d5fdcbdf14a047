//! What only a test can do: pay as a shopper, settle refunds, tell what goes wrong, read the books. The real provider
//! has none of it, so nothing that is under test may call it.

use super::error::Refused;
use super::http::{refusal, value};
use super::objects::RefundStatus;
use super::script::{Ending, Script};
use super::state::Inner;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::http::request::Parts;
use hyper::{Method, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pay {
    payment_method: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settle {
    status: Ending,
    failure_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    url: Option<String>,
    secrets: Option<Vec<String>>,
    attempts: Option<u32>,
    hold: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Release {
    reversed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resend {
    event: String,
}

/// One call of the control API.
pub(super) fn serve(inner: &Arc<Inner>, head: &Parts, body: &[u8]) -> Response<Full<Bytes>> {
    let parts: Vec<&str> = head.uri.path().trim_start_matches("/_control/").split('/').collect();
    match answer(inner, &head.method, &parts, body) {
        Ok(Some(body)) => value(200, &body),
        Ok(None) => value(404, &json!({"error": {"message": "There is no such control; see docs/drill.md."}})),
        Err(Fault::Body(why)) => value(400, &json!({"error": {"message": why}})),
        Err(Fault::Refused(refused)) => {
            let request = inner.state.lock().books.id("req");
            refusal(&refused, &request)
        }
    }
}

enum Fault {
    Body(String),
    Refused(Refused),
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|e| Fault::Body(e.to_string()))
}

fn answer(inner: &Arc<Inner>, method: &Method, parts: &[&str], body: &[u8]) -> Result<Option<Value>, Fault> {
    let done = json!({"done": true});
    Ok(Some(match (method.as_str(), parts) {
        ("GET", ["books"]) => books(inner),
        ("GET", ["events"]) => inner.state.lock().courier.view(),
        ("POST", ["script"]) => {
            let script = Script::parse(body).map_err(Fault::Body)?;
            let mut state = inner.state.lock();
            state.script = script;
            state.down_until = None;
            done
        }
        ("POST", ["sessions", id, "pay"]) => {
            let pay: Pay = read(body)?;
            inner.change(|books| books.pay_session(id, &pay.payment_method))?
        }
        ("POST", ["refunds", id]) => {
            let Settle { status, failure_reason } = read(body)?;
            let status = match status {
                Ending::Succeeded => RefundStatus::Succeeded,
                Ending::Failed => RefundStatus::Failed,
            };
            inner.change(|books| books.settle_refund(id, status, failure_reason.as_deref()))?
        }
        ("POST", ["payment_intents", id, "lapse"]) => inner.change(|books| books.lapse(id))?,
        ("POST", ["payment_intents", id, "dispute"]) => inner.change(|books| books.dispute(id))?,
        ("POST", ["webhooks"]) => {
            change_webhooks(inner, read(body)?)?;
            done
        }
        ("POST", ["webhooks", "release"]) => {
            let Release { reversed } = read(body)?;
            json!({"released": inner.state.lock().release(inner, reversed)})
        }
        ("POST", ["webhooks", "resend"]) => {
            let Resend { event } = read(body)?;
            if !inner.state.lock().resend(inner, &event) {
                return Err(Refused::no_such("event", &event, "event").into());
            }
            done
        }
        ("DELETE", ["keys"]) => {
            inner.state.lock().keys.clear();
            done
        }
        ("DELETE", ["data"]) => {
            inner.state.lock().forget();
            done
        }
        _ => return Ok(None),
    }))
}

/// Everything that was made, and how many events are still on their way.
pub(super) fn books(inner: &Arc<Inner>) -> Value {
    let state = inner.state.lock();
    let mut books = state.books.view();
    books["undelivered_events"] = state.courier.undelivered().into();
    books
}

fn change_webhooks(inner: &Arc<Inner>, change: Change) -> Result<(), Fault> {
    if let Some(url) = &change.url {
        super::check_url(url).map_err(Fault::Body)?;
    }
    let mut state = inner.state.lock();
    let webhooks = &mut state.courier.webhooks;
    webhooks.url = change.url.or_else(|| webhooks.url.take());
    webhooks.secrets = change.secrets.unwrap_or_else(|| std::mem::take(&mut webhooks.secrets));
    webhooks.attempts = change.attempts.unwrap_or(webhooks.attempts);
    webhooks.hold = change.hold.unwrap_or(webhooks.hold);
    Ok(())
}
