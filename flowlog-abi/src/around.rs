use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Tunnels that packets are looked for in: [`Around::protocol`].
pub mod tunnel {
    /// None.
    pub const NONE: u8 = 0;
    /// VXLAN (RFC 7348).
    pub const VXLAN: u8 = 1;
    /// Geneve (RFC 8926).
    pub const GENEVE: u8 = 2;
    /// GRE (RFC 2784, 2890), with an IP packet or an Ethernet frame inside.
    pub const GRE: u8 = 3;
    /// IPv4 inside IPv4 or IPv6 (protocol 4).
    pub const IPV4: u8 = 4;
    /// IPv6 inside IPv4 or IPv6 (protocol 41).
    pub const IPV6: u8 = 5;
    /// How many numbers there are.
    pub const KINDS: usize = 6;
}

/// What was around the packets of a direction: VLAN tags and a tunnel. All zero for most. Addresses as in
/// [`crate::FlowKey`], numbers in host byte order.
/// Aligned to 8, so that it is copied by words.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Around {
    /// Sender of the outer packet.
    pub source: [u8; 16],
    /// Receiver of the outer packet.
    pub destination: [u8; 16],
    /// VXLAN's and Geneve's network identifier, GRE's key; 0 where there is none.
    pub vni: u32,
    /// Outer UDP port of the sender; 0 where there is none.
    pub source_port: u16,
    /// Outer UDP port of the receiver; 0 where there is none.
    pub destination_port: u16,
    /// Number of the outermost VLAN tag; 0 = none, or a priority tag.
    pub vlan: u16,
    /// Number of the tag inside that one; 0 = none.
    pub inner_vlan: u16,
    /// One of [`tunnel`]; 0 = none, and everything above but the VLANs is 0.
    pub protocol: u8,
    /// IP version of the outer packet: 4, 6, or 0 for none.
    pub version: u8,
    /// Always 0.
    pub zero: [u8; 2],
}

/// [`TunnelRules::mode`]: only outer headers are looked at.
pub const TUNNEL_OUTER: u32 = 0;
/// [`TunnelRules::mode`]: the inner packet where the tunnel ends on this node, else the outer one.
pub const TUNNEL_AUTO: u32 = 1;
/// [`TunnelRules::mode`]: the inner packet wherever it can be read.
pub const TUNNEL_INNER: u32 = 2;
/// [`TunnelRules::mode`]: both, each as a flow of its own.
pub const TUNNEL_BOTH: u32 = 3;

/// UDP ports of VXLAN and Geneve that are known at one time.
pub const TUNNEL_PORTS: usize = 8;

/// What a program must know of tunnels, in one cache line.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct TunnelRules {
    /// One of `TUNNEL_*`.
    pub mode: u32,
    /// Bit n: the tunnels of kind n (see [`tunnel`]) end on this node, where their outer address is its own.
    pub ends: u32,
    /// UDP ports of VXLAN and Geneve, host byte order; 0 = none.
    pub ports: [u16; TUNNEL_PORTS],
    /// What is spoken on each of them, see [`tunnel`].
    pub kinds: [u8; TUNNEL_PORTS],
}

/// VXLAN's port (IANA), the one that Linux used before, and Geneve's.
pub const KNOWN_TUNNEL_PORTS: [(u16, u8); 3] =
    [(4789, tunnel::VXLAN), (8472, tunnel::VXLAN), (6081, tunnel::GENEVE)];
