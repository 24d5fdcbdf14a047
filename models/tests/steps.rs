//! Commands that SQL decides, and failovers of Redis: every order of events, and what planted mistakes do.

use holdfast_models::explore::{TRAP, explore};
use holdfast_models::steps::Command::{Confirm, Less, Nothing, Release};
use holdfast_models::steps::{Command, Orders, Plant, Steps};

const LIMIT: usize = 2_000_000;

/// One command, two shoppers, one unit, and no failover.
const CALM: Steps = Steps {
    plant: Plant::Nothing,
    commands: [Confirm(0), Nothing],
    orders: Orders::Apart,
    stock: 1,
    failovers: 0,
    claims: 0,
    split: false,
    tentative: false,
};
/// An audit that nothing called for, on the same server.
const AUDITED: Steps = Steps { claims: 1, ..CALM };
/// A failover, and the audits it calls for.
const FAILED_OVER: Steps = Steps { failovers: 1, ..CALM };

const OFFERED: &str = "Redis neither offers nor keeps for another what SQL has sold";
const BELOW: &str = "no counter in Redis is negative";
const FOLLOWS: &str = "each fact follows from the ones before";

fn holds(model: &Steps) {
    let found = explore(model, LIMIT);
    println!("{:?}: {} states, {} steps, {} deep", model.commands, found.states, found.steps, found.depth);
    assert!(found.flaw.is_none(), "{:?}: {:#?}", model.commands, found.flaw);
}

fn fails(plant: Plant, model: &Steps, rule: &str) {
    let flaw = explore(&Steps { plant, ..*model }, LIMIT).flaw;
    assert_eq!(flaw.as_ref().map(|f| f.rule), Some(rule), "{plant:?}: {flaw:#?}");
}

const PAIRS: [[Command; 2]; 6] = [
    [Confirm(0), Confirm(1)],
    [Confirm(0), Confirm(0)],
    [Confirm(0), Release(0)],
    [Release(0), Confirm(1)],
    [Release(0), Less],
    [Confirm(0), Less],
];

#[test]
fn two_commands_meet_in_every_order() {
    for commands in PAIRS {
        for tentative in [false, true] {
            holds(&Steps { commands, tentative, ..CALM });
        }
    }
    holds(&Steps { commands: [Confirm(0), Less], stock: 2, tentative: true, ..CALM });
}

#[test]
fn two_commands_meet_a_failover() {
    holds(&Steps { commands: [Confirm(0), Confirm(1)], tentative: true, ..FAILED_OVER });
    holds(&Steps { commands: [Confirm(0), Less], ..FAILED_OVER });
}

#[test]
fn two_commands_meet_an_audit() {
    for commands in PAIRS {
        holds(&Steps { commands, ..AUDITED });
    }
    holds(&Steps { tentative: true, ..AUDITED });
    holds(&Steps { claims: 2, ..AUDITED });
}

#[test]
fn failovers_meet_audits_that_meet_audits() {
    holds(&Steps { claims: 1, ..FAILED_OVER });
    holds(&Steps { failovers: 2, ..FAILED_OVER });
}

#[test]
fn an_old_server_lives_on_for_nodes_that_are_connected_to_it() {
    holds(&Steps { split: true, ..FAILED_OVER });
    fails(Plant::DeleteUnchecked, &Steps { split: true, ..FAILED_OVER }, OFFERED);
    fails(Plant::DrainUnchecked, &Steps { split: true, ..FAILED_OVER }, OFFERED);
}

#[test]
fn a_late_confirmation_meets_the_newer_hold_of_its_order() {
    let one = Steps { commands: [Confirm(0), Confirm(1)], orders: Orders::One, ..CALM };
    holds(&one);
    holds(&Steps { failovers: 1, ..one });
    let other = Steps { orders: Orders::OneOtherSku, ..CALM };
    holds(&other);
    holds(&Steps { failovers: 1, ..other });
    fails(Plant::NewerUnmarked, &one, OFFERED);
    fails(Plant::OrderUnfrozen, &other, FOLLOWS);
}

#[test]
fn a_token_is_what_makes_effects_happen_once() {
    fails(Plant::ApplyUnchecked, &CALM, BELOW);
    fails(Plant::NoTombstone, &CALM, OFFERED);
    fails(Plant::Repeats, &CALM, OFFERED);
    holds(&Steps { plant: Plant::RepeatsKept, ..CALM });
    holds(&Steps { plant: Plant::RepeatsKept, ..FAILED_OVER });
}

#[test]
fn no_script_is_carried_out_twice() {
    fails(Plant::FreezesTwice, &CALM, BELOW);
    fails(Plant::HoldsTwice, &CALM, FOLLOWS);
}

#[test]
fn what_is_decided_on_does_not_move() {
    fails(Plant::MarkedExpires, &CALM, OFFERED);
    fails(Plant::NothingFrozen, &CALM, OFFERED);
    fails(Plant::DecideUndrained, &CALM, OFFERED);
    fails(Plant::GivingFreezesHold, &Steps { commands: [Release(0), Confirm(1)], ..CALM }, BELOW);
}

#[test]
fn units_in_tentative_parts_are_not_free() {
    fails(Plant::TentativeUntold, &Steps { tentative: true, ..CALM }, OFFERED);
    fails(Plant::TentativeSurvives, &Steps { tentative: true, ..AUDITED }, OFFERED);
}

#[test]
fn an_epoch_fences_whoever_works_under_an_older_one() {
    fails(Plant::RaiseLate, &AUDITED, OFFERED);
    fails(Plant::EpochUnlocked, &AUDITED, OFFERED);
    fails(Plant::EpochNewest, &AUDITED, OFFERED);
    fails(Plant::ApplyAnyEpoch, &AUDITED, BELOW);
    fails(Plant::DrainUnchecked, &FAILED_OVER, OFFERED);
    fails(Plant::RaiseBackwards, &Steps { claims: 2, ..CALM }, TRAP);
    fails(Plant::ServeUnchecked, &Steps { claims: 2, ..CALM }, OFFERED);
}

#[test]
fn another_server_is_noticed() {
    fails(Plant::IdentityUnchecked, &FAILED_OVER, OFFERED);
    fails(Plant::IdentityReturns, &FAILED_OVER, OFFERED);
    fails(Plant::IdentityAtEnd, &Steps { claims: 1, ..FAILED_OVER }, BELOW);
}

#[test]
fn an_audit_leaves_no_token_in_redis() {
    fails(Plant::TokensSurvive, &AUDITED, BELOW);
    fails(Plant::RowsSurviveUnchecked, &CALM, BELOW);
}

/// Rows without tokens do nothing, and a tombstone is needed only while transactions of its epoch can commit.
#[test]
fn rows_may_stay_and_tombstones_may_go_when_an_epoch_ends() {
    for plant in [Plant::RowsSurvive, Plant::TombstonesEnd] {
        for commands in [[Confirm(0), Confirm(1)], [Confirm(0), Less]] {
            holds(&Steps { plant, commands, ..AUDITED });
        }
        holds(&Steps { plant, ..FAILED_OVER });
    }
}
