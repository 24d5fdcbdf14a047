//! A room out of its records, and records out of a room.

use super::record::{Read, Record};
use super::slots::{Phase, Ticket};
use super::{Room, moves::due_of};
use holdfast_domain::Time;

/// How reading a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayEnd {
    /// With the last byte.
    Whole,
    /// The last record was cut off, as a crash does. Cut the file to `valid_len` and go on.
    Torn,
    /// Something is wrong before the end. What follows was not applied, and is worth a look.
    Damaged,
}

/// What a replay has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// Records that were applied.
    pub applied: u64,
    /// Records that contradict those before them, and so were passed over. 0 unless logs were mixed up.
    pub skipped: u64,
    /// How many bytes were read: the length of the part of the log that is good.
    pub valid_len: usize,
    /// Why it stopped there.
    pub end: ReplayEnd,
}

impl Room {
    /// What has happened since this was called last, to be appended to the journal. Ask after every call that changes
    /// something; before the bytes are on disk, a crash may undo what they tell.
    pub fn take_records(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.log)
    }

    /// Applies a journal, or a part of it that begins and ends with whole records, to a room.
    ///
    /// Everybody who waits is in the old order and counts as present until the first step tells the time. The rules,
    /// the pause and the stock are not in the journal.
    pub fn replay(&mut self, bytes: &[u8]) -> Replay {
        let mut done = Replay { applied: 0, skipped: 0, valid_len: 0, end: ReplayEnd::Whole };
        while done.valid_len < bytes.len() {
            match Record::read(&bytes[done.valid_len..]) {
                Read::Record(record, len) => {
                    // What is applied is in the journal already.
                    let written = self.log.len();
                    let applied = self.apply(&record).is_some();
                    self.log.truncate(written);
                    done.applied += u64::from(applied);
                    done.skipped += u64::from(!applied);
                    done.valid_len += len;
                }
                Read::Torn => {
                    done.end = ReplayEnd::Torn;
                    break;
                }
                Read::Damaged => {
                    done.end = ReplayEnd::Damaged;
                    break;
                }
            }
        }
        self.flow.rest();
        done
    }

    /// The room as records, for a journal that is to begin anew: a replay of these bytes and of what
    /// [`Room::take_records`] gives from now on makes this room again. Records not yet taken are part of it, so they are
    /// dropped.
    pub fn snapshot(&mut self) -> Vec<u8> {
        self.log.clear();
        let mut bytes = Vec::with_capacity(self.slots.used() * 64);
        if let Some((from, to)) = self.lost {
            Record::Lost { from: from.millis(), to: to.millis() }.write(&mut bytes);
        }
        for (_, ticket) in self.slots.iter() {
            write_ticket(ticket, &mut bytes);
        }
        let t = self.tally;
        Record::Totals([t.joined, t.turns, t.done, t.expired, t.left]).write(&mut bytes);
        bytes
    }

    /// `None` if it contradicts what is known.
    fn apply(&mut self, record: &Record) -> Option<()> {
        match *record {
            Record::Joined { id, key, identity, restored, at } => {
                let taken = identity.is_some_and(|identity| self.slots.find_identity(identity).is_some());
                if taken || self.slots.find(id).is_some_and(|slot| !self.slots.get(slot).phase.is_ended()) {
                    return None;
                }
                if let Some(slot) = self.slots.find(id) {
                    self.slots.release(slot);
                }
                let ticket = Ticket {
                    key,
                    id,
                    identity: identity.unwrap_or_default(),
                    seen: at,
                    until: 0,
                    phase: Phase::Waiting,
                    has_identity: identity.is_some(),
                    has_hold: false,
                    restored,
                };
                self.enter(&ticket)?;
            }
            Record::Turned { id, claim_by } => {
                let slot = self.slots.find(id)?;
                let ticket = self.slots.get(slot);
                match ticket.phase {
                    Phase::Waiting => drop(self.order.remove(ticket.key, slot)),
                    Phase::Turn => {}
                    _ => return None,
                }
                self.give_turn(slot, claim_by);
            }
            Record::Claimed { id, session_until } => {
                let slot = self.slots.find(id).filter(|slot| self.slots.get(*slot).phase == Phase::Turn)?;
                self.admit(slot, session_until);
            }
            Record::Holds { id } => return self.mark_hold(id, true).then_some(()),
            Record::Unholds { id } => return self.mark_hold(id, false).then_some(()),
            Record::Ended { id, how, at } => {
                let slot = self.slots.find(id).filter(|slot| self.slots.get(*slot).phase.is_live())?;
                self.end(slot, how, at);
            }
            Record::Lost { from, to } => self.note_loss(Time::from_millis(from), Time::from_millis(to)),
            Record::Totals([joined, turns, done, expired, left]) => {
                let t = &mut self.tally;
                (t.joined, t.turns, t.done, t.expired, t.left) = (joined, turns, done, expired, left);
            }
        }
        Some(())
    }
}

/// The shortest way to where a ticket is.
fn write_ticket(ticket: &Ticket, to: &mut Vec<u8>) {
    let id = ticket.id;
    // An ended ticket's identity may have another one, and nobody asks for it any more.
    let has_identity = ticket.has_identity && ticket.phase.is_live();
    Record::joined(&Ticket { has_identity, ..*ticket }).write(to);
    match ticket.phase {
        Phase::Turn => Record::Turned { id, claim_by: ticket.until }.write(to),
        Phase::Admitted => {
            Record::Turned { id, claim_by: ticket.until }.write(to);
            Record::Claimed { id, session_until: ticket.until }.write(to);
            if due_of(ticket) != ticket.until {
                Record::Holds { id }.write(to);
            }
        }
        how if how.is_ended() => Record::Ended { id, how, at: ticket.until }.write(to),
        _ => {}
    }
}
