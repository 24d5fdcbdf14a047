//! The provider's HTTP: who may call, which path is which operation, and connections that close without an answer.

use super::control;
use super::error::Refused;
use super::form::Form;
use super::script::Operation;
use super::state::{Call, Inner, Reply};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response};
use serde_json::Value;
use std::sync::Arc;

/// The largest body that is read.
const MAX_BODY: usize = 256 * 1024;

/// The answer is lost: the connection closes. It is an error because that is how the HTTP library is told.
#[derive(Debug)]
pub(super) struct Lost;

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer is lost on purpose")
    }
}

impl std::error::Error for Lost {}

/// One request.
pub(super) async fn serve(inner: Arc<Inner>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Lost> {
    let (head, body) = request.into_parts();
    // A client that breaks off hears nothing anyway.
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_| Lost)?.to_bytes();
    if head.uri.path().starts_with("/_control/") {
        return Ok(control::serve(&inner, &head, &body));
    }
    let request = inner.state.lock().books.id("req");
    let reply = match read(&head, &body) {
        Ok(call) => inner.call(call, &request),
        Err(refused) => Reply::Refused(refused),
    };
    match reply {
        Reply::Lost => Err(Lost),
        Reply::Refused(refused) => Ok(refusal(&refused, &request)),
        Reply::Answer { answer: kept, is_replayed, after } => {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            let mut answer = json(kept.status, kept.body);
            header(&mut answer, "request-id", &kept.request);
            if is_replayed {
                header(&mut answer, "idempotent-replayed", "true");
            }
            Ok(answer)
        }
    }
}

/// An answer in JSON.
pub(super) fn json(status: u16, body: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    header(&mut answer, "content-type", "application/json");
    answer
}

/// A refusal that is not kept.
pub(super) fn refusal(refused: &Refused, request: &str) -> Response<Full<Bytes>> {
    let mut answer = value(refused.status, &refused.body(request));
    header(&mut answer, "request-id", request);
    if let Some(seconds) = refused.retry_after {
        header(&mut answer, "retry-after", &seconds.to_string());
    }
    answer
}

/// As [`json`], of a value.
pub(super) fn value(status: u16, body: &Value) -> Response<Full<Bytes>> {
    json(status, body.to_string())
}

fn header(answer: &mut Response<Full<Bytes>>, name: &'static str, value: &str) {
    if let Ok(value) = value.parse() {
        answer.headers_mut().insert(name, value);
    }
}

fn text<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name).and_then(|value| value.to_str().ok())
}

fn read(head: &Parts, body: &[u8]) -> Result<Call, Refused> {
    let key = text(head, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    let is_secret = |key: &str| key.len() > 3 && (key.starts_with("sk_") || key.starts_with("rk_"));
    if !key.is_some_and(is_secret) {
        return Err(Refused::unauthorized());
    }
    let path = head.uri.path();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let Some((operation, id)) = route(&head.method, &parts) else {
        return Err(Refused::no_such_url(head.method.as_str(), path));
    };
    let form = if head.method == Method::GET {
        Form::parse(head.uri.query().unwrap_or_default().as_bytes())?
    } else {
        let kind = text(head, "content-type").unwrap_or_default();
        if !body.is_empty() && !kind.starts_with("application/x-www-form-urlencoded") {
            return Err(Refused::no_form(&format!("content-type is {kind:?}")));
        }
        Form::parse(body)?
    };
    let key = text(head, "idempotency-key").filter(|_| head.method == Method::POST).map(str::to_owned);
    let print = format!("{path} {}", form.print());
    Ok(Call { operation, id: id.to_owned(), form, key, print })
}

fn route<'a>(method: &Method, parts: &[&'a str]) -> Option<(Operation, &'a str)> {
    use Operation::{
        Cancel, Capture, Confirm, Create, CreateSession, Expire, ListRefunds, Refund, Retrieve, RetrieveRefund,
        RetrieveSession,
    };
    let is_get = *method == Method::GET;
    if !is_get && *method != Method::POST {
        return None;
    }
    Some(match (is_get, parts) {
        (false, ["v1", "payment_intents"]) => (Create, ""),
        (true, ["v1", "payment_intents", id]) => (Retrieve, id),
        (false, ["v1", "payment_intents", id, "confirm"]) => (Confirm, id),
        (false, ["v1", "payment_intents", id, "capture"]) => (Capture, id),
        (false, ["v1", "payment_intents", id, "cancel"]) => (Cancel, id),
        (false, ["v1", "checkout", "sessions"]) => (CreateSession, ""),
        (true, ["v1", "checkout", "sessions", id]) => (RetrieveSession, id),
        (false, ["v1", "checkout", "sessions", id, "expire"]) => (Expire, id),
        (false, ["v1", "refunds"]) => (Refund, ""),
        (true, ["v1", "refunds"]) => (ListRefunds, ""),
        (true, ["v1", "refunds", id]) => (RetrieveRefund, id),
        _ => return None,
    })
}
