//! Cheap random numbers: unlike each other, not secret.

use holdfast_engine::clock::random_seed;

/// xorshift64*.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Seeded by the operating system.
    pub(crate) fn new() -> Self {
        Self(random_seed() | 1)
    }

    /// The same numbers for the same seed. Seeds that differ little start far apart.
    pub(crate) fn seeded(seed: u64) -> Self {
        let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((bits ^ (bits >> 31)) | 1)
    }

    /// 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`, which is at least 1.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Whether something happens that does so in this share of all cases.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        // 53 bits are what a fraction of this type has.
        ((self.next() >> 11) as f64) < share * 9_007_199_254_740_992.0
    }
}
