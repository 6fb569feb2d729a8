//! What tasks ask of a connection that is the same for each of its packets in both orientations: what the kernel can
//! test before anything is counted.

use std::collections::BTreeSet;

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

impl Rules {
    /// The same without repetitions, in an order of their own, so that equal ones compare equal.
    #[must_use]
    pub fn in_order(&self) -> Self {
        if self.groups.contains(&Group::default()) {
            return Self::everything();
        }
        let groups: BTreeSet<&Group> = self.groups.iter().collect();
        Self { groups: groups.into_iter().cloned().collect() }
    }

    /// Whether whatever the others take is taken, as far as equal groups show. Both must be [`Self::in_order`].
    #[must_use]
    pub fn covers(&self, others: &Self) -> bool {
        let own: BTreeSet<&Group> = self.groups.iter().collect();
        own.contains(&Group::default()) || others.groups.iter().all(|group| own.contains(group))
    }

    /// Everything is wanted.
    #[must_use]
    pub fn everything() -> Self {
        Self { groups: vec![Group::default()] }
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Rules};

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
}
