//! Cheap random numbers: unlike each other, not secret.

use holdfast_engine::clock::random_seed;

/// xorshift64*.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Seeded by the operating system.
    pub(super) fn new() -> Self {
        Self(random_seed() | 1)
    }

    /// 64 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`, which is at least 1.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}
