//! Running one command after the other, each under a heading and with the time it took.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Why a verb ended early, and the exit code to end with.
pub(crate) struct Failed {
    pub(crate) why: String,
    pub(crate) code: u8,
}

impl Failed {
    pub(crate) fn new(why: impl fmt::Display) -> Self {
        Self { why: why.to_string(), code: 1 }
    }
}

/// The workspace's root, wherever the verb was called from.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// The cargo that started us, so that every step uses the same toolchain.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What cargo tells *this* package about itself is none of the next package's business.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|n| n.starts_with("CARGO_PKG_") || n.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether a command can be run at all; its output is not shown.
pub(crate) fn works(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// Steps done so far, for the summary.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<(String, String)>,
}

impl Steps {
    /// Runs a command under a heading.
    pub(crate) fn run(&mut self, title: &str, command: &mut Command) -> Result<(), Failed> {
        println!("\n==> {title}: {}", told(command));
        let start = now();
        let status = command.status().map_err(|e| Failed::new(format_args!("{}: {e}", told(command))))?;
        let took = format!("{:.1} s", start.elapsed().as_secs_f64());
        if status.success() {
            println!("<== {title}: {took}");
            self.done.push((title.to_owned(), took));
            return Ok(());
        }
        let code = status.code().and_then(|c| u8::try_from(c).ok()).filter(|c| *c != 0).unwrap_or(1);
        Err(Failed { why: format!("{title} failed after {took}: {}", told(command)), code })
    }

    /// Says that a step was not run, and why; the summary says it again.
    pub(crate) fn skip(&mut self, title: &str, why: &str) {
        println!("\n==> {title}: SKIPPED, {why}");
        self.done.push((title.to_owned(), format!("SKIPPED, {why}")));
    }

    /// Prints what was done.
    pub(crate) fn summary(self) {
        let width = self.done.iter().map(|(title, _)| title.len()).max().unwrap_or(0);
        println!();
        for (title, took) in self.done {
            println!("{title:width$}  {took}");
        }
    }
}

/// The command as a person would type it.
fn told(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_stem().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args()).map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

#[expect(clippy::disallowed_methods, reason = "xtask is no part of the product; it only times its own steps")]
fn now() -> Instant {
    Instant::now()
}
