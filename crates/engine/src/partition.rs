//! Which partition a SKU, an order or a hold belongs to. The same everywhere: lanes, hash tags of keys, queues.

use crate::sql::Effect;
use holdfast_domain::{Hold, HoldId, Lines, OrderId, Sku};
use std::collections::BTreeSet;

/// The greatest number of partitions: a hold's id has room for so many.
pub(crate) const MAX_PARTITIONS: u32 = 1 << 14;

/// So many partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partitions(u32);

impl Partitions {
    pub(crate) fn new(count: u32) -> Self {
        Self(count.clamp(1, MAX_PARTITIONS))
    }

    pub(crate) fn count(self) -> u32 {
        self.0
    }

    pub(crate) fn all(self) -> std::ops::Range<u32> {
        0..self.0
    }

    pub(crate) fn of_sku(self, sku: &Sku) -> u32 {
        self.of_bytes(sku.as_str().as_bytes())
    }

    /// Where the order is decided about: its home.
    pub(crate) fn of_order(self, order: &OrderId) -> u32 {
        self.of_bytes(order.as_str().as_bytes())
    }

    /// The home of the hold's order as its id tells it. Ids that were made by an engine without partitions tell a wrong one.
    pub(crate) fn of_hold(self, id: HoldId) -> u32 {
        (id.as_u128() as u32 % MAX_PARTITIONS) % self.0
    }

    /// The id, telling the home.
    pub(crate) fn mark(id: HoldId, home: u32) -> HoldId {
        let room = u128::from(MAX_PARTITIONS - 1);
        HoldId::from_u128(id.as_u128() & !room | u128::from(home))
    }

    /// Those that a cart's SKUs are in.
    pub(crate) fn of_lines(self, lines: &Lines) -> BTreeSet<u32> {
        lines.iter().map(|line| self.of_sku(&line.sku)).collect()
    }

    /// All that have something of the hold: its parts, and its home.
    pub(crate) fn of_whole_hold(self, hold: &Hold) -> BTreeSet<u32> {
        let mut parts = self.of_lines(&hold.lines);
        parts.insert(self.of_order(&hold.order_id));
        parts
    }

    pub(crate) fn of_effect(self, effect: &Effect) -> BTreeSet<u32> {
        match effect {
            Effect::Stock { sku, .. } | Effect::Made { sku, .. } | Effect::Removed(sku) | Effect::Has { sku, .. } => {
                [self.of_sku(sku)].into()
            }
            Effect::Ended { order, skus, .. } => {
                skus.iter().map(|sku| self.of_sku(sku)).chain([self.of_order(order)]).collect()
            }
            Effect::Live { hold, skus } => {
                let mut parts = self.of_whole_hold(hold);
                parts.extend(skus.iter().map(|sku| self.of_sku(sku)));
                parts
            }
            Effect::Confirmed { order, .. } | Effect::Waits { order, .. } => [self.of_order(order)].into(),
        }
    }

    /// FNV-1a: nothing secret, and the same on every machine and in every version.
    fn of_bytes(self, bytes: &[u8]) -> u32 {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix);
        // The low bits alone are poorly mixed for short texts.
        ((hash ^ (hash >> 32)) % u64::from(self.0)) as u32
    }
}
