use super::packet::mapped;
use super::{Bytes, Packet, transport};
use crate::fragments::{FIRST, LAST, LATER};
use flowlog_abi::{KIND_FRAGMENT, Reason};

const IPV6_HEADER_BYTES: usize = 40;
/// Extension headers followed behind one IPv6 header.
const EXTENSIONS_MAX: usize = 8;
/// No 16-bit length says more; a longer packet is the kernel's own (offload) and has 0 in its length field.
const LENGTH_MAX: usize = 65_535;
/// Longest payload that can be: what the IP header leaves unsaid is not judged.
const UNSAID: usize = usize::MAX;

mod extension {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const AUTHENTICATION: u8 = 51;
    pub(super) const DESTINATION: u8 = 60;

    pub(super) const fn is_one(protocol: u8) -> bool {
        matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION)
    }
}

#[inline(always)]
fn blank(source: [u8; 16], destination: [u8; 16], version: u8) -> Packet {
    Packet {
        source,
        destination,
        source_port: 0,
        destination_port: 0,
        protocol: 0,
        version,
        kind: 0,
        tcp_flags: 0,
        icmp_type: 0,
        icmp_code: 0,
        fragment: 0,
        fragment_id: 0,
        vlans: 0,
        header_bytes: 0,
        jumbo_bytes: 0,
    }
}

/// Which fragment this is, if it is one: whether others come before it, and after it.
#[inline(always)]
fn note_fragment(packet: &mut Packet, later: bool, more: bool, id: u32) {
    if later || more {
        packet.fragment |= match (later, more) {
            (true, false) => LATER | LAST,
            (true, true) => LATER,
            (false, _) => FIRST,
        };
        packet.fragment_id = id;
    }
}

/// Where a later fragment's payload begins; its ports are in the first one.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "offsets of headers are below 2^15")]
fn later_fragment(mut packet: Packet, protocol: u8, at: usize) -> Packet {
    packet.protocol = protocol;
    packet.kind = KIND_FRAGMENT;
    packet.header_bytes = at as u32;
    packet
}

#[inline(always)]
pub(super) fn ipv4(bytes: &(impl Bytes + ?Sized), offset: usize) -> Result<Packet, Reason> {
    let header = bytes.read::<20>(offset).ok_or(Reason::TruncatedIp)?;
    let [first, _, l0, l1, i0, i1, f0, f1, _, protocol, ..] = header;
    let header_bytes = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_bytes < 20 {
        return Err(Reason::BadIp);
    }
    let total = usize::from(u16::from_be_bytes([l0, l1]));
    let payload = if total >= header_bytes {
        total - header_bytes
    } else if total == 0 && bytes.length() > LENGTH_MAX {
        UNSAID
    } else {
        return Err(Reason::BadIp);
    };
    let at = offset + header_bytes;
    if header_bytes > 20 && bytes.read::<1>(at - 1).is_none() {
        return Err(Reason::TruncatedIp);
    }
    // The addresses, by words.
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = header;
    let mut packet = blank(mapped([s0, s1, s2, s3]), mapped([d0, d1, d2, d3]), 4);
    let flags = u16::from_be_bytes([f0, f1]);
    note_fragment(&mut packet, flags & 0x1fff != 0, flags & 0x2000 != 0, u16::from_be_bytes([i0, i1]).into());
    if packet.fragment & LATER != 0 {
        return Ok(later_fragment(packet, protocol, at));
    }
    transport::transport(bytes, packet, protocol, at, payload)
}

/// An IPv6 header's chain, walked to its end.
struct Chain {
    protocol: u8,
    at: usize,
}

#[inline(always)]
fn walk(
    bytes: &(impl Bytes + ?Sized),
    packet: &mut Packet,
    first: u8,
    start: usize,
) -> Result<Chain, Reason> {
    let mut chain = Chain { protocol: first, at: start };
    for _ in 0..EXTENSIONS_MAX {
        if !extension::is_one(chain.protocol) {
            return Ok(chain);
        }
        // Every kind begins with the next header's number; 8 bytes are the shortest.
        let [next, length, o0, o1, i0, i1, i2, i3] = bytes.read::<8>(chain.at).ok_or(Reason::TruncatedIp)?;
        let header_bytes = match chain.protocol {
            extension::FRAGMENT => 8,
            extension::AUTHENTICATION => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        if chain.protocol == extension::FRAGMENT {
            let flags = u16::from_be_bytes([o0, o1]);
            let id = u32::from_be_bytes([i0, i1, i2, i3]);
            note_fragment(packet, flags & 0xfff8 != 0, flags & 1 != 0, id);
        }
        chain.protocol = next;
        chain.at = bytes.forget(chain.at + header_bytes);
        if packet.fragment & LATER != 0 {
            return Ok(chain);
        }
    }
    if extension::is_one(chain.protocol) { Err(Reason::TooManyHeaders) } else { Ok(chain) }
}

/// Bytes of the jumbo header that the kernel puts in front of an offloaded packet's TCP header.
#[inline(always)]
fn jumbo_bytes(bytes: &(impl Bytes + ?Sized), next: u8, at: usize) -> u32 {
    // Option 0xc2 with 4 bytes of length, alone in its hop-by-hop header (RFC 2675).
    if next == extension::HOP_BY_HOP
        && bytes.length() > LENGTH_MAX
        && matches!(bytes.read::<4>(at), Some([_, 0, 0xc2, 4]))
    {
        8
    } else {
        0
    }
}

#[inline(always)]
pub(super) fn ipv6(bytes: &(impl Bytes + ?Sized), offset: usize) -> Result<Packet, Reason> {
    let header = bytes.read::<8>(offset).ok_or(Reason::TruncatedIp)?;
    let source = bytes.read::<16>(offset + 8).ok_or(Reason::TruncatedIp)?;
    let destination = bytes.read::<16>(offset + 24).ok_or(Reason::TruncatedIp)?;
    let [first, _, _, _, l0, l1, next, _] = header;
    if first >> 4 != 6 {
        return Err(Reason::BadIp);
    }
    let mut packet = blank(source, destination, 6);
    let start = offset + IPV6_HEADER_BYTES;
    let said = usize::from(u16::from_be_bytes([l0, l1]));
    // 0 stands in front of a jumbo header, and in packets that are too long for the field; an empty packet is short.
    let unsaid = said == 0 && (next == extension::HOP_BY_HOP || bytes.length() > LENGTH_MAX);
    let payload = if unsaid { UNSAID } else { said };
    if unsaid {
        packet.jumbo_bytes = jumbo_bytes(bytes, next, start);
    }
    let chain = walk(bytes, &mut packet, next, start)?;
    if packet.fragment & LATER != 0 {
        return Ok(later_fragment(packet, chain.protocol, chain.at));
    }
    let Some(left) = payload.checked_sub(chain.at - start) else { return Err(Reason::BadIp) };
    transport::transport(bytes, packet, chain.protocol, chain.at, left)
}
