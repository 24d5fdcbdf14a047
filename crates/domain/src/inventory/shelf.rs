//! The SKUs: their counters, and when the units that are held of them lapse.

use super::{Changes, Map, Mark, Tracked};
use crate::{HoldId, Sku, Stock, Time};
use foldhash::fast::FixedState;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

#[derive(Debug)]
pub(super) struct Place {
    pub(super) stock: Tracked<Stock>,
    /// Removed in this batch: kept until the store has forgotten it too.
    pub(super) removed: bool,
    due: BTreeSet<(Time, HoldId)>,
    rest: Rest,
}

/// What is known of the lapsed holds on a SKU that were not handed in. A whole inventory has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Unknown,
    /// There are some.
    More,
    /// They claim so many units; those that had not lapsed at this moment are not among them.
    Units(u64, Time),
}

/// Every known SKU. `next` has, for each SKU with held units, an entry no later than its earliest deadline; entries
/// that have become too early are corrected when they come up.
pub(super) struct Shelf {
    places: Map<Sku, Place>,
    next: BinaryHeap<Reverse<(Time, Sku)>>,
}

impl Shelf {
    pub(super) fn new(hasher: FixedState) -> Self {
        Self { places: Map::with_hasher(hasher), next: BinaryHeap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.values().filter(|p| !p.removed).count()
    }

    pub(super) fn get(&self, sku: &Sku) -> Option<&Stock> {
        self.places.get(sku).filter(|p| !p.removed).map(|p| &p.stock.value)
    }

    pub(super) fn contains_record(&self, sku: &Sku) -> bool {
        self.places.contains_key(sku)
    }

    pub(super) fn place(&self, sku: &Sku) -> Option<&Place> {
        self.places.get(sku)
    }

    /// For changing: lists the SKU among the changes.
    pub(super) fn touch(&mut self, sku: &Sku, changes: &mut Changes) -> Option<&mut Stock> {
        let place = self.places.get_mut(sku).filter(|p| !p.removed)?;
        if place.stock.touch() {
            changes.stocks.push(place.stock.value.sku.clone());
        }
        Some(&mut place.stock.value)
    }

    pub(super) fn insert(&mut self, stock: Stock, mark: Mark, changes: &mut Changes) {
        let sku = stock.sku.clone();
        // A SKU that was removed and made again within one batch is listed already, and is in the store until that
        // batch is written, unless it was first made in it.
        let mark = match self.places.get(&sku).map(|p| p.stock.mark) {
            Some(Mark::New) => Mark::New,
            Some(_) => Mark::Changed,
            None => {
                if mark != Mark::Clean {
                    changes.stocks.push(sku.clone());
                }
                mark
            }
        };
        // Of a SKU that was made just now, nothing can have lapsed.
        let rest = if mark == Mark::Clean { Rest::Unknown } else { Rest::Units(0, Time::from_millis(i64::MAX)) };
        let stock = Tracked { value: stock, mark };
        self.places.insert(sku, Place { stock, removed: false, due: BTreeSet::new(), rest });
    }

    pub(super) fn set_rest(&mut self, sku: &Sku, rest: Rest) {
        if let Some(place) = self.places.get_mut(sku) {
            place.rest = rest;
        }
    }

    pub(super) fn rest(&self, sku: &Sku) -> Rest {
        self.places.get(sku).map_or(Rest::Unknown, |place| place.rest)
    }

    /// A hold was handed in that claims so many units: it is not among the rest any more.
    pub(super) fn take_from_rest(&mut self, sku: &Sku, at: Time, units: u64) {
        if let Some(place) = self.places.get_mut(sku)
            && let Rest::Units(rest, now) = &mut place.rest
            && at <= *now
        {
            *rest = rest.saturating_sub(units);
        }
    }

    pub(super) fn remove(&mut self, sku: &Sku, changes: &mut Changes) {
        if let Some(place) = self.places.get_mut(sku) {
            if place.stock.touch() {
                changes.stocks.push(sku.clone());
            }
            place.removed = true;
        }
    }

    pub(super) fn settle_down(&mut self, touched: &[Sku]) {
        for sku in touched {
            match self.places.get_mut(sku) {
                Some(place) if place.removed => {
                    self.places.remove(sku);
                }
                Some(place) => place.stock.mark = Mark::Clean,
                None => {}
            }
        }
    }

    pub(super) fn add_due(&mut self, sku: &Sku, at: Time, hold: HoldId) {
        if let Some(place) = self.places.get_mut(sku) {
            if place.due.first().is_none_or(|first| at < first.0) {
                self.next.push(Reverse((at, place.stock.value.sku.clone())));
            }
            place.due.insert((at, hold));
        }
    }

    pub(super) fn remove_due(&mut self, sku: &Sku, at: Time, hold: HoldId) {
        if let Some(place) = self.places.get_mut(sku) {
            place.due.remove(&(at, hold));
        }
    }

    /// The hold on this SKU that lapsed first, if any has; of several, the one that was made first.
    pub(super) fn first_lapsed(&self, sku: &Sku, now: Time) -> Option<HoldId> {
        self.places.get(sku)?.due.first().filter(|(at, _)| *at <= now).map(|(_, hold)| *hold)
    }

    /// The holds on this SKU that have lapsed and that nobody has expired yet.
    pub(super) fn lapsed(&self, sku: &Sku, now: Time) -> impl Iterator<Item = HoldId> {
        let due = self.places.get(sku).map(|p| p.due.iter().take_while(move |(at, _)| *at <= now));
        due.into_iter().flatten().map(|(_, hold)| *hold)
    }

    /// The hold on any SKU that lapsed first, if any has.
    pub(super) fn any_lapsed(&mut self, now: Time) -> Option<HoldId> {
        loop {
            let Reverse((at, sku)) = self.next.peek()?;
            if *at > now {
                return None;
            }
            match self.places.get(sku).and_then(|p| p.due.first().copied()) {
                // An entry that has become too early must not let its SKU's holds go before older ones of another SKU.
                Some((first, hold)) if first == *at => return Some(hold),
                Some((first, _)) => {
                    if let Some(Reverse((_, sku))) = self.next.pop() {
                        self.next.push(Reverse((first, sku)));
                    }
                }
                None => {
                    self.next.pop();
                }
            }
        }
    }
}
