use crate::FlowKey;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Groups of rules that one set holds at most: bits of a word.
pub const GROUPS_MAX: usize = 64;
/// Bit of the control word: connections are tested; without it everything passes. The low 32 bits are the generation,
/// whose low bit names the set.
pub const CONTROL_TEST: u64 = 1 << 32;
/// The same for drops.
pub const CONTROL_TEST_DROPS: u64 = 1 << 33;
/// Sets of the cache of rejected connections on each CPU; a power of two.
pub const REJECTED_SETS: u32 = 1024;
/// Connections in each set: with one, a quarter as many connections as there are places already fight for them.
pub const REJECTED_WAYS: usize = 4;
/// Bits of a prefix's key before its address: the number of the set, so that both share a map.
pub const PREFIX_SET_BITS: u32 = 64;

/// For one address or port: the groups that take it in each place. Bit n stands for group n.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Groups {
    /// As the sender's.
    pub source: u64,
    /// As the receiver's.
    pub destination: u64,
}

/// What a set says beside its addresses, ports and protocols.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct RuleBase {
    /// Groups that take a port that is not listed.
    pub ports: Groups,
    /// Groups that take IPv4.
    pub ipv4: u64,
    /// Groups that take IPv6.
    pub ipv6: u64,
    /// Groups that take what is seen at interfaces.
    pub flows: u64,
    /// Groups that take what the kernel drops.
    pub drops: u64,
}

/// Connections that no task wants, remembered so that the next packet of each costs one look.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Rejected {
    /// The tag of each; 0 = none.
    pub tags: [u32; REJECTED_WAYS],
    /// Generation of the rules that rejected them; 0 = none.
    pub generation: u32,
    /// How many were put here; the oldest goes first.
    pub count: u32,
    /// The whole keys: a hash of one could reject another connection.
    pub keys: [FlowKey; REJECTED_WAYS],
}

/// Data of an address's key in the map of prefixes: the set, then the address.
#[must_use]
#[inline(always)]
pub const fn prefix_data(set: u32, address: [u8; 16]) -> [u8; 24] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = address;
    let [_, _, _, set] = (set & 1).to_be_bytes();
    [0, 0, 0, 0, 0, 0, 0, set, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// Key of a port in the map of ports.
#[must_use]
#[inline(always)]
pub const fn port_key(set: u32, port: u16) -> u32 {
    (set & 1) << 16 | port as u32
}

/// Index of a protocol in the array of protocols.
#[must_use]
#[inline(always)]
pub const fn protocol_index(set: u32, protocol: u8) -> u32 {
    (set & 1) << 8 | protocol as u32
}
