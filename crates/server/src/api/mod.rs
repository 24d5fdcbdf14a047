//! The calls of the HTTP contract: one file a resource, routes and OpenAPI in one place.

pub(crate) mod holds;
pub(crate) mod import;
mod ledger;
mod lined;
mod orders;
mod payments;
mod queue;
mod sales;
mod service;
mod stock;
mod wait;

pub(crate) use queue::TicketView;

use crate::app::Shared;
use crate::problem::Problem;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use serde::Deserialize;
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};
use utoipa_swagger_ui::SwaggerUi;

/// The most items of a page, and the number when none is asked.
const MAX_PAGE: usize = 1000;
const DEFAULT_PAGE: usize = 100;

#[derive(OpenApi)]
#[openapi(info(
    title = "Holdfast",
    description = "Holds stock while shoppers pay. Never sells a unit twice, never strands one.",
    license(name = "Apache-2.0", identifier = "Apache-2.0")
))]
struct Document;

fn described() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(import::import_stock))
        .route("/v1/stock/import", get(import::get_named).put(import::put_named).delete(import::delete_named))
        .routes(routes!(stock::get_stock, stock::put_stock, stock::delete_stock))
        .routes(routes!(stock::list_stock))
        .routes(routes!(stock::adjust_stock))
        .routes(routes!(holds::create_hold, holds::list_holds))
        .routes(routes!(holds::get_hold, holds::change_hold))
        .routes(routes!(holds::extend_hold))
        .routes(routes!(holds::release_hold))
        .routes(routes!(holds::confirm_hold))
        .routes(routes!(orders::get_order))
        .routes(routes!(orders::return_items))
        .routes(routes!(ledger::list_ledger))
        .routes(routes!(ledger::get_audit, ledger::run_audit))
        .routes(routes!(payments::list_payments))
        .routes(routes!(payments::list_refunds))
        .routes(routes!(payments::retry_refund))
        .routes(routes!(sales::list_sales))
        .routes(routes!(sales::get_sale, sales::put_sale, sales::delete_sale))
        .routes(routes!(sales::pause_sale))
        .routes(routes!(sales::resume_sale))
        .routes(routes!(sales::get_draw))
        .routes(routes!(queue::join_queue, queue::get_queue))
        .routes(routes!(queue::get_ticket, queue::leave_queue))
        .routes(routes!(queue::claim_turn))
        .routes(routes!(queue::watch_ticket))
        .routes(routes!(queue::jwks))
        .routes(routes!(queue::rotate_keys))
        .routes(routes!(crate::payments::receive_webhook))
        .merge(crate::outbox::api::routes())
        .routes(routes!(service::healthz))
        .routes(routes!(service::readyz))
        .routes(routes!(service::metrics))
}

/// The OpenAPI document, pretty-printed.
pub fn openapi_json() -> String {
    described().into_openapi().to_pretty_json().unwrap_or_default()
}

/// All routes.
pub(crate) fn router(app: &Shared) -> Router {
    let (mut router, document) = described().split_for_parts();
    if app.config.bench {
        router = router.route("/bench/noop", post(service::noop));
    }
    router
        .merge(wait::routes())
        .merge(SwaggerUi::new("/docs").url("/openapi.json", document))
        .fallback(|| async { Problem::new("not_found", "there is no such path; see /docs") })
        .method_not_allowed_fallback(|| async {
            Problem::new("method_not_allowed", "see /docs for what this path takes")
        })
        .layer(DefaultBodyLimit::disable())
        .with_state(app.clone())
}

/// A name for logs and metrics that never contains what a client chose.
pub(crate) fn route_name(path: &str) -> &'static str {
    let mut parts = path.trim_start_matches('/').split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("v1"), Some("holds"), None, _) => "holds",
        (Some("v1"), Some("holds"), Some(_), None) => "hold",
        (Some("v1"), Some("holds"), Some(_), Some("confirm")) => "confirm",
        (Some("v1"), Some("holds"), Some(_), Some("release")) => "release",
        (Some("v1"), Some("holds"), Some(_), Some("extend")) => "extend",
        (Some("v1"), Some("stock"), Some("import"), None) => "import",
        (Some("v1"), Some("stock"), ..) => "stock",
        (Some("v1"), Some("orders"), ..) => "orders",
        (Some("v1"), Some("ledger"), ..) => "ledger",
        (Some("v1"), Some("audit"), ..) => "audit",
        (Some("v1"), Some("payments" | "refunds"), ..) => "payments",
        (Some("v1"), Some("webhooks"), ..) => "webhooks",
        (Some("v1"), Some("sinks"), ..) => "sinks",
        (Some("v1"), Some("sales"), Some(_), Some("queue")) => "queue",
        (Some("v1"), Some("sales"), ..) => "sales",
        (Some("wait"), ..) => "wait",
        (Some("healthz" | "readyz" | "metrics" | "openapi.json" | "docs" | "bench"), ..) => "service",
        _ => "other",
    }
}

/// `limit` of a list.
fn page_size(limit: Option<usize>) -> Result<usize, Problem> {
    match limit {
        None => Ok(DEFAULT_PAGE),
        Some(limit) if (1..=MAX_PAGE).contains(&limit) => Ok(limit),
        Some(_) => Err(Problem::new("invalid_request", format!("limit must be from 1 to {MAX_PAGE}"))),
    }
}

/// A cursor that is a number of the engine's own.
fn number(after: Option<&str>) -> Result<u64, Problem> {
    after.map_or(Ok(0), str::parse).map_err(|_| bad_cursor())
}

/// A cursor that no page has told.
fn bad_cursor() -> Problem {
    Problem::new("invalid_request", "after must be the next of an earlier page")
}

/// A member that tells apart: missing, null, a value.
fn present<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(value).map(Some)
}
