//! Payments, and the money that goes back.

use super::{number, page_size};
use crate::app::{Shared, json};
use crate::body::{Findings, StrictQuery};
use crate::problem::Problem;
use crate::view::{ListView, PaymentView, RefundView};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Response;
use holdfast_domain::{Command, JobKind, JobReport, JobState, JobTurn, Outcome, PaymentKey, PaymentStatus, Ref};
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

/// Try a refund or a void again now: one that needs attention, or one that waits for its next attempt.
#[utoipa::path(post, path = "/v1/refunds/{id}/retry", responses((status = 200, body = RefundView),
    (status = 404, description = "not_found"), (status = 409, description = "job_not_due")))]
pub(super) async fn retry_refund(State(app): State<Shared>, Path(id): Path<String>) -> Result<Response<Body>, Problem> {
    let unknown = || Problem::new("not_found", "the id of a refund is as its list tells it");
    let (provider, payment_id) = id.split_once(':').ok_or_else(unknown)?;
    let read = |text: &str| Ref::new(text).map_err(|_| unknown());
    let payment = PaymentKey { provider: read(provider)?, payment_id: read(payment_id)? };
    let (_, jobs) = app.engine.payment(&payment).await?.ok_or_else(unknown)?;
    let job = jobs.iter().find(|job| job.kind != JobKind::Capture).ok_or_else(unknown)?;
    let report = JobReport { payment, kind: job.kind, turn: JobTurn::Retry };
    let Outcome::Job(job) = app.submit(Command::Job(Box::new(report))).await? else {
        return Err(Problem::new("engine_unavailable", "the engine gave another answer than was asked for"));
    };
    app.payments.wake.notify_waiters();
    Ok(json(200, &RefundView::new(&job)))
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
