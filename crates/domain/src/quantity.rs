//! Counts of units that cannot be out of range.

/// The most units one line of a cart may ask for, after lines of the same SKU are summed.
pub const MAX_QUANTITY: u32 = 1_000_000;
/// The most units one SKU may have in all.
pub const MAX_TOTAL: u64 = 1_000_000_000_000;

/// Units of one line: 1..=1,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(u32);

impl Quantity {
    /// `None` when out of range.
    pub fn new(units: u64) -> Option<Self> {
        u32::try_from(units).ok().filter(|u| (1..=MAX_QUANTITY).contains(u)).map(Self)
    }

    /// The number of units.
    pub fn get(self) -> u64 {
        u64::from(self.0)
    }
}

/// Units of one SKU in all: 0..=1,000,000,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Total(u64);

impl Total {
    /// `None` when out of range.
    pub fn new(units: u64) -> Option<Self> {
        (units <= MAX_TOTAL).then_some(Self(units))
    }

    /// The number of units.
    pub fn get(self) -> u64 {
        self.0
    }
}
