//! A lease that is held: renewed while its guard lives, and lost before it expires.
//!
//! It must never tell that it is held when it may be somebody else's already, and never make a lock that is gone.

use super::node::Ballot;
use super::reaper::Gone;
use super::{Ring, lasting, margin, within};
use crate::clock::monotonic;
use futures_util::StreamExt;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// The lease was lost, or may be lost before anything could be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lease was lost")
    }
}

impl std::error::Error for Lost {}

/// What may stand on the servers; given back when dropped.
pub(super) struct Claim {
    pub(super) ballot: Arc<Ballot>,
    reaper: mpsc::UnboundedSender<Gone>,
    renewer: Option<JoinHandle<()>>,
    done: Option<oneshot::Sender<()>>,
}

impl Claim {
    pub(super) fn new(ballot: Ballot, reaper: mpsc::UnboundedSender<Gone>) -> Self {
        Self { ballot: Arc::new(ballot), reaper, renewer: None, done: None }
    }

    /// Gives it back, and waits until every server was asked once. Goes on when nobody waits any more.
    pub(super) async fn release(mut self) {
        let (done, told) = oneshot::channel();
        self.done = Some(done);
        drop(self);
        let _ = told.await;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let gone = Gone { ballot: self.ballot.clone(), renewer: self.renewer.take(), done: self.done.take() };
        // Without a reaper the runtime has ended, and the locks expire.
        let _ = self.reaper.send(gone);
    }
}

/// A lease. Renewed while it lives; given back, without blocking, when it is dropped.
///
/// Whatever is written under it carries the [`fence`](Guard::fence), and whoever is written to refuses a fence lower
/// than one that it has seen: only that keeps a holder who was paused from writing over the next one.
pub struct Guard {
    fence: u64,
    ttl: Duration,
    deadline: Arc<Mutex<Instant>>,
    lost: watch::Receiver<bool>,
    /// Dropped before the claim: the renewer stops then.
    stop: Option<oneshot::Sender<()>>,
    claim: Option<Claim>,
}

impl Guard {
    pub(super) fn start(mut claim: Claim, ring: Arc<Ring>, fence: u64, deadline: Instant) -> Self {
        let (lost, told) = watch::channel(false);
        let (stop, stopped) = oneshot::channel();
        let ttl = claim.ballot.ttl;
        let deadline = Arc::new(Mutex::new(deadline));
        let last = ring.settings.max_hold.map(|longest| monotonic() + longest);
        let renewer = Renewer { ballot: claim.ballot.clone(), ring, deadline: deadline.clone(), last };
        claim.renewer = Some(tokio::spawn(async move {
            tokio::select! {
                _ = stopped => {}
                () = renewer.run() => drop(lost.send(true)),
            }
        }));
        Self { fence, ttl, deadline, lost: told, stop: Some(stop), claim: Some(claim) }
    }

    /// Higher than that of every earlier lease on the same resources.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Until then the lease is held, by this process's monotonic clock, unless it is renewed.
    pub fn deadline(&self) -> Instant {
        *self.deadline.lock()
    }

    /// Whether it must not be relied upon any more. Asks the clock, so it is true also right after a pause of the whole
    /// process.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow() || monotonic() + margin(self.ttl) >= self.deadline()
    }

    /// Waits for the loss, which is told before the lease expires.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        // A renewer that is gone renews nothing.
        let _ = lost.wait_for(|lost| *lost).await;
    }

    /// Does this while the lease is held; drops it, wherever it is, when the lease is lost.
    ///
    /// # Errors
    /// When the lease was lost first.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        if self.is_lost() {
            return Err(Lost);
        }
        tokio::select! {
            biased;
            () = self.lost() => Err(Lost),
            done = work => Ok(done),
        }
    }

    /// Gives it back and waits until every server was asked. Dropping the guard does the same without waiting.
    pub async fn release(mut self) {
        self.stop.take();
        if let Some(claim) = self.claim.take() {
            claim.release().await;
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("fence", &self.fence).finish_non_exhaustive()
    }
}

struct Renewer {
    ballot: Arc<Ballot>,
    ring: Arc<Ring>,
    deadline: Arc<Mutex<Instant>>,
    /// Not renewed after this moment.
    last: Option<Instant>,
}

impl Renewer {
    /// Ends when the lease is lost.
    async fn run(&self) {
        let ttl = self.ballot.ttl;
        let mut pause = ttl / 3;
        loop {
            let left = (*self.deadline.lock()).saturating_duration_since(monotonic()).saturating_sub(margin(ttl));
            // The jitter keeps leases that began together from being renewed together.
            let pause_now = pause / 8 * 7 + within(pause / 8);
            if left <= pause_now {
                return tokio::time::sleep(left).await;
            }
            tokio::time::sleep(pause_now).await;
            if self.last.is_some_and(|last| monotonic() >= last) {
                return;
            }
            let left = (*self.deadline.lock()).saturating_duration_since(monotonic()).saturating_sub(margin(ttl));
            match tokio::time::timeout(left, self.renew()).await {
                Ok(Renewed::Yes(deadline)) => {
                    *self.deadline.lock() = deadline;
                    pause = ttl / 3;
                }
                Ok(Renewed::Perhaps) => pause = ttl / 12,
                Ok(Renewed::No) | Err(_) => return,
            }
        }
    }

    async fn renew(&self) -> Renewed {
        let (ring, ballot) = (&self.ring, &self.ballot);
        let patience = ballot.patience(&ring.settings);
        let started = monotonic();
        let (mut ours, mut others) = (0, 0);
        let mut votes = ring.ask(|node| node.renew(ballot, patience));
        while let Some(vote) = votes.next().await {
            match vote {
                Ok(true) => ours += 1,
                Ok(false) => others += 1,
                Err(_) => {}
            }
            if ours >= ring.majority() {
                return Renewed::Yes(started + lasting(ballot.ttl));
            }
            // So many say so that the others cannot make up for them: it is lost whatever they say.
            if others > ring.nodes.len() - ring.majority() {
                return Renewed::No;
            }
        }
        Renewed::Perhaps
    }
}

enum Renewed {
    Yes(Instant),
    /// Too few answered; there may be time to ask again.
    Perhaps,
    No,
}
