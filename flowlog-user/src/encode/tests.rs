use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use proptest::prelude::*;

use super::json::encode;
use super::reference;
use crate::record::fields::{FIELDS, Field, FieldSet, Mask, below};
use crate::record::{
    Block, DropKind, Dropped, EndReason, Event, Flow, ForeignName, Hook, Identity, Interface, L4, Node, Pool,
    PoolTag, Pools, Role, Tunnel, TunnelKind,
};

/// 2026-11-30T20:14:26Z
const SECOND_NS: i64 = 1_796_069_666_000_000_000;

fn tcp_end() -> Flow {
    Flow {
        cadence: 1,
        event: Event::End,
        end_reason: Some(EndReason::Fin),
        connection: 5,
        number: 2,
        high_to_low: true,
        midstream: false,
        duplicate: false,
        fragment: false,
        rtt_ns: 187_402,
        vlans: [0; 2],
        tunnel: None,
        dropped: None,
        source: IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)),
        destination: IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34)),
        protocol: 6,
        l4: L4::Tcp { source_port: 48212, destination_port: 443, flags: 0x1b },
        is_reply: Some(false),
        hook: Hook::UplinkEgress,
        interfaces: [2, 0, 0, 0],
        started_ns: SECOND_NS,
        first_seen_ns: SECOND_NS + 500_000_000,
        last_seen_ns: SECOND_NS + 500_000_001,
        packets: 12,
        bytes: 1_468_006,
        packets_total: 13,
        bytes_total: 1_468_066,
        joined: crate::record::Joined::EVER,
        source_identity: Identity::Host,
        destination_identity: Identity::World,
        source_pool: PoolTag::NONE,
        destination_pool: PoolTag::NONE,
    }
}

fn icmpv6_start() -> Flow {
    Flow {
        cadence: 3,
        event: Event::Start,
        end_reason: None,
        connection: (1 << 53) - 1,
        number: u32::MAX,
        high_to_low: false,
        duplicate: true,
        rtt_ns: 0,
        vlans: [0; 2],
        tunnel: None,
        dropped: None,
        source: IpAddr::V6("2001:db8::1".parse().unwrap()),
        destination: IpAddr::V6("fd00::2:0:0:3".parse().unwrap()),
        protocol: 58,
        l4: L4::Icmpv6 { icmp_type: 129, code: 0 },
        is_reply: Some(true),
        hook: Hook::EndpointEgress,
        interfaces: [7, 2, 99, 0],
        started_ns: 0,
        first_seen_ns: 1_000,
        last_seen_ns: -1,
        packets: 1,
        bytes: 60,
        packets_total: 1,
        bytes_total: 60,
        joined: crate::record::Joined::EVER,
        source_identity: Identity::Unmanaged,
        destination_identity: Identity::Unmanaged,
        source_pool: PoolTag::NONE,
        destination_pool: PoolTag::NONE,
        ..tcp_end()
    }
}

fn fragment_update() -> Flow {
    Flow {
        event: Event::Update,
        end_reason: None,
        midstream: true,
        fragment: true,
        rtt_ns: 0,
        vlans: [0; 2],
        tunnel: None,
        dropped: None,
        protocol: 17,
        l4: L4::Other,
        is_reply: None,
        hook: Hook::UplinkIngress,
        interfaces: [0; 4],
        ..tcp_end()
    }
}

fn node() -> Node {
    let interface = |name: &str| Interface { name: name.into(), role: Role::Uplink };
    let interfaces = [(2, interface("eth0")), (7, interface("a<b>&\"\\\u{2028}é\u{1}"))].into();
    Node { name: "east/node-17".into(), boot: 1, interfaces, ..Node::default() }
}

fn line(flow: &Flow, node: &Node, mask: &Mask) -> String {
    let mut out = Vec::new();
    encode(flow, node, mask, &mut out);
    String::from_utf8(out).unwrap()
}

/// As a mask compiles a path: a leaf is named, a whole message is not.
fn mask(paths: &[&str]) -> Mask {
    let mut mask = Mask { keep: FieldSet::NONE, named: FieldSet::NONE };
    for path in paths {
        mask.keep = mask.keep.union(below(path));
        if path.contains('.') {
            mask.named = mask.named.union(below(path));
        }
    }
    mask
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn a_tcp_end_as_worked_out_by_hand() {
    let want = String::from(
        r#"{"flow":{"time":"2026-11-30T20:14:26.500000001Z","uuid":"00000000-4000-8000-8000-002b00000002","#,
    ) + r#""emitter":{"name":"flowlog","version":""#
        + VERSION
        + r#""},"verdict":"FORWARDED","IP":{"source":"10.1.2.3","destination":"93.184.216.34","ipVersion":"IPv4"},"#
        + r#""l4":{"TCP":{"source_port":48212,"destination_port":443,"#
        + r#""flags":{"FIN":true,"SYN":true,"PSH":true,"ACK":true}}},"#
        + r#""source":{"identity":1,"labels":["reserved:host"]},"#
        + r#""destination":{"identity":2,"labels":["reserved:world"]},"Type":"L3_L4","node_name":"east/node-17","#
        + r#""event_type":{"type":4,"sub_type":11},"traffic_direction":"EGRESS","#
        + r#""trace_observation_point":"TO_NETWORK","trace_reason":"ESTABLISHED","is_reply":false,"#
        + r#""interface":{"index":2,"name":"eth0"},"#
        + r#""Summary":"TCP Flags: SYN, ACK, FIN, PSH; end (fin), 12 packets, 1.4 MiB","#
        + r#""extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"event":"end","#
        + r#""end_reason":"fin","connection":5,"started":"2026-11-30T20:14:26Z","#
        + r#""first_seen":"2026-11-30T20:14:26.500Z","last_seen":"2026-11-30T20:14:26.500000001Z","#
        + r#""packets":12,"bytes":1468006,"packets_total":13,"bytes_total":1468066,"rtt":187402}}},"#
        + r#""node_name":"east/node-17","time":"2026-11-30T20:14:26.500000001Z"}"#
        + "\n";
    assert_eq!(line(&tcp_end(), &node(), &Mask::ALL), want);
}

#[test]
fn an_icmpv6_start_as_worked_out_by_hand() {
    let name = r#""a\u003cb\u003e\u0026\"\\\u2028é\u0001""#;
    let want = String::from(
        r#"{"flow":{"time":"1969-12-31T23:59:59.999999999Z","uuid":"00000000-7fff-8fff-bfff-fffeffffffff","#,
    ) + r#""emitter":{"name":"flowlog","version":""#
        + VERSION
        + r#""},"verdict":"FORWARDED","#
        + r#""IP":{"source":"2001:db8::1","destination":"fd00::2:0:0:3","ipVersion":"IPv6"},"#
        + r#""l4":{"ICMPv6":{"type":129}},"source":{"identity":3,"labels":["reserved:unmanaged"]},"#
        + r#""destination":{"identity":3,"labels":["reserved:unmanaged"]},"Type":"L3_L4","#
        + r#""event_type":{"type":4},"traffic_direction":"INGRESS","trace_observation_point":"TO_ENDPOINT","#
        + r#""trace_reason":"NEW","is_reply":true,"interface":{"index":7,"name":"#
        + name
        + r#"},"Summary":"ICMPv6 EchoReply; start, 1 packet, 60 B","#
        + r#""extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"event":"start","#
        + r#""connection":9007199254740991,"started":"1970-01-01T00:00:00Z","#
        + r#""first_seen":"1970-01-01T00:00:00.000001Z","last_seen":"1969-12-31T23:59:59.999999999Z","#
        + r#""packets":1,"bytes":60,"packets_total":1,"bytes_total":60,"interfaces":["#
        + name
        + r#","eth0","99"],"duplicate":true}}},"time":"1969-12-31T23:59:59.999999999Z"}"#
        + "\n";
    assert_eq!(line(&icmpv6_start(), &Node { name: String::new(), ..node() }, &Mask::ALL), want);
}

#[test]
fn fragments_and_absent_messages_as_worked_out_by_hand() {
    let kept = ["l4", "event_type", "is_reply", "interface", "Summary", "trace_reason"];
    let want = r#"{"flow":{"event_type":{"type":4,"sub_type":10},"trace_reason":"ESTABLISHED","#.to_owned()
        + r#""Summary":"IPv4 fragment, protocol 17; update, 12 packets, 1.4 MiB"}}"#
        + "\n";
    assert_eq!(line(&fragment_update(), &node(), &mask(&kept)), want);

    let kept = ["extensions.midstream", "extensions.fragment", "extensions.end_reason"];
    let want = r#"{"flow":{"extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":"#
        .to_owned()
        + r#"{"midstream":true,"fragment":true}}}}"#
        + "\n";
    assert_eq!(line(&fragment_update(), &node(), &mask(&kept)), want);
}

#[test]
fn masks_as_worked_out_by_hand() {
    for (paths, want) in [
        (&[][..], r#"{"flow":{}}"#),
        (
            &["time", "node_name"],
            r#"{"flow":{"time":"2026-11-30T20:14:26.500000001Z","node_name":"east/node-17"},"node_name":"east/node-17","time":"2026-11-30T20:14:26.500000001Z"}"#,
        ),
        // A path into a message leaves the message, empty or not.
        (
            &[
                "source.pod_name",
                "destination.identity",
                "ethernet.source",
                "l7.dns.query",
                "tunnel.IP.source",
            ],
            r#"{"flow":{"ethernet":{},"tunnel":{"IP":{}},"source":{},"destination":{"identity":2},"l7":{}}}"#,
        ),
        // Whole messages that the flow does not have leave nothing.
        (&["ethernet", "tunnel", "l7", "file", "aggregate"], r#"{"flow":{}}"#),
        // Of a union only the member that is set.
        (
            &["l4.UDP.destination_port", "l4.TCP.destination_port"],
            r#"{"flow":{"l4":{"TCP":{"destination_port":443}}}}"#,
        ),
        (&["l4.UDP.destination_port"], r#"{"flow":{"l4":{}}}"#),
        (&["l4.TCP.flags.RST"], r#"{"flow":{"l4":{"TCP":{"flags":{}}}}}"#),
        (&["trace_context.parent.trace_id"], r#"{"flow":{"trace_context":{"parent":{}}}}"#),
    ] {
        assert_eq!(line(&tcp_end(), &node(), &mask(paths)), format!("{want}\n"), "{paths:?}");
    }
}

#[test]
fn summaries_as_hubble_words_them() {
    let summary = |l4: L4, packets: u64, bytes: u64| {
        let flow = Flow { l4, packets, bytes, protocol: 47, ..icmpv6_start() };
        let line = line(&flow, &node(), &mask(&["Summary"]));
        line.strip_prefix(r#"{"flow":{"Summary":""#).unwrap().strip_suffix("\"}}\n").unwrap().to_owned()
    };
    let udp = L4::Udp { source_port: 1, destination_port: 2 };
    for (l4, want) in [
        (
            L4::Tcp { source_port: 1, destination_port: 2, flags: 0xff },
            "TCP Flags: SYN, ACK, RST, FIN, PSH, URG, ECE, CWR",
        ),
        (L4::Tcp { source_port: 1, destination_port: 2, flags: 0x18 }, "TCP Flags: ACK, PSH"),
        (L4::Sctp { source_port: 1, destination_port: 2 }, "SCTP"),
        (udp, "UDP"),
        (L4::Icmpv4 { icmp_type: 8, code: 0 }, "ICMPv4 EchoRequest"),
        (L4::Icmpv4 { icmp_type: 8, code: 3 }, "ICMPv4 EchoRequest(Code: 3)"),
        (L4::Icmpv4 { icmp_type: 3, code: 3 }, "ICMPv4 DestinationUnreachable(Port)"),
        (L4::Icmpv4 { icmp_type: 11, code: 9 }, "ICMPv4 TimeExceeded(Code: 9)"),
        (L4::Icmpv4 { icmp_type: 42, code: 1 }, "ICMPv4 42(1)"),
        (L4::Icmpv6 { icmp_type: 135, code: 0 }, "ICMPv6 NeighborSolicitation"),
        (L4::Other, "IPv6 protocol 47"),
    ] {
        assert_eq!(summary(l4, 2, 3), format!("{want}; start, 2 packets, 3 B"));
    }
    for (bytes, want) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1_048_524, "1023.9 KiB"),
        (1_048_525, "1.0 MiB"),
        (10 << 30, "10.0 GiB"),
        (u64::MAX, "16.0 EiB"),
    ] {
        assert_eq!(summary(udp, 1, bytes), format!("UDP; start, 1 packet, {want}"));
    }
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits))),
        prop::sample::select(vec!["::", "::1", "1:0:0:2::", "::ffff:1.2.3.4"])
            .prop_map(|text| text.parse().unwrap()),
    ]
}

fn transport() -> impl Strategy<Value = L4> {
    let ports = || (any::<u16>(), any::<u16>());
    prop_oneof![
        (ports(), any::<u8>()).prop_map(|((source_port, destination_port), flags)| L4::Tcp {
            source_port,
            destination_port,
            flags
        }),
        ports().prop_map(|(source_port, destination_port)| L4::Udp { source_port, destination_port }),
        ports().prop_map(|(source_port, destination_port)| L4::Sctp { source_port, destination_port }),
        any::<(u8, u8)>().prop_map(|(icmp_type, code)| L4::Icmpv4 { icmp_type, code }),
        any::<(u8, u8)>().prop_map(|(icmp_type, code)| L4::Icmpv6 { icmp_type, code }),
        Just(L4::Other),
    ]
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        (0_i64..1 << 31).prop_map(|s| s * 1_000_000_000),
        (0_i64..1 << 50).prop_map(|us| us * 1_000)
    ]
}

fn dropped() -> impl Strategy<Value = Dropped> {
    let reason = prop::sample::select(vec!["NETFILTER_DROP", "SOCKET_RCVBUFF", "openvswitch:7", "a<\"b", ""]);
    let location = prop::sample::select(vec!["nf_hook_slow", "br_forward [bridge]", ""]);
    (reason, location, any::<u32>(), "\\PC{0,20}").prop_map(|(reason, location, netns, interface)| Dropped {
        kind: DropKind::of(reason, location),
        netns,
        interface: ForeignName::new(&interface.replace('\0', "")),
    })
}

fn tunnel() -> impl Strategy<Value = Tunnel> {
    let kind = prop::sample::select(vec![
        TunnelKind::Vxlan,
        TunnelKind::Geneve,
        TunnelKind::Gre,
        TunnelKind::Ipip,
        TunnelKind::Ip6ip,
    ]);
    (kind, address(), address(), any::<(u16, u16)>(), any::<u32>())
        .prop_map(|(kind, source, destination, ports, vni)| Tunnel { kind, source, destination, ports, vni })
}

prop_compose! {
    pub(super) fn flow()(
        (cadence, connection, number) in (0_u8..4, 0_u64..1 << 53, any::<u32>()),
        event in prop::sample::select(vec![Event::Start, Event::Update, Event::End]),
        end_reason in prop::option::of(prop::sample::select(vec![
            EndReason::Fin, EndReason::Rst, EndReason::Idle, EndReason::TableFull, EndReason::Unwatched, EndReason::Shutdown,
        ])),
        [high_to_low, midstream, duplicate, fragment] in any::<[bool; 4]>(),
        rtt_ns in prop_oneof![Just(0), any::<u32>()],
        (vlans, tunnel) in (any::<[u16; 2]>(), prop::option::of(tunnel())),
        dropped in prop::option::of(dropped()),
        (source, destination, protocol, l4) in (address(), address(), any::<u8>(), transport()),
        is_reply in any::<Option<bool>>(),
        hook in prop::sample::select(vec![
            Hook::EndpointIngress, Hook::EndpointEgress, Hook::UplinkIngress, Hook::UplinkEgress,
        ]),
        interfaces in prop::array::uniform4(0_u32..6),
        (started_ns, first_seen_ns, last_seen_ns) in (time(), time(), time()),
        (packets, bytes, packets_total, bytes_total) in any::<(u64, u64, u64, u64)>(),
        [source_identity, destination_identity] in prop::array::uniform2(prop::sample::select(vec![
            Identity::Host, Identity::World, Identity::Unmanaged,
        ])),
    ) -> Flow {
        Flow {
            joined: crate::record::Joined::EVER,
            cadence, event, end_reason, connection, number, high_to_low, midstream, duplicate, fragment, rtt_ns, vlans, tunnel, dropped,
            source, destination, protocol, l4, is_reply, hook, interfaces, started_ns, first_seen_ns, last_seen_ns, packets,
            bytes, packets_total, bytes_total, source_identity, destination_identity,
            source_pool: PoolTag::NONE, destination_pool: PoolTag::NONE,
        }
    }
}

prop_compose! {
    pub(super) fn some_node()(name in "\\PC*|[\0-\u{2f}\u{2028}\u{2029}]*", boot: u64, names in prop::collection::vec(".{0,15}", 0..6), pools: bool) -> Node {
        let interfaces = names.into_iter().zip(1..)
            .map(|(name, index)| (index, Interface { name, role: Role::Endpoint })).collect();
        Node { name, boot, interfaces, addresses: Vec::new(), pools: if pools { halves() } else { Arc::default() } }
    }
}

/// A pool of half the addresses of each family, a quarter of them reserved.
fn halves() -> Arc<Pools> {
    let half = |is_v4, bits: u32| {
        let (middle, last) = (1_u128 << (bits - 1), u128::MAX >> (128 - bits));
        Block { is_v4, range: (middle, last), reserved: vec![(middle, middle | middle >> 1)] }
    };
    Arc::new(Pools::new(vec![Pool { name: "green".into(), blocks: vec![half(true, 32), half(false, 128)] }]))
}

pub(super) fn some_mask() -> impl Strategy<Value = Mask> {
    let path = prop::sample::select(FIELDS.to_vec()).prop_flat_map(|(_, path)| {
        let ends: Vec<usize> = path.match_indices('.').map(|(at, _)| at).chain([path.len()]).collect();
        prop::sample::select(ends).prop_map(move |end| &path[..end])
    });
    prop_oneof![Just(Mask::ALL), prop::collection::vec(path, 0..12).prop_map(|paths| mask(&paths))]
}

proptest! {
    #[test]
    fn every_line_equals_the_reference(mut flow in flow(), node in some_node(), mask in some_mask()) {
        flow.source_pool = node.pools.tag(flow.source);
        flow.destination_pool = node.pools.tag(flow.destination);
        let line = line(&flow, &node, &mask);
        prop_assert_eq!(&line, &reference::line(&flow, &node, &mask));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        prop_assert!(value.get("flow").is_some());
        prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
    }

    #[test]
    fn uuids_are_unique(flow in flow(), node in some_node(), bit in 0_u32..53) {
        let others = [
            Flow { connection: flow.connection ^ 1 << bit, ..flow },
            Flow { cadence: flow.cadence ^ 1 << (bit % 2), ..flow },
            Flow { high_to_low: !flow.high_to_low, ..flow },
            Flow { number: flow.number ^ 1 << (bit % 32), ..flow },
        ];
        let mask = mask(&["uuid"]);
        let mut seen: Vec<_> = others.iter().map(|other| line(other, &node, &mask)).collect();
        seen.push(line(&flow, &node, &mask));
        seen.push(line(&flow, &Node { boot: node.boot ^ 1 << (bit % 34), ..node }, &mask));
        seen.sort();
        seen.dedup();
        prop_assert_eq!(seen.len(), 6);
    }
}

#[test]
fn the_longest_line_is_far_below_what_readers_take() {
    // A host name has at most 64 characters, a cluster name 32, an interface name 15; escaped each takes 6 bytes.
    let node = Node {
        name: "\u{1}".repeat(97),
        boot: u64::MAX,
        interfaces: (1..5)
            .map(|index| (index, Interface { name: "\u{1}".repeat(15), role: Role::Other }))
            .collect(),
        addresses: Vec::new(),
        pools: Arc::new(Pools::new(vec![Pool {
            name: "p".repeat(253).into(),
            blocks: vec![Block { is_v4: false, range: (0, u128::MAX), reserved: vec![(0, u128::MAX)] }],
        }])),
    };
    let address = IpAddr::V6(Ipv6Addr::from_bits(u128::MAX));
    let longest = Flow {
        event: Event::Update,
        end_reason: Some(EndReason::Unwatched),
        connection: (1 << 53) - 1,
        midstream: true,
        duplicate: true,
        fragment: true,
        rtt_ns: u32::MAX,
        vlans: [0; 2],
        tunnel: None,
        dropped: None,
        source: address,
        destination: address,
        l4: L4::Tcp { source_port: u16::MAX, destination_port: u16::MAX, flags: 0xff },
        interfaces: [1, 2, 3, 4],
        started_ns: 1,
        packets: u64::MAX,
        bytes: u64::MAX,
        packets_total: u64::MAX,
        bytes_total: u64::MAX,
        source_pool: node.pools.tag(address),
        destination_pool: node.pools.tag(address),
        ..tcp_end()
    };
    assert!(line(&longest, &node, &Mask::ALL).contains("=reserved"));
    assert!(line(&longest, &node, &Mask::ALL).len() < 4096, "Hubble's client stops at lines of 64 KiB");
    assert!(Mask::ALL.keep.has(Field::ExtensionsRtt));
}
