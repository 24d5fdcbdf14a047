//! What shoppers ask of a room, passed on to the node that keeps it.

use super::caller::Caller;
use super::keeper::Kept;
use crate::app::App;
use crate::config::Role;
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

/// The word that nodes know each other by.
static NODE: HeaderName = HeaderName::from_static("x-holdfast-node");
static CLIENT: HeaderName = HeaderName::from_static("x-holdfast-client");
const PATIENCE: Duration = Duration::from_secs(5);
/// Requests to rooms are small.
const LIMIT: usize = 64 << 10;

/// A client that follows nothing: what the keeper answers is answered.
static HTTP: LazyLock<Option<reqwest::Client>> = LazyLock::new(|| {
    let tls = holdfast_engine::tls::client(None).ok()?;
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls).redirect(reqwest::redirect::Policy::none());
    client.no_proxy().connect_timeout(Duration::from_secs(1)).build().ok()
});

/// Whether a path asks something of a room.
fn is_for_room(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').split('/');
    matches!(
        (parts.next(), parts.next(), parts.next(), parts.next()),
        (Some("wait"), Some(_), ..) | (Some("v1"), Some("sales"), Some(_), Some("queue"))
    )
}

/// Who asks, if another node says it and shows the word.
pub(crate) fn told_caller(app: &App, headers: &HeaderMap) -> Option<Caller> {
    let word = headers.get(&NODE)?;
    if !app.admission.keeper.is_node(word.as_bytes()) {
        return None;
    }
    let mut told = headers.get(&CLIENT)?.to_str().ok()?.split(' ');
    let address: IpAddr = told.next()?.parse().ok()?;
    let role = told.next().and_then(Role::parse);
    Some(Caller { role, address, is_https: told.next() == Some("https") })
}

/// The keeper's answer, where the request is for a room that another node keeps. Else the request, as it was.
pub(crate) async fn forward(app: &App, request: Request, caller: &Caller) -> Result<Response<Body>, Request> {
    if app.admission.keeper.is_alone() || !is_for_room(request.uri().path()) {
        return Err(request);
    }
    match app.admission.keeper.kept() {
        Kept::Here => Err(request),
        Kept::There { url: Some(url), secret } if !request.headers().contains_key(&NODE) => {
            Ok(pass_on(&url, &secret, request, caller)
                .await
                .unwrap_or_else(axum::response::IntoResponse::into_response))
        }
        Kept::There { url: None, .. } => {
            let detail = "another node keeps the waiting rooms, and does not say where it is: set HOLDFAST_ADVERTISE";
            Ok(axum::response::IntoResponse::into_response(Problem::new("overloaded", detail)))
        }
        Kept::Nobody | Kept::There { .. } => Ok(axum::response::IntoResponse::into_response(between())),
    }
}

fn between() -> Problem {
    Problem::new("overloaded", "the waiting room is being taken over by another node; every place is kept")
}

async fn pass_on(url: &str, secret: &str, request: Request, caller: &Caller) -> Result<Response<Body>, Problem> {
    let client = HTTP.as_ref().ok_or_else(between)?;
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let whole = tokio::time::timeout(PATIENCE, Limited::new(body, LIMIT).collect()).await;
    let whole = whole.map_err(|_| Problem::new("request_timeout", "send the whole request faster"))?;
    let body = whole.map_err(|_| Problem::new("body_too_large", "at most 64 KiB"))?;
    let mut headers = parts.headers;
    for hop in
        [header::CONNECTION, header::HOST, header::TRANSFER_ENCODING, header::CONTENT_LENGTH, header::AUTHORIZATION]
    {
        headers.remove(hop);
    }
    let role = caller.role.map_or("-", Role::as_str);
    let proto = if caller.is_https { "https" } else { "http" };
    let told = HeaderValue::from_str(&format!("{} {role} {proto}", caller.address)).map_err(|_| between())?;
    headers.insert(CLIENT.clone(), told);
    headers.insert(NODE.clone(), HeaderValue::from_str(secret).map_err(|_| between())?);
    let is_stream = path.split('?').next().is_some_and(|path| path.ends_with("/events"));
    let mut asked = client.request(parts.method, format!("{url}{path}")).headers(headers).body(body.to_bytes());
    if !is_stream {
        asked = asked.timeout(PATIENCE);
    }
    let answer = asked.send().await.map_err(|error| {
        tracing::debug!(%error, "the node that keeps the waiting rooms does not answer");
        between()
    })?;
    let status = StatusCode::from_u16(answer.status().as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut headers = answer.headers().clone();
    for hop in [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH] {
        headers.remove(hop);
    }
    let body = if is_stream {
        let pieces = futures_util::stream::unfold(answer, |mut answer| async move {
            let piece = answer.chunk().await.transpose()?;
            Some((piece, answer))
        });
        Body::from_stream(pieces)
    } else {
        Body::from(answer.bytes().await.map_err(|_| between())?)
    };
    let mut response = Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    Ok(response)
}
