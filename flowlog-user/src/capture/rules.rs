//! Rules as the tables that the kernel looks things up in: one bit for each group.
//!
//! More groups, prefixes or ports than there is room for make the tables wider, never narrower, and [`Tables::widened`]
//! says so.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use flowlog_abi::{GROUPS_MAX, Groups, RuleBase};
use flowlog_ebpf::Lookup;

use crate::limits::{RULE_PORTS_MAX, RULE_PREFIXES_MAX};
use crate::record::rules::{Group, Prefix, Rules};

/// Groups that each further one is compared with: thousands of filters must not take seconds.
const COMPARED_MAX: usize = 4 * GROUPS_MAX;

/// The rules of all tasks, ready for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Some task wants everything that interfaces show: none of it needs to be tested.
    pub everything: bool,
    /// The same of drops.
    pub every_drop: bool,
    /// What is not in a list.
    pub base: RuleBase,
    /// Groups by prefix, those of shorter prefixes included; there is always one of length 0.
    pub prefixes: BTreeMap<Prefix, Groups>,
    /// Groups by port.
    pub ports: BTreeMap<u16, Groups>,
    /// Groups by protocol.
    pub protocols: [u64; 256],
    /// What had to be widened, in words.
    pub widened: Vec<String>,
}

impl Tables {
    /// Makes the tables.
    #[must_use]
    pub fn new(rules: &Rules) -> Self {
        let mut widened = Vec::new();
        let mut groups = joined(&rules.groups, &mut widened);
        shorten(&mut groups, &mut widened);
        let mut tables = Self {
            everything: groups.iter().any(|group| group.is_whole() && group.of.flows()),
            every_drop: groups.iter().any(|group| group.is_whole() && group.of.drops()),
            base: RuleBase::default(),
            prefixes: BTreeMap::new(),
            ports: BTreeMap::new(),
            protocols: [0; 256],
            widened,
        };
        for (number, group) in groups.iter().enumerate() {
            tables.add(group, 1 << number);
        }
        tables.inherit();
        tables
    }

    fn add(&mut self, group: &Group, bit: u64) {
        let whole = BTreeSet::from([Prefix { length: 0, bits: 0 }]);
        for (asked, groups) in
            [(group.of.flows(), &mut self.base.flows), (group.of.drops(), &mut self.base.drops)]
        {
            *groups |= if asked { bit } else { 0 };
        }
        for prefix in group.source.as_ref().unwrap_or(&whole) {
            self.prefixes.entry(*prefix).or_default().source |= bit;
        }
        for prefix in group.destination.as_ref().unwrap_or(&whole) {
            self.prefixes.entry(*prefix).or_default().destination |= bit;
        }
        for port in group.source_ports.iter().flatten() {
            self.ports.entry(*port).or_default().source |= bit;
        }
        for port in group.destination_ports.iter().flatten() {
            self.ports.entry(*port).or_default().destination |= bit;
        }
        if group.source_ports.is_none() {
            self.base.ports.source |= bit;
        }
        if group.destination_ports.is_none() {
            self.base.ports.destination |= bit;
        }
        for (number, groups) in (0..=u8::MAX).zip(&mut self.protocols) {
            if group.protocols.as_ref().is_none_or(|wanted| wanted.contains(&number)) {
                *groups |= bit;
            }
        }
        for (version, groups) in [(4, &mut self.base.ipv4), (6, &mut self.base.ipv6)] {
            if group.versions.as_ref().is_none_or(|wanted| wanted.contains(&version)) {
                *groups |= bit;
            }
        }
    }

    /// Gives each prefix what the shorter ones around it have, and each port what all ports have.
    fn inherit(&mut self) {
        self.prefixes.entry(Prefix { length: 0, bits: 0 }).or_default();
        let lengths: BTreeSet<u8> = self.prefixes.keys().map(|prefix| prefix.length).collect();
        // Shorter ones come first, so each finds its parent complete.
        let all: Vec<Prefix> = self.prefixes.keys().copied().collect();
        for prefix in all {
            let parent = lengths
                .range(..prefix.length)
                .rev()
                .find_map(|length| self.prefixes.get(&cut(prefix.bits, *length)).copied());
            if let (Some(parent), Some(own)) = (parent, self.prefixes.get_mut(&prefix)) {
                join(own, parent);
            }
        }
        for own in self.ports.values_mut() {
            join(own, self.base.ports);
        }
    }
}

const fn join(own: &mut Groups, other: Groups) {
    own.source |= other.source;
    own.destination |= other.destination;
}

/// The prefix of this length that an address lies in.
fn cut(bits: u128, length: u8) -> Prefix {
    Prefix { length: 128, bits }.cut(length)
}

/// Makes an alternative one that takes at least what each of two takes.
fn join_into(own: &mut Group, other: &Group) {
    fn widen<T: Copy + Ord>(own: &mut Option<BTreeSet<T>>, other: Option<&BTreeSet<T>>) {
        match (own.as_mut(), other) {
            (Some(own), Some(other)) => own.extend(other),
            _ => *own = None,
        }
    }
    widen(&mut own.source, other.source.as_ref());
    widen(&mut own.destination, other.destination.as_ref());
    widen(&mut own.source_ports, other.source_ports.as_ref());
    widen(&mut own.destination_ports, other.destination_ports.as_ref());
    widen(&mut own.protocols, other.protocols.as_ref());
    widen(&mut own.versions, other.versions.as_ref());
    own.of = own.of.or(other.of);
}

/// Which parts a group asks for.
const fn shape(group: &Group) -> [bool; 6] {
    [
        group.source.is_some(),
        group.destination.is_some(),
        group.source_ports.is_some(),
        group.destination_ports.is_some(),
        group.protocols.is_some(),
        group.versions.is_some(),
    ]
}

/// Whether two groups of one shape differ in at most one part, so that nothing else is taken when they are joined.
fn alike(one: &Group, other: &Group) -> bool {
    let differences = [
        one.source != other.source,
        one.destination != other.destination,
        one.source_ports != other.source_ports,
        one.destination_ports != other.destination_ports,
        one.protocols != other.protocols,
        one.versions != other.versions,
    ];
    one.of == other.of
        && shape(one) == shape(other)
        && differences.into_iter().filter(|differs| *differs).count() <= 1
}

/// At most as many groups as there are bits.
fn joined(groups: &[Group], widened: &mut Vec<String>) -> Vec<Group> {
    let mut kept: Vec<Group> = Vec::new();
    for group in groups.iter().collect::<BTreeSet<_>>() {
        match kept.iter_mut().take(COMPARED_MAX).find(|other| alike(other, group)) {
            Some(other) => join_into(other, group),
            None => kept.push(group.clone()),
        }
    }
    if kept.len() <= GROUPS_MAX {
        return kept;
    }
    widened.push(format!(
        "{} different filters are more than the {GROUPS_MAX} that the kernel can tell apart; those that ask for the \
         same fields are joined there",
        kept.len()
    ));
    let mut by_shape: BTreeMap<[bool; 6], Group> = BTreeMap::new();
    for group in kept {
        match by_shape.entry(shape(&group)) {
            Entry::Vacant(place) => _ = place.insert(group),
            Entry::Occupied(mut other) => join_into(other.get_mut(), &group),
        }
    }
    by_shape.into_values().collect()
}

/// Lets go of the longest lists while all together are too long.
fn shorten(groups: &mut [Group], widened: &mut Vec<String>) {
    fn total<T: Ord + Copy>(lists: &[&mut Option<BTreeSet<T>>]) -> usize {
        let all: BTreeSet<T> = lists.iter().filter_map(|list| list.as_ref()).flatten().copied().collect();
        all.len()
    }
    fn let_go<T: Ord + Copy>(mut lists: Vec<&mut Option<BTreeSet<T>>>, max: usize) -> usize {
        let mut count = 0;
        while total(&lists) > max
            && let Some(longest) = lists.iter_mut().max_by_key(|list| list.as_ref().map_or(0, BTreeSet::len))
        {
            **longest = None;
            count += 1;
        }
        count
    }
    let addresses = groups.iter_mut().flat_map(|group| [&mut group.source, &mut group.destination]).collect();
    // One is for all addresses.
    let lists = let_go(addresses, RULE_PREFIXES_MAX - 1);
    if lists > 0 {
        widened.push(format!(
            "more than {RULE_PREFIXES_MAX} different addresses and prefixes: the kernel does not test {lists} lists of them"
        ));
    }
    let ports =
        groups.iter_mut().flat_map(|group| [&mut group.source_ports, &mut group.destination_ports]).collect();
    let lists = let_go(ports, RULE_PORTS_MAX);
    if lists > 0 {
        widened.push(format!(
            "more than {RULE_PORTS_MAX} different ports: the kernel does not test {lists} lists of them"
        ));
    }
}

impl Lookup for Tables {
    fn base(&self) -> Option<RuleBase> {
        Some(self.base)
    }

    fn address(&self, address: &[u8; 16]) -> Option<Groups> {
        let bits = u128::from_be_bytes(*address);
        (0..=128).rev().find_map(|length| self.prefixes.get(&cut(bits, length)).copied())
    }

    fn port(&self, port: u16) -> Option<Groups> {
        self.ports.get(&port).copied()
    }

    fn protocol(&self, protocol: u8) -> Option<u64> {
        self.protocols.get(usize::from(protocol)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(ports: impl IntoIterator<Item = u16>) -> Option<BTreeSet<u16>> {
        Some(ports.into_iter().collect())
    }

    fn address(last: u128) -> Prefix {
        Prefix { length: 128, bits: last }
    }

    #[test]
    fn groups_that_differ_in_one_part_are_one_group_without_taking_more() {
        let one = Group { source_ports: ports([1]), ..Group::default() };
        let two = Group { source_ports: ports([2]), ..Group::default() };
        let other = Group { destination_ports: ports([2]), ..Group::default() };
        let tables = Tables::new(&Rules { groups: vec![one, two, other] });
        assert_eq!(tables.protocols[6], 0b11);
        assert_eq!(
            (tables.ports[&1], tables.ports[&2].source & !tables.ports[&1].source),
            (tables.ports[&1], 0)
        );
        assert!(tables.widened.is_empty() && !tables.everything);
    }

    #[test]
    fn what_does_not_fit_widens_and_says_so() {
        let pair = |n: u16| Group {
            source_ports: ports([n]),
            source: Some(BTreeSet::from([address(u128::from(n))])),
            ..Group::default()
        };
        let tables = Tables::new(&Rules { groups: (0..65).map(pair).collect() });
        assert_eq!((tables.protocols[6], tables.widened.len()), (1, 1));
        let many = Group { source_ports: ports(0..=8192), ..Group::default() };
        let tables = Tables::new(&Rules { groups: vec![many] });
        assert_eq!((tables.ports.len(), tables.base.ports.source, tables.widened.len()), (0, 1, 1));
        let many = Group { source: Some((0..1 << 15).map(address).collect()), ..Group::default() };
        assert_eq!(Tables::new(&Rules { groups: vec![many] }).widened.len(), 1);
        // What the target names fits.
        let large = Group {
            source: Some((0..10_000).map(address).collect()),
            destination_ports: ports(0..1_000),
            ..Group::default()
        };
        let tables = Tables::new(&Rules { groups: vec![large] });
        assert_eq!((tables.prefixes.len(), tables.ports.len(), tables.widened.len()), (10_001, 1_000, 0));
    }

    #[test]
    fn a_longer_prefix_has_what_the_shorter_ones_around_it_have() {
        let within = |length, bits| Some(BTreeSet::from([Prefix { length, bits }]));
        let wide = Group { source: within(8, 0x0a << 120), ..Group::default() };
        let narrow = Group { destination: within(16, 0x0a01 << 112), ..Group::default() };
        let tables = Tables::new(&Rules { groups: vec![wide, narrow] });
        let groups = |bits: u128| tables.address(&bits.to_be_bytes()).unwrap();
        let (outside, wide, narrow) = (groups(0), groups(0x0a02 << 112), groups(0x0a01 << 112));
        assert_eq!(wide.source & !outside.source, narrow.source & !outside.source);
        assert!(wide.source != outside.source && wide.destination == outside.destination);
        assert!(narrow.destination != wide.destination);
    }

    #[test]
    fn a_task_that_wants_everything_needs_no_test_and_no_task_wants_nothing() {
        assert!(Tables::new(&Rules::everything()).everything);
        let nothing = Tables::new(&Rules::default());
        assert!(!nothing.everything && nothing.protocols == [0; 256]);
    }
}
