//! Passes: whoever had a turn in the waiting room shows one with a hold. A JWS in its compact form, signed with Ed25519,
//! that any merchant can verify by the published keys (RFC 7515, RFC 8037).
//!
//! What a pass says of its own algorithm and key is never followed: its header is compared with the only one that each
//! live key writes. The same claims always make the same text, so that asking for a pass twice gives the same pass.

use crate::keys::{KeyRing, decode, encode};
use ed25519_dalek::{Signature, Signer};
use serde::Deserialize;
use std::fmt;

const ISSUER: &str = "holdfast";
/// Longer than any pass.
const LONGEST: usize = 4096;
/// A pass may come from a node whose clock is so many seconds ahead.
const LEEWAY: u64 = 5;

/// What a pass says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Claims {
    /// The sale that it is for.
    pub aud: String,
    /// The ticket that it was given for.
    pub sub: String,
    /// Which pass it is: it is used once.
    pub jti: String,
    /// When it was made. This and the other moments are seconds since 1970.
    pub iat: u64,
    /// From when it is good.
    pub nbf: u64,
    /// From when it is not good any more.
    pub exp: u64,
}

/// What is signed.
#[derive(Deserialize)]
struct Signed {
    iss: String,
    #[serde(flatten)]
    claims: Claims,
}

/// Why a pass is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassError {
    /// It was not made here, its key is good no more, or it is for later.
    Invalid,
    /// Its time is over.
    Expired,
    /// It is for another sale.
    Scope,
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "this is no pass, or one that is not good",
            Self::Expired => "the pass has expired",
            Self::Scope => "the pass is for another sale",
        })
    }
}

impl std::error::Error for PassError {}

/// The text of a pass, signed with the newest key.
pub fn sign(keys: &KeyRing, claims: &Claims) -> String {
    let key = keys.newest();
    let Claims { aud, sub, jti, iat, nbf, exp } = claims;
    // In alphabetical order, which is the order of the text whether or not JSON keeps the one that things are told in.
    let payload =
        serde_json::json!({ "aud": aud, "exp": exp, "iat": iat, "iss": ISSUER, "jti": jti, "nbf": nbf, "sub": sub });
    let text = format!("{}.{}", encode(header(key.kid())), encode(payload.to_string()));
    let signature = encode(key.passes().sign(text.as_bytes()).to_bytes());
    format!("{text}.{signature}")
}

/// Reads a pass for this sale; `now` in seconds since 1970.
///
/// # Errors
/// When it is not exactly what a live key has signed, is for another sale, or not for this time.
pub fn verify(keys: &KeyRing, text: &str, sale: &str, now: u64) -> Result<Claims, PassError> {
    if text.len() > LONGEST {
        return Err(PassError::Invalid);
    }
    let claims = genuine(keys, text).ok_or(PassError::Invalid)?;
    if claims.aud != sale {
        return Err(PassError::Scope);
    }
    if claims.exp <= now {
        return Err(PassError::Expired);
    }
    if claims.nbf > now.saturating_add(LEEWAY) {
        return Err(PassError::Invalid);
    }
    Ok(claims)
}

/// What a live key has signed.
fn genuine(keys: &KeyRing, text: &str) -> Option<Claims> {
    let (signed, signature) = text.rsplit_once('.')?;
    let (head, payload) = signed.split_once('.')?;
    let key = keys.live().find(|key| head == encode(header(key.kid())))?;
    let signature = Signature::from_slice(&decode(signature)?).ok()?;
    key.passes().verifying_key().verify_strict(signed.as_bytes(), &signature).ok()?;
    let signed: Signed = serde_json::from_slice(&decode(payload)?).ok()?;
    (signed.iss == ISSUER).then_some(signed.claims)
}

fn header(kid: &str) -> String {
    format!(r#"{{"alg":"EdDSA","kid":"{kid}","typ":"JWT"}}"#)
}
