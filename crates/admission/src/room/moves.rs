//! Every way a ticket changes its phase. Each keeps the indexes, the deadlines and the numbers in step, and writes the
//! record by which a replay does the same.

use super::record::Record;
use super::slots::{Phase, Ticket};
use super::types::TicketId;
use super::{ASLEEP_MS, GONE_MS, LONGEST_HOLD_SECONDS, Room};
use holdfast_domain::Time;

impl Room {
    /// A new ticket takes its place; `None` when the room is full.
    pub(super) fn enter(&mut self, ticket: &Ticket) -> Option<u32> {
        let slot = self.slots.insert(*ticket)?;
        self.order.insert(ticket.key, slot);
        self.tally.joined += 1;
        self.note(&Record::joined(ticket));
        Some(slot)
    }

    /// A sign of life of somebody who waits. Whoever had stepped aside is back in its own place.
    pub(super) fn show_up(&mut self, slot: u32, now: i64) {
        let ticket = self.slots.get_mut(slot);
        match ticket.phase {
            Phase::Waiting => ticket.seen = now,
            Phase::Aside => {
                ticket.seen = now;
                ticket.phase = Phase::Waiting;
                let key = ticket.key;
                self.order.insert(key, slot);
                self.tally.aside -= 1;
                self.flow.went(-1);
            }
            _ => {}
        }
    }

    /// Somebody absent is in nobody's way from now on. The caller takes it out of the order. Not recorded: after a
    /// restart everybody counts as present.
    pub(super) fn step_aside(&mut self, slot: u32) {
        self.slots.get_mut(slot).phase = Phase::Aside;
        self.tally.aside += 1;
        self.flow.went(1);
    }

    /// Gives a turn, or a new time to claim it. The caller takes the ticket out of the order.
    pub(super) fn give_turn(&mut self, slot: u32, claim_by: i64) {
        let ticket = self.slots.get_mut(slot);
        let (id, before) = (ticket.id, (ticket.until, slot));
        if std::mem::replace(&mut ticket.phase, Phase::Turn) == Phase::Turn {
            self.due.remove(&before);
        } else {
            self.tally.turn += 1;
            self.tally.turns += 1;
        }
        self.slots.get_mut(slot).until = claim_by;
        self.due.insert((claim_by, slot));
        self.note(&Record::Turned { id, claim_by });
    }

    /// From turn to session.
    pub(super) fn admit(&mut self, slot: u32, session_until: i64) {
        let ticket = self.slots.get_mut(slot);
        self.due.remove(&(ticket.until, slot));
        ticket.phase = Phase::Admitted;
        ticket.until = session_until;
        let id = ticket.id;
        self.due.insert((session_until, slot));
        self.tally.turn -= 1;
        self.tally.admitted += 1;
        self.note(&Record::Claimed { id, session_until });
    }

    pub(super) fn mark_hold(&mut self, id: TicketId, has_hold: bool) -> bool {
        let Some(slot) = self.slots.find(id) else { return false };
        let ticket = self.slots.get_mut(slot);
        if ticket.phase != Phase::Admitted {
            return false;
        }
        if ticket.has_hold == has_hold {
            return true;
        }
        let before = due_of(ticket);
        ticket.has_hold = has_hold;
        let after = due_of(ticket);
        self.due.remove(&(before, slot));
        self.due.insert((after, slot));
        if has_hold {
            self.tally.holding += 1;
        } else {
            self.tally.holding -= 1;
        }
        self.note(&if has_hold { Record::Holds { id } } else { Record::Unholds { id } });
        true
    }

    /// Takes a live ticket from wherever it is and ends it.
    pub(super) fn end(&mut self, slot: u32, how: Phase, at: i64) {
        let ticket = *self.slots.get(slot);
        match ticket.phase {
            Phase::Waiting => {
                self.order.remove(ticket.key, slot);
                self.flow.went(1);
            }
            Phase::Aside => self.tally.aside -= 1,
            Phase::Turn => {
                self.due.remove(&(ticket.until, slot));
                self.tally.turn -= 1;
            }
            Phase::Admitted => {
                self.due.remove(&(due_of(&ticket), slot));
                self.tally.admitted -= 1;
                self.tally.holding -= u64::from(ticket.has_hold);
            }
            Phase::Done | Phase::Expired | Phase::Left | Phase::Free => return,
        }
        self.slots.unlink_identity(slot);
        let ended = self.slots.get_mut(slot);
        (ended.phase, ended.until, ended.has_hold) = (how, at, false);
        match how {
            Phase::Done => self.tally.done += 1,
            Phase::Expired => self.tally.expired += 1,
            _ => self.tally.left += 1,
        }
        self.note(&Record::Ended { id: ticket.id, how, at });
    }

    pub(super) fn note_loss(&mut self, from: Time, to: Time) {
        let (from, to) = self.lost.map_or((from, to), |(a, b)| (a.min(from), b.max(to)));
        self.lost = Some((from, to));
        self.note(&Record::Lost { from: from.millis(), to: to.millis() });
    }

    /// Lets time have its say about one ticket before anybody asks about it.
    pub(super) fn settle(&mut self, slot: u32, now: i64) {
        let ticket = self.slots.get(slot);
        let (before, phase) = (ticket.phase, self.phase_at(ticket, now));
        if phase != before {
            self.end(slot, phase, now);
        }
    }

    /// What a ticket is as of now, swept or not.
    pub(super) fn phase_at(&self, ticket: &Ticket, now: i64) -> Phase {
        // A room that was away gives everybody a fresh start with its next step.
        if self.last_step.is_none_or(|last| now.saturating_sub(last) > ASLEEP_MS) {
            return ticket.phase;
        }
        match ticket.phase {
            Phase::Turn if now >= ticket.until => Phase::Expired,
            Phase::Admitted if now >= due_of(ticket) => Phase::Done,
            Phase::Waiting | Phase::Aside if self.absent_for(ticket, now) > GONE_MS => Phase::Expired,
            phase => phase,
        }
    }

    /// For how long somebody who waits has not shown up, in milliseconds; never before the start.
    pub(super) fn absent_for(&self, ticket: &Ticket, now: i64) -> i64 {
        if self.is_before_start(now) {
            return 0;
        }
        let started = self.rules.starts_at.map_or(i64::MIN, Time::millis);
        now.saturating_sub(ticket.seen.max(started).max(self.awake_since))
    }

    fn note(&mut self, record: &Record) {
        record.write(&mut self.log);
    }
}

/// When a turn or a session ends, whatever happens.
pub(super) fn due_of(ticket: &Ticket) -> i64 {
    if ticket.has_hold {
        Time::from_millis(ticket.until).plus_seconds(LONGEST_HOLD_SECONDS).millis()
    } else {
        ticket.until
    }
}
