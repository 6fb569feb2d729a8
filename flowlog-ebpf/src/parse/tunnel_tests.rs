extern crate std;

use super::tests::{SYN, ipv6, syn};
use super::{Packet, inside, parse_ethernet, parse_raw_ip, tunnel_kind, wants_inner};
use crate::fragments::{FIRST, INSIDE};
use flowlog_abi::{
    Around, KNOWN_TUNNEL_PORTS, TUNNEL_AUTO, TUNNEL_BOTH, TUNNEL_INNER, TUNNEL_OUTER, TunnelRules, tunnel,
};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

fn rules() -> TunnelRules {
    let mut rules = TunnelRules::default();
    for (at, (port, kind)) in KNOWN_TUNNEL_PORTS.into_iter().enumerate() {
        (rules.ports[at], rules.kinds[at]) = (port, kind);
    }
    rules
}

fn mapped(last: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 172, 16, 0, last]
}

/// 172.16.0.1 to 172.16.0.2, without a link header.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(u16::try_from(20 + payload.len()).expect("short").to_be_bytes());
    packet.extend([0, 9, 0, 0, 64, protocol, 0, 0, 172, 16, 0, 1, 172, 16, 0, 2]);
    packet.extend(payload);
    packet
}

fn udp(to: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0xc0, 0x00];
    datagram.extend(to.to_be_bytes());
    datagram.extend(u16::try_from(8 + payload.len()).expect("short").to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

/// What is found in a packet without link header.
fn look(bytes: &[u8]) -> Option<(Packet, Around)> {
    let outer = parse_raw_ip(bytes).expect("an outer packet");
    inside(bytes, &outer, tunnel_kind(&outer, &rules()))
}

/// The inner packet is always [`SYN`]; what is around it, and how many bytes of headers.
fn around(kind: u8, vni: u32, ports: [u16; 2]) -> Around {
    let [source_port, destination_port] = ports;
    let (source, destination) = (mapped(1), mapped(2));
    Around {
        source,
        destination,
        vni,
        source_port,
        destination_port,
        protocol: kind,
        version: 4,
        ..Around::default()
    }
}

#[test]
fn every_kind_of_tunnel_is_opened_and_says_what_it_is() {
    let ip = &SYN[14..];
    let inner6 = ipv6(17, &[0, 53, 0, 99, 0, 8, 0, 0]);
    let vxlan = |header: [u8; 8]| ipv4(17, &udp(4789, &[&header[..], &SYN].concat()));
    let geneve = |header: &[u8], inner: &[u8]| ipv4(17, &udp(6081, &[header, inner].concat()));
    let ports = |port| [0xc000, port];
    let tcp = |bytes, header_bytes| (bytes, header_bytes, 6, 0x1234);
    let cases = [
        (
            "vxlan",
            tcp(vxlan([8, 0, 0, 0, 0x12, 0x34, 0x56, 0]), 20 + 8 + 8 + 54),
            around(tunnel::VXLAN, 0x12_3456, ports(4789)),
        ),
        (
            "vxlan on the port of old",
            tcp(ipv4(17, &udp(8472, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &SYN].concat())), 90),
            around(tunnel::VXLAN, 7, ports(8472)),
        ),
        // With a group policy (an extension that Linux has): other bits of the flags.
        (
            "vxlan with a policy",
            tcp(vxlan([0x88, 0, 0, 5, 0, 0, 9, 0]), 90),
            around(tunnel::VXLAN, 9, ports(4789)),
        ),
        (
            "geneve",
            tcp(geneve(&[0, 0, 0x65, 0x58, 0, 0, 8, 0], &SYN), 90),
            around(tunnel::GENEVE, 8, ports(6081)),
        ),
        (
            "geneve with 8 bytes of options and IPv4",
            tcp(geneve(&[2, 0x40, 0x08, 0x00, 0, 0, 8, 0, 0, 1, 2, 1, 9, 9, 9, 9], ip), 20 + 8 + 16 + 40),
            around(tunnel::GENEVE, 8, ports(6081)),
        ),
        ("gre", tcp(ipv4(47, &[&[0, 0, 8, 0][..], ip].concat()), 64), around(tunnel::GRE, 0, [0, 0])),
        (
            "gre with everything",
            tcp(ipv4(47, &[&[0xb0, 0, 8, 0, 1, 1, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3][..], ip].concat()), 76),
            around(tunnel::GRE, 0x102, [0, 0]),
        ),
        (
            "gre with a key and Ethernet",
            tcp(ipv4(47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 0, 5][..], &SYN].concat()), 20 + 8 + 54),
            around(tunnel::GRE, 5, [0, 0]),
        ),
        ("ipip", tcp(ipv4(4, ip), 60), around(tunnel::IPV4, 0, [0, 0])),
        ("6in4", (ipv4(41, &inner6), 68, 17, 53), around(tunnel::IPV6, 0, [0, 0])),
        (
            "gre with IPv6",
            (ipv4(47, &[&[0, 0, 0x86, 0xdd][..], &inner6].concat()), 72, 17, 53),
            around(tunnel::GRE, 0, [0, 0]),
        ),
    ];
    for (name, (bytes, header_bytes, protocol, port), expected) in cases {
        let (packet, around) = look(&bytes).unwrap_or_else(|| panic!("{name}: nothing inside"));
        assert_eq!(around, expected, "{name}");
        assert_eq!(
            (packet.header_bytes, packet.protocol, packet.source_port),
            (header_bytes, protocol, port),
            "{name}"
        );
        assert!(packet.is_inside() && !packet.is_fragment(), "{name}");
    }
}

#[test]
fn an_outer_packet_may_be_ipv6() {
    let inner6 = ipv6(17, &[0, 53, 0, 99, 0, 8, 0, 0]);
    for (name, next, payload) in [("4in6", 4, SYN[14..].to_vec()), ("6in6", 41, inner6)] {
        let (packet, around) =
            look(&ipv6(next, &payload)).unwrap_or_else(|| panic!("{name}: nothing inside"));
        assert_eq!(
            (around.version, around.source, around.destination),
            (6, [0xfe; 16], [0xfd; 16]),
            "{name}"
        );
        assert_eq!(packet.version, if next == 4 { 4 } else { 6 }, "{name}");
    }
}

#[test]
fn the_inner_packet_is_what_it_would_be_outside() {
    let frame = [&[2; 12][..], &[8, 0], &ipv4(47, &[&[0, 0, 0x65, 0x58][..], &SYN].concat())].concat();
    let outer = parse_ethernet(&frame[..]).expect("GRE");
    assert_eq!((outer.protocol, outer.header_bytes), (47, 34));
    let (packet, _) = inside(&frame[..], &outer, tunnel::GRE).expect("inside");
    assert_eq!(packet, Packet { header_bytes: 34 + 4 + 54, fragment: INSIDE, ..syn() });
}

#[test]
fn what_is_no_tunnel_or_cannot_be_followed_stays_the_outer_packet() {
    let ip = &SYN[14..];
    let vxlan = |header: [u8; 8], inner: &[u8]| ipv4(17, &udp(4789, &[&header[..], inner].concat()));
    let mut arp = SYN;
    arp[12..14].copy_from_slice(&[8, 6]);
    for (name, bytes) in [
        ("vxlan without a network", vxlan([0; 8], &SYN)),
        ("vxlan-gpe", vxlan([0x0c, 0, 0, 1, 0, 0, 1, 0], &SYN)),
        ("arp inside", vxlan([8, 0, 0, 0, 0, 0, 1, 0], &arp)),
        ("cut inside", vxlan([8, 0, 0, 0, 0, 0, 1, 0], &SYN[..40])),
        ("cut in the tunnel's header", ipv4(17, &udp(4789, &[8, 0, 0]))),
        ("another port", ipv4(17, &udp(4790, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &SYN].concat()))),
        (
            "geneve of another version",
            ipv4(17, &udp(6081, &[&[0x40, 0, 0x65, 0x58, 0, 0, 1, 0][..], &SYN].concat())),
        ),
        ("geneve control", ipv4(17, &udp(6081, &[&[0, 0x80, 0x65, 0x58, 0, 0, 1, 0][..], &SYN].concat()))),
        ("pptp", ipv4(47, &[&[0x30, 1, 0x88, 0x0b, 0, 0, 0, 0][..], ip].concat())),
        ("gre with MPLS", ipv4(47, &[&[0, 0, 0x88, 0x47][..], ip].concat())),
        (
            "erspan: a copy of traffic is no traffic",
            ipv4(47, &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0][..], &SYN].concat()),
        ),
        ("version 5 in ipip", ipv4(4, &[0x55; 40])),
        ("an ICMP error", ipv4(1, &[&[3, 3, 0, 0, 0, 0, 0, 0][..], ip].concat())),
        ("tcp", ip.to_vec()),
    ] {
        assert_eq!(look(&bytes), None, "{name}");
    }
}

#[test]
fn a_first_fragment_is_looked_into() {
    let mut bytes = ipv4(17, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &SYN].concat()));
    bytes[6] = 0x20;
    let outer = parse_raw_ip(&bytes[..]).expect("UDP");
    assert_eq!(outer.fragment, FIRST);
    let (packet, _) = inside(&bytes[..], &outer, tunnel::VXLAN).expect("inside");
    assert!(packet.is_inside() && !packet.is_fragment());
}

#[test]
fn tags_of_the_carrying_frame_come_before_those_inside() {
    let vxlan = |inner: &[u8]| ipv4(17, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], inner].concat()));
    let mut tagged = SYN.to_vec();
    tagged.splice(12..12, [0x81, 0x00, 0xe0, 9]);
    let frame = |tag: &[u8], inner: &[u8]| [&[2; 12][..], tag, &[8, 0], &vxlan(inner)].concat();
    let vlans = |frame: &[u8]| {
        let outer = parse_ethernet(frame).expect("UDP");
        inside(frame, &outer, tunnel::VXLAN).map(|(packet, _)| packet.vlans)
    };
    assert_eq!(vlans(&frame(&[], &SYN)), Some(0));
    assert_eq!(vlans(&frame(&[], &tagged)), Some(9 << 16));
    assert_eq!(vlans(&frame(&[0x81, 0, 0, 7], &tagged)), Some(7 << 16));
}

#[test]
fn the_mode_decides_which_packet_counts() {
    let with = |mode, ends| TunnelRules { mode, ends, ..rules() };
    let ends = 1 << tunnel::VXLAN;
    for (mode, ends, kind, is_own, expected) in [
        (TUNNEL_OUTER, ends, tunnel::VXLAN, true, false),
        (TUNNEL_AUTO, ends, tunnel::VXLAN, true, true),
        (TUNNEL_AUTO, ends, tunnel::VXLAN, false, false),
        (TUNNEL_AUTO, ends, tunnel::GRE, true, false),
        (TUNNEL_INNER, 0, tunnel::GRE, false, true),
        (TUNNEL_BOTH, 0, tunnel::IPV6, false, true),
    ] {
        assert_eq!(wants_inner(&with(mode, ends), kind, is_own), expected, "{mode} {ends} {kind} {is_own}");
    }
}

proptest! {
    #[test]
    fn no_bytes_inside_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..160), kind in 0..8_u8, cut in 0..160_usize) {
        let packet = ipv4(47, &bytes);
        let outer = parse_raw_ip(&packet[..]).expect("GRE");
        let kept = super::Captured { bytes: &packet[..(20 + cut).min(packet.len())], length: packet.len() };
        for found in [inside(&packet[..], &outer, kind), inside(&kept, &outer, kind)].into_iter().flatten() {
            prop_assert!(found.0.is_inside() && found.1.protocol == kind && found.0.header_bytes as usize <= packet.len() + 60);
        }
    }
}
