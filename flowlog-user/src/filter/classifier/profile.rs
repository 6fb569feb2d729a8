use std::collections::HashMap;

use super::compiled::{Compiled, Side};
use super::lists::Lists;
use super::paged::Paged;
use super::predicate::Predicate;
use super::rows::pack;
use crate::record::{Flow, Hook, IpVersion, L4, Node, Seen};

/// Profiles that are kept at most, and words of their rows; beyond it all are forgotten and made anew.
const PROFILES_MAX: u32 = 4096;
const WORDS_MAX: usize = 1 << 20;

/// Flows that no predicate of [`super::predicate::Basis::Profile`] can tell apart have one profile. There are few, and
/// what holds for each is found out once.
#[derive(Clone, Debug, Default)]
pub(super) struct Profiles {
    /// Each key's profile, from 1.
    numbers: Paged,
    /// The same of drops, by Hubble's number of their reason too: there are few records of them.
    dropped: HashMap<(u16, i32), u32>,
    /// Profiles by the predicates that hold.
    known: HashMap<Box<[u64]>, u32>,
    /// The same predicates, as bits.
    bits: Lists<u64>,
    /// Of the filters in each row, those that nothing in the profile speaks against, as bits.
    include: Lists<u64>,
    exclude: Lists<u64>,
    node: String,
}

/// Everything of a flow that decides about such predicates, but for why it was dropped.
pub(super) fn key(flow: &Flow, with_flags: bool) -> u16 {
    // Constants, and no branch: the next flow's protocol cannot be foretold.
    let l4: u16 = match flow.l4 {
        L4::Other => 0,
        L4::Tcp { .. } => 1,
        L4::Udp { .. } => 2,
        L4::Sctp { .. } => 3,
        L4::Icmpv4 { .. } => 4,
        L4::Icmpv6 { .. } => 5,
    };
    let flags = match flow.l4 {
        L4::Tcp { flags, .. } if with_flags => flags,
        _ => 0,
    };
    let hook = match flow.hook {
        Hook::EndpointIngress => 0,
        Hook::EndpointEgress => 1,
        Hook::UplinkIngress => 2,
        Hook::UplinkEgress => 3,
    };
    let reply = flow.is_reply.map_or(0, |is_reply| 1 + u16::from(is_reply));
    let version = match flow.ip_version() {
        IpVersion::V4 => 0,
        IpVersion::V6 => 1,
    };
    (l4 << 13) | (hook << 11) | (reply << 9) | (version << 8) | u16::from(flags)
}

impl Profiles {
    /// To be asked before the flows of a batch: names of the node are part of every profile.
    pub(super) fn begin(&mut self, node: &Node) {
        if self.node != node.name {
            self.clear();
            self.node.clone_from(&node.name);
        }
    }

    /// The profile of a flow.
    #[inline]
    pub(super) fn of(&mut self, compiled: &Compiled, flow: &Flow, node: &Node) -> u32 {
        let key = key(flow, compiled.asks_flags);
        let reason = flow.dropped.map(|dropped| (key, dropped.kind.hubble));
        let known = match reason {
            Some(reason) => self.dropped.get(&reason).copied(),
            None => self.numbers.get(key).checked_sub(1),
        };
        if let Some(number) = known {
            return number;
        }
        let bits = evaluate(&compiled.profile, &Seen { flow, node }).into_boxed_slice();
        let number = match self.known.get(&bits) {
            Some(number) => *number,
            None => self.add(compiled, bits),
        };
        match reason {
            Some(reason) => drop(self.dropped.insert(reason, number)),
            None => self.numbers.set(key, number + 1),
        }
        number
    }

    /// Whether a predicate holds for a profile.
    pub(super) fn holds(&self, number: u32, predicate: u32) -> bool {
        holds(self.bits.get(number), predicate)
    }

    /// The row of include filters.
    #[inline]
    pub(super) fn include(&self, number: u32) -> &[u64] {
        self.include.get(number)
    }

    /// The row of exclude filters.
    pub(super) fn exclude(&self, number: u32) -> &[u64] {
        self.exclude.get(number)
    }

    fn add(&mut self, compiled: &Compiled, bits: Box<[u64]>) -> u32 {
        if self.bits.len() >= PROFILES_MAX || self.include.items() + self.exclude.items() >= WORDS_MAX {
            self.clear();
        }
        let row = |side: &Side| -> Vec<u64> {
            let passes = |filter| compiled.passes_profile(filter, |predicate| holds(&bits, predicate));
            pack(side.row.iter(), |filter| filter.is_some_and(passes))
        };
        self.include.push(row(&compiled.include));
        self.exclude.push(row(&compiled.exclude));
        let number = self.bits.push(bits.iter().copied());
        self.known.insert(bits, number);
        number
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.dropped.clear();
        self.known.clear();
        (self.bits, self.include, self.exclude) = Default::default();
    }
}

/// Which of the predicates hold, as bits.
pub(super) fn evaluate(predicates: &[Predicate], facts: &Seen<'_>) -> Vec<u64> {
    pack(predicates.iter(), |predicate| predicate.holds(facts))
}

pub(super) fn holds(bits: &[u64], predicate: u32) -> bool {
    bits.get(predicate as usize / 64).is_some_and(|word| word & (1 << (predicate % 64)) != 0)
}
