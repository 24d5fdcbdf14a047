//! RabbitMQ, with a name daemon of its own, so that it meets no other Erlang program of this machine.

use crate::process::{Folder, Server, Signal, as_user, find, free_port, make_folder, signal, unprivileged, wait};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A RabbitMQ server of our own.
#[derive(Debug)]
pub struct RabbitMq {
    server: Option<Server>,
    port: u16,
    distribution: u16,
    program: PathBuf,
    user: Option<&'static str>,
    folder: Folder,
    names_port: u16,
    _names: Server,
}

/// Where the script is that does not change the user by itself.
fn folders() -> Vec<PathBuf> {
    vec![PathBuf::from("/usr/lib/rabbitmq/bin")]
}

impl RabbitMq {
    /// How to get it where it is missing.
    pub const PACKAGE: &'static str = "rabbitmq-server";

    /// Whether it is on this machine.
    pub fn is_here() -> bool {
        find("rabbitmq-server", &folders()).is_some() && find("epmd", &[]).is_some()
    }

    /// A new server with the user `guest`, whose password is `guest`. It takes some seconds.
    ///
    /// # Errors
    /// When it is not on this machine or does not start.
    pub fn start() -> Result<Self, String> {
        let missing = "RabbitMQ is not on this machine (Debian: apt-get install rabbitmq-server)";
        let program = find("rabbitmq-server", &folders()).ok_or(missing)?;
        let epmd = find("epmd", &[]).ok_or(missing)?;
        let user = unprivileged("rabbitmq");
        let folder = Folder::new("rabbitmq", user)?;
        for name in ["home", "data", "log", "etc"] {
            make_folder(&folder.0.join(name), user)?;
        }
        let names_port = free_port()?;
        let mut start = as_user(&epmd, user);
        start.args(["-port", &names_port.to_string(), "-address", "127.0.0.1"]);
        let names = Server::start(&mut start, folder.0.join("log").join("names"))?;
        wait("the name daemon listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, names_port)).is_ok())?;
        let (port, distribution) = (free_port()?, free_port()?);
        let mut server = Self { server: None, port, distribution, program, user, folder, names_port, _names: names };
        server.go_on()?;
        Ok(server)
    }

    /// Where it is, for a client.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}", self.port)
    }

    /// Starts it after [`RabbitMq::stop`], on the same files and ports.
    ///
    /// # Errors
    /// When it does not start.
    pub fn go_on(&mut self) -> Result<(), String> {
        let place = |name: &str| self.folder.0.join(name);
        let mut start = as_user(&self.program, self.user);
        // Nothing of an installation on this machine is read: neither its settings nor its plugins.
        start.env("HOME", place("home")).current_dir(&self.folder.0);
        start.env("ERL_EPMD_PORT", self.names_port.to_string()).env("ERL_EPMD_ADDRESS", "127.0.0.1");
        start.env("RABBITMQ_NODENAME", format!("holdfast-{}@localhost", self.port));
        start.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1").env("RABBITMQ_NODE_PORT", self.port.to_string());
        start.env("RABBITMQ_DIST_PORT", self.distribution.to_string());
        start.env("RABBITMQ_CONF_ENV_FILE", place("etc").join("env"));
        start.env("RABBITMQ_CONFIG_FILES", place("etc").join("conf.d"));
        start.env("RABBITMQ_CONFIG_FILE", place("etc").join("conf"));
        start.env("RABBITMQ_ADVANCED_CONFIG_FILE", place("etc").join("advanced"));
        start.env("RABBITMQ_ENABLED_PLUGINS_FILE", place("etc").join("plugins"));
        start.env("RABBITMQ_MNESIA_BASE", place("data")).env("RABBITMQ_LOG_BASE", place("log"));
        start.env("RABBITMQ_LOGS", "-").env("RABBITMQ_PID_FILE", place("pid"));
        // The script then becomes the server instead of waiting for it, so that signals reach it.
        start.env("RABBITMQ_ALLOW_INPUT", "1");
        // Two schedulers that do not spin are enough for tests, and start sooner.
        start.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-noinput -start_epmd false +S 2:2 +sbwt none");
        let mut server = Server::start(&mut start, place("log").join("server"))?;
        server.wait_until(|| greets(self.port))?;
        self.server = Some(server);
        Ok(())
    }

    /// Ends it by `kill -9` and leaves it down.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.end(Signal::Kill);
        }
    }

    /// Stops it for a while: it answers nothing, and its connections stay open.
    pub fn freeze(&self) {
        self.server.iter().for_each(|server| signal(server.pid(), Signal::Stop));
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.server.iter().for_each(|server| signal(server.pid(), Signal::Continue));
    }

    /// What it has written about itself, for a test that failed.
    pub fn log(&self) -> String {
        read_log(&self.folder.0.join("log").join("server"))
    }
}

fn read_log(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        // Its folder goes too: nothing has to be in good order.
        self.kill();
    }
}

/// A server that is ready answers a client's greeting.
fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let mut byte = [0; 1];
    stream.set_read_timeout(Some(Duration::from_secs(5))).is_ok()
        && stream.write_all(b"AMQP\x00\x00\x09\x01").is_ok()
        && stream.read_exact(&mut byte).is_ok()
        && byte == [1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_starts_again_after_a_kill() {
        let is_here = RabbitMq::is_here();
        assert!(is_here || std::env::var_os("CI").is_none(), "{} is missing", RabbitMq::PACKAGE);
        if !is_here {
            return;
        }
        let mut rabbit = RabbitMq::start().unwrap();
        rabbit.kill();
        assert!(!greets(rabbit.port));
        rabbit.go_on().unwrap();
        assert!(greets(rabbit.port));
        let folder = rabbit.folder.0.clone();
        let names_port = rabbit.names_port;
        drop(rabbit);
        assert!(!folder.exists());
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, names_port)).is_err(), "the name daemon ends with it");
    }
}
