//! What a waiting room of a million costs, in time and in memory: `cargo bench -p holdfast_admission --bench room`.

#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

use criterion::{Criterion, criterion_group, criterion_main};
use holdfast_admission::room::{Joining, OrderRule, Room, RoomRules, StockSignal, TicketId};
use holdfast_domain::Time;
use std::hint::black_box;
use std::time::{Duration, Instant};

const MILLION: u64 = 1_000_000;
const START: i64 = 1_800_000_000_000;
const STOCK: StockSignal = StockSignal { known: true, available: 1_000_000_000, held: 0 };
/// Whoever was seen then is present for all of a benchmark.
const FAR: i64 = 1_000_000_000;

fn at(ms: i64) -> Time {
    Time::from_millis(START + ms)
}

/// Evenly spread, as random bytes are.
fn ticket(n: u64, joined_at: Time) -> Joining {
    let mixed = (u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    let mixed = (mixed ^ mixed >> 61).wrapping_mul(0x2545_F491_4F6C_DD1D_9E37_79B9_7F4A_7C15).to_be_bytes();
    let mut draw = [0; 32];
    draw[..16].copy_from_slice(&mixed);
    Joining { id: TicketId(draw), joined_at, sequence: n as u32, identity: Some(n), draw }
}

/// A million who joined before the start and so lie in the order of the draw.
fn crowd(seen: i64) -> Room {
    let rules = RoomRules {
        max_active: 100_000,
        admit_per_second: 50,
        turn_seconds: 60,
        session_seconds: 600,
        prequeue_seconds: 900,
        order: OrderRule::Draw,
        starts_at: Some(at(0)),
        ends_at: None,
    };
    let mut room = Room::new(rules, 7);
    for n in 0..MILLION {
        room.join(&ticket(n, at(-1000)), at(seen));
        if n % 1000 == 0 {
            drop(room.take_records());
        }
    }
    drop(room.take_records());
    room
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// What a criterion cannot tell: memory, the slowest steps while a million leave, and the journal.
fn report() {
    let before = resident();
    let mut room = crowd(-1000);
    println!("memory: {} bytes a ticket, with identity", (resident() - before) / MILLION);

    let (mut took, mut now) = (Vec::new(), 0);
    while room.counts(at(now)).remembered > 20_000 && now < 1_500_000 {
        now += 200;
        let begun = Instant::now();
        room.step(STOCK, 1.0, at(now));
        took.push((begun.elapsed(), now));
        drop(room.take_records());
    }
    let average = took.iter().map(|(took, _)| *took).sum::<Duration>() / took.len() as u32;
    took.sort();
    let (most, slowest) = (took[took.len() * 99 / 100], took[took.len() - 1]);
    println!("steps while a million go away: {average:?} on average, 99 of 100 within {most:?}, slowest {slowest:?}");

    let mut room = crowd(-1000);
    let begun = Instant::now();
    let bytes = room.snapshot();
    println!("snapshot: {} MB in {:?}", bytes.len() / 1_000_000, begun.elapsed());
    let mut again = Room::new(room.rules(), 8);
    let begun = Instant::now();
    assert_eq!(again.replay(&bytes).valid_len, bytes.len());
    println!("replay: {:?}", begun.elapsed());
}

fn room(c: &mut Criterion) {
    report();
    let mut group = c.benchmark_group("room_of_a_million");
    group.sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));

    let mut room = crowd(FAR);
    room.step(STOCK, 1.0, at(0));
    let mut n = MILLION;
    group.bench_function("join", |b| {
        b.iter(|| {
            n += 1;
            room.join(&ticket(n, at(1)), at(FAR))
        });
    });
    drop(room.take_records());
    group.bench_function("see", |b| {
        b.iter(|| {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            room.see(black_box(ticket(n % MILLION, at(0)).id), at(1)).unwrap()
        });
    });

    let mut room = crowd(FAR);
    let mut now = 0;
    group.bench_function("step_all_present", |b| {
        b.iter(|| {
            now += 200;
            room.step(STOCK, 1.0, at(now));
            drop(room.take_records());
        });
    });

    group.bench_function("step_all_absent", |b| {
        b.iter_custom(|steps| {
            let (mut took, mut left) = (Duration::ZERO, steps);
            while left > 0 {
                let mut room = crowd(-1000);
                let mut now = 0;
                while now < 45_000 {
                    room.step(STOCK, 0.0, at(now));
                    now += 5000;
                }
                // A few steps more and too many have gone for it to be a million.
                for _ in 0..left.min(20) {
                    now += 200;
                    let begun = Instant::now();
                    room.step(STOCK, 1.0, at(now));
                    took += begun.elapsed();
                }
                left = left.saturating_sub(20);
            }
            took
        });
    });
    group.finish();
}

criterion_group!(benches, room);
criterion_main!(benches);
