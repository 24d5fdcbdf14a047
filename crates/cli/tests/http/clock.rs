//! A wall clock that is set while the server runs.

use crate::support::{Server, brief_cart, cart, eventually, holdfast, millis, skipped};
use holdfast_engine::clock::monotonic;
use holdfast_services::{WALL_CLOCK_FILE, wall_clock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::{TempDir, tempdir};

fn library(folder: &TempDir) -> Option<PathBuf> {
    wall_clock(folder.path()).map_err(|why| skipped(&why)).ok()
}

/// Starts a server whose wall clock is ahead by what the file says.
fn start(library: &Path, folder: &Arc<TempDir>) -> Server {
    let mut command = holdfast();
    command.env("LD_PRELOAD", library).env(WALL_CLOCK_FILE, folder.path().join("offset"));
    Server::with_command(command, folder, &[])
}

fn set_clock(folder: &TempDir, offset: &str) {
    let next = folder.path().join("offset.next");
    std::fs::write(&next, format!("{offset}\n")).unwrap();
    std::fs::rename(next, folder.path().join("offset")).unwrap();
}

fn offset(server: &Server) -> i64 {
    let text = server.get("/metrics").text();
    let line = text.lines().find_map(|l| l.strip_prefix("holdfast_clock_offset_milliseconds "));
    line.unwrap().parse().unwrap()
}

/// A wall clock that jumps frees nothing early, keeps nothing longer, and is told in the log.
fn survives(step: &str, is_expected: impl Fn(i64) -> bool) {
    let folder = Arc::new(tempdir().unwrap());
    let Some(library) = library(&folder) else { return };
    set_clock(&folder, "+0");
    let server = start(&library, &folder);
    server.stock("A", 2);
    let long = server.hold(&cart("o-long", "A", 1));
    let start = monotonic();
    let brief = server.hold(&brief_cart("o-brief", "A", 1, 4));
    set_clock(&folder, step);
    eventually("the step is seen", Duration::from_secs(10), || is_expected(offset(&server)).then_some(()));
    while start.elapsed() < Duration::from_millis(2800) {
        assert_eq!(server.counters("A"), (0, 2, 0), "{step}: nothing is freed early");
        server.post("/v1/holds", &cart("o-thief", "A", 1)).refused(409, "sold_out");
        std::thread::sleep(Duration::from_millis(50));
    }
    eventually("the brief hold lapses", Duration::from_secs(5), || (server.counters("A") == (1, 1, 0)).then_some(()));
    assert_eq!(server.get(&brief).is(200)["status"], "expired");
    assert_eq!(server.get(&long).is(200)["status"], "held");
    let first = millis(&server.get(&brief).is(200)["created_at"]);
    let second = server.post("/v1/holds", &cart("o-next", "A", 1)).is(201);
    let passed = millis(&second["created_at"]) - first;
    assert!((3_900..20_000).contains(&passed), "{step}: {passed} ms by the engine's clock");
    let log = server.stop().1;
    assert!(log.contains("wall clock and the engine's clock are apart") && log.contains("\"WARN\""), "{log}");
}

#[test]
fn a_step_forward_frees_no_hold_early() {
    survives("+3600", |offset| (3_590_000..3_610_000).contains(&offset));
}

#[test]
fn a_step_back_keeps_no_hold_longer() {
    survives("-3600", |offset| (-3_610_000..-3_590_000).contains(&offset));
}

#[test]
fn a_restart_never_goes_back_behind_what_was_recorded() {
    let folder = Arc::new(tempdir().unwrap());
    let Some(library) = library(&folder) else { return };
    set_clock(&folder, "+7200");
    let server = start(&library, &folder);
    server.stock("A", 5);
    let before = server.post("/v1/holds", &cart("o-1", "A", 1)).is(201);
    server.stop();
    set_clock(&folder, "+0");
    let server = start(&library, &folder);
    let after = server.post("/v1/holds", &cart("o-2", "A", 1)).is(201);
    assert!(millis(&after["created_at"]) >= millis(&before["created_at"]));
    assert!(after["id"].as_str() > before["id"].as_str(), "ids grow");
    assert_eq!(server.counters("A"), (3, 2, 0));
}
