use super::{Bytes, Packet, ip, link};
use crate::fragments::INSIDE;
use flowlog_abi::{Around, TUNNEL_AUTO, TunnelRules, protocol, tunnel};

const ETHERNET: u16 = 0x6558;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Where the inner packet begins, what it begins with (an EtherType) and the tunnel's own number.
struct Start {
    at: usize,
    ethertype: u16,
    vni: u32,
}

/// What kind of tunnel (see [`tunnel`]) a packet may be of, by protocol and port alone. Plain packets cost a comparison.
/// Of fragments only the first can be looked into.
#[must_use]
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a byte of the rules")]
pub fn tunnel_kind(packet: &Packet, rules: &TunnelRules) -> u8 {
    match packet.protocol {
        protocol::UDP => {
            // Without a branch for each port, which the verifier would all follow.
            let mut found = 0;
            for (port, kind) in rules.ports.iter().zip(&rules.kinds) {
                let equal = u32::from(port ^ packet.destination_port).wrapping_sub(1) >> 31;
                found |= u32::from(*kind) * equal;
            }
            found as u8
        }
        protocol::IPV4 => tunnel::IPV4,
        protocol::IPV6 => tunnel::IPV6,
        protocol::GRE => tunnel::GRE,
        _ => tunnel::NONE,
    }
}

/// Whether the inner packet is looked for in a tunnel of this kind whose near end (at ingress the receiver, at egress the
/// sender) has an address of this node or not.
#[must_use]
#[inline(always)]
pub const fn wants_inner(rules: &TunnelRules, kind: u8, is_own: bool) -> bool {
    if rules.mode == TUNNEL_AUTO {
        is_own && rules.ends >> (kind & 31) & 1 == 1
    } else {
        rules.mode > TUNNEL_AUTO
    }
}

/// The packet inside another one and what is around it. `None` when it is not a tunnel after all, or what is inside
/// cannot be followed: then the outer packet is the one to be counted.
///
/// Only one tunnel is opened: a tunnel in a tunnel is the inner one's outer packet.
#[must_use]
#[inline(always)]
pub fn inside(bytes: &(impl Bytes + ?Sized), outer: &Packet, kind: u8) -> Option<(Packet, Around)> {
    let start = start(bytes, outer.header_bytes as usize, kind)?;
    let (ethertype, at, vlans) = if start.ethertype == ETHERNET {
        let link::Payload { network, at, vlans } = link::ethernet(bytes, start.at).ok()?;
        (if matches!(network, link::Network::Ipv4) { IPV4 } else { IPV6 }, at, vlans)
    } else {
        (start.ethertype, start.at, 0)
    };
    let mut packet = match ethertype {
        IPV4 => ip::ipv4(bytes, at).ok()?,
        IPV6 => ip::ipv6(bytes, at).ok()?,
        _ => return None,
    };
    packet.fragment |= INSIDE;
    // Tags of the frame that carries the tunnel; those inside it only where that one has none.
    packet.vlans = if outer.vlans == 0 { vlans } else { outer.vlans };
    let (source_port, destination_port) =
        if outer.protocol == protocol::UDP { (outer.source_port, outer.destination_port) } else { (0, 0) };
    let around = Around {
        source: outer.source,
        destination: outer.destination,
        vni: start.vni,
        source_port,
        destination_port,
        vlan: 0,
        inner_vlan: 0,
        protocol: kind,
        version: outer.version,
        zero: [0; 2],
    };
    Some((packet, around))
}

#[inline(always)]
fn start(bytes: &(impl Bytes + ?Sized), at: usize, kind: u8) -> Option<Start> {
    match kind {
        tunnel::VXLAN => vxlan(bytes, at),
        tunnel::GENEVE => geneve(bytes, at),
        tunnel::GRE => gre(bytes, at),
        tunnel::IPV4 => Some(Start { at, ethertype: IPV4, vni: 0 }),
        tunnel::IPV6 => Some(Start { at, ethertype: IPV6, vni: 0 }),
        _ => None,
    }
}

/// RFC 7348. Without the I flag there is no network identifier; the P flag (VXLAN-GPE) makes it another protocol.
#[inline(always)]
fn vxlan(bytes: &(impl Bytes + ?Sized), at: usize) -> Option<Start> {
    let [flags, _, _, _, v0, v1, v2, _] = bytes.read::<8>(at)?;
    (flags & 0x0c == 0x08).then_some(Start {
        at: at + 8,
        ethertype: ETHERNET,
        vni: u32::from_be_bytes([0, v0, v1, v2]),
    })
}

/// RFC 8926. Control packets (O) carry nobody's traffic.
#[inline(always)]
fn geneve(bytes: &(impl Bytes + ?Sized), at: usize) -> Option<Start> {
    let [first, flags, p0, p1, v0, v1, v2, _] = bytes.read::<8>(at)?;
    (first >> 6 == 0 && flags & 0x80 == 0).then_some(Start {
        at: at + 8 + usize::from(first & 0x3f) * 4,
        ethertype: u16::from_be_bytes([p0, p1]),
        vni: u32::from_be_bytes([0, v0, v1, v2]),
    })
}

/// RFC 2784 and 2890. Version 1 (PPTP) and source routes are something else.
#[inline(always)]
fn gre(bytes: &(impl Bytes + ?Sized), at: usize) -> Option<Start> {
    let [flags, version, p0, p1] = bytes.read::<4>(at)?;
    if version & 7 != 0 || flags & 0x40 != 0 {
        return None;
    }
    let option = |bit: u8| if flags & bit == 0 { 0 } else { 4 };
    let (checksum, key, sequence) = (option(0x80), option(0x20), option(0x10));
    let vni = if key == 0 { 0 } else { u32::from_be_bytes(bytes.read::<4>(at + 4 + checksum)?) };
    Some(Start { at: at + 4 + checksum + key + sequence, ethertype: u16::from_be_bytes([p0, p1]), vni })
}
