use crate::Packet;
use flowlog_abi::{FlowKey, protocol, tcp};

impl Packet {
    /// The connection's key and this packet's direction in it: 0 from the low to the high side, 1 back.
    #[must_use]
    #[inline(always)]
    pub fn key(&self) -> (FlowKey, usize) {
        let source = (u128::from_be_bytes(self.source), self.source_port);
        let destination = (u128::from_be_bytes(self.destination), self.destination_port);
        let forward = source.0 < destination.0 || (source.0 == destination.0 && source.1 <= destination.1);
        let mut key = FlowKey {
            low: self.source,
            high: self.destination,
            low_port: self.source_port,
            high_port: self.destination_port,
            protocol: self.protocol,
            version: self.version,
            kind: self.kind,
        };
        if forward {
            return (key, 0);
        }
        key.low = self.destination;
        key.high = self.source;
        key.low_port = self.destination_port;
        key.high_port = self.source_port;
        (key, 1)
    }

    /// Direction of the side that opened the connection, if this is the first packet seen of it: the sender, unless
    /// the packet is an answer by itself (SYN with ACK, echo reply).
    #[must_use]
    #[inline(always)]
    pub const fn opener(&self, direction: usize) -> usize {
        let answer = match self.protocol {
            protocol::TCP => self.tcp_flags & (tcp::SYN | tcp::ACK) == tcp::SYN | tcp::ACK,
            protocol::ICMP => self.kind & flowlog_abi::KIND_ECHO != 0 && self.icmp_type == 0,
            protocol::ICMPV6 => self.kind & flowlog_abi::KIND_ECHO != 0 && self.icmp_type == 129,
            _ => false,
        };
        if answer { 1 - (direction & 1) } else { direction & 1 }
    }

    /// Whether a connection that is first seen by this packet was opened before we looked.
    #[must_use]
    #[inline(always)]
    pub const fn midstream(&self) -> bool {
        self.protocol == protocol::TCP && self.tcp_flags & tcp::SYN == 0
    }
}

/// The mark that an entry of this key carries while it may be added to; never 0.
#[must_use]
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the words and the hash are cut on purpose")]
pub const fn tag(key: &FlowKey) -> u32 {
    let low = u128::from_ne_bytes(key.low);
    let high = u128::from_ne_bytes(key.high);
    let rest = (key.low_port as u64) << 48
        | (key.high_port as u64) << 32
        | (key.protocol as u64) << 24
        | (key.version as u64) << 16
        | key.kind as u64;
    // Odd constants, independent products: short for the processor, and every bit reaches the upper half.
    let hash = (low as u64 ^ 0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        .wrapping_add(((low >> 64) as u64).wrapping_mul(0x94d0_49bb_1331_11eb))
        .wrapping_add((high as u64).wrapping_mul(0xd6e8_feb8_6659_fd93))
        .wrapping_add(((high >> 64) as u64).wrapping_mul(0xa076_1d64_78bd_642f))
        .wrapping_add(rest.wrapping_mul(0xe703_7ed1_a0b4_28db));
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    let tag = (mixed >> 32) as u32;
    if tag == 0 { 1 } else { tag }
}
