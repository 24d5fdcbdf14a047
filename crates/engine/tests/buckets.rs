//! Token buckets that nodes share, on real servers: exact over several nodes, exact in the last digit, and never what a
//! request waits for.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{skipped, until};
use common::dice::Dice;
use holdfast_engine::buckets::{Ask, Decision, Gone, SharedBuckets};
use holdfast_engine::clock::monotonic;
use holdfast_services::{Redis, RedisCluster};
use std::time::Duration;
use tokio::task::JoinSet;

const LIMIT: Duration = Duration::from_millis(50);
/// Where it is not the limit that is tested, on a machine that has other things to do.
const PATIENT: Duration = Duration::from_secs(10);
const TOKEN: u64 = 1_000_000;

/// `None`: Redis is not on this machine, and the test is skipped.
fn server() -> Option<Redis> {
    if !Redis::is_here() {
        skipped(&format!("{} is not on this machine", Redis::PACKAGE));
        return None;
    }
    Some(Redis::start_with(&["appendonly no"]).unwrap())
}

fn bucket(key: &str, capacity: u64, micro_per_second: u64) -> Ask<'_> {
    Ask { key, capacity_micro: capacity * TOKEN, micro_per_second }
}

async fn is_admitted(buckets: &SharedBuckets, asked: &[Ask<'_>]) -> bool {
    buckets.ask("drop", asked, PATIENT).await.unwrap() == Decision::Admitted
}

/// How many of 2,000 that come at once, by two nodes, are admitted.
async fn rush(url: &str, sale: &'static str) -> usize {
    let nodes = [SharedBuckets::open(url).unwrap(), SharedBuckets::open(url).unwrap()];
    let mut asks = JoinSet::new();
    for n in 0..2_000 {
        let node = nodes[n % 2].clone();
        asks.spawn(async move {
            let client = format!("c:{n}");
            let asked = [bucket("g", 700, 1), bucket("s:A", 500, 1), bucket(&client, 1, 1)];
            node.ask(sale, &asked, PATIENT).await.unwrap() == Decision::Admitted
        });
    }
    asks.join_all().await.into_iter().filter(|is_admitted| *is_admitted).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_the_capacity_of_2_000_is_admitted_by_two_nodes() {
    let Some(redis) = server() else { return };
    let started = monotonic();
    assert_eq!(rush(&redis.url(), "drop").await, 500);
    println!("2,000 asks in {:?}", started.elapsed());
    let node = SharedBuckets::open(&redis.url()).unwrap();
    let (sale, sku) = (bucket("g", 700, 1), bucket("s:A", 500, 1));
    let Decision::Refused { retry_after_us, waits_us } = node.ask("drop", &[sale, sku], PATIENT).await.unwrap() else {
        panic!("the SKU has none left")
    };
    assert!(retry_after_us > 999_000 * TOKEN && waits_us == [0, retry_after_us], "{waits_us:?}");
    // Those that were refused took nothing from the sale, and left no clients.
    let mut left = 0;
    while is_admitted(&node, &[sale]).await {
        left += 1;
    }
    assert_eq!(left, 200);
    let keys = redis.command(&["KEYS", "hf:ac:*"]).unwrap();
    assert_eq!(keys.lines().count(), 502);
    for key in keys.lines() {
        assert!(redis.command(&["PTTL", key]).unwrap().parse::<i64>().unwrap() > 1_000, "{key} stays");
    }
    assert_eq!(node.ask("drop", &[sale, bucket("x", 1, 0)], LIMIT).await, Ok(Decision::Paused));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_the_capacity_is_admitted_on_a_cluster() {
    if server().is_none() {
        return;
    }
    let cluster = RedisCluster::start_with(&["appendonly no"]).unwrap();
    for sale in ["drop-1", "drop-2", "drop-3"] {
        assert_eq!(rush(&cluster.url(), sale).await, 500);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn over_five_seconds_as_many_come_in_as_the_rate_says() {
    let Some(redis) = server() else { return };
    let mut nodes = JoinSet::new();
    for _ in 0..2 {
        let node = SharedBuckets::open(&redis.url()).unwrap();
        nodes.spawn(async move {
            // A burst that two seconds of a busy machine do not fill.
            let asked = [bucket("g", 200, 97_300_000)];
            let (from, mut first, mut last, mut admitted) = (monotonic(), None, monotonic(), 0_u32);
            while from.elapsed() < Duration::from_secs(5) {
                last = monotonic();
                admitted += u32::from(is_admitted(&node, &asked).await);
                first.get_or_insert_with(monotonic);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            (from, first.unwrap(), last, monotonic(), admitted)
        });
    }
    let all = nodes.join_all().await;
    let admitted = f64::from(all.iter().map(|one| one.4).sum::<u32>());
    let (from, to) = (all.iter().map(|one| one.0).min().unwrap(), all.iter().map(|one| one.3).max().unwrap());
    let (first, last) = (all.iter().map(|one| one.1).min().unwrap(), all.iter().map(|one| one.2).max().unwrap());
    let most = 200.0 + 97.3 * (to - from).as_secs_f64();
    let least = 200.0 + 97.3 * (last - first).as_secs_f64() - 1.0;
    println!("{admitted} of {least:.2} to {most:.2}");
    assert!(admitted <= most && admitted >= least - 1.0, "{admitted} of {least:.2} to {most:.2}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_comes_back_when_told_is_admitted() {
    let Some(redis) = server() else { return };
    let node = SharedBuckets::open(&redis.url()).unwrap();
    let asked = [bucket("g", 2, 7_000_000)];
    for _ in 0..20 {
        if let Decision::Refused { retry_after_us, .. } = node.ask("drop", &asked, PATIENT).await.unwrap() {
            assert!(retry_after_us <= 142_858);
            tokio::time::sleep(Duration::from_micros(retry_after_us)).await;
            assert!(is_admitted(&node, &asked).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_stands_still_delays_nobody() {
    let Some(mut redis) = server() else { return };
    let node = SharedBuckets::open(&redis.url()).unwrap();
    let asked = [bucket("g", 1_000, TOKEN)];
    assert!(is_admitted(&node, &asked).await);
    redis.freeze();
    let mut waits = Vec::new();
    for _ in 0..200 {
        let asked_at = monotonic();
        assert_eq!(node.ask("drop", &asked, LIMIT).await, Err(Gone));
        waits.push(asked_at.elapsed());
    }
    let slow = waits.iter().filter(|wait| **wait > LIMIT / 2).count();
    waits[..3].sort();
    println!("{:?}, then {:?} at the most", &waits[..3], waits[3..].iter().max());
    assert!(waits[1] < Duration::from_millis(60), "{waits:?}");
    assert_eq!(slow, 3, "after three, nobody asks: {waits:?}");
    redis.thaw();
    until("it is asked again", async || node.ask("drop", &asked, LIMIT).await.is_ok()).await;
    redis.kill();
    assert_eq!(node.ask("drop", &asked, LIMIT).await, Err(Gone));
    redis.restart().unwrap();
    until("it is asked again", async || node.ask("drop", &asked, LIMIT).await.is_ok()).await;
}

#[tokio::test]
async fn a_server_that_has_forgotten_the_script_is_told_it_again() {
    let Some(redis) = server() else { return };
    let node = SharedBuckets::open(&redis.url()).unwrap();
    for _ in 0..5 {
        assert!(is_admitted(&node, &[bucket("g", 5, 1)]).await);
        redis.command(&["SCRIPT", "FLUSH"]).unwrap();
    }
    assert!(!is_admitted(&node, &[bucket("g", 5, 1)]).await);
}

#[tokio::test]
async fn a_node_starts_without_a_server() {
    let Err(error) = SharedBuckets::open("http://u:secret@h") else { panic!("it is no Redis") };
    assert!(!error.to_string().contains("secret"));
    let node = SharedBuckets::open("redis://u:secret@127.0.0.1:1").unwrap();
    assert_eq!(node.ask("drop", &[bucket("g", 1, 1)], LIMIT).await, Err(Gone));
    assert!(!format!("{node:?}").contains("secret"));
}

/// The same in whole picotokens, which need no rests.
#[derive(Debug, Clone, Copy)]
struct Model {
    lack: u128,
    at: u128,
    rate: u128,
}

impl Model {
    /// How it is at a moment under these limits, and whether that is kept though nothing is taken.
    fn seen(kept: Option<Self>, (capacity, rate): (u64, u64), now: u128) -> (Self, bool) {
        let rate = u128::from(rate);
        let Some(kept) = kept else { return (Self { lack: 0, at: now, rate }, false) };
        let at = if kept.at > now + 5_000_000 { now } else { kept.at.max(now) };
        let lack = kept.lack.saturating_sub(kept.rate * now.saturating_sub(kept.at));
        let most = u128::from(capacity) * 1_000_000;
        (Self { lack: lack.min(most), at, rate }, at < kept.at || rate != kept.rate || lack > most)
    }

    fn wait(self, capacity: u64, now: u128) -> u128 {
        let over = self.lack.saturating_sub(u128::from(capacity - TOKEN) * 1_000_000);
        if over == 0 { 0 } else { over.div_ceil(self.rate) + self.at - now }
    }
}

/// The clock after another while: just before somebody may come in, just when, at random, far ahead, and back.
fn later(dice: &mut Dice, now: u128, longest: u128) -> u128 {
    let later = match dice.below(9) {
        0 | 1 => now + longest.saturating_sub(1),
        2 | 3 => now + longest,
        4 | 5 => now + u128::from(dice.below(3_000)),
        6 => now + u128::from(dice.below(100_000_000)),
        7 => now - u128::from(dice.below(6_000_000)),
        _ => now,
    };
    // Who waits for years would leave the range in which a clock is exact.
    later.min(2_500_000_000_000_000)
}

#[test]
fn the_script_reckons_to_the_last_digit() {
    let Some(redis) = server() else { return };
    let script = include_str!("../src/buckets/take.lua");
    // The clock is handed in, to be set; keys would expire by another one.
    let script = script.replace("redis.call('TIME')", "{ARGV[#ARGV - 1], ARGV[#ARGV]}");
    let sha = redis.command(&["SCRIPT", "LOAD", &script.replace(", 'PX', string.format('%.0f', ms))", ")")]).unwrap();
    let mut admitted = 0;
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let mut now = 1_790_000_000_000_000 + u128::from(dice.below(1_000_000));
        let keys = ["a", "b"].map(|name| format!("{name}{seed}"));
        let (mut kept, mut limits) = ([None; 2], [(0, 0); 2]);
        for step in 0..60 {
            for limit in &mut limits {
                if step == 0 || dice.below(12) == 0 {
                    let (digits, more) = (dice.below(8) as u32, dice.below(16) as u32);
                    *limit = (TOKEN * (1 + dice.below(10_u64.pow(digits))), 1 + dice.below(10_u64.pow(more)));
                }
            }
            let seen = |now| [0, 1].map(|n| Model::seen(kept[n], limits[n], now));
            let waits = |now| [0, 1].map(|n| seen(now)[n].0.wait(limits[n].0, now));
            now = later(&mut dice, now, waits(now)[0].max(waits(now)[1]));
            let numbers = [limits[0].0, limits[0].1, limits[1].0, limits[1].1];
            let clock = [(now / 1_000_000) as u64, (now % 1_000_000) as u64];
            let numbers: Vec<_> = numbers.iter().chain(&clock).map(ToString::to_string).collect();
            let mut words = vec!["EVALSHA", &sha, "2", &keys[0], &keys[1]];
            words.extend(numbers.iter().map(String::as_str));
            let told: Vec<u128> = redis.command(&words).unwrap().lines().map(|line| line.parse().unwrap()).collect();
            assert_eq!(told, waits(now), "seed {seed}, step {step}, {limits:?}, {kept:?}, {now}");
            let is_admitted = told == [0, 0];
            admitted += usize::from(is_admitted);
            for (n, (mut model, is_other)) in seen(now).into_iter().enumerate() {
                if is_admitted {
                    model.lack += 1_000_000_000_000;
                }
                if is_admitted || is_other {
                    kept[n] = Some(model);
                }
            }
        }
    }
    println!("{admitted} of 6,000 were admitted");
    assert!((1_000..5_000).contains(&admitted), "{admitted}");
}
