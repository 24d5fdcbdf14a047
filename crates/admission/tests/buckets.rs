//! Token buckets: exact over time, all or nothing, honest about when to come back, and bounded in memory.

#![allow(missing_docs, clippy::unwrap_used)]

use holdfast_admission::bucket::{Count, Decision, Limiter, Limits, Rate, Violated};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000;

fn sale(rate: Option<Rate>) -> Limits {
    Limits { sale: rate, ..Limits::default() }
}

/// How many of so many asks at one moment are admitted.
fn burst(limiter: &mut Limiter, asks: usize, now: u64) -> usize {
    (0..asks).filter(|_| limiter.ask(&["A"], 1, now) == Decision::Admitted).count()
}

fn wait(decision: Decision) -> u64 {
    match decision {
        Decision::Refused { retry_after_us, .. } => retry_after_us,
        other => panic!("{other:?}"),
    }
}

#[test]
fn exactly_the_capacity_of_2_000_is_admitted() {
    for capacity in [1, 100, 1_999, 2_000] {
        let mut limiter = Limiter::new(sale(Rate::new(1, capacity)), 5);
        assert_eq!(burst(&mut limiter, 2_000, 5), capacity as usize);
        let count = limiter.counters().sale;
        assert_eq!((count.allowed, count.denied), (u64::from(capacity), 2_000 - u64::from(capacity)));
    }
}

#[test]
fn a_pause_admits_nobody_and_tells_no_time() {
    let running = Limits { sale: Rate::per_second(10, 5), per_client: Rate::per_second(10, 5), ..Limits::default() };
    let mut limiter = Limiter::new(running, 0);
    let paused = Limits { sale: Rate::per_second(0, 5), shadow: true, ..running };
    limiter.set_limits(paused, 0);
    assert_eq!(limiter.ask(&[], 1, 0), Decision::Paused);
    assert_eq!(limiter.ask(&[], 1, 3_600 * SECOND), Decision::Paused);
    assert_eq!(limiter.counters().sale, Count { denied: 2, ..Count::default() });
    limiter.set_limits(running, 3_600 * SECOND);
    assert_eq!(burst(&mut limiter, 9, 3_600 * SECOND), 5);
}

#[test]
fn a_refused_request_consumes_nothing() {
    let limits = Limits {
        sale: Rate::per_second(1, 100),
        per_sku: Rate::per_second(1, 3),
        per_client: Rate::per_second(1, 10),
        shadow: false,
    };
    let mut limiter = Limiter::new(limits, 0);
    assert_eq!(burst(&mut limiter, 3, 0), 3);
    for _ in 0..1_000 {
        let Decision::Refused { violated, .. } = limiter.ask(&["B", "A"], 1, 0) else { panic!("A has none left") };
        assert_eq!(violated.names().collect::<Vec<_>>(), ["sku"]);
    }
    assert_eq!(limiter.client_quota(1), Some((7, 3 * SECOND)));
    // B and the sale are as full as before; the client has seven.
    assert_eq!((0..3).filter(|_| limiter.ask(&["B"], 1, 0) == Decision::Admitted).count(), 3);
    assert_eq!((0..9).filter(|_| limiter.ask(&[], 1, 0) == Decision::Admitted).count(), 4);
    assert_eq!((0..200).filter(|n| limiter.ask(&[], 9 + n, 0) == Decision::Admitted).count(), 90);
    let counters = limiter.counters();
    assert_eq!((counters.sale.allowed, counters.client.allowed, counters.sku.allowed), (100, 100, 6));
    assert_eq!((counters.sku.denied, counters.client.denied, counters.sale.denied), (1_000, 5, 110));
}

#[test]
fn a_sku_that_is_named_twice_counts_once() {
    let limits = Limits { per_sku: Rate::per_second(1, 2), ..Limits::default() };
    let mut limiter = Limiter::new(limits, 0);
    assert_eq!(limiter.ask(&["A", "B", "A"], 1, 0), Decision::Admitted);
    assert_eq!(limiter.ask(&["A", "A"], 1, 0), Decision::Admitted);
    assert_eq!(wait(limiter.ask(&["A"], 1, 0)), SECOND);
    assert_eq!(limiter.ask(&["B"], 1, 0), Decision::Admitted);
}

#[test]
fn the_longest_wait_of_those_violated_is_told() {
    let limits = Limits {
        sale: Rate::per_second(10, 1),
        per_sku: Rate::new(300_000, 1),
        per_client: Rate::per_second(1, 1),
        shadow: false,
    };
    let mut limiter = Limiter::new(limits, 0);
    assert_eq!(limiter.ask(&["A"], 1, 0), Decision::Admitted);
    let violated = Violated { sale: Some(100_000), sku: Some(3_333_334), client: Some(SECOND) };
    assert_eq!(limiter.ask(&["B", "A"], 1, 0), Decision::Refused { retry_after_us: 3_333_334, violated });
    assert_eq!(wait(limiter.ask(&["A"], 1, 3_333_333)), 1);
    assert_eq!(limiter.ask(&["A"], 1, 3_333_334), Decision::Admitted);
}

#[test]
fn a_clock_that_is_set_gives_nothing_away() {
    let start = 1_000 * SECOND;
    let mut limiter = Limiter::new(sale(Rate::per_second(1, 2)), start);
    assert_eq!(burst(&mut limiter, 9, start), 2);
    // Back and forth by little, as moments of racing callers are.
    for n in 0..10_000 {
        assert_ne!(limiter.ask(&[], 1, start - n % 2 * SECOND / 2), Decision::Admitted);
    }
    // Back by an hour: no time has passed, and then it passes as ever.
    let back = start - 900 * SECOND;
    assert_eq!(wait(limiter.ask(&[], 1, back)), SECOND);
    assert_eq!(burst(&mut limiter, 9, back + SECOND), 1);
    // Ahead by a year: full and no fuller.
    assert_eq!(burst(&mut limiter, 9, back + 31_536_000 * SECOND), 2);
    assert_eq!(burst(&mut limiter, 9, u64::MAX), 2);
    assert_eq!(wait(limiter.ask(&[], 1, 0)), SECOND);
}

#[test]
fn a_shadow_counts_and_admits() {
    let limits = Limits { per_client: Rate::per_second(1, 2), shadow: true, ..sale(Rate::per_second(1, 5)) };
    let mut limiter = Limiter::new(limits, 0);
    assert_eq!(burst(&mut limiter, 10, 0), 10);
    let counters = limiter.counters();
    assert_eq!(counters.client, Count { allowed: 2, denied: 0, shadow: 8 });
    assert_eq!(counters.sale, Count { allowed: 2, denied: 0, shadow: 0 });
}

#[test]
fn other_rates_keep_what_was_taken() {
    let limits = |sale, client| Limits {
        sale: Rate::per_second(1, sale),
        per_client: Rate::per_second(1, client),
        ..Limits::default()
    };
    let mut limiter = Limiter::new(limits(10, 10), 0);
    assert_eq!(burst(&mut limiter, 8, 0), 8);
    limiter.set_limits(limits(12, 13), 2 * SECOND);
    assert_eq!(limiter.client_quota(1), Some((7, 6 * SECOND)), "8 taken, 2 back, 13 in all");
    assert_eq!(burst(&mut limiter, 99, 2 * SECOND), 6);
    limiter.set_limits(limits(3, 3), 2 * SECOND);
    assert_eq!(wait(limiter.ask(&[], 1, 2 * SECOND)), SECOND, "empty, and not in debt");
    limiter.set_limits(Limits::default(), 2 * SECOND);
    assert_eq!(burst(&mut limiter, 99, 2 * SECOND), 99);
    limiter.set_limits(limits(3, 3), 2 * SECOND);
    assert_eq!(burst(&mut limiter, 99, 2 * SECOND), 3, "what had no limit starts full");
}

#[test]
fn three_million_clients_take_no_more_memory_than_the_cap() {
    let limits = Limits { per_client: Rate::new(1, 1), ..Limits::default() };
    let mut limiter = Limiter::new(limits, 0);
    let mut most = (0, 0);
    for client in 0..3_000_000_u64 {
        assert_eq!(limiter.ask(&[], client.wrapping_mul(0x9e37_79b9_7f4a_7c15), 1), Decision::Admitted);
        most = (most.0.max(limiter.client_keys()), most.1.max(limiter.client_bytes()));
    }
    println!("{} keys, {} bytes: {} a key", most.0, most.1, most.1 / most.0);
    assert!(most.0 <= Limiter::CLIENTS && most.1 / Limiter::CLIENTS < 64);
    assert_eq!(limiter.forgotten_clients(), 2_000_000);
    let last = 2_999_999_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    assert!(wait(limiter.ask(&[], last, 1)) > SECOND, "those seen last are known");
}

#[test]
fn full_buckets_are_forgotten_in_time() {
    let limits = Limits { per_client: Rate::per_second(1, 2), ..Limits::default() };
    let mut limiter = Limiter::with_clients(limits, 1_000, 0);
    for second in 0..600 {
        for n in 0..100 {
            assert_eq!(limiter.ask(&[], second * 100 + n, second * SECOND), Decision::Admitted);
        }
        assert!(limiter.client_keys() <= 500, "{}", limiter.client_keys());
    }
    assert_eq!(limiter.forgotten_clients(), 0);
}

/// A rate of up to 5,000 tokens per second, and a burst.
fn rates() -> impl Strategy<Value = Rate> {
    let micro = prop_oneof![1_000_u64..1_000_000, 1_000_000_u64..5_000_000_000];
    (micro, 2_u32..1_000).prop_map(|(micro, burst)| Rate::new(micro, burst).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn over_a_minute_as_many_come_in_as_the_rate_says(
        rate in rates(),
        start in 0..u64::MAX / 2,
        gaps in proptest::collection::vec(1_u64..1_000, 100),
    ) {
        let mut limiter = Limiter::new(sale(Some(rate)), start);
        let mut admitted = u64::from(rate.burst());
        assert_eq!(burst(&mut limiter, 1_001, start) as u64, admitted);
        // Whoever comes more often than tokens do takes each one.
        let often = (500_000_000_000 / rate.micro_per_second()).clamp(1, 20_000);
        let (mut now, mut gaps) = (0, gaps.iter().cycle());
        while now < 60 * SECOND {
            now += 1 + gaps.next().unwrap() * often / 1_000;
            admitted += u64::from(limiter.ask(&[], 1, start + now) == Decision::Admitted);
            let fair = u128::from(rate.burst()) * 1_000_000_000_000 + u128::from(rate.micro_per_second()) * u128::from(now);
            let told = u128::from(admitted) * 1_000_000_000_000;
            prop_assert!(told <= fair, "{admitted} after {now} us");
            prop_assert!(told + 1_000_000_000_000 > fair, "{admitted} after {now} us");
        }
    }

    #[test]
    fn whoever_comes_back_when_told_is_admitted(
        of_sale in rates(), of_sku in rates(), of_client in rates(),
        asks in proptest::collection::vec((0_u64..3, 0_usize..7, 0_u64..30_000), 1..400),
    ) {
        let limits = Limits { sale: Some(of_sale), per_sku: Some(of_sku), per_client: Some(of_client), shadow: false };
        let mut limiter = Limiter::new(limits, 0);
        let mut now = 0;
        for (client, cart, gap) in asks {
            let skus: Vec<&str> = ["A", "B", "C"].into_iter().enumerate().filter(|(n, _)| cart >> n & 1 == 1).map(|(_, sku)| sku).collect();
            now += gap;
            for _ in 0..9 {
                if let Decision::Refused { retry_after_us, .. } = limiter.ask(&skus, client, now) {
                    let too_early = limiter.ask(&skus, client, now + retry_after_us - 1);
                    prop_assert_eq!(wait(too_early), 1);
                    now += retry_after_us;
                    prop_assert_eq!(limiter.ask(&skus, client, now), Decision::Admitted);
                }
            }
        }
    }
}
