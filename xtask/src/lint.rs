//! `cargo xtask lint`: what a machine can say about style, lints and dependencies.

use crate::steps::{Failed, Steps, cargo, works};

/// Runs rustfmt, clippy and, where it is installed, cargo-deny.
pub(crate) fn run() -> Result<(), Failed> {
    let mut steps = Steps::default();
    steps.run("format", cargo().args(["fmt", "--all", "--check"]))?;
    steps.run("format, fuzz targets", cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    steps.run("clippy", cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    if works(cargo().args(["deny", "--version"])) {
        steps.run("dependencies", cargo().args(["deny", "check", "bans", "licenses", "sources"]))?;
    } else {
        steps.skip("dependencies", "cargo-deny is not installed: cargo install --locked cargo-deny");
    }
    steps.summary();
    Ok(())
}
