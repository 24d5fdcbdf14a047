//! Who a request comes from: the address of the peer, or what trusted proxies say of it. What a client says of itself
//! is never believed.

use crate::config::ConfigError;
use axum::http::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};

/// Proxies whose word on where a request comes from is taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Reads addresses and networks, separated by commas.
    ///
    /// # Errors
    /// Names the part that is neither.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let read = |part: &str| {
            let net = part.parse::<IpNet>().ok().or_else(|| part.parse::<IpAddr>().ok().map(IpNet::from));
            net.ok_or_else(|| {
                ConfigError(format!("trusted proxies: {part:?} is neither an address nor a network like 10.0.0.0/8"))
            })
        };
        parts.map(read).collect::<Result<_, _>>().map(Self)
    }

    fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|net| net.contains(&address))
    }

    /// The client's address: from the right, the first hop that is no proxy of ours. Each proxy appends whom it heard.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let told = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let hops: Vec<&str> = told.flat_map(|value| value.split(',')).map(str::trim).collect();
        for hop in hops.iter().rev() {
            if !self.has(client) {
                break;
            }
            // A proxy of ours that writes something else hides who is behind it.
            let Some(address) = address(hop) else { break };
            client = address.to_canonical();
        }
        client
    }

    /// Whether the client came by HTTPS, as a proxy of ours says.
    pub(crate) fn is_https(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        let told = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
        self.has(peer.to_canonical()) && told.is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"))
    }
}

/// `1.2.3.4`, `1.2.3.4:5`, `::1`, `[::1]:5`.
fn address(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(inside, _)| inside);
    let without_port = || hop.rsplit_once(':').filter(|(host, _)| !host.contains(':')).map(|(host, _)| host);
    bare.or_else(without_port).unwrap_or(hop).parse().ok()
}

/// One client: the whole /64 of an IPv6 address, which is the least that anybody is given.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(proxies: &str, peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let proxies = TrustedProxies::parse(proxies).unwrap();
        network(proxies.client(peer.parse().unwrap(), &headers)).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(client("", "10.0.0.1", &["6.6.6.6"]), "10.0.0.1");
        assert_eq!(client("10.0.0.0/8", "10.0.0.1", &["6.6.6.6"]), "6.6.6.6");
        assert_eq!(
            client("10.0.0.0/8", "10.0.0.1", &["1.1.1.1, 6.6.6.6, 10.2.2.2"]),
            "6.6.6.6",
            "the first is made up"
        );
        assert_eq!(client("10.0.0.0/8", "10.0.0.1", &["1.1.1.1", "6.6.6.6:443"]), "6.6.6.6");
        assert_eq!(client("10.0.0.0/8", "10.0.0.1", &["unknown"]), "10.0.0.1");
        assert_eq!(client("10.0.0.0/8", "10.0.0.1", &["10.1.1.1"]), "10.1.1.1", "all of them are ours");
        assert_eq!(client("10.0.0.1", "::ffff:10.0.0.1", &["6.6.6.6"]), "6.6.6.6");
        assert_eq!(client("::1", "::1", &["[2001:db8:1:2:3:4:5:6]:9"]), "2001:db8:1:2::");
        assert_eq!(client("::1", "::1", &["2001:db8:1:2:3:4:5:6"]), "2001:db8:1:2::");
        assert!(TrustedProxies::parse("10.0.0.0/8, nginx").unwrap_err().to_string().contains("nginx"));
    }
}
