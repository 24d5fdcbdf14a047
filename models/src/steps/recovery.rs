//! What servers do by themselves, and what fate does: recovery passes, the reader of facts, failovers.

use super::state::{Effect, Node, Redis, Row, State, TOKENS};
use super::{Plant, Steps};
use crate::explore::{Step, heals, may};

impl Steps {
    pub(super) fn recover(&self, s: &State, into: &mut Vec<(Step, State)>) {
        let mut step = |what, t, change: &dyn Fn(&mut State)| {
            let mut n = s.clone();
            change(&mut n);
            into.push((heals(what, t), n));
        };
        let serves = self.serves(s);
        for t in (0..TOKENS).filter(|t| s.nodes[*t] != Node::Idle) {
            let learnt = s.learnt[t];
            if s.sql.rows[t] == Row::None && !self.is(Plant::NoTombstone) {
                step("tombstone", t, &|n| {
                    n.sql.rows[t] = Row::Tombstone;
                    n.learnt[t].tombstone = true;
                });
            }
            if s.sql.rows[t] == Row::None && self.is(Plant::NoTombstone) {
                step("find no row", t, &|n| n.learnt[t].tombstone = true);
            }
            if learnt.tombstone && serves {
                step("unfreeze", t, &|n| self.apply(&mut n.redis, t, Effect::Nothing));
            }
            if let Some(effect) = learnt.effects.filter(|_| serves || self.is(Plant::ApplyAnyEpoch)) {
                step("apply", t, &|n| {
                    self.apply(&mut n.redis, t, effect);
                    n.learnt[t].applied[n.redis.epoch] = true;
                });
            }
            let current =
                learnt.applied[s.sql.epoch] || self.is(Plant::DeleteUnchecked) && learnt.applied.contains(&true);
            if current && matches!(s.sql.rows[t], Row::Effects(_)) {
                step("delete the row of", t, &|n| {
                    n.sql.rows[t] = if self.is(Plant::RepeatsKept) { Row::Tombstone } else { Row::None };
                });
            }
        }
        if serves && s.batch.is_none() && s.redis.log.after(s.sql.drained).next().is_some() {
            step("read facts under epoch", s.redis.epoch, &|n| n.batch = Some((n.redis.epoch, n.redis.log)));
        }
    }

    /// The transaction that drains what was read before.
    pub(super) fn drain(&self, s: &State, into: &mut Vec<(Step, State)>) {
        let mut step = |what, t, change: &dyn Fn(&mut State)| {
            let mut n = s.clone();
            change(&mut n);
            into.push((heals(what, t), n));
        };
        if let Some((epoch, log)) = s.batch {
            step("drain facts of epoch", epoch, &|n| {
                n.batch = None;
                let current = epoch == n.sql.epoch || self.is(Plant::DrainUnchecked);
                if current && !n.sql.drain(log, self.orders) {
                    n.broke = Some("each fact follows from the ones before");
                }
            });
        }
    }

    pub(super) fn fail_over(&self, s: &State, into: &mut Vec<(Step, State)>) {
        if s.failovers == 0 {
            return;
        }
        let mut n = s.clone();
        if let Some(replica) = n.replica.take() {
            n.old = Some(s.redis).filter(|_| self.split);
            n.redis = Redis { server: s.redis.server + u8::from(!self.is(Plant::IdentityReturns)), ..replica };
            n.failovers -= 1;
            into.push((may("failover to server", n.redis.server.into()), n));
        } else {
            n.replica = Some(s.redis);
            into.push((may("the replica sees its last of server", s.redis.server.into()), n));
        }
    }
}
