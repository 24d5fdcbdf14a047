//! One request's way through the service: identity, time limit, routing, and what is counted afterwards.

use crate::admission::{Admission, Caller, Peer, forward, told_caller};
use crate::auth::Keys;
use crate::config::{Config, Role};
use crate::metrics::Metrics;
use crate::outbox::EngineDesk;
use crate::outbox::api::Outbox;
use crate::payments::Payments;
use crate::problem::Problem;
use crate::relays::OWN;
use crate::{api, view::AuditView};
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRef, Request};
use axum::http::{HeaderName, HeaderValue, Response, header};
use axum::response::IntoResponse;
use holdfast_domain::{Command, Outcome, Refusal};
use holdfast_engine::clock::{monotonic, random_seed};
use holdfast_engine::{AuditReport, Engine, EngineError, Lanes};
use serde::Serialize;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use tower::ServiceExt;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What every handler can reach.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) lanes: Lanes,
    pub(crate) metrics: Metrics,
    pub(crate) admission: Admission,
    pub(crate) payments: Payments,
    pub(crate) outbox: Outbox,
    /// Entries may have been recorded.
    pub(crate) recorded: Arc<Notify>,
    pub(crate) stopping: AtomicBool,
    pub(crate) last_audit: Mutex<Option<AuditReport>>,
    keys: Keys,
    request_prefix: u32,
    requests: AtomicU64,
}

/// A handle on the app, as handlers get it.
pub(crate) type Shared = Arc<App>;

impl App {
    pub(crate) fn new(config: Config, engine: Arc<dyn Engine>) -> std::io::Result<Shared> {
        let lanes = Lanes::start(engine.clone(), &config.lanes)?;
        let keys = Keys::new(&config.api_keys);
        let outbox = Outbox::with(Arc::new(EngineDesk(engine.clone())), &config.sinks, &OWN);
        let payments = Payments::new(&config.payments).map_err(std::io::Error::other)?;
        let admission = Admission::new(engine.clone(), &config).map_err(std::io::Error::other)?;
        Ok(Arc::new(Self {
            config,
            engine,
            lanes,
            metrics: Metrics::new(),
            admission,
            payments,
            outbox,
            recorded: Arc::default(),
            stopping: AtomicBool::new(false),
            last_audit: Mutex::default(),
            keys,
            request_prefix: random_seed() as u32,
            requests: AtomicU64::new(0),
        }))
    }

    /// Puts a command into the lane and waits for the durable answer.
    pub(crate) async fn submit(&self, command: Command) -> Result<Outcome, Problem> {
        self.decide(command).await?.map_err(Problem::from)
    }

    /// As [`App::submit`], for callers that look at the refusal themselves.
    pub(crate) async fn decide(&self, command: Command) -> Result<Result<Outcome, Refusal>, Problem> {
        match tokio::time::timeout(self.config.request_timeout, self.lanes.submit(command)).await {
            Ok(answered) => {
                self.recorded.notify_waiters();
                answered.map_err(Problem::from)
            }
            Err(_) => Err(EngineError::Unknown("the lane did not answer in time".into()).into()),
        }
    }

    /// Runs an audit and keeps its report.
    pub(crate) async fn audit(&self) -> Result<AuditReport, Problem> {
        let report = self.engine.audit().await?;
        self.metrics.drift.set(report.drift.len() as i64);
        for drift in &report.drift {
            tracing::error!(
                sku = drift.sku,
                field = drift.field,
                expected = drift.expected,
                actual = drift.actual,
                "drift"
            );
        }
        *self.last_audit.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
        Ok(report)
    }

    /// The id that a client sent, if it is a decent one; else a fresh one.
    fn request_id(&self, request: &Request) -> HeaderValue {
        let is_decent = |v: &&HeaderValue| v.len() <= 128 && v.as_bytes().iter().all(u8::is_ascii_graphic);
        if let Some(given) = request.headers().get(&REQUEST_ID).filter(is_decent) {
            return given.clone();
        }
        let n = self.requests.fetch_add(1, Ordering::Relaxed);
        let fresh = format!("{:08x}-{n:x}", self.request_prefix);
        HeaderValue::from_str(&fresh).unwrap_or(HeaderValue::from_static("none"))
    }

    fn caller(&self, request: &Request, role: Option<Role>) -> Caller {
        if let Some(told) = told_caller(self, request.headers()) {
            return told;
        }
        let peer = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
        let proxies = &self.config.trusted_proxies;
        let headers = request.headers();
        Caller { role, address: proxies.client(peer, headers), is_https: proxies.is_https(peer, headers) }
    }

    /// Serves one request.
    pub(crate) async fn serve(self: Arc<Self>, router: Router, request: Request) -> Result<Response<Body>, Infallible> {
        let start = monotonic();
        let id = self.request_id(&request);
        let route = api::route_name(request.uri().path());
        let method = request.method().clone();
        let checked = self.keys.check(request.method(), request.uri().path(), request.headers());
        let mut response = match checked {
            Err(problem) => problem.into_response(),
            Ok(role) => {
                let caller = self.caller(&request, role);
                match forward(&self, request, &caller).await {
                    Ok(answer) => answer,
                    Err(mut request) => {
                        request.extensions_mut().insert(caller);
                        router.oneshot(request).await?
                    }
                }
            }
        };
        let took = start.elapsed();
        let status = response.status();
        self.metrics.answered(route, status.as_u16(), took);
        let request_id = id.to_str().unwrap_or_default();
        if status.is_server_error() {
            tracing::warn!(%method, route, status = status.as_u16(), request_id, took_us = took.as_micros() as u64, "failed");
        } else {
            tracing::debug!(%method, route, status = status.as_u16(), request_id, took_us = took.as_micros() as u64, "served");
        }
        response.headers_mut().insert(REQUEST_ID.clone(), id);
        if self.stopping.load(Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}

impl FromRef<Shared> for Outbox {
    fn from_ref(app: &Shared) -> Self {
        app.outbox.clone()
    }
}

/// A JSON answer.
pub(crate) fn json(status: u16, value: &impl Serialize) -> Response<Body> {
    let bytes = match serde_json::to_vec(value) {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            return Problem::new("engine_unavailable", "the answer could not be written").into_response();
        }
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An audit's report as an answer.
pub(crate) fn audit_json(report: &AuditReport) -> Response<Body> {
    json(200, &AuditView::new(report))
}
