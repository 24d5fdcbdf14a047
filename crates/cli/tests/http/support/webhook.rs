//! What payment providers send, signed as they do.

use super::Call;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use holdfast_engine::clock::wall;
use serde_json::{Value, json};
use sha2::Sha256;

pub const STRIPE_SECRET: &str = "whsec_test_of_the_stripe_endpoint";
pub const STANDARD_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
pub const ADYEN_KEY: &str = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";

pub fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Seconds since 1970.
pub fn seconds() -> i64 {
    wall().millis() / 1000
}

pub fn stripe_header(secret: &str, seconds: i64, body: &str) -> String {
    let signature = hex(&mac(secret.as_bytes(), format!("{seconds}.{body}").as_bytes()));
    format!("t={seconds},v1={signature}")
}

/// A Stripe event, signed now.
pub fn stripe(event: &Value) -> Call {
    let body = event.to_string();
    let header = stripe_header(STRIPE_SECRET, seconds(), &body);
    Call::new("POST", "/v1/webhooks/stripe").header("stripe-signature", &header).raw("application/json", body)
}

/// An event of this type about this object.
pub fn event(id: &str, kind: &str, object: &Value) -> Value {
    json!({"id": id, "object": "event", "type": kind, "livemode": false, "created": 1_760_000_000,
        "data": {"object": object}})
}

/// A payment intent that brought 15.00 USD.
pub fn intent(id: &str, metadata: &Value) -> Value {
    json!({"id": id, "object": "payment_intent", "amount": 1500, "amount_received": 1500, "amount_capturable": 0,
        "currency": "usd", "status": "succeeded", "metadata": metadata, "receipt_email": "jo@example.org"})
}

/// `payment_intent.succeeded` for an order.
pub fn paid(event_id: &str, id: &str, order: &str) -> Value {
    event(event_id, "payment_intent.succeeded", &intent(id, &json!({"order_id": order})))
}

/// An Adyen notification of one item, signed.
pub fn adyen(code: &str, psp: &str, original: &str, order: &str, success: bool) -> Call {
    let signed = format!("{psp}:{original}:Shop:{order}:1500:USD:{code}:{success}");
    let key: Vec<u8> = (0..64).step_by(2).map(|at| u8::from_str_radix(&ADYEN_KEY[at..at + 2], 16).unwrap()).collect();
    let signature = STANDARD.encode(mac(&key, signed.as_bytes()));
    let item = json!({"eventCode": code, "success": success.to_string(), "pspReference": psp,
        "originalReference": original, "merchantAccountCode": "Shop", "merchantReference": order,
        "amount": {"value": 1500, "currency": "USD"}, "additionalData": {"hmacSignature": signature}});
    let body = json!({"live": "false", "notificationItems": [{"NotificationRequestItem": item}]});
    Call::new("POST", "/v1/webhooks/adyen").json(&body)
}

/// An event of a provider of the shop's own, signed now.
pub fn standard(id: &str, body: &Value) -> Call {
    let (body, time) = (body.to_string(), seconds());
    let key = STANDARD.decode(STANDARD_SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let signature = STANDARD.encode(mac(&key, format!("{id}.{time}.{body}").as_bytes()));
    Call::new("POST", "/v1/webhooks/standard")
        .header("webhook-id", id)
        .header("webhook-timestamp", &time.to_string())
        .header("webhook-signature", &format!("v1,{signature}"))
        .raw("application/json", body)
}

/// The variables that let a server believe these.
pub fn secrets() -> [(&'static str, &'static str); 3] {
    [
        ("HOLDFAST_STRIPE_WEBHOOK_SECRETS", STRIPE_SECRET),
        ("HOLDFAST_ADYEN_WEBHOOK_SECRETS", ADYEN_KEY),
        ("HOLDFAST_STANDARD_WEBHOOK_SECRETS", STANDARD_SECRET),
    ]
}
