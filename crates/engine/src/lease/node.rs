//! One Redis server that votes on leases: its connection, whether it may vote, and the four scripts.
//!
//! It must never be believed longer than the patience of whoever asks, nor vote before what it may have forgotten has
//! expired.

use super::{LeaseSettings, drift};
use crate::clock::monotonic;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisError, cmd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

const ACQUIRE: &str = include_str!("lua/acquire.lua");
const SEAL: &str = include_str!("lua/seal.lua");
const RENEW: &str = include_str!("lua/renew.lua");
const RELEASE: &str = include_str!("lua/release.lua");

/// How long a connection may take to be made; callers do not wait for it any longer than for an answer.
const CONNECT: Duration = Duration::from_secs(1);
/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(20);

/// What an attempt sends, whichever server it goes to.
pub(super) struct Ballot {
    /// New for every attempt: a late answer to an old one means nothing to a new one.
    pub(super) token: String,
    /// Of each resource, the lock.
    pub(super) locks: Vec<String>,
    /// Of each resource, the lock and the counter.
    pub(super) pairs: Vec<String>,
    pub(super) ttl: Duration,
}

impl Ballot {
    /// How long one server may take: far less than the lease lasts.
    pub(super) fn patience(&self, settings: &LeaseSettings) -> Duration {
        settings.patience.min(Duration::from_millis(50)).min(self.ttl / 10).max(drift(self.ttl))
    }
}

/// A server did not say what it was asked in time, or may not vote.
#[derive(Debug)]
pub(super) struct Silent;

#[derive(Clone)]
struct Link {
    connection: MultiplexedConnection,
    /// Not before this moment may the server vote.
    votes_from: Instant,
    /// Tells one connection from the next.
    number: u64,
}

/// One server.
pub(super) struct Node {
    client: Client,
    /// So long a server that may have forgotten leases stays away from votes.
    longest: Duration,
    link: watch::Sender<Option<Link>>,
    is_wanted: Notify,
    silent_since: Mutex<Option<Instant>>,
}

impl Node {
    pub(super) fn new(client: Client, longest: Duration) -> Arc<Self> {
        let link = watch::Sender::new(None);
        Arc::new(Self { client, longest, link, is_wanted: Notify::new(), silent_since: Mutex::default() })
    }

    /// Connects whenever somebody wants it. Never ends by itself.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut number = 0;
        loop {
            self.is_wanted.notified().await;
            if self.link.borrow().is_some() {
                continue;
            }
            number += 1;
            match tokio::time::timeout(CONNECT, self.connect(number)).await {
                Ok(Ok(link)) => drop(self.link.send_replace(Some(link))),
                Ok(Err(why)) => tracing::debug!(%why, "a lock node cannot be reached"),
                Err(_) => tracing::debug!("a lock node is silent"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn connect(&self, number: u64) -> Result<Link, RedisError> {
        // Each caller has a patience of its own.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(Some(CONNECT));
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        let info: String = cmd("INFO").arg("server").query_async(&mut connection).await?;
        let asked = monotonic();
        let up = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:")?.trim().parse().ok());
        let up = Duration::from_secs(up.unwrap_or(0));
        let quarantine = if is_durable(&mut connection).await { Duration::ZERO } else { quarantine(self.longest, up) };
        if !quarantine.is_zero() {
            tracing::info!(ms = quarantine.as_millis() as u64, "a lock node has started lately and does not vote yet");
        }
        Ok(Link { connection, votes_from: asked + quarantine, number })
    }

    /// The fence that was drawn, or nothing where a lock is somebody's.
    pub(super) async fn acquire(&self, ballot: &Ballot, patience: Duration) -> Result<Option<u64>, Silent> {
        let mut script = script(ACQUIRE, &ballot.pairs, &ballot.token);
        script.arg(millis(ballot.ttl));
        self.ask(&script, patience, true).await
    }

    /// Whether the counters are at the fence and the locks are ours.
    pub(super) async fn seal(&self, ballot: &Ballot, fence: u64, patience: Duration) -> Result<bool, Silent> {
        let mut script = script(SEAL, &ballot.pairs, &ballot.token);
        script.arg(fence);
        self.ask(&script, patience, true).await
    }

    /// Whether the locks are ours, for their whole time to live again.
    pub(super) async fn renew(&self, ballot: &Ballot, patience: Duration) -> Result<bool, Silent> {
        let mut script = script(RENEW, &ballot.locks, &ballot.token);
        script.arg(millis(ballot.ttl));
        self.ask(&script, patience, true).await
    }

    /// Gives back what is ours.
    pub(super) async fn release(&self, ballot: &Ballot, patience: Duration) -> Result<u64, Silent> {
        self.ask(&script(RELEASE, &ballot.locks, &ballot.token), patience, false).await
    }

    async fn ask<T: FromRedisValue>(&self, script: &Cmd, patience: Duration, is_vote: bool) -> Result<T, Silent> {
        let answer = tokio::time::timeout(patience, async {
            let mut link = self.link().await?;
            if is_vote && monotonic() < link.votes_from {
                return Err(Silent);
            }
            script.query_async(&mut link.connection).await.map_err(|error| self.failed(&link, &error))
        });
        match answer.await {
            Ok(answer) => {
                *self.silent_since.lock() = None;
                answer
            }
            Err(_) => {
                self.was_silent();
                Err(Silent)
            }
        }
    }

    async fn link(&self) -> Result<Link, Silent> {
        self.is_wanted.notify_one();
        let mut link = self.link.subscribe();
        let link = link.wait_for(Option::is_some).await.map_err(|_| Silent)?;
        link.clone().ok_or(Silent)
    }

    fn failed(&self, link: &Link, error: &RedisError) -> Silent {
        tracing::debug!(%error, "a lock node failed");
        if error.is_io_error() || error.is_connection_dropped() || error.is_unrecoverable_error() {
            // The next one asks again how long the server has been up.
            self.forget(link.number);
        }
        Silent
    }

    /// What is sent on one connection arrives in order: a release never overtakes the attempt that it is for. So a
    /// connection is given up late, when everything that may be under way on it has expired.
    fn was_silent(&self) {
        let now = monotonic();
        let since = *self.silent_since.lock().get_or_insert(now);
        if now - since > self.longest {
            let number = self.link.borrow().as_ref().map(|link| link.number);
            number.into_iter().for_each(|number| self.forget(number));
            *self.silent_since.lock() = None;
        }
    }

    fn forget(&self, number: u64) {
        self.link.send_if_modified(|link| {
            let is_it = link.as_ref().is_some_and(|link| link.number == number);
            if is_it {
                *link = None;
            }
            is_it
        });
    }
}

fn script(text: &str, keys: &[String], token: &str) -> Cmd {
    // The whole text each time: it is short, and a server that has forgotten it needs no second try.
    let mut script = cmd("EVAL");
    script.arg(text).arg(keys.len()).arg(keys).arg(token);
    script
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

/// How much longer a server stays away from votes that has been up for so long: whole seconds, and one that may have
/// been rounded up.
fn quarantine(longest: Duration, up: Duration) -> Duration {
    (Duration::from_secs(longest.as_secs() + u64::from(longest.subsec_nanos() > 0)) + Duration::from_secs(1))
        .saturating_sub(up)
}

/// Whether it has on disk what it has answered. One that does not tell may have forgotten.
async fn is_durable(connection: &mut MultiplexedConnection) -> bool {
    for (setting, wanted) in [("appendonly", "yes"), ("appendfsync", "always")] {
        let told: Result<Vec<String>, _> = cmd("CONFIG").arg("GET").arg(setting).query_async(connection).await;
        if told.ok().and_then(|mut told| told.pop()).as_deref() != Some(wanted) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_votes_when_what_it_may_have_forgotten_has_expired() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        assert_eq!(quarantine(s(2), s(0)), s(3));
        assert_eq!(quarantine(ms(2_001), s(1)), s(3));
        assert_eq!(quarantine(s(2), s(3)), s(0));
        assert_eq!(quarantine(s(2), s(300)), s(0));
    }
}
