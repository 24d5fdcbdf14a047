//! Who a request is from, as every handler may ask.

use super::client::network;
use crate::config::Role;
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use holdfast_domain::CustomerId;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

/// Names of clients are kept as numbers that nobody outside can foresee.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The address a connection came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// What the key allows. Without any keys, everybody may do everything.
    pub(crate) role: Option<Role>,
    /// Where from: the client's address as far as trusted proxies tell it.
    pub(crate) address: IpAddr,
    /// Over HTTPS, as far as trusted proxies tell it.
    pub(crate) is_https: bool,
}

impl Caller {
    /// Whose bucket a request draws from: the customer that an authenticated caller names, else the address.
    pub(crate) fn client(&self, customer: Option<&CustomerId>) -> u64 {
        HASHER.hash_one(self.client_name(customer))
    }

    /// The same in words, alike on all nodes.
    pub(super) fn client_name(&self, customer: Option<&CustomerId>) -> String {
        match customer.filter(|_| self.role.is_some()) {
            Some(customer) => format!("customer {}", customer.as_str()),
            None => format!("address {}", network(self.address)),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let nobody = Self { role: None, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), is_https: false };
        Ok(parts.extensions.get::<Self>().copied().unwrap_or(nobody))
    }
}
