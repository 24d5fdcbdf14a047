//! Errors as RFC 9457 problems: one place that gives every code its status and its title.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use holdfast_domain::{Refusal, Short, Sku};
use holdfast_engine::EngineError;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

/// Seconds after which a request that met a failure may be repeated.
const RETRY_AFTER: u64 = 1;

/// An answer that is not what was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    code: &'static str,
    detail: Cow<'static, str>,
    extra: Vec<(&'static str, Box<RawValue>)>,
    headers: Vec<(&'static str, HeaderValue)>,
}

/// Code, status, title. Every code that can be answered is here.
const CODES: &[(&str, u16, &str)] = &[
    ("invalid_request", 422, "The request is not valid"),
    ("body_too_large", 413, "The body is too large"),
    ("unsupported_media_type", 415, "The content type is not supported"),
    ("request_timeout", 408, "The request took too long to arrive"),
    ("bad_signature", 400, "The signature is not good"),
    ("bad_event", 400, "The event cannot be used"),
    ("unauthenticated", 401, "No valid API key"),
    ("forbidden", 403, "The API key may not do this"),
    ("not_found", 404, "There is no such thing"),
    ("method_not_allowed", 405, "The method is not allowed here"),
    ("idempotency_key_reused", 422, "The idempotency key was used for another request"),
    ("version_mismatch", 412, "The version is not the expected one"),
    ("already_confirmed", 409, "The order is confirmed already"),
    ("order_conflict", 409, "The order has a live hold for another cart"),
    ("hold_expired", 410, "The hold has lapsed or was released"),
    ("extension_limit", 409, "The hold would live too long"),
    ("unknown_sku", 422, "A SKU is unknown"),
    ("customer_required", 422, "A SKU is limited per customer, and no customer was named"),
    ("customer_limit", 409, "The customer's limit is reached"),
    ("sold_out", 409, "Not enough is available"),
    ("stock_gone", 409, "The hold had lapsed and its units are gone"),
    ("sku_in_other_sale", 409, "A SKU is in another sale"),
    ("sale_not_started", 403, "The sale has not started"),
    ("sale_ended", 410, "The sale is over"),
    ("sale_paused", 503, "The sale is paused"),
    ("queue_not_open", 403, "The queue is not open yet"),
    ("turn_missed", 410, "The turn has passed"),
    ("ticket_over", 410, "The ticket has ended"),
    ("enqueue_token_invalid", 401, "The enqueue token is not good"),
    ("rate_limited", 429, "Too many requests"),
    ("pass_missing", 401, "A pass of the waiting room is needed"),
    ("pass_invalid", 401, "The pass is not good"),
    ("pass_expired", 401, "The pass has expired"),
    ("pass_used", 401, "The pass has been used"),
    ("pass_scope", 403, "The pass is for another sale"),
    ("job_not_due", 409, "There is nothing to be tried again"),
    ("return_exceeds_order", 409, "More would be returned than was bought"),
    ("total_below_committed", 409, "The total is below what is held and sold"),
    ("insufficient_available", 409, "Not enough is available"),
    ("total_too_large", 409, "The total would be too large"),
    ("stock_in_use", 409, "Units of the SKU are held or sold"),
    ("auditing", 503, "The stock is being audited"),
    ("overloaded", 503, "Too many requests are waiting"),
    ("engine_unavailable", 503, "The engine is unavailable; nothing was done"),
    ("outcome_unknown", 503, "The outcome is unknown; repeat the same request, it is safe"),
    ("stopping", 503, "The server is stopping"),
];

impl Problem {
    pub(crate) fn new(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into(), extra: Vec::new(), headers: Vec::new() }
    }

    /// A 422 with the places that are wrong: JSON pointer and what is wrong there.
    pub(crate) fn invalid(errors: &[(String, String)]) -> Self {
        let detail = match errors {
            [(pointer, what)] if pointer.is_empty() => what.clone(),
            [(pointer, what)] => format!("{pointer}: {what}"),
            _ => format!("{} places are not valid; see errors", errors.len()),
        };
        let listed: Vec<Place<'_>> = errors.iter().map(|(pointer, detail)| Place { pointer, detail }).collect();
        Self::new("invalid_request", detail).with("errors", &listed)
    }

    /// The same with another member.
    pub(crate) fn with(mut self, name: &'static str, value: &(impl Serialize + ?Sized)) -> Self {
        match to_raw_value(value) {
            Ok(value) => self.extra.push((name, value)),
            Err(error) => tracing::error!(%error, name, "a member of a problem could not be written"),
        }
        self
    }

    /// The same with a header of its own. One that cannot be written is left out.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if !value.is_empty()
            && let Ok(value) = HeaderValue::from_str(value)
        {
            self.headers.push((name, value));
        }
        self
    }

    /// When the same request may do better: to the millisecond in the body, in whole seconds, up, as a header.
    pub(crate) fn retry_after_ms(self, ms: u64) -> Self {
        self.with("retry_after_ms", &ms).header("retry-after", &ms.div_ceil(1000).max(1).to_string())
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn status(&self) -> StatusCode {
        let known = CODES.iter().find(|(code, ..)| *code == self.code);
        known.and_then(|(_, status, _)| StatusCode::from_u16(*status).ok()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn title(&self) -> &'static str {
        CODES.iter().find(|(code, ..)| *code == self.code).map_or("Error", |(.., title)| title)
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("urn:holdfast:problem:{}", self.code))?;
        map.serialize_entry("title", self.title())?;
        map.serialize_entry("status", &self.status().as_u16())?;
        map.serialize_entry("code", self.code)?;
        map.serialize_entry("detail", &self.detail)?;
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let status = self.status();
        // Strings and numbers can always be written.
        let mut response = Response::new(Body::from(serde_json::to_vec(&self).unwrap_or_default()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // What is left of a body that is not read would be taken for the next request.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response
    }
}

/// A place in a request, and what is wrong there.
#[derive(serde::Serialize)]
struct Place<'a> {
    pointer: &'a str,
    detail: &'a str,
}

#[derive(serde::Serialize)]
struct ShortView<'a> {
    sku: &'a str,
    requested: u64,
    available: u64,
}

fn shorts(items: &[Short]) -> Vec<ShortView<'_>> {
    items.iter().map(|s| ShortView { sku: s.sku.as_str(), requested: s.requested, available: s.available }).collect()
}

fn names(skus: &[Sku]) -> String {
    skus.iter().map(|s| format!("{:?}", s.as_str())).collect::<Vec<_>>().join(", ")
}

fn list(skus: &[Sku]) -> Vec<&str> {
    skus.iter().map(Sku::as_str).collect()
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code();
        let new = |detail: &'static str| Self::new(code, detail);
        let told = |detail: String| Self::new(code, detail);
        match refusal {
            Refusal::NotFound => new("nothing is known under this name"),
            Refusal::KeyReused => new("use a fresh Idempotency-Key for another request"),
            Refusal::VersionMismatch(None) => new("the SKU does not exist, so it has no version"),
            Refusal::VersionMismatch(Some(version)) => {
                told(format!("the version is {version}; read the SKU again")).with("version", &version)
            }
            Refusal::AlreadyConfirmed => new("nothing was changed"),
            Refusal::OrderConflict => {
                new("the live hold was left as it is; change or release it, or use another order_id")
            }
            Refusal::HoldExpired => new("take a new hold"),
            Refusal::ExtensionLimit => new("the deadline was left as it is; take a new hold instead"),
            Refusal::UnknownSku(skus) => told(format!("unknown: {}", names(&skus))).with("skus", &list(&skus)),
            Refusal::CustomerRequired(skus) => {
                told(format!("tell customer_id for {}", names(&skus))).with("skus", &list(&skus))
            }
            Refusal::CustomerLimit { sku, limit, has, requested } => told(format!(
                "at most {limit} of {:?} per customer; {has} held or bought, {requested} asked",
                sku.as_str()
            ))
            .with("sku", sku.as_str())
            .with("limit_per_customer", &limit)
            .with("has", &has)
            .with("requested", &requested),
            Refusal::SoldOut { items, may_return } => {
                new("nothing was held").with("items", &shorts(&items)).with("may_return", &may_return)
            }
            Refusal::StockGone(items) => new("nothing was changed; send the money back").with("items", &shorts(&items)),
            Refusal::JobNotDue(state) => told(format!("it is {}", state.as_str())).with("state", state.as_str()),
            Refusal::ReturnExceedsOrder(sku) => told(format!("of {:?}", sku.as_str())).with("sku", sku.as_str()),
            Refusal::TotalBelowCommitted(committed) => {
                told(format!("{committed} units are held or sold")).with("committed", &committed)
            }
            Refusal::InsufficientAvailable(available) => {
                told(format!("{available} units are available")).with("available", &available)
            }
            Refusal::TotalTooLarge => told(format!("at most {} units in all", holdfast_domain::MAX_TOTAL)),
            Refusal::StockInUse { held, sold } => {
                told(format!("{held} held, {sold} sold")).with("held", &held).with("sold", &sold)
            }
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let (code, detail) = match &error {
            EngineError::Overloaded => ("overloaded", "nothing was done; repeat the request a little later"),
            EngineError::Unavailable(_) | EngineError::Corrupt(_) => {
                ("engine_unavailable", "repeat the request a little later")
            }
            EngineError::Auditing(_) => (
                "auditing",
                "the stock is being compared with the ledger; nothing was done; repeat the request a little later",
            ),
            EngineError::Unknown(_) => ("outcome_unknown", "it may have been done"),
        };
        // What is audited is told when it begins, not with every request.
        if !matches!(error, EngineError::Overloaded | EngineError::Auditing(_)) {
            tracing::error!(%error, code, "the engine failed");
        }
        Self::new(code, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_a_status_of_its_own() {
        let sku = Sku::new("a").unwrap();
        let all = [
            (Refusal::NotFound, 404),
            (Refusal::KeyReused, 422),
            (Refusal::VersionMismatch(None), 412),
            (Refusal::AlreadyConfirmed, 409),
            (Refusal::OrderConflict, 409),
            (Refusal::HoldExpired, 410),
            (Refusal::ExtensionLimit, 409),
            (Refusal::UnknownSku(vec![sku.clone()]), 422),
            (Refusal::CustomerRequired(vec![sku.clone()]), 422),
            (Refusal::CustomerLimit { sku: sku.clone(), limit: 1, has: 1, requested: 1 }, 409),
            (Refusal::SoldOut { items: vec![], may_return: false }, 409),
            (Refusal::StockGone(vec![]), 409),
            (Refusal::JobNotDue(holdfast_domain::JobState::Succeeded), 409),
            (Refusal::ReturnExceedsOrder(sku), 409),
            (Refusal::TotalBelowCommitted(1), 409),
            (Refusal::InsufficientAvailable(1), 409),
            (Refusal::TotalTooLarge, 409),
            (Refusal::StockInUse { held: 1, sold: 0 }, 409),
        ];
        for (refusal, status) in all {
            assert_eq!(Problem::from(refusal.clone()).status().as_u16(), status, "{refusal:?}");
        }
        let failure = Problem::from(EngineError::Unavailable("/secret/path: SQL".into()));
        assert_eq!(failure.status().as_u16(), 503);
        assert!(!failure.detail().contains("secret"), "causes are for logs only");
    }
}
