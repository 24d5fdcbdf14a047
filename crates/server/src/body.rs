//! Reading requests: strict JSON, strict queries, bounded bodies. What is wrong is told with its place.

use crate::app::Shared;
use crate::problem::Problem;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// The most bytes of a JSON body.
pub(crate) const BODY_LIMIT: usize = 256 << 10;

/// The whole body of a request that must carry JSON.
pub(crate) struct JsonBytes(pub(crate) Vec<u8>);

impl FromRequest<Shared> for JsonBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        json_within(request, app.config.request_timeout).await.map(Self)
    }
}

/// The whole body of a request that must carry JSON, if it comes in time.
pub(crate) async fn json_within(request: Request, time: Duration) -> Result<Vec<u8>, Problem> {
    if !has_json_type(request.headers()) {
        return Err(Problem::new("unsupported_media_type", "send Content-Type: application/json"));
    }
    read_all(request, time).await
}

/// The whole body of a request that may carry JSON; no bytes at all are fine, whatever the content type.
pub(crate) struct MaybeJsonBytes(pub(crate) Option<Vec<u8>>);

impl FromRequest<Shared> for MaybeJsonBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let is_json = has_json_type(request.headers());
        let bytes = read_all(request, app.config.request_timeout).await?;
        match (bytes.is_empty(), is_json) {
            (true, _) => Ok(Self(None)),
            (false, true) => Ok(Self(Some(bytes))),
            (false, false) => Err(Problem::new("unsupported_media_type", "send Content-Type: application/json")),
        }
    }
}

/// The whole body as it came, whatever it says it is.
pub(crate) struct RawBytes(pub(crate) Vec<u8>);

impl FromRequest<Shared> for RawBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        read_all(request, app.config.request_timeout).await.map(Self)
    }
}

fn has_json_type(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

async fn read_all(request: Request, within: Duration) -> Result<Vec<u8>, Problem> {
    let too_large = || Problem::new("body_too_large", format!("at most {BODY_LIMIT} bytes"));
    let announced = request.headers().get(axum::http::header::CONTENT_LENGTH);
    let announced = announced.and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if announced.is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large());
    }
    let whole = Limited::new(request.into_body(), BODY_LIMIT).collect();
    let Ok(whole) = tokio::time::timeout(within, whole).await else {
        return Err(Problem::new("request_timeout", "send the whole request faster"));
    };
    match whole {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::new("invalid_request", "the body could not be read to its end")),
    }
}

/// A JSON object. By itself serde would take a list as well, its values in the order in which the members are declared.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Object)
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// Parses a JSON object. Whatever is wrong is answered with a JSON pointer to it.
pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    match serde_json::from_slice(bytes) {
        Ok(Object(value)) => Ok(value),
        Err(_) => Err(explain::<Object<T>>(bytes)),
    }
}

/// The slow path: parses again to find the place.
fn explain<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let (path, error) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => match reader.end() {
            Ok(()) => (String::new(), "the request is not valid".to_owned()),
            Err(error) => (String::new(), error.to_string()),
        },
        Err(error) => (pointer(error.path()), error.inner().to_string()),
    };
    // "missing field `x`" and "unknown field `x`" name a member of the place that the path leads to.
    let named = ["missing field `", "unknown field `", "duplicate field `"];
    let member = named.iter().find_map(|start| error.strip_prefix(start)).and_then(|rest| rest.split('`').next());
    let path = match member {
        Some(member) if !path.ends_with(&format!("/{}", escape(member))) => format!("{path}/{}", escape(member)),
        _ => path,
    };
    Problem::invalid(&[(path, error)])
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.extend(["/", &index.to_string()]),
            Segment::Map { key: member } | Segment::Enum { variant: member } => pointer.extend(["/", &escape(member)]),
            Segment::Unknown => {}
        }
    }
    pointer
}

fn escape(member: &str) -> String {
    member.replace('~', "~0").replace('/', "~1")
}

/// The parameters of a path, percent-decoded.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Path::from_request_parts(parts, state).await;
        found.map(|axum::extract::Path(value)| Self(value)).map_err(|e| Problem::new("invalid_request", e.body_text()))
    }
}

/// A query string of known members only.
pub(crate) struct StrictQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for StrictQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        if !is_utf8_when_decoded(query) {
            return Err(Problem::new("invalid_request", "the query is not UTF-8"));
        }
        serde_urlencoded::from_str(query)
            .map(Self)
            .map_err(|e| Problem::new("invalid_request", format!("in the query: {e}")))
    }
}

/// The decoder of queries puts a replacement for bytes that are not UTF-8, and so would look for another name.
fn is_utf8_when_decoded(query: &str) -> bool {
    let mut bytes = Vec::with_capacity(query.len());
    let mut rest = query.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// Collects everything that is wrong with a request before it is refused.
#[derive(Default)]
pub(crate) struct Findings(Vec<(String, String)>);

impl Findings {
    /// The value, or a note of what is wrong with it.
    pub(crate) fn take<T, E: std::fmt::Display>(
        &mut self,
        pointer: impl Into<String>,
        value: Result<T, E>,
    ) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.push((pointer.into(), error.to_string()));
                None
            }
        }
    }

    /// Nothing if all was well.
    pub(crate) fn done(&self) -> Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(Problem::invalid(&self.0)) }
    }
}
