//! `where`. Expected values follow from its description in the README.

use super::filters::flow;
use super::{plan, read};
use crate::filter::Filter;
use crate::read::event;
use crate::record::{Flow, L4, Node, Tunnel, TunnelKind};

fn filter(conditions: &str) -> Filter {
    plan(&format!("flowLogs:\n- name: a\n  filePath: /l/a\n  where: {conditions}\n")).tasks.remove(0).filter
}

#[test]
fn what_hubbles_filters_cannot_say() {
    // SYN and ACK, port 80 to 48212, 7 packets, 900 bytes, 1.5 s since the connection's start.
    let flow = Flow { packets: 7, bytes: 900, last_seen_ns: 1_500_000_000, ..flow() };
    let table = [
        ("{}", true),
        ("{source_port: ['1-1023']}", true),
        ("{source_port: ['81-1023', '79']}", false),
        ("{source_port: ['1-1023', '!80']}", false),
        ("{source_port: ['!81', '!0-79']}", true),
        ("{destination_port: ['48212']}", true),
        ("{destination_port: ['0-48211']}", false),
        ("{tcp_flags: [{SYN: true, FIN: false}]}", true),
        ("{tcp_flags: [{SYN: true, ACK: false}]}", false),
        ("{tcp_flags: [{ACK: false}, {RST: false}]}", true),
        ("{packets: '>=7'}", true),
        ("{packets: '>7'}", false),
        ("{packets: '<8'}", true),
        ("{packets: '<= 6'}", false),
        ("{packets: '=7'}", true),
        ("{bytes: ['>100', '<1000']}", true),
        ("{bytes: ['>100', '<900']}", false),
        ("{duration: '>=1s'}", true),
        ("{duration: '>1s500ms'}", false),
        ("{bytes: '>1', packets: '>7'}", false),
    ];
    for (conditions, expected) in table {
        assert_eq!(filter(conditions).matches(&flow, &Node::default()), expected, "{conditions}");
    }
    let icmp = Flow { l4: L4::Icmpv4 { icmp_type: 8, code: 0 }, ..flow };
    for conditions in ["{source_port: ['!80']}", "{tcp_flags: [{SYN: false}]}"] {
        assert!(!filter(conditions).matches(&icmp, &Node::default()), "{conditions}");
    }
}

#[test]
fn vlans_and_tunnels() {
    let tunnel = |kind, vni| {
        let address = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        Some(Tunnel { kind, source: address, destination: address, ports: (1, 2), vni })
    };
    let plain = flow();
    let tagged = Flow { vlans: [7, 0], tunnel: tunnel(TunnelKind::Vxlan, 42), ..plain };
    let twice = Flow { vlans: [100, 7], tunnel: tunnel(TunnelKind::Gre, 0), ..plain };
    // Whether the plain flow, the tagged one and the one with two tags are taken.
    let table = [
        ("{vlan: ['7']}", [false, true, true]),
        ("{vlan: ['0']}", [true, false, false]),
        ("{vlan: ['!7']}", [true, false, false]),
        ("{vlan: ['1-4094', '!100']}", [false, true, false]),
        ("{vlan: ['0-6', '90-110']}", [true, false, true]),
        ("{tunnel: [none]}", [true, false, false]),
        ("{tunnel: ['!none']}", [false, true, true]),
        ("{tunnel: [vxlan, geneve]}", [false, true, false]),
        ("{tunnel: ['vxlan:41']}", [false, false, false]),
        ("{tunnel: ['vxlan:1-99', gre]}", [false, true, true]),
        ("{tunnel: ['!vxlan:42', '!none']}", [false, false, true]),
    ];
    for (conditions, expected) in table {
        let found = [plain, tagged, twice].map(|flow| filter(conditions).matches(&flow, &Node::default()));
        assert_eq!(found, expected, "{conditions}");
    }
    let recorded = |flow: &str| event(format!("{{\"flow\":{flow}}}").as_bytes()).unwrap();
    let ours = recorded(
        r#"{"tunnel":{"vni":42},"extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"vlan":7,"tunnel":"vxlan"}}}"#,
    );
    let hubbles = recorded(r#"{"tunnel":{"protocol":"GENEVE","vni":5}}"#);
    let table = [
        ("{vlan: ['7']}", [true, false]),
        ("{vlan: ['!8']}", [true, false]),
        ("{tunnel: ['vxlan:42']}", [true, false]),
        ("{tunnel: ['geneve:5']}", [false, true]),
        ("{tunnel: [none]}", [false, false]),
    ];
    for (conditions, expected) in table {
        assert_eq!([&ours, &hubbles].map(|event| filter(conditions).takes(event)), expected, "{conditions}");
    }
}

#[test]
fn it_narrows_the_filters_and_sees_recorded_counters() {
    let text = "flowLogs:\n- name: a\n  filePath: /l/a\n  includeFilters: [{verdict: [DROPPED]}, {source_port: ['80']}]\n  \
                excludeFilters: [{source_port: ['81']}]\n  where: {bytes: '>10', source_port: ['80-81']}\n";
    let filter = plan(text).tasks.remove(0).filter;
    let line = |verdict: &str, port: u16, bytes: u64| {
        format!(
            r#"{{"flow":{{"verdict":"{verdict}","l4":{{"TCP":{{"source_port":{port}}}}},"extensions":{{"@type":"type.googleapis.com/google.protobuf.Struct","value":{{"packets":1,"bytes":{bytes}}}}}}}}}"#
        )
    };
    let table = [("DROPPED", 80, 11, true), ("DROPPED", 82, 11, false), ("FORWARDED", 80, 11, true)];
    let more = [("DROPPED", 81, 11, false), ("DROPPED", 80, 10, false)];
    for (verdict, port, bytes, expected) in table.into_iter().chain(more) {
        let event = event(line(verdict, port, bytes).as_bytes()).unwrap();
        assert_eq!(filter.takes(&event), expected, "{verdict} {port} {bytes}");
    }
    // What has no counters has none that are large enough.
    let plain = event(br#"{"flow":{"verdict":"DROPPED","l4":{"TCP":{"source_port":80}}}}"#).unwrap();
    assert!(!filter.takes(&plain));
}

#[test]
fn what_is_wrong_with_conditions() {
    let table = [
        (
            "{sourceport: ['1']}",
            "where.sourceport: unknown condition `sourceport`; did you mean `source_port`?",
        ),
        ("{source_port: ['2-1']}", "where.source_port[0]: `2-1` is no port or range"),
        ("{source_port: ['65536']}", "where.source_port[0]: `65536` is no port or range"),
        ("{source_port: ['+1']}", "where.source_port[0]: `+1` is no port or range"),
        ("{source_port: [80]}", "where.source_port[0]: expected a string"),
        ("{bytes: '1000'}", "where.bytes: `1000` is no comparison"),
        ("{bytes: '>x'}", "where.bytes: `>x` is no comparison"),
        ("{bytes: '<0'}", "where.bytes: `<0` is no comparison"),
        ("{duration: '>1'}", "where.duration: `>1` is no comparison"),
        (
            "{tcp_flags: [{SYNN: true}]}",
            "where.tcp_flags[0].SYNN: unknown TCP flag `SYNN`; did you mean `SYN`?",
        ),
        ("{vlan: [1]}", "where.vlan[0]: expected a string"),
        ("{vlan: ['4095']}", "where.vlan[0]: `4095` is no VLAN or range"),
        ("{tunnel: [vxlna]}", "where.tunnel[0]: unknown tunnel `vxlna`; did you mean `vxlan`?"),
        ("{tunnel: ['vxlan:x']}", "where.tunnel[0]: `vxlan:x` is no tunnel"),
        ("{tunnel: ['none:1']}", "where.tunnel[0]: `none:1` is no tunnel"),
        ("[]", "where: expected a map, found a list"),
    ];
    for (conditions, expected) in table {
        let text = format!("flowLogs:\n- name: a\n  filePath: /l/a\n  where: {conditions}\n");
        let said = read(&text).1.to_string();
        assert!(said.contains(expected) && said.lines().count() == 1, "{conditions}: {said}");
    }
}
