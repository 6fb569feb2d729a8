use super::{Bytes, Packet};
use crate::fragments::FIRST;
use flowlog_abi::{KIND_ECHO, Reason, protocol};

/// A transport header's first `N` bytes, if they are there and the IP header says that they belong to the packet
/// (short frames are padded).
#[inline(always)]
fn header<const N: usize>(
    bytes: &(impl Bytes + ?Sized),
    at: usize,
    payload: usize,
) -> Result<[u8; N], Reason> {
    if payload < N {
        return Err(Reason::TruncatedTransport);
    }
    bytes.read::<N>(at).ok_or(Reason::TruncatedTransport)
}

/// Fills in what the transport header at `at` says; `payload` is what the IP header leaves for it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "offsets of headers are below 2^15")]
pub(super) fn transport(
    bytes: &(impl Bytes + ?Sized),
    mut packet: Packet,
    number: u8,
    at: usize,
    payload: usize,
) -> Result<Packet, Reason> {
    packet.protocol = number;
    let header_bytes = match number {
        protocol::TCP => tcp(bytes, &mut packet, at, payload)?,
        protocol::UDP => {
            let [s0, s1, d0, d1, ..] = header::<8>(bytes, at, payload)?;
            ports(&mut packet, [s0, s1], [d0, d1]);
            8
        }
        protocol::SCTP => {
            let [s0, s1, d0, d1, ..] = header::<12>(bytes, at, payload)?;
            ports(&mut packet, [s0, s1], [d0, d1]);
            12
        }
        protocol::ICMP if packet.version == 4 => icmp(bytes, &mut packet, at, payload, [8, 0])?,
        protocol::ICMPV6 if packet.version == 6 => icmp(bytes, &mut packet, at, payload, [128, 129])?,
        _ => 0,
    };
    packet.header_bytes = (at + header_bytes) as u32;
    Ok(packet)
}

#[inline(always)]
fn ports(packet: &mut Packet, source: [u8; 2], destination: [u8; 2]) {
    packet.source_port = u16::from_be_bytes(source);
    packet.destination_port = u16::from_be_bytes(destination);
}

#[inline(always)]
fn tcp(
    bytes: &(impl Bytes + ?Sized),
    packet: &mut Packet,
    at: usize,
    payload: usize,
) -> Result<usize, Reason> {
    if payload < 20 && packet.fragment & FIRST != 0 {
        // Cut inside the header, which is legal from 8 bytes on: the ports are there, the flags are not.
        let [s0, s1, d0, d1, ..] = header::<8>(bytes, at, payload)?;
        ports(packet, [s0, s1], [d0, d1]);
        return Ok(payload);
    }
    let [s0, s1, d0, d1, _, _, _, _, _, _, _, _, offset, flags, ..] = header::<20>(bytes, at, payload)?;
    let header_bytes = usize::from(offset >> 4) * 4;
    if header_bytes < 20 {
        return Err(Reason::BadTransport);
    }
    if header_bytes > payload && packet.fragment & FIRST == 0 {
        return Err(Reason::TruncatedTransport);
    }
    ports(packet, [s0, s1], [d0, d1]);
    packet.tcp_flags = flags;
    Ok(header_bytes)
}

#[inline(always)]
fn icmp(
    bytes: &(impl Bytes + ?Sized),
    packet: &mut Packet,
    at: usize,
    payload: usize,
    echo: [u8; 2],
) -> Result<usize, Reason> {
    let [kind, code, _, _, i0, i1, ..] = header::<8>(bytes, at, payload)?;
    packet.icmp_type = kind;
    packet.icmp_code = code;
    let [request, reply] = echo;
    if kind == request || kind == reply {
        packet.kind = KIND_ECHO;
        ports(packet, [i0, i1], [i0, i1]);
    } else {
        ports(packet, [kind, code], [kind, code]);
    }
    Ok(8)
}
