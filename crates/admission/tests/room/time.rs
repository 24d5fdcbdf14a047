//! How long it takes, when to ask again, and clocks that step back.

use super::kit::{Hall, PLENTY, at, id, rules};
use holdfast_admission::room::{Claim, Class, RoomRules, StockSignal, TicketState};
use holdfast_domain::Time;

#[test]
fn the_forecast_is_measured_and_holds() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 50, ..rules() }, 0);
    hall.pace = 0.2;
    hall.join_all(0..3000, Class::Late);
    assert!(!hall.peek(2999).eta.known, "nothing has moved");
    hall.pass(30_000);
    let eta = hall.peek(1500).eta;
    let ahead = hall.peek(1500).ahead as f64;
    assert!(eta.known && eta.p90_s >= eta.p50_s);
    let by_rate = ahead / 10.0;
    assert!((eta.p50_s as f64 - by_rate).abs() < by_rate * 0.1, "{eta:?}, and really {by_rate}");
    let took = hall.until_turn(1500) as u64 / 1000;
    assert!(took.abs_diff(eta.p50_s) <= eta.p50_s / 10 && took <= eta.p90_s, "{eta:?}, and it took {took}");
}

#[test]
fn the_forecast_rises_when_the_room_slows_down() {
    let mut hall = Hall::new(rules(), 0);
    hall.join_all(0..3000, Class::Late);
    hall.pass(60_000);
    let before = hall.peek(2000).eta;
    hall.pace = 0.25;
    hall.pass(10_000);
    let soon = hall.peek(2000).eta;
    assert!(soon.p90_s > before.p90_s * 2, "the careful guess follows within seconds: {before:?} {soon:?}");
    hall.pass(60_000);
    let after = hall.peek(2000).eta;
    assert!(after.p50_s > before.p50_s * 5 / 2, "{before:?} {after:?}");
}

#[test]
fn those_ahead_who_go_away_shorten_the_wait() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 1, ..rules() }, 0);
    hall.join_all(0..2000, Class::Late);
    hall.pass(30_000);
    for n in 0..300 {
        hall.room.leave(id(400 + n * 5), hall.at());
        hall.pass(800);
    }
    let view = hall.peek(1999);
    assert!(view.eta.p50_s < view.ahead * 9 / 10 && view.eta.p50_s >= view.ahead / 2, "at one a second: {view:?}");
    assert!(view.eta.p90_s > view.ahead, "the careful guess does not count on it: {view:?}");
}

#[test]
fn finding_out_who_never_came_is_no_speed() {
    let mut hall = Hall::new(rules(), 0);
    hall.join_all(0..3000, Class::Late);
    hall.present.retain(|n| n % 2 == 0);
    hall.pass(50_000);
    let view = hall.peek(2998);
    assert!(view.ahead < 1400, "half of them have stepped aside: {view:?}");
    assert!(view.eta.p50_s * 10 > view.ahead * 3 / 4, "at ten a second: {view:?}");
}

#[test]
fn a_room_where_all_get_a_turn_at_once_does_not_count_as_slow() {
    let mut hall = Hall::new(rules(), 0);
    for n in 0..30 {
        hall.join(n);
        hall.pass(1000);
    }
    hall.join_all(30..530, Class::Late);
    hall.pass(20_000);
    let eta = hall.peek(529).eta;
    assert!((20..60).contains(&eta.p50_s), "{eta:?} for about 300 at 10 a second");
}

#[test]
fn polls_are_spread_and_paced_by_the_forecast() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 100, ..rules() }, 0);
    hall.join_all(0..6000, Class::Late);
    hall.pass(10_000);
    let views: Vec<_> = (5500..6000).map(|n| hall.peek(n)).collect();
    for view in &views {
        let (eta, ms) = (view.eta.p50_s, view.poll_after_ms);
        assert!((eta * 80..=eta * 120).contains(&ms), "{ms} is about a tenth of {eta} s");
    }
    let polls: Vec<u64> = views.iter().map(|view| view.poll_after_ms).collect();
    let (least, most) = (polls.iter().min().unwrap(), polls.iter().max().unwrap());
    assert!(*most > least + least / 4, "not all at once: {least} to {most}");
    assert!((1600..=2400).contains(&hall.peek(0).poll_after_ms), "in turn");
    hall.room.set_rules(RoomRules { admit_per_second: 1, ..rules() });
    hall.pass(300_000);
    assert!((24_000..=36_000).contains(&hall.peek(5999).poll_after_ms));
    hall.room.set_rules(RoomRules { turn_seconds: 10, ..rules() });
    assert!(hall.peek(5999).poll_after_ms <= 6000, "a short turn must not be missed between two polls");
}

#[test]
fn everybody_learns_of_the_start_within_half_a_minute_and_not_at_once() {
    let mut hall = Hall::new(rules(), -300_000);
    hall.join_all(0..500, Class::Drawn);
    let mut learned = Vec::new();
    for n in 0..500 {
        let (mut now, mut polls) = (-300_000 + i64::from(n) * 400, 0);
        while now < 0 {
            let wait = hall.room.peek(id(n), at(now)).unwrap().poll_after_ms;
            assert!((1000..=36_000).contains(&wait), "{wait} at {now}");
            now += wait.cast_signed();
            polls += 1;
        }
        assert!(polls <= 20, "{polls} polls");
        learned.push(now);
    }
    assert!(learned.iter().all(|ms| *ms < 30_000));
    let most = (0..28).map(|s| learned.iter().filter(|ms| **ms / 1000 == s).count()).max().unwrap();
    assert!(most < 45, "{most} of 500 in one second");
}

#[test]
fn a_clock_that_steps_back_harms_nobody() {
    let mut hall = Hall::new(rules(), 0);
    hall.join_all(0..100, Class::Late);
    hall.pass(3000);
    let given = hall.in_turn(100).len();
    for back in [1, 2000, 3_600_000, START_OF_TIME] {
        hall.room.step(PLENTY, 1.0, at(hall.now - back));
        assert_eq!(hall.in_turn(100).len(), given, "nothing is given for time that has passed already");
        assert!(hall.room.see(id(99), at(hall.now - back)).is_some());
    }
    for odd in [i64::MIN, i64::MAX, 0, -1] {
        let odd = Time::from_millis(odd);
        let _ = (hall.room.see(id(98), odd), hall.room.peek(id(97), odd), hall.room.counts(odd), hall.room.state(odd));
        let _ = (hall.room.claim(id(96), odd), hall.room.likely_gone(id(95), PLENTY));
        hall.room.step(StockSignal { known: true, available: u64::MAX, held: u64::MAX }, 1.0, odd);
        hall.room.step(PLENTY, f64::INFINITY, odd);
    }
    hall.room.step(PLENTY, 1.0, hall.at());
    assert!(matches!(hall.claim(96), Claim::NotYet(_) | Claim::Admitted { .. } | Claim::Missed | Claim::Over));
    assert_ne!(hall.state(94), TicketState::Prequeue);
}

const START_OF_TIME: i64 = 1_800_000_000_000;
