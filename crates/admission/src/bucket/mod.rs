//! Token buckets: how fast a sale, one SKU of it and one client may be asked.
//!
//! A bucket is kept as what it lacks, in billionths of a thousandth of a token: so much, a rate in millionths of a token
//! per second gives back in a microsecond. Nothing is ever rounded, and no limit drifts. A bucket that lacks nothing
//! needs no memory.
//!
//! Nothing here reads a clock: moments are microseconds that are handed in.

mod clients;
mod headers;
mod limiter;

pub use headers::{RateHeaders, headers};
pub use limiter::{Count, Counters, Decision, Limiter, Limits, Violated};

/// One token, in the parts that buckets count: picotokens.
const TOKEN: u64 = 1_000_000_000_000;

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    micro_per_second: u64,
    burst: u32,
}

impl Rate {
    /// The largest burst: with it, what a bucket lacks still fits 64 bits.
    pub const MAX_BURST: u32 = 10_000_000;

    /// So many millionths of a token per second, 0 being a pause, and so many tokens at once. Nothing where the burst is
    /// 0, which would admit nobody ever, or above [`Rate::MAX_BURST`].
    pub fn new(micro_per_second: u64, burst: u32) -> Option<Self> {
        (1..=Self::MAX_BURST).contains(&burst).then_some(Self { micro_per_second, burst })
    }

    /// So many tokens per second.
    pub fn per_second(per_second: u32, burst: u32) -> Option<Self> {
        Self::new(u64::from(per_second) * 1_000_000, burst)
    }

    /// Millionths of a token per second.
    pub fn micro_per_second(self) -> u64 {
        self.micro_per_second
    }

    /// How many tokens a full bucket has.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// Whether nothing is admitted, however full the bucket is.
    pub fn is_paused(self) -> bool {
        self.micro_per_second == 0
    }

    fn capacity(self) -> u64 {
        u64::from(self.burst) * TOKEN
    }

    /// The microseconds after which so much has come in; for ever where nothing comes.
    fn time_for(self, pico: u64) -> u64 {
        match pico {
            0 => 0,
            _ if self.is_paused() => u64::MAX,
            _ => pico.div_ceil(self.micro_per_second),
        }
    }
}

/// What a bucket lacked at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bucket {
    lack: u64,
    at: u64,
}

impl Bucket {
    /// What it lacks now. Time makes it full and not fuller.
    fn lack(self, rate: Rate, now: u64) -> u64 {
        // A product that does not fit fills any bucket.
        let come = rate.micro_per_second.saturating_mul(now.saturating_sub(self.at));
        self.lack.saturating_sub(come)
    }

    /// The microseconds until it has a token: 0 where it has one.
    fn wait(self, rate: Rate, now: u64) -> u64 {
        let room = rate.capacity() - TOKEN;
        rate.time_for(self.lack(rate, now).saturating_sub(room))
    }

    /// Without one token more. For a bucket that has it.
    fn take(self, rate: Rate, now: u64) -> Self {
        Self { lack: self.lack(rate, now) + TOKEN, at: now }
    }

    /// With a token more, up to full.
    fn give_back(self, rate: Rate, now: u64) -> Self {
        Self { lack: self.lack(rate, now).saturating_sub(TOKEN), at: now }
    }

    /// As it goes on at another rate: what was taken stays taken, up to an empty bucket of the new size. A larger burst
    /// is therefore at hand at once, and a smaller one is never owed for longer than it takes to fill.
    fn changed(self, from: Rate, to: Rate, now: u64) -> Self {
        Self { lack: self.lack(from, now).min(to.capacity()), at: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_admits_nobody_ever_is_none() {
        assert_eq!(Rate::per_second(1, 0), None);
        assert_eq!(Rate::per_second(1, Rate::MAX_BURST + 1), None);
        let most = Rate::new(u64::MAX, Rate::MAX_BURST).unwrap();
        let bucket = Bucket { lack: most.capacity(), at: 0 };
        assert_eq!((bucket.wait(most, 0), bucket.wait(most, 1)), (1, 0), "numbers at their ends overflow nothing");
        assert!(Rate::per_second(0, 1).unwrap().is_paused());
    }

    #[test]
    fn a_bucket_waits_to_the_microsecond() {
        let rate = Rate::new(300_000, 2).unwrap();
        let one = Bucket::default().take(rate, 7);
        assert_eq!(one.wait(rate, 7), 0);
        let none = one.take(rate, 7);
        assert_eq!(none.wait(rate, 7), 3_333_334, "a third of a microsecond is a whole one");
        assert_eq!((none.wait(rate, 7 + 3_333_333), none.wait(rate, 7 + 3_333_334)), (1, 0));
        assert_eq!(none.lack(rate, u64::MAX), 0);
        assert_eq!(none.lack(rate, 0), 2 * TOKEN, "time that went back gives nothing");
    }

    #[test]
    fn a_change_of_rates_keeps_what_was_taken() {
        let (from, to) = (Rate::per_second(10, 500).unwrap(), Rate::per_second(1, 1_000).unwrap());
        let bucket = Bucket { lack: 400 * TOKEN, at: 0 };
        assert_eq!(bucket.changed(from, to, 1_000_000).lack, 390 * TOKEN, "610 of 1,000 are left");
        let small = Rate::per_second(1, 20).unwrap();
        assert_eq!(bucket.changed(from, small, 1_000_000).wait(small, 1_000_000), 1_000_000, "empty, and no worse");
    }
}
