//! Commands about a hold with parts in several partitions: every order of events, and what planted mistakes do.

use holdfast_models::explore::explore;
use holdfast_models::spread::{Plant, Spread};

const LIMIT: usize = 1_000_000;

#[test]
fn two_confirmations_a_lapse_and_an_audit_of_each_partition_meet_in_every_order() {
    let flaw = explore(&Spread { plant: Plant::Nothing }, LIMIT).flaw;
    assert!(flaw.is_none(), "{flaw:#?}");
}

#[test]
fn a_row_belongs_to_a_token_and_a_partition() {
    let mistakes = [Plant::RowOfToken, Plant::AuditDeletesToken, Plant::TombstoneOfPart];
    mistakes.into_iter().for_each(fails);
}

#[test]
fn a_decision_is_about_every_partition() {
    [Plant::FirstEpochOnly, Plant::FirstPartOnly].into_iter().for_each(fails);
}

fn fails(plant: Plant) {
    let flaw = explore(&Spread { plant }, LIMIT).flaw;
    let rule = flaw.as_ref().map(|f| f.rule);
    assert_eq!(rule, Some("no part of a confirmed hold lapses or is offered"), "{plant:?}: {flaw:#?}");
}
