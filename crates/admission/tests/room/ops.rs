//! Random operations on a room, and a model of who has which key.

use super::kit::{PLENTY, START, at, id, rules, ticket};
use holdfast_admission::room::{Class, Join, Joining, OrderRule, Restored, Room, RoomRules, StockSignal, TicketState};
use holdfast_domain::Time;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Tickets that the operations are about.
pub(crate) const TICKETS: u32 = 40;

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Join(u32, Option<u64>),
    See(u32),
    SeeAll,
    Claim(u32),
    ClaimAll,
    Holds(u32),
    Unholds(u32),
    Finish(u32),
    Leave(u32),
    Restore(u32),
    Lose,
    Pause(bool),
    MaxActive(u32),
    Stock(u64, u64),
    Pass(i64),
}

/// Time passes by at most this many milliseconds at once.
pub(crate) fn ops(longest_pass: i64) -> impl Strategy<Value = Vec<Op>> {
    let n = || 0..TICKETS;
    let op = prop_oneof![
        6 => (n(), prop::option::of(0u64..6)).prop_map(|(n, who)| Op::Join(n, who)),
        3 => n().prop_map(Op::See),
        1 => Just(Op::SeeAll),
        3 => n().prop_map(Op::Claim),
        1 => Just(Op::ClaimAll),
        3 => n().prop_map(Op::Holds),
        1 => n().prop_map(Op::Unholds),
        2 => n().prop_map(Op::Finish),
        2 => n().prop_map(Op::Leave),
        1 => n().prop_map(Op::Restore),
        1 => Just(Op::Lose),
        1 => any::<bool>().prop_map(Op::Pause),
        1 => (0u32..12).prop_map(Op::MaxActive),
        2 => (0u64..20, 0u64..3).prop_map(|(available, held)| Op::Stock(available, held)),
        8 => (1..=longest_pass).prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..120)
}

/// A room under test, what is known about it, and its journal.
pub(crate) struct Trial {
    pub(crate) room: Room,
    pub(crate) now: i64,
    pub(crate) stock: StockSignal,
    pub(crate) journal: Vec<u8>,
    /// What each ticket was made of, and its class.
    pub(crate) made: BTreeMap<u32, (Joining, Class)>,
    /// Turns given so far, by the moment.
    pub(crate) turns: Vec<(i64, u64)>,
    sequence: u32,
}

pub(crate) fn trial_rules() -> RoomRules {
    let order = OrderRule::Draw;
    RoomRules { max_active: 8, admit_per_second: 3, turn_seconds: 7, session_seconds: 20, order, ..rules() }
}

impl Trial {
    pub(crate) fn new() -> Self {
        let mut trial = Self {
            room: Room::new(trial_rules(), 1),
            now: -5000,
            stock: PLENTY,
            journal: Vec::new(),
            made: BTreeMap::new(),
            turns: Vec::new(),
            sequence: 0,
        };
        trial.step();
        trial
    }

    pub(crate) fn at(&self) -> Time {
        at(self.now)
    }

    fn step(&mut self) {
        self.room.step(self.stock, 1.0, self.at());
        self.turns.push((self.now, self.room.counts(self.at()).turns_total));
        self.journal.extend(self.room.take_records());
    }

    /// One operation, and a step at the same moment, so that nothing is due any more.
    pub(crate) fn run(&mut self, op: &Op) {
        let now = self.at();
        match *op {
            Op::Join(n, who) => self.join(n, who),
            Op::See(n) => drop(self.room.see(id(n), now).map(|_| ())),
            Op::SeeAll => (0..TICKETS).for_each(|n| self.run(&Op::See(n))),
            Op::Claim(n) => drop((self.room.claim(id(n), now), n)),
            Op::ClaimAll => (0..TICKETS).for_each(|n| self.run(&Op::Claim(n))),
            Op::Holds(n) => assert_eq!(self.is(n, TicketState::Admitted), self.room.holds(id(n))),
            Op::Unholds(n) => assert_eq!(self.is(n, TicketState::Admitted), self.room.unholds(id(n))),
            Op::Finish(n) => assert_eq!(self.is(n, TicketState::Admitted), self.room.finish(id(n), now)),
            Op::Leave(n) => drop((self.room.leave(id(n), now), n)),
            Op::Restore(n) => self.restore(n),
            Op::Lose => self.room.lose(at(-5000), at(self.now)),
            Op::Pause(paused) => self.room.set_paused(paused),
            Op::MaxActive(max_active) => self.room.set_rules(RoomRules { max_active, ..trial_rules() }),
            Op::Stock(available, held) => self.stock = StockSignal { known: true, available, held },
            Op::Pass(ms) => {
                let until = self.now + ms;
                while self.now < until {
                    self.now = until.min(self.now + 1000);
                    self.step();
                }
            }
        }
        self.step();
    }

    fn is(&self, n: u32, state: TicketState) -> bool {
        self.room.peek(id(n), self.at()).is_some_and(|view| view.state == state)
    }

    fn join(&mut self, n: u32, identity: Option<u64>) {
        let known = self.room.peek(id(n), self.at()).is_some();
        self.sequence += 1;
        let joining = Joining { identity, sequence: self.sequence, ..ticket(n, self.at()) };
        match self.room.join(&joining, self.at()) {
            Join::Joined(class) => {
                assert!(!known, "a ticket joins once");
                assert_eq!(class == Class::Late, self.now >= 0);
                self.made.insert(n, (joining, class));
            }
            Join::Same(same) => assert!(known == (same == id(n)) && self.room.peek(same, self.at()).is_some()),
            other => panic!("{other:?}"),
        }
    }

    /// Brings a ticket back that was made long ago, or that nobody has heard of.
    fn restore(&mut self, n: u32) {
        self.sequence += 1;
        let class = Class::Late;
        let joining = Joining { sequence: self.sequence, ..ticket(n, at(self.now.min(1000))) };
        let known = self.room.peek(id(n), self.at()).is_some();
        match self.room.restore(&joining, class, self.at()) {
            Restored::Placed => drop(self.made.insert(n, (joining, class))),
            Restored::Known => assert!(known),
            other => assert_eq!(other, Restored::Refused),
        }
    }

    /// The tickets that wait, in the order in which they have to be called.
    pub(crate) fn waiting(&self) -> Vec<u32> {
        let waits = |n: &&u32| self.is(**n, TicketState::Waiting) || self.is(**n, TicketState::Prequeue);
        let mut waiting: Vec<u32> = self.made.keys().filter(waits).copied().collect();
        waiting.sort_by_key(|n| match &self.made[n] {
            (joining, Class::Drawn) => (Class::Drawn, joining.draw, 0, 0),
            (joining, class) => (*class, [0; 32], joining.joined_at.millis() - START, joining.sequence),
        });
        waiting
    }
}

/// A ticket's state and the end of its turn or session.
type Told = (TicketState, Option<Time>, Option<Time>);

/// What a room says about every ticket, without places.
pub(crate) fn states(room: &Room, now: Time) -> Vec<Option<Told>> {
    let state = |n| room.peek(id(n), now).map(|view| (view.state, view.claim_by, view.session_until));
    (0..TICKETS).map(state).collect()
}

/// The places of everybody.
pub(crate) fn places(room: &Room, now: Time) -> Vec<Option<u64>> {
    (0..TICKETS).map(|n| room.peek(id(n), now).and_then(|view| view.position)).collect()
}
