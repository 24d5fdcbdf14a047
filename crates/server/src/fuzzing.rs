//! Doors for the fuzz targets: each takes any bytes, must not panic, and checks what it made of them.

use crate::admission::{Kept, Record, Sale};
use crate::api::{holds, import};
use crate::body::parse;
use crate::payments::receipt::signature::{self, Keys};
use crate::payments::receipt::{Received, adyen, standard, stripe};
use holdfast_domain::Money;

/// Reads a cart as `POST /v1/holds` does.
pub fn cart(bytes: &[u8]) {
    if let Ok((request, _)) = holds::read_hold(bytes, 3600, 600) {
        let mut skus: Vec<_> = request.lines.iter().map(|l| l.sku.clone()).collect();
        let lines = skus.len();
        assert!((1..=holdfast_domain::MAX_LINES).contains(&lines), "a cart has 1..=100 lines");
        skus.dedup();
        assert_eq!(skus.len(), lines, "one line a SKU");
        assert!(skus.is_sorted(), "sorted by bytes");
        assert!(request.lines.iter().all(|l| l.quantity.get() >= 1), "no line asks for nothing");
    }
}

/// Reads a sale as `PUT /v1/sales/{sale}` does; one that is good comes back from the store as it was.
pub fn sale(bytes: &[u8]) {
    let sale = parse(bytes).and_then(|body| Sale::new("drop", body, 3600, Kept::default()));
    if let Ok(sale) = sale {
        let kept = serde_json::to_vec(&sale.record()).unwrap_or_default();
        let record: Option<Record> = serde_json::from_slice(&kept).ok();
        assert!(record.and_then(|record| record.sale().ok()) == Some(sale), "the store keeps what was asked");
    }
}

/// Reads a table as `POST /v1/stock/import` does.
pub fn csv(bytes: &[u8]) {
    for mode in [import::Mode::Set, import::Mode::Add] {
        if let Ok(rows) = import::Rows::new(bytes, mode) {
            for row in rows {
                assert!(row.line >= 1, "lines are counted from 1");
            }
        }
    }
}

/// Reads an event as `POST /v1/webhooks/stripe` does once its signature was good.
pub fn stripe_event(bytes: &[u8]) {
    if let Ok(received) = stripe::facts(bytes, None) {
        check_received(&received);
    }
    if let Ok(intent) = serde_json::from_slice(bytes)
        && let Ok(facts) = stripe::facts_of_intent(&intent)
    {
        let names: std::collections::BTreeSet<_> = facts.iter().map(|fact| fact.event_id.as_str()).collect();
        assert_eq!(names.len(), facts.len(), "each fact has a name of its own");
    }
}

/// Reads a notification as `POST /v1/webhooks/adyen` does once its signatures were good.
pub fn adyen_events(bytes: &[u8]) {
    let Ok(notification) = adyen::read(bytes) else { return };
    assert!(!notification.items.is_empty(), "a notification that tells nothing is refused");
    if let Ok(keys) = Keys::for_adyen(&"5a".repeat(32)) {
        let _ = signature::adyen(&keys, &notification.items);
    }
    for item in &notification.items {
        for capture in [adyen::Capture::Manual, adyen::Capture::Automatic] {
            if let Ok(received) = item.received(notification.live, None, capture) {
                check_received(&received);
            }
        }
    }
}

/// Reads an event as `POST /v1/webhooks/standard` does once its signature was good.
pub fn standard_event(bytes: &[u8]) {
    if let Ok(received) = standard::facts("msg_1", bytes) {
        check_received(&received);
    }
}

/// Takes the bytes for a header, a line end and a body. Whatever they are, nobody but us can sign the body.
pub fn signatures(bytes: &[u8]) {
    let at = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let (header, body) = (String::from_utf8_lossy(&bytes[..at]), bytes.get(at + 1..).unwrap_or_default());
    let now = holdfast_domain::Time::from_millis(1_760_000_000_000);
    let (Ok(ours), Ok(other)) = (Keys::for_stripe("whsec_ours_ours_ours"), Keys::for_stripe("whsec_other_other_other"))
    else {
        return;
    };
    assert!(signature::stripe(&ours, &header, body, now).is_err(), "signed without the secret");
    assert!(
        signature::standard(&ours, "msg_1", "1760000000", &header, body, now).is_err(),
        "signed without the secret"
    );
    let stripe = signature::sign_stripe(&ours, 1_760_000_000, body);
    assert!(signature::stripe(&ours, &stripe, body, now).is_ok(), "our own signature is good");
    assert!(signature::stripe(&other, &stripe, body, now).is_err(), "for us only");
    let standard = signature::sign_standard(&ours, "msg_1", 1_760_000_000, body);
    assert!(
        signature::standard(&ours, "msg_1", "1760000000", &standard, body, now).is_ok(),
        "our own signature is good"
    );
    let longer = [body, b" "].concat();
    assert!(signature::stripe(&ours, &stripe, &longer, now).is_err(), "and for these bytes only");
    assert!(signature::standard(&ours, "msg_1", "1760000000", &standard, &longer, now).is_err());
}

fn check_received(received: &Received) {
    assert_eq!(received.facts.is_empty(), received.ignored.is_some(), "ignored, or something in it");
    for fact in &received.facts {
        assert_eq!(fact.event_id, received.event_id, "a fact is known by its event");
        assert!(fact.money.amount.is_none_or(|a| a <= Money::MAX_AMOUNT), "amounts are exact in JSON");
    }
}
