//! A child that serves until it is killed: a test starts itself again, kills the child at a random moment, and keeps
//! the answers that it had printed.

use super::dice::Dice;
use super::shoppers::{Got, KINDS, Shopper};
use holdfast_engine::Lanes;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::sync::mpsc;

const SEED: &str = "HOLDFAST_TEST_SEED";
const SHOPPERS: u64 = 32;

/// Starts this test as a child with `variable` set, kills it some time after it has given up to so many answers, and
/// gives those that it had printed in full.
pub fn kill_one(test: &str, variable: &str, value: &str, answers: u64, dice: &mut Dice) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(variable, value)
        .env(SEED, dice.next().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut printed = Vec::new();
    // Most children die while they serve, some while they start.
    if dice.once_in(10) {
        std::thread::sleep(Duration::from_micros(dice.below(20_000)));
    } else {
        let mut until_lines = |done: &dyn Fn(&str, usize) -> bool| {
            for n in 0.. {
                let from = printed.len();
                assert_ne!(output.read_until(b'\n', &mut printed).unwrap(), 0, "the child ended before it served");
                if done(std::str::from_utf8(&printed[from..]).unwrap(), n) {
                    return;
                }
            }
        };
        until_lines(&|line, _| line.starts_with("ready"));
        let answers = dice.below(answers + 1) as usize;
        if answers > 0 {
            until_lines(&|_, n| n >= answers);
        }
        std::thread::sleep(Duration::from_micros(2_000 + dice.below(40_000)));
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "the child was killed by a signal: {status}");
    output.read_to_end(&mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
    let is_answer = |line: &&str| KINDS.iter().any(|kind| line.starts_with(kind));
    whole.lines().filter(is_answer).map(str::to_owned).collect()
}

/// What the child does: many shoppers, and each answer printed once it is there.
pub fn serve_until_killed(open: impl AsyncFnOnce() -> Lanes) {
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let lanes = open().await;
        println!("\nready");
        let (got, mut listened) = mpsc::unbounded_channel();
        for number in 0..SHOPPERS {
            tokio::spawn(Shopper { lanes: lanes.clone(), seed, number, got: got.clone() }.shop());
        }
        while let Some(Got::Answer(line)) = listened.recv().await {
            let mut out = std::io::stdout().lock();
            out.write_all(format!("{line}\n").as_bytes()).unwrap();
            out.flush().unwrap();
        }
    });
    unreachable!("nothing fails and shoppers never stop");
}
