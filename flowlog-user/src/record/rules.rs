//! What tasks ask of a connection that is the same for each of its packets in both orientations: what the kernel can
//! test before anything is counted.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

/// A prefix of IPv6 addresses; IPv4 is IPv4-mapped (`::ffff:a.b.c.d`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// Bits that count, 0 to 128.
    pub length: u8,
    /// The address; bits that do not count are 0.
    pub bits: u128,
}

impl Prefix {
    /// The prefix of this length, not longer than it, that it lies in.
    #[must_use]
    pub fn cut(self, length: u8) -> Self {
        let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0);
        Self { length, bits: self.bits & mask }
    }

    /// First and last address: of IPv4 where all are IPv4-mapped.
    #[must_use]
    pub fn range(self) -> (IpAddr, IpAddr) {
        let host = u128::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
        let (first, last) = (Ipv6Addr::from_bits(self.bits), Ipv6Addr::from_bits(self.bits | host));
        match (first.to_ipv4_mapped(), last.to_ipv4_mapped()) {
            (Some(first), Some(last)) => (first.into(), last.into()),
            _ => (first.into(), last.into()),
        }
    }
}

/// One alternative: every part that is given must hold. The default takes everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Where a sender's address must lie.
    pub source: Option<BTreeSet<Prefix>>,
    /// Where a receiver's address must lie.
    pub destination: Option<BTreeSet<Prefix>>,
    /// Ports of the sender.
    pub source_ports: Option<BTreeSet<u16>>,
    /// Ports of the receiver.
    pub destination_ports: Option<BTreeSet<u16>>,
    /// IP protocol numbers.
    pub protocols: Option<BTreeSet<u8>>,
    /// IP versions: 4, 6.
    pub versions: Option<BTreeSet<u8>>,
    /// What of such connections.
    pub of: Of,
}

/// What of a connection is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// What interfaces show.
    #[default]
    Flows,
    /// What the kernel drops.
    Drops,
    /// Either.
    Both,
}

impl Of {
    /// What is asked for: flows, drops; `None` for neither.
    #[must_use]
    pub const fn these(flows: bool, drops: bool) -> Option<Self> {
        match (flows, drops) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Flows),
            (false, true) => Some(Self::Drops),
            (false, false) => None,
        }
    }

    /// Whether flows are.
    #[must_use]
    pub const fn flows(self) -> bool {
        matches!(self, Self::Flows | Self::Both)
    }

    /// Whether drops are.
    #[must_use]
    pub const fn drops(self) -> bool {
        matches!(self, Self::Drops | Self::Both)
    }

    /// Whatever either asks for.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        match (self.flows() || other.flows(), self.drops() || other.drops()) {
            (true, false) => Self::Flows,
            (false, _) => Self::Drops,
            (true, true) => Self::Both,
        }
    }
}

/// The alternatives of all tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// A connection that fits none of these is wanted by nobody.
    pub groups: Vec<Group>,
}

impl Group {
    /// Asks for one of these protocols too.
    pub fn only_protocols(&mut self, protocols: impl IntoIterator<Item = u8>) {
        let wanted: BTreeSet<u8> = protocols.into_iter().collect();
        self.protocols = Some(match &self.protocols {
            Some(before) => before.intersection(&wanted).copied().collect(),
            None => wanted,
        });
    }
}

impl Group {
    /// Whether every connection fits.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        *self == Self { of: self.of, ..Self::default() }
    }
}

impl Rules {
    /// Of which kinds all is wanted: flows, drops.
    fn whole(&self) -> (bool, bool) {
        let whole = || self.groups.iter().filter(|group| group.is_whole());
        (whole().any(|group| group.of.flows()), whole().any(|group| group.of.drops()))
    }

    /// The same without repetitions, in an order of their own, so that equal ones compare equal.
    #[must_use]
    pub fn in_order(&self) -> Self {
        let (flows, drops) = self.whole();
        // Of what is wanted whole nothing else needs to be said.
        let rest = |group: &Group| Of::these(group.of.flows() && !flows, group.of.drops() && !drops);
        let rest = self.groups.iter().filter_map(|group| Some(Group { of: rest(group)?, ..group.clone() }));
        let whole = Of::these(flows, drops).map(|of| Group { of, ..Group::default() });
        let groups: BTreeSet<Group> = rest.chain(whole).collect();
        Self { groups: groups.into_iter().collect() }
    }

    /// Whether whatever the others take is taken, as far as equal groups show. Both must be [`Self::in_order`].
    #[must_use]
    pub fn covers(&self, others: &Self) -> bool {
        let own: BTreeSet<&Group> = self.groups.iter().collect();
        let (flows, drops) = self.whole();
        others
            .groups
            .iter()
            .all(|group| own.contains(group) || (flows || !group.of.flows()) && (drops || !group.of.drops()))
    }

    /// Whether anybody wants drops.
    #[must_use]
    pub fn want_drops(&self) -> bool {
        self.groups.iter().any(|group| group.of.drops())
    }

    /// Everything that interfaces show is wanted.
    #[must_use]
    pub fn everything() -> Self {
        Self { groups: vec![Group::default()] }
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Of, Rules};

    #[test]
    fn rules_that_take_the_same_compare_equal() {
        let port = |port| Group { source_ports: Some([port].into()), ..Group::default() };
        let (one, two) = (port(1), port(2));
        let rules =
            |groups: &[&Group]| Rules { groups: groups.iter().copied().cloned().collect() }.in_order();
        assert_eq!(rules(&[&one, &two]), rules(&[&two, &one, &two]));
        assert_ne!(rules(&[&one]), rules(&[&two]));
        assert_eq!(rules(&[&one, &Group::default()]), Rules::everything());
    }

    #[test]
    fn rules_cover_what_they_hold_and_everything_covers_all() {
        let port = |port| Group { source_ports: Some([port].into()), ..Group::default() };
        let rules = |ports: &[u16]| Rules { groups: ports.iter().copied().map(port).collect() }.in_order();
        assert!(rules(&[1, 2]).covers(&rules(&[2])) && rules(&[]).covers(&rules(&[])));
        assert!(!rules(&[2]).covers(&rules(&[1, 2])) && !rules(&[]).covers(&rules(&[1])));
        assert!(Rules::everything().covers(&rules(&[1])) && !rules(&[1]).covers(&Rules::everything()));
        assert!(Rules::everything().covers(&Rules::everything()));
    }

    #[test]
    fn drops_are_asked_for_apart_from_flows() {
        let group = |of, port| Group { source_ports: Some([port].into()), of, ..Group::default() };
        let drops = Rules { groups: vec![group(Of::Drops, 1)] }.in_order();
        let both = Rules { groups: vec![group(Of::Both, 1)] }.in_order();
        let flows = Rules { groups: vec![group(Of::Flows, 1)] }.in_order();
        assert!(drops.want_drops() && both.want_drops() && !flows.want_drops());
        assert!(!Rules::everything().want_drops() && !Rules::everything().covers(&drops));
        // Of what is wanted whole nothing else is said; the rest stays.
        let mixed = Rules { groups: vec![group(Of::Both, 1), Group::default()] }.in_order();
        assert_eq!(mixed, Rules { groups: vec![Group::default(), group(Of::Drops, 1)] }.in_order());
        assert!(mixed.covers(&drops) && mixed.covers(&flows));
        let all = Rules { groups: vec![Group { of: Of::Drops, ..Group::default() }, Group::default()] };
        assert_eq!(all.in_order().groups.len(), 1);
        assert!(all.in_order().covers(&both) && all.in_order().covers(&drops));
    }
}
