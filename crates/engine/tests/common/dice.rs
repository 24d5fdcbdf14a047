//! Dice from a seed (xorshift64*): the same seed throws the same numbers.

/// See the file's header.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Two seeds that differ by one must not throw alike, and the state must not be 0.
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below this one.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }

    /// True once in so many throws.
    pub fn once_in(&mut self, throws: u64) -> bool {
        self.below(throws) == 0
    }

    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}
