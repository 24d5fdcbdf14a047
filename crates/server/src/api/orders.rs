//! Orders: read, and take units back.

use super::holds::{ItemBody, read_items, unexpected};
use crate::app::{Shared, json};
use crate::body::{Findings, JsonBytes, Object, Path, parse};
use crate::problem::Problem;
use crate::view::OrderJson;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use holdfast_domain::{Command, OrderId, Outcome, Ref};
use holdfast_engine::OrderView;
use serde::Deserialize;
use utoipa::ToSchema;

/// What came back.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = Vec<ItemBody>)]
    items: Vec<Object<ItemBody<'a>>>,
}

/// The `Idempotency-Key` header: a structured-field string in quotes, or a bare token.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Ref>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let bad = |why: &str| Problem::new("invalid_request", format!("Idempotency-Key {why}"));
    let text = value.to_str().map_err(|_| bad("must be printable ASCII"))?.trim();
    let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
    if text.contains('"') {
        return Err(bad("must be a token, or a string in double quotes"));
    }
    Ref::new(text).map(Some).map_err(|e| bad(&e.to_string()))
}

fn read_order_id(text: &str) -> Result<OrderId, Problem> {
    OrderId::new(text).map_err(|_| Problem::new("not_found", "no order has this id"))
}

/// An order as an answer, with its payment looked up when it has one.
pub(super) async fn answer(app: &Shared, outcome: Outcome) -> Result<Response<Body>, Problem> {
    let Outcome::Order(order) = outcome else { return Ok(unexpected(&outcome)) };
    let view = match order.payment {
        None => OrderView { order, payment: None },
        Some(_) => match app.engine.order(&order.order_id).await? {
            Some(view) => view,
            None => OrderView { order, payment: None },
        },
    };
    Ok(json(200, &OrderJson::new(&view)))
}

/// Read one order.
#[utoipa::path(get, path = "/v1/orders/{order_id}", params(("order_id" = String, Path)), responses(
    (status = 200, body = OrderJson), (status = 404, description = "not_found")))]
pub(super) async fn get_order(State(app): State<Shared>, Path(id): Path<String>) -> Result<Response<Body>, Problem> {
    let found = app.engine.order(&read_order_id(&id)?).await?;
    let view = found.ok_or_else(|| Problem::new("not_found", "no order has this id"))?;
    Ok(json(200, &OrderJson::new(&view)))
}

/// Take some of an order's units back. With an Idempotency-Key, the same request again changes nothing.
#[utoipa::path(post, path = "/v1/orders/{order_id}/returns", request_body = ReturnBody,
    params(("order_id" = String, Path), ("Idempotency-Key" = Option<String>, Header)), responses(
    (status = 200, body = OrderJson), (status = 409, description = "return_exceeds_order"), (status = 404, description = "not_found")))]
pub(super) async fn return_items(
    State(app): State<Shared>,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBytes(bytes): JsonBytes,
) -> Result<Response<Body>, Problem> {
    let order = read_order_id(&id)?;
    let key = idempotency_key(&headers)?;
    let body: ReturnBody<'_> = parse(&bytes)?;
    let mut findings = Findings::default();
    let lines = read_items(&body.items, &mut findings);
    findings.done()?;
    let lines = lines.ok_or_else(|| Problem::new("invalid_request", "items are not valid"))?;
    let outcome = app.submit(Command::Return { order, lines, key }).await?;
    answer(&app, outcome).await
}
