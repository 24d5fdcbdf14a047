//! A full disk: batches are answered with an error, nothing that was answered is lost, and the engine goes on by
//! itself once there is space again.
//!
//! Two full disks: a tiny file system in memory, where the machine lets a test mount one, and a limit on the size of
//! files, for which the test starts itself again under that limit.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::make::{cart, set};
use holdfast_engine::clock::monotonic;
use holdfast_engine::domain::{Command, HoldId, HoldStatus, Outcome};
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Engine, EngineError, Now};
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Duration;

const LIMITED: &str = "HOLDFAST_TEST_LIMITED_IN";

/// Fills the disk under the engine, frees it again, and checks what is believed meanwhile.
async fn fill_and_free(folder: &Path, free: impl FnOnce()) {
    let engine = Embedded::open(folder).unwrap();
    engine.apply_now(vec![Command::SetStock(set("A", 1_000_000))], Now::Clock).unwrap();
    let mut acknowledged = Vec::new();
    let mut batch = 0;
    let error = loop {
        batch += 1;
        assert!(batch < 20_000, "the disk never filled up");
        match hold(&engine, batch) {
            Ok(ids) => acknowledged.extend(ids),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, EngineError::Unavailable(_) | EngineError::Unknown(_)), "{error:?}");
    assert!(engine.health().await.problem.is_some(), "the engine says that it cannot serve");
    for refused in batch + 1..batch + 4 {
        let again = hold(&engine, refused).unwrap_err();
        assert!(matches!(again, EngineError::Unavailable(_) | EngineError::Unknown(_)), "{again:?}");
    }
    free();
    let start = monotonic();
    let resumed = loop {
        match hold(&engine, batch) {
            Ok(ids) => break ids,
            // The engine looks at the disk a few times a second; there is no signal to wait for.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
        assert!(start.elapsed() < Duration::from_secs(10), "the engine never resumed");
    };
    assert_eq!(engine.health().await.problem, None);
    acknowledged.extend(resumed);
    check(&engine, &acknowledged).await;
    drop(engine);
    check(&Embedded::open(folder).unwrap(), &acknowledged).await;
    println!("{} acknowledged answers found after {batch} batches", acknowledged.len());
}

fn hold(engine: &Embedded, batch: u32) -> Result<Vec<HoldId>, EngineError> {
    let carts = (0..16).map(|n| cart(&format!("O{batch}-{n}"), &[("A", 1)]).into()).collect();
    let answers = engine.apply_now(carts, Now::Clock)?;
    let ids = answers.into_iter().map(|answer| match answer {
        Ok(Outcome::Held { hold, .. }) => hold.id,
        other => panic!("{other:?}"),
    });
    Ok(ids.collect())
}

async fn check(engine: &Embedded, acknowledged: &[HoldId]) {
    assert!(acknowledged.len() > 500, "only {} answers", acknowledged.len());
    for id in acknowledged {
        assert_eq!(engine.hold(*id).await.unwrap().unwrap().status, HoldStatus::Held, "{id}");
    }
    assert_eq!(engine.audit().await.unwrap().drift, []);
    let all = common::invariants::everything(engine).await;
    assert_eq!(all.holds.len(), acknowledged.len(), "a batch that was refused left nothing behind");
    assert_eq!(all.stocks[0].held, acknowledged.len() as u64);
}

/// A small file system of its own; unmounted on drop.
struct Mounted(PathBuf);

impl Mounted {
    fn new(at: &Path) -> Option<Self> {
        let done = Program::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(at).output().ok()?;
        done.status.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Program::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_file_system_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(folder.path()) else {
        // Not root: the same proof under a file size limit is all that can be had here.
        eprintln!("SKIPPED the tiny file system: this machine does not let a test mount one");
        return under_a_file_size_limit();
    };
    let ballast = mounted.0.join("ballast");
    std::fs::write(&ballast, vec![0; 3 << 20]).unwrap();
    fill_and_free(&mounted.0.join("data"), || std::fs::remove_file(&ballast).unwrap()).await;
}

#[test]
fn a_file_size_limit_loses_nothing() {
    if let Some(folder) = std::env::var_os(LIMITED) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(fill_and_free(Path::new(&folder), || {
            let me = std::process::id().to_string();
            let lifted = Program::new("prlimit").args(["--pid", &me, "--fsize=unlimited:"]).status();
            assert!(lifted.unwrap().success(), "the limit was lifted");
        }));
    }
    under_a_file_size_limit();
}

fn under_a_file_size_limit() {
    let folder = tempfile::tempdir().unwrap();
    // A write beyond the limit must answer with an error instead of a signal.
    let script = "trap '' XFSZ; ulimit -S -f 1500; exec \"$0\" \"$@\"";
    let output = Program::new("bash")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_file_size_limit_loses_nothing", "--nocapture"])
        .env(LIMITED, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("acknowledged answers found after"), "{said}");
}
