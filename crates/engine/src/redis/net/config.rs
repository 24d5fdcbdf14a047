//! Where the hot store is. Must never let a password into a text.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

const FORMS: &str = "the forms are redis://user:password@host:6379/0 and \
                     redis+cluster://user:password@host:6379,host:6379, with rediss in place of redis for TLS";

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// `host`, `host:port` or `[IPv6]:port`, as people write it.
    fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| Err(format!("{why} in the Redis URL; {FORMS}"));
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or("?"))),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return bad("a host is missing");
        }
        match port.map_or(Ok(6379), str::parse) {
            Ok(port) if port > 0 => Ok(Self { host: host.to_owned(), port }),
            _ => bad(&format!("the port of {host:?} is no number from 1 to 65535")),
        }
    }

    /// `host:port` as a cluster tells it; where it does not know its own name, the one that was asked is meant.
    pub(super) fn told(text: &str, asked: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if matches!(host, "" | "?") { &asked.host } else { host };
        Some(Self { host: host.to_owned(), port: port.parse().ok().filter(|port| *port > 0)? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// How to reach the hot store.
#[derive(Clone)]
pub(crate) struct NetConfig {
    /// The server, or those of a cluster that are asked for the others.
    pub(crate) nodes: Vec<Address>,
    pub(crate) is_cluster: bool,
    pub(crate) is_tls: bool,
    /// PEM certificates to trust besides the public ones.
    pub(crate) ca: Option<PathBuf>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) db: i64,
    /// How long an answer may take.
    pub(crate) timeout: Duration,
    /// How long a connection may take to be made, and how long a call looks for a server that can take it.
    pub(crate) connect_timeout: Duration,
}

impl NetConfig {
    /// Reads a URL. What is wrong is told with the way out and without the password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let (is_tls, is_cluster, rest) = match url.trim().split_once("://") {
            Some(("redis", rest)) => (false, false, rest),
            Some(("rediss", rest)) => (true, false, rest),
            Some(("redis+cluster", rest)) => (false, true, rest),
            Some(("rediss+cluster", rest)) => (true, true, rest),
            _ => return Err(format!("the Redis URL is not understood; {FORMS}")),
        };
        // From the right, since a password may hold an @ or a / that nobody has encoded.
        let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let (user, password) = login.map_or(Ok((None, None)), read_login)?;
        if place.contains(['?', '#']) {
            return Err(format!("the Redis URL takes no options after ? or #; {FORMS}"));
        }
        let (hosts, db) = place.split_once('/').unwrap_or((place, ""));
        let db = match db.trim_end_matches('/') {
            "" => 0,
            text => {
                text.parse::<u16>().map(i64::from).map_err(|_| format!("the database must be a number; {FORMS}"))?
            }
        };
        let nodes = hosts.split(',').map(Address::parse).collect::<Result<Vec<_>, _>>()?;
        if is_cluster && db != 0 {
            return Err("a Redis cluster has database 0 only: leave it out of the URL".into());
        }
        if !is_cluster && nodes.len() > 1 {
            return Err(format!("several hosts make a cluster: write redis+cluster://; {FORMS}"));
        }
        let (timeout, connect_timeout) = (Duration::from_secs(2), Duration::from_secs(1));
        Ok(Self { nodes, is_cluster, is_tls, ca: None, user, password, db, timeout, connect_timeout })
    }
}

impl NetConfig {
    /// How long a connection may be silent when it is asked who is there. Half of the time that a call has for finding
    /// a server, so that it can look for another one in the rest.
    pub(super) fn patience(&self) -> Duration {
        self.connect_timeout / 2
    }

    /// How long a server may keep a connection waiting for replicas: well below what makes it look silent.
    pub(super) fn longest_wait(&self) -> Duration {
        (self.timeout.min(self.patience()) / 2).max(Duration::from_millis(1))
    }
}

type Login = (Option<String>, Option<String>);

fn read_login(text: &str) -> Result<Login, String> {
    let Some((user, password)) = text.split_once(':') else {
        return Err(format!("the Redis URL has a user without a password, or the colon before it is missing; {FORMS}"));
    };
    let read = |text: &str| {
        decode(text).ok_or_else(|| "the login in the Redis URL has a % that is no encoding: write it as %25".to_owned())
    };
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    let login = (filled(read(user)?), filled(read(password)?));
    if login.0.is_some() && login.1.is_none() {
        return Err(format!("the Redis URL has a user without a password; {FORMS}"));
    }
    Ok(login)
}

/// Percent-encoding.
fn decode(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let hex = piece.get(..2).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// The URL without its login.
impl fmt::Display for NetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.nodes.iter().map(ToString::to_string).collect();
        let (tls, cluster) = (if self.is_tls { "s" } else { "" }, if self.is_cluster { "+cluster" } else { "" });
        write!(f, "redis{tls}{cluster}://{}", hosts.join(","))?;
        if self.is_cluster { Ok(()) } else { write!(f, "/{}", self.db) }
    }
}

impl fmt::Debug for NetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (timeout, connect_timeout) = (self.timeout, self.connect_timeout);
        write!(f, "NetConfig({self}, timeout {timeout:?}, connect_timeout {connect_timeout:?})")
    }
}
