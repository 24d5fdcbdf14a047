//! Enqueue tokens: a shop says who joins a waiting room, by a JWS in its compact form with HS256 and a secret that it
//! shares with this service (RFC 7515, RFC 7519). Any JWT library makes one.
//!
//! `aud` is the sale (or a list with it), `sub` who joins, `exp` until when; `jti`, where told, is for whoever lets a
//! token join only once; `nbf` is kept. A token may be good for 24 hours at the most: whoever writes milliseconds where
//! seconds belong would make one that is good for ever, and should learn of it by the first token.

use crate::keys::{decode, mac};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fmt;
use subtle::ConstantTimeEq;

/// A secret with fewer bytes can be guessed from a token, and is never tried (RFC 7518, 3.2).
pub const SHORTEST_SECRET: usize = 32;

/// Longer than any sensible token.
const LONGEST: usize = 4096;
/// The longest identity, in bytes.
const LONGEST_IDENTITY: usize = 256;
/// How many seconds ahead a token may expire.
const AHEAD: u64 = 24 * 60 * 60;
/// The shop's clock may be so many seconds ahead.
const LEEWAY: u64 = 60;

/// What a shop says of who joins.
#[derive(Clone, PartialEq, Eq)]
pub struct Enqueue {
    /// Who joins, as the shop knows them: one ticket each.
    pub identity: String,
    /// Until when the token is good, in seconds since 1970.
    pub expires_at: u64,
    /// The token's own name.
    pub jti: Option<String>,
}

/// Until when, but not who: identities may be addresses of people.
impl fmt::Debug for Enqueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// Why a token is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnqueueError {
    /// No shop of ours has signed it, or it does not say what it has to.
    Invalid,
    /// Its time is over.
    Expired,
    /// It is good for longer than 24 hours.
    TooLong,
    /// It is for another sale.
    Scope,
}

impl fmt::Display for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "the enqueue token is not valid",
            Self::Expired => "the enqueue token has expired",
            Self::TooLong => "the enqueue token is good for longer than 24 hours (exp is in seconds)",
            Self::Scope => "the enqueue token is for another sale",
        })
    }
}

impl std::error::Error for EnqueueError {}

#[derive(Deserialize)]
struct Header {
    alg: String,
    /// Names what a reader has to understand; we understand nothing more.
    #[serde(default)]
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    aud: Audience,
    sub: String,
    exp: Moment,
    #[serde(default)]
    nbf: Option<Moment>,
    #[serde(default)]
    jti: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    fn has(&self, sale: &str) -> bool {
        match self {
            Self::One(one) => one == sale,
            Self::Several(all) => all.iter().any(|one| one == sale),
        }
    }
}

/// Seconds since 1970. Some libraries write a fraction.
#[derive(Deserialize)]
#[serde(untagged)]
enum Moment {
    Whole(u64),
    Part(f64),
}

impl Moment {
    /// Without the fraction; what is no moment was before all.
    fn seconds(&self) -> u64 {
        match self {
            Self::Whole(seconds) => *seconds,
            // Too large and too small end at the ends, by what `as` means.
            Self::Part(seconds) => *seconds as u64,
        }
    }
}

/// Reads a token for this sale, signed with one of these secrets; `now` in seconds since 1970.
///
/// # Errors
/// When it is not signed with one of them, or not for this sale and time.
pub fn read<S: AsRef<[u8]>>(text: &str, secrets: &[S], sale: &str, now: u64) -> Result<Enqueue, EnqueueError> {
    if text.len() > LONGEST {
        return Err(EnqueueError::Invalid);
    }
    let claims = genuine(text, secrets).ok_or(EnqueueError::Invalid)?;
    if !claims.aud.has(sale) {
        return Err(EnqueueError::Scope);
    }
    let expires_at = claims.exp.seconds();
    if expires_at <= now {
        return Err(EnqueueError::Expired);
    }
    if expires_at - now > AHEAD {
        return Err(EnqueueError::TooLong);
    }
    let is_early = claims.nbf.is_some_and(|nbf| nbf.seconds() > now.saturating_add(LEEWAY));
    if is_early || claims.sub.is_empty() || claims.sub.len() > LONGEST_IDENTITY {
        return Err(EnqueueError::Invalid);
    }
    Ok(Enqueue { identity: claims.sub, expires_at, jti: claims.jti })
}

/// What one of the secrets has signed.
fn genuine<S: AsRef<[u8]>>(text: &str, secrets: &[S]) -> Option<Claims> {
    let (signed, signature) = text.rsplit_once('.')?;
    let (head, payload) = signed.split_once('.')?;
    let head: Header = serde_json::from_slice(&decode(head)?).ok()?;
    if head.alg != "HS256" || head.crit.is_some() {
        return None;
    }
    let signature = decode(signature)?;
    let secrets = secrets.iter().map(AsRef::as_ref).filter(|secret| secret.len() >= SHORTEST_SECRET);
    let mut is_ours = false;
    for secret in secrets {
        is_ours |= bool::from(mac(secret, &[signed.as_bytes()]).ct_eq(&signature));
    }
    is_ours.then(|| serde_json::from_slice(&decode(payload)?).ok()).flatten()
}
