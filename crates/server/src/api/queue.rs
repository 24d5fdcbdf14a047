//! The waiting room over HTTP. Shoppers need no key: their ticket is theirs alone.

use crate::admission::{
    Caller, Claimed, Place, Queue, cookie_of, room_word, set_cookie, state_word, stock_word, watch_place,
};
use crate::app::{Shared, json};
use crate::body::{MaybeJsonBytes, Path, parse};
use crate::problem::Problem;
use crate::view::Moment;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// Who joins.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = JoinRequest)]
pub(super) struct JoinBody<'a> {
    /// Whoever joins again with the same identity has the same ticket. Only callers with a key may name one.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    identity: Option<Cow<'a, str>>,
    /// The same, signed by the shop: a JWT with HS256, with the sale as `aud`, the identity as `sub`, and `exp`.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    enqueue_token: Option<Cow<'a, str>>,
}

/// How long it may take, from how fast the room has really moved.
#[derive(Serialize, ToSchema)]
#[schema(as = Eta)]
struct EtaView {
    /// False until enough has moved to tell.
    known: bool,
    /// Seconds, as likely too many as too few.
    p50_s: Option<u64>,
    /// Seconds, a careful guess.
    p90_s: Option<u64>,
}

/// What is left of the sale.
#[derive(Serialize, ToSchema)]
#[schema(as = SaleStock)]
struct StockView {
    /// `held`: everything is reserved, some may return.
    #[schema(examples("available", "low", "held", "sold_out"))]
    state: &'static str,
    likely_gone_before_turn: bool,
}

/// Where a ticket stands.
#[derive(Serialize, ToSchema)]
#[schema(as = Ticket)]
pub(crate) struct TicketView {
    ticket: String,
    #[schema(examples("prequeue", "waiting", "turn", "admitted", "done", "expired", "left"))]
    state: &'static str,
    /// From 1, among those present; null before the start and after the turn.
    position: Option<u64>,
    /// How many are before it; null where there is no position.
    ahead: Option<u64>,
    waiting_total: u64,
    eta: EtaView,
    stock: StockView,
    starts_at: Option<Moment>,
    /// Until when the turn can be claimed.
    claim_by: Option<Moment>,
    /// Until when the pass is good.
    expires_at: Option<Moment>,
    /// When to ask again.
    poll_after_ms: u64,
    #[schema(examples("prequeue", "open", "paused", "held", "sold_out", "closed"))]
    room: &'static str,
}

impl TicketView {
    pub(crate) fn new(place: &Place, queue: &Queue<'_>) -> Self {
        let view = &place.view;
        let eta = view.eta;
        Self {
            ticket: place.ticket.to_string(),
            state: state_word(view.state),
            position: view.position,
            ahead: view.position.map(|_| view.ahead),
            waiting_total: view.waiting_total,
            eta: EtaView {
                known: eta.known,
                p50_s: eta.known.then_some(eta.p50_s),
                p90_s: eta.known.then_some(eta.p90_s),
            },
            stock: StockView { state: stock_word(place.stock), likely_gone_before_turn: place.likely_gone },
            starts_at: queue.sale.starts_at.map(Moment),
            claim_by: view.claim_by.map(Moment),
            expires_at: view.session_until.map(Moment),
            poll_after_ms: view.poll_after_ms,
            room: room_word(view.room),
        }
    }
}

/// The room in numbers.
#[derive(Serialize, ToSchema)]
#[schema(as = Queue)]
pub(super) struct BoardView<'a> {
    sale: &'a str,
    #[schema(examples("prequeue", "open", "paused", "held", "sold_out", "closed"))]
    room: &'static str,
    prequeue: u64,
    waiting: u64,
    turn: u64,
    admitted: u64,
    /// Turns a second, as measured.
    rate: f64,
    stock: &'static str,
    starts_at: Option<Moment>,
    draw_commitment: String,
}

/// A pass to the shop.
#[derive(Serialize, ToSchema)]
#[schema(as = Pass)]
struct PassView<'a> {
    /// Goes with `POST /v1/holds` as `Waiting-Room-Pass`. Its first use binds it to that order.
    pass: &'a str,
    expires_at: Moment,
}

/// An answer that is about one shopper at one moment.
fn no_store(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Join the queue of a sale. Whoever has a place already is told that one.
#[utoipa::path(post, path = "/v1/sales/{sale}/queue", params(("sale" = String, Path)), request_body = Option<JoinBody>, responses(
    (status = 201, description = "A new place", body = TicketView), (status = 200, description = "The same place", body = TicketView),
    (status = 403, description = "queue_not_open"), (status = 410, description = "sale_ended"), (status = 429, description = "rate_limited"),
    (status = 404, description = "not_found")))]
pub(super) async fn join_queue(
    State(app): State<Shared>,
    Path(sale): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    MaybeJsonBytes(bytes): MaybeJsonBytes,
) -> Result<Response<Body>, Problem> {
    let body: JoinBody<'_> = bytes.as_deref().map(parse).transpose()?.unwrap_or_default();
    let queue = Queue::of(&app, &sale)?;
    let who = app.admission.who(&queue, &caller, body.identity.as_deref(), body.enqueue_token.as_deref())?;
    let known = cookie_of(&headers, &sale).filter(|_| who.is_none());
    let (place, is_new) = queue.join(&caller, who.as_deref(), known)?;
    let mut response = json(if is_new { 201 } else { 200 }, &TicketView::new(&place, &queue));
    let text = place.ticket.to_string();
    let headers = response.headers_mut();
    headers.insert(header::SET_COOKIE, set_cookie(&sale, &text, caller.is_https));
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/sales/{sale}/queue/{text}")) {
        headers.insert(header::LOCATION, location);
    }
    Ok(no_store(response))
}

/// The room in numbers.
#[utoipa::path(get, path = "/v1/sales/{sale}/queue", params(("sale" = String, Path)), responses(
    (status = 200, body = BoardView), (status = 404, description = "not_found")))]
pub(super) async fn get_queue(State(app): State<Shared>, Path(sale): Path<String>) -> Result<Response<Body>, Problem> {
    let queue = Queue::of(&app, &sale)?;
    let (counts, room, stock) = queue.counts();
    let view = BoardView {
        sale: &queue.sale.name,
        room: room_word(room),
        prequeue: counts.prequeue,
        waiting: counts.waiting + counts.aside,
        turn: counts.turn,
        admitted: counts.admitted,
        rate: counts.rate,
        stock: stock_word(stock),
        starts_at: queue.sale.starts_at.map(Moment),
        draw_commitment: queue.sale.commitment(),
    };
    let mut response = json(200, &view);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=1"));
    Ok(response)
}

/// Where a ticket stands. Asking counts as being there; ask again after `poll_after_ms`.
#[utoipa::path(get, path = "/v1/sales/{sale}/queue/{ticket}", params(("sale" = String, Path), ("ticket" = String, Path)), responses(
    (status = 200, body = TicketView), (status = 404, description = "not_found"), (status = 410, description = "ticket_over")))]
pub(super) async fn get_ticket(
    State(app): State<Shared>,
    Path((sale, ticket)): Path<(String, String)>,
) -> Result<Response<Body>, Problem> {
    let queue = Queue::of(&app, &sale)?;
    let place = queue.see(&ticket)?;
    Ok(no_store(json(200, &TicketView::new(&place, &queue))))
}

/// Take the turn: a pass. Asking again gives the same pass.
#[utoipa::path(post, path = "/v1/sales/{sale}/queue/{ticket}/claim", params(("sale" = String, Path), ("ticket" = String, Path)), responses(
    (status = 200, body = PassView), (status = 202, description = "Not yet", body = TicketView),
    (status = 410, description = "turn_missed, ticket_over"), (status = 404, description = "not_found")))]
pub(super) async fn claim_turn(
    State(app): State<Shared>,
    Path((sale, ticket)): Path<(String, String)>,
) -> Result<Response<Body>, Problem> {
    let queue = Queue::of(&app, &sale)?;
    Ok(no_store(match queue.claim(&ticket)? {
        Claimed::Pass { pass, expires_at } => json(200, &PassView { pass: &pass, expires_at: Moment(expires_at) }),
        Claimed::NotYet(place) => json(202, &TicketView::new(&place, &queue)),
    }))
}

/// Give a place up.
#[utoipa::path(delete, path = "/v1/sales/{sale}/queue/{ticket}", params(("sale" = String, Path), ("ticket" = String, Path)), responses(
    (status = 204, description = "Left"), (status = 404, description = "not_found")))]
pub(super) async fn leave_queue(
    State(app): State<Shared>,
    Path((sale, ticket)): Path<(String, String)>,
) -> Result<Response<Body>, Problem> {
    Queue::of(&app, &sale)?.leave(&ticket).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A ticket's way as it happens (`text/event-stream`). Ends when there is nothing more to tell; asking now and then does as
/// well.
#[utoipa::path(get, path = "/v1/sales/{sale}/queue/{ticket}/events", params(("sale" = String, Path), ("ticket" = String, Path)), responses(
    (status = 200, body = String, content_type = "text/event-stream"), (status = 503, description = "overloaded: ask now and then instead"),
    (status = 404, description = "not_found")))]
pub(super) async fn watch_ticket(
    State(app): State<Shared>,
    Path((sale, ticket)): Path<(String, String)>,
) -> Result<Response<Body>, Problem> {
    watch_place(app, sale, ticket)
}

/// The public keys of passes, as a JSON Web Key Set.
#[utoipa::path(get, path = "/.well-known/jwks.json", responses((status = 200, description = "The keys")))]
pub(super) async fn jwks(State(app): State<Shared>) -> Result<Response<Body>, Problem> {
    Ok(json(200, &app.admission.keys()?.jwks()))
}

/// Sign tickets and passes with a new key from now on. Those of the last key stay good.
#[utoipa::path(post, path = "/v1/waiting-room/keys/rotate", responses((status = 200, description = "The public keys")))]
pub(super) async fn rotate_keys(State(app): State<Shared>) -> Result<Response<Body>, Problem> {
    app.admission.rotate_keys().await?;
    Ok(json(200, &app.admission.keys()?.jwks()))
}
