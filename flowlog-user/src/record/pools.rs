use std::collections::BTreeSet;
use std::net::IpAddr;

use super::AddressSet;
use super::addresses::split;
use super::ranked::{Number, Ranked};

/// A named part of the address space, as it was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Unique.
    pub name: Box<str>,
    /// What it is made of.
    pub blocks: Vec<Block>,
}

/// Prefixes or ranges are what a pool is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// IPv4, or else IPv6; addresses are numbers of that family.
    pub is_v4: bool,
    /// First and last address.
    pub range: (u128, u128),
    /// Ranges within it that are reserved.
    pub reserved: Vec<(u128, u128)>,
}

/// To which pool an address belongs, and whether to a reserved part of it; a number of a [`Pools`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolTag(u32);

impl PoolTag {
    /// To none.
    pub const NONE: Self = Self(0);

    fn new(pool: usize, reserved: bool) -> Self {
        u32::try_from(pool).map_or(Self::NONE, |pool| Self((pool + 1) << 1 | u32::from(reserved)))
    }

    /// The place of its texts.
    const fn index(self) -> Option<usize> {
        (self.0 as usize).checked_sub(2)
    }
}

/// All pools as one division of the address space: an address belongs to the pool with the longest prefix around it, and
/// of pools with the same prefix to that whose name comes first. A range counts as the prefixes it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// In their order, two labels of each: of the pool, and of its reserved part.
    labels: Vec<Box<str>>,
    v4: Division<u32>,
    v6: Division<u128>,
    /// What of each pool, in the order of labels.
    sets: Vec<AddressSet>,
    overlaps: Vec<Overlap>,
}

/// A prefix that lies in several pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The prefix, as text.
    pub prefix: Box<str>,
    /// To which pool it belongs, where no longer prefix says otherwise.
    pub winner: Box<str>,
    /// Pools that have this very prefix too: the name decides.
    pub same: Vec<Box<str>>,
    /// Pools that have a shorter one around it.
    pub around: Vec<Box<str>>,
}

/// What stands before a pool's name in a label.
pub const POOL_LABEL: &str = "pool:";

/// Where the tag changes: each part begins at its start and ends before the next one's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Division<N> {
    starts: Ranked<N>,
    tags: Vec<PoolTag>,
}

/// A prefix of a pool.
struct Piece<'a> {
    first: u128,
    last: u128,
    length: u8,
    pool: usize,
    reserved: &'a [(u128, u128)],
}

impl Pools {
    /// Divides the address space; names are unique.
    #[must_use]
    pub fn new(mut pools: Vec<Pool>) -> Self {
        pools.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let labels = pools.iter().flat_map(|pool| {
            [
                format!("{POOL_LABEL}{}", pool.name).into(),
                format!("{POOL_LABEL}{}=reserved", pool.name).into(),
            ]
        });
        let mut of = Self { labels: labels.collect(), ..Self::default() };
        let mut overlaps =
            Overlaps { pools: &pools, told: BTreeSet::new(), alike: BTreeSet::new(), found: Vec::new() };
        let mut v4 = divide(&pools, true, &mut overlaps);
        v4.retain(|(start, _)| *start <= u128::from(u32::MAX));
        let v6 = divide(&pools, false, &mut overlaps);
        of.overlaps = overlaps.found;
        let mut parts: Vec<Parts> = vec![Parts::default(); of.labels.len()];
        for ((first, tag), end) in with_ends(&v4, u128::from(u32::MAX)) {
            if let (Ok(first), Ok(last)) = (u32::try_from(first), u32::try_from(end))
                && let Some((v4, _)) = tag.index().and_then(|at| parts.get_mut(at))
            {
                v4.push((first, last));
            }
        }
        for ((first, tag), end) in with_ends(&v6, u128::MAX) {
            if let Some((_, v6)) = tag.index().and_then(|at| parts.get_mut(at)) {
                v6.push((first, end));
            }
        }
        of.sets = parts.into_iter().map(|(v4, v6)| AddressSet::new(v4, v6)).collect();
        (of.v4, of.v6) = (
            Division::new(v4.into_iter().filter_map(|(start, tag)| Some((u32::try_from(start).ok()?, tag)))),
            Division::new(v6.into_iter()),
        );
        of
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The pool an address belongs to.
    #[must_use]
    pub fn tag(&self, address: IpAddr) -> PoolTag {
        match address {
            IpAddr::V4(address) => self.v4.tag(address.to_bits()),
            IpAddr::V6(address) => self.v6.tag(address.to_bits()),
        }
    }

    /// The label of an address with this tag: `pool:green`, and `pool:green=reserved` in the reserved part.
    #[must_use]
    pub fn label(&self, tag: PoolTag) -> Option<&str> {
        self.labels.get(tag.index()?).map(AsRef::as_ref)
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().step_by(2).filter_map(|label| label.strip_prefix(POOL_LABEL))
    }

    /// The addresses that belong to a pool: those that are not reserved, and those that are. `None` where there is no such
    /// pool.
    #[must_use]
    pub fn addresses(&self, name: &str) -> Option<[&AddressSet; 2]> {
        let name_of = |label: &str| label.strip_prefix(POOL_LABEL).unwrap_or_default().cmp(name);
        let (mut low, mut high) = (0, self.labels.len() / 2);
        while low < high {
            let at = low.midpoint(high);
            match name_of(self.labels.get(at * 2)?) {
                std::cmp::Ordering::Less => low = at + 1,
                std::cmp::Ordering::Greater => high = at,
                std::cmp::Ordering::Equal => {
                    return Some([self.sets.get(at * 2)?, self.sets.get(at * 2 + 1)?]);
                }
            }
        }
        None
    }

    /// Prefixes that several pools have: enough of them that each two pools with common addresses stand in one, and each
    /// pool that wins against another in one with the two.
    #[must_use]
    pub fn overlaps(&self) -> &[Overlap] {
        &self.overlaps
    }
}

/// Ranges of IPv4 and of IPv6.
type Parts = (Vec<(u32, u32)>, Vec<(u128, u128)>);

impl<N: Number> Division<N> {
    /// What comes before the first pool needs no start, and without it the search begins nearer.
    fn new(starts: impl Iterator<Item = (N, PoolTag)>) -> Self {
        let (starts, tags) = starts.skip_while(|(_, tag)| *tag == PoolTag::NONE).unzip();
        Self { starts: Ranked::new(starts), tags }
    }

    #[inline]
    fn tag(&self, number: N) -> PoolTag {
        self.starts
            .rank(number)
            .checked_sub(1)
            .and_then(|at| self.tags.get(at))
            .copied()
            .unwrap_or(PoolTag::NONE)
    }
}

/// Each start with the last number before the next.
fn with_ends(starts: &[(u128, PoolTag)], last: u128) -> impl Iterator<Item = ((u128, PoolTag), u128)> + '_ {
    let ends = starts.iter().skip(1).map(|(next, _)| next.saturating_sub(1)).chain([last]);
    starts.iter().copied().zip(ends)
}

/// The starts of the parts of one family.
fn divide(pools: &[Pool], is_v4: bool, overlaps: &mut Overlaps<'_>) -> Vec<(u128, PoolTag)> {
    let mut pieces = Vec::new();
    for (number, pool) in pools.iter().enumerate() {
        for block in pool.blocks.iter().filter(|block| block.is_v4 == is_v4) {
            let (first, last) = block.range;
            split(first, last, |prefix| {
                let size = 128 - u32::from(prefix.length);
                let last = prefix.bits | !u128::MAX.checked_shl(size).unwrap_or(0);
                let (first, length) = (prefix.bits, prefix.length);
                pieces.push(Piece { first, last, length, pool: number, reserved: &block.reserved });
            });
        }
    }
    // A prefix comes before those within it; of equal ones the last counts, so the first name comes last.
    pieces.sort_by_key(|piece| (piece.first, piece.length, usize::MAX - piece.pool));
    let mut parts = Starts { starts: vec![(0, PoolTag::NONE)], ended: false };
    let mut open: Vec<&Piece<'_>> = Vec::new();
    for alike in pieces.chunk_by(|one, other| (one.first, one.length) == (other.first, other.length)) {
        let Some(first) = alike.first() else { continue };
        while let Some(top) = open.pop_if(|top| top.last < first.first) {
            parts.close(top, open.last().copied());
        }
        overlaps.note(alike, &open, is_v4);
        for piece in alike {
            parts.begin(piece);
            open.push(piece);
        }
    }
    while let Some(top) = open.pop() {
        parts.close(top, open.last().copied());
    }
    parts.starts
}

/// Overlaps in the making.
struct Overlaps<'a> {
    pools: &'a [Pool],
    /// Winner and loser of what was found.
    told: BTreeSet<(usize, usize)>,
    /// Winners with all losers, of prefixes that more than one pool has.
    alike: BTreeSet<(usize, Vec<usize>)>,
    found: Vec<Overlap>,
}

impl Overlaps<'_> {
    /// Notes a prefix that some pools have, first names last, and others around it, unless the same was said of another.
    fn note(&mut self, alike: &[Piece<'_>], open: &[&Piece<'_>], is_v4: bool) {
        let Some((winner, same)) = alike.split_last() else { return };
        let same = same.iter().map(|piece| piece.pool).filter(|pool| *pool != winner.pool);
        let same: BTreeSet<usize> = same.collect();
        let around: BTreeSet<usize> = open.iter().map(|piece| piece.pool).collect();
        let around: Vec<usize> =
            around.into_iter().filter(|pool| *pool != winner.pool && !same.contains(pool)).collect();
        let mut is_new = false;
        for loser in same.iter().chain(&around) {
            is_new |= self.told.insert((winner.pool, *loser));
        }
        if !same.is_empty() {
            let losers = same.iter().chain(&around).copied().collect();
            is_new |= self.alike.insert((winner.pool, losers));
        }
        if !is_new {
            return;
        }
        let name = |pool: &usize| self.pools.get(*pool).map(|pool| pool.name.clone()).unwrap_or_default();
        let prefix = if is_v4 {
            let address = std::net::Ipv4Addr::from_bits(u32::try_from(winner.first).unwrap_or(0));
            format!("{address}/{}", winner.length.saturating_sub(96))
        } else {
            format!("{}/{}", std::net::Ipv6Addr::from_bits(winner.first), winner.length)
        };
        self.found.push(Overlap {
            prefix: prefix.into(),
            winner: name(&winner.pool),
            same: same.iter().map(name).collect(),
            around: around.iter().map(name).collect(),
        });
    }
}

/// Parts in the making.
struct Starts {
    starts: Vec<(u128, PoolTag)>,
    /// The last address has been passed.
    ended: bool,
}

impl Starts {
    fn push(&mut self, at: u128, tag: PoolTag) {
        if self.ended {
            return;
        }
        match self.starts.last_mut() {
            Some(last) if last.0 == at => last.1 = tag,
            Some(last) if last.1 == tag => return,
            _ => self.starts.push((at, tag)),
        }
        // Overwriting a start can make it equal to the one before.
        if let [.., before, last] = self.starts.as_slice()
            && before.1 == last.1
        {
            self.starts.pop();
        }
    }

    /// A prefix begins: its reserved parts are known from here on, and whatever begins later lies over them.
    fn begin(&mut self, piece: &Piece<'_>) {
        self.lay(piece, piece.first);
    }

    /// A prefix has ended, and the one around it goes on.
    fn close(&mut self, piece: &Piece<'_>, around: Option<&Piece<'_>>) {
        // What was laid ahead for the closed one ends with it.
        let Some(after) = piece.last.checked_add(1) else {
            self.ended = true;
            return;
        };
        match around {
            Some(around) if around.last >= after => self.lay(around, after),
            Some(_) => {}
            None => self.push(after, PoolTag::NONE),
        }
    }

    /// Says what a prefix is from `at` on, until its end or until something is laid over it.
    fn lay(&mut self, piece: &Piece<'_>, at: u128) {
        while self.starts.last().is_some_and(|(start, _)| *start > at) {
            self.starts.pop();
        }
        let reserved =
            |number: u128| piece.reserved.iter().any(|(first, last)| (*first..=*last).contains(&number));
        self.push(at, PoolTag::new(piece.pool, reserved(at)));
        let mut edges: Vec<u128> = Vec::new();
        for (first, last) in piece.reserved {
            edges.push(*first);
            edges.extend(last.checked_add(1));
        }
        edges.sort_unstable();
        for edge in edges.into_iter().filter(|edge| *edge > at && *edge <= piece.last) {
            self.push(edge, PoolTag::new(piece.pool, reserved(edge)));
        }
    }
}

#[cfg(test)]
#[path = "pools_tests.rs"]
mod tests;
