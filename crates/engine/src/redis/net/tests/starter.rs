//! Redis servers in temporary folders. Must never touch one that it has not started.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tempfile::TempDir;

pub(super) struct Server {
    child: Option<Child>,
    pub(super) port: u16,
    options: Vec<String>,
    pub(super) folder: TempDir,
}

/// A port whose cluster bus port is free as well; below those that the system hands out.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id() % 500) as u16 * 20;
    loop {
        let port = 11_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}

impl Server {
    pub(super) fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { child: None, port: free_port(), options, folder };
        server.go();
        server
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) fn go(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut start = Command::new("redis-server");
        start.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        start.arg("--dir").arg(self.folder.path()).args(&self.options).current_dir(self.folder.path());
        self.child = Some(start.stdout(log).stderr(Stdio::null()).spawn().unwrap());
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("redis-server does not start");
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(super) fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// What redis-cli prints.
    pub(super) fn cli(&self, words: &str) -> String {
        cli(&["-p", &self.port.to_string()].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
    }

    pub(super) fn field(&self, name: &str) -> String {
        let port = self.port.to_string();
        let info = Command::new("timeout").args(["1", "redis-cli", "-p", &port, "INFO", "all"]).output().unwrap();
        let info = String::from_utf8_lossy(&info.stdout);
        super::super::link::field(&info, name).unwrap_or_default().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(super) fn cli(args: &[&str]) -> String {
    let output = Command::new("timeout").args(["60", "redis-cli"]).args(args).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(super) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never: {what}");
}

/// Three primaries with a replica each.
pub(super) struct Cluster(pub(super) Vec<Server>);

impl Cluster {
    pub(super) fn start() -> Self {
        let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"];
        let servers: Vec<_> = (0..6).map(|_| Server::start(&options)).collect();
        let places: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        let mut args = vec!["--cluster", "create"];
        args.extend(places.iter().map(String::as_str));
        args.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        let said = cli(&args);
        assert!(said.contains("All 16384 slots covered"), "{said}");
        let cluster = Self(servers);
        wait_for("a whole cluster", || cluster.0.iter().all(|server| server.cli("CLUSTER INFO").contains("state:ok")));
        wait_for("replicas", || {
            cluster.0.iter().filter(|server| server.field("master_link_status") == "up").count() == 3
        });
        wait_for("everybody told of replicas", || {
            cluster.0.iter().all(|server| server.cli("CLUSTER NODES").matches("slave").count() == 3)
        });
        cluster
    }

    pub(super) fn url(&self) -> String {
        let ports: Vec<_> = self.0.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        format!("redis+cluster://{}", ports.join(","))
    }

    pub(super) fn id(&self, server: usize) -> String {
        self.0[server].cli("CLUSTER MYID")
    }

    /// The server whose identity this is. Those that do not answer are passed over.
    pub(super) fn of(&self, identity: &str) -> usize {
        let run_id = identity.split(':').next().unwrap();
        self.0.iter().position(|server| server.field("run_id") == run_id).unwrap()
    }

    /// Makes a replica the primary. Redis gives up silently where the two are not in step yet.
    pub(super) fn promote(&self, server: usize) {
        wait_for("in step", || self.0[server].field("master_link_status") == "up");
        wait_for("promoted", || {
            self.0[server].cli("CLUSTER FAILOVER");
            (0..20).any(|_| {
                std::thread::sleep(Duration::from_millis(50));
                self.0[server].field("role") == "master"
            })
        });
    }

    pub(super) fn replica_of(&self, server: usize) -> usize {
        let port = self.0[server].port.to_string();
        let is_its = |one: &Server| one.field("role") == "slave" && one.field("master_port") == port;
        self.0.iter().position(is_its).unwrap()
    }
}
