//! A wall clock that a test sets for one process.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that tells a process under the [`wall_clock`] which file says by how many seconds its clock is ahead.
pub const WALL_CLOCK_FILE: &str = "WALL_CLOCK_FILE";

/// Adds to the wall clock, and to no other, as many seconds as the file says.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *at) {
    int answer = (int)syscall(SYS_clock_gettime, id, at);
    const char *path = getenv("WALL_CLOCK_FILE");
    if (answer == 0 && id == CLOCK_REALTIME && path) {
        char text[32] = {0};
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            if (read(file, text, sizeof text - 1) > 0) at->tv_sec += atol(text);
            close(file);
        }
    }
    return answer;
}
"#;

/// A library for `LD_PRELOAD`, built in this folder; the C compiler is the one that the build has used for SQLite.
///
/// # Errors
/// Why there is none: another system, or no compiler.
pub fn wall_clock(folder: &Path) -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")) {
        return Err("setting a process's wall clock is known for 64-bit Linux with glibc only".into());
    }
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&source, SOURCE).map_err(|e| e.to_string())?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let built = Command::new(compiler).args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
    let built = built.map_err(|e| format!("no C compiler: {e}"))?;
    if built.status.success() { Ok(library) } else { Err(String::from_utf8_lossy(&built.stderr).into_owned()) }
}
