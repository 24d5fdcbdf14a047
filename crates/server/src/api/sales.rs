//! Sales: what is sold from when to when, how fast, and through which room.

use crate::admission::{Kept, Sale, SaleBody, SaleView, Sales, check_name};
use crate::app::{Shared, json};
use crate::body::{JsonBytes, Path, parse};
use crate::problem::Problem;
use crate::view::ListView;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use holdfast_engine::clock::random_bytes;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use utoipa::ToSchema;

/// What decided the draw.
#[derive(Serialize, ToSchema)]
#[schema(as = Draw)]
pub(super) struct DrawView {
    /// SHA-256 of the seed, in hexadecimal: told when the sale was made.
    commitment: String,
    /// The seed in hexadecimal, once the sale has started. Places are in the order of HMAC-SHA256 with the seed as the
    /// key and the ticket as the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<String>,
}

fn no_sale() -> Problem {
    Problem::new("not_found", "no sale has this name")
}

fn found<'a>(sales: &'a Sales, name: &str) -> Result<&'a Arc<Sale>, Problem> {
    sales.get(name).ok_or_else(no_sale)
}

/// Make a sale, or change it while it runs.
#[utoipa::path(put, path = "/v1/sales/{sale}", params(("sale" = String, Path)), request_body = SaleBody, responses(
    (status = 201, description = "Made", body = SaleView), (status = 200, description = "Changed", body = SaleView),
    (status = 409, description = "sku_in_other_sale"), (status = 422, description = "invalid_request")))]
pub(super) async fn put_sale(
    State(app): State<Shared>,
    Path(name): Path<String>,
    JsonBytes(bytes): JsonBytes,
) -> Result<Response<Body>, Problem> {
    check_name(&name)?;
    let body: SaleBody = parse(&bytes)?;
    let (fresh, secret) = random_bytes()
        .and_then(|fresh| Ok((fresh, random_bytes()?)))
        .map_err(|_| Problem::new("engine_unavailable", "no random numbers can be had"))?;
    let is_new = AtomicBool::new(false);
    let now = app.engine.time();
    let decide = |sales: &Sales, revision: u64| {
        let before = sales.get(&name);
        is_new.store(before.is_none(), Ordering::Relaxed);
        let kept =
            before.map_or(Kept { created_at: now, seed: fresh, secret, ..Kept::default() }, |sale| sale.kept.clone());
        let mut sale = Sale::new(&name, body.clone(), app.config.max_hold_ttl, Kept { revision, ..kept })?;
        let is_again = before.is_some_and(|before| before.has_started(now)) && !sale.has_started(now);
        if is_again {
            // The seed has been told: whoever joins now must not be able to choose a place by it.
            sale = sale.with(Kept { seed: fresh, ..sale.kept.clone() });
        }
        sales.check_skus(&sale, now)?;
        Ok(Some(sale))
    };
    let sales = app.admission.change(&name, decide).await?;
    let sale = found(&sales, &name)?;
    Ok(json(if is_new.load(Ordering::Relaxed) { 201 } else { 200 }, &sale.view(app.engine.time())))
}

/// Read one sale.
#[utoipa::path(get, path = "/v1/sales/{sale}", params(("sale" = String, Path)), responses(
    (status = 200, body = SaleView), (status = 404, description = "not_found")))]
pub(super) async fn get_sale(State(app): State<Shared>, Path(name): Path<String>) -> Result<Response<Body>, Problem> {
    let sales = app.admission.sales()?;
    Ok(json(200, &found(&sales, &name)?.view(app.engine.time())))
}

/// List all sales, by name.
#[utoipa::path(get, path = "/v1/sales", responses((status = 200, body = ListView<SaleView>)))]
pub(super) async fn list_sales(State(app): State<Shared>) -> Result<Response<Body>, Problem> {
    let sales = app.admission.sales()?;
    let now = app.engine.time();
    Ok(json(200, &ListView { items: sales.all().map(|sale| sale.view(now)).collect(), next: None }))
}

/// Remove a sale: its SKUs are sold without rules from then on.
#[utoipa::path(delete, path = "/v1/sales/{sale}", params(("sale" = String, Path)), responses(
    (status = 204, description = "Gone"), (status = 404, description = "not_found")))]
pub(super) async fn delete_sale(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<Response<Body>, Problem> {
    app.admission.change(&name, |sales, _| found(sales, &name).map(|_| None)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Take no holds until it is resumed. Holds that there are can be paid for.
#[utoipa::path(post, path = "/v1/sales/{sale}/pause", params(("sale" = String, Path)), responses(
    (status = 200, body = SaleView), (status = 404, description = "not_found")))]
pub(super) async fn pause_sale(State(app): State<Shared>, Path(name): Path<String>) -> Result<Response<Body>, Problem> {
    set_paused(&app, &name, true).await
}

/// Take holds again.
#[utoipa::path(post, path = "/v1/sales/{sale}/resume", params(("sale" = String, Path)), responses(
    (status = 200, body = SaleView), (status = 404, description = "not_found")))]
pub(super) async fn resume_sale(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<Response<Body>, Problem> {
    set_paused(&app, &name, false).await
}

async fn set_paused(app: &Shared, name: &str, paused: bool) -> Result<Response<Body>, Problem> {
    let decide = |sales: &Sales, revision: u64| {
        let sale = found(sales, name)?;
        Ok(Some(sale.with(Kept { paused, revision, ..sale.kept.clone() })))
    };
    let sales = app.admission.change(name, decide).await?;
    Ok(json(200, &found(&sales, name)?.view(app.engine.time())))
}

/// What decides the draw: the commitment before the start, the seed after it.
#[utoipa::path(get, path = "/v1/sales/{sale}/draw", params(("sale" = String, Path)), responses(
    (status = 200, body = DrawView), (status = 404, description = "not_found")))]
pub(super) async fn get_draw(State(app): State<Shared>, Path(name): Path<String>) -> Result<Response<Body>, Problem> {
    let sales = app.admission.sales()?;
    let sale = found(&sales, &name)?;
    let seed = sale.has_started(app.engine.time()).then(|| hex::encode(sale.kept.seed));
    Ok(json(200, &DrawView { commitment: sale.commitment(), seed }))
}
