//! A script and the name that Redis gives it.

use redis::Cmd;
use std::fmt;

/// A Lua script.
#[derive(Clone)]
pub(crate) struct Script {
    name: &'static str,
    source: String,
    sha1: String,
}

impl Script {
    pub(crate) fn new(name: &'static str, source: impl Into<String>) -> Self {
        let source = source.into();
        let sha1 = redis::Script::new(&source).get_hash().to_owned();
        Self { name, source, sha1 }
    }

    /// What Redis calls it.
    #[cfg(test)]
    pub(crate) fn sha1(&self) -> &str {
        &self.sha1
    }

    /// Runs it where it is loaded.
    pub(crate) fn by_name(&self, keys: &[Vec<u8>], args: &[Vec<u8>]) -> Cmd {
        command("EVALSHA", &self.sha1, keys, args)
    }

    /// Loads and runs it in one step, so that nobody can unload it in between.
    pub(crate) fn whole(&self, keys: &[Vec<u8>], args: &[Vec<u8>]) -> Cmd {
        command("EVAL", &self.source, keys, args)
    }
}

fn command(verb: &str, script: &str, keys: &[Vec<u8>], args: &[Vec<u8>]) -> Cmd {
    let count = keys.len() + args.len() + 3;
    let size = script.len() + keys.iter().chain(args).map(Vec::len).sum::<usize>() + 16;
    let mut cmd = Cmd::with_capacity(count, size);
    cmd.arg(verb).arg(script).arg(keys.len());
    for value in keys.iter().chain(args) {
        cmd.arg(value.as_slice());
    }
    cmd
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({}, {})", self.name, self.sha1)
    }
}
