//! What every test needs: a server that ends with the test, a client that hides nothing, and a few short words.

pub mod client;
pub mod server;
pub mod webhook;

pub use client::{Answer, Call, Connection};
pub use server::{Server, holdfast, refused_start, shared};

use holdfast_engine::clock::monotonic;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

/// Waits until there is something, and fails when there is nothing for too long.
pub fn eventually<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = monotonic();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Tells that a test cannot run here, past the harness that keeps what passing tests print to itself.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Every byte but the unreserved ones, percent-encoded.
pub fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

pub fn stock_path(sku: &str) -> String {
    format!("/v1/stock/{}", encoded(sku))
}

/// A cart of one line.
pub fn cart(order: &str, sku: &str, quantity: u64) -> Value {
    json!({"order_id": order, "items": [{"sku": sku, "quantity": quantity}]})
}

/// As [`cart`], for a number of seconds.
pub fn brief_cart(order: &str, sku: &str, quantity: u64, seconds: u64) -> Value {
    with(cart(order, sku, quantity), "ttl_seconds", seconds)
}

/// The object with one more member.
pub fn with(mut object: Value, name: &str, value: impl Into<Value>) -> Value {
    object[name] = value.into();
    object
}

/// The object without what differs from run to run; asserts that it was there.
pub fn without(mut object: Value, names: &[&str]) -> Value {
    for name in names {
        let gone = object.as_object_mut().and_then(|o| o.remove(*name));
        assert!(gone.is_some_and(|v| !v.is_null()), "{name} is missing in {object}");
    }
    object
}

/// Milliseconds since 1970 of an RFC 3339 time as the contract writes it; asserts the form.
pub fn millis(time: &Value) -> u64 {
    let text = time.as_str().unwrap();
    assert!(text.len() == 24 && text.ends_with('Z') && &text[19..20] == ".", "{text} is not RFC 3339 in UTC with ms");
    let part = |range: std::ops::Range<usize>| text[range].parse::<u64>().unwrap();
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    // Days from the civil calendar, counted from March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    (((days * 24 + part(11..13)) * 60 + part(14..16)) * 60 + part(17..19)) * 1000 + part(20..23)
}
