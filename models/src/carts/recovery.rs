//! What recovery passes do: any number of them, each with knowledge as old as it likes.

use super::{Carts, Home, ORDER, PARTS, Part, Plant, State};
use crate::explore::{Step, heals};

impl Carts {
    pub(super) fn recover(&self, s: &State, h: usize, into: &mut Vec<(Step, State)>) {
        let (hold, home) = (&s.holds[h], s.home[ORDER[h]]);
        let mut step = |what, at: Option<usize>, change: &dyn Fn(&mut State)| {
            let mut n = s.clone();
            change(&mut n);
            into.push((Step { at, ..heals(what, h) }, n));
        };
        // The planted mistake: what a pass read is carried out on what the record has become.
        let stale = self.is(Plant::AbortUnasked) && home == Home::Complete(h);
        if home == Home::Opening(h) || stale {
            step("abort", None, &|n| self.abort(n, h));
        }
        let alive = [Home::Opening(h), Home::Sealed(h), Home::Complete(h), Home::Bought(h)].contains(&home);
        let dead = hold.opened && !alive;
        for p in 0..PARTS {
            let tentative = hold.parts[p] == Part::Tentative;
            let found = !self.is(Plant::PartsForgotten) || hold.sealed;
            if dead && found && (hold.parts[p] != Part::None || hold.sealed && !hold.over[p]) {
                step("drop", Some(p), &|n| self.drop_part(n, h, p));
            }
            let unasked = self.is(Plant::DropUnasked) && hold.parts[p] != Part::None;
            if unasked || self.is(Plant::DropTentative) && tentative {
                step("drop unasked", Some(p), &|n| self.drop_part(n, h, p));
            }
            let sealed = matches!(home, Home::Sealed(_) | Home::Complete(_)) && self.is(Plant::IdsUncompared);
            if hold.sealed || sealed && tentative {
                step("fix", Some(p), &|n| self.fix(n, h, p));
                if !hold.lapsed[p] && hold.parts[p] == Part::None && !hold.mark[p] {
                    step("lapse", Some(p), &|n| n.holds[h].lapsed[p] = true);
                }
            }
            if hold.parts[p] == Part::Real {
                step("lapse and expire", Some(p), &|n| {
                    n.available[p] += 1;
                    n.holds[h].lapsed[p] = true;
                    n.holds[h].parts[p] = Part::None;
                    n.holds[h].ledger[p] = false;
                });
            }
        }
        let fixed = hold.told_fixed.iter().all(|told| *told);
        if fixed && home == Home::Sealed(h) {
            step("complete and answer", None, &|n| {
                n.home[ORDER[h]] = Home::Complete(h);
                n.holds[h].answered = true;
            });
        }
        if fixed && self.is(Plant::AnswerUnasked) && !hold.answered {
            step("answer", None, &|n| {
                n.holds[h].answered = true;
                if n.holds[h].ended {
                    n.holds[h].broke = Some("no hold is answered after it ended");
                }
            });
        }
        let complete = home == Home::Complete(h) && self.is(Plant::GoneEndsComplete);
        if hold.told_gone && (home == Home::Sealed(h) || complete) {
            step("release, a part being gone,", None, &|n| {
                n.home[ORDER[h]] = Home::Released(h);
                n.holds[h].ended = true;
                if n.holds[h].answered {
                    n.holds[h].broke = Some("an answered hold is not taken back");
                }
            });
        }
    }
}
