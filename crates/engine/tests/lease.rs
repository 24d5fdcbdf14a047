//! Leases on real servers: one holder at a time, fences that grow, and a holder who comes late and does no harm;
//! servers that are killed, frozen, and started again with nothing; futures that are dropped in the middle.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{skipped, until};
use common::dice::Dice;
use holdfast_engine::clock::monotonic;
use holdfast_engine::lease::{Guard, LeaseError, LeaseSettings, Leases, Lost};
use holdfast_services::Redis;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const LOCK: &str = "holdfast:lease:r";
const COUNTER: &str = "holdfast:fence:r";

/// Servers of our own, to be hurt.
struct Ring(Vec<Redis>);

impl Ring {
    /// `None`: Redis is not on this machine, and the test is skipped.
    fn start(nodes: usize, lines: &[&str]) -> Option<Self> {
        if !Redis::is_here() {
            skipped(&format!("{} is not on this machine", Redis::PACKAGE));
            return None;
        }
        Some(Self((0..nodes).map(|_| Redis::start_with(lines).unwrap()).collect()))
    }

    fn urls(&self) -> Vec<String> {
        self.0.iter().map(Redis::url).collect()
    }

    fn leases(&self) -> Leases {
        self.leases_with(LeaseSettings::default())
    }

    fn leases_with(&self, settings: LeaseSettings) -> Leases {
        Leases::new(&self.urls(), settings).unwrap()
    }

    /// What stands under this key on each server.
    fn get(&self, key: &str) -> Vec<String> {
        self.0.iter().map(|node| node.command(&["GET", key]).unwrap()).collect()
    }

    fn locks(&self) -> usize {
        let on = |node: &Redis| {
            node.command(&["KEYS", "holdfast:lease:*"]).unwrap().lines().filter(|line| !line.is_empty()).count()
        };
        self.0.iter().map(on).sum()
    }

    /// Long before anything expires by itself: leases last 9 s and longer where this is asked.
    async fn until_nothing_is_left(&self) {
        let given_back = until("every lock was given back", async || self.locks() == 0);
        tokio::time::timeout(ms(5_000), given_back).await.unwrap();
    }
}

async fn held(leases: &Leases, ttl: Duration) -> Guard {
    leases.acquire("r", ttl, ms(5_000)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_holds_at_a_time_and_fences_grow() {
    let Some(ring) = Ring::start(3, &[]) else { return };
    let (inside, last, rounds) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), 8);
    let mut tasks = JoinSet::new();
    for _ in 0..12 {
        // Each like a process of its own.
        let leases = ring.leases_with(LeaseSettings { pause: ms(10), ..LeaseSettings::default() });
        let (inside, last) = (inside.clone(), last.clone());
        tasks.spawn(async move {
            for _ in 0..rounds {
                let guard = leases.acquire("r", ms(10_000), ms(60_000)).await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                assert!(last.swap(guard.fence(), Ordering::SeqCst) < guard.fence(), "a fence that is not higher");
                tokio::time::sleep(ms(1)).await;
                assert!(!guard.is_lost());
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().await;
            }
        });
    }
    assert_eq!(tasks.join_all().await.len(), 12);
    ring.until_nothing_is_left().await;
}

#[tokio::test]
async fn several_resources_are_taken_together_or_not_at_all() {
    let Some(ring) = Ring::start(1, &[]) else { return };
    let leases = ring.leases();
    let one = leases.acquire("b", ms(20_000), ms(0)).await.unwrap();
    let both = leases.acquire_all(&["a", "b"], ms(20_000), ms(0)).await;
    assert_eq!(both.unwrap_err(), LeaseError::Busy);
    assert_eq!(ring.locks(), 1, "a was not taken");
    one.release().await;
    let both = leases.acquire_all(&["a", "b"], ms(20_000), ms(0)).await.unwrap();
    assert_eq!(leases.acquire("a", ms(20_000), ms(0)).await.unwrap_err(), LeaseError::Busy);
    let other = leases.acquire("c", ms(20_000), ms(0)).await.unwrap();
    drop((both, other));
    ring.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_minority_may_be_dead_or_silent_and_a_majority_may_not() {
    let Some(mut ring) = Ring::start(5, &[]) else { return };
    let leases = ring.leases();
    ring.0[0].kill();
    ring.0[1].freeze();
    let first = held(&leases, ms(10_000)).await;
    let fence = first.fence();
    first.release().await;
    ring.0[2].freeze();
    let started = monotonic();
    let refused = leases.acquire("r", ms(10_000), ms(400)).await.unwrap_err();
    let took = started.elapsed();
    assert_eq!(refused, LeaseError::NoMajority);
    assert!(took < ms(1_500), "refused in time, not after {took:?}");
    ring.0[1].thaw();
    ring.0[2].thaw();
    ring.0[0].restart().unwrap();
    assert!(held(&leases, ms(10_000)).await.fence() > fence);
    ring.until_nothing_is_left().await;
}

#[tokio::test]
async fn the_next_fence_is_higher_whichever_majority_draws_it() {
    let Some(ring) = Ring::start(3, &[]) else { return };
    let leases = ring.leases();
    // One server's clock was far ahead once.
    ring.0[2].command(&["SET", COUNTER, "8000000000000000"]).unwrap();
    ring.0[0].freeze();
    let first = held(&leases, ms(10_000)).await;
    assert!(first.fence() > 8_000_000_000_000_000);
    let fence = first.fence();
    first.release().await;
    ring.0[0].thaw();
    ring.0[2].freeze();
    assert!(held(&leases, ms(10_000)).await.fence() > fence);
    ring.0[2].thaw();
}

#[tokio::test]
async fn fences_grow_over_counters_that_were_lost() {
    let Some(ring) = Ring::start(3, &[]) else { return };
    let leases = ring.leases();
    let mut last = 0;
    for _ in 0..5 {
        let guard = held(&leases, ms(10_000)).await;
        assert!(guard.fence() > last);
        last = guard.fence();
        guard.release().await;
        ring.0.iter().for_each(|node| drop(node.command(&["FLUSHALL"]).unwrap()));
    }
}

#[tokio::test]
async fn a_loss_is_told_before_the_lease_expires() {
    let Some(ring) = Ring::start(3, &[]) else { return };
    let leases = ring.leases();
    let guard = held(&leases, ms(1_500)).await;
    // Renewed while a majority answers.
    tokio::time::sleep(ms(2_000)).await;
    assert!(!guard.is_lost());
    assert!(guard.run(async { 7 }).await == Ok(7));
    ring.0[0].freeze();
    ring.0[1].freeze();
    let told = guard.run(std::future::pending::<()>()).await;
    assert!(told == Err(Lost) && guard.is_lost());
    let left = guard.deadline().saturating_duration_since(monotonic());
    assert!(left > ms(20), "told {left:?} before it expires");
    assert_eq!(guard.run(async { 7 }).await, Err(Lost), "nothing begins under it any more");
    ring.0[0].thaw();
    ring.0[1].thaw();
}

#[tokio::test]
async fn a_renewal_never_makes_a_lock_that_is_gone() {
    let Some(ring) = Ring::start(3, &[]) else { return };
    let leases = ring.leases();
    let guard = held(&leases, ms(3_000)).await;
    ring.0[0].command(&["DEL", LOCK]).unwrap();
    ring.0[1].command(&["DEL", LOCK]).unwrap();
    tokio::time::timeout(ms(2_000), guard.lost()).await.expect("told by the next renewal, not by the clock");
    assert_eq!(ring.get(LOCK)[..2], ["", ""]);
    // And what is somebody else's by now stays so.
    ring.0[0].command(&["SET", LOCK, "another"]).unwrap();
    guard.release().await;
    assert_eq!(ring.get(LOCK), ["another", "", ""]);
}

#[tokio::test]
async fn a_lease_is_not_renewed_for_ever() {
    let Some(ring) = Ring::start(1, &[]) else { return };
    let leases = ring.leases_with(LeaseSettings { max_hold: Some(ms(700)), ..LeaseSettings::default() });
    let started = monotonic();
    held(&leases, ms(300)).await.lost().await;
    assert!((ms(500)..ms(3_000)).contains(&started.elapsed()));
}

/// Servers that forget everything when they end do not vote until what they had given has expired.
#[tokio::test]
async fn a_restart_without_memory_makes_no_second_holder() {
    let Some(mut ring) = Ring::start(3, &["appendonly no"]) else { return };
    let settings = || LeaseSettings { longest: ms(2_000), ..LeaseSettings::default() };
    let leases = ring.leases_with(settings());
    // They have just started: nobody knows what they gave before.
    assert_eq!(leases.acquire("r", ms(2_000), ms(300)).await.unwrap_err(), LeaseError::NoMajority);
    let first = held(&leases, ms(2_000)).await;
    ring.0[0].kill();
    ring.0[1].kill();
    ring.0[0].restart().unwrap();
    ring.0[1].restart().unwrap();
    let second = ring.leases_with(settings());
    let second = tokio::spawn(async move { second.acquire("r", ms(2_000), ms(8_000)).await.unwrap() });
    first.lost().await;
    assert!(!second.is_finished(), "two hold it");
    let second = second.await.unwrap();
    assert!(monotonic() > first.deadline() && second.fence() > first.fence());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_is_dropped_at_any_moment_leaves_nothing_behind() {
    let Some(ring) = Ring::start(3, &[]) else { return };
    let (leases, mut dice, mut got) = (ring.leases(), Dice::new(11), 0);
    held(&leases, ms(20_000)).await.release().await;
    for n in 0..300 {
        let patience = Duration::from_micros(dice.below(2_500));
        let resource = format!("r{}", n % 7);
        if tokio::time::timeout(patience, leases.acquire(&resource, ms(20_000), ms(20_000))).await.is_ok() {
            got += 1;
        }
    }
    assert!((1..300).contains(&got), "some were dropped, some came to an end: {got}");
    ring.until_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_under_way_at_the_release_leaves_nothing_behind() {
    let Some(ring) = Ring::start(3, &[]) else { return };
    let (leases, mut dice, mut tasks) = (ring.leases(), Dice::new(12), JoinSet::new());
    for n in 0..60 {
        // A renewal is due between 2,625 and 3,000 ms.
        let (leases, pause) = (leases.clone(), ms(2_620) + Duration::from_micros(dice.below(390_000)));
        tasks.spawn(async move {
            let guard = leases.acquire(&format!("r{n}"), ms(9_000), ms(1_000)).await.unwrap();
            tokio::time::sleep(pause).await;
            guard.release().await;
        });
    }
    tasks.join_all().await;
    ring.until_nothing_is_left().await;
    tokio::time::sleep(ms(200)).await;
    assert_eq!(ring.locks(), 0, "nothing came after the release");
}

/// Writes what carries a fence, as a store has to: not below one that it has seen.
fn write(store: &str, fence: u64) -> bool {
    let script = "if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
                  redis.call('SET', KEYS[1], ARGV[1]) return 1";
    Redis::command_at(store, &["EVAL", script, "1", "seen", &fence.to_string()]).unwrap() == "1"
}

const CHILD: &str = "HOLDFAST_TEST_HOLDER";

/// What the child does: takes the lease, and when it is told to, writes without asking whether it still has it.
fn hold_and_write(places: &str) {
    let (store, nodes) = places.split_once(' ').unwrap();
    let nodes: Vec<String> = nodes.split(' ').map(str::to_owned).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let leases = runtime.block_on(async { Leases::new(&nodes, LeaseSettings::default()).unwrap() });
    let guard = runtime.block_on(held(&leases, ms(600)));
    println!("\nheld {}", guard.fence());
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    let is_lost = guard.is_lost();
    println!("\nlost {is_lost} written {}", write(store, guard.fence()));
}

#[test]
fn a_holder_who_was_paused_past_the_end_writes_nothing() {
    if let Ok(places) = std::env::var(CHILD) {
        return hold_and_write(&places);
    }
    let Some(ring) = Ring::start(3, &[]) else { return };
    let store = Redis::start().unwrap();
    let test = "a_holder_who_was_paused_past_the_end_writes_nothing";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{} {}", store.url(), ring.urls().join(" ")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut line = |start: &str| told.find_map(|line| line.strip_prefix(start).map(str::to_owned)).unwrap();
    let stale: u64 = line("held ").parse().unwrap();
    assert!(write(&store.url(), stale), "while it holds, it may");
    let to_child = |signal: &str| {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    };
    to_child("-STOP");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let next = runtime.block_on(async { held(&ring.leases(), ms(5_000)).await });
    assert!(next.fence() > stale);
    assert!(write(&store.url(), next.fence()));
    to_child("-CONT");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(line("lost "), "true written false");
    assert!(child.wait().unwrap().success());
    assert!(!next.is_lost() && write(&store.url(), next.fence()));
    runtime.block_on(next.release());
}

#[tokio::test]
async fn what_cannot_work_is_refused_with_a_reason() {
    let new = |nodes: &[&str]| {
        let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        Leases::new(&nodes, LeaseSettings::default()).map(drop).unwrap_err().to_string()
    };
    assert!(new(&[]).contains("at least one"));
    assert!(new(&["redis://a:1", "redis://user:secret@a:1/2"]).contains("lock node 2 was named before"));
    let odd = new(&["redis://a:1", "http://user:secret@b:1"]);
    assert!(odd.contains("lock node 2") && !odd.contains("secret"), "{odd}");
    assert!(new(&["rediss://a:1"]).contains("lock node 1"));
    let leases = Leases::new(&["redis://127.0.0.1:1".to_owned()], LeaseSettings::default()).unwrap();
    for ttl in [ms(10), ms(60_000)] {
        let why = leases.acquire("r", ttl, ms(0)).await.unwrap_err();
        assert!(matches!(why, LeaseError::Invalid(_)), "{why}");
    }
    assert_eq!(leases.acquire("r", ms(1_000), ms(0)).await.unwrap_err(), LeaseError::NoMajority);
}
