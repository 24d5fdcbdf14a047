//! What a room writes down is enough to be the same room again.

use super::kit::{Hall, at, id, rules, ticket};
use super::ops::{Trial, ops, places, states, trial_rules};
use holdfast_admission::room::{Class, Join, Joining, ReplayEnd, Room, RoomRules, TicketState};
use proptest::prelude::*;

fn replayed(bytes: &[u8]) -> (Room, holdfast_admission::room::Replay) {
    let mut room = Room::new(trial_rules(), 3);
    let replay = room.replay(bytes);
    assert!(room.take_records().is_empty(), "what was read is not written again");
    (room, replay)
}

fn expect_same(room: &Room, trial: &Trial) {
    let now = trial.at();
    assert_eq!(states(room, now), states(&trial.room, now));
    let (ours, theirs) = (room.counts(now), trial.room.counts(now));
    assert_eq!(
        (ours.holding, ours.turns_total, ours.joined_total),
        (theirs.holding, theirs.turns_total, theirs.joined_total)
    );
    assert_eq!(
        (ours.done_total, ours.expired_total, ours.left_total),
        (theirs.done_total, theirs.expired_total, theirs.left_total)
    );
    if theirs.aside == 0 {
        assert_eq!(places(room, now), places(&trial.room, now));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_replay_of_any_prefix_is_the_room_of_that_moment(ops in ops(3000), cut in 0.0f64..1.0) {
        let mut trial = Trial::new();
        let mut cuts = vec![(0, 0)];
        for (done, op) in ops.iter().enumerate() {
            trial.run(op);
            let (room, replay) = replayed(&trial.journal);
            assert_eq!((replay.valid_len, replay.end, replay.skipped), (trial.journal.len(), ReplayEnd::Whole, 0));
            expect_same(&room, &trial);
            cuts.push((trial.journal.len(), done + 1));
        }
        // Cut anywhere: what is whole counts, and it is the room as it was when that much had been written.
        let at_byte = (trial.journal.len() as f64 * cut) as usize;
        let (part, replay) = replayed(&trial.journal[..at_byte]);
        let torn = if replay.valid_len == at_byte { ReplayEnd::Whole } else { ReplayEnd::Torn };
        assert_eq!((replay.end, replay.skipped), (torn, 0));
        let (whole, again) = replayed(&trial.journal[..replay.valid_len]);
        assert_eq!((again.end, again.applied), (ReplayEnd::Whole, replay.applied));
        assert_eq!(states(&part, at(0)), states(&whole, at(0)));
        if let Some((_, done)) = cuts.iter().find(|(len, _)| *len == replay.valid_len) {
            let mut then = Trial::new();
            ops[..*done].iter().for_each(|op| then.run(op));
            expect_same(&part, &then);
        }
        let mut rest = part;
        assert_eq!(rest.replay(&trial.journal[replay.valid_len..]).end, ReplayEnd::Whole);
        expect_same(&rest, &trial);
    }

    #[test]
    fn damage_is_told_and_what_was_before_it_counts(ops in ops(3000), place in 0.0f64..1.0, bit in 0u8..8) {
        let mut trial = Trial::new();
        ops.iter().for_each(|op| trial.run(op));
        prop_assume!(!trial.journal.is_empty());
        let mut bad = trial.journal.clone();
        let at_byte = (bad.len() as f64 * place) as usize;
        bad[at_byte] ^= 1 << bit;
        let (room, replay) = replayed(&bad);
        assert!(replay.valid_len <= at_byte && replay.end != ReplayEnd::Whole);
        if at_byte + 120 < bad.len() {
            assert_eq!(replay.end, ReplayEnd::Damaged);
        }
        assert_eq!(states(&room, at(0)), states(&replayed(&trial.journal[..replay.valid_len]).0, at(0)));
    }

    #[test]
    fn a_snapshot_and_what_came_after_it_is_the_same_room(before in ops(3000), after in ops(3000)) {
        let mut trial = Trial::new();
        before.iter().for_each(|op| trial.run(op));
        trial.journal = trial.room.snapshot();
        expect_same(&replayed(&trial.journal).0, &trial);
        after.iter().for_each(|op| trial.run(op));
        let (room, replay) = replayed(&trial.journal);
        assert_eq!((replay.end, replay.skipped), (ReplayEnd::Whole, 0));
        expect_same(&room, &trial);
    }
}

#[test]
fn a_file_that_grew_before_its_bytes_arrived_is_torn() {
    let mut hall = Hall::new(rules(), 0);
    hall.join_all(0..10, Class::Late);
    let whole = hall.room.take_records();
    for cut in [whole.len(), whole.len() - 1, whole.len() - 30, whole.len() - 72] {
        let mut bytes = whole[..cut].to_vec();
        bytes.extend([0; 4096]);
        let (_, replay) = replayed(&bytes);
        assert_eq!((replay.end, replay.valid_len % 72), (ReplayEnd::Torn, 0));
        assert_eq!(replay.applied, if cut == whole.len() { 10 } else { 9 });
    }
}

#[test]
fn mixed_up_logs_are_told_and_harm_nothing() {
    let mut hall = Hall::new(rules(), 0);
    hall.join_all(0..3, Class::Late);
    let joined = hall.room.take_records();
    hall.pass(1000);
    let turned = hall.room.take_records();
    let (mut room, first) = replayed(&turned);
    assert_eq!((first.applied, first.skipped, first.end), (0, 3, ReplayEnd::Whole));
    assert_eq!(room.replay(&joined).applied, 3);
    assert_eq!(room.replay(&joined).skipped, 3);
    assert_eq!(room.peek(id(0), hall.at()).unwrap().state, TicketState::Waiting);
}

#[test]
fn a_snapshot_knows_an_identity_by_its_live_ticket() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 0, ..rules() }, 0);
    hall.join(0);
    hall.room.leave(id(0), hall.at());
    hall.join_as(1, 5);
    hall.present = vec![1];
    hall.pass(610_000);
    // The first slot is free again, so that the newer ticket lies before the older one.
    hall.room.leave(id(1), hall.at());
    hall.join_as(2, 5);
    let (mut room, replay) = replayed(&hall.room.snapshot());
    assert_eq!((replay.end, replay.skipped), (ReplayEnd::Whole, 0));
    let state = |n| room.peek(id(n), hall.at()).map(|view| view.state);
    assert_eq!([0, 1, 2].map(state), [None, Some(TicketState::Left), Some(TicketState::Waiting)]);
    let again = Joining { identity: Some(5), ..ticket(3, hall.at()) };
    assert_eq!(room.join(&again, hall.at()), Join::Same(id(2)));
}
