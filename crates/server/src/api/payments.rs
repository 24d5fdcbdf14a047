//! Payments, and the money that goes back.

use super::{number, page_size};
use crate::app::{Shared, json};
use crate::body::{Findings, StrictQuery};
use crate::problem::Problem;
use crate::view::{ListView, PaymentView, RefundView};
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use holdfast_domain::{JobState, PaymentStatus};
use serde::Deserialize;
use utoipa::IntoParams;

/// Which to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StatusQuery {
    status: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

impl StatusQuery {
    fn check(&self, is_known: impl Fn(&str) -> bool) -> Result<(usize, u64), Problem> {
        let mut findings = Findings::default();
        let is_fine = self.status.as_deref().is_none_or(is_known);
        findings.take("/status", if is_fine { Ok(()) } else { Err("is no known status") });
        findings.done()?;
        Ok((page_size(self.limit)?, number(self.after.as_deref())?))
    }
}

/// List payments in the order in which they were received.
#[utoipa::path(get, path = "/v1/payments", params(StatusQuery), responses((status = 200, body = ListView<PaymentView>)))]
pub(super) async fn list_payments(
    State(app): State<Shared>,
    StrictQuery(query): StrictQuery<StatusQuery>,
) -> Result<Response<Body>, Problem> {
    let (limit, after) = query.check(|s| PaymentStatus::parse(s).is_some())?;
    let page = app.engine.payments(query.status, after, limit).await?;
    let items = page.items.iter().map(PaymentView::new).collect();
    Ok(json(200, &ListView { items, next: page.next }))
}

/// List refunds and voids in the order in which they became due.
#[utoipa::path(get, path = "/v1/refunds", params(StatusQuery), responses((status = 200, body = ListView<RefundView>)))]
pub(super) async fn list_refunds(
    State(app): State<Shared>,
    StrictQuery(query): StrictQuery<StatusQuery>,
) -> Result<Response<Body>, Problem> {
    let (limit, after) = query.check(|s| JobState::parse(s).is_some())?;
    let page = app.engine.refunds(query.status, after, limit).await?;
    let items = page.items.iter().map(RefundView::new).collect();
    Ok(json(200, &ListView { items, next: page.next }))
}
