//! What a shopper is told: state, place, time, and when to ask again.

use super::Room;
use super::slots::{Phase, Ticket};
use super::types::{Eta, RoomState, StockSignal, TicketId, TicketState, View};
use holdfast_domain::Time;

/// Between polls, in milliseconds: of those who wait, at least and at most, before chance is added.
const SOONEST: u64 = 2_000;
const LATEST: u64 = 30_000;
/// No answer names more than this.
const LONGEST: u64 = 36_000;
const SHORTEST: u64 = 1_000;
/// While nobody moves and something may change any time.
const STANDING: u64 = 15_000;
/// While somebody shops.
const SHOPPING: u64 = 10_000;
/// Within this time after the start everybody has asked again.
const START_SPREAD: u64 = 28_000;

impl Room {
    /// A poll: tells where the ticket stands, and counts as presence. `None` if the room does not know it.
    pub fn see(&mut self, id: TicketId, now: Time) -> Option<View> {
        let slot = self.slots.find(id)?;
        self.settle(slot, now.millis());
        self.show_up(slot, now.millis());
        Some(self.view(slot, now))
    }

    /// The same without being there: changes nothing.
    pub fn peek(&self, id: TicketId, now: Time) -> Option<View> {
        self.slots.find(id).map(|slot| self.view(slot, now))
    }

    /// What the room does.
    pub fn state(&self, now: Time) -> RoomState {
        let stock = self.stock;
        if self.rules.ends_at.is_some_and(|ends_at| now >= ends_at) {
            RoomState::Closed
        } else if self.is_before_start(now.millis()) {
            RoomState::Prequeue
        } else if stock.known && stock.available == 0 && stock.held == 0 {
            RoomState::SoldOut
        } else if self.paused {
            RoomState::Paused
        } else if stock.known && stock.available == 0 {
            RoomState::Held
        } else {
            RoomState::Open
        }
    }

    /// Whether the units are likely gone before this one's turn: fewer are available than it takes to give one to each of
    /// those present ahead of it, those in turn, those admitted without a hold yet, and then to itself. False for
    /// whoever is called already, or is not known, or while the stock is not known.
    pub fn likely_gone(&self, id: TicketId, stock: StockSignal) -> bool {
        let waiting = |slot: &u32| matches!(self.slots.get(*slot).phase, Phase::Waiting | Phase::Aside);
        let Some(slot) = self.slots.find(id).filter(waiting) else { return false };
        let ahead = self.order.rank(self.slots.get(slot).key, slot) as u64;
        stock.known && stock.available <= ahead + self.unserved()
    }

    pub(super) fn view(&self, slot: u32, now: Time) -> View {
        let ticket = self.slots.get(slot);
        let phase = self.phase_at(ticket, now.millis());
        let waits = matches!(phase, Phase::Waiting | Phase::Aside);
        let before = self.is_before_start(now.millis());
        let room = self.state(now);
        let ahead = if waits && !before { self.order.rank(ticket.key, slot) as u64 } else { 0 };
        let eta = match phase {
            Phase::Turn => Eta { known: true, p50_s: 0, p90_s: 0 },
            _ if waits && room == RoomState::Open => self.flow.eta(ahead, now.millis()),
            _ => Eta::default(),
        };
        View {
            state: match phase {
                _ if waits && before => TicketState::Prequeue,
                Phase::Waiting | Phase::Aside => TicketState::Waiting,
                Phase::Turn => TicketState::Turn,
                Phase::Admitted => TicketState::Admitted,
                Phase::Done | Phase::Free => TicketState::Done,
                Phase::Expired => TicketState::Expired,
                Phase::Left => TicketState::Left,
            },
            position: (waits && !before).then_some(ahead + 1),
            ahead,
            waiting_total: self.order.len() as u64,
            eta,
            claim_by: (phase == Phase::Turn).then_some(Time::from_millis(ticket.until)),
            session_until: (phase == Phase::Admitted).then_some(Time::from_millis(ticket.until)),
            poll_after_ms: self.poll_after(ticket, phase, ahead, eta, room, now),
            room,
        }
    }

    /// Chance comes from the ticket, so that everybody asks at other times and each one in its own rhythm.
    fn poll_after(&self, ticket: &Ticket, phase: Phase, ahead: u64, eta: Eta, room: RoomState, now: Time) -> u64 {
        let chance = chance(ticket.id);
        // Somebody who asks too seldom would miss the turn.
        let latest = LATEST.min(u64::from(self.rules.turn_seconds) * 500);
        let soonest = SOONEST.min(latest);
        let wait = match (phase, room) {
            (Phase::Turn, _) => soonest,
            (Phase::Admitted, _) => SHOPPING,
            (Phase::Done | Phase::Expired | Phase::Left | Phase::Free, _) | (_, RoomState::Closed) => LATEST,
            (_, RoomState::Prequeue) => return self.poll_around_start(chance, latest, now),
            (_, RoomState::SoldOut) => latest,
            (_, RoomState::Paused | RoomState::Held) => STANDING.min(latest),
            (_, RoomState::Open) => {
                // Nothing is told that was not measured, but somewhere polling has to begin.
                let guess = ahead / u64::from(self.rules.admit_per_second.max(1));
                let seconds = if eta.known { eta.p50_s } else { guess };
                seconds.saturating_mul(100).clamp(soonest, latest)
            }
        };
        (wait * (800 + chance * 400 / 1000) / 1000).clamp(SHORTEST.min(latest / 2), LONGEST)
    }

    /// Each ticket has a moment of its own within the first half minute after the start, and asks exactly then.
    fn poll_around_start(&self, chance: u64, latest: u64, now: Time) -> u64 {
        let until_start = self.rules.starts_at.map_or(0, |at| at.millis().saturating_sub(now.millis()));
        let wait = until_start.max(0).unsigned_abs().saturating_add(START_SPREAD.min(latest) * chance / 1000);
        let wait = match wait {
            0..=LONGEST => wait,
            _ if wait <= 2 * LONGEST => wait / 2,
            _ => LATEST * (800 + chance * 400 / 1000) / 1000,
        };
        wait.clamp(SHORTEST, LONGEST)
    }
}

/// From 0 to 999, evenly over tickets and always the same for one.
fn chance(id: TicketId) -> u64 {
    let mixed =
        id.0.iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |mixed, byte| (mixed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (mixed ^ mixed >> 32) % 1000
}
