//! A hold, its lines and its states.

use crate::{CustomerId, HoldId, Money, OrderId, Quantity, Sku, Time};
use std::fmt;

/// The most lines a cart may list.
pub const MAX_LINES: usize = 100;

/// One SKU and a quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which SKU.
    pub sku: Sku,
    /// How many units of it.
    pub quantity: Quantity,
}

/// The lines of a cart: 1..=100, one a SKU, sorted by the SKU's bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Lines(Box<[Line]>);

/// Why a list of lines is no cart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinesError {
    /// No line at all.
    Empty,
    /// More than [`MAX_LINES`] lines.
    TooMany,
    /// The quantity of the line at this index is 0, or the sum of its SKU is above the limit.
    Quantity(usize),
}

impl fmt::Display for LinesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("must have at least one line"),
            Self::TooMany => write!(f, "must have at most {MAX_LINES} lines"),
            Self::Quantity(_) => {
                write!(f, "must be an integer from 1 to {}, lines of the same SKU taken together", crate::MAX_QUANTITY)
            }
        }
    }
}

impl Lines {
    /// Sums lines of the same SKU (checked, never wrapped) and sorts them by the SKU's bytes.
    pub fn new(asked: Vec<(Sku, u64)>) -> Result<Self, LinesError> {
        if asked.is_empty() {
            return Err(LinesError::Empty);
        }
        if asked.len() > MAX_LINES {
            return Err(LinesError::TooMany);
        }
        let mut indexed: Vec<(usize, Sku, u64)> = asked.into_iter().enumerate().map(|(i, (s, q))| (i, s, q)).collect();
        indexed.sort_by(|a, b| a.1.cmp(&b.1).then(a.0.cmp(&b.0)));
        let mut lines: Vec<Line> = Vec::with_capacity(indexed.len());
        for (index, sku, units) in indexed {
            let bad = LinesError::Quantity(index);
            let asked = Quantity::new(units).ok_or(bad)?;
            match lines.last_mut().filter(|last| last.sku == sku) {
                Some(last) => last.quantity = Quantity::new(last.quantity.get() + asked.get()).ok_or(bad)?,
                None => lines.push(Line { sku, quantity: asked }),
            }
        }
        Ok(Self(lines.into_boxed_slice()))
    }

    /// The lines in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Line> {
        self.0.iter()
    }

    /// Units asked of this SKU; 0 when it is not in the cart.
    pub fn quantity_of(&self, sku: &Sku) -> u64 {
        self.0.binary_search_by(|line| line.sku.cmp(sku)).map_or(0, |i| self.0[i].quantity.get())
    }
}

impl<'a> IntoIterator for &'a Lines {
    type Item = &'a Line;
    type IntoIter = std::slice::Iter<'a, Line>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|l| (l.sku.as_str(), l.quantity.get()))).finish()
    }
}

/// The states of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldStatus {
    /// The units are claimed while `now < expires_at`.
    Held,
    /// The units are sold; an order exists.
    Confirmed,
    /// Given back on request.
    Released,
    /// Given back because nobody paid in time.
    Expired,
}

impl HoldStatus {
    /// The glossary's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Confirmed => "confirmed",
            Self::Released => "released",
            Self::Expired => "expired",
        }
    }

    /// Whether a hold with this status claims units or became an order: of one order, one hold at a time may.
    pub const fn is_current(self) -> bool {
        matches!(self, Self::Held | Self::Confirmed)
    }

    /// Reads the glossary's word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Held, Self::Confirmed, Self::Released, Self::Expired].into_iter().find(|s| s.as_str() == text)
    }
}

/// A cart's claim on units until `expires_at`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// The merchant's order that it is for.
    pub order_id: OrderId,
    /// What it claims.
    pub lines: Lines,
    /// Who asked, when told.
    pub customer_id: Option<CustomerId>,
    /// What is to be paid, when told.
    pub money: Money,
    /// The provider's object, so that its payment window can be closed. Not part of what makes two carts the same.
    pub payment_ref: Option<Box<str>>,
    /// The merchant's own notes, opaque here.
    pub metadata: Option<Box<str>>,
    /// When it was made.
    pub created_at: Time,
    /// From this moment on it claims nothing.
    pub expires_at: Time,
    /// As last recorded; see [`Hold::status_at`] for the status as of now.
    pub status: HoldStatus,
    /// Confirmed after it had lapsed, by taking the units again.
    pub late: bool,
}

impl Hold {
    /// Held, and not yet lapsed.
    pub fn is_live(&self, now: Time) -> bool {
        self.status == HoldStatus::Held && now < self.expires_at
    }

    /// The status as of now: a lapsed hold is expired before any sweep has seen it.
    pub fn status_at(&self, now: Time) -> HoldStatus {
        if self.status == HoldStatus::Held && now >= self.expires_at { HoldStatus::Expired } else { self.status }
    }

    /// Whether asking for this cart again is the same request.
    pub fn is_same_cart(&self, lines: &Lines, customer: Option<&CustomerId>, money: Money) -> bool {
        self.lines == *lines && self.customer_id.as_ref() == customer && self.money == money
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sku(s: &str) -> Sku {
        Sku::new(s).unwrap()
    }

    #[test]
    fn lines_are_summed_and_sorted_by_bytes() {
        let lines = Lines::new(vec![(sku("b"), 1), (sku("a"), 2), (sku("B"), 3), (sku("b"), 4)]).unwrap();
        let told: Vec<_> = lines.iter().map(|l| (l.sku.as_str().to_owned(), l.quantity.get())).collect();
        assert_eq!(told, [("B".into(), 3), ("a".into(), 2), ("b".into(), 5)]);
        assert_eq!(lines.quantity_of(&sku("b")), 5);
        assert_eq!(lines.quantity_of(&sku("c")), 0);
    }

    #[test]
    fn sums_are_checked_and_the_line_is_named() {
        let max = u64::from(crate::MAX_QUANTITY);
        assert!(Lines::new(vec![(sku("a"), max)]).is_ok());
        assert_eq!(Lines::new(vec![(sku("a"), max), (sku("b"), 1), (sku("a"), 1)]), Err(LinesError::Quantity(2)));
        assert_eq!(Lines::new(vec![(sku("a"), u64::MAX), (sku("a"), u64::MAX)]), Err(LinesError::Quantity(0)));
        assert_eq!(Lines::new(vec![(sku("a"), 0)]), Err(LinesError::Quantity(0)));
        assert_eq!(Lines::new(vec![]), Err(LinesError::Empty));
        assert_eq!(Lines::new(vec![(sku("a"), 1); 101]), Err(LinesError::TooMany));
        assert!(Lines::new(vec![(sku("a"), 1); 100]).is_ok());
    }
}
