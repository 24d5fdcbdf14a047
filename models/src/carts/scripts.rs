//! The scripts, each atomic in its partition.

use super::{Carts, Home, ORDER, Part, Plant, State};

/// The script `take`: whether it took.
pub(super) fn take(s: &mut State, h: usize, p: usize) -> bool {
    let hold = &mut s.holds[h];
    if s.available[p] < 1 || hold.parts[p] != Part::None {
        return false;
    }
    s.available[p] -= 1;
    hold.parts[p] = Part::Tentative;
    true
}

/// The script `seal`: whether the hold is made.
pub(super) fn seal(s: &mut State, h: usize) -> bool {
    if s.home[ORDER[h]] != Home::Opening(h) {
        return false;
    }
    s.home[ORDER[h]] = Home::Sealed(h);
    s.holds[h].sealed = true;
    true
}

impl Carts {
    /// The script `drop`. It does not ask which state the part is in: whoever sends it has asked home.
    pub(super) fn drop_part(&self, s: &mut State, h: usize, p: usize) {
        let hold = &mut s.holds[h];
        if hold.parts[p] != Part::None {
            s.available[p] += 1;
        }
        hold.parts[p] = Part::None;
        hold.ledger[p] = false;
        hold.mark[p] = self.leaves_marks();
        hold.over[p] = true;
    }

    /// The script `fix`.
    pub(super) fn fix(&self, s: &mut State, h: usize, p: usize) {
        let hold = &mut s.holds[h];
        match hold.parts[p] {
            Part::Real => hold.told_fixed[p] = true,
            Part::Tentative => {
                hold.parts[p] = Part::Real;
                hold.ledger[p] = true;
                hold.told_fixed[p] = true;
            }
            // Whoever is told so asks home again, and finds that the hold has ended.
            Part::None if hold.mark[p] => {}
            // What has lapsed is not taken again; the record may be completed.
            Part::None if hold.lapsed[p] && !self.is(Plant::TakesAgainLapsed) => hold.told_fixed[p] = true,
            Part::None if s.available[p] < 1 || !self.takes_again() => hold.told_gone = true,
            Part::None => {
                if hold.lapsed[p] {
                    hold.broke = Some("a lapsed part is not taken again");
                }
                s.available[p] -= 1;
                hold.parts[p] = Part::Real;
                hold.ledger[p] = true;
                hold.told_fixed[p] = true;
            }
        }
    }

    pub(super) fn abort(&self, s: &mut State, h: usize) {
        let home = &mut s.home[ORDER[h]];
        if *home == Home::Opening(h) || self.is(Plant::AbortUnasked) && *home == Home::Complete(h) {
            *home = Home::Empty;
        }
    }
}
