//! The audit after a failover, step by step; it may stop anywhere and be overtaken by another.

use super::state::{Audit, EPOCHS, HOLDS, Known, Live, Row, Stage, State, TOKENS};
use super::{Plant, Steps};
use crate::explore::{Step, heals, may};

impl Steps {
    pub(super) fn claim(s: &State, into: &mut Vec<(Step, State)>) {
        let epoch = s.sql.epoch + 1;
        let on = if s.sql.serving { s.served[s.sql.epoch] } else { Some(s.audits[s.sql.epoch].server) };
        let needed = on != Some(s.redis.server);
        if epoch == EPOCHS || !needed && s.claims == 0 {
            return;
        }
        let mut n = s.clone();
        n.claims -= u8::from(!needed);
        n.sql.epoch = epoch;
        n.sql.serving = false;
        n.audits[epoch] = Audit { stage: Stage::Claimed, server: s.redis.server };
        into.push((Step { heals: needed, ..may("claim the audit of epoch", epoch) }, n));
    }

    /// The next step of the audit that claimed `epoch`, which may have been overtaken by now.
    pub(super) fn audit(&self, s: &State, epoch: usize, into: &mut Vec<(Step, State)>) {
        let Audit { stage, server } = s.audits[epoch];
        let here = server == s.redis.server;
        let mine = here && (s.redis.epoch == epoch || self.is(Plant::RaiseLate));
        let mut n = s.clone();
        let (what, then) = match stage {
            Stage::Claimed if here && (s.redis.epoch <= epoch || self.is(Plant::RaiseBackwards)) => {
                if !self.is(Plant::RaiseLate) {
                    n.redis.epoch = epoch;
                }
                ("audit: raise to epoch", Stage::Raised)
            }
            Stage::Raised if mine && s.sql.epoch == epoch => {
                if !n.sql.drain(s.redis.log, self.orders) {
                    n.broke = Some("each fact follows from the ones before");
                }
                ("audit: drain in epoch", Stage::Drained)
            }
            Stage::Drained if mine => {
                n.redis.available = s.sql.available;
                n.redis.sold = s.sql.sold;
                ("audit: write counters in epoch", Stage::Counted)
            }
            Stage::Counted if mine => {
                self.rebuild(&mut n);
                ("audit: write holds in epoch", Stage::Rebuilt)
            }
            Stage::Rebuilt if s.sql.epoch == epoch || self.is(Plant::ServeUnchecked) => {
                n.sql.serving = true;
                n.served[epoch] = Some(if self.is(Plant::IdentityAtEnd) { s.redis.server } else { server });
                n.redis.epoch = if self.is(Plant::RaiseLate) && here { epoch } else { n.redis.epoch };
                self.clear_rows(&mut n);
                ("audit: serve epoch", Stage::Over)
            }
            _ => return,
        };
        n.audits[epoch].stage = then;
        into.push((heals(what, epoch), n));
    }

    fn clear_rows(&self, s: &mut State) {
        let keep = [Plant::RowsSurvive, Plant::RowsSurviveUnchecked, Plant::TokensSurvive].contains(&self.plant);
        for row in &mut s.sql.rows {
            if matches!(row, Row::Effects(_)) && !keep || self.is(Plant::TombstonesEnd) {
                *row = Row::None;
            }
        }
    }

    /// The second half of building Redis anew: holds as SQL has them, and nothing frozen.
    pub(super) fn rebuild(&self, s: &mut State) {
        for h in 0..HOLDS {
            let live = &mut s.redis.holds[h];
            let keep = match live {
                Live::Tentative => self.is(Plant::TentativeSurvives),
                Live::Marked(_) => self.is(Plant::TokensSurvive) && s.sql.holds[h] == Known::Held,
                _ => false,
            };
            if !keep {
                *live = if s.sql.holds[h] == Known::Held { Live::Held } else { Live::None };
            }
        }
        s.redis.bought = self.orders.one() && s.sql.sold > 0;
        if !self.is(Plant::TokensSurvive) {
            s.redis.tokens = [false; TOKENS];
            s.redis.frozen = None;
            s.redis.order = None;
        }
    }
}
