//! PostgreSQL.

use crate::process::{
    Folder, Server, Signal, as_user, children, find, free_port, run, signal, unprivileged, write_files,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A PostgreSQL server of our own.
#[derive(Debug)]
pub struct Postgres {
    server: Option<Server>,
    port: u16,
    bin: PathBuf,
    user: Option<&'static str>,
    options: Vec<String>,
    folder: Folder,
}

impl Postgres {
    /// How to get it where it is missing.
    pub const PACKAGE: &'static str = "postgresql";

    /// Whether it is on this machine.
    pub fn is_here() -> bool {
        programs().is_some()
    }

    /// A new server with one database, `holdfast`. It does not sync to disk: a test kills processes, not machines.
    ///
    /// # Errors
    /// When it is not on this machine or does not start.
    pub fn start(options: &[&str]) -> Result<Self, String> {
        Self::start_with(options, &[])
    }

    /// The same, with files of these names and texts in its data folder: certificates, keys.
    ///
    /// # Errors
    /// As [`Postgres::start`].
    pub fn start_with(options: &[&str], files: &[(&str, &str)]) -> Result<Self, String> {
        let bin = programs().ok_or("PostgreSQL is not on this machine (Debian: apt-get install postgresql)")?;
        let user = unprivileged("postgres");
        let folder = Folder::new("postgres", user)?;
        let data = folder.0.join("data");
        let mut make = as_user(&bin.join("initdb"), user);
        run(make.arg("-D").arg(&data).args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]))?;
        write_files(&data, files, user)?;
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { server: None, port: free_port()?, bin, user, options, folder };
        server.launch()?;
        run(&mut server.psql("postgres", "CREATE DATABASE holdfast"))?;
        Ok(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.0.join("data")
    }

    fn psql(&self, database: &str, sql: &str) -> Command {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-U", "postgres", "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-p", &self.port.to_string(), "-d", database, "-c", sql]);
        psql
    }

    fn launch(&mut self) -> Result<(), String> {
        let mut start = as_user(&self.bin.join("postgres"), self.user);
        start.arg("-D").arg(self.data()).args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        start.arg("-k").arg(&self.folder.0).current_dir(&self.folder.0);
        for option in ["fsync=off", "max_connections=300"].into_iter().chain(self.options.iter().map(String::as_str)) {
            start.args(["-c", option]);
        }
        let mut server = Server::start(&mut start, self.folder.0.join("log"))?;
        server.wait_until(|| {
            let mut ask = self.psql("postgres", "SELECT 1");
            ask.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        })?;
        self.server = Some(server);
        Ok(())
    }

    /// Where it is, for a client.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/holdfast", self.port)
    }

    /// Its port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its programs are: psql, pgbench.
    pub fn programs(&self) -> &Path {
        &self.bin
    }

    /// Runs SQL as its owner would, past the engine; what it printed.
    ///
    /// # Errors
    /// What the database says.
    pub fn sql(&self, sql: &str) -> Result<String, String> {
        let output = run(&mut self.psql("holdfast", sql))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs SQL on the server at such a URL, which another process may have started.
    ///
    /// # Errors
    /// What the database says.
    pub fn sql_at(url: &str, sql: &str) -> Result<String, String> {
        let bin = programs().ok_or("PostgreSQL is not on this machine")?;
        let mut psql = Command::new(bin.join("psql"));
        let output = run(psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Stops all of its processes for a while: it answers nothing, and its connections stay open.
    pub fn freeze(&self) {
        self.to_all(Signal::Stop);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.to_all(Signal::Continue);
    }

    fn to_all(&self, what: Signal) {
        let Some(server) = &self.server else { return };
        // A killed parent has no children any more; one that is frozen starts no more of them.
        let before = children(server.pid());
        signal(server.pid(), what);
        before.into_iter().chain(children(server.pid())).for_each(|pid| signal(pid, what));
    }

    /// Ends it, as an administrator would or by `kill -9`, and starts it again on the same data and port.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&mut self, how: Signal) -> Result<(), String> {
        self.stop(how);
        self.launch()
    }

    /// Ends it and leaves it down.
    pub fn stop(&mut self, how: Signal) {
        if how == Signal::Kill {
            // Its processes must not outlive it: they would keep the new server from starting.
            self.to_all(Signal::Kill);
        }
        if let Some(mut server) = self.server.take() {
            server.end(how);
        }
    }

    /// Starts it after [`Postgres::stop`].
    ///
    /// # Errors
    /// When it does not start.
    pub fn go_on(&mut self) -> Result<(), String> {
        self.launch()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.thaw();
        self.stop(Signal::Interrupt);
    }
}

/// The folder of the newest version's programs.
fn programs() -> Option<PathBuf> {
    let mut folders: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| {
            let versions = versions.filter_map(Result::ok);
            versions.filter_map(|v| Some((v.file_name().to_str()?.parse().ok()?, v.path().join("bin")))).collect()
        })
        .unwrap_or_default();
    folders.sort();
    let folders: Vec<PathBuf> = folders.into_iter().rev().map(|(_, folder)| folder).collect();
    find("initdb", &folders).and_then(|file| file.parent().map(Path::to_owned))
}
