//! NATS, with JetStream.

use crate::process::{Folder, Server, Signal, as_user, find, free_port, run, signal, unprivileged};
use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A NATS server of our own.
#[derive(Debug)]
pub struct Nats {
    server: Option<Server>,
    port: u16,
    program: PathBuf,
    user: Option<&'static str>,
    folder: Folder,
}

fn folders() -> Vec<PathBuf> {
    ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from).to_vec()
}

impl Nats {
    /// How to get it where it is missing.
    pub const PACKAGE: &'static str = "nats-server";

    /// Whether it is on this machine.
    pub fn is_here() -> bool {
        find("nats-server", &folders()).is_some()
    }

    /// A new server whose streams are files, and which lets anybody in.
    ///
    /// # Errors
    /// When it is not on this machine or does not start.
    pub fn start() -> Result<Self, String> {
        let program = find("nats-server", &folders());
        let program = program.ok_or("NATS is not on this machine (Debian: apt-get install nats-server)")?;
        // It runs as root too, where there is no such user.
        let user = unprivileged("nats").filter(|user| run(Command::new("id").arg(user)).is_ok());
        let folder = Folder::new("nats", user)?;
        let mut server = Self { server: None, port: free_port()?, program, user, folder };
        server.go_on()?;
        Ok(server)
    }

    /// Where it is, for a client.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts it after [`Nats::stop`], on the same files and port.
    ///
    /// # Errors
    /// When it does not start.
    pub fn go_on(&mut self) -> Result<(), String> {
        let mut start = as_user(&self.program, self.user);
        start.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]);
        start.arg(self.folder.0.join("data")).current_dir(&self.folder.0);
        let mut server = Server::start(&mut start, self.folder.0.join("log"))?;
        server.wait_until(|| greets(self.port))?;
        self.server = Some(server);
        Ok(())
    }

    /// Ends it and leaves it down.
    pub fn stop(&mut self, how: Signal) {
        if let Some(mut server) = self.server.take() {
            server.end(how);
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
}

impl Drop for Nats {
    fn drop(&mut self) {
        // Its folder goes too: nothing has to be in good order.
        self.stop(Signal::Kill);
    }
}

/// A server that is ready says so to whoever connects.
fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let mut word = [0; 4];
    stream.set_read_timeout(Some(Duration::from_secs(2))).is_ok()
        && stream.read_exact(&mut word).is_ok()
        && &word == b"INFO"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_starts_again_after_a_kill() {
        let is_here = Nats::is_here();
        assert!(is_here || std::env::var_os("CI").is_none(), "{} is missing", Nats::PACKAGE);
        if !is_here {
            return;
        }
        let mut nats = Nats::start().unwrap();
        nats.stop(Signal::Kill);
        assert!(!greets(nats.port));
        nats.go_on().unwrap();
        assert!(greets(nats.port));
    }
}
