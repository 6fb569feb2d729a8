//! Where ranges of addresses begin, for searches that each record pays for.

/// Numbers of a bucket where they are spread evenly: with fewer the table takes more of the cache than it saves.
const EACH: usize = 2;
const BUCKETS_MAX: usize = 1 << 16;

/// Numbers that are compared at once, without a branch: where in its bucket an address lies cannot be foretold.
const AT_ONCE: usize = 4;

/// Numbers in order. A table of their upper bits narrows each search to those that share a bucket; where they stand so
/// close together that all share one, it is a search by halves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ranked<N> {
    /// With as many of the largest number behind them as are compared at once.
    starts: Vec<N>,
    len: usize,
    base: N,
    /// How many numbers come before each bucket, and all of them at the end, twice.
    before: Vec<u32>,
    shift: u32,
}

/// An address as a number.
pub trait Number: Copy + Ord + Default {
    /// There is none above it.
    const LARGEST: Self;
    /// How far it is above another one, by upper bits; 0 if it is not larger.
    fn above(self, base: Self, shift: u32) -> usize;
    /// By how much to shift what is this far above another one to stay below a number of buckets, two at least.
    fn shift(self, base: Self, buckets: usize) -> u32;
    /// The next larger one, and the next smaller one.
    fn next(self) -> Option<Self>;
    fn previous(self) -> Option<Self>;
}

macro_rules! number {
    ($of:ty) => {
        impl Number for $of {
            const LARGEST: Self = Self::MAX;

            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }

            fn above(self, base: Self, shift: u32) -> usize {
                usize::try_from(self.saturating_sub(base) >> shift).unwrap_or(usize::MAX)
            }

            fn shift(self, base: Self, buckets: usize) -> u32 {
                (Self::BITS - (self - base).leading_zeros()).saturating_sub(buckets.ilog2())
            }
        }
    };
}

number!(u32);
number!(u128);

impl<N: Number> Ranked<N> {
    /// Of numbers in order, 2^32 of them at most.
    #[must_use]
    pub fn new(mut starts: Vec<N>) -> Self {
        let (Some(base), Some(last)) = (starts.first().copied(), starts.last()) else {
            return Self::default();
        };
        let len = starts.len();
        let buckets = (len / EACH).max(2).next_power_of_two().min(BUCKETS_MAX);
        let shift = last.shift(base, buckets);
        let count = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut before = Vec::with_capacity(buckets + 2);
        for (at, start) in starts.iter().enumerate() {
            before.resize(start.above(base, shift) + 1, count(at));
        }
        before.extend([count(len); 2]);
        starts.reserve_exact(AT_ONCE);
        starts.resize(len + AT_ONCE, N::LARGEST);
        Self { starts, len, base, before, shift }
    }

    /// How many of them are not above a number.
    #[must_use]
    #[inline]
    pub fn rank(&self, number: N) -> usize {
        let bucket = number.above(self.base, self.shift).min(self.before.len().saturating_sub(2));
        let from = self.before.get(bucket).map_or(0, |from| *from as usize);
        let some = self.starts.get(from..).and_then(|rest| rest.first_chunk::<AT_ONCE>());
        let below = some.map_or(0, |some| some.iter().map(|start| usize::from(*start <= number)).sum());
        if below == AT_ONCE {
            return self.crowded(bucket, from, number);
        }
        from + below
    }

    /// The same where many share a bucket, and of the largest number.
    #[inline(never)]
    fn crowded(&self, bucket: usize, from: usize, number: N) -> usize {
        let to = self.before.get(bucket + 1).map_or(0, |to| *to as usize);
        let within = self.starts.get(from..to).unwrap_or_default();
        from + within.partition_point(|start| *start <= number)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The numbers.
    #[must_use]
    pub fn as_slice(&self) -> &[N] {
        self.starts.get(..self.len).unwrap_or_default()
    }

    /// Bytes on the heap.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<N>() + self.before.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ranks of the numbers themselves, of those beside them and of others are those of a search by halves.
    fn check<N: Number>(keys: &[N], asked: impl Iterator<Item = N>) -> Result<(), TestCaseError> {
        let starts = Ranked::new(keys.to_vec());
        prop_assert_eq!(starts.len(), keys.len());
        for key in asked {
            prop_assert_eq!(starts.rank(key), keys.partition_point(|start| *start <= key));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_a_search_by_halves(
            keys in prop::collection::btree_set(
                prop_oneof![any::<u32>(), 0_u32..40, Just(u32::MAX), 0x0a00_0000_u32..0x0a00_0100], 0..700),
            asked in prop::collection::vec(prop_oneof![any::<u32>(), 0_u32..40, Just(u32::MAX)], 50),
        ) {
            let keys: Vec<u32> = keys.into_iter().collect();
            let beside = |key: &u32| [key.saturating_sub(1), *key, key.saturating_add(1)];
            check(&keys, asked.into_iter().chain(keys.iter().flat_map(beside)))?;
            let wide = |key: u32| u128::from(key).wrapping_mul(0x0100_0000_0000_0003);
            let keys: std::collections::BTreeSet<u128> = keys.into_iter().map(wide).chain([u128::MAX]).collect();
            let beside = |key: &u128| [key.saturating_sub(1), *key, key.saturating_add(1)];
            let asked: Vec<u128> = keys.iter().flat_map(beside).chain([0]).collect();
            check(&keys.into_iter().collect::<Vec<_>>(), asked.into_iter())?;
        }
    }
}
