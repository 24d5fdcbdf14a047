//! What everything here stands on: the gates of the partitions, and one call through them.
//!
//! A call goes to the server process that the partition was last audited on, in the epoch of that audit, or not at all.
//! Whatever else is found shuts the gate, and the auditor looks.

use super::config::{Durability, RedisConfig};
use super::net::{Net, NetError};
use super::script::{Call, Reply, Told, VERBS};
use crate::EngineError;
use crate::clock::{HoldIds, monotonic, random_seed, wall};
use crate::partition::Partitions;
use crate::sql::{Fault, Ledger};
use holdfast_domain::{HoldId, Policy, Time};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

pub(super) struct Core {
    pub(super) net: Net,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) space: String,
    pub(super) partitions: Partitions,
    pub(super) policy: Policy,
    pub(super) durability: Durability,
    pub(super) replicas: u32,
    pub(super) timeout: Duration,
    pub(super) backlog: u64,
    gates: Vec<Gate>,
    ids: Mutex<HoldIds>,
    clock: Mutex<(Instant, Time)>,
    last: AtomicI64,
    /// Rings when something was logged, and when a gate was shut.
    pub(super) logged: Arc<Notify>,
    pub(super) shut: Arc<Notify>,
    /// Rings after each step of the ledger.
    pub(super) drained: Notify,
    pub(super) retries: AtomicU64,
    /// Partitions that have keys of earlier epochs.
    outdated: Mutex<Vec<u32>>,
    /// One drain of a node at a time: two would only wait for one another in the database.
    pub(super) draining: tokio::sync::Mutex<()>,
}

/// What a node knows of a partition.
struct Gate {
    state: Mutex<State>,
    /// The last log entry that this node has seen, and the last that it knows to be in the ledger, in this epoch.
    seen: AtomicI64,
    drained: AtomicI64,
}

#[derive(Clone)]
enum State {
    Open { epoch: i64, server: Arc<str> },
    Shut(String),
}

/// What a call found and gave.
pub(super) struct Done {
    pub(super) epoch: i64,
    pub(super) now: Time,
    pub(super) seq: i64,
    pub(super) answers: Vec<Reply>,
}

impl Core {
    pub(super) fn new(net: Net, ledger: Arc<dyn Ledger>, config: &RedisConfig, partitions: Partitions) -> Self {
        let shut = || Gate {
            state: Mutex::new(State::Shut("the engine has just started".into())),
            seen: AtomicI64::new(0),
            drained: AtomicI64::new(0),
        };
        Self {
            net,
            ledger,
            space: config.space.clone(),
            partitions,
            policy: config.ledger.policy.clone(),
            durability: config.durability,
            replicas: config.replicas,
            timeout: config.timeout,
            backlog: config.backlog,
            gates: partitions.all().map(|_| shut()).collect(),
            ids: Mutex::new(HoldIds::after(0)),
            clock: Mutex::new((monotonic(), wall())),
            last: AtomicI64::new(0),
            logged: Arc::default(),
            shut: Arc::default(),
            drained: Notify::new(),
            retries: AtomicU64::new(0),
            outdated: Mutex::default(),
            draining: tokio::sync::Mutex::new(()),
        }
    }

    fn gate(&self, part: u32) -> &Gate {
        &self.gates[part as usize]
    }

    /// The key that says which epoch a partition is in.
    pub(super) fn epoch_key(&self, part: u32) -> String {
        format!("{}:{{p{part}}}:epoch", self.space)
    }

    /// A key of a partition in an epoch.
    pub(super) fn key(&self, part: u32, epoch: i64, name: &str) -> String {
        format!("{}:{{p{part}}}:e{epoch}:{name}", self.space)
    }

    /// The epoch and the server of a partition that serves.
    pub(super) fn open_gate(&self, part: u32) -> Result<(i64, Arc<str>), EngineError> {
        match &*self.gate(part).state.lock() {
            State::Open { epoch, server } => Ok((*epoch, server.clone())),
            State::Shut(why) => Err(EngineError::Auditing(why.clone())),
        }
    }

    /// Why partitions do not serve; none if all do.
    pub(super) fn shut_gates(&self) -> Vec<(u32, String)> {
        let shut = |part: u32| match &*self.gate(part).state.lock() {
            State::Open { .. } => None,
            State::Shut(why) => Some((part, why.clone())),
        };
        self.partitions.all().filter_map(shut).collect()
    }

    pub(super) fn open(&self, part: u32, epoch: i64, server: &str, drained: i64) {
        let gate = self.gate(part);
        gate.seen.store(drained, Ordering::Relaxed);
        gate.drained.store(drained, Ordering::Relaxed);
        *gate.state.lock() = State::Open { epoch, server: server.into() };
    }

    /// Notes that earlier epochs of a partition left keys behind.
    pub(super) fn note_outdated(&self, part: u32) {
        self.outdated.lock().push(part);
    }

    pub(super) fn take_outdated(&self) -> Vec<u32> {
        std::mem::take(&mut self.outdated.lock())
    }

    /// Shuts a gate, if it is still in this epoch, and calls the auditor. Where carts lie in several partitions, all of them.
    pub(super) fn shut(&self, part: u32, epoch: i64, why: String) {
        let is_news = {
            let mut state = self.gate(part).state.lock();
            let is_open = matches!(&*state, State::Open { epoch: of, .. } if *of == epoch);
            if is_open {
                tracing::warn!(part, epoch, why, "a partition stops serving until it is audited");
                *state = State::Shut(why);
            }
            is_open
        };
        if is_news {
            self.shut_all("another partition is audited");
        }
    }

    pub(super) fn shut_all(&self, why: &str) {
        for gate in &self.gates {
            let mut state = gate.state.lock();
            if matches!(&*state, State::Open { .. }) {
                *state = State::Shut(why.to_owned());
            }
        }
        self.shut.notify_one();
    }

    /// Log entries of a partition that the ledger does not have yet, as far as this node knows.
    pub(super) fn waiting(&self, part: u32) -> u64 {
        let gate = self.gate(part);
        let waiting = gate.seen.load(Ordering::Relaxed) - gate.drained.load(Ordering::Relaxed);
        u64::try_from(waiting).unwrap_or(0)
    }

    pub(super) fn drained_to(&self, part: u32) -> i64 {
        self.gate(part).drained.load(Ordering::Relaxed)
    }

    pub(super) fn note_drained(&self, part: u32, epoch: i64, seq: i64) {
        if self.open_gate(part).is_ok_and(|(now, _)| now == epoch) {
            self.gate(part).drained.fetch_max(seq, Ordering::Relaxed);
            self.gate(part).seen.fetch_max(seq, Ordering::Relaxed);
        }
    }

    /// Whether the ledger has this entry of this epoch; an error once nobody can tell.
    pub(super) fn is_drained(&self, part: u32, epoch: i64, seq: i64) -> Result<bool, EngineError> {
        let drained = self.drained_to(part);
        // In this order: what was read is of this epoch if the epoch still is.
        match self.open_gate(part) {
            Ok((now, _)) if now == epoch => Ok(drained >= seq),
            _ => Err(EngineError::Unknown(format!("epoch {epoch} ended before the ledger was seen to have it"))),
        }
    }

    /// Runs verbs on a partition.
    pub(super) async fn call(&self, part: u32, call: &Call, now: Option<Time>) -> Result<Done, EngineError> {
        let (epoch, server) = self.open_gate(part)?;
        let seen = self.gate(part).seen.load(Ordering::Relaxed);
        let (keys, args) = ([self.epoch_key(part).into_bytes()], call.args(&epoch.to_string(), now, seen, &server));
        let value = match self.net.eval(part, Some(&server), &VERBS, &keys, &args).await {
            Ok(value) => value,
            Err(NetError::Changed(other)) => {
                let why = format!("another server process serves it now: {other} instead of {server}");
                self.shut(part, epoch, why.clone());
                return Err(EngineError::Auditing(why));
            }
            Err(error) => return Err(told(error)),
        };
        match Told::read(value) {
            Some(Told::Done { now: moment, seq, answers }) if answers.len() == call.verbs() => {
                self.note(part, epoch, seq);
                if now.is_none() {
                    *self.clock.lock() = (monotonic(), moment);
                }
                Ok(Done { epoch, now: moment, seq, answers })
            }
            Some(Told::Done { .. }) | None => Err(unreadable()),
            Some(Told::Epoch(found)) => {
                let why = format!("it is in epoch {found:?} instead of {epoch}");
                self.shut(part, epoch, why.clone());
                Err(EngineError::Auditing(why))
            }
            Some(Told::Server(found)) => {
                // What the connection knows of its server is out of date.
                self.net.forget(part, &server).await;
                let why = format!("its server has replication id {found}, and had {server}");
                self.shut(part, epoch, why.clone());
                Err(EngineError::Auditing(why))
            }
            Some(Told::Behind(found)) => {
                let why = format!("the server has {found} log entries, and had {seen}");
                self.shut(part, epoch, why.clone());
                Err(EngineError::Auditing(why))
            }
        }
    }

    fn note(&self, part: u32, epoch: i64, seq: i64) {
        if self.open_gate(part).is_ok_and(|(now, _)| now == epoch)
            && self.gate(part).seen.fetch_max(seq, Ordering::Relaxed) < seq
        {
            self.logged.notify_one();
        }
    }

    /// A fresh hold id that tells this home.
    pub(super) fn fresh_id(&self, now: Option<Time>, home: u32) -> HoldId {
        let now = now.unwrap_or_else(|| self.now());
        Partitions::mark(self.ids.lock().next(now), home)
    }

    /// What Redis's clock said last, carried on by this process's monotonic clock. Never goes back.
    pub(super) fn now(&self) -> Time {
        let (at, told) = *self.clock.lock();
        let now = told.millis().saturating_add(i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX));
        Time::from_millis(self.last.fetch_max(now, Ordering::Relaxed).max(now))
    }
}

/// 160 random bits as text.
pub(super) fn fresh_token() -> String {
    let word = || random_seed();
    format!("{:016x}{:016x}{:08x}", word(), word(), word() as u32)
}

pub(super) fn told(error: NetError) -> EngineError {
    match error {
        NetError::Unavailable(why) => EngineError::Unavailable(why),
        NetError::Unknown(why) => EngineError::Unknown(why),
        NetError::Changed(server) => EngineError::Auditing(format!("the server is now {server}")),
        NetError::Command(why) => EngineError::Corrupt(why),
    }
}

/// The scripts are ours: what they answer reads, or something is broken.
pub(super) fn unreadable() -> EngineError {
    EngineError::Corrupt("a script gave an unreadable answer".into())
}

pub(super) fn ledger_error(fault: Fault) -> EngineError {
    fault.into()
}
