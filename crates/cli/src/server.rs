//! A server to measure or to drill: this same program as a child process, in a folder of its own; or a running one,
//! by its URL.

use crate::api::Api;
use holdfast_engine::clock::monotonic;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a server may take to start.
const START: Duration = Duration::from_mins(5);
/// How long a server may take to stop.
const STOP: Duration = Duration::from_mins(1);
/// Lines of its log that are kept to explain a failure.
const KEPT: usize = 20;

/// A server.
#[derive(Clone)]
pub(crate) struct Target {
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    /// What to call it.
    pub(crate) host: String,
    /// The API key, if it wants one.
    pub(crate) key: Option<String>,
}

/// A running child; killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// Where it listens.
    pub(crate) target: Target,
    /// From the start of the process until it was ready.
    pub(crate) start: Duration,
}

/// How to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Asked to.
    Term,
    /// Without a chance to do anything.
    Kill,
}

impl Server {
    /// Starts one on this data folder with these variables, and waits until it is ready.
    pub(crate) async fn start(data: &Path, variables: &[(&str, String)]) -> Result<Self, String> {
        let began = monotonic();
        let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let mut command = Command::new(program);
        // The settings of the person at the keyboard must not reach the server under test.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HOLDFAST_")) {
            command.env_remove(name);
        }
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data).current_dir(data);
        command.env("NO_COLOR", "1").envs(variables.iter().map(|(name, value)| (*name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| format!("cannot start the server: {e}"))?;
        let nowhere = Target { addr: ([127, 0, 0, 1], 0).into(), host: String::new(), key: None };
        let mut server = Self { child, target: nowhere, start: Duration::ZERO };
        let log = Log::default();
        let (tell, mut urls) = mpsc::unbounded_channel();
        if let Some(pipe) = server.child.stdout.take() {
            log.follow(pipe, tell.clone())?;
        }
        if let Some(pipe) = server.child.stderr.take() {
            log.follow(pipe, tell.clone())?;
        }
        drop(tell);
        let url = match tokio::time::timeout(START, urls.recv()).await {
            Ok(Some(url)) => url,
            Ok(None) => return Err(format!("the server ended before it listened:\n{}", log.text())),
            Err(_) => return Err(format!("the server did not listen within {START:?}:\n{}", log.text())),
        };
        server.target = target(&url, None).await?;
        let mut api = Api::new(&server.target);
        while !api.is_ready().await {
            if began.elapsed() > START {
                return Err(format!("the server was not ready within {START:?}:\n{}", log.text()));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        server.start = began.elapsed();
        Ok(server)
    }

    /// Resident memory in bytes, where the operating system tells.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1024)
    }

    /// Ends it and waits; how long that took.
    pub(crate) async fn stop(mut self, how: End) -> Result<Duration, String> {
        let began = monotonic();
        let signal = if how == End::Term { Signal::TERM } else { Signal::KILL };
        kill_process(Pid::from_child(&self.child), signal).map_err(|e| format!("cannot stop the server: {e}"))?;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if how == End::Term && !status.success() => {
                    return Err(format!("the server ended with {status} when it was asked to stop"));
                }
                Ok(Some(_)) => return Ok(began.elapsed()),
                Ok(None) if began.elapsed() > STOP => return Err(format!("the server did not stop within {STOP:?}")),
                Ok(None) => tokio::time::sleep(Duration::from_millis(2)).await,
                Err(error) => return Err(format!("cannot wait for the server: {error}")),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last lines of a log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    /// Reads lines on a thread of its own until the pipe closes, and tells the URLs that the server listens on.
    fn follow(&self, pipe: impl Read + Send + 'static, tell: mpsc::UnboundedSender<String>) -> Result<(), String> {
        let log = self.clone();
        let read = move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                if let Some(url) = listening_on(&line) {
                    // Only the first is waited for.
                    let _ = tell.send(url.to_owned());
                }
                let mut lines = log.0.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.len() == KEPT {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
        };
        std::thread::Builder::new().name("server-log".into()).spawn(read).map_err(|e| e.to_string())?;
        Ok(())
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    }
}

/// The URL in a line like `… listening on http://127.0.0.1:8080 …`, plain or in JSON.
fn listening_on(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("listening on ")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || ":/.[]-".contains(c);
    let url = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
    url.starts_with("http://").then_some(url)
}

/// The server behind a URL.
pub(crate) async fn target(url: &str, key: Option<&str>) -> Result<Target, String> {
    let host = url.strip_prefix("http://").ok_or_else(|| format!("{url} must start with http://"))?;
    let host = host.trim_end_matches('/');
    let with_port = if host.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let addr = tokio::net::lookup_host(&with_port)
        .await
        .map_err(|e| format!("{url}: {e}"))?
        .next()
        .ok_or_else(|| format!("{url} has no address"))?;
    Ok(Target { addr, host: host.to_owned(), key: key.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listening_line_is_found_in_any_format() {
        let url = Some("http://127.0.0.1:4711");
        assert_eq!(listening_on("listening on http://127.0.0.1:4711"), url);
        assert_eq!(listening_on("2026-11-30T12:00:00Z  INFO listening on http://127.0.0.1:4711 engine=\"e\""), url);
        assert_eq!(listening_on(r#"{"level":"INFO","message":"listening on http://127.0.0.1:4711","x":1}"#), url);
        assert_eq!(listening_on("\u{1b}[32mINFO\u{1b}[0m listening on http://127.0.0.1:4711\u{1b}[0m"), url);
        assert_eq!(listening_on("listening on metrics"), None);
        assert_eq!(listening_on("opening the store"), None);
    }
}
