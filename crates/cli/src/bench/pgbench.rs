//! The yardstick on PostgreSQL: `pgbench` with the hold that many shops run, one hot SKU, a transaction each.
//!
//! Look at the SKU, take the units if there are enough, write the hold, commit. It is right, and it waits for the
//! same row every time.

use super::database::without_password;
use super::litter::Litter;
use super::progress::Progress;
use super::rows::grouped;
use holdfast_engine::Database;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Connections.
const CLIENTS: &str = "16";

/// What it measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Measured {
    /// Holds per second.
    pub(super) per_second: f64,
    /// The mean latency.
    pub(super) latency_ms: f64,
}

impl Measured {
    /// A line for the report.
    pub(super) fn line(&self) -> String {
        let per_second = grouped(self.per_second);
        format!(
            "pgbench -c {CLIENTS}, a hold a transaction, one hot SKU: {per_second}/s, mean {:.2} ms",
            self.latency_ms
        )
    }
}

/// Runs it against this database, in a schema of its own.
pub(super) async fn yardstick(url: &str, seconds: Duration, litter: &Litter) -> Result<Measured, String> {
    let progress = Progress::new("pgbench");
    progress.say("one hot SKU");
    let program = program();
    let schema = litter.fresh(Database::Postgres, url).await?.schema;
    let folder = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    run(&program, url, &write(folder.path(), "setup", &setup(&schema))?, &["-c", "1", "-t", "1"]).await?;
    let hold = write(folder.path(), "hold", &hold(&schema))?;
    let seconds = seconds.as_secs().max(1).to_string();
    let told = run(&program, url, &hold, &["-c", CLIENTS, "-j", "2", "-M", "prepared", "-T", &seconds]).await?;
    figures(&told).ok_or_else(|| format!("pgbench said: {told}"))
}

fn write(folder: &Path, name: &str, script: &str) -> Result<PathBuf, String> {
    let file = folder.join(name);
    std::fs::write(&file, script).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(file)
}

async fn run(program: &Path, url: &str, script: &Path, options: &[&str]) -> Result<String, String> {
    // Everybody on this machine can read a command line, so the password goes by the environment.
    let (url, password) = without_password(url);
    let mut command = Command::new(program);
    command.arg("-n").args(options).arg("-f").arg(script).arg(url);
    command.stdin(Stdio::null());
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await.map_err(|e| e.to_string())?;
    let output = output.map_err(|e| format!("cannot run {}: {e}", program.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("pgbench ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

/// On the path, or where Debian puts it; the newest of those.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("pgbench")).find(|file| file.is_file());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut installed: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            let number = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin/pgbench")))
        })
        .filter(|(_, file)| file.is_file())
        .collect();
    installed.sort();
    on_path.or_else(|| installed.pop().map(|(_, file)| file)).unwrap_or_else(|| "pgbench".into())
}

fn setup(schema: &str) -> String {
    format!(
        "CREATE SCHEMA {schema};
CREATE TABLE {schema}.yardstick (sku text PRIMARY KEY, available bigint NOT NULL CHECK (available >= 0),
  version bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE {schema}.yardstick_holds (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sku text NOT NULL,
  quantity bigint NOT NULL, expires_at timestamptz NOT NULL);
INSERT INTO {schema}.yardstick VALUES ('HOT', 1000000000, 1);
"
    )
}

fn hold(schema: &str) -> String {
    format!(
        "BEGIN;
SELECT available, version FROM {schema}.yardstick WHERE sku = 'HOT';
UPDATE {schema}.yardstick SET available = available - 1, version = version + 1 WHERE sku = 'HOT' AND available >= 1;
INSERT INTO {schema}.yardstick_holds (sku, quantity, expires_at) VALUES ('HOT', 1, now() + interval '10 minutes');
COMMIT;
"
    )
}

/// Transactions per second and the mean latency.
fn figures(text: &str) -> Option<Measured> {
    let after = |label: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(label))?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(Measured { per_second: after("tps = ")?, latency_ms: after("latency average = ")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_found_by_name() {
        let text = "pgbench (15.6)\ntransaction type: hold\nlatency average = 26.114 ms\n\
                    initial connection time = 31.9 ms\ntps = 612.695011 (without initial connection time)\n";
        let told = figures(text).unwrap();
        assert!((told.per_second - 612.695_011).abs() < 1e-9 && (told.latency_ms - 26.114).abs() < 1e-9, "{told:?}");
        assert!(figures("connection failed").is_none());
        assert!(told.line().contains("613/s, mean 26.11 ms"), "{}", told.line());
    }
}
