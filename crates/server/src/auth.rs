//! Who calls, and what they may do.

use crate::config::{ApiKey, Role};
use crate::problem::Problem;
use axum::http::{HeaderMap, Method, header};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The known keys by digest. Looking a digest up leaks nothing that helps to guess a key.
#[derive(Debug, Default)]
pub(crate) struct Keys(HashMap<[u8; 32], Role>);

impl Keys {
    pub(crate) fn new(keys: &[ApiKey]) -> Self {
        Self(keys.iter().map(|key| (key.digest, key.role)).collect())
    }

    /// Lets a request through, with the role of its key if it has one, or says why not. Without keys, everybody may do everything (on loopback only).
    pub(crate) fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<Option<Role>, Problem> {
        if self.0.is_empty() {
            return Ok(Some(Role::Admin));
        }
        let role = || bearer(headers).and_then(|key| self.0.get(&<[u8; 32]>::from(Sha256::digest(key))));
        let Some(needed) = needed_role(method, path) else { return Ok(role().copied()) };
        let role = role();
        match role {
            None => {
                Err(Problem::new("unauthenticated", "send `Authorization: Bearer <key>` with a key of this server"))
            }
            Some(role) if *role < needed => {
                Err(Problem::new("forbidden", format!("this call needs a key with role {}", needed.as_str())))
            }
            Some(role) => Ok(Some(*role)),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}

/// The least role for a call; `None` for what is open to all.
fn needed_role(method: &Method, path: &str) -> Option<Role> {
    // Who sends a webhook is proven by its signature.
    if !path.starts_with("/v1/") || path.starts_with("/v1/webhooks/") {
        return None;
    }
    // Shoppers wait without a key: their ticket is theirs alone, and anybody may check the draw.
    let mut parts = path.split('/').skip(2);
    if parts.next() == Some("sales") && matches!(parts.nth(1), Some("queue" | "draw")) {
        return None;
    }
    if method == Method::GET || method == Method::HEAD {
        return Some(Role::Read);
    }
    let is_checkout = path.starts_with("/v1/holds") || path.starts_with("/v1/orders/");
    Some(if is_checkout { Role::Checkout } else { Role::Admin })
}
