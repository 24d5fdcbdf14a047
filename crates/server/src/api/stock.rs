//! Stock: read, set, adjust, forget.

use super::holds::unexpected;
use super::{orders::idempotency_key, page_size, present};
use crate::app::{Shared, json};
use crate::body::{Findings, JsonBytes, Path, StrictQuery, parse};
use crate::problem::Problem;
use crate::view::{ListView, StockView};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use holdfast_domain::{Command, MAX_TOTAL, Outcome, SetStock, Sku, Total};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

const MAX_REASON_BYTES: usize = 255;

/// What a SKU should be.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StockBody {
    /// Units in all, held and sold ones included.
    #[schema(maximum = 1_000_000_000_000_u64)]
    total: u64,
    /// Missing leaves it as it is, null removes it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    limit_per_customer: Option<Option<u64>>,
}

/// How much to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdjustBody {
    /// Units; negative takes.
    delta: i64,
    reason: Option<String>,
}

pub(super) fn read_limit(limit: u64) -> Result<u64, String> {
    if (1..=MAX_TOTAL).contains(&limit) { Ok(limit) } else { Err(format!("must be from 1 to {MAX_TOTAL}, or null")) }
}

pub(super) fn read_total(total: u64) -> Result<Total, String> {
    Total::new(total).ok_or_else(|| format!("must be from 0 to {MAX_TOTAL}"))
}

fn path_sku(text: &str) -> Result<Sku, Problem> {
    Sku::new(text).map_err(|e| Problem::invalid(&[("/sku".into(), e.to_string())]))
}

/// `If-Match: "3"`. Versions start at 1, so a version of 0 matches no SKU.
fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let bare = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
    let is_number = !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_digit());
    let version = bare.parse().ok().filter(|_| is_number);
    version
        .map(Some)
        .ok_or_else(|| Problem::new("invalid_request", "If-Match must be a version in quotes, as the ETag"))
}

fn stock_json(outcome: &Outcome) -> Response<Body> {
    let Outcome::Stock { stock, created, .. } = outcome else { return unexpected(outcome) };
    let mut response = json(if *created { 201 } else { 200 }, &StockView::new(stock));
    tag(&mut response, stock.version);
    response
}

fn tag(response: &mut Response<Body>, version: u64) {
    if let Ok(value) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
}

/// Read one SKU.
#[utoipa::path(get, path = "/v1/stock/{sku}", params(("sku" = String, Path)), responses(
    (status = 200, body = StockView), (status = 404, description = "not_found")))]
pub(super) async fn get_stock(State(app): State<Shared>, Path(sku): Path<String>) -> Result<Response<Body>, Problem> {
    let unknown = || Problem::new("not_found", "no such SKU");
    let sku = Sku::new(&sku).map_err(|_| unknown())?;
    let stock = app.engine.stock(&sku).await?.ok_or_else(unknown)?;
    let mut response = json(200, &StockView::new(&stock));
    tag(&mut response, stock.version);
    Ok(response)
}

/// Create a SKU, or move what is available so that its total is as asked.
#[utoipa::path(put, path = "/v1/stock/{sku}", request_body = StockBody,
    params(("sku" = String, Path), ("If-Match" = Option<String>, Header)), responses(
    (status = 201, description = "Created", body = StockView), (status = 200, body = StockView),
    (status = 409, description = "total_below_committed"), (status = 412, description = "version_mismatch")))]
pub(super) async fn put_stock(
    State(app): State<Shared>,
    Path(sku): Path<String>,
    headers: HeaderMap,
    JsonBytes(bytes): JsonBytes,
) -> Result<Response<Body>, Problem> {
    let sku = path_sku(&sku)?;
    let if_version = if_match(&headers)?;
    let body: StockBody = parse(&bytes)?;
    let mut findings = Findings::default();
    let total = findings.take("/total", read_total(body.total));
    let limit = body.limit_per_customer.map(|l| l.and_then(|l| findings.take("/limit_per_customer", read_limit(l))));
    findings.done()?;
    let total = total.ok_or_else(|| Problem::new("invalid_request", "total is not valid"))?;
    let set = Command::SetStock(SetStock { sku, total, limit_per_customer: limit, if_version });
    Ok(stock_json(&app.submit(set).await?))
}

/// Forget a SKU of which nothing is held or sold.
#[utoipa::path(delete, path = "/v1/stock/{sku}", params(("sku" = String, Path), ("If-Match" = Option<String>, Header)), responses(
    (status = 204, description = "Forgotten"), (status = 404, description = "not_found"), (status = 409, description = "stock_in_use"),
    (status = 412, description = "version_mismatch")))]
pub(super) async fn delete_stock(
    State(app): State<Shared>,
    Path(sku): Path<String>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let sku = Sku::new(&sku).map_err(|_| Problem::new("not_found", "no such SKU"))?;
    let if_version = if_match(&headers)?;
    app.submit(Command::RemoveStock { sku, if_version }).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Add to (or take from) what is available. With an Idempotency-Key, the same request again changes nothing.
#[utoipa::path(post, path = "/v1/stock/{sku}/adjust", request_body = AdjustBody,
    params(("sku" = String, Path), ("Idempotency-Key" = Option<String>, Header)), responses(
    (status = 200, body = StockView), (status = 404, description = "not_found"), (status = 409, description = "insufficient_available, total_too_large")))]
pub(super) async fn adjust_stock(
    State(app): State<Shared>,
    Path(sku): Path<String>,
    headers: HeaderMap,
    JsonBytes(bytes): JsonBytes,
) -> Result<Response<Body>, Problem> {
    let sku = Sku::new(&sku).map_err(|_| Problem::new("not_found", "no such SKU"))?;
    let key = idempotency_key(&headers)?;
    let body: AdjustBody = parse(&bytes)?;
    let mut findings = Findings::default();
    let check = |r: String| {
        let is_decent = r.len() <= MAX_REASON_BYTES && !r.chars().any(char::is_control);
        if is_decent {
            Ok(r)
        } else {
            Err(format!("must be at most {MAX_REASON_BYTES} bytes without control characters"))
        }
    };
    let reason = body.reason.and_then(|r| findings.take("/reason", check(r))).map(Into::into);
    let is_possible = body.delta.unsigned_abs() <= MAX_TOTAL;
    findings
        .take("/delta", if is_possible { Ok(()) } else { Err(format!("must be from -{MAX_TOTAL} to {MAX_TOTAL}")) });
    findings.done()?;
    let adjust = Command::AdjustStock { sku, delta: body.delta, reason, key, create: false };
    Ok(stock_json(&app.submit(adjust).await?))
}

/// Where to go on.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StockQuery {
    after: Option<String>,
    limit: Option<usize>,
}

/// List SKUs in byte order.
#[utoipa::path(get, path = "/v1/stock", params(StockQuery), responses((status = 200, body = ListView<StockView>)))]
pub(super) async fn list_stock(
    State(app): State<Shared>,
    StrictQuery(query): StrictQuery<StockQuery>,
) -> Result<Response<Body>, Problem> {
    let limit = page_size(query.limit)?;
    let after = query.after.as_deref().map(path_sku).transpose()?;
    let page = app.engine.stocks(after.as_ref(), limit).await?;
    let items = page.items.iter().map(StockView::new).collect();
    Ok(json(200, &ListView { items, next: page.next }))
}
