//! A place in a waiting room that its owner carries: when it was joined, signed. A room that has lost everything gives
//! each ticket that comes back its old place.
//!
//! The text is base64url of 48 bytes, so that it has no padding and no spare bits: version (1), moment of joining (8,
//! big-endian), random bytes (10), hash of the identity (8), hash of the sale (4), number of the key (1), MAC (16:
//! HMAC-SHA256 of all before it, cut).

use crate::keys::{KeyRing, decode, encode, mac};
use crate::room::TicketId;
use std::fmt;
use std::num::NonZeroU64;
use subtle::ConstantTimeEq;

const VERSION: u8 = 1;
const SIZE: usize = 48;
/// Where the parts begin.
const JOINED: usize = 1;
const RANDOM: usize = 9;
const IDENTITY: usize = 19;
const SALE: usize = 27;
const KEY: usize = 31;
const MAC: usize = 32;

/// A ticket that was made here: its signature is good.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket([u8; SIZE]);

/// Why a text is no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketError {
    /// It was not made here, or was made with a key that is good no more.
    Invalid,
    /// It is a ticket, of another sale.
    OtherSale,
}

impl fmt::Display for TicketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "this is no ticket, or one that is good no more",
            Self::OtherSale => "this ticket is for another sale",
        })
    }
}

impl std::error::Error for TicketError {}

impl Ticket {
    /// How long the text is.
    pub const LENGTH: usize = SIZE / 3 * 4;

    /// A new ticket. Whoever has none of the random bytes in common with another has another ticket, though they came
    /// in the same microsecond. The identity is what [`identity`] makes of it.
    pub fn make(
        keys: &KeyRing,
        sale: &str,
        joined_at_us: u64,
        identity: Option<NonZeroU64>,
        random: [u8; IDENTITY - RANDOM],
    ) -> Self {
        let key = keys.newest();
        let mut bytes = [0; SIZE];
        bytes[0] = VERSION;
        bytes[JOINED..RANDOM].copy_from_slice(&joined_at_us.to_be_bytes());
        bytes[RANDOM..IDENTITY].copy_from_slice(&random);
        bytes[IDENTITY..SALE].copy_from_slice(&identity.map_or(0, NonZeroU64::get).to_be_bytes());
        bytes[SALE..KEY].copy_from_slice(&hash(sale));
        bytes[KEY] = key.number();
        let mac = mac(key.tickets(), &[&bytes[..MAC]]);
        bytes[MAC..].copy_from_slice(&mac[..SIZE - MAC]);
        Self(bytes)
    }

    /// Reads the text of a ticket for this sale.
    ///
    /// # Errors
    /// When it is not exactly what was made here with a key that is alive, or is for another sale.
    pub fn read(text: &str, keys: &KeyRing, sale: &str) -> Result<Self, TicketError> {
        // Before anything is done with it: who asks may send megabytes.
        if text.len() != Self::LENGTH {
            return Err(TicketError::Invalid);
        }
        let bytes: [u8; SIZE] = decode(text).and_then(|bytes| bytes.try_into().ok()).ok_or(TicketError::Invalid)?;
        let key = keys.live().find(|key| key.number() == bytes[KEY]).ok_or(TicketError::Invalid)?;
        let wanted = mac(key.tickets(), &[&bytes[..MAC]]);
        let is_ours = bool::from(wanted[..SIZE - MAC].ct_eq(&bytes[MAC..]));
        if !is_ours || bytes[0] != VERSION {
            return Err(TicketError::Invalid);
        }
        if bytes[SALE..KEY] != hash(sale) {
            return Err(TicketError::OtherSale);
        }
        Ok(Self(bytes))
    }

    /// When its place was taken: microseconds since 1970.
    pub fn joined_at_us(&self) -> u64 {
        number(&self.0[JOINED..RANDOM])
    }

    /// Whose it is, where that was said.
    pub fn identity(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(number(&self.0[IDENTITY..SALE]))
    }

    /// What tells it from all others, for maps.
    pub fn id(&self) -> TicketId {
        let mut id = [0; MAC];
        id.copy_from_slice(&self.0[..MAC]);
        TicketId(id)
    }

    /// The ticket that this is the id of, signed again. Nothing where its key is good no more.
    pub fn of(id: TicketId, keys: &KeyRing) -> Option<Self> {
        let key = keys.live().find(|key| key.number() == id.0[KEY])?;
        let mut bytes = [0; SIZE];
        bytes[..MAC].copy_from_slice(&id.0);
        bytes[MAC..].copy_from_slice(&mac(key.tickets(), &[&id.0])[..SIZE - MAC]);
        Some(Self(bytes))
    }

    /// What tells its pass from all others: its signature, which nobody can choose.
    pub fn signature(&self) -> String {
        encode(&self.0[MAC..])
    }
}

/// The text.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(self.0))
    }
}

/// Which one, but not the text: that is what its owner shows to be the owner.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:016x})", number(&self.0[MAC..MAC + 8]))
    }
}

/// What a ticket carries of an identity. The key has to be secret, since identities can be guessed, and to stay the same
/// while the sale runs: it is what one person's second ticket is known by.
pub fn identity(key: &[u8], sale: &str, identity: &str) -> NonZeroU64 {
    let length = (sale.len() as u64).to_be_bytes();
    let mac = mac(key, &[b"holdfast identity 1", &length, sale.as_bytes(), identity.as_bytes()]);
    NonZeroU64::new(number(&mac[..8])).unwrap_or(NonZeroU64::MAX)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Sales are told apart by this only after the signature was good: nobody gets to look for two that are alike.
fn hash(sale: &str) -> [u8; KEY - SALE] {
    let hash = mac(b"holdfast sale 1", &[sale.as_bytes()]);
    [hash[0], hash[1], hash[2], hash[3]]
}
