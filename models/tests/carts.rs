//! Holds over several partitions: every order of events, and what planted mistakes do.

use holdfast_models::carts::{Carts, Plant};
use holdfast_models::explore::{TRAP, explore};

const LIMIT: usize = 2_000_000;

/// One attempt for one order.
const ALONE: Carts = Carts { plant: Plant::Nothing, attempts: 1, apart: false, stock: 1, losses: 1 };
/// Two attempts for one order.
const TWICE: Carts = Carts { attempts: 2, ..ALONE };
/// Two attempts for two orders.
const RIVALS: Carts = Carts { apart: true, ..TWICE };

fn holds(model: &Carts) {
    let found = explore(model, LIMIT);
    println!("{} attempts: {} states, {} steps, {} deep", model.attempts, found.states, found.steps, found.depth);
    assert!(found.flaw.is_none(), "{:#?}", found.flaw);
}

fn fails(plant: Plant, model: &Carts, rule: &str) {
    let flaw = explore(&Carts { plant, ..*model }, LIMIT).flaw;
    assert_eq!(flaw.as_ref().map(|f| f.rule), Some(rule), "{plant:?}: {flaw:#?}");
}

#[test]
fn one_attempt_survives_any_two_failovers() {
    holds(&Carts { losses: 2, ..ALONE });
}

#[test]
fn two_attempts_for_one_order_survive_any_failover() {
    holds(&TWICE);
    holds(&Carts { stock: 2, ..TWICE });
}

#[test]
fn two_orders_that_want_the_same_units_survive_any_failover() {
    holds(&RIVALS);
}

#[test]
fn two_attempts_and_a_rival_meet_in_every_order() {
    holds(&Carts { attempts: 3, losses: 0, ..ALONE });
}

#[test]
fn a_fix_takes_nothing_again_unless_parts_leave_marks() {
    let rule = "what was released or sold does not come back";
    fails(Plant::TakesAgain, &Carts { losses: 0, ..ALONE }, rule);
    fails(Plant::TakesAgainSold, &Carts { losses: 0, stock: 2, ..ALONE }, rule);
    fails(Plant::TakesAgainLapsed, &ALONE, "a lapsed part is not taken again");
    for model in [&ALONE, &TWICE, &RIVALS] {
        holds(&Carts { plant: Plant::TakesAgainMarked, ..*model });
    }
}

#[test]
fn only_home_says_what_became_of_a_hold() {
    let kept = "an answered hold has all its parts, in the ledger, until they lapse";
    fails(Plant::UnsureDrops, &ALONE, kept);
    fails(Plant::ReplayEarly, &TWICE, kept);
    fails(Plant::DropUnasked, &ALONE, kept);
    fails(Plant::AnswerUnasked, &Carts { losses: 0, ..TWICE }, "no hold is answered after it ended");
    fails(Plant::GoneEndsComplete, &TWICE, "an answered hold is not taken back");
    fails(Plant::AbortUnasked, &ALONE, "an answered hold is the one hold of its order until it ends");
    fails(Plant::IdsUncompared, &Carts { stock: 2, ..TWICE }, "the ledger tells of sealed holds only");
    fails(Plant::HomeUnfrozen, &Carts { losses: 0, ..TWICE }, "an order that was bought takes no other hold");
    fails(Plant::FixUnsealed, &ALONE, "the ledger tells of sealed holds only");
}

#[test]
fn dropping_what_is_tentative_takes_back_no_answer() {
    for model in [&ALONE, &TWICE, &RIVALS] {
        holds(&Carts { plant: Plant::DropTentative, ..*model });
    }
}

#[test]
fn tentative_parts_have_to_be_looked_for() {
    fails(Plant::PartsForgotten, &ALONE, TRAP);
}

#[test]
fn an_audit_of_home_needs_the_facts_of_every_partition() {
    fails(Plant::HomeUndrained, &ALONE, "an answered hold is the one hold of its order until it ends");
}

/// Partitions have clocks of their own, and SQL reads their facts in no order, so that for a while it may know of two.
#[test]
fn sql_may_know_of_two_live_holds_of_one_order() {
    fails(Plant::OneHoldAnOrder, &Carts { stock: 2, losses: 0, ..TWICE }, "SQL never has two holds of one order");
}
