//! Packets, byte by byte as the RFCs draw them.
#![expect(clippy::expect_used, reason = "a test's packets fit their length fields")]

/// One host.
pub const A4: [u8; 4] = [10, 1, 2, 3];
/// The other, whose address is the higher one.
pub const B4: [u8; 4] = [10, 9, 8, 7];
/// One host's IPv6 address.
pub const A6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a];
/// The other's.
pub const B6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b];

/// TCP's FIN flag.
pub const FIN: u8 = 0x01;
/// TCP's SYN flag.
pub const SYN: u8 = 0x02;
/// TCP's ACK flag.
pub const ACK: u8 = 0x10;

/// The IPv4-mapped form, written out.
pub fn mapped(a: [u8; 4]) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a[0], a[1], a[2], a[3]]
}

/// A frame between the hosts.
pub fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A VLAN tag's number and what follows it.
pub fn tagged(vlan: u16, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&vlan.to_be_bytes()[..], &ethertype.to_be_bytes(), payload].concat()
}

/// An IPv4 packet. `fragment`: flags and offset as in the header.
pub fn ipv4_with(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    options: &[u8],
    fragment: u16,
    payload: &[u8],
) -> Vec<u8> {
    let header = 20 + options.len();
    let total = u16::try_from(header + payload.len()).expect("short");
    let mut packet = vec![0x40 | u8::try_from(header / 4).expect("short"), 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0x12, 0x34]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(options);
    packet.extend(payload);
    packet
}

/// Sum of one's complement, as RFC 1071 has it.
pub fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        pair.first().map_or(0, |high| u32::from(u16::from_be_bytes([*high, low])))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded")
}

/// A frame of an IPv4 packet whose header's checksum is right. `ends`: the receiver's and the sender's hardware address.
pub fn sound_frame(ends: [[u8; 6]; 2], mut packet: Vec<u8>) -> Vec<u8> {
    let (header, _) = packet.split_at_mut(20);
    let sum = checksum(header);
    packet.splice(10..12, sum.to_be_bytes());
    [&ends.concat()[..], &[8, 0], &packet].concat()
}

/// An IPv4 packet without options.
pub fn ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_with(source, destination, protocol, &[], 0, payload)
}

/// An IPv6 packet.
pub fn ipv6(source: [u8; 16], destination: [u8; 16], next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(u16::try_from(payload.len()).expect("short").to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(payload);
    packet
}

/// A TCP segment; `options` are a multiple of four bytes.
pub fn tcp(source: u16, destination: u16, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut segment = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    segment.extend([0, 0, 0, 1, 0, 0, 0, 1]);
    segment.extend([u8::try_from((20 + options.len()) / 4).expect("short") << 4, flags]);
    segment.extend([0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(options);
    segment.extend(payload);
    segment
}

/// A datagram.
pub fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("short");
    let mut datagram = [source.to_be_bytes(), destination.to_be_bytes(), length.to_be_bytes()].concat();
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

/// A TCP segment from A to B over IPv4 and Ethernet.
pub fn a_to_b(flags: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4(A4, B4, 6, &tcp(40_000, 443, flags, &[], payload)))
}

/// A TCP segment from B to A over IPv4 and Ethernet.
pub fn b_to_a(flags: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4(B4, A4, 6, &tcp(443, 40_000, flags, &[], payload)))
}
