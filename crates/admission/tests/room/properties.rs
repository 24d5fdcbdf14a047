//! What holds whatever is done to a room.

use super::kit::{at, id};
use super::ops::{Op, TICKETS, Trial, ops, states, trial_rules};
use holdfast_admission::room::{Room, RoomState, TicketState};
use proptest::prelude::*;

/// Everybody is in one state, and the numbers agree with what each one is told.
fn expect_counted(trial: &Trial) {
    let counts = trial.room.counts(trial.at());
    let all = states(&trial.room, trial.at());
    let many = |state| all.iter().flatten().filter(|told| told.0 == state).count() as u64;
    assert_eq!(
        many(TicketState::Waiting) + many(TicketState::Prequeue),
        counts.waiting + counts.prequeue + counts.aside
    );
    assert_eq!((many(TicketState::Turn), many(TicketState::Admitted)), (counts.turn, counts.admitted));
    assert!(counts.holding <= counts.admitted);
    let live = counts.waiting + counts.prequeue + counts.aside + counts.turn + counts.admitted;
    assert_eq!(counts.joined_total, live + counts.done_total + counts.expired_total + counts.left_total);
    let ended = many(TicketState::Done) + many(TicketState::Expired) + many(TicketState::Left);
    assert_eq!(counts.remembered, live + ended);
}

/// Places go up by one with everybody present, in the order of the keys.
fn expect_ordered(trial: &Trial) {
    let counts = trial.room.counts(trial.at());
    if counts.prequeue > 0 || trial.now < 0 {
        return;
    }
    let mut place = 1;
    let mut ups = 0;
    for n in trial.waiting() {
        let position = trial.room.peek(id(n), trial.at()).and_then(|view| view.position).unwrap();
        assert!(position == place || position == place + 1, "{n} is at {position} after {place}");
        ups += u64::from(position > place);
        place = position;
    }
    assert!(ups <= counts.waiting && ups + 1 >= counts.waiting, "{ups} ups for {} present", counts.waiting);
}

/// Over any stretch of time, no more turns than the pace allows and one second's worth.
fn expect_paced(trial: &Trial) {
    let rate = i64::from(trial_rules().admit_per_second);
    for (i, (from, before)) in trial.turns.iter().enumerate() {
        for (to, after) in &trial.turns[i..] {
            let most = rate * (to - from) + rate * 1000;
            assert!((after - before).cast_signed() * 1000 <= most, "{} turns in {} ms", after - before, to - from);
        }
    }
}

/// With everybody there, whoever can be called is called: nothing that went before has wedged the room.
fn expect_alive(trial: &mut Trial) {
    trial.now = trial.now.max(0);
    trial.run(&Op::Pause(false));
    trial.run(&Op::SeeAll);
    // Two thirds of a second for each one who may be called.
    trial.run(&Op::Pass(3500));
    let counts = trial.room.counts(trial.at());
    let unserved = counts.turn + counts.admitted - counts.holding;
    let is_full = counts.turn + counts.admitted >= u64::from(trial.room.rules().max_active);
    let is_short = trial.room.state(trial.at()) != RoomState::Open || trial.stock.available <= unserved;
    assert!(is_full || is_short || counts.waiting == 0, "{counts:?} {:?}", trial.stock);
}

/// A new room from the journal calls in the same order.
fn expect_restarted(trial: &Trial) {
    let mut again = Room::new(trial.room.rules(), 99);
    let replay = again.replay(&trial.journal);
    assert_eq!((replay.valid_len, replay.skipped), (trial.journal.len(), 0));
    again.set_paused(true);
    let later = at(trial.now + 3_000_000);
    again.step(trial.stock, 1.0, later);
    let waiting = trial.waiting();
    let places = waiting.iter().map(|n| again.peek(id(*n), later).and_then(|view| view.position));
    assert!(places.eq((1..=waiting.len() as u64).map(Some)), "everybody is there again, in order");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_room_keeps_its_promises(ops in ops(30_000)) {
        let mut trial = Trial::new();
        for op in &ops {
            let before = trial.room.counts(trial.at());
            trial.run(op);
            let counts = trial.room.counts(trial.at());
            let most = u64::from(trial.room.rules().max_active).max(before.turn + before.admitted);
            assert!(counts.turn + counts.admitted <= most, "{op:?}: {counts:?}");
            expect_counted(&trial);
            expect_ordered(&trial);
        }
        expect_paced(&trial);
        expect_restarted(&trial);
        expect_alive(&mut trial);
        assert!(trial.made.len() <= TICKETS as usize);
    }
}
