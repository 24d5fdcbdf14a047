//! The connections of the Redis engine: one to each server process, and the way of a command to the right one. Must
//! never run a command twice, nor at another process than its caller expects, and never wait without an end.

mod config;
mod failure;
mod host;
mod link;
mod map;
mod refresh;
mod route;
mod script;
#[cfg(test)]
mod tests;

pub(crate) use config::{Address, NetConfig};
pub(crate) use failure::NetError;
pub(crate) use script::Script;

use futures_util::future::join_all;
use link::{Failed, Lost, Settings};
use redis::{Cmd, Value};
use route::Router;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Net {
    router: Arc<Router>,
    settings: Arc<Settings>,
}

impl Net {
    /// Connects; of a cluster, reads who has which slot.
    pub(crate) async fn connect(config: NetConfig, parts: u32) -> Result<Self, NetError> {
        let tls = config.is_tls.then(|| crate::tls::client(config.ca.as_deref())).transpose();
        let tls = tls.map_err(|e| NetError::Unavailable(e.to_string()))?;
        let tls = tls.map(|tls| Arc::new(tls).into());
        let settings = Arc::new(Settings { config, tls });
        let router = Arc::new(Router::new(settings.clone(), parts));
        router.start().await?;
        Ok(Self { router, settings })
    }

    pub(crate) fn parts(&self) -> u32 {
        self.router.parts()
    }

    /// Which server process serves the partition now: `<run_id>:<master_replid>`.
    pub(crate) async fn server(&self, part: u32) -> Result<String, NetError> {
        let (link, _) = self.router.carry(part, None, &[], self.timeout()).await?;
        Ok(link.identity.clone())
    }

    /// Runs a command at the primary of a partition, and only if that is this server process.
    pub(crate) async fn run(&self, part: u32, expected: Option<&str>, cmd: &Cmd) -> Result<Value, NetError> {
        let (link, mut answers) = self.router.carry(part, expected, std::slice::from_ref(cmd), self.timeout()).await?;
        failure::answer(answers.pop().unwrap_or_default(), &link.at)
    }

    /// Runs a script; loads it where it is not known.
    pub(crate) async fn eval(
        &self,
        part: u32,
        expected: Option<&str>,
        script: &Script,
        keys: &[Vec<u8>],
        args: &[Vec<u8>],
    ) -> Result<Value, NetError> {
        match self.run(part, expected, &script.by_name(keys, args)).await {
            Err(NetError::Command(why)) if why.starts_with("NOSCRIPT") => {
                self.run(part, expected, &script.whole(keys, args)).await
            }
            answer => answer,
        }
    }

    /// How many replicas have everything that was written at this process before; waits for so many, and not longer
    /// than this. Nothing else is answered on the connection meanwhile, so the time is cut to what others can bear.
    /// An answer also says that the process has had the same history all the while, which other calls believe for some
    /// milliseconds. Without `expected`, the answer may be about another process than the one that was written to.
    pub(crate) async fn wait(
        &self,
        part: u32,
        expected: Option<&str>,
        replicas: u32,
        timeout: Duration,
    ) -> Result<u32, NetError> {
        let time = timeout.clamp(Duration::from_millis(1), self.settings.config.longest_wait());
        let (link, _) = self.router.carry(part, expected, &[], self.timeout()).await?;
        match link.wait(replicas, time, self.timeout()).await {
            Ok(count) => Ok(count),
            Err(Failed::Lost(lost)) => Err(self.router.lost(&link, lost)),
            Err(Failed::Changed) => {
                self.router.lost(&link, Lost::Unsent(String::new()));
                Err(NetError::Changed(self.server(part).await?))
            }
            Err(Failed::Refused(answer)) => match failure::answer(answer, &link.at) {
                Err(error) => Err(error),
                Ok(odd) => Err(NetError::Command(format!("{} answers WAIT with {odd:?}", link.at))),
            },
        }
    }

    /// Gives the connection to this server process up, so that the next call asks anew who it is.
    pub(crate) async fn forget(&self, part: u32, server: &str) {
        if let Ok((link, _)) = self.router.carry(part, None, &[], self.timeout()).await
            && link.identity == server
        {
            self.router.lost(&link, Lost::Unsent(String::new()));
        }
    }

    /// Runs a command at every primary, and at every replica when asked; one answer for each address.
    pub(crate) async fn run_on_all(&self, cmd: &Cmd, replicas_too: bool) -> Vec<(String, Result<Value, NetError>)> {
        let servers = self.router.servers(replicas_too).await;
        let ask = |at: Address| async move {
            let answer = self.router.run_at(&at, cmd, self.timeout()).await;
            (at.to_string(), answer)
        };
        join_all(servers.into_iter().map(ask)).await
    }

    fn timeout(&self) -> Duration {
        self.settings.config.timeout
    }
}

/// Where it leads, without the login.
impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Net({}, {} partitions)", self.settings.config, self.parts())
    }
}
