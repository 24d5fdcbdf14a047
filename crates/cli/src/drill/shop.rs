//! The shop: holds at the server, payments at the provider, and what is counted on the way for the person who watches.
//! Its counts must never reach the verdict.

use super::plan::Shopper;
use super::pool::Pool;
use super::queue::Doors;
use crate::latencies::Latencies;
use holdfast_engine::clock::monotonic;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What everything costs, in cents.
const AMOUNT: u64 = 15_000;
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
pub(super) const JSON: (&str, &str) = ("content-type", "application/json");
/// How often an answer that says "later" is taken, and how long a shopper waits then.
const TRIES: u32 = 8;
const LATER: Duration = Duration::from_millis(500);

/// What happened so far.
pub(super) struct Seen {
    pub(super) holds: u64,
    pub(super) sold_out: u64,
    pub(super) paid: u64,
    pub(super) declined: u64,
    pub(super) given_back: u64,
    /// Late payments that found the payment closed.
    pub(super) closed: u64,
    /// How long those waited who were let in, and who they were.
    pub(super) waited: Latencies,
    pub(super) doors: Doors,
    pub(super) accepted: Latencies,
    pub(super) refused: Latencies,
    /// Answers of the server that were not expected, by call and status; 0 is a broken connection.
    pub(super) others: BTreeMap<(&'static str, u16), u64>,
    /// What the provider said that a shop does not expect.
    pub(super) troubles: BTreeMap<String, u64>,
}

/// The shop.
pub(super) struct Shop {
    pub(super) server: Pool,
    pub(super) provider: Pool,
    pub(super) sku: String,
    /// What tells this drill's orders from others.
    pub(super) run: String,
    pub(super) ttl: u32,
    /// The sale whose room everybody goes through, if they do.
    pub(super) sale: Option<String>,
    pub(super) seen: Mutex<Seen>,
}

/// A payment in the making.
pub(super) struct Intent(String);

impl Shop {
    pub(super) fn new(server: Pool, provider: Pool, sku: String, run: String, ttl: u32) -> Result<Self, String> {
        let seen = Seen {
            holds: 0,
            sold_out: 0,
            paid: 0,
            declined: 0,
            given_back: 0,
            closed: 0,
            waited: Latencies::new()?,
            doors: Doors::default(),
            accepted: Latencies::new()?,
            refused: Latencies::new()?,
            others: BTreeMap::new(),
            troubles: BTreeMap::new(),
        };
        Ok(Self { server, provider, sku, run, ttl, sale: None, seen: Mutex::new(seen) })
    }

    /// The order of a shopper.
    pub(super) fn order(&self, number: u32) -> String {
        format!("{}-{number:07}", self.run)
    }

    /// Asks for a unit; the hold's id, unless it is sold out. The latency counts from when the shopper came.
    /// With a pass, if there is a room to wait in.
    pub(super) async fn hold(&self, shopper: &Shopper, came: Instant, pass: Option<&str>) -> Option<String> {
        let body = json!({
            "order_id": self.order(shopper.number), "items": [{"sku": self.sku, "quantity": 1}],
            "ttl_seconds": self.ttl, "amount": AMOUNT, "currency": "EUR",
            "customer_id": format!("{}-customer-{}", self.run, shopper.number),
        });
        let body = body.to_string();
        let mut headers = vec![JSON];
        headers.extend(pass.map(|pass| ("waiting-room-pass", pass)));
        for _ in 0..TRIES {
            let answer = self.server.send("POST", "/v1/holds", &headers, body.as_bytes()).await;
            let spent = monotonic().saturating_duration_since(came);
            match &answer {
                Ok((200 | 201, body)) => {
                    let mut seen = self.seen.lock();
                    seen.holds += 1;
                    seen.accepted.record(spent);
                    return text(body, "id");
                }
                Ok((409, _)) => {
                    let mut seen = self.seen.lock();
                    seen.sold_out += 1;
                    seen.refused.record(spent);
                    return None;
                }
                _ => self.odd("hold", &answer),
            }
            tokio::time::sleep(LATER).await;
        }
        None
    }

    /// Gives a hold back.
    pub(super) async fn release(&self, hold: &str) {
        let answer = self.server.send("POST", &format!("/v1/holds/{hold}/release"), &[JSON], b"{}").await;
        match &answer {
            Ok((200, _)) => self.seen.lock().given_back += 1,
            _ => self.odd("release", &answer),
        }
    }

    /// Makes a payment for an order, and tells it to the hold if this shop does.
    pub(super) async fn intent(&self, shopper: &Shopper, hold: &str, number: u32) -> Option<Intent> {
        let order = self.order(shopper.number);
        let method = if shopper.is_manual { "manual" } else { "automatic" };
        let reference =
            if shopper.by_hold { format!("metadata[hold_id]={hold}") } else { format!("metadata[order_id]={order}") };
        let form = format!(
            "amount={AMOUNT}&currency=eur&capture_method={method}&{reference}&receipt_email=shopper{}@example.com",
            shopper.number
        );
        let key = format!("{order}-{number}");
        let headers = [FORM, ("idempotency-key", key.as_str())];
        let answer = self.provider.send("POST", "/v1/payment_intents", &headers, form.as_bytes()).await;
        let Ok((200, body)) = &answer else {
            self.trouble("making a payment", &answer);
            return None;
        };
        let id = text(body, "id")?;
        if shopper.tells_payment {
            let body = json!({"payment_ref": format!("stripe:{id}")}).to_string();
            let path = format!("/v1/holds/{hold}");
            let answer = self.server.send("PATCH", &path, &[JSON], body.as_bytes()).await;
            // By then it may have lapsed, or another payment of the order may have come in.
            if !matches!(&answer, Ok((200 | 409 | 410, _))) {
                self.odd("payment_ref", &answer);
            }
        }
        Some(Intent(id))
    }

    /// The shopper pays with this card.
    pub(super) async fn pay(&self, intent: &Intent, card: &str) {
        let path = format!("/v1/payment_intents/{}/confirm", intent.0);
        let key = format!("{}-{card}", intent.0);
        let headers = [FORM, ("idempotency-key", key.as_str())];
        let form = format!("payment_method={card}");
        let answer = self.provider.send("POST", &path, &headers, form.as_bytes()).await;
        let mut seen = self.seen.lock();
        match &answer {
            Ok((200, _)) => seen.paid += 1,
            Ok((402, _)) => seen.declined += 1,
            Ok((400, body)) if is_canceled(body) => seen.closed += 1,
            _ => {
                drop(seen);
                self.trouble("paying", &answer);
            }
        }
    }

    pub(super) fn odd(&self, call: &'static str, answer: &std::io::Result<(u16, Vec<u8>)>) {
        let status = answer.as_ref().map_or(0, |(status, _)| *status);
        *self.seen.lock().others.entry((call, status)).or_default() += 1;
    }

    fn trouble(&self, call: &str, answer: &std::io::Result<(u16, Vec<u8>)>) {
        let what = match answer {
            Ok((status, _)) => format!("{call}: {status}"),
            Err(error) => format!("{call}: {error}"),
        };
        *self.seen.lock().troubles.entry(what).or_default() += 1;
    }
}

fn text(body: &[u8], name: &str) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    value[name].as_str().map(str::to_owned)
}

/// Whether a payment was refused because it was canceled before.
fn is_canceled(body: &[u8]) -> bool {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    value["error"]["payment_intent"]["status"] == "canceled"
}
