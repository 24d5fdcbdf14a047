//! What a coordinator does for its client, what becomes of scripts it gave up waiting for, and what fate does.

use super::scripts::{seal, take};
use super::{At, Carts, Home, ORDER, PARTS, Part, Plant, State};
use crate::explore::{Step, may};

impl Carts {
    pub(super) fn open(&self, s: &State, h: usize, into: &mut Vec<(Step, State)>) {
        let home = s.home[ORDER[h]];
        let opened = |what| {
            let mut n = s.clone();
            n.home[ORDER[h]] = Home::Opening(h);
            n.holds[h].opened = true;
            n.holds[h].at = At::Take(0);
            (may(what, h), n)
        };
        match home {
            // Busy, or refused: the coordinator is where it was.
            Home::Opening(_) | Home::Bought(_) => {}
            Home::Empty | Home::Released(_) => into.push(opened("open")),
            Home::Sealed(other) | Home::Complete(other) => {
                if home == Home::Complete(other) || self.is(Plant::ReplayEarly) {
                    let mut n = s.clone();
                    n.holds[h].at = At::Over;
                    n.holds[other].answered = true;
                    into.push((may("open and be told of the other hold", h), n));
                }
                let (step, mut n) = opened("open, the record having lapsed by home's clock,");
                n.holds[other].ended = true;
                into.push((step, n));
            }
        }
    }

    pub(super) fn coordinate(&self, s: &State, h: usize, into: &mut Vec<(Step, State)>) {
        let mut step = |what, at: Option<usize>, change: &dyn Fn(&mut State)| {
            let mut n = s.clone();
            change(&mut n);
            into.push((Step { at, ..may(what, h) }, n));
        };
        match s.holds[h].at {
            At::Open => self.open(s, h, into),
            At::Take(p) => {
                let then = if p + 1 < PARTS { At::Take(p + 1) } else { At::Seal };
                step("take", Some(p), &|n| n.holds[h].at = if take(n, h, p) { then } else { At::Undo });
                step("give up waiting for take", Some(p), &|n| {
                    n.holds[h].take_underway[p] = true;
                    n.holds[h].at = At::Undo;
                });
            }
            At::Seal => {
                step("seal", None, &|n| n.holds[h].at = if seal(n, h) { At::Over } else { At::Undo });
                step("give up waiting for seal", None, &|n| {
                    n.holds[h].seal_underway = true;
                    n.holds[h].at = At::Unsure;
                });
            }
            // Only home can say whether the hold was made: `abort` settles it.
            At::Unsure if !self.is(Plant::UnsureDrops) => {
                step("abort, unsure,", None, &|n| {
                    n.holds[h].at = At::Over;
                    self.abort(n, h);
                });
            }
            At::Undo | At::Unsure => {
                for p in (0..PARTS).filter(|p| s.holds[h].parts[*p] != Part::None) {
                    step("drop, undoing,", Some(p), &|n| self.drop_part(n, h, p));
                }
                step("abort, undoing,", None, &|n| {
                    n.holds[h].at = At::Over;
                    self.abort(n, h);
                });
            }
            At::Over => {}
        }
        self.late(s, h, into);
    }

    /// Scripts that nobody waits for any more, and what clients do.
    pub(super) fn late(&self, s: &State, h: usize, into: &mut Vec<(Step, State)>) {
        let hold = &s.holds[h];
        let mut step = |what, at: Option<usize>, change: &dyn Fn(&mut State)| {
            let mut n = s.clone();
            change(&mut n);
            into.push((Step { at, ..may(what, h) }, n));
        };
        for p in (0..PARTS).filter(|p| hold.take_underway[*p]) {
            step("late take", Some(p), &|n| {
                n.holds[h].take_underway[p] = false;
                take(n, h, p);
            });
        }
        if hold.seal_underway {
            step("late seal", None, &|n| {
                n.holds[h].seal_underway = false;
                seal(n, h);
            });
        }
        let home = s.home[ORDER[h]];
        if hold.answered && (home == Home::Complete(h) || home == Home::Sealed(h)) {
            step("client releases", None, &|n| {
                n.home[ORDER[h]] = Home::Released(h);
                n.holds[h].ended = true;
            });
        }
        let known = home == Home::Complete(h) || self.is(Plant::HomeUnfrozen) && hold.sealed && hold.ended;
        if known && hold.parts == [Part::Real; PARTS] {
            step("client confirms", None, &|n| {
                if home == Home::Complete(h) {
                    n.home[ORDER[h]] = Home::Bought(h);
                }
                let hold = &mut n.holds[h];
                (hold.bought, hold.ended, hold.over) = (true, true, [true; PARTS]);
                (hold.parts, hold.ledger) = ([Part::None; PARTS], [false; PARTS]);
                hold.mark = [self.leaves_marks() && !self.is(Plant::TakesAgainSold); PARTS];
            });
        }
        if self.is(Plant::FixUnsealed) && hold.at == At::Seal {
            for p in (0..PARTS).filter(|p| hold.parts[*p] == Part::Tentative) {
                step("fix before sealing", Some(p), &|n| self.fix(n, h, p));
            }
        }
        if s.losses > 0 && [Home::Opening(h), Home::Sealed(h), Home::Complete(h)].contains(&home) {
            step("failover at home loses", None, &|n| self.lose_record(n, h));
        }
        for p in (0..PARTS).filter(|p| s.losses > 0 && hold.parts[*p] == Part::Tentative) {
            step("failover loses", Some(p), &|n| {
                n.losses -= 1;
                n.holds[h].parts[p] = Part::None;
                n.available[p] += 1;
            });
        }
    }

    /// A failover of home, and its audit: a record comes back when SQL knows all its parts.
    pub(super) fn lose_record(&self, s: &mut State, h: usize) {
        let known = s.holds[h].ledger == [true; PARTS] && !self.is(Plant::HomeUndrained);
        let rebuilt = if known { Home::Complete(h) } else { Home::Empty };
        // A hold that has lapsed somewhere may be taken for one that has lapsed.
        s.holds[h].ended |= rebuilt == Home::Empty && s.holds[h].lapsed.contains(&true);
        s.home[ORDER[h]] = rebuilt;
        s.losses -= 1;
    }
}
