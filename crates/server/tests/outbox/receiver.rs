//! A receiver of webhooks on the loopback address: it writes down what comes, and answers as it is told.

use super::shop::Told;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use holdfast_server::outbox::{SinkConfig, SinkKind};
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// An answer that begins so repeats what follows for ever.
pub const ENDLESS: &str = "endless:";
pub const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// One request.
pub struct Request {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

type Answer = (u16, Vec<(&'static str, String)>, String);

#[derive(Clone)]
struct Shared {
    requests: Arc<Mutex<Vec<Request>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    gate: Arc<Semaphore>,
    arrived: Arc<Semaphore>,
}

pub struct Receiver {
    pub url: String,
    shared: Shared,
    task: tokio::task::JoinHandle<()>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let shared = Shared {
            requests: Arc::default(),
            answers: Arc::default(),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            arrived: Arc::new(Semaphore::new(0)),
        };
        let router = Router::new().fallback(receive).with_state(shared.clone());
        let task = tokio::spawn(async move { serve(listener, router).await });
        Self { url, shared, task }
    }

    /// A sink that sends here.
    pub fn config(&self, name: &str) -> SinkConfig {
        let mut config = SinkConfig::new(name, SinkKind::Http, &self.url);
        config.secrets = vec![SECRET.into()];
        config.allow_private = true;
        config
    }

    /// The answer to one of the next requests.
    pub fn answer(&self, status: u16, headers: &[(&'static str, &str)], body: &str) {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.shared.answers.lock().unwrap().push_back((status, headers, body.to_owned()));
    }

    /// From now on, requests wait before they are answered.
    pub fn close(&self) {
        self.shared.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Lets so many requests be answered.
    pub fn open(&self, count: usize) {
        self.shared.gate.add_permits(count);
    }

    /// Waits for one more request to come in.
    pub async fn arrival(&self) {
        self.shared.arrived.acquire().await.unwrap().forget();
    }

    pub fn requests<T>(&self, read: impl FnMut(&Request) -> T) -> Vec<T> {
        self.shared.requests.lock().unwrap().iter().map(read).collect()
    }

    pub fn told(&self) -> Vec<Told> {
        self.requests(|request| Told::from(&request.event()))
    }

    pub fn ids(&self) -> Vec<String> {
        self.told().into_iter().map(|told| told.id).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl From<&Value> for Told {
    fn from(event: &Value) -> Self {
        let text = |name: &str| event[name].as_str().map(str::to_owned);
        Self { id: text("id").unwrap(), key: text("partitionkey"), event_type: text("type").unwrap() }
    }
}

async fn receive(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    shared.requests.lock().unwrap().push(Request { headers, body });
    shared.arrived.add_permits(1);
    if let Ok(permit) = shared.gate.acquire().await {
        permit.forget();
    }
    let scripted = shared.answers.lock().unwrap().pop_front();
    let (status, headers, body) = scripted.unwrap_or((204, Vec::new(), String::new()));
    let body = match body.strip_prefix(ENDLESS) {
        Some(text) => Body::from_stream(stream::repeat_with({
            let chunk = Bytes::from(text.repeat(1000));
            move || Ok::<_, Infallible>(chunk.clone())
        })),
        None => Body::from(body),
    };
    let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// Serves connections until the listener is dropped.
async fn serve(listener: TcpListener, router: Router) {
    use hyper_util::rt::TokioIo;
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let router = router.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                use tower::ServiceExt;
                router.clone().oneshot(request.map(axum::body::Body::new))
            });
            // A connection that the sink closes is as good as any other end.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
