//! Whose turn it is, and how many at once.

use super::kit::{Hall, PLENTY, at, id, rules};
use holdfast_admission::room::{Claim, Class, Join, RoomRules, RoomState, StockSignal, TicketState};

fn stock(available: u64, held: u64) -> StockSignal {
    StockSignal { known: true, available, held }
}

#[test]
fn turns_are_given_at_the_pace_and_never_stored_up() {
    let mut hall = Hall::new(rules(), -60_000);
    hall.join_all(0..200, Class::Drawn);
    hall.pass(60_000);
    assert_eq!(hall.in_turn(200).len(), 10, "one second's worth after a minute of nothing");
    assert_eq!(hall.in_turn(200), (190..200).collect::<Vec<_>>(), "in the order of the draw");
    hall.pass(1000);
    assert_eq!(hall.in_turn(200).len(), 20);
    hall.pace = 0.5;
    hall.pass(4000);
    assert_eq!(hall.in_turn(200).len(), 40);
    hall.pace = f64::NAN;
    hall.pass(4000);
    assert_eq!(hall.in_turn(200).len(), 40, "no number is no pace");
}

#[test]
fn less_than_one_a_second_still_moves() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 1, starts_at: None, ..rules() }, 0);
    hall.pace = 0.25;
    hall.join_all(0..20, Class::Late);
    hall.pass(40_000);
    assert_eq!(hall.in_turn(20).len(), 10);
}

#[test]
fn no_more_are_in_than_there_are_places_and_a_place_comes_back_at_once() {
    let mut hall = Hall::new(RoomRules { max_active: 3, ..rules() }, 0);
    hall.join_all(0..10, Class::Late);
    hall.pass(5000);
    assert_eq!(hall.in_turn(10), [0, 1, 2]);
    assert!(matches!(hall.claim(0), Claim::Admitted { .. }));
    assert!(hall.room.finish(id(0), hall.at()));
    assert!(!hall.room.finish(id(0), hall.at()));
    assert_eq!((hall.state(0), hall.claim(0)), (TicketState::Done, Claim::Over));
    hall.pass(200);
    assert_eq!(hall.in_turn(10), [1, 2, 3]);
    assert!(hall.room.leave(id(1), hall.at()));
    hall.room.set_rules(RoomRules { max_active: 1, ..rules() });
    hall.pass(2000);
    assert_eq!(hall.in_turn(10), [2, 3], "who is in stays in");
}

#[test]
fn a_claim_gives_one_session_however_often_it_is_sent() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 1, ..rules() }, 0);
    hall.join_all(0..2, Class::Late);
    hall.until_turn(0);
    assert_eq!(hall.peek(0).claim_by, Some(at(hall.now + 60_000)));
    let first = hall.claim(0);
    assert_eq!(first, Claim::Admitted { session_until: at(hall.now + 600_000) });
    assert!(matches!(hall.claim(1), Claim::NotYet(view) if view.position == Some(1)));
    hall.pass(500);
    assert_eq!(hall.claim(0), first);
    assert_eq!(hall.room.claim(id(99), hall.at()), Claim::Unknown);
    assert_eq!(hall.peek(0).session_until, Some(at(hall.now - 500 + 600_000)));
}

#[test]
fn a_missed_turn_frees_the_place_and_may_join_again_behind() {
    let mut hall = Hall::new(RoomRules { max_active: 1, ..rules() }, 0);
    hall.join_as(0, 5);
    hall.join(1);
    hall.until_turn(0);
    hall.pass(59_800);
    assert_eq!(hall.state(0), TicketState::Turn);
    hall.now += 200;
    assert_eq!((hall.state(0), hall.claim(0)), (TicketState::Expired, Claim::Missed), "decided by comparing");
    hall.pass(200);
    assert_eq!(hall.state(1), TicketState::Turn);
    assert_eq!(hall.join_as(2, 5), Join::Joined(Class::Late));
}

#[test]
fn a_session_ends_by_itself_unless_it_has_a_hold() {
    let mut hall = Hall::new(rules(), 0);
    hall.join_all(0..3, Class::Late);
    hall.pass(1000);
    (0..3).for_each(|n| assert!(matches!(hall.claim(n), Claim::Admitted { .. })));
    assert!(hall.room.holds(id(1)) && hall.room.holds(id(2)) && hall.room.unholds(id(2)));
    hall.pass(600_000);
    assert_eq!([0, 1, 2].map(|n| hall.state(n)), [TicketState::Done, TicketState::Admitted, TicketState::Done]);
    assert_eq!((hall.room.counts(hall.at()).holding, hall.room.holds(id(0))), (1, false));
    hall.pass(7_200_000);
    assert_eq!(hall.state(1), TicketState::Done, "nobody has told of the hold's end");
    assert_eq!((hall.room.counts(hall.at()).holding, hall.room.counts(hall.at()).admitted), (0, 0));
}

#[test]
fn whoever_is_absent_steps_aside_keeps_the_place_and_blocks_nobody() {
    let mut hall = Hall::new(RoomRules { max_active: 1, ..rules() }, 0);
    hall.join_all(0..4, Class::Late);
    hall.present = vec![3];
    assert!(matches!(hall.claim(0), Claim::NotYet(_)));
    hall.until_turn(0);
    hall.claim(0);
    hall.pass(50_000);
    let counts = hall.room.counts(hall.at());
    assert_eq!((counts.aside, counts.waiting, hall.peek(3).position), (2, 1, Some(1)), "aside, wherever they were");
    assert_eq!((hall.state(1), hall.peek(2).position), (TicketState::Waiting, Some(1)), "the place it would have");
    assert_eq!(hall.see(2).position, Some(1), "a poll brings it back to its own place");
    assert_eq!(hall.peek(3).position, Some(2));
    hall.room.finish(id(0), hall.at());
    hall.pass(200);
    assert_eq!(hall.in_turn(4), [2], "1 is absent and in nobody's way");
    hall.pass(251_000);
    assert_eq!((hall.state(1), hall.claim(1)), (TicketState::Expired, Claim::Missed));
}

#[test]
fn a_thousand_absent_at_the_head_are_passed_in_one_step() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 0, ..rules() }, 0);
    hall.join_all(0..3000, Class::Late);
    hall.present = (2900..3000).collect();
    // Just before the search for absentees would find them.
    hall.pass(44_800);
    hall.poll();
    hall.room.set_rules(rules());
    hall.now += 400;
    hall.room.step(PLENTY, 1.0, hall.at());
    assert_eq!(hall.in_turn(3000), [2900, 2901, 2902, 2903]);
}

#[test]
fn nobody_has_to_be_there_before_the_start_and_everybody_counts_as_seen_then() {
    let mut hall = Hall::new(rules(), -900_000);
    hall.join_all(0..600, Class::Drawn);
    hall.present.clear();
    hall.pass(900_000 + 44_000);
    let counts = hall.room.counts(hall.at());
    assert_eq!((counts.aside, counts.expired_total, counts.turn), (0, 0, 450));
    hall.pass(2000);
    assert_eq!((hall.room.counts(hall.at()).turn, hall.room.counts(hall.at()).aside), (460, 140));
}

#[test]
fn turns_are_bounded_by_the_units_that_are_left() {
    let mut hall = Hall::new(rules(), 0);
    hall.stock = stock(3, 0);
    hall.join_all(0..10, Class::Late);
    hall.pass(2000);
    assert_eq!(hall.in_turn(10), [0, 1, 2]);
    assert!(!hall.room.likely_gone(id(0), hall.stock) && hall.room.likely_gone(id(3), hall.stock));
    hall.claim(0);
    hall.stock = stock(2, 1);
    hall.pass(1000);
    assert_eq!(hall.in_turn(10), [1, 2], "one unit is on its way to be held");
    assert!(hall.room.holds(id(0)));
    hall.stock = stock(4, 1);
    assert!(!hall.room.likely_gone(id(4), hall.stock) && hall.room.likely_gone(id(5), hall.stock));
    hall.pass(1000);
    assert_eq!(hall.in_turn(10), [1, 2, 3, 4]);
}

#[test]
fn reserved_and_sold_out_keep_the_order_and_a_restock_opens_again() {
    let mut hall = Hall::new(rules(), 0);
    hall.stock = StockSignal::default();
    hall.join_all(0..30, Class::Late);
    hall.pass(1000);
    assert_eq!((hall.room.state(hall.at()), hall.in_turn(30).len()), (RoomState::Open, 0), "nothing is known");
    hall.stock = stock(1, 0);
    hall.pass(200);
    hall.stock = stock(0, 1);
    hall.pass(2000);
    assert_eq!((hall.room.state(hall.at()), hall.in_turn(30)), (RoomState::Held, vec![0]));
    assert!(!hall.peek(1).eta.known);
    hall.stock = stock(0, 0);
    hall.pass(200);
    assert_eq!(
        (hall.peek(1).room, hall.state(0), hall.state(1)),
        (RoomState::SoldOut, TicketState::Turn, TicketState::Waiting)
    );
    hall.stock = stock(3, 0);
    hall.pass(400);
    assert_eq!((hall.peek(1).room, hall.in_turn(30)), (RoomState::Open, vec![0, 1, 2]));
}

#[test]
fn a_pause_and_the_end_give_no_turns() {
    let mut hall = Hall::new(RoomRules { ends_at: Some(at(10_000)), ..rules() }, 0);
    hall.join_all(0..30, Class::Late);
    hall.room.set_paused(true);
    hall.pass(2000);
    assert_eq!((hall.room.state(hall.at()), hall.in_turn(30).len()), (RoomState::Paused, 0));
    hall.room.set_paused(false);
    hall.pass(200);
    assert_eq!(hall.in_turn(30).len(), 10);
    hall.room.set_paused(true);
    hall.pass(7800);
    hall.room.set_paused(false);
    hall.pass(1000);
    assert_eq!((hall.room.state(hall.at()), hall.in_turn(30).len()), (RoomState::Closed, 10));
    assert!(matches!(hall.claim(0), Claim::Admitted { .. }), "a turn that was given is kept");
}

#[test]
fn while_the_room_is_away_nobody_loses_anything() {
    let mut hall = Hall::new(RoomRules { max_active: 1, ..rules() }, 0);
    hall.join_all(0..3, Class::Late);
    hall.until_turn(0);
    hall.now += 3_600_000;
    assert_eq!((hall.state(0), hall.state(1)), (TicketState::Turn, TicketState::Waiting));
    hall.room.step(PLENTY, 1.0, hall.at());
    assert_eq!(hall.peek(0).claim_by, Some(at(hall.now + 60_000)));
    assert_eq!((hall.peek(1).position, hall.room.counts(hall.at()).expired_total), (Some(1), 0));
}
