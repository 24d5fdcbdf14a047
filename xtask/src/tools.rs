//! What a build needs besides Rust: found, or installed where that is harmless, or named.

use crate::steps::{Failed, Steps, works};
use std::process::Command;

/// A C compiler, for the SQLite that is built into the binary.
pub(crate) fn ensure_c_compiler(steps: &mut Steps) -> Result<(), Failed> {
    if has_c_compiler() {
        return Ok(());
    }
    if may_install() {
        install(steps, &["gcc", "libc6-dev"])?;
        if has_c_compiler() {
            return Ok(());
        }
    }
    Err(Failed::new(
        "no C compiler was found, and the build needs one for SQLite. Install it and try again:
  Debian, Ubuntu:  apt-get install gcc libc6-dev
  Fedora:          dnf install gcc
  Alpine:          apk add gcc musl-dev
  macOS:           xcode-select --install
or name one in the variable CC.",
    ))
}

/// Whether packages can be installed without asking anybody.
pub(crate) fn may_install() -> bool {
    is_root() && works(Command::new("apt-get").arg("--version"))
}

/// Installs packages of the distribution.
pub(crate) fn install(steps: &mut Steps, packages: &[&str]) -> Result<(), Failed> {
    // Waiting for the package manager's lock is what makes two runs at once safe.
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.args(["-y", "-o", "DPkg::Lock::Timeout=600"]).env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    steps.run("package lists", apt().arg("update"))?;
    steps.run("packages", apt().args(["install", "--no-install-recommends"]).args(packages))
}

fn has_c_compiler() -> bool {
    // On Windows the build finds the compiler by itself, in places that are not on the path.
    cfg!(windows)
        || std::env::vars_os().any(|(name, _)| name == "CC" || name.to_string_lossy().starts_with("CC_"))
        || ["cc", "gcc", "clang"].iter().any(|name| works(Command::new(name).arg("--version")))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
