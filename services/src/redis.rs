//! Redis: one server, and a cluster of six.

use crate::process::{Folder, Server, Signal, as_user, find, free_port, make_folder, run, signal, unprivileged, wait};
use crate::resp;
use std::path::PathBuf;
use std::process::Command;

/// What a server is told before the lines of whoever starts it. Every write is on disk before it is answered.
const LINES: [&str; 6] = [
    "bind 127.0.0.1",
    "save \"\"",
    "appendonly yes",
    "appendfsync always",
    // A replica is served at once: nobody else may be about to come.
    "repl-diskless-sync-delay 0",
    "daemonize no",
];

/// A Redis server of our own.
#[derive(Debug)]
pub struct Redis {
    server: Option<Server>,
    port: u16,
    program: PathBuf,
    user: Option<&'static str>,
    folder: Folder,
}

impl Redis {
    /// How to get it where it is missing.
    pub const PACKAGE: &'static str = "redis-server";

    /// Whether it is on this machine.
    pub fn is_here() -> bool {
        find("redis-server", &[]).is_some() && find("redis-cli", &[]).is_some()
    }

    /// A new server without a password, whose answers to writes are on disk.
    ///
    /// # Errors
    /// When it is not on this machine or does not start.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&[])
    }

    /// The same, with these lines at the end of its configuration, where they win: `appendonly no`.
    ///
    /// # Errors
    /// As [`Redis::start`].
    pub fn start_with(lines: &[&str]) -> Result<Self, String> {
        let mut server = Self::on(free_port()?, lines)?;
        server.launch()?;
        Ok(server)
    }

    /// Everything but the process.
    fn on(port: u16, lines: &[&str]) -> Result<Self, String> {
        let program = find("redis-server", &[]);
        let program = program.ok_or("Redis is not on this machine (Debian: apt-get install redis-server)")?;
        // It runs as root too, where there is no such user.
        let user = unprivileged("redis").filter(|user| run(Command::new("id").arg(user)).is_ok());
        let folder = Folder::new("redis", user)?;
        let lines: Vec<&str> = LINES.iter().chain(lines).copied().collect();
        let data = folder.0.join("data");
        let text = format!("port {port}\ndir {}\n{}\n", data.display(), lines.join("\n"));
        std::fs::write(folder.0.join("redis.conf"), text).map_err(|e| format!("{}: {e}", folder.0.display()))?;
        make_folder(&data, user)?;
        Ok(Self { server: None, port, program, user, folder })
    }

    fn launch(&mut self) -> Result<(), String> {
        let mut start = as_user(&self.program, self.user);
        start.arg(self.folder.0.join("redis.conf")).current_dir(&self.folder.0);
        let mut server = Server::start(&mut start, self.folder.0.join("log"))?;
        // While it reads its files it answers that it does.
        server.wait_until(|| self.command(&["PING"]).is_ok())?;
        self.server = Some(server);
        Ok(())
    }

    /// Where it is, for a client.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs a command past whatever is tested; what it answered, a line a value, nothing being an empty line.
    ///
    /// # Errors
    /// What the server says, or that it is silent.
    pub fn command(&self, words: &[&str]) -> Result<String, String> {
        resp::command(self.port, words)
    }

    /// Runs a command on the server at such a URL, which another process may have started.
    ///
    /// # Errors
    /// As [`Redis::command`].
    pub fn command_at(url: &str, words: &[&str]) -> Result<String, String> {
        let port = url.strip_prefix("redis://127.0.0.1:").and_then(|port| port.trim_end_matches('/').parse().ok());
        resp::command(port.ok_or_else(|| format!("not a URL of ours: {url}"))?, words)
    }

    /// Makes it a replica of another, and waits until it has all that the other has.
    ///
    /// # Errors
    /// When it does not become one.
    pub fn replicate(&self, other: &Self) -> Result<(), String> {
        self.command(&["REPLICAOF", "127.0.0.1", &other.port.to_string()])?;
        wait("the replica has caught up", || self.has_caught_up())
    }

    fn has_caught_up(&self) -> bool {
        self.command(&["INFO", "replication"]).is_ok_and(|told| told.contains("master_link_status:up"))
    }

    /// Stops it for a while: it answers nothing, and its connections stay open.
    pub fn freeze(&self) {
        self.server.iter().for_each(|server| signal(server.pid(), Signal::Stop));
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.server.iter().for_each(|server| signal(server.pid(), Signal::Continue));
    }

    /// Ends it by `kill -9` and leaves it down.
    pub fn kill(&mut self) {
        self.end(Signal::Kill);
    }

    /// Ends it as an administrator would and leaves it down.
    pub fn stop(&mut self) {
        self.thaw();
        self.end(Signal::Interrupt);
    }

    fn end(&mut self, how: Signal) {
        if let Some(mut server) = self.server.take() {
            server.end(how);
        }
    }

    /// Starts it, on the port and the files that it had; ends it before, if it runs.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&mut self) -> Result<(), String> {
        self.stop();
        self.launch()
    }

    /// Removes its files: a disk that was lost. For a server that is down.
    ///
    /// # Errors
    /// When it runs, or the files do not go.
    pub fn wipe(&self) -> Result<(), String> {
        if self.server.is_some() {
            return Err("a server that runs would write its files again".into());
        }
        let data = self.folder.0.join("data");
        std::fs::remove_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
        make_folder(&data, self.user)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Its folder goes too: nothing has to be in good order.
        self.kill();
    }
}

/// What makes a server a member of a cluster. One that is silent for two seconds is replaced.
const MEMBER: [&str; 3] = ["cluster-enabled yes", "cluster-config-file nodes.conf", "cluster-node-timeout 2000"];
/// Three primaries, then a replica for each.
const MEMBERS: usize = 6;
const PRIMARIES: usize = 3;

/// A cluster of our own: three primaries and a replica for each.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// A new cluster that serves all slots.
    ///
    /// # Errors
    /// When Redis is not on this machine or the cluster does not come to be.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&[])
    }

    /// The same, with these lines in the configuration of each member.
    ///
    /// # Errors
    /// As [`RedisCluster::start`].
    pub fn start_with(lines: &[&str]) -> Result<Self, String> {
        let lines: Vec<&str> = MEMBER.iter().chain(lines).copied().collect();
        let mut nodes = Vec::new();
        for _ in 0..MEMBERS {
            let mut node = Redis::on(free_bus()?, &lines)?;
            node.launch()?;
            nodes.push(node);
        }
        let cluster = Self { nodes };
        let places = cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
        let mut make = Command::new("redis-cli");
        run(make.args(["--cluster", "create"]).args(places).args(["--cluster-replicas", "1", "--cluster-yes"]))?;
        wait("every member of the cluster serves", || cluster.is_whole())?;
        Ok(cluster)
    }

    /// Whether every member knows all others and all slots, and every replica has caught up.
    fn is_whole(&self) -> bool {
        let serves = |node: &Redis| {
            node.command(&["CLUSTER", "INFO"])
                .is_ok_and(|told| told.contains("cluster_state:ok") && told.contains("cluster_known_nodes:6"))
        };
        self.nodes.iter().all(serves) && self.nodes[PRIMARIES..].iter().all(Redis::has_caught_up)
    }

    /// Its members: at the beginning, three primaries, then three replicas.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The same, to be killed and started again.
    pub fn nodes_mut(&mut self) -> &mut [Redis] {
        &mut self.nodes
    }

    /// Where it is, for a client: the members that began as primaries.
    pub fn url(&self) -> String {
        let places: Vec<String> =
            self.nodes[..PRIMARIES].iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", places.join(","))
    }
}

/// A free port that leaves room for the one at which members talk: 10,000 above.
fn free_bus() -> Result<u16, String> {
    for _ in 0..1000 {
        let port = free_port()?;
        let bus = port.checked_add(10_000);
        if bus.is_some_and(|bus| std::net::TcpListener::bind(("127.0.0.1", bus)).is_ok()) {
            return Ok(port);
        }
    }
    Err("no free pair of ports".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None` where Redis is missing, which in CI it may not be.
    fn here() -> Option<()> {
        let is_here = Redis::is_here();
        assert!(is_here || std::env::var_os("CI").is_none(), "{} is missing", Redis::PACKAGE);
        is_here.then_some(())
    }

    #[test]
    fn a_server_keeps_what_it_has_answered() {
        let Some(()) = here() else { return };
        let mut redis = Redis::start().unwrap();
        assert_eq!(redis.command(&["SET", "k", "v w"]).unwrap(), "OK");
        redis.kill();
        assert!(redis.command(&["PING"]).is_err());
        redis.restart().unwrap();
        assert_eq!(redis.command(&["MGET", "k", "none"]).unwrap(), "v w\n");
        assert!(redis.command(&["NONE"]).unwrap_err().contains("unknown command"));
        redis.stop();
        redis.wipe().unwrap();
        redis.restart().unwrap();
        assert_eq!(Redis::command_at(&redis.url(), &["GET", "k"]).unwrap(), "");
        let replica = Redis::start_with(&["appendonly no"]).unwrap();
        redis.command(&["SET", "k", "again"]).unwrap();
        replica.replicate(&redis).unwrap();
        assert_eq!(replica.command(&["GET", "k"]).unwrap(), "again");
        let folder = redis.folder.0.clone();
        drop((redis, replica));
        assert!(!folder.exists());
    }

    #[test]
    fn a_cluster_goes_on_without_a_primary() {
        let Some(()) = here() else { return };
        let mut cluster = RedisCluster::start().unwrap();
        assert_eq!(cluster.url().matches("127.0.0.1").count(), PRIMARIES);
        cluster.nodes_mut()[0].kill();
        wait("a replica has taken over", || {
            let told = cluster.nodes()[1].command(&["CLUSTER", "NODES"]).unwrap();
            let is_primary = |line: &&str| line.contains("master") && !line.contains("fail");
            told.lines().filter(is_primary).count() == PRIMARIES
        })
        .unwrap();
    }
}
