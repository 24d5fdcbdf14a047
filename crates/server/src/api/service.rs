//! Health, readiness, metrics, and the benchmark's no-op.

use crate::app::{Shared, json};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use serde_json::json;
use std::sync::atomic::Ordering;

/// The process is alive.
#[utoipa::path(get, path = "/healthz", responses((status = 200, description = "Alive")))]
pub(super) async fn healthz() -> Response<Body> {
    json(200, &json!({"status": "ok"}))
}

/// Requests can be served.
#[utoipa::path(get, path = "/readyz", responses((status = 200, description = "Ready"), (status = 503, description = "The reason why not")))]
pub(super) async fn readyz(State(app): State<Shared>) -> Response<Body> {
    if app.stopping.load(Ordering::Relaxed) {
        return json(503, &json!({"status": "not_ready", "reason": "stopping"}));
    }
    let health = app.engine.health().await;
    let closed = app.lanes.is_closed().then(|| "the engine has ended".to_owned());
    match closed.or(health.problem) {
        None => json(200, &json!({"status": "ready"})),
        Some(detail) => {
            let reason = if detail.starts_with("auditing") { "auditing" } else { "engine_unavailable" };
            json(503, &json!({"status": "not_ready", "reason": reason, "detail": detail}))
        }
    }
}

/// Prometheus' text format.
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub(super) async fn metrics(State(app): State<Shared>) -> Response<Body> {
    app.metrics.admission.read(&app.admission);
    let mut response = Response::new(Body::from(app.metrics.text()));
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Reads the body and does nothing: what the HTTP stack alone costs.
pub(super) async fn noop(body: Bytes) -> Response<Body> {
    json(200, &json!({"ok": !body.is_empty()}))
}
