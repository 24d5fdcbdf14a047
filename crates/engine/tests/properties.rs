//! The invariants of ARCHITECTURE.md after every step of random shops: commands, payments and time steps thrown at the
//! bare inventory, whole and in parts. Nothing here waits or touches a disk, so there are many shops.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::bare::Bare;
use common::dice::Dice;
use common::invariants::{Everything, check};
use common::make::START;
use common::random::{Ask, Shop, Step, name};
use holdfast_engine::domain::{Command, HoldId, HoldStatus, Outcome, PaymentStatus, Policy, Settlement, Time};
use holdfast_engine::{Answer, Engine};
use proptest::collection::vec;
use proptest::prelude::*;
use std::future::Future;

/// A step from a seed: a failing case is shrunk by leaving steps out.
fn step() -> impl Strategy<Value = Step> {
    let throw =
        |seed: u64| Shop { dice: Dice::new(seed), window: seed % 3, reopens: false, deadlines: seed % 64 }.step();
    any::<u64>().prop_map(throw).no_shrink()
}

fn policy() -> impl Strategy<Value = Policy> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(reverse_unmatched, release_on_canceled, restock_on_refund)| Policy {
            reverse_unmatched,
            release_on_canceled,
            restock_on_refund,
            ..Policy::default()
        },
    )
}

struct Run {
    bare: Bare,
    ids: Vec<HoldId>,
    now: Time,
}

impl Run {
    fn new(bare: Bare) -> Self {
        Self { bare, ids: Vec::new(), now: START }
    }

    fn wait(&mut self, ms: i64) {
        self.now = Time::from_millis(self.now.millis() + ms);
    }

    fn ask(&mut self, asked: &[Ask]) -> Vec<(Command, Answer)> {
        let batch: Vec<Command> = asked.iter().map(|ask| ask.resolve(&self.ids)).collect();
        let answers = self.bare.apply_now(batch.clone(), self.now);
        for answer in &answers {
            if let Ok(Outcome::Held { hold, replay: false }) = answer {
                self.ids.push(hold.id);
            }
        }
        batch.into_iter().zip(answers).collect()
    }

    fn sweep(&mut self) {
        self.bare.apply_now(vec![Command::Sweep { limit: u32::MAX }], self.now);
    }
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// What one answer promises, whatever came before it.
fn check_answer(command: &Command, answer: &Answer, now: Time) {
    match (command, answer) {
        (_, Ok(Outcome::Stock { stock, .. })) => assert!(stock.is_sound(), "{stock:?}"),
        (Command::Hold(asked), Ok(Outcome::Held { hold, replay })) => {
            assert_eq!((&hold.order_id, &hold.lines), (&asked.order_id, &asked.lines));
            assert!(*replay || hold.created_at == now);
            assert!(hold.is_live(now) || (!replay && hold.status == HoldStatus::Confirmed), "{hold:?}");
        }
        (Command::Confirm { hold, .. }, Ok(Outcome::Order(order))) => assert_eq!(order.hold_id, *hold),
        (Command::Release { hold: id }, Ok(Outcome::Hold(hold))) => {
            assert_eq!(hold.id, *id);
            assert!(matches!(hold.status, HoldStatus::Released | HoldStatus::Expired), "{hold:?}");
        }
        (Command::Settle(fact), Ok(Outcome::Settled(Settlement::Confirmed(order)))) => {
            assert_eq!(order.payment.as_ref(), Some(&fact.payment));
        }
        _ => {}
    }
}

/// Nothing that ended comes back to life, and nothing that was told is untold.
fn check_history(before: &Everything, after: &Everything) {
    assert_eq!(before.ledger, after.ledger[..before.ledger.len()], "entries are never changed or deleted");
    for (old, new) in before.holds.iter().zip(&after.holds) {
        assert_eq!(old.id, new.id);
        assert!(
            old.status != HoldStatus::Confirmed || *old == *new || old.payment_ref != new.payment_ref,
            "{old:?} {new:?}"
        );
        assert!(old.status == HoldStatus::Held || new.status != HoldStatus::Held, "{old:?} {new:?}");
    }
    for old in &before.payments {
        // One that is known to be the shop's only now stands where it was first heard of.
        let new = after.payments.iter().find(|new| new.key == old.key).unwrap();
        let has_ended = matches!(old.status, PaymentStatus::Refunded | PaymentStatus::Voided);
        // Money that comes of what was let go, and a refund that fails, are told after the end.
        let is_reopened = new.refund_failed || (old.status == PaymentStatus::Voided && new.captured && !old.captured);
        assert!(
            !has_ended || new.status == old.status || is_reopened,
            "a terminal state is never left: {old:?} {new:?}"
        );
    }
    for (id, old) in &before.orders {
        let new = &after.orders[id];
        assert_eq!(old.order.hold_id, new.order.hold_id);
        assert!(old.order.payment.is_none() || old.order.payment == new.order.payment, "{old:?} {new:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_invariant_holds_after_every_step(
        policy in policy(),
        in_parts in any::<bool>(),
        steps in vec(step(), 1..90),
    ) {
        let bare = if in_parts { Bare::in_parts(policy) } else { Bare::whole(policy) };
        let mut run = Run::new(bare);
        let mut before = wait_for(check(&run.bare));
        for step in &steps {
            match step {
                Step::Wait(ms) => run.wait(*ms),
                Step::Batch(asked) => {
                    for (command, answer) in run.ask(asked) {
                        check_answer(&command, &answer, run.now);
                    }
                    let after = wait_for(check(&run.bare));
                    check_history(&before, &after);
                    before = after;
                }
                Step::Reopen => {}
            }
        }
        run.wait(100_000_000);
        run.sweep();
        let quiet = wait_for(check(&run.bare));
        prop_assert!(quiet.stocks.iter().all(|s| s.held == 0), "nothing is stranded: {:?}", quiet.stocks);
        prop_assert!(quiet.holds.iter().all(|h| h.status != HoldStatus::Held));
        prop_assert_eq!(wait_for(run.bare.health()).holds, 0);
        prop_assert!(quiet.payments.iter().all(|p| p.status != PaymentStatus::Unmatched), "nobody waits for ever");
    }

    /// Safety never depends on the janitor: a shop that is swept before every command and one that never is answer
    /// every command alike.
    #[test]
    fn swept_or_not_the_answers_are_the_same(steps in vec(step(), 1..90)) {
        let mut swept = Run::new(Bare::whole(Policy::default()));
        let mut unswept = Run::new(Bare::whole(Policy::default()));
        for step in &steps {
            match step {
                Step::Wait(ms) => {
                    swept.wait(*ms);
                    unswept.wait(*ms);
                }
                Step::Batch(asked) => {
                    for ask in asked.iter().filter(|ask| name(&ask.command) != "sweep") {
                        swept.sweep();
                        let with = swept.ask(std::slice::from_ref(ask));
                        let without = unswept.ask(std::slice::from_ref(ask));
                        prop_assert_eq!(with, without);
                    }
                }
                Step::Reopen => {}
            }
        }
    }
}
