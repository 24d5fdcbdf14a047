//! One server address, and the one connection to it that everybody shares. Must never be tried more often than it can
//! be told from being down.

use super::config::Address;
use super::link::{Link, Settings};
use crate::clock::monotonic;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server that could not be reached is left alone for so long.
const PAUSE: Duration = Duration::from_millis(50);

/// The last attempt, if it failed.
type Failed = Option<(Instant, String)>;

pub(super) struct Host {
    at: Address,
    settings: Arc<Settings>,
    link: Mutex<Option<Arc<Link>>>,
    attempt: Arc<tokio::sync::Mutex<Failed>>,
}

impl Host {
    pub(super) fn new(at: Address, settings: Arc<Settings>) -> Arc<Self> {
        Arc::new(Self { at, settings, link: Mutex::new(None), attempt: Arc::default() })
    }

    /// The connection, which is made if need be; by `until`, or why there is none. It is known whom it leads to.
    pub(super) async fn link(self: &Arc<Self>, until: Instant) -> Result<Arc<Link>, String> {
        let look = async {
            let link = self.open().await?;
            if link.check(self.settings.config.patience()).await.is_ok() {
                return Ok(link);
            }
            // Another process or history is another server, and it may be the one that is wanted.
            self.lose(&link);
            self.open().await
        };
        let left = until.saturating_duration_since(monotonic());
        tokio::time::timeout(left, look).await.unwrap_or_else(|_| Err(format!("{} did not answer in time", self.at)))
    }

    fn current(&self) -> Option<Arc<Link>> {
        self.link.lock().as_ref().filter(|link| link.is_open()).cloned()
    }

    async fn open(self: &Arc<Self>) -> Result<Arc<Link>, String> {
        if let Some(link) = self.current() {
            return Ok(link);
        }
        let mut last = self.attempt.clone().lock_owned().await;
        if let Some(link) = self.current() {
            return Ok(link);
        }
        if let Some((at, why)) = &*last
            && monotonic().saturating_duration_since(*at) < PAUSE
        {
            return Err(why.clone());
        }
        // On a task of its own, so that an attempt ends although the one who began it has gone.
        let host = self.clone();
        let attempt = tokio::spawn(async move {
            let made = host.connect().await;
            *last = made.as_ref().err().map(|why| (monotonic(), why.clone()));
            made
        });
        attempt.await.unwrap_or_else(|_| Err(format!("the attempt to connect to {} ended", self.at)))
    }

    async fn connect(&self) -> Result<Arc<Link>, String> {
        let limit = self.settings.config.connect_timeout;
        match tokio::time::timeout(limit, Link::open(&self.at, &self.settings)).await {
            Ok(link) => {
                let link = Arc::new(link?);
                *self.link.lock() = Some(link.clone());
                Ok(link)
            }
            Err(_) => Err(format!("cannot connect to {}: no answer within {limit:?}", self.at)),
        }
    }

    /// Gives this connection up, unless another has taken its place.
    pub(super) fn lose(&self, link: &Arc<Link>) {
        link.close();
        let mut current = self.link.lock();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, link)) {
            *current = None;
        }
    }
}
