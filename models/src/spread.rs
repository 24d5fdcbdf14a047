//! A command that SQL decides about a hold with parts in several partitions.
//!
//! The node freezes its parts one partition after the other under one token, decides in one transaction, and applies
//! the effects in each partition. Each partition is recovered and audited by itself, so a row of effects belongs to a
//! token *and* a partition: what one partition is done with, another may still need.
//!
//! What `steps` shows of one partition is taken for granted here: facts are drained, and an audit is one step.

use crate::explore::{Model, Step, heals, may};

const PARTS: usize = 2;
const TOKENS: usize = 2;
const EPOCHS: u8 = 2;

/// A mistake to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// None: the protocol as it should be.
    Nothing,
    /// There is one row for a token, and the first partition that has applied it deletes it.
    RowOfToken,
    /// There is one row for a token, and the audit of any partition deletes it.
    AuditDeletesToken,
    /// The transaction checks the epoch of the first partition only.
    FirstEpochOnly,
    /// The transaction decides on the parts of the first partition only.
    FirstPartOnly,
    /// A tombstone keeps the transaction from writing that partition's row, but not the others'.
    TombstoneOfPart,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Held,
    Marked(usize),
    Lapsed,
    Sold,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Row {
    None,
    /// The part is sold, or else nothing happens to it.
    Effects(bool),
    Tombstone,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    /// So many partitions are frozen.
    Freezing(usize),
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Partition {
    epoch: u8,
    part: Part,
    tokens: [bool; TOKENS],
    rows: [Row; TOKENS],
    /// The epoch that each token was made under.
    under: [u8; TOKENS],
    /// What somebody may have learnt of each token, as in `steps`.
    effects: [Option<bool>; TOKENS],
    tombstone: [bool; TOKENS],
    applied: [bool; TOKENS],
    /// Which tokens were ever here.
    seen: [bool; TOKENS],
}

/// See [`Model::State`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    partitions: [Partition; PARTS],
    nodes: [Node; TOKENS],
    confirmed: bool,
}

/// The model; see the file's head. Two nodes confirm one hold.
pub struct Spread {
    /// What is planted.
    pub plant: Plant,
}

impl Spread {
    fn node(&self, s: &State, t: usize, into: &mut Vec<(Step, State)>) {
        let Node::Freezing(frozen) = s.nodes[t] else { return };
        let mut n = s.clone();
        if frozen < PARTS {
            let p = &mut n.partitions[frozen];
            match p.part {
                Part::Marked(_) => {
                    // Busy. The node never sent its transaction, so that it may unfreeze without a tombstone.
                    n.nodes[t] = Node::Over;
                    n.partitions[..frozen].iter_mut().for_each(|p| apply(p, t, false));
                    into.push((may("give up, busy,", t), n));
                    return;
                }
                Part::Held => p.part = Part::Marked(t),
                Part::Lapsed | Part::Sold => {}
            }
            (p.tokens[t], p.seen[t], p.under[t]) = (true, true, p.epoch);
            n.nodes[t] = Node::Freezing(frozen + 1);
            into.push((may("freeze", t).at(frozen), n));
            return;
        }
        n.nodes[t] = Node::Over;
        let checked = if self.plant == Plant::FirstEpochOnly { 1 } else { PARTS };
        let current = s.partitions[..checked].iter().all(|p| p.under[t] == p.epoch);
        let free = |p: &Partition| p.rows[t] == Row::None;
        let keys = if self.plant == Plant::TombstoneOfPart {
            s.partitions.iter().any(free)
        } else {
            s.partitions.iter().all(free)
        };
        if current && keys {
            let decided = if self.plant == Plant::FirstPartOnly { 1 } else { PARTS };
            let live = |p: &Partition| !matches!(p.part, Part::Lapsed | Part::Sold);
            let sells = !s.confirmed && s.partitions[..decided].iter().all(live);
            n.confirmed |= sells;
            for p in n.partitions.iter_mut().filter(|p| p.rows[t] == Row::None) {
                p.rows[t] = Row::Effects(sells);
                p.effects[t] = Some(sells);
            }
            into.push((may("commit", t), n));
        } else {
            into.push((may("fail to commit", t), n));
        }
    }

    fn recover(&self, s: &State, t: usize, at: usize, into: &mut Vec<(Step, State)>) {
        let mut step = |step: Step, change: &dyn Fn(&mut State)| {
            let mut n = s.clone();
            change(&mut n);
            into.push((step.at(at), n));
        };
        let p = &s.partitions[at];
        if p.seen[t] && p.rows[t] == Row::None {
            step(heals("tombstone", t), &|n| {
                n.partitions[at].rows[t] = Row::Tombstone;
                n.partitions[at].tombstone[t] = true;
            });
        }
        if p.tombstone[t] {
            step(heals("unfreeze", t), &|n| apply(&mut n.partitions[at], t, false));
        }
        if let Some(sells) = p.effects[t] {
            step(heals("apply", t), &|n| {
                apply(&mut n.partitions[at], t, sells);
                n.partitions[at].applied[t] = true;
            });
        }
        if p.applied[t] && matches!(p.rows[t], Row::Effects(_)) {
            step(heals("delete the row of", t), &|n| self.delete(n, t, at, Plant::RowOfToken));
        }
    }

    /// Deletes the row of a token in a partition; with `plant`, the row that all partitions share.
    fn delete(&self, s: &mut State, t: usize, at: usize, plant: Plant) {
        for (i, p) in s.partitions.iter_mut().enumerate() {
            if (i == at || self.plant == plant) && matches!(p.rows[t], Row::Effects(_)) {
                p.rows[t] = Row::None;
                // Whoever looks for a row from now on finds none; who had read it may apply it all the same, which
                // is the better case.
                p.effects[t] = p.effects[t].filter(|_| i == at);
            }
        }
    }

    /// A partition's audit: everything as SQL has it, nothing frozen, and none of its rows left.
    fn audit(&self, s: &mut State, at: usize) {
        let confirmed = s.confirmed;
        let p = &mut s.partitions[at];
        p.epoch += 1;
        p.tokens = [false; TOKENS];
        p.part = match p.part {
            _ if confirmed => Part::Sold,
            Part::Marked(_) => Part::Held,
            part => part,
        };
        (0..TOKENS).for_each(|t| self.delete(s, t, at, Plant::AuditDeletesToken));
    }
}

/// The script `apply`.
fn apply(p: &mut Partition, t: usize, sells: bool) {
    if p.tokens[t] {
        p.tokens[t] = false;
        if p.part == Part::Marked(t) {
            p.part = if sells { Part::Sold } else { Part::Held };
        }
    }
}

impl Model for Spread {
    type State = State;

    fn start(&self) -> State {
        let partition = Partition {
            epoch: 0,
            part: Part::Held,
            tokens: [false; TOKENS],
            rows: [Row::None; TOKENS],
            under: [0; TOKENS],
            effects: [None; TOKENS],
            tombstone: [false; TOKENS],
            applied: [false; TOKENS],
            seen: [false; TOKENS],
        };
        State { partitions: [partition; PARTS], nodes: [Node::Freezing(0); TOKENS], confirmed: false }
    }

    fn next(&self, s: &State, into: &mut Vec<(Step, State)>) {
        for t in 0..TOKENS {
            self.node(s, t, into);
            (0..PARTS).for_each(|p| self.recover(s, t, p, into));
        }
        for at in 0..PARTS {
            if s.partitions[at].part == Part::Held {
                let mut n = s.clone();
                n.partitions[at].part = Part::Lapsed;
                into.push((may("lapse of the hold", 0).at(at), n));
            }
            if s.partitions[at].epoch < EPOCHS - 1 {
                let mut n = s.clone();
                self.audit(&mut n, at);
                into.push((may("failover and audit", 0).at(at), n));
            }
        }
    }

    fn broken(&self, s: &State) -> Option<&'static str> {
        let open = |p: &Partition| matches!(p.part, Part::Held | Part::Lapsed);
        if s.confirmed && s.partitions.iter().any(open) {
            return Some("no part of a confirmed hold lapses or is offered");
        }
        None
    }

    fn quiet(&self, s: &State) -> bool {
        s.partitions.iter().all(|p| {
            let sold = p.part == Part::Sold;
            let rows = p.rows.iter().any(|r| matches!(r, Row::Effects(_)));
            p.tokens == [false; TOKENS] && !rows && !matches!(p.part, Part::Marked(_)) && sold == s.confirmed
        })
    }
}
