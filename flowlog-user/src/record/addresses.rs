use std::collections::BTreeSet;
use std::net::IpAddr;

use super::ranked::{Number, Ranked};
use super::rules::Prefix;

/// A set of addresses as ranges. IPv4 and IPv4-mapped IPv6 addresses are different ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddressSet {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

/// Ranges in order, none of which touches the next: where each begins, and what comes after its end. So a number lies in
/// one if an odd number of edges is not above it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Ranges<N> {
    edges: Ranked<N>,
}

/// Where the IPv4-mapped addresses begin (`::ffff:0.0.0.0`).
const MAPPED: u128 = 0xffff_0000_0000;

impl AddressSet {
    /// Of ranges with both their ends, in any order; IPv4 addresses as numbers and IPv6 addresses as numbers.
    #[must_use]
    pub fn new(v4: Vec<(u32, u32)>, v6: Vec<(u128, u128)>) -> Self {
        Self { v4: Ranges::new(v4), v6: Ranges::new(v6) }
    }

    /// Of ranges with both their ends, each of one family; what is none is left out.
    #[must_use]
    pub fn of_ranges(ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for range in ranges {
            match range {
                (IpAddr::V4(first), IpAddr::V4(last)) => v4.push((first.to_bits(), last.to_bits())),
                (IpAddr::V6(first), IpAddr::V6(last)) => v6.push((first.to_bits(), last.to_bits())),
                _ => {}
            }
        }
        v4.retain(|(first, last)| first <= last);
        v6.retain(|(first, last)| first <= last);
        Self::new(v4, v6)
    }

    /// Its ranges with both their ends, in order, IPv4 first.
    pub fn ranges(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> + '_ {
        let v4 = |number| IpAddr::from(std::net::Ipv4Addr::from_bits(number));
        let v6 = |number| IpAddr::from(std::net::Ipv6Addr::from_bits(number));
        let four = self.v4.iter().map(move |(first, last)| (v4(first), v4(last)));
        four.chain(self.v6.iter().map(move |(first, last)| (v6(first), v6(last))))
    }

    /// Of all addresses of several sets.
    #[must_use]
    pub fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for set in sets {
            v4.extend(set.v4.iter());
            v6.extend(set.v6.iter());
        }
        Self::new(v4, v6)
    }

    /// Whether an address lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.v4.contains(address.to_bits()),
            IpAddr::V6(address) => self.v6.contains(address.to_bits()),
        }
    }

    /// How many addresses are in it; at most `u128::MAX`.
    #[must_use]
    pub fn len(&self) -> u128 {
        let number = |address| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let lengths = self.ranges().map(|(first, last)| (number(last) - number(first)).saturating_add(1));
        lengths.fold(0, u128::saturating_add)
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.edges.is_empty() && self.v6.edges.is_empty()
    }

    /// Prefixes that hold every address of the set, at most `max` of them (but one, if there is anything): the set itself
    /// where so many suffice, else more than it, never less.
    #[must_use]
    pub fn cover(&self, max: usize) -> BTreeSet<Prefix> {
        let ranges: Vec<(u128, u128)> = self
            .v4
            .iter()
            .map(|(first, last)| (MAPPED | u128::from(first), MAPPED | u128::from(last)))
            .chain(self.v6.iter())
            .collect();
        let mut exact = BTreeSet::new();
        for (first, last) in &ranges {
            split(*first, *last, |prefix| exact.insert(prefix));
            if exact.len() > max {
                break;
            }
        }
        if exact.len() <= max {
            return exact;
        }
        // The prefix around each range, and then ever shorter ones.
        let mut wide: BTreeSet<Prefix> = ranges.iter().map(|(first, last)| around(*first, *last)).collect();
        let mut length = 128;
        while wide.len() > max && length > 0 {
            length -= 1;
            wide = wide.iter().map(|prefix| prefix.cut(length.min(prefix.length))).collect();
        }
        wide
    }
}

impl<N: Number> Ranges<N> {
    fn new(mut ranges: Vec<(N, N)>) -> Self {
        ranges.sort_unstable();
        let mut edges = Vec::with_capacity(ranges.len() * 2);
        let mut ranges = ranges.into_iter().peekable();
        while let Some((first, mut last)) = ranges.next() {
            let touches =
                |last: N| move |(first, _): &(N, N)| last.next().is_none_or(|after| *first <= after);
            while let Some((_, end)) = ranges.next_if(touches(last)) {
                last = last.max(end);
            }
            edges.push(first);
            // Nothing comes after the largest number.
            edges.extend(last.next());
        }
        Self { edges: Ranked::new(edges) }
    }

    fn contains(&self, number: N) -> bool {
        self.edges.rank(number) % 2 == 1
    }

    fn iter(&self) -> impl Iterator<Item = (N, N)> + '_ {
        let last = |after: Option<N>| after.and_then(N::previous).unwrap_or(N::LARGEST);
        let edges = self.edges.as_slice().chunks(2);
        edges.filter_map(move |edges| Some((*edges.first()?, last(edges.get(1).copied()))))
    }
}

/// The fewest prefixes that are exactly this range, in order; the function is given each.
pub(super) fn split<T>(first: u128, last: u128, mut give: impl FnMut(Prefix) -> T) {
    let mut at = first;
    loop {
        // As long as what begins here may be, and as what is left.
        let room = (last - at).checked_add(1).map_or(128, u128::ilog2);
        let size = at.trailing_zeros().min(room);
        give(Prefix { length: length(128 - size), bits: at });
        let end = at | !u128::MAX.checked_shl(size).unwrap_or(0);
        if end >= last {
            return;
        }
        at = end + 1;
    }
}

/// The longest prefix that holds both.
fn around(first: u128, last: u128) -> Prefix {
    Prefix { length: 128, bits: first }.cut(length((first ^ last).leading_zeros()))
}

fn length(bits: u32) -> u8 {
    u8::try_from(bits).unwrap_or(128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(v4: &[(u32, u32)]) -> AddressSet {
        AddressSet::new(v4.to_vec(), Vec::new())
    }

    #[test]
    fn a_range_is_the_prefixes_it_is_made_of() {
        let lengths = |first: u32, last: u32| -> Vec<u8> {
            set(&[(first, last)]).cover(100).iter().map(|prefix| prefix.length).collect()
        };
        assert_eq!(lengths(0x0a00_0000, 0x0a00_00ff), [120]);
        let mut of_five_to_nine = lengths(5, 9);
        of_five_to_nine.sort_unstable();
        assert_eq!(of_five_to_nine, [127, 127, 128], "5, 6-7, 8-9");
        assert_eq!(lengths(0, u32::MAX), [96]);
        let all = AddressSet::new(Vec::new(), vec![(0, u128::MAX)]);
        assert_eq!(all.cover(1), BTreeSet::from([Prefix { length: 0, bits: 0 }]));
        assert_eq!(AddressSet::default().cover(0), BTreeSet::new());
    }

    #[test]
    fn families_are_apart() {
        let v4 = set(&[(0x0a00_0001, 0x0a00_0001)]);
        assert!(v4.contains("10.0.0.1".parse().unwrap()));
        assert!(!v4.contains("::ffff:10.0.0.1".parse().unwrap()));
        let v6 = AddressSet::new(Vec::new(), vec![(MAPPED, MAPPED | 0xffff_ffff)]);
        assert!(!v6.contains("10.0.0.1".parse().unwrap()) && !v6.is_empty());
    }

    /// Ranges that touch each other or the ends of the address space, in any order.
    #[test]
    fn sets_hold_their_ranges_to_the_last_address() {
        let far = u32::MAX - 9;
        let ranges = [(far + 4, u32::MAX), (3, 5), (0, 1), (far, far + 1), (6, 6), (far + 3, far + 4)];
        let of = set(&ranges);
        let wide = |(first, last): (u32, u32)| (!u128::from(!first), !u128::from(!last));
        let v6 = AddressSet::new(Vec::new(), ranges.iter().copied().map(wide).collect());
        for number in (0..10).chain(far - 3..=u32::MAX) {
            let inside = ranges.iter().any(|(first, last)| (*first..=*last).contains(&number));
            assert_eq!(of.contains(std::net::Ipv4Addr::from_bits(number).into()), inside, "{number}");
            let bits = !u128::from(!number);
            assert_eq!(v6.contains(std::net::Ipv6Addr::from_bits(bits).into()), inside, "{number} of IPv6");
        }
        let joined: Vec<(IpAddr, IpAddr)> = of.ranges().collect();
        assert_eq!(joined.len(), 4, "{joined:?}");
        assert_eq!(of.len(), 2 + 4 + 2 + 7);
    }

    proptest! {
        #[test]
        fn a_cover_holds_the_set_and_is_it_where_there_is_room(
            ranges in prop::collection::vec((0_u32..600, 0_u32..40), 0..12),
            max in 0_usize..40,
        ) {
            let ranges: Vec<(u32, u32)> = ranges.into_iter().map(|(first, more)| (first, first + more)).collect();
            let of = set(&ranges);
            prop_assert_eq!(&AddressSet::of_ranges(of.ranges()), &of);
            let cover = of.cover(max);
            prop_assert!(cover.len() <= max.max(1));
            let exact = of.cover(usize::MAX);
            for number in 0..700_u32 {
                let inside = ranges.iter().any(|(first, last)| (*first..=*last).contains(&number));
                prop_assert_eq!(of.contains(std::net::Ipv4Addr::from_bits(number).into()), inside);
                let bits = MAPPED | u128::from(number);
                let within = |of: &BTreeSet<Prefix>| of.iter().any(|one| one.bits == Prefix { length: 128, bits }.cut(one.length).bits);
                prop_assert_eq!(within(&exact), inside);
                prop_assert!(!inside || within(&cover));
            }
        }
    }
}
