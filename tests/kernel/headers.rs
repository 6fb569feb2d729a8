//! Packets land under the right key, in the right direction.

use crate::loaded::Loaded;
use crate::packets::*;
use flowlog_abi::{FlowKey, KIND_ECHO, KIND_FRAGMENT, Reason, names};

const IN: &str = names::ETHERNET_PROGRAMS[2];
const IN_RAW_IP: &str = names::RAW_IP_PROGRAMS[2];

fn key4(low_port: u16, high_port: u16, protocol: u8, kind: u16) -> FlowKey {
    FlowKey { low: mapped(A4), high: mapped(B4), low_port, high_port, protocol, version: 4, kind }
}

fn key6(low_port: u16, high_port: u16, protocol: u8, kind: u16) -> FlowKey {
    FlowKey { low: A6, high: B6, low_port, high_port, protocol, version: 6, kind }
}

/// Runs each packet alone on fresh maps and compares key and the two directions' packets.
fn each(program: &str, cases: &[(&str, Vec<u8>, FlowKey, [u64; 2])]) {
    for (name, data, key, packets) in cases {
        let mut loaded = Loaded::new();
        assert_eq!(loaded.run(program, data), u32::MAX, "{name}: the verdict is not `next`");
        assert_eq!(loaded.reasons(), [], "{name}");
        let (found, entry) = loaded.flow();
        assert_eq!(found, *key, "{name}");
        assert_eq!(entry.directions.map(|side| side.packets), *packets, "{name}");
        let bytes = entry.directions.iter().map(|side| side.bytes).sum::<u64>();
        assert_eq!(bytes, data.len() as u64, "{name}");
        assert_eq!(loaded.hook(false).counted_packets, 1, "{name}");
    }
}

#[test]
fn ipv4_packets_land_under_their_key() {
    let segment = tcp(40_000, 443, SYN, &[2, 4, 5, 0xb4], b"");
    let plain = ipv4(A4, B4, 6, &segment);
    each(
        IN,
        &[
            ("tcp", ethernet(0x0800, &plain), key4(40_000, 443, 6, 0), [1, 0]),
            ("tcp reply", b_to_a(SYN | ACK, b""), key4(40_000, 443, 6, 0), [0, 1]),
            (
                "options",
                ethernet(0x0800, &ipv4_with(A4, B4, 6, &[1; 40], 0, &segment)),
                key4(40_000, 443, 6, 0),
                [1, 0],
            ),
            ("one tag", ethernet(0x8100, &tagged(7, 0x0800, &plain)), key4(40_000, 443, 6, 0), [1, 0]),
            (
                "three tags",
                ethernet(0x88a8, &tagged(7, 0x9100, &tagged(8, 0x8100, &tagged(9, 0x0800, &plain)))),
                key4(40_000, 443, 6, 0),
                [1, 0],
            ),
            ("udp", ethernet(0x0800, &ipv4(B4, A4, 17, &udp(53, 999, b"x"))), key4(999, 53, 17, 0), [0, 1]),
            (
                "sctp",
                ethernet(0x0800, &ipv4(A4, B4, 132, &[0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0])),
                key4(5, 6, 132, 0),
                [1, 0],
            ),
            (
                "echo request",
                ethernet(0x0800, &ipv4(A4, B4, 1, &[8, 0, 0, 0, 0xab, 0xcd, 0, 1])),
                key4(0xabcd, 0xabcd, 1, KIND_ECHO),
                [1, 0],
            ),
            (
                "echo reply",
                ethernet(0x0800, &ipv4(B4, A4, 1, &[0, 0, 0, 0, 0xab, 0xcd, 0, 1])),
                key4(0xabcd, 0xabcd, 1, KIND_ECHO),
                [0, 1],
            ),
            (
                "port unreachable, with a packet inside",
                ethernet(0x0800, &ipv4(A4, B4, 1, &[&[3, 3, 0, 0, 0, 0, 0, 0][..], &plain].concat())),
                key4(0x0303, 0x0303, 1, 0),
                [1, 0],
            ),
            ("gre", ethernet(0x0800, &ipv4(A4, B4, 47, &[0, 0, 8, 0])), key4(0, 0, 47, 0), [1, 0]),
            (
                "first fragment",
                ethernet(0x0800, &ipv4_with(A4, B4, 17, &[], 0x2000, &udp(1, 2, b"12345678"))),
                key4(1, 2, 17, 0),
                [1, 0],
            ),
            (
                "later fragment",
                ethernet(0x0800, &ipv4_with(A4, B4, 17, &[], 2, b"12345678")),
                key4(0, 0, 17, KIND_FRAGMENT),
                [1, 0],
            ),
        ],
    );
}

#[test]
fn ipv6_packets_land_under_their_key() {
    let segment = tcp(40_000, 443, SYN, &[], b"");
    let chain = [
        &[43, 0, 1, 4, 0, 0, 0, 0][..],                     // hop-by-hop, 8 bytes
        &[60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // routing, 16 bytes
        &[51, 0, 1, 4, 0, 0, 0, 0],                         // destination options, 8 bytes
        &[44, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], // authentication, (2 + 2) * 4 bytes
        &[6, 0, 0, 0, 0, 0, 0, 9],                          // an atomic fragment
        &segment,
    ]
    .concat();
    each(
        IN,
        &[
            ("tcp", ethernet(0x86dd, &ipv6(A6, B6, 6, &segment)), key6(40_000, 443, 6, 0), [1, 0]),
            ("udp back", ethernet(0x86dd, &ipv6(B6, A6, 17, &udp(53, 9, b""))), key6(9, 53, 17, 0), [0, 1]),
            (
                "extension headers",
                ethernet(0x86dd, &ipv6(A6, B6, 0, &chain)),
                key6(40_000, 443, 6, 0),
                [1, 0],
            ),
            (
                "later fragment",
                ethernet(0x86dd, &ipv6(A6, B6, 44, &[17, 0, 0, 9, 0, 0, 0, 1, 5, 5, 5, 5])),
                key6(0, 0, 17, KIND_FRAGMENT),
                [1, 0],
            ),
            ("no next header", ethernet(0x86dd, &ipv6(A6, B6, 59, b"")), key6(0, 0, 59, 0), [1, 0]),
            (
                "echo reply",
                ethernet(0x86dd, &ipv6(B6, A6, 58, &[129, 0, 0, 0, 0, 7, 0, 1])),
                key6(7, 7, 58, KIND_ECHO),
                [0, 1],
            ),
            (
                "neighbour solicitation",
                ethernet(0x86dd, &ipv6(A6, B6, 58, &[135, 0, 0, 0, 0, 0, 0, 0])),
                key6(0x8700, 0x8700, 58, 0),
                [1, 0],
            ),
            (
                "seven destination options",
                ethernet(
                    0x86dd,
                    &ipv6(
                        A6,
                        B6,
                        60,
                        &[&[60, 0, 1, 4, 0, 0, 0, 0].repeat(6)[..], &[6, 0, 1, 4, 0, 0, 0, 0], &segment]
                            .concat(),
                    ),
                ),
                key6(40_000, 443, 6, 0),
                [1, 0],
            ),
        ],
    );
}

#[test]
fn packets_without_link_header_land_under_their_key() {
    each(
        IN_RAW_IP,
        &[
            ("ipv4", ipv4(A4, B4, 17, &udp(1, 2, b"data")), key4(1, 2, 17, 0), [1, 0]),
            ("ipv6", ipv6(B6, A6, 17, &udp(1, 2, b"data")), key6(2, 1, 17, 0), [0, 1]),
        ],
    );
}

#[test]
fn what_is_no_flow_is_counted_by_reason() {
    let tagged_half = |ethertype, half: &[u8]| ethernet(0x8100, &tagged(1, ethertype, half));
    let short_tcp = &tcp(1, 2, SYN, &[], b"")[..14];
    let mut bad_offset = tcp(1, 2, SYN, &[], b"");
    bad_offset[12] = 0x40;
    let mut bad_version = ipv4(A4, B4, 17, &udp(1, 2, b""));
    bad_version[0] = 0x55;
    let mut no_length = ipv4(A4, B4, 17, &udp(1, 2, b""));
    no_length[3] = 19;
    let options = [60, 0, 1, 4, 0, 0, 0, 0].repeat(9);
    let four_tags = tagged(1, 0x8100, &tagged(2, 0x8100, &tagged(3, 0x8100, &tagged(4, 0x0800, b"1234"))));
    let unparsed = [
        ("one byte of a tag", ethernet(0x8100, &[0]), Reason::TruncatedLink),
        // Behind a tag: the kernel refuses a test run of an untagged one.
        ("half an IPv4 header", tagged_half(0x0800, &ipv4(A4, B4, 6, b"")[..12]), Reason::TruncatedIp),
        ("half an IPv6 header", tagged_half(0x86dd, &ipv6(A6, B6, 6, b"")[..20]), Reason::TruncatedIp),
        ("version 5", ethernet(0x0800, &bad_version), Reason::BadIp),
        ("total length 19", ethernet(0x0800, &no_length), Reason::BadIp),
        ("14 bytes of TCP", ethernet(0x0800, &ipv4(A4, B4, 6, short_tcp)), Reason::TruncatedTransport),
        (
            "UDP in the padding",
            ethernet(0x0800, &[&ipv4(A4, B4, 17, b"")[..], &[0; 26]].concat()),
            Reason::TruncatedTransport,
        ),
        ("data offset 4", ethernet(0x0800, &ipv4(A4, B4, 6, &bad_offset)), Reason::BadTransport),
        ("nine extension headers", ethernet(0x86dd, &ipv6(A6, B6, 60, &options)), Reason::TooManyHeaders),
        ("four tags", ethernet(0x8100, &four_tags), Reason::TooManyHeaders),
    ];
    let not_ip = [
        ("ARP", ethernet(0x0806, &[0; 28]), Reason::Arp),
        ("STP", ethernet(38, &[0x42; 38]), Reason::Llc),
        ("LLDP", ethernet(0x88cc, &[0; 20]), Reason::OtherEthertype),
    ];
    for (cases, is_ip) in [(&unparsed[..], true), (&not_ip[..], false)] {
        for (name, data, reason) in cases {
            let mut loaded = Loaded::new();
            assert_eq!(loaded.run(IN, data), u32::MAX, "{name}");
            assert_eq!(loaded.reasons(), [(*reason, 1)], "{name}");
            let hook = loaded.hook(false);
            let (yes, no) = if is_ip {
                ((hook.unparsed_packets, hook.unparsed_bytes), (hook.not_ip_packets, hook.not_ip_bytes))
            } else {
                ((hook.not_ip_packets, hook.not_ip_bytes), (hook.unparsed_packets, hook.unparsed_bytes))
            };
            assert_eq!((yes, no), ((1, data.len() as u64), (0, 0)), "{name}");
            assert!(loaded.flows().is_empty(), "{name}");
        }
    }
    let mut loaded = Loaded::new();
    loaded.run(IN_RAW_IP, &bad_version);
    assert_eq!(loaded.reasons(), [(Reason::BadVersion, 1)]);
}
