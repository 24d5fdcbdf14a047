//! Moments and intervals as data: milliseconds since the Unix epoch, and whole seconds.

/// A moment, in milliseconds since the Unix epoch, as the engine's clock tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This moment plus so many seconds.
    pub const fn plus_seconds(self, seconds: u32) -> Self {
        Self(self.0.saturating_add(seconds as i64 * 1000))
    }
}

/// How long a hold lives: whole seconds, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(u32);

impl Ttl {
    /// `None` unless `1 <= seconds <= max`. Never clamped.
    pub fn new(seconds: u64, max: u32) -> Option<Self> {
        u32::try_from(seconds).ok().filter(|s| (1..=max).contains(s)).map(Self)
    }

    /// The number of seconds.
    pub const fn seconds(self) -> u32 {
        self.0
    }
}
