//! Later fragments get the ports of their first one, which is remembered by what all of them have in common.
//!
//! The interface and the side of the node are not part of that: the same fragments cross several hooks. For the same
//! reason the last fragment does not make the first forgotten at once, though a 16-bit id comes again within seconds.

use crate::Packet;
use flowlog_abi::KIND_FRAGMENT;

/// Bit of [`Packet::fragment`]: the first one, which has the transport header.
pub const FIRST: u8 = 1;
/// Bit of [`Packet::fragment`]: not the first.
pub const LATER: u8 = 2;
/// Bit of [`Packet::fragment`]: no other follows in the packet that was cut up.
pub const LAST: u8 = 4;

/// Bit of [`Packet::fragment`] that has nothing to do with the others: it was found inside a tunnel.
pub const INSIDE: u8 = 8;

/// How long the rest of a packet may take.
const REST_NS: u64 = 30_000_000_000;
/// How long the last fragment may take through the node.
const PASSAGE_NS: u64 = 1_000_000_000;

/// What all fragments of a packet have in common.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentKey {
    source: [u8; 16],
    destination: [u8; 16],
    id: u32,
    protocol: u8,
    version: u8,
    zero: [u8; 2],
}

/// What a first fragment says for those that follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstFragment {
    until_ns: u64,
    /// Of the first fragment itself or, where it carries a tunnel that is looked into, of the packet inside.
    source: [u8; 16],
    destination: [u8; 16],
    source_port: u16,
    destination_port: u16,
    kind: u16,
    icmp_type: u8,
    icmp_code: u8,
    protocol: u8,
    version: u8,
    inside: u8,
    zero: [u8; 5],
}

impl FragmentKey {
    /// The key of a fragment.
    #[must_use]
    #[inline(always)]
    pub const fn of(packet: &Packet) -> Self {
        Self {
            source: packet.source,
            destination: packet.destination,
            id: packet.fragment_id,
            protocol: packet.protocol,
            version: packet.version,
            zero: [0; 2],
        }
    }
}

impl FirstFragment {
    /// What is to be remembered of a first fragment.
    #[must_use]
    #[inline(always)]
    pub const fn of(packet: &Packet, now_ns: u64) -> Self {
        Self {
            until_ns: now_ns + REST_NS,
            source: packet.source,
            destination: packet.destination,
            source_port: packet.source_port,
            destination_port: packet.destination_port,
            kind: packet.kind,
            icmp_type: packet.icmp_type,
            icmp_code: packet.icmp_code,
            protocol: packet.protocol,
            version: packet.version,
            inside: packet.fragment & INSIDE,
            zero: [0; 5],
        }
    }

    /// Whether this is of no use any more.
    #[must_use]
    #[inline(always)]
    pub const fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns
    }

    /// Gives a later fragment what it lacks, if the first is not too long ago.
    #[inline(always)]
    pub const fn complete(&mut self, packet: &mut Packet, now_ns: u64) {
        if self.is_over(now_ns) {
            return;
        }
        packet.kind = packet.kind & !KIND_FRAGMENT | self.kind;
        packet.source = self.source;
        packet.destination = self.destination;
        packet.protocol = self.protocol;
        packet.version = self.version;
        packet.fragment |= self.inside;
        packet.source_port = self.source_port;
        packet.destination_port = self.destination_port;
        packet.icmp_type = self.icmp_type;
        packet.icmp_code = self.icmp_code;
        if packet.fragment & LAST != 0 && self.until_ns > now_ns + PASSAGE_NS {
            self.until_ns = now_ns + PASSAGE_NS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, FirstFragment, FragmentKey, LAST, LATER, PASSAGE_NS, REST_NS};
    use crate::{Packet, parse_raw_ip};
    use flowlog_abi::{KIND_ECHO, KIND_FRAGMENT};

    /// A ping's fragment: flags and offset, id.
    fn fragment(at: [u8; 2], id: u8) -> Packet {
        let packet = [
            0x45, 0, 0, 28, 0, id, at[0], at[1], 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 0, 0x12,
            0x34, 0, 1,
        ];
        parse_raw_ip(&packet[..]).expect("a fragment")
    }

    #[test]
    fn a_later_fragment_gets_what_the_first_said() {
        let (first, mut later) = (fragment([0x20, 0], 7), fragment([0x20, 1], 7));
        assert_eq!((first.fragment, later.fragment, later.kind), (FIRST, LATER, KIND_FRAGMENT));
        assert_eq!(FragmentKey::of(&first), FragmentKey::of(&later));
        assert_ne!(FragmentKey::of(&first), FragmentKey::of(&fragment([0, 1], 8)));
        let mut said = FirstFragment::of(&first, 5);
        said.complete(&mut later, 5 + REST_NS - 1);
        assert_eq!((later.kind, later.source_port, later.destination_port), (KIND_ECHO, 0x1234, 0x1234));
        assert_eq!(first.key(), later.key());
    }

    #[test]
    fn it_is_forgotten_after_its_time_and_soon_after_the_last() {
        let first = fragment([0x20, 0], 7);
        let mut late = fragment([0x20, 1], 7);
        let mut said = FirstFragment::of(&first, 5);
        said.complete(&mut late, 5 + REST_NS);
        assert_eq!((late.kind, late.source_port), (KIND_FRAGMENT, 0));
        let last = fragment([0, 1], 7);
        assert_eq!(last.fragment, LATER | LAST);
        let (mut here, mut at_egress, mut another) = (last, last, last);
        said.complete(&mut here, 10);
        said.complete(&mut at_egress, 10 + PASSAGE_NS - 1);
        said.complete(&mut another, 10 + PASSAGE_NS);
        assert_eq!([here.kind, at_egress.kind, another.kind], [KIND_ECHO, KIND_ECHO, KIND_FRAGMENT]);
    }
}
