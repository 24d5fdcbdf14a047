//! A ticket's way as server-sent events, for those who would rather listen than ask. Bounded in number, and closed when
//! the server stops: an open stream must not keep it.

use super::keeper::Kept;
use super::queue::{Queue, is_live};
use crate::api::TicketView;
use crate::app::Shared;
use crate::problem::Problem;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;
use holdfast_admission::room::{RoomState, TicketState, View};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Streams that are open at once on one node.
const MOST: usize = 2000;
const LOOK: Duration = Duration::from_secs(1);
/// After so many looks without news, a comment keeps proxies from closing the stream.
const QUIET: u32 = 15;

/// Streams of one ticket: a few tabs.
const MOST_OF_ONE: u32 = 3;

/// How many more may listen, and who listens.
pub(super) struct Streams {
    all: Arc<Semaphore>,
    of: Arc<Mutex<HashMap<String, u32>>>,
}

impl Default for Streams {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MOST)), of: Arc::default() }
    }
}

impl Streams {
    /// Room for one more.
    fn enter(&self, ticket: &str) -> Option<Seat> {
        let all = self.all.clone().try_acquire_owned().ok()?;
        let mut of = self.of.lock();
        let count = of.entry(ticket.to_owned()).or_default();
        if *count >= MOST_OF_ONE {
            return None;
        }
        *count += 1;
        drop(of);
        Some(Seat { ticket: ticket.to_owned(), of: self.of.clone(), _all: all })
    }
}

/// One who listens, until dropped.
struct Seat {
    ticket: String,
    of: Arc<Mutex<HashMap<String, u32>>>,
    _all: OwnedSemaphorePermit,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut of = self.of.lock();
        if let Some(count) = of.get_mut(&self.ticket) {
            *count -= 1;
            if *count == 0 {
                of.remove(&self.ticket);
            }
        }
    }
}

/// What a listener needs from one look to the next.
struct Listener {
    app: Shared,
    sale: String,
    ticket: String,
    told: String,
    quiet: u32,
    is_over: bool,
    _seat: Seat,
}

/// The stream of one ticket.
pub(crate) fn watch_place(app: Shared, sale: String, ticket: String) -> Result<Response<Body>, Problem> {
    Queue::of(&app, &sale)?.see(&ticket)?;
    let too_many = || Problem::new("overloaded", "too many are listening; ask now and then instead");
    let seat = app.admission.streams.enter(&ticket).ok_or_else(too_many)?;
    let told = String::new();
    let listener = Listener { app, sale, ticket, told, quiet: QUIET, is_over: false, _seat: seat };
    let events = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(event)), listener))
    });
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Listener {
    /// The next event; none at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            let is_kept = matches!(self.app.admission.keeper.kept(), Kept::Here);
            if self.is_over || !is_kept || self.app.stopping.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(event) = self.look() {
                return Some(event);
            }
            self.quiet += 1;
            sleep(LOOK).await;
        }
    }

    fn look(&mut self) -> Option<String> {
        let queue = Queue::of(&self.app, &self.sale);
        let place = queue.and_then(|queue| {
            let place = queue.see(&self.ticket)?;
            Ok((serde_json::to_string(&TicketView::new(&place, &queue)).unwrap_or_default(), place.view))
        });
        let Ok((text, view)) = place else {
            self.is_over = true;
            return Some("event: closed\ndata: {}\n\n".to_owned());
        };
        self.is_over = !is_live(view.state);
        if text != self.told {
            let event = format!("event: {}\nretry: 5000\ndata: {text}\n\n", name(&view));
            self.told = text;
            self.quiet = 0;
            return Some(event);
        }
        if self.quiet >= QUIET {
            self.quiet = 0;
            return Some(": still here\n\n".to_owned());
        }
        None
    }
}

/// What kind of news it is.
fn name(view: &View) -> &'static str {
    match (view.state, view.room) {
        (TicketState::Turn, _) => "turn",
        (_, RoomState::SoldOut) => "sold_out",
        (_, RoomState::Paused) => "paused",
        (_, RoomState::Closed) => "closed",
        _ => "position",
    }
}
