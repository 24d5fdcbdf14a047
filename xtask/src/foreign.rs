//! Somebody else's fake of Stripe, from PyPI, in a folder of its own below `target/`: tests verify what it signs.

use crate::steps::{Failed, Steps, works};
use crate::tools;
use std::path::PathBuf;
use std::process::Command;

/// The release that the test was written for.
const PACKAGE: &str = "localstripe==1.15.10";

/// The program, found where an earlier run has put it, or installed now.
pub(crate) fn localstripe(steps: &mut Steps) -> Result<Option<PathBuf>, Failed> {
    let own = std::env::current_exe().map_err(|e| Failed::new(format_args!("where am I? {e}")))?;
    let target = own.parent().and_then(|folder| folder.parent()).ok_or_else(|| Failed::new("where am I?"))?;
    let folder = target.join("test-tools").join("localstripe");
    let program = folder.join("bin").join("localstripe");
    // Written last: a folder that was left half-made is made anew.
    let done = folder.join("done");
    if done.is_file() && program.is_file() {
        return Ok(Some(program));
    }
    if !works(Command::new("python3").args(["-m", "venv", "--help"])) && tools::may_install() {
        tools::install(steps, &["python3-venv"])?;
    }
    let venv =
        steps.run("a folder for localstripe", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    let pip = |()| {
        steps.run("localstripe", Command::new(folder.join("bin").join("pip")).args(["install", "--quiet", PACKAGE]))
    };
    if let Err(failed) = venv.and_then(pip) {
        if std::env::var_os("CI").is_some() {
            return Err(failed);
        }
        steps.skip("the smoke test with localstripe", "it needs python3 with venv, and PyPI");
        return Ok(None);
    }
    std::fs::write(&done, PACKAGE).map_err(|e| Failed::new(format_args!("cannot write {}: {e}", done.display())))?;
    Ok(Some(program))
}
