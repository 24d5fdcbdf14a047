//! `cargo xtask test`: everything that proves the code right, on a machine that has Rust and nothing else.

use crate::services::Services;
use crate::steps::{Failed, Steps, cargo};
use crate::tools;
use std::path::{Path, PathBuf};

/// Builds the binary, then builds and runs the tests. `rest` goes to `cargo test` instead of `--workspace`.
pub(crate) fn run(rest: &[&str]) -> Result<(), Failed> {
    let mut steps = Steps::default();
    tools::ensure_c_compiler(&mut steps)?;
    steps.run("build the binary", cargo().args(["build", "--package", "holdfast_cli"]))?;

    // Tests start the binary from a copy of their own, so that another run's build cannot pull it away from them.
    let copy = Copy::of(&built_binary()?)?;
    let what: &[&str] = if rest.is_empty() { &["--workspace", "--no-fail-fast"] } else { rest };
    if rest.is_empty() {
        steps.run("build the tests", cargo().args(["test", "--workspace", "--no-run", "--quiet"]))?;
    }
    let services = Services::start(&mut steps)?;
    steps.run("run the tests", services.tell(cargo().arg("test").args(what).env("HOLDFAST_BIN", &copy.binary)))?;
    steps.summary();
    Ok(())
}

/// Where cargo has put the binary: beside ours, since both were built with the same settings.
fn built_binary() -> Result<PathBuf, Failed> {
    let own = std::env::current_exe().map_err(|e| Failed::new(format_args!("where am I? {e}")))?;
    let binary = own.with_file_name(format!("holdfast{}", std::env::consts::EXE_SUFFIX));
    if binary.is_file() {
        return Ok(binary);
    }
    Err(Failed::new(format_args!("the build left no binary at {}", binary.display())))
}

/// The binary in a temporary folder, which is removed at the end.
struct Copy {
    folder: PathBuf,
    binary: PathBuf,
}

impl Copy {
    fn of(built: &Path) -> Result<Self, Failed> {
        let folder = std::env::temp_dir().join(format!("holdfast-test-{}", std::process::id()));
        let failed =
            |e: std::io::Error| Failed::new(format_args!("cannot copy the binary to {}: {e}", folder.display()));
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let binary = folder.join(built.file_name().unwrap_or_default());
        let copy = Self { folder: folder.clone(), binary };
        std::fs::copy(built, &copy.binary).map_err(failed)?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // A folder that stays behind in the temporary place harms nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
