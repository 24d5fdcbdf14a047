//! The only file that reads a clock or draws random bits.
//!
//! Holds live on the engine's clock: the wall clock as it was at the start, carried on by the monotonic clock. A wall
//! clock that is set back or forward while the process runs therefore frees nothing early and keeps nothing longer;
//! the difference is told ([`Clock::offset_ms`]) and logged by whoever watches it. A restart reads the wall clock
//! again, but never goes back behind what was recorded before.

#![allow(clippy::disallowed_methods)]

use holdfast_domain::{HoldId, Time};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A moment for measuring intervals.
pub fn monotonic() -> Instant {
    Instant::now()
}

/// The wall clock, for comparing and for dates that people read.
pub fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// 64 random bits from the operating system; the time and an address where there are none.
pub fn random_seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| wall().millis().unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Random bytes that nobody can guess.
///
/// # Errors
/// When the operating system has none.
pub fn random_bytes<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// 160 random bits as text: a name that nobody else has.
pub fn random_token() -> String {
    let mut bits = [0; 20];
    if getrandom::fill(&mut bits).is_err() {
        bits.chunks_mut(8).for_each(|part| part.copy_from_slice(&random_seed().to_le_bytes()[..part.len()]));
    }
    bits.iter().fold(String::with_capacity(40), |text, byte| text + &format!("{byte:02x}"))
}

/// The engine's clock. Never goes back.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    origin: Time,
    told: AtomicI64,
}

impl Clock {
    /// Starts at the wall clock, or at `not_before` if that is later.
    pub fn start(not_before: Time) -> Self {
        let origin = wall().max(not_before);
        Self { start: Instant::now(), origin, told: AtomicI64::new(origin.millis()) }
    }

    /// The moment.
    pub fn now(&self) -> Time {
        let spent = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now = self.origin.millis().saturating_add(spent);
        Time::from_millis(self.told.fetch_max(now, Ordering::Relaxed).max(now))
    }

    /// How far the wall clock is ahead of this one, in milliseconds; negative when behind.
    pub fn offset_ms(&self) -> i64 {
        wall().millis() - self.now().millis()
    }
}

/// Makes hold ids: UUIDv7 whose twelve bits after the version count within the millisecond, so that ids of one store
/// grow strictly and their first 60 significant bits alone tell them apart.
#[derive(Debug)]
pub struct HoldIds {
    last: u64,
    random: u64,
}

impl HoldIds {
    /// Continues after the greatest number in use; see [`HoldIds::number`].
    pub fn after(last: u64) -> Self {
        Self { last, random: random_seed() | 1 }
    }

    /// A fresh id.
    pub fn next(&mut self, now: Time) -> HoldId {
        let at = now.millis().unsigned_abs() << 12;
        self.last = at.max(self.last + 1);
        // xorshift64*: these bits need to be unlike, not secret.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let random = u128::from(self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)) >> 2;
        let (ms, count) = (u128::from(self.last >> 12) & 0xffff_ffff_ffff, u128::from(self.last & 0xfff));
        HoldId::from_u128(ms << 80 | 0x7 << 76 | count << 64 | 0b10 << 62 | random)
    }

    /// The number by which a store may order and find a hold: milliseconds and count.
    pub fn number(id: HoldId) -> u64 {
        let bits = id.as_u128();
        let (ms, count) = ((bits >> 80) as u64, (bits >> 64) as u64 & 0xfff);
        ms << 12 | count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_whatever_the_clock_says() {
        let mut ids = HoldIds::after(0);
        let mut last = HoldId::from_u128(0);
        for n in 0..20_000 {
            let id = ids.next(Time::from_millis(1_764_500_000_000 - n % 3));
            assert!(id > last && HoldIds::number(id) > HoldIds::number(last));
            assert_eq!(id.to_string().as_bytes()[14], b'7', "version");
            assert!(b"89ab".contains(&id.to_string().as_bytes()[19]), "variant");
            last = id;
        }
        let mut next = HoldIds::after(HoldIds::number(last));
        assert!(next.next(Time::from_millis(0)) > last, "a restart goes on after what was stored");
    }

    #[test]
    fn the_clock_starts_no_earlier_than_told() {
        let later = Time::from_millis(wall().millis() + 3_600_000);
        let clock = Clock::start(later);
        assert!(clock.now() >= later);
        assert!(clock.offset_ms() < -3_500_000);
    }
}
