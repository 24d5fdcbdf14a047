//! Where tickets lie: in slots that are found by ticket and by identity.
//!
//! A ticket takes 64 bytes, about 10 in each of two indexes, and about 30 in the order: 116 in all, as measured with a
//! million. Slots lie in segments and the indexes are split into
//! many small tables, so that nothing ever moves a million entries at once while everybody waits.

use super::types::TicketId;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Slots in a segment, as a power of two.
const SEGMENT_BITS: u32 = 12;
/// Tables an index is split into.
const SHARDS: usize = 256;
/// A bound on memory: about 2 GB of tickets.
pub(super) const MAX_SLOTS: u32 = 1 << 24;

/// Where a ticket stands, as it is kept. "Before the start" is not kept: it follows from the rules and the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// In the order.
    Waiting,
    /// Absent: out of the order, with its key.
    Aside,
    Turn,
    Admitted,
    Done,
    Expired,
    Left,
    /// Nobody's slot.
    Free,
}

impl Phase {
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::Waiting | Self::Aside | Self::Turn | Self::Admitted)
    }

    pub(super) fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Expired | Self::Left)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    pub(super) key: u128,
    pub(super) id: TicketId,
    /// Means nothing unless `has_identity`.
    pub(super) identity: u64,
    /// When it last showed up, in milliseconds.
    pub(super) seen: i64,
    /// In turn: to be claimed by. Admitted: the session's end. Ended: when.
    pub(super) until: i64,
    pub(super) phase: Phase,
    pub(super) has_identity: bool,
    pub(super) has_hold: bool,
    /// Came back as a signed ticket. Never forgotten, or it could come back once more after it has ended.
    pub(super) restored: bool,
}

/// Slots by a hash; what exactly they are found by is asked of the slots themselves.
struct Index(Vec<HashTable<u32>>);

impl Index {
    fn new() -> Self {
        Self((0..SHARDS).map(|_| HashTable::new()).collect())
    }

    /// The table uses a hash's lowest and highest bits, so the shard is taken from the middle.
    fn shard(&mut self, hash: u64) -> &mut HashTable<u32> {
        &mut self.0[(hash >> 40) as usize % SHARDS]
    }

    fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.0[(hash >> 40) as usize % SHARDS].find(hash, |slot| is_it(*slot)).copied()
    }

    fn remove(&mut self, hash: u64, slot: u32) {
        if let Ok(entry) = self.shard(hash).find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
    }
}

/// All tickets of a room.
pub(super) struct Slots {
    segments: Vec<Vec<Ticket>>,
    free: Vec<u32>,
    by_id: Index,
    /// Live tickets only: an identity whose ticket has ended may have a new one.
    by_identity: Index,
    hasher: FixedState,
}

impl Slots {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            segments: Vec::new(),
            free: Vec::new(),
            by_id: Index::new(),
            by_identity: Index::new(),
            hasher: FixedState::with_seed(seed),
        }
    }

    /// Slots there are, free ones included.
    pub(super) fn len(&self) -> u32 {
        match self.segments.last() {
            Some(last) => (((self.segments.len() - 1) << SEGMENT_BITS) + last.len()) as u32,
            None => 0,
        }
    }

    pub(super) fn used(&self) -> usize {
        self.len() as usize - self.free.len()
    }

    pub(super) fn get(&self, slot: u32) -> &Ticket {
        &self.segments[(slot >> SEGMENT_BITS) as usize][(slot & ((1 << SEGMENT_BITS) - 1)) as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Ticket {
        &mut self.segments[(slot >> SEGMENT_BITS) as usize][(slot & ((1 << SEGMENT_BITS) - 1)) as usize]
    }

    pub(super) fn find(&self, id: TicketId) -> Option<u32> {
        self.by_id.find(self.hasher.hash_one(id.0), |slot| self.get(slot).id == id)
    }

    pub(super) fn find_identity(&self, identity: u64) -> Option<u32> {
        self.by_identity.find(self.hasher.hash_one(identity), |slot| self.get(slot).identity == identity)
    }

    /// `None` when the room is full. The caller has made sure that the ticket is new.
    pub(super) fn insert(&mut self, ticket: Ticket) -> Option<u32> {
        let slot = if let Some(slot) = self.free.pop() {
            *self.get_mut(slot) = ticket;
            slot
        } else {
            let slot = self.len();
            if slot >= MAX_SLOTS {
                return None;
            }
            if slot.trailing_zeros() >= SEGMENT_BITS {
                // The first segment grows as it needs to, so that small rooms are small.
                let size = if slot == 0 { 0 } else { 1 << SEGMENT_BITS };
                self.segments.push(Vec::with_capacity(size));
            }
            self.segments.last_mut()?.push(ticket);
            slot
        };
        let hasher = &self.hasher;
        let segments = &self.segments;
        let at = |slot: u32| &segments[(slot >> SEGMENT_BITS) as usize][(slot & ((1 << SEGMENT_BITS) - 1)) as usize];
        let hash = hasher.hash_one(ticket.id.0);
        self.by_id.shard(hash).insert_unique(hash, slot, |slot| hasher.hash_one(at(*slot).id.0));
        if ticket.has_identity {
            let hash = hasher.hash_one(ticket.identity);
            self.by_identity.shard(hash).insert_unique(hash, slot, |slot| hasher.hash_one(at(*slot).identity));
        }
        Some(slot)
    }

    /// The identity may have another ticket from now on.
    pub(super) fn unlink_identity(&mut self, slot: u32) {
        let ticket = *self.get(slot);
        if ticket.has_identity {
            self.by_identity.remove(self.hasher.hash_one(ticket.identity), slot);
        }
    }

    /// Forgets an ended ticket.
    pub(super) fn release(&mut self, slot: u32) {
        let ticket = self.get_mut(slot);
        ticket.phase = Phase::Free;
        let id = ticket.id;
        self.by_id.remove(self.hasher.hash_one(id.0), slot);
        self.free.push(slot);
    }

    /// Every slot that is somebody's.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Ticket)> {
        let all = self.segments.iter().flatten().enumerate().map(|(slot, ticket)| (slot as u32, ticket));
        all.filter(|(_, ticket)| ticket.phase != Phase::Free)
    }
}
