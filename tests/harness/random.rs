//! Numbers that look random and are the same for the same seed.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, any of 2^64.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).unwrap_or(0)
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these; there must be one.
    #[expect(clippy::indexing_slicing, reason = "of nothing there is nothing to pick")]
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A rank below `end`, which is not 0; the first are far more frequent than the last (about Zipf's law).
    pub fn rank(&mut self, end: usize) -> usize {
        // Each doubling of the rank is as likely as the one before.
        let doublings = end.ilog2() as usize + 1;
        let from = 1 << self.below(doublings);
        (from + self.below(from) - 1).min(end - 1)
    }

    /// One of these, the first far more often than the last; there must be one.
    #[expect(clippy::indexing_slicing, reason = "of nothing there is nothing to pick")]
    pub fn pick_ranked<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.rank(of.len())]
    }
}
