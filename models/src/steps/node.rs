//! What a node does for a client: the scripts that Redis decides alone, and the three steps of a command.

use super::state::{Effect, Fact, HOLDS, Known, Live, Node, Redis, Row, Sql, State, TOKENS};
use super::{Command, Orders, Plant, Steps};
use crate::explore::{Step, heals, may};

impl Steps {
    pub(super) fn shop(&self, s: &State, into: &mut Vec<(Step, State)>) {
        let mut step = |step: Step, change: &dyn Fn(&mut State)| {
            let mut n = s.clone();
            change(&mut n);
            into.push((step, n));
        };
        for h in 0..HOLDS {
            let (epoch, units) = (s.redis.epoch, self.orders.units(h));
            let parts = self.tentative && h == 1;
            if (!s.used[h] || self.is(Plant::HoldsTwice)) && self.may_hold(&s.redis, h) {
                step(may(if parts { "take" } else { "hold" }, h), &|n| {
                    n.used[h] = true;
                    n.redis.available -= units;
                    n.redis.holds[h] = if parts { Live::Tentative } else { Live::Held };
                    if !parts {
                        n.redis.log.add(epoch, Fact::Held(h));
                    }
                });
            }
            if s.redis.holds[h] == Live::Tentative {
                step(heals("fix", h), &|n| {
                    n.redis.holds[h] = Live::Held;
                    n.redis.log.add(epoch, Fact::Held(h));
                });
                step(heals("drop", h), &|n| {
                    n.redis.holds[h] = Live::None;
                    n.redis.available += units;
                });
            }
            let marked = matches!(s.redis.holds[h], Live::Marked(_)) && self.is(Plant::MarkedExpires);
            if s.redis.holds[h] == Live::Held || marked {
                step(may("expire", h), &|n| {
                    n.redis.holds[h] = Live::None;
                    n.redis.available += units;
                    n.redis.log.add(epoch, Fact::Expired(h));
                });
            }
        }
        let again = self.is(Plant::FreezesTwice);
        for t in (0..TOKENS).filter(|t| again || s.nodes[*t] == Node::Idle) {
            if let Some(frozen) = self.freeze(s, t) {
                into.push((may("freeze", t), frozen));
            }
        }
    }

    /// Whether the script `hold` makes hold `h`.
    fn may_hold(&self, redis: &Redis, h: usize) -> bool {
        let units = self.orders.units(h);
        let stock = units == 0 || redis.frozen.is_none() && redis.available >= units;
        let order = redis.order.is_none() && !redis.bought && redis.holds[1 - h] == Live::None;
        let stock = stock && redis.holds[h] == Live::None;
        stock && (order || !self.orders.one())
    }

    /// The script `freeze`; nothing when it is busy.
    pub(super) fn freeze(&self, s: &State, t: usize) -> Option<State> {
        let mut n = s.clone();
        let (hold, mut sku) = match self.commands[t] {
            Command::Nothing => return None,
            Command::Less => (None, true),
            Command::Confirm(h) => (Some(h), s.redis.holds[h] == Live::None),
            Command::Release(h) => (Some(h), !self.is(Plant::GivingFreezesHold)),
        };
        if let Some(h) = hold {
            match s.redis.holds[h] {
                Live::Held => n.redis.holds[h] = Live::Marked(t),
                Live::None if s.used[h] => {}
                Live::None | Live::Marked(_) | Live::Tentative => return None,
            }
        }
        if let (Some(h), true) = (hold, sku && self.orders.one()) {
            n.redis.order = Some(t).filter(|_| !self.is(Plant::OrderUnfrozen));
            match s.redis.holds[1 - h] {
                Live::None => {}
                Live::Held if self.is(Plant::NewerUnmarked) => {}
                Live::Held => n.redis.holds[1 - h] = Live::Marked(t),
                Live::Marked(_) | Live::Tentative => return None,
            }
        }
        sku &= !self.is(Plant::NothingFrozen);
        if sku {
            if n.redis.frozen.is_some() {
                return None;
            }
            n.redis.frozen = Some(t);
        }
        n.redis.tokens[t] = true;
        let parts = n.redis.holds.iter().filter(|h| **h == Live::Tentative).count() as i8;
        let tentative = if self.is(Plant::TentativeUntold) { 0 } else { parts };
        if s.nodes[t] != Node::Idle {
            return Some(n);
        }
        n.nodes[t] = Node::Frozen { epoch: s.redis.epoch, log: s.redis.log, tentative, checked: false };
        Some(n)
    }

    /// The deciding transaction.
    pub(super) fn decide(&self, s: &State, t: usize, into: &mut Vec<(Step, State)>) {
        let Node::Frozen { epoch, log, tentative, checked } = s.nodes[t] else { return };
        let current = epoch == s.sql.epoch || self.is(Plant::EpochNewest) && s.sql.serving;
        let mut n = s.clone();
        if self.is(Plant::EpochUnlocked) && !checked {
            if current {
                n.nodes[t] = Node::Frozen { epoch, log, tentative, checked: true };
                into.push((may("look at the epoch of", t), n));
            }
            return;
        }
        if !(current || checked) || s.sql.rows[t] != Row::None {
            // The transaction fails for good: its epoch is over, or its key is taken.
            if s.sql.rows[t] == Row::None {
                n.nodes[t] = Node::Over;
                into.push((may("fail to commit", t), n));
            }
            return;
        }
        if !self.is(Plant::DecideUndrained) && !n.sql.drain(log, self.orders) {
            n.broke = Some("each fact follows from the ones before");
        }
        let free = n.sql.available - tentative;
        let effect = self.effect(&mut n.sql, t, free);
        n.sql.rows[t] = Row::Effects(effect);
        n.learnt[t].effects = Some(effect);
        if !self.is(Plant::Repeats) && !self.is(Plant::RepeatsKept) {
            n.nodes[t] = Node::Over;
        }
        into.push((may("commit", t), n));
    }

    /// The rules, with `free` units that may be taken.
    pub(super) fn effect(&self, sql: &mut Sql, t: usize, free: i8) -> Effect {
        match self.commands[t] {
            Command::Confirm(h) if self.orders.one() && sql.holds[1 - h] == Known::Confirmed => Effect::Nothing,
            Command::Confirm(h) => match sql.holds[h] {
                Known::Held => {
                    sql.holds[h] = Known::Confirmed;
                    sql.sold += 1;
                    Effect::Sell(h)
                }
                Known::Expired | Known::Released if self.orders == Orders::One && sql.holds[1 - h] == Known::Held => {
                    sql.holds[h] = Known::Confirmed;
                    sql.holds[1 - h] = Known::Released;
                    sql.sold += 1;
                    Effect::Swap(1 - h)
                }
                Known::Expired | Known::Released if free > 0 => {
                    sql.holds[h] = Known::Confirmed;
                    sql.available -= 1;
                    sql.sold += 1;
                    Effect::SellLate
                }
                _ => Effect::Nothing,
            },
            Command::Release(h) if sql.holds[h] == Known::Held => {
                sql.holds[h] = Known::Released;
                sql.available += 1;
                Effect::GiveBack(h)
            }
            Command::Less if free > 0 => {
                sql.available -= 1;
                Effect::Less
            }
            _ => Effect::Nothing,
        }
    }

    /// The script `apply`, for effects or for none.
    pub(super) fn apply(&self, redis: &mut Redis, t: usize, effect: Effect) {
        let unchecked = [Plant::ApplyUnchecked, Plant::RowsSurviveUnchecked].contains(&self.plant);
        if !redis.tokens[t] && !unchecked {
            return;
        }
        match effect {
            Effect::Nothing => {}
            Effect::Sell(h) | Effect::Swap(h) => {
                redis.holds[h] = Live::None;
                redis.sold += 1;
            }
            Effect::SellLate => {
                redis.available -= 1;
                redis.sold += 1;
            }
            Effect::GiveBack(h) => {
                redis.holds[h] = Live::None;
                redis.available += 1;
            }
            Effect::Less => redis.available -= 1,
        }
        redis.bought |= self.orders.one() && matches!(effect, Effect::Sell(_) | Effect::SellLate | Effect::Swap(_));
        for hold in redis.holds.iter_mut().filter(|h| **h == Live::Marked(t)) {
            *hold = Live::Held;
        }
        redis.frozen = redis.frozen.filter(|f| *f != t);
        redis.order = redis.order.filter(|o| *o != t);
        redis.tokens[t] = false;
    }
}
