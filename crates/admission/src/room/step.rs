//! The room's heartbeat, about five times a second: ends what is over, gives turns, looks for those who are absent.
//!
//! Every part is bounded, so that a step takes milliseconds however many people wait.

use super::slots::Phase;
use super::types::StockSignal;
use super::{ASIDE_MS, ASLEEP_MS, GONE_MS, KEPT_MS, Room, RoomState};
use holdfast_domain::Time;

/// Turns and sessions ended in one step at most; more wait for the next one.
const MOST_ENDED: usize = 10_000;
/// People looked at from the head of the queue in one step at most.
const MOST_CALLED: usize = 8_000;
/// Tickets looked at in one step, and how many of these looks it costs to move one.
const LOOKS: u32 = 20_000;
const MOVE_COST: u32 = 15;
/// One turn, in the unit in which credit is kept.
const TURN: u64 = 1_000_000;

impl Room {
    /// Moves the room on. To be called about five times a second, whether or not anybody asks.
    ///
    /// `pace_factor`, from 0 to 1, slows the room down when the service has trouble. Turns are given at the pace that
    /// results, at most one second's worth of them at once; as long as places under `max_active` are free; and for no
    /// more units than are available beyond those whom the stock still has to serve.
    pub fn step(&mut self, stock: StockSignal, pace_factor: f64, now: Time) {
        let at = now.millis();
        let before = self.last_step.replace(at);
        if before.is_none_or(|before| at.saturating_sub(before) > ASLEEP_MS) {
            self.wake(at);
        }
        // A clock that has gone back must not leave everybody present for all the time until it has caught up.
        self.awake_since = self.awake_since.min(at);
        self.stock = stock;
        self.end_what_is_due(at);
        self.earn(before.map_or(0, |before| at.saturating_sub(before)), pace_factor);
        let is_open = self.state(now) == RoomState::Open;
        if is_open {
            self.give_turns(at);
        }
        self.look_around(at);
        if is_open {
            self.flow.sample(self.order.len(), at);
        } else {
            self.flow.rest();
        }
    }

    /// The room was away, so nobody could be there: absence counts from now, and turns begin anew.
    fn wake(&mut self, now: i64) {
        self.awake_since = now;
        let in_turn = |slot: &u32| self.slots.get(*slot).phase == Phase::Turn;
        let turns: Vec<u32> = self.due.iter().map(|(_, slot)| *slot).filter(in_turn).collect();
        let claim_by = Time::from_millis(now).plus_seconds(self.rules.turn_seconds).millis();
        for slot in turns {
            self.give_turn(slot, claim_by);
        }
    }

    fn end_what_is_due(&mut self, now: i64) {
        let due: Vec<u32> =
            self.due.iter().take_while(|(at, _)| *at <= now).take(MOST_ENDED).map(|(_, slot)| *slot).collect();
        for slot in due {
            let how = if self.slots.get(slot).phase == Phase::Turn { Phase::Expired } else { Phase::Done };
            self.end(slot, how, now);
        }
    }

    /// Adds what the passing of time allows.
    fn earn(&mut self, elapsed_ms: i64, pace_factor: f64) {
        // A factor that is no number stops the room; there is no telling what it should have been.
        let factor = if pace_factor >= 0.0 { (pace_factor.min(1.0) * 1e6) as u64 } else { 0 };
        let a_second = u64::from(self.rules.admit_per_second) * factor;
        let earned = u128::from(elapsed_ms.max(0).unsigned_abs()) * u128::from(a_second) / 1000;
        // Below one turn a second, a second's worth would never become a turn.
        let most = if a_second == 0 { 0 } else { a_second.max(TURN) };
        self.credit = self.credit.saturating_add(u64::try_from(earned).unwrap_or(u64::MAX)).min(most);
    }

    /// How many turns can be given now.
    fn quota(&self) -> u64 {
        let tally = self.tally;
        let free = u64::from(self.rules.max_active).saturating_sub(tally.turn + tally.admitted);
        let units = if self.stock.known { self.stock.available.saturating_sub(self.unserved()) } else { 0 };
        (self.credit / TURN).min(free).min(units)
    }

    /// Those who were called and have no hold yet: each will want a unit.
    pub(super) fn unserved(&self) -> u64 {
        self.tally.turn + self.tally.admitted - self.tally.holding
    }

    /// Calls from the head of the queue. Whoever is not there steps aside and the next one is called.
    fn give_turns(&mut self, now: i64) {
        let quota = self.quota();
        if quota == 0 {
            return;
        }
        let (mut called, mut absent) = (Vec::new(), Vec::new());
        for slot in self.order.iter().take(MOST_CALLED) {
            let is_there = self.absent_for(self.slots.get(slot), now) <= ASIDE_MS;
            if is_there {
                called.push(slot);
            } else {
                absent.push(slot);
            }
            if called.len() as u64 == quota {
                break;
            }
        }
        self.order.drop_first(called.len() + absent.len());
        absent.into_iter().for_each(|slot| self.step_aside(slot));
        let claim_by = Time::from_millis(now).plus_seconds(self.rules.turn_seconds).millis();
        self.credit -= called.len() as u64 * TURN;
        self.flow.gave(called.len() as u64);
        called.into_iter().for_each(|slot| self.give_turn(slot, claim_by));
    }

    /// Looks at the next tickets in turn: who is absent steps aside or expires, and what ended long ago is forgotten.
    fn look_around(&mut self, now: i64) {
        let (mut looks, all) = (LOOKS, self.slots.len());
        for _ in 0..all.min(LOOKS) {
            if looks == 0 {
                break;
            }
            looks -= 1;
            let slot = if self.cursor < all { self.cursor } else { 0 };
            self.cursor = slot + 1;
            if self.look_at(slot, now) {
                looks = looks.saturating_sub(MOVE_COST);
            }
        }
    }

    /// True if the ticket was moved.
    fn look_at(&mut self, slot: u32, now: i64) -> bool {
        let ticket = *self.slots.get(slot);
        match ticket.phase {
            Phase::Waiting | Phase::Aside => match self.absent_for(&ticket, now) {
                absent if absent > GONE_MS => self.end(slot, Phase::Expired, now),
                absent if absent > ASIDE_MS && ticket.phase == Phase::Waiting => {
                    self.order.remove(ticket.key, slot);
                    self.step_aside(slot);
                }
                _ => return false,
            },
            phase if phase.is_ended() && !ticket.restored && now.saturating_sub(ticket.until) > KEPT_MS => {
                self.slots.release(slot);
            }
            _ => return false,
        }
        true
    }
}
