//! The identity of a hold.

use std::fmt;

/// A hold's id: a UUIDv7, made by the engine and handed in with the command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(uuid::Uuid);

impl HoldId {
    /// Any 128 bits.
    pub const fn from_u128(bits: u128) -> Self {
        Self(uuid::Uuid::from_u128(bits))
    }

    /// The 128 bits.
    pub const fn as_u128(self) -> u128 {
        self.0.as_u128()
    }

    /// Reads the hyphenated lower- or upper-case form; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 36 {
            return None;
        }
        uuid::Uuid::try_parse(text).ok().map(Self)
    }

    /// Writes the hyphenated lower-case form into the buffer.
    pub fn encode(self, buffer: &mut [u8; 36]) -> &str {
        self.0.as_hyphenated().encode_lower(buffer)
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.encode(&mut [0; 36]))
    }
}

impl fmt::Debug for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
