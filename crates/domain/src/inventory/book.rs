//! The holds that claim units, found by id, by order and by customer.
//!
//! A hold costs a slot and a few bytes in each index; the indexes hold slot numbers, never copies of keys. Both the
//! slots and the indexes grow in small steps, so that no single request pays for moving a million holds.

use super::{Mark, Tracked};
use crate::{CustomerId, Hold, HoldId, OrderId, Sku, Time};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::collections::BTreeSet;
use std::hash::BuildHasher;

/// Where a hold lives in the book.
pub(super) type Slot = u32;

const CHUNK: usize = 4096;
const SHARDS: usize = 256;

/// Slots in chunks of a fixed size: growing never moves what is there.
#[derive(Default)]
struct Slots {
    chunks: Vec<Vec<Option<Tracked<Hold>>>>,
    free: Vec<Slot>,
    used: usize,
}

impl Slots {
    fn insert(&mut self, hold: Tracked<Hold>) -> Slot {
        self.used += 1;
        if let Some(slot) = self.free.pop() {
            self.chunks[slot as usize / CHUNK][slot as usize % CHUNK] = Some(hold);
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let last = self.chunks.len() - 1;
        self.chunks[last].push(Some(hold));
        (last * CHUNK + self.chunks[last].len() - 1) as Slot
    }

    fn get(&self, slot: Slot) -> Option<&Tracked<Hold>> {
        self.chunks.get(slot as usize / CHUNK)?.get(slot as usize % CHUNK)?.as_ref()
    }

    fn get_mut(&mut self, slot: Slot) -> Option<&mut Tracked<Hold>> {
        self.chunks.get_mut(slot as usize / CHUNK)?.get_mut(slot as usize % CHUNK)?.as_mut()
    }

    fn remove(&mut self, slot: Slot) -> Option<Tracked<Hold>> {
        let hold = self.chunks.get_mut(slot as usize / CHUNK)?.get_mut(slot as usize % CHUNK)?.take()?;
        self.free.push(slot);
        self.used -= 1;
        Some(hold)
    }
}

/// Slot numbers by hash, in shards that grow one at a time.
struct Index {
    shards: Vec<HashTable<Slot>>,
}

impl Index {
    fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| HashTable::new()).collect() }
    }

    // The table itself uses the low bits and the top seven; the shard is taken from between.
    fn shard(hash: u64) -> usize {
        (hash >> 40) as usize % SHARDS
    }

    fn find(&self, hash: u64, is_it: impl FnMut(&Slot) -> bool) -> Option<Slot> {
        self.shards[Self::shard(hash)].find(hash, is_it).copied()
    }

    fn insert(&mut self, hash: u64, slot: Slot, rehash: impl Fn(&Slot) -> u64) {
        self.shards[Self::shard(hash)].insert_unique(hash, slot, rehash);
    }

    fn remove(&mut self, hash: u64, slot: Slot) {
        if let Ok(found) = self.shards[Self::shard(hash)].find_entry(hash, |s| *s == slot) {
            found.remove();
        }
    }
}

/// Every hold with status held: live ones, and lapsed ones that nobody has expired yet.
pub(super) struct HoldBook {
    hasher: FixedState,
    slots: Slots,
    by_id: Index,
    by_order: Index,
    by_customer: BTreeSet<(u64, Slot)>,
}

impl HoldBook {
    pub(super) fn new(hasher: FixedState) -> Self {
        Self {
            hasher,
            slots: Slots::default(),
            by_id: Index::new(),
            by_order: Index::new(),
            by_customer: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.used
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.slots.chunks.iter().flatten().flatten().map(|t| &t.value)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Hold> {
        self.slots.get(slot).map(|t| &t.value)
    }

    pub(super) fn tracked(&self, slot: Slot) -> Option<&Tracked<Hold>> {
        self.slots.get(slot)
    }

    pub(super) fn tracked_mut(&mut self, slot: Slot) -> Option<&mut Tracked<Hold>> {
        self.slots.get_mut(slot)
    }

    pub(super) fn by_id(&self, id: HoldId) -> Option<Slot> {
        self.by_id.find(self.hasher.hash_one(id), |s| self.get(*s).is_some_and(|h| h.id == id))
    }

    pub(super) fn by_order(&self, order: &OrderId) -> Option<Slot> {
        self.by_order.find(self.hasher.hash_one(order), |s| self.get(*s).is_some_and(|h| h.order_id == *order))
    }

    /// Units of a SKU that a customer's live holds claim, leaving out one hold.
    pub(super) fn held_by(&self, customer: &CustomerId, sku: &Sku, except: Option<HoldId>, now: Time) -> u64 {
        let hash = self.customer_hash(customer, sku);
        self.by_customer
            .range((hash, 0)..=(hash, Slot::MAX))
            .filter_map(|(_, slot)| self.get(*slot))
            .filter(|h| h.customer_id.as_ref() == Some(customer) && h.is_live(now) && Some(h.id) != except)
            .map(|h| h.lines.quantity_of(sku))
            .sum()
    }

    /// Adds a hold. Its id and its order must not be in the book.
    pub(super) fn insert(&mut self, hold: Hold, mark: Mark) -> Slot {
        let (id, order) = (self.hasher.hash_one(hold.id), self.hasher.hash_one(&hold.order_id));
        let slot = self.slots.insert(Tracked { value: hold, mark });
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.by_id.insert(id, slot, |s| slots.get(*s).map_or(0, |t| hasher.hash_one(t.value.id)));
        self.by_order.insert(order, slot, |s| slots.get(*s).map_or(0, |t| hasher.hash_one(&t.value.order_id)));
        self.index_customer(slot);
        slot
    }

    /// Takes a hold out.
    pub(super) fn remove(&mut self, slot: Slot) -> Option<Tracked<Hold>> {
        self.unindex_customer(slot);
        let hold = self.get(slot)?;
        let (id, order) = (self.hasher.hash_one(hold.id), self.hasher.hash_one(&hold.order_id));
        self.by_id.remove(id, slot);
        self.by_order.remove(order, slot);
        self.slots.remove(slot)
    }

    /// Must be called before a hold's lines change …
    pub(super) fn unindex_customer(&mut self, slot: Slot) {
        for key in self.customer_keys(slot) {
            self.by_customer.remove(&key);
        }
    }

    /// … and this after.
    pub(super) fn index_customer(&mut self, slot: Slot) {
        let keys = self.customer_keys(slot);
        self.by_customer.extend(keys);
    }

    fn customer_keys(&self, slot: Slot) -> Vec<(u64, Slot)> {
        let Some((hold, customer)) = self.get(slot).and_then(|h| Some((h, h.customer_id.as_ref()?))) else {
            return Vec::new();
        };
        hold.lines.iter().map(|line| (self.customer_hash(customer, &line.sku), slot)).collect()
    }

    fn customer_hash(&self, customer: &CustomerId, sku: &Sku) -> u64 {
        self.hasher.hash_one((customer, sku))
    }
}
