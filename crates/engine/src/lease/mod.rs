//! Leases: Redlock with fencing over independent Redis servers. They elect singletons, one janitor or one relay among
//! many nodes, and keep nodes from doing the same work twice.
//!
//! They must never be what stock depends on. A lease is a promise about time, and a process can be paused for longer
//! than any promise lasts. What makes a late holder harmless is the *fence*: a number that grows with every lease on a
//! resource, carried by every write, and compared by whatever is written to.
//!
//! An attempt asks all servers at once. It has the lease when a majority gave it, when after the time that this took
//! enough of the lease is left, and when a majority has raised its counters to the attempt's fence while the locks were
//! still its own: any two majorities share a server, so the next holder draws a higher fence.

mod guard;
mod node;
mod reaper;

pub use guard::{Guard, Lost};

use crate::clock::{monotonic, random_seed, random_token};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use guard::Claim;
use node::{Ballot, Node, Silent};
use reaper::Gone;
use redis::{Client, IntoConnectionInfo};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The shortest time to live: less would be gone before the answers are there.
const SHORTEST: Duration = Duration::from_millis(50);

/// How leases are taken.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    /// What every key begins with.
    pub prefix: String,
    /// No lease may be asked for a longer time to live. A server that may have forgotten leases, since it started lately
    /// and does not write to disk before it answers, gives no vote for so long.
    pub longest: Duration,
    /// How long one server may take to answer: 50 ms at the most, and never more than a tenth of the time to live.
    pub patience: Duration,
    /// The longest pause between two attempts; each is a random part of it.
    pub pause: Duration,
    /// A guard is renewed for so long, then its holder has to ask again.
    pub max_hold: Option<Duration>,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self {
            prefix: "holdfast:".into(),
            longest: Duration::from_secs(30),
            patience: Duration::from_millis(50),
            pause: Duration::from_millis(50),
            max_hold: Some(Duration::from_hours(1)),
        }
    }
}

/// Why there is no lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseError {
    /// Somebody else has it.
    Busy,
    /// Too few servers answered in time, or may vote.
    NoMajority,
    /// It cannot be asked for like this.
    Invalid(String),
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("somebody else holds the lease"),
            Self::NoMajority => f.write_str("too few lock nodes answered in time"),
            Self::Invalid(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LeaseError {}

/// The servers that vote.
struct Ring {
    nodes: Vec<Arc<Node>>,
    settings: LeaseSettings,
}

impl Ring {
    fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// Asks all at once; the answers as they come.
    fn ask<'a, T, F: Future<Output = Result<T, Silent>> + 'a>(
        &'a self,
        ask: impl Fn(&'a Node) -> F,
    ) -> FuturesUnordered<F> {
        self.nodes.iter().map(|node| ask(node)).collect()
    }
}

/// Takes leases from a set of servers. A clone is the same set.
#[derive(Clone)]
pub struct Leases {
    ring: Arc<Ring>,
    reaper: mpsc::UnboundedSender<Gone>,
}

impl Leases {
    /// Leases from these servers, by their URLs: `redis://:password@host:port`. An odd number of them, that do not
    /// replicate one another; one alone is allowed and as good as that one is. Nothing is connected to yet.
    ///
    /// Has to be called within a Tokio runtime.
    ///
    /// # Errors
    /// When there are none, one is named twice, or one is not understood. URLs are not repeated: they carry passwords.
    pub fn new(nodes: &[String], settings: LeaseSettings) -> Result<Self, LeaseError> {
        let invalid = |why: String| Err(LeaseError::Invalid(why));
        if nodes.is_empty() {
            return invalid("leases need at least one lock node: redis://host:6379".into());
        }
        let mut places = Vec::new();
        let mut servers = Vec::new();
        for (n, url) in nodes.iter().enumerate() {
            let n = n + 1;
            let Ok(info) = url.as_str().into_connection_info() else {
                return invalid(format!("lock node {n} is not understood; use redis://:password@host:port"));
            };
            let place = info.addr().to_string();
            if places.contains(&place) {
                return invalid(format!("lock node {n} was named before; its vote would count twice"));
            }
            places.push(place);
            let Ok(client) = Client::open(info) else {
                return invalid(format!(
                    "lock node {n} cannot be used; TLS is not among what lock nodes are spoken to by"
                ));
            };
            servers.push(Node::new(client, settings.longest));
        }
        let mut keepers = JoinSet::new();
        servers.iter().for_each(|node| drop(keepers.spawn(node.clone().keep())));
        let (reaper, arrived) = mpsc::unbounded_channel();
        tokio::spawn(reaper::reap(servers.clone(), settings.clone(), arrived, keepers));
        Ok(Self { ring: Arc::new(Ring { nodes: servers, settings }), reaper })
    }

    /// Takes the lease on a resource, asking again until `wait` is over. Dropping the future takes nothing.
    ///
    /// # Errors
    /// When somebody else has it, or too few servers answer.
    pub async fn acquire(&self, resource: &str, ttl: Duration, wait: Duration) -> Result<Guard, LeaseError> {
        self.acquire_all(&[resource], ttl, wait).await
    }

    /// Takes one lease on several resources, all or none: each server gives them in one step, so that nobody waits for
    /// one of them while having another.
    ///
    /// # Errors
    /// As [`Leases::acquire`].
    pub async fn acquire_all(&self, resources: &[&str], ttl: Duration, wait: Duration) -> Result<Guard, LeaseError> {
        let settings = &self.ring.settings;
        if ttl < SHORTEST || ttl > settings.longest {
            return Err(LeaseError::Invalid(format!(
                "a lease lasts from {} to {} ms",
                SHORTEST.as_millis(),
                settings.longest.as_millis()
            )));
        }
        if resources.is_empty() {
            return Err(LeaseError::Invalid("a lease is on something".into()));
        }
        let until = monotonic() + wait;
        loop {
            let why = match self.attempt(resources, ttl).await {
                Ok(guard) => return Ok(guard),
                Err(why) => why,
            };
            // Those who met had better not meet again.
            let pause = settings.pause / 8 + within(settings.pause / 8 * 7);
            if monotonic() + pause >= until {
                return Err(why);
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(&self, resources: &[&str], ttl: Duration) -> Result<Guard, LeaseError> {
        let prefix = &self.ring.settings.prefix;
        let lock = |resource: &&str| format!("{prefix}lease:{resource}");
        let pair = |resource: &&str| [lock(resource), format!("{prefix}fence:{resource}")];
        let ballot = Ballot {
            token: random_token(),
            locks: resources.iter().map(lock).collect(),
            pairs: resources.iter().flat_map(pair).collect(),
            ttl,
        };
        // From here on, whatever may be on a server is given back when this is dropped.
        let claim = Claim::new(ballot, self.reaper.clone());
        let started = monotonic();
        let fence = match self.elect(&claim.ballot).await {
            Ok(fence) => fence,
            Err(why) => {
                claim.release().await;
                return Err(why);
            }
        };
        let deadline = started + lasting(ttl);
        // One that would be told to be lost at once is none.
        if monotonic() + margin(ttl) >= deadline {
            claim.release().await;
            return Err(LeaseError::NoMajority);
        }
        Ok(Guard::start(claim, self.ring.clone(), fence, deadline))
    }

    /// The fence of a lease that a majority has given and sealed.
    async fn elect(&self, ballot: &Ballot) -> Result<u64, LeaseError> {
        let ring = &*self.ring;
        let (patience, majority) = (ballot.patience(&ring.settings), ring.majority());
        let (mut fences, mut taken) = (Vec::new(), 0);
        let mut votes = ring.ask(|node| node.acquire(ballot, patience));
        while fences.len() < majority && fences.len() + votes.len() >= majority {
            match votes.next().await {
                Some(Ok(Some(fence))) => fences.push(fence),
                Some(Ok(None)) => taken += 1,
                Some(Err(Silent)) => {}
                None => break,
            }
        }
        if fences.len() < majority {
            return Err(if taken > 0 { LeaseError::Busy } else { LeaseError::NoMajority });
        }
        let fence = fences.iter().copied().max().unwrap_or(0);
        // Where a majority has drawn this very fence, its counters are there already: always so with one server.
        let mut sealed = fences.iter().filter(|drawn| **drawn == fence).count();
        if sealed >= majority {
            return Ok(fence);
        }
        sealed = 0;
        let mut seals = ring.ask(|node| node.seal(ballot, fence, patience));
        while let Some(seal) = seals.next().await {
            sealed += usize::from(matches!(seal, Ok(true)));
            if sealed >= majority {
                return Ok(fence);
            }
        }
        Err(LeaseError::NoMajority)
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").field("nodes", &self.ring.nodes.len()).finish_non_exhaustive()
    }
}

/// How far clocks may run apart while a lease lasts.
fn drift(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(2)
}

/// What of a time to live may be relied upon, from before it was asked for.
fn lasting(ttl: Duration) -> Duration {
    ttl.saturating_sub(drift(ttl))
}

/// So long before its end a lease is told to be lost.
fn margin(ttl: Duration) -> Duration {
    (ttl / 10).max(Duration::from_millis(2))
}

/// A random part of it.
fn within(most: Duration) -> Duration {
    let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random_seed() % (micros + 1))
}
