//! What is asked: the requests of a scenario, written byte by byte into a buffer that is used again.

use crate::random::Random;
use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// How long the holds live.
#[derive(Debug, Clone, Copy)]
pub(super) enum Life {
    /// So many seconds.
    Seconds(u32),
    /// Until about this moment, to the nearest second that a TTL can say.
    Until(Instant),
}

/// What a request is.
#[derive(Debug, Clone)]
pub(super) enum Asks {
    /// A hold, posted to this path.
    Hold(&'static str),
    /// A POST of an empty object.
    Post(Arc<str>),
    /// A GET of one of these paths.
    Get(Arc<[String]>),
}

/// What is asked, again and again, of random SKUs.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    /// What a request is.
    pub(super) asks: Asks,
    /// The status that counts as accepted; 409 counts as refused.
    pub(super) accepted: u16,
    /// The SKUs to choose from.
    pub(super) skus: Arc<[String]>,
    /// How many different ones a cart has.
    pub(super) lines: RangeInclusive<usize>,
    /// How long the holds live.
    pub(super) life: Life,
    /// UUID-like order ids.
    pub(super) random_order_ids: bool,
}

impl Shape {
    /// Holds of one unit of one of these SKUs.
    pub(super) fn holds(skus: &Arc<[String]>, life: Life, random_order_ids: bool) -> Self {
        Self { asks: Asks::Hold("/v1/holds"), accepted: 201, skus: skus.clone(), lines: 1..=1, life, random_order_ids }
    }
}

/// Parts of order ids given out in this process, one a maker.
static PARTS: AtomicU32 = AtomicU32::new(0);

/// Writes the requests of one thread.
pub(super) struct Maker {
    shape: Shape,
    start: Vec<u8>,
    body: Vec<u8>,
    deck: Vec<u32>,
    random: Random,
    part: u64,
    made: u64,
}

impl Maker {
    /// For this server.
    pub(super) fn new(shape: Shape, host: &str, key: Option<&str>) -> Self {
        let path = match &shape.asks {
            Asks::Hold(path) => path,
            Asks::Post(path) => &**path,
            Asks::Get(_) => "",
        };
        let rest = format!(" HTTP/1.1\r\nhost: {host}\r\n");
        let mut start = match &shape.asks {
            Asks::Get(_) => rest,
            _ => format!("POST {path}{rest}content-type: application/json\r\n"),
        };
        if let Some(key) = key {
            start = format!("{start}authorization: Bearer {key}\r\n");
        }
        if !matches!(shape.asks, Asks::Get(_)) {
            start.push_str("content-length: ");
        }
        let mut random = Random::new();
        let part = (random.next() << 16) | u64::from(PARTS.fetch_add(1, Ordering::Relaxed) & 0xffff);
        let deck = (0..u32::try_from(shape.skus.len()).unwrap_or(u32::MAX)).collect();
        Self { shape, start: start.into_bytes(), body: Vec::new(), deck, random, part, made: 0 }
    }

    /// The status that counts as accepted.
    pub(super) fn accepted(&self) -> u16 {
        self.shape.accepted
    }

    /// Writes the next request, and which SKUs it asks one unit of each.
    pub(super) fn write(&mut self, now: Instant, request: &mut Vec<u8>, cart: &mut Vec<u32>) {
        request.clear();
        match &self.shape.asks {
            Asks::Get(paths) => {
                // Writing into a Vec cannot fail.
                let _ = write!(request, "GET {}", paths[self.random.below(paths.len())]);
                request.extend_from_slice(&self.start);
                request.extend_from_slice(b"\r\n");
                return;
            }
            Asks::Post(_) => {
                request.extend_from_slice(&self.start);
                request.extend_from_slice(b"2\r\n\r\n{}");
                return;
            }
            Asks::Hold(_) => {}
        }
        self.draw(cart);
        self.body.clear();
        self.body.extend_from_slice(b"{\"order_id\":\"");
        self.write_order_id();
        self.body.extend_from_slice(b"\",\"items\":[");
        for (n, sku) in cart.iter().enumerate() {
            self.body.extend_from_slice(if n == 0 { b"{\"sku\":\"" } else { b",{\"sku\":\"" });
            self.body.extend_from_slice(self.shape.skus[*sku as usize].as_bytes());
            self.body.extend_from_slice(b"\",\"quantity\":1}");
        }
        let ttl = match self.shape.life {
            Life::Seconds(seconds) => seconds,
            Life::Until(end) => (end.saturating_duration_since(now).as_secs_f64().round() as u32).max(1),
        };
        // Writing into a Vec cannot fail.
        let _ = write!(self.body, "],\"ttl_seconds\":{ttl}}}");
        request.extend_from_slice(&self.start);
        let _ = write!(request, "{}\r\n\r\n", self.body.len());
        request.extend_from_slice(&self.body);
    }

    /// Chooses the SKUs of a cart: the first few of a deck that is shuffled as far as needed.
    fn draw(&mut self, cart: &mut Vec<u32>) {
        cart.clear();
        let (least, most) = (*self.shape.lines.start(), *self.shape.lines.end());
        let lines = (least + self.random.below(most - least + 1)).min(self.deck.len());
        for n in 0..lines {
            let other = n + self.random.below(self.deck.len() - n);
            self.deck.swap(n, other);
            cart.push(self.deck[n]);
        }
    }

    fn write_order_id(&mut self) {
        self.made += 1;
        let _ = if self.shape.random_order_ids {
            let (a, b) = (self.random.next(), self.random.next());
            let (a, b) = (a & !0xf000 | 0x4000, b & !(0b11 << 62) | 0b10 << 62);
            write!(
                self.body,
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                a >> 32,
                a >> 16 & 0xffff,
                a & 0xffff,
                b >> 48,
                b & 0xffff_ffff_ffff
            )
        } else {
            write!(self.body, "{:016X}-{:010}", self.part, self.made)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_engine::clock::monotonic;
    use std::collections::HashSet;

    fn requests(shape: Shape, n: usize) -> Vec<(serde_json::Value, Vec<u32>)> {
        let mut maker = Maker::new(shape, "127.0.0.1:1", Some("k"));
        let (mut request, mut cart) = (Vec::new(), Vec::new());
        (0..n)
            .map(|_| {
                maker.write(monotonic(), &mut request, &mut cart);
                let text = String::from_utf8(request.clone()).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with("POST /v1/holds HTTP/1.1\r\nhost: 127.0.0.1:1\r\n"));
                assert!(head.contains("\r\nauthorization: Bearer k\r\n"));
                assert!(head.ends_with(&format!("\r\ncontent-length: {}", body.len())));
                (serde_json::from_str(body).unwrap(), cart.clone())
            })
            .collect()
    }

    #[test]
    fn carts_differ_and_name_each_sku_once() {
        let skus: Arc<[String]> = (0..100).map(|n| format!("S{n}")).collect();
        let shape = Shape { lines: 3..=10, ..Shape::holds(&skus, Life::Seconds(60), false) };
        let mut sizes = HashSet::new();
        for (body, cart) in requests(shape, 500) {
            let named: Vec<_> = body["items"].as_array().unwrap().iter().map(|i| i["sku"].as_str().unwrap()).collect();
            assert_eq!(named, cart.iter().map(|c| format!("S{c}")).collect::<Vec<_>>());
            assert_eq!(named.iter().collect::<HashSet<_>>().len(), named.len());
            assert_eq!(body["ttl_seconds"], 60);
            sizes.insert(named.len());
        }
        assert_eq!(sizes, (3..=10).collect());
    }

    #[test]
    fn order_ids_are_unique_and_random_ones_are_uuids() {
        let skus: Arc<[String]> = ["S".to_owned()].into();
        for random in [false, true] {
            let made = requests(Shape::holds(&skus, Life::Seconds(1), random), 1000);
            let ids: HashSet<_> = made.iter().map(|(body, _)| body["order_id"].as_str().unwrap()).collect();
            assert_eq!(ids.len(), 1000);
            if random {
                assert!(ids.iter().all(|id| id.len() == 36 && holdfast_engine::domain::HoldId::parse(id).is_some()));
                assert!(ids.iter().all(|id| id.as_bytes()[14] == b'4' && b"89ab".contains(&id.as_bytes()[19])));
            }
        }
    }

    #[test]
    fn a_life_until_a_moment_is_told_in_seconds() {
        let skus: Arc<[String]> = ["S".to_owned()].into();
        let end = monotonic() + std::time::Duration::from_secs(90);
        let made = requests(Shape::holds(&skus, Life::Until(end), false), 1);
        assert_eq!(made[0].0["ttl_seconds"], 90);
    }
}
