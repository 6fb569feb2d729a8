//! Packets inside others land under the inner key where the tunnel ends here, and are weighed as the wire carries them.

use crate::loaded::{Beside, Loaded};
use crate::packets::*;
use aya::EbpfLoader;
use flowlog_abi::{
    Around, FlowEntry, FlowKey, KNOWN_TUNNEL_PORTS, TUNNEL_AUTO, TUNNEL_BOTH, TUNNEL_INNER, TUNNEL_OUTER,
    TunnelRules, hook, names, observed, tunnel,
};
use flowlog_ebpf::tag;
use std::collections::BTreeMap;

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];
const OUT: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_EGRESS as usize];
const ENDPOINT_IN: &str = names::ETHERNET_PROGRAMS[hook::ENDPOINT_INGRESS as usize];
const ENDPOINT_OUT: &str = names::ETHERNET_PROGRAMS[hook::ENDPOINT_EGRESS as usize];
const IN_RAW_IP: &str = names::RAW_IP_PROGRAMS[hook::UPLINK_INGRESS as usize];

/// This node's end of the tunnels, and the other one.
const HERE: [u8; 4] = [172, 16, 0, 1];
const THERE: [u8; 4] = [172, 16, 0, 2];
const VNI: u32 = 0x00ab_cdef;
const EVERY_KIND: u32 = !0;
/// Ethernet, IPv4, UDP and VXLAN before the inner frame.
const VXLAN_HEADERS: u64 = 14 + 20 + 8 + 8;

fn loaded(mode: u32) -> Loaded {
    let mut loaded = Loaded::new();
    tunnels(&mut loaded, mode);
    loaded
}

fn tunnels(loaded: &mut Loaded, mode: u32) {
    let mut rules = TunnelRules { mode, ends: EVERY_KIND, ..TunnelRules::default() };
    for (at, (port, kind)) in KNOWN_TUNNEL_PORTS.into_iter().enumerate() {
        (rules.ports[at], rules.kinds[at]) = (port, kind);
    }
    loaded.set_tunnels(rules, &[mapped(HERE)]);
}

fn vxlan_datagram(frame: &[u8]) -> Vec<u8> {
    let [_, v0, v1, v2] = VNI.to_be_bytes();
    udp(0xc123, 4789, &[&[8, 0, 0, 0, v0, v1, v2, 0][..], frame].concat())
}

fn vxlan(from: [u8; 4], to: [u8; 4], frame: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4(from, to, 17, &vxlan_datagram(frame)))
}

fn around(from: [u8; 4], to: [u8; 4]) -> Around {
    Around {
        source: mapped(from),
        destination: mapped(to),
        vni: VNI,
        source_port: 0xc123,
        destination_port: 4789,
        protocol: tunnel::VXLAN,
        version: 4,
        ..Around::default()
    }
}

/// The connection with this protocol and low or high port 443 or 4789.
fn find(loaded: &Loaded, port: u16) -> (FlowKey, FlowEntry) {
    let flows = loaded.flows();
    let mut found = flows.iter().filter(|(key, _)| key.low_port == port || key.high_port == port);
    let one = *found.next().unwrap_or_else(|| panic!("no flow of port {port} in {flows:#?}"));
    assert!(found.next().is_none(), "{flows:#?}");
    one
}

#[test]
fn a_tunnel_that_ends_here_is_looked_into_for_every_packet() {
    let mut loaded = loaded(TUNNEL_AUTO);
    for flags in [SYN, ACK, ACK, FIN | ACK] {
        assert_eq!(loaded.run(IN, &vxlan(THERE, HERE, &a_to_b(flags, b"12345"))), u32::MAX);
    }
    assert_eq!(loaded.run(OUT, &vxlan(HERE, THERE, &b_to_a(SYN | ACK, b""))), u32::MAX);
    let (key, entry) = loaded.flow();
    assert_eq!((key.low, key.high, key.low_port, key.high_port), (mapped(A4), mapped(B4), 40_000, 443));
    let [up, down] = entry.directions;
    assert_eq!((up.packets, up.bytes), (4, 4 * (VXLAN_HEADERS + 54 + 5)));
    assert_eq!((down.packets, down.bytes), (1, VXLAN_HEADERS + 54));
    assert_eq!(entry.around, [around(THERE, HERE), around(HERE, THERE)]);
    assert_eq!((loaded.hook(false).counted_packets, loaded.hook(true).counted_packets), (4, 1));
    // The report, too, and not only the first.
    let reports = loaded.reports();
    assert!(!reports.is_empty() && reports.iter().all(|report| report.around[0] == around(THERE, HERE)));
}

#[test]
fn a_tunnel_that_only_passes_is_seen_from_outside() {
    let mut loaded = loaded(TUNNEL_AUTO);
    // To somebody else; from here, but arriving; and to a group that many receive, which is to be looked into.
    loaded.run(IN, &vxlan(HERE, THERE, &a_to_b(SYN, b"")));
    loaded.run(OUT, &vxlan(THERE, HERE, &a_to_b(SYN, b"")));
    let flows = loaded.flows();
    assert_eq!(flows.len(), 2);
    for (key, entry) in flows {
        assert_eq!((key.protocol, key.low, key.high), (17, mapped(HERE), mapped(THERE)));
        assert_eq!(entry.around, [Around::default(); 2]);
    }
    loaded.run(IN, &vxlan(THERE, [239, 1, 1, 1], &a_to_b(SYN, b"")));
    assert_eq!(find(&loaded, 443).1.directions[0].packets, 1);
}

#[test]
fn the_mode_decides() {
    let frame = vxlan(THERE, HERE, &a_to_b(SYN, b"x"));
    let bytes = frame.len() as u64;
    for (mode, flows) in [(TUNNEL_OUTER, &[4789][..]), (TUNNEL_INNER, &[443]), (TUNNEL_BOTH, &[443, 4789])] {
        let mut loaded = loaded(mode);
        loaded.run(IN, &frame);
        assert_eq!(loaded.flows().len(), flows.len(), "mode {mode}");
        for port in flows {
            let (_, entry) = find(&loaded, *port);
            let sum =
                entry.directions.iter().fold((0, 0), |sum, side| (sum.0 + side.packets, sum.1 + side.bytes));
            assert_eq!(sum, (1, bytes), "mode {mode}, port {port}");
        }
        // `hook` checks that the ledger closes; a packet that counts twice is seen once.
        let hook = loaded.hook(false);
        let beside = u64::from(mode == TUNNEL_BOTH);
        assert_eq!((hook.seen_packets, hook.counted_packets, hook.inner_packets), (1, 1 + beside, beside));
        assert_eq!(hook.inner_bytes, beside * bytes);
    }
}

#[test]
fn every_kind_is_read_in_the_kernel_as_on_the_host() {
    let frame = a_to_b(ACK, b"data");
    let ip = &frame[14..];
    let inner6 = ipv6(A6, B6, 17, &udp(443, 9, b"data"));
    let cases = [
        (
            "geneve",
            ipv4(
                THERE,
                HERE,
                17,
                &udp(7, 6081, &[&[1, 0, 0x65, 0x58, 0, 0, 5, 0, 0, 0, 0, 0][..], &frame].concat()),
            ),
        ),
        ("gre", ipv4(THERE, HERE, 47, &[&[0x20, 0, 8, 0, 0, 0, 0, 5][..], ip].concat())),
        ("gretap", ipv4(THERE, HERE, 47, &[&[0, 0, 0x65, 0x58][..], &frame].concat())),
        ("ipip", ipv4(THERE, HERE, 4, ip)),
        ("6in4", ipv4(THERE, HERE, 41, &inner6)),
        ("4in6", ipv6(B6, A6, 4, ip)),
        ("6in6", ipv6(B6, A6, 41, &inner6)),
        ("vxlan over IPv6", ipv6(B6, A6, 17, &vxlan_datagram(&frame))),
        (
            "inner options",
            ipv4(THERE, HERE, 4, &ipv4_with(A4, B4, 6, &[1; 8], 0, &tcp(40_000, 443, ACK, &[], b""))),
        ),
        ("an inner tag", ipv4(THERE, HERE, 17, &vxlan_datagram(&ethernet(0x8100, &tagged(7, 0x0800, ip))))),
    ];
    let mut rules = TunnelRules { mode: TUNNEL_INNER, ..TunnelRules::default() };
    (rules.ports[0], rules.kinds[0]) = (4789, tunnel::VXLAN);
    (rules.ports[7], rules.kinds[7]) = (6081, tunnel::GENEVE);
    let mut loaded = Loaded::new();
    loaded.set_tunnels(rules, &[]);
    let mut before = BTreeMap::new();
    for (name, packet) in cases {
        assert_eq!(loaded.run(IN_RAW_IP, &packet), u32::MAX, "{name}");
        let outer = flowlog_ebpf::parse_raw_ip(&packet[..]).expect("an outer packet");
        let kind = flowlog_ebpf::tunnel_kind(&outer, &rules);
        let (inner, expected) = flowlog_ebpf::inside(&packet[..], &outer, kind).expect("an inner packet");
        let (key, direction) = inner.key();
        let found = loaded.flows().into_iter().find(|(one, _)| *one == key);
        let (_, entry) = found.unwrap_or_else(|| panic!("{name}: not under its inner key"));
        let expected = Around { vlan: u16::try_from(inner.vlans >> 16).expect("16 bits"), ..expected };
        assert_eq!(entry.around[direction], expected, "{name}");
        let total = before.entry(tag(&key)).or_insert(0);
        *total += packet.len() as u64;
        assert_eq!(entry.directions.iter().map(|side| side.bytes).sum::<u64>(), *total, "{name}");
    }
}

#[test]
fn offloaded_tunnels_weigh_all_their_headers_in_every_mode() {
    // The design's example: 11 datagrams of 1,000 bytes at most in one buffer, 92 bytes of headers each.
    let frame = ethernet(0x0800, &ipv4(A4, B4, 17, &udp(1, 443, &[7; 3_000])));
    let data = vxlan(THERE, HERE, &frame);
    for (mode, port) in [(TUNNEL_OUTER, 4789), (TUNNEL_AUTO, 443), (TUNNEL_INNER, 443)] {
        let mut loaded = loaded(mode);
        let mut sum = (0, 0);
        for (gso_segs, gso_size, packets) in [(3, 1000, 3), (0, 1000, 3), (0, 999, 4), (1, 0, 1)] {
            // In mode `outer` a packet that is not offloaded goes the short way, with less to weigh.
            loaded.run_as(IN, &data, Beside { gso_segs, gso_size, ..Beside::default() }, 1);
            sum = (sum.0 + packets, sum.1 + 3_000 + packets * 92);
            let side = find(&loaded, port).1.directions.into_iter().find(|side| side.packets > 0);
            let side = side.expect("one");
            assert_eq!((side.packets, side.bytes), sum, "mode {mode}, {gso_segs} of {gso_size}");
        }
    }
}

#[test]
fn what_cannot_be_followed_inside_counts_as_the_outer_packet() {
    let mut loaded = loaded(TUNNEL_AUTO);
    for frame in [ethernet(0x0806, &[0; 28]), a_to_b(ACK, b"")[..40].to_vec(), ethernet(38, &[0x42; 38])] {
        loaded.run(IN, &vxlan(THERE, HERE, &frame));
    }
    let (key, entry) = loaded.flow();
    assert_eq!((key.protocol, entry.directions.map(|side| side.packets).iter().sum::<u64>()), (17, 3));
    assert_eq!(loaded.reasons(), []);
}

#[test]
fn the_rest_of_a_packet_cut_up_outside_or_inside_belongs_to_the_inner_flow() {
    let datagram = vxlan_datagram(&a_to_b(ACK, &[1; 100]));
    let (first, rest) = datagram.split_at(96);
    let piece =
        |fragment, payload: &[u8]| ethernet(0x0800, &ipv4_with(THERE, HERE, 17, &[], fragment, payload));
    let mut loaded = loaded(TUNNEL_AUTO);
    let (one, two) = (piece(0x2000, first), piece(12, rest));
    loaded.run(IN, &one);
    loaded.run(IN, &two);
    let (key, entry) = loaded.flow();
    assert_eq!((key.low_port, key.high_port, key.kind), (40_000, 443, 0));
    assert_eq!((entry.directions[0].packets, entry.directions[0].bytes), (2, (one.len() + two.len()) as u64));

    let inner = |fragment, payload: &[u8]| {
        vxlan(THERE, HERE, &ethernet(0x0800, &ipv4_with(B4, A4, 17, &[], fragment, payload)))
    };
    loaded.run(IN, &inner(0x2000, &udp(500, 501, b"12345678")));
    loaded.run(IN, &inner(2, b"12345678"));
    let (key, entry) = find(&loaded, 500);
    assert_eq!((key.kind, entry.directions[1].packets), (0, 2));
}

#[test]
fn a_packet_that_is_wrapped_here_or_unwrapped_here_counts_once() {
    let mut loaded = loaded(TUNNEL_AUTO);
    let (pod, tunnel_device) = (77, 78);
    loaded.observe(pod, observed::ENDPOINT);
    loaded.observe(tunnel_device, observed::CARRIER);
    // A pod sends; the packet leaves through the uplink inside VXLAN, made anew here as far as the kernel says.
    loaded.run(ENDPOINT_IN, &a_to_b(SYN, b""));
    loaded.run(OUT, &vxlan(HERE, THERE, &a_to_b(SYN, b"")));
    assert_eq!((loaded.hook(false).counted_packets, loaded.hook(true).elsewhere_packets), (1, 1));
    // The answer comes in through the uplink and goes to the pod through the tunnel's device.
    loaded.run(IN, &vxlan(THERE, HERE, &b_to_a(SYN | ACK, b"")));
    let through = Beside { ingress_ifindex: tunnel_device, ..Beside::default() };
    loaded.run_as(ENDPOINT_OUT, &b_to_a(SYN | ACK, b""), through, 1);
    assert_eq!((loaded.hook(false).counted_packets, loaded.hook(true).elsewhere_packets), (2, 2));
    let (key, entry) = loaded.flow();
    assert_eq!((key.kind, entry.directions.map(|side| side.packets)), (0, [1, 1]));
    assert_eq!(entry.around, [around(HERE, THERE), around(THERE, HERE)]);
    // One that the node itself sends through the tunnel has been counted nowhere.
    let own = ethernet(0x0800, &ipv4(B4, A4, 17, &udp(5, 6, b"")));
    loaded.run(OUT, &vxlan(HERE, THERE, &own));
    assert_eq!(loaded.hook(true).counted_packets, 1);
}

#[test]
fn between_two_endpoints_through_a_routing_bridge_the_second_is_a_duplicate() {
    let mut loaded = Loaded::new();
    loaded.observe(80, observed::CARRIER);
    let through_bridge = Beside { ingress_ifindex: 80, ..Beside::default() };
    loaded.run(ENDPOINT_IN, &a_to_b(SYN, b""));
    loaded.run_as(ENDPOINT_OUT, &a_to_b(SYN, b""), through_bridge, 1);
    let kinds: Vec<_> = loaded.flows().iter().map(|(key, _)| key.kind).collect();
    assert_eq!(kinds.iter().sum::<u16>(), flowlog_abi::KIND_VIEW, "{kinds:?}");
    // To the uplink it is no second view, and what the bridge brings from an uplink to a pod is none either.
    loaded.run_as(OUT, &a_to_b(SYN, b""), through_bridge, 1);
    loaded.run(IN, &b_to_a(SYN | ACK, b""));
    loaded.run_as(ENDPOINT_OUT, &b_to_a(SYN | ACK, b""), through_bridge, 1);
    assert_eq!(loaded.hook(true).elsewhere_packets, 2);
    assert_eq!(loaded.flows().len(), 2);
}

#[test]
fn a_full_table_reports_an_inner_packet_alone_with_its_tunnel() {
    let mut loaded = Loaded::with(EbpfLoader::new().map_max_entries(names::FLOWS, 1));
    tunnels(&mut loaded, TUNNEL_AUTO);
    loaded.run(IN, &ethernet(0x0800, &ipv4(A4, B4, 17, &udp(1, 2, b""))));
    loaded.run(IN, &vxlan(THERE, HERE, &a_to_b(SYN, b"")));
    let reports = loaded.reports();
    let alone = reports.iter().find(|report| report.what == flowlog_abi::REPORT_ALONE).expect("one");
    assert_eq!(alone.around, [around(THERE, HERE), Around::default()]);
    assert_eq!(loaded.hook(false).alone_packets, 1);
}
