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
    pub kind: u8,
    /// TCP's flag byte, else 0.
    pub tcp_flags: u8,
    /// ICMP type, else 0.
    pub icmp_type: u8,
    /// ICMP code, else 0.
    pub icmp_code: u8,
    /// Bits of `fragments::{FIRST, LATER, LAST}`; 0 for a whole packet.
    pub fragment: u8,
    /// What all fragments of a packet have in common; 0 for a whole packet.
    pub fragment_id: u32,
    /// Bytes of all headers before the innermost payload, link header included.
    pub header_bytes: u32,
    /// Bytes of a jumbo header within `header_bytes` (8 or 0): the kernel puts one in front of big offloaded TCP
    /// packets, and it never reaches the wire.
    pub jumbo_bytes: u32,
}

/// `::ffff:` in front of the four bytes.
#[inline(always)]
pub(super) const fn mapped(address: [u8; 4]) -> [u8; 16] {
    let [a, b, c, d] = address;
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}
