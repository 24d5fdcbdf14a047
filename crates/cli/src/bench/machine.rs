//! What is measured on: processor, cores, system, and how long the disk takes to be sure.

use holdfast_engine::clock::monotonic;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// The machine and what runs on it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Machine {
    /// The processor's name.
    pub(super) processor: String,
    /// Threads that run at once.
    pub(super) cores: usize,
    /// Operating system and architecture.
    pub(super) system: String,
    /// This program's version, with the commit when it was built with `HOLDFAST_COMMIT` set.
    pub(super) version: String,
    /// When an answer is durable.
    pub(super) durability: &'static str,
    /// Appending 4 KiB and `fdatasync`, the median, in milliseconds.
    pub(super) fsync_ms: Option<f64>,
}

impl Machine {
    /// Looks, and tries the disk under this folder.
    pub(super) fn look(folder: &Path) -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.map(|rest| rest.trim_start_matches([' ', '\t', ':']).trim());
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let commit = option_env!("HOLDFAST_COMMIT").map(|commit| format!(" ({commit})")).unwrap_or_default();
        Self {
            processor: model.unwrap_or("unknown processor").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            system: format!("{} {} {}", std::env::consts::OS, kernel.trim(), std::env::consts::ARCH),
            version: format!("{}{commit}", env!("CARGO_PKG_VERSION")),
            durability: "the log is synced before any answer",
            fsync_ms: fsync_ms(folder).ok(),
        }
    }
}

fn fsync_ms(folder: &Path) -> std::io::Result<f64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut times = Vec::new();
    let began = monotonic();
    while times.len() < 200 && began.elapsed().as_millis() < 1000 {
        file.write_all(&[7; 4096])?;
        let before = monotonic();
        file.sync_data()?;
        times.push(before.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
