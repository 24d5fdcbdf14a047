//! The page of the waiting room, for browsers: what the JSON calls say, in words, and the same steps as forms.

use crate::admission::page::{
    self, Room, StockState, TicketState, Trouble, Visitor, WaitPage, is_a_way_back, way_back,
};
use crate::admission::{Caller, Claimed, Place, Queue, cookie_of, set_cookie, stock_word};
use crate::app::{App, Shared};
use crate::body::{Path, RawBytes};
use crate::problem::Problem;
use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use holdfast_admission::room;
use holdfast_engine::clock::random_token;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;

/// What must not stand in an address as it is.
const UNSAFE: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}').add(b'\\').add(b'^').add(b'|');

/// What the page's forms send.
#[derive(Default, Deserialize)]
struct Form {
    return_url: Option<String>,
    ticket: Option<String>,
}

/// All routes.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/wait/{sale}", get(show))
        .route("/wait/{sale}/join", post(join))
        .route("/wait/{sale}/claim", post(claim))
        .route("/wait/{sale}/leave", post(leave))
}

/// A page about one shopper at one moment.
fn document(body: String, policy: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// A way back that is allowed: a path of this host, or an origin that the operator named.
fn allowed<'a>(app: &App, url: Option<&'a str>) -> Option<&'a str> {
    let url = url.filter(|url| is_a_way_back(url))?;
    let is_named = |origin: &String| url.strip_prefix(origin.trim_end_matches('/')).is_some_and(starts_a_path);
    (url.starts_with('/') || app.config.return_origins.iter().any(is_named)).then_some(url)
}

/// `https://shop.example` is no prefix of `https://shop.example.evil`.
fn starts_a_path(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['/', '?', '#'])
}

async fn show(
    State(app): State<Shared>,
    Path(sale): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let queue = Queue::of(&app, &sale)?;
    let ticket = cookie_of(&headers, &sale);
    // Other parameters are the shop's own and left alone.
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(&query.unwrap_or_default()).unwrap_or_default();
    let return_url = pairs.iter().find(|(name, _)| name == "return_url").map(|(_, url)| url.as_str());
    Ok(page_of(&app, &queue, ticket, return_url, None))
}

/// The page as it is for whoever has this ticket, or none.
fn page_of(
    app: &App,
    queue: &Queue<'_>,
    ticket: Option<&str>,
    return_url: Option<&str>,
    trouble: Option<Trouble>,
) -> Response<Body> {
    let place = ticket.map(|ticket| queue.see(ticket));
    let text = place.as_ref().and_then(|place| place.as_ref().ok()).map(|place| place.ticket.to_string());
    let (_, room, _) = queue.counts();
    let now = app.engine.time();
    let sale = &queue.sale;
    let commitment = sale.commitment();
    let is_draw = sale.room.as_ref().is_some_and(crate::admission::RoomBody::is_draw) && sale.starts_at.is_some();
    let prequeue = sale.room.as_ref().map_or(0, |room| room.prequeue_seconds);
    let nonce = random_token();
    let visitor = match &place {
        None => Visitor::New,
        Some(Err(_)) => Visitor::Lost,
        Some(Ok(place)) if place.view.state == room::TicketState::Left => Visitor::Left,
        Some(Ok(place)) => Visitor::Holding(holder(place, text.as_deref().unwrap_or_default())),
    };
    let page = WaitPage {
        sale: &sale.name,
        title: sale.title(),
        brand: None,
        visitor,
        room: room_of(room),
        opens_at: sale.starts_at.map(|start| start.millis() - i64::from(prequeue) * 1000),
        starts_at: sale.starts_at.map(holdfast_domain::Time::millis),
        commitment: is_draw.then_some(&*commitment),
        return_url: allowed(app, return_url),
        now: now.millis(),
        nonce: &nonce,
        events: false,
        custom_css: app.config.waiting_room_css.as_deref(),
        trouble,
    };
    document(page.render(), &page.policy())
}

fn holder<'a>(place: &Place, text: &'a str) -> page::Ticket<'a> {
    let view = &place.view;
    page::Ticket {
        id: text,
        state: match view.state {
            room::TicketState::Prequeue => TicketState::Prequeue,
            room::TicketState::Waiting => TicketState::Waiting,
            room::TicketState::Turn => TicketState::Turn,
            room::TicketState::Admitted => TicketState::Admitted,
            room::TicketState::Done => TicketState::Done,
            room::TicketState::Expired => TicketState::Expired,
            room::TicketState::Left => TicketState::Left,
        },
        position: view.position,
        ahead: view.position.map(|_| view.ahead),
        waiting_total: view.waiting_total,
        eta: view.eta.known.then_some((view.eta.p50_s, view.eta.p90_s)),
        stock: match stock_word(place.stock) {
            "low" => StockState::Low,
            "held" => StockState::Held,
            "sold_out" => StockState::SoldOut,
            _ => StockState::Available,
        },
        likely_gone: place.likely_gone,
        claim_by: view.claim_by.map(holdfast_domain::Time::millis),
        expires_at: view.session_until.map(holdfast_domain::Time::millis),
        poll_after_ms: view.poll_after_ms,
    }
}

fn room_of(room: room::RoomState) -> Room {
    match room {
        room::RoomState::Prequeue => Room::Prequeue,
        room::RoomState::Open => Room::Open,
        room::RoomState::Paused => Room::Paused,
        room::RoomState::Held => Room::Held,
        room::RoomState::SoldOut => Room::SoldOut,
        room::RoomState::Closed => Room::Closed,
    }
}

fn read_form(bytes: &[u8]) -> Form {
    let form: Form = serde_urlencoded::from_bytes(bytes).unwrap_or_default();
    Form { ticket: form.ticket.filter(|ticket| !ticket.is_empty()), ..form }
}

/// Back to the page, so that a reload asks and does not send the form again.
fn see_page(sale: &str, return_url: Option<&str>) -> Response<Body> {
    let mut to = format!("/wait/{sale}");
    if let Some(url) = return_url {
        let query = serde_urlencoded::to_string([("return_url", url)]).unwrap_or_default();
        to = format!("{to}?{query}");
    }
    see_other(&to)
}

fn see_other(to: &str) -> Response<Body> {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(to) = HeaderValue::from_str(&utf8_percent_encode(to, UNSAFE).to_string()) {
        headers.insert(header::LOCATION, to);
    }
    response
}

async fn join(
    State(app): State<Shared>,
    Path(sale): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    RawBytes(bytes): RawBytes,
) -> Result<Response<Body>, Problem> {
    let form = read_form(&bytes);
    let queue = Queue::of(&app, &sale)?;
    let known = cookie_of(&headers, &sale);
    let return_url = allowed(&app, form.return_url.as_deref());
    match queue.join(&caller, None, known) {
        Ok((place, _)) => {
            let mut response = see_page(&sale, return_url);
            let cookie = set_cookie(&sale, &place.ticket.to_string(), caller.is_https);
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            Ok(response)
        }
        Err(problem) if problem.status() == StatusCode::TOO_MANY_REQUESTS => {
            Ok(page_of(&app, &queue, known, return_url, Some(Trouble::Busy)))
        }
        Err(problem) if problem.status().is_client_error() => Ok(see_page(&sale, return_url)),
        Err(problem) => Err(problem),
    }
}

async fn claim(
    State(app): State<Shared>,
    Path(sale): Path<String>,
    headers: HeaderMap,
    RawBytes(bytes): RawBytes,
) -> Result<Response<Body>, Problem> {
    let form = read_form(&bytes);
    let queue = Queue::of(&app, &sale)?;
    let return_url = allowed(&app, form.return_url.as_deref());
    let ticket = form.ticket.as_deref().or(cookie_of(&headers, &sale));
    match ticket.map(|ticket| queue.claim(ticket)) {
        Some(Ok(Claimed::Pass { pass, .. })) => {
            let to = return_url.and_then(|url| way_back(url, &pass));
            Ok(to.map_or_else(|| see_page(&sale, None), |to| see_other(&to)))
        }
        Some(Ok(Claimed::NotYet(_))) => Ok(page_of(&app, &queue, ticket, return_url, Some(Trouble::NotYet))),
        Some(Err(problem)) if problem.status().is_server_error() => Err(problem),
        Some(Err(_)) | None => Ok(see_page(&sale, return_url)),
    }
}

async fn leave(
    State(app): State<Shared>,
    Path(sale): Path<String>,
    headers: HeaderMap,
    RawBytes(bytes): RawBytes,
) -> Result<Response<Body>, Problem> {
    let form = read_form(&bytes);
    let queue = Queue::of(&app, &sale)?;
    if let Some(ticket) = form.ticket.as_deref().or(cookie_of(&headers, &sale)) {
        // Whoever is gone already has left as well.
        match queue.leave(ticket).await {
            Err(problem) if problem.status().is_server_error() => return Err(problem),
            _ => {}
        }
    }
    Ok(see_page(&sale, allowed(&app, form.return_url.as_deref())))
}
