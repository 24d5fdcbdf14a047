//! Who signed a webhook: HMAC-SHA256 over the bytes as they came, compared in constant time.
//!
//! Never re-serialises a body, never tells or logs a secret, and never accepts a scheme weaker than the one named here.

use super::adyen::Item;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit, Mac};
use holdfast_domain::Time;
use sha2::Sha256;
use std::fmt;
use subtle::{Choice, ConstantTimeEq};

/// How far a signature's timestamp may be off, either way. Each attempt of a provider is signed anew, so that a retry
/// is never too old.
pub(crate) const TOLERANCE_SECONDS: i64 = 300;

/// Base64 with or without padding: senders differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The keys of one endpoint. Several, so that one can be replaced while both are in use.
#[derive(Clone)]
pub(crate) struct Keys(Vec<Hmac<Sha256>>);

/// Without the keys.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    /// Stripe's signing secrets, `whsec_…`: the whole text is the key.
    pub(crate) fn for_stripe(list: &str) -> Result<Self, String> {
        Self::read(list, |text| match text {
            _ if ["sk_", "rk_", "pk_"].iter().any(|p| text.starts_with(p)) => {
                Err("is an API key; the endpoint's signing secret starts with whsec_")
            }
            _ if text.starts_with("we_") => Err("is the endpoint's id; its signing secret starts with whsec_"),
            _ if text.len() < 16 => Err("is too short to be a signing secret, which starts with whsec_"),
            _ => Ok(text.as_bytes().to_vec()),
        })
    }

    /// Secrets of the Standard Webhooks, `whsec_…`: base64 after the prefix.
    pub(crate) fn for_standard(list: &str) -> Result<Self, String> {
        Self::read(list, |text| {
            if text.starts_with("whsk_") || text.starts_with("whpk_") {
                return Err(
                    "is an ed25519 key; use a symmetric secret, whsec_ and the base64 of 24 to 64 random bytes",
                );
            }
            let key = BASE64.decode(text.strip_prefix("whsec_").unwrap_or(text)).unwrap_or_default();
            if key.len() < 24 {
                return Err("must be whsec_ and the base64 of 24 to 64 random bytes");
            }
            Ok(key)
        })
    }

    /// Adyen's HMAC keys, in hexadecimal.
    pub(crate) fn for_adyen(list: &str) -> Result<Self, String> {
        Self::read(list, |text| {
            let key = hex::decode(text).unwrap_or_default();
            if key.len() < 16 {
                return Err("must be the HMAC key of the webhook in hexadecimal, 64 digits");
            }
            Ok(key)
        })
    }

    /// Comma-separated, at least one. Errors count the secrets and never repeat one.
    fn read(list: &str, key: impl Fn(&str) -> Result<Vec<u8>, &'static str>) -> Result<Self, String> {
        let texts = list.split(',').map(str::trim).filter(|t| !t.is_empty());
        let keys = texts.enumerate().map(|(index, text)| {
            let key = key(text).and_then(|k| Hmac::new_from_slice(&k).map_err(|_| "cannot be used as a key"));
            key.map_err(|why| format!("webhook secret {} {why}", index + 1))
        });
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err("the webhook secrets are set, but there is none among them".into());
        }
        Ok(Self(keys))
    }

    /// Whether any of the keys made any of the signatures. Looks at all of them, so that the time tells nothing.
    fn match_any(&self, message: &[&[u8]], signatures: &[Vec<u8>]) -> bool {
        let mut found = Choice::from(0);
        for key in &self.0 {
            let made = mac(key, message);
            for signature in signatures {
                found |= made.as_slice().ct_eq(signature);
            }
        }
        found.into()
    }
}

/// Why a signature is not good. The answer is 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadSignature {
    /// What had to be there is missing or cannot be read.
    Unreadable(&'static str),
    /// It was made so many seconds ago; negative if it is from the future.
    Stale(i64),
    /// None of the keys made it.
    Wrong,
}

impl fmt::Display for BadSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(what) => f.write_str(what),
            Self::Stale(age) => write!(
                f,
                "the signature was made {} s {}, and {TOLERANCE_SECONDS} s are allowed: check both clocks",
                age.unsigned_abs(),
                if *age < 0 { "in the future" } else { "ago" }
            ),
            Self::Wrong => f.write_str(
                "no signature was made with a secret of ours: check that the endpoint's secret is among the configured ones, and that nothing on the way rewrites the body",
            ),
        }
    }
}

/// `Stripe-Signature: t=…,v1=…[,v1=…]`.
pub(crate) fn stripe(keys: &Keys, header: &str, body: &[u8], now: Time) -> Result<(), BadSignature> {
    let (mut time, mut signatures) = (None, Vec::new());
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", text)) if time.replace(text).is_some() => {
                return Err(BadSignature::Unreadable("Stripe-Signature has two timestamps"));
            }
            // A signature of another length is none, and other schemes are weaker.
            Some(("v1", text)) => signatures.extend(hex::decode(text).ok().filter(|s| s.len() == 32)),
            _ => {}
        }
    }
    let time = time.ok_or(BadSignature::Unreadable("Stripe-Signature is missing or has no timestamp t"))?;
    if signatures.is_empty() {
        return Err(BadSignature::Unreadable("Stripe-Signature has no signature v1"));
    }
    check_time(time, now)?;
    if keys.match_any(&[time.as_bytes(), b".", body], &signatures) { Ok(()) } else { Err(BadSignature::Wrong) }
}

/// `webhook-id`, `webhook-timestamp` and `webhook-signature: v1,…[ v1,…]`.
pub(crate) fn standard(
    keys: &Keys,
    id: &str,
    time: &str,
    header: &str,
    body: &[u8],
    now: Time,
) -> Result<(), BadSignature> {
    // A dot would let a part of the body pass for a part of the id.
    if id.is_empty() || id.contains('.') {
        return Err(BadSignature::Unreadable("webhook-id is missing or has a dot in it"));
    }
    let symmetric = header.split(' ').filter_map(|part| part.strip_prefix("v1,"));
    let signatures: Vec<_> = symmetric.filter_map(|text| BASE64.decode(text).ok().filter(|s| s.len() == 32)).collect();
    if signatures.is_empty() {
        return Err(BadSignature::Unreadable(
            "webhook-signature is missing or has no signature v1: sign with a symmetric secret",
        ));
    }
    check_time(time, now)?;
    let message: [&[u8]; 5] = [id.as_bytes(), b".", time.as_bytes(), b".", body];
    if keys.match_any(&message, &signatures) { Ok(()) } else { Err(BadSignature::Wrong) }
}

/// Each item of an Adyen notification carries its own signature. There is no timestamp in it.
pub(crate) fn adyen(keys: &Keys, items: &[Item]) -> Result<(), BadSignature> {
    // A notification without items would be one that nobody signed.
    let mut all = Choice::from(u8::from(!items.is_empty()));
    for item in items {
        let signature = item.signature.as_deref().and_then(|text| BASE64.decode(text).ok());
        let Some(signature) = signature.filter(|s| s.len() == 32) else {
            return Err(BadSignature::Unreadable(
                "additionalData.hmacSignature is missing or unreadable: generate an HMAC key for the webhook",
            ));
        };
        let message = item.signed_text().ok_or(BadSignature::Unreadable(
            "a colon in pspReference, originalReference, merchantAccountCode, amount, eventCode or success makes the signature ambiguous",
        ))?;
        all &= Choice::from(u8::from(keys.match_any(&[message.as_bytes()], &[signature])));
    }
    if all.into() { Ok(()) } else { Err(BadSignature::Wrong) }
}

/// The header that Stripe would send.
pub(crate) fn sign_stripe(keys: &Keys, seconds: i64, body: &[u8]) -> String {
    let time = seconds.to_string();
    let made = keys.0.iter().map(|key| format!(",v1={}", hex::encode(mac(key, &[time.as_bytes(), b".", body]))));
    format!("t={time}{}", made.collect::<String>())
}

/// One `v1,…` per key, separated by spaces: the header `webhook-signature`.
pub(crate) fn sign_standard(keys: &Keys, id: &str, seconds: i64, body: &[u8]) -> String {
    let time = seconds.to_string();
    let message: [&[u8]; 5] = [id.as_bytes(), b".", time.as_bytes(), b".", body];
    let made = keys.0.iter().map(|key| format!("v1,{}", BASE64.encode(mac(key, &message))));
    made.collect::<Vec<_>>().join(" ")
}

fn mac(key: &Hmac<Sha256>, message: &[&[u8]]) -> [u8; 32] {
    let mut mac = key.clone();
    message.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn check_time(text: &str, now: Time) -> Result<(), BadSignature> {
    let is_plain = (1..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let seconds = text.parse::<i64>().ok().filter(|_| is_plain);
    let seconds = seconds.ok_or(BadSignature::Unreadable("the signature's timestamp is no number of seconds"))?;
    let age = now.millis().div_euclid(1000) - seconds;
    if age.abs() > TOLERANCE_SECONDS { Err(BadSignature::Stale(age)) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
