//! A strict fake payment provider, shaped like Stripe: what the real one would refuse it refuses, what it would tell
//! it tells, and what may go wrong between the two goes wrong on demand. It moves no money and must never be taken
//! for a provider.

mod args;
mod books;
mod control;
mod courier;
mod error;
mod form;
mod http;
mod intents;
mod keys;
mod objects;
mod refunds;
mod script;
mod sessions;
mod sign;
mod state;

pub(crate) use args::{Args, run};
pub(crate) use courier::Webhooks;

use books::Books;
use courier::Courier;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use script::Script;
use state::{Inner, State};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// How a provider starts.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The address to serve on; port 0 for a free one.
    pub(crate) listen: SocketAddr,
    /// Where events go.
    pub(crate) webhooks: Webhooks,
    /// What goes wrong.
    script: Script,
    /// The same ids and the same dice for the same seed.
    pub(crate) seed: u64,
}

impl Settings {
    /// Where nothing goes wrong.
    pub(crate) fn new(listen: SocketAddr, webhooks: Webhooks, seed: u64) -> Self {
        Self { listen, webhooks, script: Script::default(), seed }
    }

    /// With this script.
    pub(crate) fn with_script(mut self, json: &[u8]) -> Result<Self, String> {
        self.script = Script::parse(json)?;
        Ok(self)
    }
}

/// A running provider; it stops when dropped.
pub(crate) struct Provider {
    /// `http://127.0.0.1:12111`
    pub(crate) url: String,
    inner: Arc<Inner>,
}

impl Provider {
    /// Starts to serve.
    pub(crate) async fn start(settings: Settings) -> Result<Self, String> {
        let Settings { listen, webhooks, script, seed } = settings;
        if let Some(url) = &webhooks.url {
            check_url(url)?;
        }
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|e| format!("cannot listen on {listen}: {e}; choose another address with --listen"))?;
        let url = format!("http://{}", listener.local_addr().map_err(|e| e.to_string())?);
        let courier = Courier::new(webhooks);
        let inner = Inner::new(State::new(Books::new(seed), script, courier));
        inner.spawn(accept(listener, inner.clone()));
        Ok(Self { url, inner })
    }

    /// Sends events there from now on.
    pub(crate) fn send_to(&self, url: String) -> Result<(), String> {
        check_url(&url)?;
        self.inner.state.lock().courier.webhooks.url = Some(url);
        Ok(())
    }

    /// What goes wrong from now on.
    pub(crate) fn follow(&self, script: &[u8]) -> Result<(), String> {
        let script = Script::parse(script)?;
        self.inner.state.lock().script = script;
        Ok(())
    }

    /// Everything that was made, and how many events are still on their way.
    pub(crate) fn books(&self) -> serde_json::Value {
        control::books(&self.inner)
    }

    /// How many refunds were made.
    pub(crate) fn refunds(&self) -> usize {
        self.inner.state.lock().books.refunds.all.len()
    }

    /// How the webhooks of the last event were answered; 0 is no answer.
    pub(crate) fn last_answers(&self) -> Vec<u16> {
        self.inner.state.lock().courier.last_answers()
    }

    /// Forgets everything that was made.
    pub(crate) fn forget(&self) {
        self.inner.state.lock().forget();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.inner.stop();
    }
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    loop {
        // A connection that cannot be accepted is the client's loss; the next one may be fine.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let shared = inner.clone();
        inner.spawn(async move {
            let service = service_fn(|request| http::serve(shared.clone(), request));
            let mut builder = hyper::server::conn::http1::Builder::new();
            // It ends with an error whenever an answer is lost on purpose.
            let _ = builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Whether events can be sent there.
fn check_url(url: &str) -> Result<(), String> {
    let is_fine = url.parse::<hyper::Uri>().is_ok_and(|uri| uri.scheme_str() == Some("http") && uri.host().is_some());
    if is_fine { Ok(()) } else { Err(format!("{url:?} must be http://HOST:PORT/PATH; put TLS in front with a proxy")) }
}
