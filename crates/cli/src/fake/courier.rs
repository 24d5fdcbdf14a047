//! Webhooks: events, their delivery, and what may go wrong on the way. Facts of one payment are told in order unless
//! a script says otherwise; nothing is promised between payments. Must never tell an event that is not in the books.

use super::books::{Fact, Shelf};
use super::script::Fault;
use super::sign;
use super::state::{Inner, State};
use holdfast_engine::clock::wall;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot::{self, Receiver, Sender};

/// How long an attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before the second attempt; it doubles up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Where events go.
#[derive(Clone)]
pub(crate) struct Webhooks {
    /// `http://host:port/path`; without one, events are only listed.
    pub(crate) url: Option<String>,
    /// One signature for each.
    pub(crate) secrets: Vec<String>,
    /// Attempts until an event is given up.
    pub(crate) attempts: u32,
    /// Keep events back until told.
    pub(crate) hold: bool,
}

/// Without the secrets.
impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { url, secrets, attempts, hold } = self;
        write!(f, "Webhooks {{ url: {url:?}, secrets: {}, attempts: {attempts}, hold: {hold} }}", secrets.len())
    }
}

impl Default for Webhooks {
    fn default() -> Self {
        Self { url: None, secrets: Vec::new(), attempts: 12, hold: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// On its way.
    Sending,
    /// Kept back until told.
    Held,
    /// Answered 2xx.
    Delivered,
    /// Attempted often enough, or there is nowhere to send it.
    GivenUp,
}

/// One event, whose bytes are the same in every attempt.
#[derive(Debug)]
pub(super) struct Event {
    id: String,
    kind: &'static str,
    payment: String,
    body: Bytes,
    delivery: Delivery,
    /// The answer to each attempt; 0 where there was none.
    answers: Vec<u16>,
}

impl Event {
    fn view(&self) -> Value {
        let delivery = match self.delivery {
            Delivery::Sending => "sending",
            Delivery::Held => "held",
            Delivery::Delivered => "delivered",
            Delivery::GivenUp => "given_up",
        };
        let event: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        json!({"id": self.id, "type": self.kind, "delivery": delivery, "answers": self.answers, "event": event})
    }
}

/// All events, and who waits for whom.
#[derive(Debug, Default)]
pub(super) struct Courier {
    pub(super) webhooks: Webhooks,
    events: Shelf<Event>,
    /// The first attempt of the last event of each payment.
    last: HashMap<String, Receiver<()>>,
    /// Events that wait for the next one of their payment.
    overtaken: HashMap<String, Vec<Sender<()>>>,
}

/// When an event sets out.
enum Wait {
    /// After the first attempt of the one before.
    Behind(Option<Receiver<()>>),
    /// After so long, and at the latest after so long.
    Time(Duration),
    Overtaken(Receiver<()>, Duration),
}

/// What a delivery needs to know. Dropping `first` lets those go on who wait for the first attempt.
struct Errand {
    id: String,
    is_doubled: bool,
    wait: Wait,
    first: Vec<Sender<()>>,
}

impl Courier {
    /// Without any event.
    pub(super) fn new(webhooks: Webhooks) -> Self {
        Self { webhooks, ..Self::default() }
    }

    /// Every event in the order in which it was made.
    pub(super) fn view(&self) -> Value {
        self.events.all.iter().map(Event::view).collect()
    }

    /// Events that are neither delivered nor given up.
    pub(super) fn undelivered(&self) -> usize {
        let is_open = |event: &&Event| matches!(event.delivery, Delivery::Sending | Delivery::Held);
        self.events.all.iter().filter(is_open).count()
    }

    /// The answers to the last event.
    pub(super) fn last_answers(&self) -> Vec<u16> {
        self.events.all.last().map(|event| event.answers.clone()).unwrap_or_default()
    }

    /// Forgets all events.
    pub(super) fn clear(&mut self) {
        self.events = Shelf::default();
        self.last.clear();
        self.overtaken.clear();
    }

    fn errand(&mut self, id: &str, payment: &str, fault: Option<&Fault>, late: Duration) -> Errand {
        let errand = |wait, first| Errand { id: id.to_owned(), is_doubled: false, wait, first };
        match fault {
            Some(Fault::Delay { .. }) => errand(Wait::Time(late), Vec::new()),
            Some(Fault::Overtaken { ms }) => {
                let (tell, told) = oneshot::channel();
                self.overtaken.entry(payment.to_owned()).or_default().push(tell);
                errand(Wait::Overtaken(told, Duration::from_millis(*ms)), Vec::new())
            }
            _ => {
                let (tell, told) = oneshot::channel();
                let before = self.last.insert(payment.to_owned(), told);
                let mut first = self.overtaken.remove(payment).unwrap_or_default();
                first.push(tell);
                Errand { is_doubled: fault == Some(&Fault::Double), ..errand(Wait::Behind(before), first) }
            }
        }
    }
}

impl State {
    /// Makes events of what happened and sends them.
    pub(super) fn publish(&mut self, inner: &Arc<Inner>, request: Option<&str>, key: Option<&str>) {
        for fact in std::mem::take(&mut self.books.facts) {
            let fault = self.script.for_event(fact.kind, &mut self.books.random);
            let copies = if fault == Some(Fault::TwoEvents) { 2 } else { 1 };
            for _ in 0..copies {
                let id = self.record(&fact, request, key);
                let is_kept = self.courier.webhooks.hold || fault == Some(Fault::Hold);
                if is_kept {
                    self.mark(&id, Delivery::Held);
                } else {
                    self.send(inner, &id, &fact.payment, fault.as_ref());
                }
            }
        }
    }

    fn record(&mut self, fact: &Fact, request: Option<&str>, key: Option<&str>) -> String {
        let id = self.books.id("evt");
        let mut data = json!({"object": fact.object});
        if let Some(previous) = &fact.previous {
            data["previous_attributes"] = previous.clone();
        }
        let event = json!({
            "id": id, "object": "event", "api_version": "2026-10-28.endive", "created": self.books.now,
            "data": data, "livemode": false,
            "pending_webhooks": u8::from(self.courier.webhooks.url.is_some()),
            "request": {"id": request, "idempotency_key": key}, "type": fact.kind,
        });
        let event = Event {
            id: id.clone(),
            kind: fact.kind,
            payment: fact.payment.clone(),
            body: Bytes::from(event.to_string()),
            delivery: Delivery::Sending,
            answers: Vec::new(),
        };
        self.courier.events.put(&id, event);
        id
    }

    fn mark(&mut self, id: &str, delivery: Delivery) {
        if let Some(event) = self.courier.events.get_mut(id) {
            event.delivery = delivery;
        }
    }

    fn send(&mut self, inner: &Arc<Inner>, id: &str, payment: &str, fault: Option<&Fault>) {
        if self.courier.webhooks.url.is_none() {
            self.mark(id, Delivery::GivenUp);
            return;
        }
        let late = match fault {
            Some(Fault::Delay { ms }) => Duration::from_millis(self.books.random.below(*ms as usize + 1) as u64),
            _ => Duration::ZERO,
        };
        let errand = self.courier.errand(id, payment, fault, late);
        inner.spawn(deliver(inner.clone(), errand));
    }

    /// Sends what was kept back, in the order in which it happened or in the reverse of it; how many.
    pub(super) fn release(&mut self, inner: &Arc<Inner>, is_reversed: bool) -> usize {
        let is_held = |event: &&Event| event.delivery == Delivery::Held;
        let mut held: Vec<(String, String)> =
            self.courier.events.all.iter().filter(is_held).map(|e| (e.id.clone(), e.payment.clone())).collect();
        if is_reversed {
            held.reverse();
        }
        for (id, payment) in &held {
            self.mark(id, Delivery::Sending);
            self.send(inner, id, payment, None);
        }
        held.len()
    }

    /// Sends an event once more, as a person may from the provider's pages.
    pub(super) fn resend(&mut self, inner: &Arc<Inner>, id: &str) -> bool {
        let Some(payment) = self.courier.events.get(id).map(|event| event.payment.clone()) else { return false };
        self.mark(id, Delivery::Sending);
        self.send(inner, id, &payment, None);
        true
    }
}

/// Attempts until one is answered 2xx.
async fn deliver(inner: Arc<Inner>, errand: Errand) {
    let Errand { id, mut is_doubled, wait, first } = errand;
    match wait {
        Wait::Behind(Some(before)) => {
            // Whether that attempt succeeded does not matter, only that it was made.
            let _ = before.await;
        }
        Wait::Behind(None) => {}
        Wait::Time(time) => tokio::time::sleep(time).await,
        Wait::Overtaken(next, at_last) => {
            let _ = tokio::time::timeout(at_last, next).await;
        }
    }
    let mut first = Some(first);
    let mut pause = PAUSE;
    for attempt in 1.. {
        let webhooks = inner.state.lock().courier.webhooks.clone();
        let body = inner.state.lock().courier.events.get(&id).map(|event| event.body.clone());
        let (Some(url), Some(body)) = (&webhooks.url, body) else { return };
        let once = || post(url, &webhooks.secrets, body.clone());
        let answers = if std::mem::take(&mut is_doubled) {
            let (one, other) = tokio::join!(once(), once());
            vec![one, other]
        } else {
            vec![once().await]
        };
        drop(first.take());
        let is_done = answers.iter().all(|status| (200..300).contains(status));
        let is_last = attempt >= webhooks.attempts;
        if let Some(event) = inner.state.lock().courier.events.get_mut(&id) {
            event.answers.extend(answers);
            if is_done {
                event.delivery = Delivery::Delivered;
            } else if is_last {
                event.delivery = Delivery::GivenUp;
            }
        }
        if is_done || is_last {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// One attempt: the status, or 0 when there was no answer.
async fn post(url: &str, secrets: &[String], body: Bytes) -> u16 {
    let attempt = async {
        let url: hyper::Uri = url.parse().ok()?;
        let authority = url.authority()?;
        let address = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
        let stream = TcpStream::connect(address).await.ok()?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
        let signature = sign::header(secrets, wall().millis() / 1000, &body);
        let request = hyper::Request::post(url.path_and_query().map_or("/", |path| path.as_str()))
            .header("host", authority.as_str())
            .header("content-type", "application/json; charset=utf-8")
            .header("stripe-signature", signature)
            .header("user-agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
            .body(Full::new(body))
            .ok()?;
        let exchange = async {
            let answer = sender.send_request(request).await.ok()?;
            let status = answer.status().as_u16();
            // The body is of no interest, but closing before it is whole would look like a failure over there.
            let _ = answer.into_body().collect().await;
            Some(status)
        };
        tokio::pin!(exchange);
        tokio::select! {
            status = &mut exchange => status,
            _ = connection => exchange.await,
        }
    };
    tokio::time::timeout(PATIENCE, attempt).await.ok().flatten().unwrap_or_default()
}
