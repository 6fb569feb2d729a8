use crate::fragments::{FIRST, INSIDE, LATER};

/// What a packet's headers say. IPv4 addresses are IPv4-mapped (`::ffff:a.b.c.d`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Sender's address, network byte order.
    pub source: [u8; 16],
    /// Receiver's address, network byte order.
    pub destination: [u8; 16],
    /// Sender's port. ICMP echo: the id. Other ICMP: type << 8 | code. Else 0.
    pub source_port: u16,
    /// Receiver's port; for ICMP the same as `source_port`.
    pub destination_port: u16,
    /// IP protocol number of the innermost header that was followed.
    pub protocol: u8,
    /// IP version: 4 or 6.
    pub version: u8,
    /// Bits of `flowlog_abi::KIND_*`.
    pub kind: u16,
    /// TCP's flag byte, else 0.
    pub tcp_flags: u8,
    /// ICMP type, else 0.
    pub icmp_type: u8,
    /// ICMP code, else 0.
    pub icmp_code: u8,
    /// Bits of `fragments::{FIRST, LATER, LAST}`, 0 for a whole packet; and `fragments::INSIDE`.
    pub fragment: u8,
    /// What all fragments of a packet have in common; 0 for a whole packet.
    pub fragment_id: u32,
    /// Number of the outermost VLAN tag, in the data or in the kernel's metadata (upper half; 0 = none, or a priority
    /// tag), and of the tag inside that one (lower half; 0 = none).
    pub vlans: u32,
    /// Bytes of all headers before the innermost payload, link header included.
    pub header_bytes: u32,
    /// Bytes of a jumbo header within `header_bytes` (8 or 0): the kernel puts one in front of big offloaded TCP
    /// packets, and it never reaches the wire.
    pub jumbo_bytes: u32,
}

impl Packet {
    /// Notes the tag that the kernel has taken out of the packet: the outermost.
    #[inline(always)]
    pub const fn tag_in_metadata(&mut self, tci: u16) {
        let vlan = tci & super::link::VLAN_BITS;
        if vlan != 0 {
            self.vlans = (vlan as u32) << 16 | self.vlans >> 16;
        }
    }

    /// Whether it is a piece of another packet.
    #[must_use]
    #[inline(always)]
    pub const fn is_fragment(&self) -> bool {
        self.fragment & (FIRST | LATER) != 0
    }

    /// Whether it was found inside a tunnel.
    #[must_use]
    #[inline(always)]
    pub const fn is_inside(&self) -> bool {
        self.fragment & INSIDE != 0
    }
}

/// `::ffff:` in front of the four bytes. By words: a compiler that sees bytes keeps each in a register of its own, and
/// the BPF stack has no room for those.
#[inline(always)]
pub(super) const fn mapped(address: [u8; 4]) -> [u8; 16] {
    let words = (u32::from_le_bytes(address) as u128) << 96 | 0xffff << 80;
    words.to_le_bytes()
}
