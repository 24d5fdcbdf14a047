//! Processes, ports and folders.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// What a server can be told from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// End at once, without tidying up.
    Kill,
    /// Do nothing at all, until told to go on.
    Stop,
    /// Go on.
    Continue,
    /// End in good order.
    Interrupt,
}

impl Signal {
    fn number(self) -> rustix::process::Signal {
        match self {
            Self::Kill => rustix::process::Signal::KILL,
            Self::Stop => rustix::process::Signal::STOP,
            Self::Continue => rustix::process::Signal::CONT,
            Self::Interrupt => rustix::process::Signal::INT,
        }
    }
}

/// Sends a signal to a process that we started.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        // One that has ended meanwhile needs no signal.
        let _ = rustix::process::kill_process(pid, signal.number());
    }
}

/// The processes that this one has started.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        // The name comes second, in parentheses, and may hold anything; the parent is the second word after it.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        after.split_whitespace().nth(1).and_then(|word| word.parse().ok()) == Some(parent)
    };
    pids.filter(is_child).collect()
}

/// A port that is free now.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| format!("no free port: {e}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}

/// A new folder that its user alone may enter; removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(kind: &str, user: Option<&str>) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("holdfast-{kind}-{}-{n}", std::process::id()));
        make_folder(&path, user)?;
        Ok(Self(path))
    }
}

/// A folder that this user may write into.
pub(crate) fn make_folder(path: &Path, user: Option<&str>) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
    user.map_or(Ok(()), |user| run(Command::new("chown").arg(user).arg(path)).map(drop))
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind in the temporary place harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes files into a folder, for their user alone.
pub(crate) fn write_files(folder: &Path, files: &[(&str, &str)], user: Option<&str>) -> Result<(), String> {
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        run(Command::new("chmod").arg("600").arg(&path))?;
        if let Some(user) = user {
            run(Command::new("chown").arg(user).arg(&path))?;
        }
    }
    Ok(())
}

/// The user to run a server as: these servers refuse to run as root.
pub(crate) fn unprivileged(user: &'static str) -> Option<&'static str> {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0").then_some(user)
}

/// The program, run as this user.
pub(crate) fn as_user(program: &Path, user: Option<&str>) -> Command {
    match user {
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", user, "--regid", user, "--clear-groups", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Runs it to its end; what it said when it failed.
pub(crate) fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

/// A program in one of these folders, or on the path.
pub(crate) fn find(program: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.iter().cloned().chain(std::env::split_paths(&path));
    all.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Waits until it is so.
pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    for _ in 0..600 {
        if is_so() {
            return Ok(());
        }
        sleep(Duration::from_millis(50));
    }
    Err(format!("it never came to pass: {what}"))
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts it, its output going to a file.
    pub(crate) fn start(command: &mut Command, log: PathBuf) -> Result<Self, String> {
        let file = fs::OpenOptions::new().create(true).append(true).open(&log).map_err(|e| e.to_string())?;
        let copy = file.try_clone().map_err(|e| e.to_string())?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(copy).spawn();
        Ok(Self { child: child.map_err(|e| format!("{command:?}: {e}"))?, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it answers.
    pub(crate) fn wait_until(&mut self, mut answers: impl FnMut() -> bool) -> Result<(), String> {
        for _ in 0..600 {
            if answers() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let lines: Vec<&str> = log.lines().rev().take(20).collect();
                return Err(format!(
                    "the server ended: {status}\n{}",
                    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
                ));
            }
            sleep(Duration::from_millis(50));
        }
        Err("the server did not answer within 30 s".into())
    }

    /// Ends it, gently or not, and waits for the end.
    pub(crate) fn end(&mut self, how: Signal) {
        signal(self.pid(), how);
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.end(Signal::Kill);
        }
    }
}
