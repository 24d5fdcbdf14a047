//! The way of a command to the server that has its partition, and what is done when that one has not. Must never send
//! a command again unless the server has said that it did not run it.

use super::config::Address;
use super::failure::{self, NetError, Refusal};
use super::host::Host;
use super::link::{Link, Lost, Settings};
use super::map::{Map, slot_of_part};
use super::refresh::REFRESH;
use crate::clock::monotonic;
use parking_lot::{Mutex, RwLock};
use redis::{Cmd, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often one call looks for the right server.
const ROUNDS: u32 = 6;
/// The pause before the second round; each one after it is twice as long.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Router {
    pub(super) settings: Arc<Settings>,
    slots: Vec<u16>,
    pub(super) map: RwLock<Map>,
    pub(super) hosts: Mutex<HashMap<Address, Arc<Host>>>,
    pub(super) refreshing: tokio::sync::Mutex<Option<Instant>>,
}

/// What to do after a round.
enum Next {
    Done(Arc<Link>, Vec<Value>),
    Again(String),
    AfterPause(String),
    Stop(NetError),
}

/// One call.
struct Call<'a> {
    slot: u16,
    expected: Option<&'a str>,
    commands: &'a [Cmd],
    timeout: Duration,
    until: Instant,
}

impl Router {
    pub(super) fn new(settings: Arc<Settings>, parts: u32) -> Self {
        let map = match settings.config.nodes.first() {
            Some(only) if !settings.config.is_cluster => Map::whole(only.clone()),
            _ => Map::empty(),
        };
        let slots = (0..parts).map(slot_of_part).collect();
        Self {
            settings,
            slots,
            map: RwLock::new(map),
            hosts: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn parts(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Finds somebody there.
    pub(super) async fn start(&self) -> Result<(), NetError> {
        let until = self.until();
        if self.settings.config.is_cluster {
            return self.refresh(0, None, until).await.map_err(NetError::Unavailable);
        }
        let only = self.map.read().primaries().first().cloned();
        let only = only.ok_or_else(|| NetError::Unavailable("no server is configured".into()))?;
        self.host(&only).link(until).await.map(drop).map_err(NetError::Unavailable)
    }

    /// Until when a call that starts now looks for a server.
    fn until(&self) -> Instant {
        monotonic() + self.settings.config.connect_timeout
    }

    pub(super) fn host(&self, at: &Address) -> Arc<Host> {
        let mut hosts = self.hosts.lock();
        hosts.entry(at.clone()).or_insert_with(|| Host::new(at.clone(), self.settings.clone())).clone()
    }

    /// Sends commands to the primary of a partition; the answers, and the connection that they came by. If none of them
    /// was run, another server is looked for.
    pub(super) async fn carry(
        &self,
        part: u32,
        expected: Option<&str>,
        commands: &[Cmd],
        timeout: Duration,
    ) -> Result<(Arc<Link>, Vec<Value>), NetError> {
        let Some(slot) = self.slots.get(part as usize).copied() else {
            return Err(NetError::Command(format!("there is no partition {part}: there are {}", self.slots.len())));
        };
        let call = Call { slot, expected, commands, timeout, until: self.until() };
        let mut why = String::new();
        for round in 0..ROUNDS {
            let next = match self.find(slot, call.until).await {
                Ok((host, link)) => self.attempt(&call, &host, link).await,
                Err(next) => next,
            };
            match next {
                Next::Done(link, answers) => return Ok((link, answers)),
                Next::Stop(error) => return Err(error),
                Next::Again(cause) => why = cause,
                Next::AfterPause(cause) => {
                    why = cause;
                    if !pause(round, call.until).await {
                        break;
                    }
                }
            }
        }
        Err(NetError::Unavailable(why))
    }

    /// The primary that has the slot, as far as is known.
    async fn find(&self, slot: u16, until: Instant) -> Result<(Arc<Host>, Arc<Link>), Next> {
        let (owner, version) = {
            let map = self.map.read();
            (map.owner(slot).cloned(), map.version)
        };
        let Some(owner) = owner else {
            let why = format!("nobody has slot {slot}");
            self.refresh(version, None, until).await.map_err(|e| Next::Stop(NetError::Unavailable(e)))?;
            return Err(Next::AfterPause(why));
        };
        let host = self.host(&owner);
        let (why, is_demoted) = match host.link(until).await {
            Ok(link) if link.is_primary => return Ok((host, link)),
            Ok(link) => {
                host.lose(&link);
                (format!("{owner} is a replica: it takes no writes"), true)
            }
            Err(why) => (why, false),
        };
        if !self.settings.config.is_cluster {
            return Err(Next::Stop(NetError::Unavailable(why)));
        }
        // The time that the dead one has cost is not taken from those who may know its successor.
        let _ = self.refresh(version, None, until.max(monotonic() + REFRESH * 2)).await;
        if self.map.read().owner(slot) != Some(&owner) {
            return Err(Next::Again(why));
        }
        // Where somebody was demoted, somebody else has been promoted, and word of it is on its way.
        Err(if is_demoted { Next::AfterPause(why) } else { Next::Stop(NetError::Unavailable(why)) })
    }

    /// Sends once, and looks at what came of it.
    async fn attempt(&self, call: &Call<'_>, host: &Host, link: Arc<Link>) -> Next {
        if call.expected.is_some_and(|expected| expected != link.identity) {
            return Next::Stop(NetError::Changed(link.identity.clone()));
        }
        let answers = match link.send(call.commands, call.timeout).await {
            Ok(answers) => answers,
            Err(lost) => return self.after(&link, lost),
        };
        // Where one was run, the others are for the caller to judge.
        let mut refusals = answers.iter().map(|answer| match answer {
            Value::ServerError(error) => failure::refusal(error, &link.at).map(|refusal| (refusal, error)),
            _ => None,
        });
        let Some(Some((refusal, error))) = refusals.next() else { return Next::Done(link, answers) };
        if refusals.any(|other| other.is_none()) {
            return Next::Done(link, answers);
        }
        let why = format!("{}: {}", link.at, failure::text(error));
        let version = self.map.read().version;
        match refusal {
            Refusal::Moved(to) => {
                let version = {
                    let mut map = self.map.write();
                    map.moved(call.slot, to.clone());
                    map.version
                };
                let _ = self.refresh(version, Some(&to), call.until).await;
                Next::Again(why)
            }
            Refusal::Ask(to) if call.expected.is_none() => self.ask(call, &to, why).await,
            Refusal::Ask(_) => Next::AfterPause(format!("slot {} is being migrated: {why}", call.slot)),
            Refusal::Later => {
                let _ = self.refresh(version, None, call.until).await;
                Next::AfterPause(why)
            }
            Refusal::Demoted => {
                host.lose(&link);
                let _ = self.refresh(version, None, call.until).await;
                Next::AfterPause(why)
            }
            Refusal::Unable => Next::Stop(NetError::Unavailable(why)),
        }
    }

    /// Runs commands at the server that a slot is on its way to, which takes them for once.
    async fn ask(&self, call: &Call<'_>, to: &Address, why: String) -> Next {
        let host = self.host(to);
        let Ok(link) = host.link(call.until).await else { return Next::AfterPause(why) };
        let asking = || redis::cmd("ASKING");
        let commands: Vec<_> = call.commands.iter().flat_map(|command| [asking(), command.clone()]).collect();
        match link.send(&commands, call.timeout).await {
            Ok(answers) => {
                let answers: Vec<_> = answers.into_iter().skip(1).step_by(2).collect();
                let is_refused = |answer: &Value| match answer {
                    Value::ServerError(error) => failure::refusal(error, to).is_some(),
                    _ => false,
                };
                if answers.iter().all(is_refused) { Next::AfterPause(why) } else { Next::Done(link, answers) }
            }
            Err(lost) => self.after(&link, lost),
        }
    }

    /// The addresses of all primaries, and of their replicas when asked.
    pub(super) async fn servers(&self, replicas_too: bool) -> Vec<Address> {
        // Replicas come and go without a word, and are told of once they have something.
        let version = self.map.read().version;
        let _ = self.refresh(version, None, self.until()).await;
        let mut servers = self.map.read().primaries().to_vec();
        if replicas_too && self.settings.config.is_cluster {
            servers.extend_from_slice(self.map.read().replicas());
        } else if replicas_too && let Some(only) = servers.first().cloned() {
            let info = self.run_at(&only, &super::link::info("replication"), self.settings.config.timeout).await;
            if let Ok(Value::BulkString(info)) = info {
                let replicas = super::link::replicas(&String::from_utf8_lossy(&info));
                servers.extend(replicas.into_iter().map(|replica| replica.at));
            }
        }
        servers
    }

    /// Runs a command at one server, whatever its role.
    pub(super) async fn run_at(&self, at: &Address, cmd: &Cmd, timeout: Duration) -> Result<Value, NetError> {
        let host = self.host(at);
        let link = host.link(self.until()).await.map_err(NetError::Unavailable)?;
        let answers = link.send(std::slice::from_ref(cmd), timeout).await;
        let mut answers = answers.map_err(|lost| self.lost(&link, lost))?;
        failure::answer(answers.pop().unwrap_or_default(), at)
    }

    fn after(&self, link: &Arc<Link>, lost: Lost) -> Next {
        match self.lost(link, lost) {
            NetError::Unavailable(why) => Next::Again(why),
            error => Next::Stop(error),
        }
    }

    /// Gives a connection up; what that means for whoever has used it.
    pub(super) fn lost(&self, link: &Arc<Link>, lost: Lost) -> NetError {
        self.host(&link.at).lose(link);
        match lost {
            Lost::Unsent(why) => NetError::Unavailable(why),
            Lost::Unknown(why) => NetError::Unknown(why),
        }
    }
}

/// Whether there is time for another round, after the pause before it.
async fn pause(round: u32, until: Instant) -> bool {
    let pause = PAUSE * 2_u32.saturating_pow(round);
    if monotonic() + pause >= until {
        return false;
    }
    tokio::time::sleep(pause).await;
    true
}
