//! The ledger and the audit.

use super::{number, page_size};
use crate::app::{Shared, audit_json, json};
use crate::body::{Findings, StrictQuery};
use crate::problem::Problem;
use crate::view::{AuditView, EntryView, ListView};
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use holdfast_domain::{OrderId, Sku};
use holdfast_engine::LedgerFilter;
use serde::Deserialize;
use std::sync::PoisonError;
use utoipa::IntoParams;

/// Which entries to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LedgerQuery {
    sku: Option<String>,
    order_id: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

/// List ledger entries by number.
#[utoipa::path(get, path = "/v1/ledger", params(LedgerQuery), responses((status = 200, body = ListView<EntryView>)))]
pub(super) async fn list_ledger(
    State(app): State<Shared>,
    StrictQuery(query): StrictQuery<LedgerQuery>,
) -> Result<Response<Body>, Problem> {
    let limit = page_size(query.limit)?;
    let after = number(query.after.as_deref())?;
    let mut findings = Findings::default();
    let sku = query.sku.and_then(|s| findings.take("/sku", Sku::new(&s)));
    let order_id = query.order_id.and_then(|o| findings.take("/order_id", OrderId::new(&o)));
    findings.done()?;
    let page = app.engine.ledger(LedgerFilter { sku, order_id, after }, limit).await?;
    let items = page.items.iter().map(EntryView::new).collect();
    Ok(json(200, &ListView { items, next: page.next }))
}

/// The last audit's report; one is run if none was.
#[utoipa::path(get, path = "/v1/audit", responses((status = 200, body = AuditView)))]
pub(super) async fn get_audit(State(app): State<Shared>) -> Result<Response<Body>, Problem> {
    let last = app.last_audit.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match last {
        Some(report) => Ok(audit_json(&report)),
        None => Ok(audit_json(&app.audit().await?)),
    }
}

/// Run an audit now.
#[utoipa::path(post, path = "/v1/audit", responses((status = 200, body = AuditView)))]
pub(super) async fn run_audit(State(app): State<Shared>) -> Result<Response<Body>, Problem> {
    Ok(audit_json(&app.audit().await?))
}
