//! Asking a cluster who has which slot. Must never ask more often than the answer can have changed.

use super::config::Address;
use super::link::Lost;
use super::map::Map;
use super::route::Router;
use crate::clock::monotonic;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The cluster is not asked more often than this.
pub(super) const REFRESH: Duration = Duration::from_millis(50);

impl Router {
    /// Reads who has which slot, unless that has been done since the caller looked or was tried a moment ago.
    pub(super) async fn refresh(&self, seen: u64, first: Option<&Address>, until: Instant) -> Result<(), String> {
        let config = &self.settings.config;
        if !config.is_cluster {
            return Ok(());
        }
        let late = || format!("the cluster did not tell its slots in time: {config}");
        let left = until.saturating_duration_since(monotonic());
        let work = async {
            let mut last = self.refreshing.lock().await;
            let is_recent = last.is_some_and(|at| monotonic().saturating_duration_since(at) < REFRESH);
            if self.map.read().version != seen || is_recent {
                return Ok(());
            }
            *last = Some(monotonic());
            self.read_slots(first, until).await
        };
        tokio::time::timeout(left, work).await.unwrap_or_else(|_| Err(late()))
    }

    /// Asks everybody; the first who knows is believed.
    async fn read_slots(&self, first: Option<&Address>, until: Instant) -> Result<(), String> {
        let mut last = "no server is configured".to_owned();
        if let Some(first) = first {
            match self.slots_of(first, until).await {
                Ok(map) => {
                    self.take(map);
                    return Ok(());
                }
                Err(why) => last = why,
            }
        }
        let mut asked: FuturesUnordered<_> =
            self.known().into_iter().map(|at| async move { self.slots_of(&at, until).await }).collect();
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(map) => {
                    self.take(map);
                    return Ok(());
                }
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    /// Everybody who may know.
    fn known(&self) -> BTreeSet<Address> {
        let map = self.map.read();
        map.primaries().iter().chain(map.replicas()).chain(&self.settings.config.nodes).cloned().collect()
    }

    async fn slots_of(&self, at: &Address, until: Instant) -> Result<Map, String> {
        let host = self.host(at);
        let link = host.link(until).await?;
        let mut cmd = redis::cmd("CLUSTER");
        cmd.arg("SLOTS");
        let left = until.saturating_duration_since(monotonic());
        match link.send(&[cmd], left).await {
            Ok(answers) => Map::read(answers.first().unwrap_or(&Value::Nil), at),
            Err(Lost::Unsent(why) | Lost::Unknown(why)) => {
                host.lose(&link);
                Err(why)
            }
        }
    }

    /// Believes a new map, and forgets servers that are no part of it.
    fn take(&self, mut new: Map) {
        {
            let mut map = self.map.write();
            new.version = map.version + 1;
            *map = new;
        }
        let known = self.known();
        self.hosts.lock().retain(|at, _| known.contains(at));
    }
}
