//! Amounts of money as the provider counts them.

use std::fmt;

/// An ISO 4217 code, kept in upper case; compared case-insensitively by construction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// Three ASCII letters in either case; `None` for anything else.
    pub fn new(code: &str) -> Option<Self> {
        let bytes: [u8; 3] = code.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_alphabetic).then(|| Self(bytes.map(|b| b.to_ascii_uppercase())))
    }

    /// The code in upper case.
    pub fn as_str(&self) -> &str {
        // The constructor admits ASCII letters only.
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a cart costs or a payment brought. Either part may be untold; only parts told on both sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Money {
    /// Integer minor units (cents), 0..=2^53 - 1.
    pub amount: Option<u64>,
    /// The currency.
    pub currency: Option<Currency>,
}

impl Money {
    /// The greatest amount: what a JSON number carries exactly.
    pub const MAX_AMOUNT: u64 = (1 << 53) - 1;

    /// Whether a payment of `paid` pays what this asks: whatever was asked must be told, and be the same.
    pub fn is_paid_by(&self, paid: &Money) -> bool {
        (self.amount.is_none() || self.amount == paid.amount)
            && (self.currency.is_none() || self.currency == paid.currency)
    }
}
