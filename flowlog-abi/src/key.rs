use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// [`FlowKey::kind`]: ICMP echo; both ports hold the echo id.
pub const KIND_ECHO: u16 = 1;
/// [`FlowKey::kind`]: later fragments whose ports are not known; ports are 0.
pub const KIND_FRAGMENT: u16 = 2;
/// [`FlowKey::kind`]: the second endpoint's view of a flow between two endpoints of this node.
pub const KIND_VIEW: u16 = 4;
/// Bits of [`FlowKey::kind`] that the three above may have; the others hold an interface's number.
pub const KIND_BITS: u32 = 3;
/// Largest number of an interface in a key.
pub const NUMBER_MAX: u32 = (1 << (16 - KIND_BITS)) - 1;

/// A connection's key, the same for both directions: the side whose (address, port) is smaller in byte order
/// is `low`. IPv4 addresses are IPv4-mapped (`::ffff:a.b.c.d`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct FlowKey {
    /// Address of the low side, network byte order.
    pub low: [u8; 16],
    /// Address of the high side, network byte order.
    pub high: [u8; 16],
    /// Port of the low side, host byte order. ICMP echo: the id. Other ICMP: type << 8 | code. Else 0.
    pub low_port: u16,
    /// Port of the high side, host byte order; for ICMP the same as `low_port`.
    pub high_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// IP version: 4 or 6.
    pub version: u8,
    /// Bits of `KIND_*`; keeps apart what shares addresses and numbers but is another flow. Above [`KIND_BITS`], where
    /// each interface counts for itself, the number of the interface.
    pub kind: u16,
}
