//! `cargo xtask fuzz`: the fuzz targets, each for a while, from the seeds and what earlier runs have found.

use crate::steps::{Failed, Steps, root, works};
use std::process::Command;

const TARGETS: [&str; 7] =
    ["cart_json", "import_csv", "sale_json", "signature", "webhook_adyen", "webhook_standard", "webhook_stripe"];

/// Runs every target for so many seconds.
pub(crate) fn run(seconds: &str) -> Result<(), Failed> {
    let seconds: u32 = seconds
        .parse()
        .ok()
        .filter(|s| *s > 0)
        .ok_or_else(|| Failed { why: format!("--seconds wants a whole number above 0, not {seconds:?}"), code: 2 })?;
    if !works(proxy().args(["fuzz", "--version"])) {
        return Err(Failed::new(
            "the fuzz targets were not run: cargo-fuzz is not installed. Get it with: cargo install --locked cargo-fuzz",
        ));
    }
    // The sanitizers and coverage that fuzzing needs are unstable options of the compiler.
    let has_nightly = works(proxy().args(["+nightly", "--version"]));
    if !has_nightly {
        println!("no nightly toolchain: RUSTC_BOOTSTRAP=1 lets the installed one do it");
    }
    let mut steps = Steps::default();
    for target in TARGETS {
        let corpus = format!("fuzz/corpus/{target}");
        std::fs::create_dir_all(root().join(&corpus))
            .map_err(|e| Failed::new(format_args!("cannot make {corpus}: {e}")))?;
        let mut fuzz = proxy();
        if has_nightly {
            fuzz.arg("+nightly");
        } else {
            fuzz.env("RUSTC_BOOTSTRAP", "1");
        }
        // What is found goes to the first folder; the seeds are only read.
        fuzz.args(["fuzz", "run", target, &corpus, &format!("fuzz/seeds/{target}"), "--"]);
        fuzz.args([&format!("-max_total_time={seconds}"), "-timeout=10", "-max_len=8192"]);
        steps.run(target, &mut fuzz)?;
    }
    steps.summary();
    Ok(())
}

/// The cargo on the path, which takes `+nightly` where rustup has installed it.
fn proxy() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).env_remove("CARGO").env_remove("RUSTC");
    cargo
}
