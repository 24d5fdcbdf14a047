//! The signature of a webhook. The whole secret is the key, `whsec_` included and not decoded.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt::Write;

/// The value of `Stripe-Signature` for an attempt at this second: one `v1` a secret.
pub(crate) fn header(secrets: &[String], second: i64, body: &[u8]) -> String {
    let mut header = format!("t={second}");
    for secret in secrets {
        // Writing into a string cannot fail.
        let _ = write!(header, ",v1={}", sign(secret, second, body));
    }
    header
}

/// One signature in hexadecimal.
fn sign(secret: &str, second: i64, body: &[u8]) -> String {
    // A key of any length is taken; there is nothing to go wrong.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(second.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"id":"evt_test_1","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount":1000,"currency":"eur","metadata":{"hold_id":"h_1"}}}}"#;

    #[test]
    fn known_answers() {
        assert_eq!(EVENT.len(), 162);
        assert_eq!(
            sign("whsec_test_secret", 1_760_000_000, EVENT.as_bytes()),
            "071d6ca5a85aee8806a91c4d9087a19fc3e466e6630c298efed24edb826e2895"
        );
        assert_eq!(
            sign("whsec_test_vector_secret", 1_791_496_587, br#"{"id":"evt_vector","object":"event"}"#),
            "62f168c739e46de5dd2a13a63690c3cac6c7df363866987235316438907f4b66"
        );
    }

    #[test]
    fn every_secret_signs_while_they_rotate() {
        let (old, new) = ("whsec_old".to_owned(), "whsec_new".to_owned());
        let both = header(&[old.clone(), new.clone()], 7, b"{}");
        assert_eq!(both, format!("t=7,v1={},v1={}", sign(&old, 7, b"{}"), sign(&new, 7, b"{}")));
        assert_eq!(header(&[], 7, b"{}"), "t=7");
    }
}
