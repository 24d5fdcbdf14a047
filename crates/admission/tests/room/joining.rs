//! Who gets which place.

use super::kit::{Hall, at, id, rules, ticket};
use holdfast_admission::room::{Class, Join, Joining, OrderRule, Restored, RoomRules, TicketId, TicketState};
use holdfast_domain::Time;

#[test]
fn the_doors_open_before_the_start_and_close_at_the_end() {
    let mut hall = Hall::new(RoomRules { ends_at: Some(at(5000)), ..rules() }, -901_000);
    assert_eq!(hall.join(1), Join::TooEarly { opens_at: at(-900_000) });
    hall.now = -900_000;
    assert_eq!(hall.join(1), Join::Joined(Class::Drawn));
    hall.now = 0;
    assert_eq!(hall.join(2), Join::Joined(Class::Late));
    hall.now = 5000;
    assert_eq!(hall.join(3), Join::Ended);
}

#[test]
fn the_early_ones_are_drawn_and_the_others_come_behind_them_in_order() {
    let mut hall = Hall::new(rules(), -60_000);
    hall.join_all(0..5, Class::Drawn);
    assert_eq!((hall.state(3), hall.peek(3).position, hall.peek(3).waiting_total), (TicketState::Prequeue, None, 5));
    hall.now = 0;
    hall.join_all(5..8, Class::Late);
    let places: Vec<_> = (0..8).map(|n| hall.peek(n).position.unwrap()).collect();
    assert_eq!(places, [5, 4, 3, 2, 1, 6, 7, 8]);
    assert_eq!((hall.peek(5).ahead, hall.peek(5).waiting_total), (5, 8));
}

#[test]
fn under_fifo_the_first_to_come_is_the_first() {
    let mut hall = Hall::new(RoomRules { order: OrderRule::Fifo, ..rules() }, -60_000);
    hall.join_all(0..4, Class::Early);
    hall.now = 0;
    hall.join_all(4..6, Class::Late);
    let places: Vec<_> = (0..6).map(|n| hall.peek(n).position.unwrap()).collect();
    assert_eq!(places, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn within_a_millisecond_the_sequence_decides() {
    let mut hall = Hall::new(RoomRules { starts_at: None, ..rules() }, 0);
    [(1, 9), (2, 3), (3, 5)].into_iter().for_each(|(n, sequence)| {
        let joined = hall.room.join(&Joining { sequence, ..ticket(n, at(0)) }, at(0));
        assert_eq!(joined, Join::Joined(Class::Late));
    });
    assert_eq!([1, 2, 3].map(|n| hall.peek(n).position), [Some(3), Some(1), Some(2)]);
}

#[test]
fn a_moved_start_takes_nobodys_place() {
    let mut hall = Hall::new(rules(), -60_000);
    hall.join_all(0..2, Class::Drawn);
    hall.now = 100;
    hall.join_all(2..4, Class::Late);
    hall.room.set_rules(RoomRules { starts_at: Some(at(60_000)), ..rules() });
    assert_eq!(hall.state(3), TicketState::Prequeue);
    hall.join_all(4..6, Class::Drawn);
    hall.now = 60_000;
    let places: Vec<_> = (0..6).map(|n| hall.peek(n).position.unwrap()).collect();
    assert_eq!(places, [4, 3, 5, 6, 2, 1], "who joined late before stays behind those drawn, in order");
}

#[test]
fn a_thousand_tabs_hold_one_place() {
    let mut hall = Hall::new(rules(), 0);
    assert_eq!(hall.join_as(0, 77), Join::Joined(Class::Late));
    (1..1000).for_each(|n| assert_eq!(hall.join_as(n, 77), Join::Same(id(0))));
    assert_eq!(hall.join_as(0, 77), Join::Same(id(0)), "a join that is sent twice");
    assert_eq!(hall.join_as(1000, 78), Join::Joined(Class::Late));
    assert_eq!((hall.peek(0).waiting_total, hall.room.counts(hall.at()).joined_total), (2, 2));
}

#[test]
fn an_identity_whose_ticket_has_ended_may_join_at_the_back() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 0, ..rules() }, 0);
    hall.join_as(0, 1);
    hall.join_as(1, 2);
    assert!(hall.room.leave(id(0), hall.at()));
    assert!(!hall.room.leave(id(0), hall.at()));
    assert_eq!(hall.join_as(2, 1), Join::Joined(Class::Late));
    assert_eq!((hall.peek(2).position, hall.state(0)), (Some(2), TicketState::Left));
    assert_eq!(hall.join_as(3, 1), Join::Same(id(2)), "the ended one does not hide the new one");
}

#[test]
fn signed_tickets_rebuild_a_lost_queue() {
    let mut hall = Hall::new(rules(), 10_000);
    hall.room.lose(Time::from_millis(0), at(5000));
    let (early, late) = (ticket(1, at(-500)), ticket(2, at(4000)));
    hall.join_all(9..10, Class::Late);
    assert_eq!(hall.room.restore(&late, Class::Late, hall.at()), Restored::Placed);
    assert_eq!(hall.room.restore(&early, Class::Drawn, hall.at()), Restored::Placed);
    assert_eq!(hall.room.restore(&early, Class::Drawn, hall.at()), Restored::Known);
    assert_eq!([1, 2, 9].map(|n| hall.peek(n).position), [Some(1), Some(2), Some(3)]);
    let since = ticket(3, at(5001));
    assert_eq!(hall.room.restore(&since, Class::Late, hall.at()), Restored::Refused, "nothing was lost since then");
}

#[test]
fn of_two_tickets_of_one_identity_the_one_ahead_goes_on() {
    let mut hall = Hall::new(rules(), 10_000);
    hall.room.lose(Time::from_millis(0), at(10_000));
    hall.join_as(5, 42);
    let first = Joining { identity: Some(42), ..ticket(1, at(1000)) };
    let later = Joining { identity: Some(42), ..ticket(2, at(2000)) };
    assert_eq!(hall.room.restore(&first, Class::Late, hall.at()), Restored::Placed);
    assert_eq!(hall.state(5), TicketState::Left);
    assert_eq!(hall.room.restore(&later, Class::Late, hall.at()), Restored::Other(id(1)));
    hall.until_turn(1);
    let drawn = Joining { identity: Some(42), ..ticket(3, at(-1)) };
    assert_eq!(hall.room.restore(&drawn, Class::Drawn, hall.at()), Restored::Other(id(1)), "nobody has two turns");
}

#[test]
fn an_ended_ticket_is_told_about_and_then_forgotten_but_has_no_second_life() {
    let mut hall = Hall::new(RoomRules { admit_per_second: 0, ..rules() }, 0);
    hall.room.lose(Time::from_millis(0), at(-1000));
    let back = ticket(1, at(-2000));
    assert_eq!(hall.room.restore(&back, Class::Drawn, hall.at()), Restored::Placed);
    hall.join(2);
    [1, 2].into_iter().for_each(|n| assert!(hall.room.leave(id(n), hall.at())));
    hall.pass(590_000);
    assert_eq!((hall.state(2), hall.room.counts(hall.at()).remembered), (TicketState::Left, 2));
    hall.pass(15_000);
    assert_eq!(hall.room.peek(id(2), hall.at()), None);
    assert_eq!(hall.room.restore(&ticket(2, at(0)), Class::Late, hall.at()), Restored::Refused);
    assert_eq!(hall.room.restore(&back, Class::Drawn, hall.at()), Restored::Known, "kept, since it could come again");
    assert_eq!(hall.join(3), Join::Joined(Class::Late));
    assert_eq!(hall.room.counts(hall.at()).remembered, 2, "the slot is used again");
    assert_eq!(hall.room.peek(TicketId([0xFF; 32]), hall.at()), None);
}
