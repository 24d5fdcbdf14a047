//! MariaDB.

use crate::process::{Folder, Server, Signal, as_user, find, free_port, run, signal, unprivileged, write_files};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A MariaDB server of our own.
#[derive(Debug)]
pub struct MariaDb {
    server: Option<Server>,
    port: u16,
    program: PathBuf,
    user: Option<&'static str>,
    options: Vec<String>,
    folder: Folder,
}

fn folders() -> Vec<PathBuf> {
    ["/usr/sbin", "/usr/local/sbin", "/usr/libexec"].map(PathBuf::from).to_vec()
}

impl MariaDb {
    /// How to get it where it is missing.
    pub const PACKAGE: &'static str = "mariadb-server";

    /// Whether it is on this machine.
    pub fn is_here() -> bool {
        find("mariadbd", &folders()).is_some()
            && find("mariadb-install-db", &[]).is_some()
            && find("mariadb", &[]).is_some()
    }

    /// A new server with one database, `holdfast`, and a user `holdfast` with password `holdfast` who may do everything.
    ///
    /// # Errors
    /// When it is not on this machine or does not start.
    pub fn start(options: &[&str]) -> Result<Self, String> {
        Self::start_with(options, &[])
    }

    /// The same, with files of these names and texts in its data folder: certificates, keys.
    ///
    /// # Errors
    /// As [`MariaDb::start`].
    pub fn start_with(options: &[&str], files: &[(&str, &str)]) -> Result<Self, String> {
        let missing = "MariaDB is not on this machine (Debian: apt-get install mariadb-server)";
        let program = find("mariadbd", &folders()).ok_or(missing)?;
        let install = find("mariadb-install-db", &[]).ok_or(missing)?;
        let user = unprivileged("mysql");
        let folder = Folder::new("mariadb", user)?;
        let data = format!("--datadir={}", folder.0.join("data").display());
        run(as_user(&install, user).args(["--no-defaults", &data, "--auth-root-authentication-method=normal"]))?;
        write_files(&folder.0.join("data"), files, user)?;
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { server: None, port: free_port()?, program, user, options, folder };
        server.launch()?;
        let make = "CREATE DATABASE holdfast; CREATE USER holdfast@'%' IDENTIFIED BY 'holdfast';
            GRANT ALL ON *.* TO holdfast@'%' WITH GRANT OPTION; FLUSH PRIVILEGES";
        run(&mut server.client("mysql", make))?;
        Ok(server)
    }

    fn client(&self, database: &str, sql: &str) -> Command {
        let mut client = Command::new("mariadb");
        let socket = format!("--socket={}", self.folder.0.join("socket").display());
        client.args(["--no-defaults", "-u", "root", &socket, "-N", "-B", "--default-character-set=utf8mb4"]);
        client.args([database, "-e", sql]);
        client
    }

    fn launch(&mut self) -> Result<(), String> {
        let mut start = as_user(&self.program, self.user);
        start.arg("--no-defaults").arg(format!("--datadir={}", self.folder.0.join("data").display()));
        start.arg(format!("--socket={}", self.folder.0.join("socket").display()));
        start.arg(format!("--pid-file={}", self.folder.0.join("pid").display()));
        start.arg(format!("--tmpdir={}", self.folder.0.display()));
        start.args(["--bind-address=127.0.0.1", &format!("--port={}", self.port), "--skip-name-resolve"]);
        // A test kills processes, not machines: what is handed to the system is safe enough.
        start.args(["--innodb-flush-log-at-trx-commit=2", "--max-connections=400", "--innodb-buffer-pool-size=256M"]);
        start.args(&self.options).current_dir(&self.folder.0);
        let mut server = Server::start(&mut start, self.folder.0.join("log"))?;
        server.wait_until(|| {
            let mut ask = self.client("mysql", "SELECT 1");
            ask.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        })?;
        self.server = Some(server);
        Ok(())
    }

    /// Where it is, for a client.
    pub fn url(&self) -> String {
        format!("mysql://holdfast:holdfast@127.0.0.1:{}/holdfast", self.port)
    }

    /// Runs SQL on the server at such a URL, which another process may have started.
    ///
    /// # Errors
    /// What the database says.
    pub fn sql_at(url: &str, sql: &str) -> Result<String, String> {
        let odd = || format!("not a URL of ours: {url}");
        let (login, place) = url.strip_prefix("mysql://").and_then(|rest| rest.split_once('@')).ok_or_else(odd)?;
        let (user, password) = login.split_once(':').ok_or_else(odd)?;
        let (host, database) = place.split_once('/').ok_or_else(odd)?;
        let (host, port) = host.split_once(':').ok_or_else(odd)?;
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "-h", host, "-P", port, "-u", user, "-N", "-B", "--protocol=tcp"]);
        client.arg(format!("--password={password}")).args([database, "-e", sql]);
        let output = run(&mut client)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Its port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs SQL as its owner would, past the engine; what it printed.
    ///
    /// # Errors
    /// What the database says.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let output = run(&mut self.client(database, sql))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Stops it for a while: it answers nothing, and its connections stay open.
    pub fn freeze(&self) {
        self.server.iter().for_each(|server| signal(server.pid(), Signal::Stop));
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.server.iter().for_each(|server| signal(server.pid(), Signal::Continue));
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
        // To it, an interrupt is nothing; ending in good order is asked for otherwise.
        if how == Signal::Interrupt && self.server.is_some() {
            let _ = run(&mut self.client("mysql", "SHUTDOWN"));
        }
        if let Some(mut server) = self.server.take() {
            server.end(if how == Signal::Interrupt { Signal::Continue } else { how });
        }
    }

    /// Starts it after [`MariaDb::stop`].
    ///
    /// # Errors
    /// When it does not start.
    pub fn go_on(&mut self) -> Result<(), String> {
        self.launch()
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // Its folder goes too: nothing has to be in good order.
        self.thaw();
        self.stop(Signal::Kill);
    }
}
