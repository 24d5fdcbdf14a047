//! The task that gives leases back: of guards that were dropped, and of attempts that failed or were given up.
//!
//! It must never make anybody wait, and never give up before the locks have expired by themselves.

use super::node::{Ballot, Node};
use super::{LeaseSettings, within};
use crate::clock::monotonic;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// A lease, or what may be left of an attempt.
pub(super) struct Gone {
    pub(super) ballot: Arc<Ballot>,
    /// Whoever renews it; has been told to stop.
    pub(super) renewer: Option<JoinHandle<()>>,
    /// Told when every server was asked once.
    pub(super) done: Option<oneshot::Sender<()>>,
}

/// Gives back what arrives, until nobody can send any more and everything was given back. Ends the connections then.
pub(super) async fn reap(
    nodes: Vec<Arc<Node>>,
    settings: LeaseSettings,
    mut arrived: mpsc::UnboundedReceiver<Gone>,
    keepers: JoinSet<()>,
) {
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            gone = arrived.recv() => match gone {
                Some(gone) => drop(under_way.spawn(give_back(nodes.clone(), settings.clone(), gone))),
                None => break,
            },
            Some(_) = under_way.join_next() => {}
        }
    }
    while under_way.join_next().await.is_some() {}
    drop(keepers);
}

async fn give_back(mut nodes: Vec<Arc<Node>>, settings: LeaseSettings, gone: Gone) {
    let Gone { ballot, renewer, mut done } = gone;
    if let Some(renewer) = renewer {
        // Its last call goes first.
        let _ = renewer.await;
    }
    let until = monotonic() + ballot.ttl;
    let patience = ballot.patience(&settings);
    let mut pause = Duration::from_millis(20);
    loop {
        let answers = join_all(nodes.iter().map(|node| node.release(&ballot, patience))).await;
        let mut failed = answers.iter().map(Result::is_err);
        nodes.retain(|_| failed.next().unwrap_or(false));
        if let Some(done) = done.take() {
            let _ = done.send(());
        }
        if nodes.is_empty() || monotonic() >= until {
            return;
        }
        tokio::time::sleep(within(pause)).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}
