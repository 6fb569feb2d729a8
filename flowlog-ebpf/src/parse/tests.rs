extern crate std;

use super::{Bytes, Captured, Packet, parse_ethernet, parse_raw_ip};
use crate::fragments::{FIRST, LAST, LATER};
use flowlog_abi::{KIND_ECHO, KIND_FRAGMENT, Reason};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

/// The example TCP SYN that tcpdump's manual could have printed: 192.168.0.1:4660 > 192.168.0.2:80, in one go.
pub(super) const SYN: [u8; 54] = [
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0x08, 0x00, // Ethernet
    0x45, 0x00, 0x00, 0x28, 0x00, 0x01, 0x40, 0x00, 0x40, 0x06, 0x00, 0x00, // IPv4, 40 bytes
    192, 168, 0, 1, 192, 168, 0, 2, // addresses
    0x12, 0x34, 0x00, 0x50, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0, // TCP
];

pub(super) fn syn() -> Packet {
    Packet {
        source: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 0, 1],
        destination: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 0, 2],
        source_port: 0x1234,
        destination_port: 80,
        protocol: 6,
        version: 4,
        kind: 0,
        tcp_flags: 2,
        icmp_type: 0,
        icmp_code: 0,
        header_bytes: 54,
        jumbo_bytes: 0,
        fragment: 0,
        fragment_id: 0,
        vlans: 0,
    }
}

pub(super) fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, u8::try_from(payload.len()).expect("short"), next, 64];
    packet.extend([0xfe; 16]);
    packet.extend([0xfd; 16]);
    packet.extend(payload);
    packet
}

#[test]
fn a_tcp_syn_says_what_it_is() {
    assert_eq!(parse_ethernet(&SYN[..]), Ok(syn()));
    assert_eq!(parse_raw_ip(&SYN[14..]), Ok(Packet { header_bytes: 40, ..syn() }));
}

#[test]
fn tags_in_the_data_are_skipped() {
    let mut frame = SYN.to_vec();
    // Each further tag comes in front of the others; the two outermost are said. Priority and DEI are no part of the number.
    for (tags, ethertype, tci, vlans) in [
        (1, [0x81, 0x00], [0, 7], 7 << 16),
        (2, [0x88, 0xa8], [0xff, 0xff], 0xfff << 16 | 7),
        (3, [0x91, 0x00], [0x20, 0], 0xfff),
    ] {
        frame.splice(12..12, [ethertype, tci].concat());
        assert_eq!(parse_ethernet(&frame[..]), Ok(Packet { header_bytes: 54 + 4 * tags, vlans, ..syn() }));
    }
    frame.splice(12..12, [0x81, 0x00, 0, 7]);
    assert_eq!(parse_ethernet(&frame[..]), Err(Reason::TooManyHeaders));
}

#[test]
fn a_tag_in_the_metadata_is_the_outermost() {
    let tagged = |tci, vlans| {
        let mut packet = Packet { vlans, ..syn() };
        packet.tag_in_metadata(tci);
        packet.vlans
    };
    assert_eq!(tagged(0xe007, 0), 7 << 16);
    assert_eq!(tagged(7, 9 << 16 | 3), 7 << 16 | 9);
    // A priority tag is in no VLAN.
    assert_eq!(tagged(0xe000, 9 << 16), 9 << 16);
}

#[test]
fn every_cut_is_a_truncation_of_its_layer() {
    for length in 0..SYN.len() {
        let cut = Captured { bytes: &SYN[..length], length: SYN.len() };
        let expected = match length {
            0..14 => Reason::TruncatedLink,
            14..34 => Reason::TruncatedIp,
            _ => Reason::TruncatedTransport,
        };
        assert_eq!(parse_ethernet(&cut), Err(expected), "{length} bytes");
    }
}

#[test]
fn a_captured_beginning_is_enough() {
    let mut long = SYN.to_vec();
    long[16..18].copy_from_slice(&1440_u16.to_be_bytes());
    let captured = Captured { bytes: &long, length: 1454 };
    assert_eq!(captured.length(), 1454);
    assert_eq!(parse_ethernet(&captured), Ok(syn()));
}

#[test]
fn ipv4_that_contradicts_itself_is_refused() {
    for (offset, value, reason) in [
        (14, 0x55, Reason::BadIp),              // version 5
        (14, 0x44, Reason::BadIp),              // 16 bytes of header
        (17, 19, Reason::BadIp),                // shorter than its header
        (17, 39, Reason::TruncatedTransport),   // one byte of TCP is padding
        (46, 0x40, Reason::BadTransport),       // 16 bytes of TCP header
        (46, 0x60, Reason::TruncatedTransport), // 24 bytes of TCP header in 20
    ] {
        let mut frame = SYN;
        frame[offset] = value;
        assert_eq!(parse_ethernet(&frame[..]), Err(reason), "byte {offset} = {value:#x}");
    }
    assert_eq!(parse_raw_ip(&[0x51; 60][..]), Err(Reason::BadVersion));
}

#[test]
fn fragments_have_ports_only_in_the_first() {
    let mut first = SYN;
    first[20] = 0x20;
    assert_eq!(parse_ethernet(&first[..]), Ok(Packet { fragment: FIRST, fragment_id: 1, ..syn() }));
    // Cut behind 8 bytes of TCP: ports, but no flags.
    let mut short = first;
    short[16..18].copy_from_slice(&28_u16.to_be_bytes());
    let ports = Packet { fragment: FIRST, fragment_id: 1, tcp_flags: 0, header_bytes: 42, ..syn() };
    assert_eq!(parse_ethernet(&short[..42]), Ok(ports));
    let mut later = SYN;
    later[20..22].copy_from_slice(&[0x00, 0x10]);
    let expected = Packet {
        source_port: 0,
        destination_port: 0,
        tcp_flags: 0,
        kind: KIND_FRAGMENT,
        header_bytes: 34,
        fragment: LATER | LAST,
        fragment_id: 1,
        ..syn()
    };
    assert_eq!(parse_ethernet(&later[..]), Ok(expected));
    later[20] = 0x20;
    assert_eq!(parse_ethernet(&later[..]), Ok(Packet { fragment: LATER, ..expected }));
}

#[test]
fn ipv6_chains_are_followed_to_their_end() {
    let udp = [0, 53, 0, 99, 0, 8, 0, 0];
    let chain = [&[43, 1][..], &[0; 14], &[51, 0], &[0; 6], &[17, 4], &[0; 22], &udp].concat();
    let packet = parse_raw_ip(&ipv6(60, &chain)[..]).expect("UDP");
    assert_eq!((packet.protocol, packet.source_port, packet.destination_port), (17, 53, 99));
    assert_eq!(packet.header_bytes, 40 + 16 + 8 + 24 + 8);
    // A fragment header: atomic (whole), first, later.
    for (offset, kind, source_port, mark, id) in [
        ([0, 0], 0, 53, 0, 0),
        ([0, 1], 0, 53, FIRST, 0x0102_0304),
        ([0, 9], KIND_FRAGMENT, 0, LATER, 0x0102_0304),
        ([0, 8], KIND_FRAGMENT, 0, LATER | LAST, 0x0102_0304),
    ] {
        let fragment = [&[17, 0, offset[0], offset[1], 1, 2, 3, 4][..], &udp].concat();
        let packet = parse_raw_ip(&ipv6(44, &fragment)[..]).expect("UDP");
        assert_eq!((packet.protocol, packet.kind, packet.source_port), (17, kind, source_port));
        assert_eq!((packet.fragment, packet.fragment_id), (mark, id));
    }
    let eight = [&[60, 0, 0, 0, 0, 0, 0, 0].repeat(7)[..], &[59, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(parse_raw_ip(&ipv6(60, &eight)[..]).map(|packet| packet.protocol), Ok(59));
    let nine = [60, 0, 0, 0, 0, 0, 0, 0].repeat(9);
    assert_eq!(parse_raw_ip(&ipv6(60, &nine)[..]), Err(Reason::TooManyHeaders));
    // A chain that runs past the payload.
    assert_eq!(parse_raw_ip(&ipv6(60, &[17, 9, 0, 0, 0, 0, 0, 0])[..]), Err(Reason::BadIp));
}

#[test]
fn the_kernels_jumbo_header_is_told_apart() {
    let mut packet = ipv6(0, &[6, 0, 0xc2, 4, 0, 1, 0, 0]);
    packet[5] = 0;
    packet.extend(&SYN[34..]);
    let big = Captured { bytes: &packet, length: 100_000 };
    let parsed = parse_raw_ip(&big).expect("TCP");
    assert_eq!((parsed.jumbo_bytes, parsed.header_bytes, parsed.source_port), (8, 68, 0x1234));
}

#[test]
fn a_packet_too_long_for_its_length_field_is_parsed() {
    let mut packet = ipv6(6, &[]);
    packet.extend(&SYN[34..]);
    assert_eq!(parse_raw_ip(&packet[..]), Err(Reason::TruncatedTransport));
    let big = Captured { bytes: &packet, length: 100_000 };
    assert_eq!(parse_raw_ip(&big).map(|packet| packet.source_port), Ok(0x1234));
    let mut packet = SYN[14..].to_vec();
    packet[2..4].fill(0);
    assert_eq!(parse_raw_ip(&packet[..]), Err(Reason::BadIp));
    let big = Captured { bytes: &packet, length: 100_000 };
    assert_eq!(parse_raw_ip(&big).map(|packet| packet.source_port), Ok(0x1234));
}

#[test]
fn echo_is_told_from_other_icmp() {
    let icmp = |kind, code| {
        let mut packet = SYN;
        packet[23] = 1;
        packet[34..40].copy_from_slice(&[kind, code, 0, 0, 0xbe, 0xef]);
        parse_ethernet(&packet[..]).map(|packet| (packet.kind, packet.source_port, packet.destination_port))
    };
    assert_eq!(icmp(8, 0), Ok((KIND_ECHO, 0xbeef, 0xbeef)));
    assert_eq!(icmp(0, 0), Ok((KIND_ECHO, 0xbeef, 0xbeef)));
    assert_eq!(icmp(3, 4), Ok((0, 0x0304, 0x0304)));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..4_usize,
            cut in 0..200_usize) {
        // Random bytes seldom get past the EtherType: help them.
        if bytes.len() > 24 && kind < 3 {
            let (ethertype, first) = [([0x08, 0x00], 0x46), ([0x86, 0xdd], 0x60), ([0x81, 0x00], 0x08)][kind];
            bytes[12..14].copy_from_slice(&ethertype);
            bytes[14] = first;
        }
        let length = bytes.len();
        let captured = Captured { bytes: &bytes[..cut.min(length)], length };
        for parsed in [parse_ethernet(&captured), parse_raw_ip(&captured), parse_ethernet(&bytes[..]),
                parse_raw_ip(bytes.get(14..).unwrap_or(&[]))].into_iter().flatten() {
            prop_assert!(parsed.version == 4 || parsed.version == 6);
            prop_assert!(parsed.kind == 0 || parsed.kind == KIND_ECHO || parsed.kind == KIND_FRAGMENT);
        }
    }

    #[test]
    fn more_bytes_never_change_what_was_parsed(bytes in prop::collection::vec(any::<u8>(), 0..60), cut in 0..54_usize) {
        let mut frame = SYN.to_vec();
        frame.extend(&bytes);
        prop_assert_eq!(parse_ethernet(&frame[..]), Ok(syn()));
        prop_assert!(parse_ethernet(&frame[..cut]).is_err());
    }
}
