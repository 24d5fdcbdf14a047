//! Keeps requests to a URL that a person has configured from reaching what is inside: this machine, private networks,
//! a cloud's metadata. Names are resolved here, and the connection goes to the addresses that were looked at.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether anybody on the Internet may be there.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let words = address.segments();
    let v4 = |words: &[u16]| is_public_v4(Ipv4Addr::from(u32::from(words[0]) << 16 | u32::from(words[1])));
    match words {
        // IPv4 in other clothes: mapped, translated, 6to4.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => v4(&words[6..]),
        [0x2002, ..] => v4(&words[1..]),
        // Teredo, benchmarks and the like, and examples.
        [0x2001, 0..=0x1ff | 0xdb8, ..] => false,
        // Global unicast is all that is left to be public.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

/// A name led to an address that is not public.
#[derive(Debug)]
struct NotPublic(IpAddr);

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host has the address {}, which is not public; set allow_private = true if that is meant", self.0)
    }
}

impl Error for NotPublic {}

/// Resolves names to public addresses only.
#[derive(Debug, Clone, Copy)]
pub(super) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One that is not public spoils them all: whoever answers so is up to something, or misconfigured.
            if let Some(inside) = found.iter().find(|address| !is_public(address.ip())) {
                return Err(NotPublic(inside.ip()).into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_is_not_public() {
        for inside in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::7f00:1",
            "64:ff9b:1::a00:1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
        for outside in [
            "1.1.1.1",
            "100.128.0.1",
            "172.32.0.1",
            "192.167.1.1",
            "9.9.9.9",
            "2606:4700::1",
            "::ffff:8.8.8.8",
            "2a00::1",
        ] {
            assert!(is_public(outside.parse().unwrap()), "{outside}");
        }
    }
}
