//! Waiting: a shopper joins the room of the sale, asks at the pace that it is told, and takes the turn.

use super::plan::Shopper;
use super::shop::{JSON, Shop};
use holdfast_engine::clock::monotonic;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often something odd is taken before a shopper gives up.
const TRIES: u32 = 20;
const LATER: Duration = Duration::from_millis(500);

/// Who was let in when.
#[derive(Debug, Default)]
pub(super) struct Doors {
    pub(super) admitted: u64,
    pub(super) turned_away: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Doors {
    fn let_in(&mut self, now: Instant) {
        self.admitted += 1;
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Shoppers per second, from the first to the last.
    pub(super) fn rate(&self) -> f64 {
        let spent = self.last.zip(self.first).map_or(0.0, |(last, first)| (last - first).as_secs_f64());
        if spent > 0.0 { self.admitted.saturating_sub(1) as f64 / spent } else { 0.0 }
    }
}

impl Shop {
    /// Waits for a turn; the pass, unless all is sold before.
    pub(super) async fn wait(&self, shopper: &Shopper, came: Instant) -> Option<String> {
        let sale = self.sale.as_ref()?;
        let queue = format!("/v1/sales/{sale}/queue");
        let body = json!({"identity": format!("{}-customer-{}", self.run, shopper.number)}).to_string();
        let ticket = self.asked("join", "POST", &queue, body.as_bytes()).await?;
        let path = format!("{queue}/{}", ticket["ticket"].as_str()?);
        let mut place = ticket;
        loop {
            if place["room"] == "sold_out" || place["room"] == "closed" {
                self.seen.lock().doors.turned_away += 1;
                return None;
            }
            if place["state"] == "turn" || place["state"] == "admitted" {
                let pass = self.asked("claim", "POST", &format!("{path}/claim"), b"{}").await?;
                if let Some(pass) = pass["pass"].as_str() {
                    let now = monotonic();
                    let mut seen = self.seen.lock();
                    seen.waited.record(now.saturating_duration_since(came));
                    seen.doors.let_in(now);
                    return Some(pass.to_owned());
                }
            }
            if !matches!(place["state"].as_str(), Some("prequeue" | "waiting" | "turn" | "admitted")) {
                self.seen.lock().doors.turned_away += 1;
                return None;
            }
            tokio::time::sleep(Duration::from_millis(place["poll_after_ms"].as_u64().unwrap_or(5000))).await;
            place = self.asked("poll", "GET", &path, b"").await?;
        }
    }

    /// An answer that says something; asked for again when it is not one.
    async fn asked(&self, call: &'static str, method: &str, path: &str, body: &[u8]) -> Option<Value> {
        for _ in 0..TRIES {
            let answer = self.server.send(method, path, &[JSON], body).await;
            match &answer {
                Ok((200..=202, body)) => return serde_json::from_slice(body).ok(),
                _ => self.odd(call, &answer),
            }
            tokio::time::sleep(LATER).await;
        }
        None
    }
}
