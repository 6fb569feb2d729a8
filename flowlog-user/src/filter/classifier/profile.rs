use super::compiled::Compiled;
use super::lists::Lists;
use super::paged::Paged;
use super::predicate::Predicate;
use crate::record::{Flow, Hook, IpVersion, L4, Node, Seen};

/// Profiles that are kept at most, and filters that they name together; beyond it all are forgotten and made anew.
const PROFILES_MAX: u32 = 4096;
const NAMED_MAX: usize = 1 << 20;

/// Flows that no predicate of [`super::predicate::Basis::Profile`] can tell apart have one profile. There are few, and
/// what holds for each is found out once.
#[derive(Clone, Debug, Default)]
pub(super) struct Profiles {
    /// Each key's profile, from 1.
    numbers: Paged,
    /// The predicates that hold, as bits.
    bits: Lists<u64>,
    /// Filters that are looked for under nothing else, and that nothing in the profile speaks against.
    include: Lists<u32>,
    exclude: Lists<u32>,
    node: String,
}

/// Everything of a flow that decides about such predicates.
pub(super) fn key(flow: &Flow, with_flags: bool) -> u16 {
    let (l4, flags) = match flow.l4 {
        L4::Other => (0, 0),
        L4::Tcp { flags, .. } => (1, if with_flags { flags } else { 0 }),
        L4::Udp { .. } => (2, 0),
        L4::Sctp { .. } => (3, 0),
        L4::Icmpv4 { .. } => (4, 0),
        L4::Icmpv6 { .. } => (5, 0),
    };
    let hook = match flow.hook {
        Hook::EndpointIngress => 0,
        Hook::EndpointEgress => 1,
        Hook::UplinkIngress => 2,
        Hook::UplinkEgress => 3,
    };
    let reply = match flow.is_reply {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    };
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
    pub(super) fn of(&mut self, compiled: &Compiled, flow: &Flow, node: &Node) -> u32 {
        let key = key(flow, compiled.asks_flags);
        if let Some(number) = self.numbers.get(key).checked_sub(1) {
            return number;
        }
        if self.bits.len() >= PROFILES_MAX || self.include.items() + self.exclude.items() >= NAMED_MAX {
            self.clear();
        }
        let number = self.add(compiled, &Seen { flow, node });
        self.numbers.set(key, number + 1);
        number
    }

    /// Whether a predicate holds for a profile.
    pub(super) fn holds(&self, number: u32, predicate: u32) -> bool {
        holds(self.bits.get(number), predicate)
    }

    pub(super) fn include(&self, number: u32) -> &[u32] {
        self.include.get(number)
    }

    pub(super) fn exclude(&self, number: u32) -> &[u32] {
        self.exclude.get(number)
    }

    fn add(&mut self, compiled: &Compiled, facts: &Seen<'_>) -> u32 {
        let bits = evaluate(&compiled.profile, facts);
        let passes = |filter: &&u32| compiled.passes_profile(**filter, |predicate| holds(&bits, predicate));
        self.include.push(compiled.include_by_profile.iter().filter(passes).copied());
        self.exclude.push(compiled.exclude_by_profile.iter().filter(passes).copied());
        self.bits.push(bits)
    }

    fn clear(&mut self) {
        self.numbers.clear();
        (self.bits, self.include, self.exclude) = Default::default();
    }
}

/// Which of the predicates hold, as bits.
pub(super) fn evaluate(predicates: &[Predicate], facts: &Seen<'_>) -> Vec<u64> {
    let words = predicates.chunks(64).map(|word| {
        let bits = word.iter().enumerate().map(|(bit, predicate)| u64::from(predicate.holds(facts)) << bit);
        bits.fold(0, |word, bit| word | bit)
    });
    words.collect()
}

pub(super) fn holds(bits: &[u64], predicate: u32) -> bool {
    bits.get(predicate as usize / 64).is_some_and(|word| word & (1 << (predicate % 64)) != 0)
}
