//! Somebody else's fake of Stripe, from PyPI, in a folder of its own below `target/`: tests verify what it signs.

use crate::steps::{Failed, Steps};
use crate::tools;
use std::path::{Path, PathBuf};
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
    if let Err(failed) = install(steps, &folder).or_else(|failed| with_python(steps, &folder, failed)) {
        // One smoke test is no reason to run none of the others.
        steps.skip("the smoke test with localstripe", &format!("it needs python3 with venv, and PyPI: {}", failed.why));
        return Ok(None);
    }
    std::fs::write(&done, PACKAGE).map_err(|e| Failed::new(format_args!("cannot write {}: {e}", done.display())))?;
    Ok(Some(program))
}

fn install(steps: &mut Steps, folder: &Path) -> Result<(), Failed> {
    steps.run("a folder for localstripe", Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    steps.run("localstripe", Command::new(folder.join("bin").join("pip")).args(["install", "--quiet", PACKAGE]))
}

/// Debian has venv in a package of its own, and says so only when it is used.
fn with_python(steps: &mut Steps, folder: &Path, failed: Failed) -> Result<(), Failed> {
    if !tools::may_install() {
        return Err(failed);
    }
    tools::install(steps, &["python3", "python3-venv"])?;
    install(steps, folder)
}
