use std::collections::BTreeSet;
use std::net::IpAddr;

use super::super::address::Span;
use super::lists::index;

/// All addresses, divided where a prefix of any filter begins or ends: within a division all filters agree.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    v4: Sorted,
    v6: Vec<u128>,
}

/// The first and the last division of a span.
pub(super) type Divisions = (u32, u32);

impl Space {
    pub(super) fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        let (mut v4, mut v6) = (BTreeSet::new(), BTreeSet::new());
        for span in spans {
            match span {
                Span::V4(first, last) => {
                    v4.insert(first);
                    v4.extend(last.checked_add(1));
                }
                Span::V6(first, last) => {
                    v6.insert(first);
                    v6.extend(last.checked_add(1));
                }
            }
        }
        Self { v4: Sorted::new(v4.into_iter().collect()), v6: v6.into_iter().collect() }
    }

    /// The division an address lies in.
    pub(super) fn place(&self, address: IpAddr) -> u32 {
        match address {
            IpAddr::V4(address) => self.v4.rank(address.to_bits()),
            IpAddr::V6(address) => self.place_v6(address.to_bits()),
        }
    }

    fn place_v6(&self, bits: u128) -> u32 {
        self.v4.len() + 1 + index(self.v6.partition_point(|start| *start <= bits))
    }

    /// The divisions of a span from which the space was made.
    pub(super) fn divisions(&self, span: Span) -> Divisions {
        match span {
            Span::V4(first, last) => (self.v4.rank(first), self.v4.rank(last)),
            Span::V6(first, last) => (self.place_v6(first), self.place_v6(last)),
        }
    }

    /// Whether finding an IPv4 address takes more than a look at one cache line.
    pub(super) const fn is_deep_v4(&self) -> bool {
        self.v4.levels.len() > 1
    }

    /// Whether finding an IPv6 address takes more than a few steps.
    pub(super) const fn is_deep_v6(&self) -> bool {
        self.v6.len() > 4
    }

    /// How many divisions there are.
    pub(super) fn len(&self) -> u32 {
        self.v4.len() + index(self.v6.len()) + 2
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.v4.levels.iter().map(|level| level.capacity() * size_of::<u32>()).sum::<usize>()
            + self.v6.capacity() * size_of::<u128>()
    }
}

/// Keys of a cache line, which are compared at once.
const LINE: usize = 16;

/// Sorted numbers as a tree of cache lines: each level holds the first key of each line of the level below.
#[derive(Clone, Debug, Default)]
struct Sorted {
    len: u32,
    /// From the root, which is a single line, to all keys; filled up with the largest number.
    levels: Vec<Vec<u32>>,
}

impl Sorted {
    fn new(keys: Vec<u32>) -> Self {
        let len = index(keys.len());
        let mut levels = vec![padded(keys)];
        while let Some(level) = levels.last()
            && level.len() > LINE
        {
            let firsts = level.iter().step_by(LINE).copied().collect();
            levels.push(padded(firsts));
        }
        levels.reverse();
        Self { len, levels }
    }

    const fn len(&self) -> u32 {
        self.len
    }

    /// How many keys are not above this one.
    fn rank(&self, key: u32) -> u32 {
        let mut rank = 0;
        for level in &self.levels {
            // What the level above counted includes the line to look at.
            let line = rank.max(1) as usize - 1;
            let Some(keys) = level.as_chunks::<LINE>().0.get(line) else { return self.len };
            let below: u32 = keys.iter().map(|start| u32::from(*start <= key)).sum();
            rank = index(line * LINE) + below;
        }
        rank.min(self.len)
    }
}

fn padded(mut keys: Vec<u32>) -> Vec<u32> {
    keys.resize(keys.len().next_multiple_of(LINE), u32::MAX);
    keys
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_are_those_of_a_search_by_halves(
            keys in prop::collection::btree_set(prop_oneof![any::<u32>(), 0_u32..40, Just(u32::MAX)], 0..700),
            asked in prop::collection::vec(prop_oneof![any::<u32>(), 0_u32..40, Just(u32::MAX)], 50),
        ) {
            let keys: Vec<u32> = keys.into_iter().collect();
            let sorted = Sorted::new(keys.clone());
            for key in asked.into_iter().chain(keys.iter().copied()) {
                prop_assert_eq!(sorted.rank(key) as usize, keys.partition_point(|start| *start <= key));
            }
        }
    }
}
