//! The real binary on a free port, ended by its own guard.

use super::client::Call;
use super::eventually;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// The most time for a server to get ready, or to say why not.
const STARTING: Duration = Duration::from_secs(30);

/// The binary under test: the copy that `cargo xtask test` made, or the one that cargo built.
pub fn holdfast() -> Command {
    let binary = std::env::var_os("HOLDFAST_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_holdfast").into());
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("HOLDFAST_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A running server. Dropping it stops it with SIGTERM and checks that it ends well.
pub struct Server {
    pub port: u16,
    child: Child,
    log: Option<JoinHandle<String>>,
    out: BufReader<std::process::ChildStdout>,
    folder: Option<Arc<TempDir>>,
    key: Option<String>,
    is_ended: bool,
}

impl Server {
    /// A server of one's own, with nothing in it.
    pub fn fresh() -> Self {
        Self::with(&Arc::new(tempfile::tempdir().unwrap()), &[])
    }

    /// A server on this folder with these flags.
    pub fn with(folder: &Arc<TempDir>, flags: &[&str]) -> Self {
        Self::with_command(holdfast(), folder, flags)
    }

    /// As [`Server::with`], with a command of one's own.
    pub fn with_command(mut command: Command, folder: &Arc<TempDir>, flags: &[&str]) -> Self {
        command.arg("serve").arg("--data-dir").arg(folder.path().join("data")).args(flags);
        if !flags.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut server = Self::spawn(command).unwrap_or_else(|(_, log)| panic!("the server did not start: {log}"));
        server.folder = Some(folder.clone());
        server
    }

    /// Starts a command and waits for its line; else what it logged.
    pub fn spawn(mut command: Command) -> Result<Self, (Option<i32>, String)> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut log = Vec::new();
            let _ = errors.read_to_end(&mut log);
            String::from_utf8_lossy(&log).into_owned()
        });
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = out.read_line(&mut line);
            let _ = tell.send((line, out));
        });
        let Ok((line, out)) = told.recv_timeout(STARTING) else {
            let _ = child.kill();
            panic!("the server neither starts nor ends: {}", log.join().unwrap());
        };
        let port = line.trim_end().strip_prefix("listening on http://").and_then(|a| a.rsplit(':').next());
        let Some(port) = port.and_then(|p| p.parse().ok()) else {
            assert_eq!(line, "", "a server that does not start says nothing on standard output");
            let status = child.wait().unwrap();
            return Err((status.code(), log.join().unwrap()));
        };
        Ok(Self { port, child, log: Some(log), out, folder: None, key: None, is_ended: false })
    }

    /// The admin key that the last look at the server needs.
    pub fn keyed(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    pub fn folder(&self) -> &Arc<TempDir> {
        self.folder.as_ref().unwrap()
    }

    pub fn data_dir(&self) -> std::path::PathBuf {
        self.folder().path().join("data")
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// SIGKILL, as a crash would have it.
    pub fn kill(mut self) -> Arc<TempDir> {
        self.is_ended = true;
        self.child.kill().unwrap();
        let _ = self.child.wait();
        self.folder().clone()
    }

    /// Waits for the end; the exit status and everything that was logged.
    pub fn wait(&mut self, limit: Duration) -> (ExitStatus, String) {
        self.is_ended = true;
        let status = eventually("the server ends", limit, || self.child.try_wait().unwrap());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "standard output has one line");
        (status, self.log.take().unwrap().join().unwrap())
    }

    /// SIGTERM, a good end, and what was logged.
    pub fn stop(mut self) -> (Arc<TempDir>, String) {
        self.signal(Signal::TERM);
        let (status, log) = self.wait(Duration::from_secs(30));
        assert_eq!(status.code(), Some(0), "{log}");
        (self.folder().clone(), log)
    }

    /// The audit finds nothing.
    #[track_caller]
    pub fn is_clean(&self) {
        let call = Call::new("POST", "/v1/audit");
        let call = if let Some(key) = &self.key { call.key(key) } else { call };
        let report = call.to(self).is(200);
        assert_eq!(report["drift"], serde_json::json!([]), "{report}");
        assert_eq!(report["clean"], true);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        if std::thread::panicking() {
            let _ = kill_process(self.pid(), Signal::TERM);
            let _ = self.child.wait();
            return;
        }
        self.is_clean();
        self.signal(Signal::TERM);
        let (status, log) = self.wait(Duration::from_secs(30));
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(!log.contains("panicked") && !log.contains("\"ERROR\""), "{log}");
    }
}

/// The server that tests share which do not look at what others do. The last one to let go stops it.
pub fn shared() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Server::fresh());
    *shared = Arc::downgrade(&server);
    server
}

/// Runs `serve` with flags that keep it from starting: its exit code and what it logged.
pub fn refused_start(folder: &Path, flags: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = holdfast();
    command.arg("serve").arg("--data-dir").arg(folder).args(flags).envs(variables.iter().copied());
    Server::spawn(command).err().expect("the server must not start")
}
