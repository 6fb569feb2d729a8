//! Hubble's filter semantics on flows of ours. Expected values follow from the description of Cilium 1.19.4's filters.

use super::{plan, read};
use crate::filter::Filter;
use crate::record::{Event, Flow, Hook, Identity, Interface, L4, Node, PoolTag, Role};

/// An endpoint's TCP SYN+ACK answer: 10.1.2.3:80 to 192.168.7.9:48212, counted at interface 7, then 9.
pub(super) fn flow() -> Flow {
    Flow {
        cadence: 0,
        event: Event::End,
        end_reason: None,
        connection: 1,
        number: 1,
        high_to_low: false,
        midstream: false,
        duplicate: false,
        fragment: false,
        rtt_ns: 0,
        vlans: [0; 2],
        tunnel: None,
        dropped: None,
        source: "10.1.2.3".parse().unwrap(),
        destination: "192.168.7.9".parse().unwrap(),
        protocol: 6,
        l4: L4::Tcp { source_port: 80, destination_port: 48212, flags: 0x12 },
        is_reply: Some(true),
        hook: Hook::EndpointIngress,
        interfaces: [7, 9, 0, 0],
        started_ns: 0,
        first_seen_ns: 0,
        last_seen_ns: 0,
        packets: 1,
        bytes: 60,
        packets_total: 1,
        bytes_total: 60,
        joined: crate::record::Joined::EVER,
        source_identity: Identity::Unmanaged,
        destination_identity: Identity::World,
        source_pool: PoolTag::NONE,
        destination_pool: PoolTag::NONE,
    }
}

fn node() -> Node {
    let named = |name: &str, role| Interface { name: name.into(), role };
    let interfaces = [(7, named("lxc7", Role::Endpoint)), (9, named("eth0", Role::Uplink))].into();
    Node { interfaces, ..Node::default() }
}

fn filter(include: &str, exclude: &str) -> Filter {
    let text = format!(
        "flowLogs:\n- name: a\n  filePath: /l/a\n  includeFilters: {include}\n  excludeFilters: {exclude}\n"
    );
    plan(&text).tasks.remove(0).filter
}

fn check(flow: &Flow, table: &[(&str, bool)]) {
    for (one, expected) in table {
        let got = filter(&format!("[{one}]"), "[]").matches(flow, &node());
        assert_eq!(got, *expected, "{one}");
    }
}

fn l4(l4: L4) -> Flow {
    Flow { l4, ..flow() }
}

#[test]
fn values_or_fields_and_filters_or_then_not_excluded() {
    let (yes, no) = (r#"{source_port: ["80"]}"#, r#"{source_port: ["81"]}"#);
    let both = r#"{source_port: ["80"], destination_port: ["1"]}"#;
    let table = [
        ("[]".into(), "[]".into(), true),
        ("null".into(), "null".into(), true),
        ("[{}]".into(), "[]".into(), true),
        ("[null]".into(), "[]".into(), true),
        ("[]".into(), "[{}]".into(), false),
        ("[]".into(), "[null]".into(), false),
        (format!("[{no}, {yes}]"), "[]".into(), true),
        (format!("[{no}]"), "[]".into(), false),
        (format!("[{no}, {{}}]"), "[]".into(), true),
        (format!("[{both}]"), "[]".into(), false),
        (format!("[{yes}]"), format!("[{both}]"), true),
        (format!("[{yes}]"), format!("[{no}, {yes}]"), false),
        (r#"[{source_port: ["1", "80"], source_ip: []}]"#.into(), "[]".into(), true),
    ];
    for (include, exclude, expected) in table {
        let got = filter(&include, &exclude).matches(&flow(), &node());
        assert_eq!(got, expected, "{include} {exclude}");
    }
}

#[test]
fn addresses_compare_as_text_and_prefixes_by_family() {
    check(
        &flow(),
        &[
            (r#"{source_ip: ["10.1.2.3"]}"#, true),
            (r#"{sourceIp: ["10.1.2.3"]}"#, true),
            (r#"{source_ip: ["10.1.2.4"]}"#, false),
            (r#"{destination_ip: ["10.1.2.3"]}"#, false),
            (r#"{destination_ip: ["1.1.1.1", "192.168.0.0/16"]}"#, true),
            (r#"{source_ip: ["10.1.2.99/24"]}"#, true),
            (r#"{source_ip: ["10.1.3.0/24"]}"#, false),
            (r#"{source_ip: ["0.0.0.0/0"]}"#, true),
            (r#"{source_ip: ["10.1.2.3/32"]}"#, true),
            (r#"{source_ip: ["::/0"]}"#, false),
            (r#"{source_ip: ["::ffff:10.1.2.3"]}"#, false),
            (r#"{source_ip: ["::ffff:10.1.2.3/128"]}"#, false),
        ],
    );
    let v6 = Flow {
        source: "fe80::1".parse().unwrap(),
        destination: "::ffff:10.1.2.3".parse().unwrap(),
        ..flow()
    };
    check(
        &v6,
        &[
            (r#"{source_ip: ["fe80::1"]}"#, true),
            (r#"{source_ip: ["fe80::0001"]}"#, false),
            (r#"{source_ip: ["FE80::1"]}"#, false),
            (r#"{source_ip: ["fe80::1%eth0"]}"#, false),
            (r#"{source_ip: ["fe80::0001/128"]}"#, true),
            (r#"{source_ip: ["FE80::/10"]}"#, true),
            (r#"{source_ip: ["0.0.0.0/0"]}"#, false),
            (r#"{source_ip: ["::/0"]}"#, true),
            (r#"{destination_ip: ["10.0.0.0/8"]}"#, false),
            (r#"{destination_ip: ["::ffff:10.1.2.3"]}"#, true),
            (r#"{destination_ip: ["::ffff:0:0/96"]}"#, true),
        ],
    );
}

#[test]
fn ports_are_exact_and_only_of_protocols_that_have_them() {
    let table = [
        (r#"{source_port: ["80"]}"#, true),
        (r#"{source_port: ["080"]}"#, true),
        (r#"{source_port: ["0"]}"#, false),
        (r#"{destination_port: ["80"]}"#, false),
        (r#"{destination_port: ["1", "48212"]}"#, true),
    ];
    check(&flow(), &table);
    check(&l4(L4::Udp { source_port: 80, destination_port: 48212 }), &table);
    check(&l4(L4::Sctp { source_port: 80, destination_port: 48212 }), &table);
    let zero = &[(r#"{source_port: ["0"]}"#, false)];
    check(&l4(L4::Icmpv4 { icmp_type: 0, code: 0 }), zero);
    check(&l4(L4::Other), zero);
    check(&l4(L4::Udp { source_port: 0, destination_port: 1 }), &[(r#"{source_port: ["0"]}"#, true)]);
}

#[test]
fn protocols() {
    let (v4, v6) = (L4::Icmpv4 { icmp_type: 8, code: 0 }, L4::Icmpv6 { icmp_type: 128, code: 0 });
    let (tcp, udp) = (flow().l4, L4::Udp { source_port: 1, destination_port: 2 });
    let sctp = L4::Sctp { source_port: 1, destination_port: 2 };
    let table: &[(&str, &[L4])] = &[
        ("tcp", &[tcp]),
        ("TCP", &[tcp]),
        ("udp", &[udp]),
        ("Sctp", &[sctp]),
        ("icmp", &[v4, v6]),
        ("ICMPv4", &[v4]),
        ("icmpv6", &[v6]),
        ("vrrp", &[]),
        ("igmp", &[]),
        ("dns", &[]),
        ("http", &[]),
        ("kafka", &[]),
        ("[tcp, icmpv6]", &[tcp, v6]),
    ];
    for (names, members) in table {
        let text = if names.starts_with('[') { (*names).into() } else { format!("[{names}]") };
        let filter = filter(&format!("[{{protocol: {text}}}]"), "[]");
        for one in [tcp, udp, sctp, v4, v6, L4::Other] {
            assert_eq!(filter.matches(&l4(one), &node()), members.contains(&one), "{names} {one:?}");
        }
    }
}

#[test]
fn tcp_flags_must_all_be_set_and_more_may_be() {
    check(
        &flow(),
        &[
            ("{tcp_flags: [{SYN: true}]}", true),
            ("{tcp_flags: [{SYN: true, ACK: true}]}", true),
            ("{tcp_flags: [{SYN: true, FIN: true}]}", false),
            ("{tcp_flags: [{FIN: true}, {ACK: true}]}", true),
            ("{tcp_flags: [{ACK: false}]}", true),
            ("{tcp_flags: [{}]}", true),
            ("{tcp_flags: [{NS: true}]}", false),
            ("{tcp_flags: [{NS: true, SYN: true}]}", false),
        ],
    );
    check(&l4(L4::Udp { source_port: 1, destination_port: 2 }), &[("{tcp_flags: [{}]}", false)]);
    let bits = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
    for (bit, name) in bits.iter().enumerate() {
        let set = l4(L4::Tcp { source_port: 1, destination_port: 2, flags: 1 << bit });
        for other in bits {
            check(&set, &[(&format!("{{tcp_flags: [{{{other}: true}}]}}"), *name == other)]);
        }
    }
}

#[test]
fn enums_by_name_or_number() {
    check(
        &flow(),
        &[
            ("{traffic_direction: [EGRESS]}", true),
            ("{traffic_direction: [2]}", true),
            ("{trafficDirection: [INGRESS]}", false),
            ("{traffic_direction: [TRAFFIC_DIRECTION_UNKNOWN]}", false),
            ("{verdict: [FORWARDED]}", true),
            ("{verdict: [DROPPED, 1]}", true),
            ("{verdict: [DROPPED, AUDIT, 99]}", false),
            ("{ip_version: [IPv4]}", true),
            ("{ip_version: [IPv6, IP_NOT_USED]}", false),
            ("{ipVersion: [2, 1]}", true),
        ],
    );
    let v6 = Flow { source: "::1".parse().unwrap(), ..flow() };
    check(&v6, &[("{ip_version: [IPv6]}", true), ("{ip_version: [1]}", false)]);
}

#[test]
fn reply_needs_a_value_to_compare_with() {
    let replies = [(Some(true), true, false), (Some(false), false, true), (None, false, false)];
    for (is_reply, yes, no) in replies {
        let flow = Flow { is_reply, ..flow() };
        check(&flow, &[("{reply: [true]}", yes), ("{reply: [false]}", no)]);
        check(&flow, &[("{reply: [true, false]}", is_reply.is_some()), ("{reply: []}", true)]);
    }
}

#[test]
fn event_types_and_directions_of_each_hook() {
    let hooks = [
        (Hook::EndpointEgress, 0, "INGRESS"),
        (Hook::EndpointIngress, 5, "EGRESS"),
        (Hook::UplinkIngress, 10, "INGRESS"),
        (Hook::UplinkEgress, 11, "EGRESS"),
    ];
    for (hook, sub_type, direction) in hooks {
        let flow = Flow { hook, ..flow() };
        for wanted in 0..14 {
            let one = format!("{{event_type: [{{type: 4, match_sub_type: true, sub_type: {wanted}}}]}}");
            check(&flow, &[(&one, wanted == sub_type)]);
        }
        for wanted in ["INGRESS", "EGRESS"] {
            check(&flow, &[(&format!("{{traffic_direction: [{wanted}]}}"), wanted == direction)]);
        }
    }
    check(
        &flow(),
        &[
            ("{event_type: [{type: 4}]}", true),
            ("{event_type: [{type: \"4\"}]}", true),
            ("{event_type: [{type: 1}]}", false),
            ("{event_type: [{type: 129}, {type: 4}]}", true),
            ("{event_type: [{type: 4, sub_type: 9}]}", true),
            ("{event_type: [{}]}", true),
            ("{eventType: [{matchSubType: true, subType: 5}]}", true),
            ("{event_type: [{match_sub_type: true}]}", false),
        ],
    );
}

#[test]
fn identities_and_interfaces() {
    check(
        &flow(),
        &[
            ("{source_identity: [3]}", true),
            ("{source_identity: [\"3\"]}", true),
            ("{source_identity: [0, 1, 2]}", false),
            ("{destination_identity: [2]}", true),
            ("{interface: [{name: lxc7}]}", true),
            ("{interface: [{name: eth0}]}", true),
            ("{interface: [{index: 9}]}", true),
            ("{interface: [{index: 9, name: eth0}]}", true),
            ("{interface: [{index: 7, name: eth0}]}", false),
            ("{interface: [{name: eth}]}", false),
            ("{interface: [{name: eth1}, {index: 7}]}", true),
            ("{interface: [{}]}", true),
        ],
    );
    let nowhere = Flow { interfaces: [0; 4], ..flow() };
    check(&nowhere, &[("{interface: [{}]}", false), ("{interface: []}", true)]);
}

#[test]
fn the_quick_start_takes_what_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/quickstart.yaml");
    let tasks = crate::config::load(&[path.into()]).unwrap().plan.tasks;
    let udp = |source_port, destination_port| L4::Udp { source_port, destination_port };
    let (leaves, arrives) = (Hook::UplinkEgress, Hook::UplinkIngress);
    let table: &[(&str, L4, Hook, &[&str])] = &[
        ("8.8.8.8", udp(4000, 53), leaves, &["connections", "dns", "internet-egress"]),
        ("10.0.0.1", udp(4000, 53), leaves, &["connections", "dns"]),
        ("10.0.0.1", udp(53, 4000), arrives, &["connections", "dns"]),
        ("1.1.1.1", udp(1, 2), arrives, &["connections"]),
        ("172.32.0.1", udp(1, 2), leaves, &["connections", "internet-egress"]),
        ("172.31.255.255", udp(1, 2), leaves, &["connections"]),
        ("127.0.0.1", udp(1, 2), leaves, &["connections"]),
        ("169.254.1.1", udp(1, 2), leaves, &["connections"]),
        ("2001:db8::1", udp(1, 2), leaves, &["connections", "internet-egress"]),
        ("fd00::1", udp(1, 2), leaves, &["connections"]),
        ("fe80::1", udp(1, 2), leaves, &["connections"]),
        ("::1", udp(1, 2), leaves, &["connections"]),
    ];
    for (destination, l4, hook, expected) in table {
        let flow = Flow { destination: destination.parse().unwrap(), l4: *l4, hook: *hook, ..flow() };
        let taken: Vec<&str> = tasks
            .iter()
            .filter(|task| task.filter.matches(&flow, &node()))
            .map(|task| &*task.spec.name)
            .collect();
        assert_eq!(taken, *expected, "{destination} {l4:?}");
    }
}

/// Who asks for what the kernel drops: the rule as the README has it.
#[test]
fn drops_are_for_those_who_ask() {
    let table = [
        ("", false),
        ("includeFilters: [{destination_port: ['80']}]", false),
        ("includeFilters: [{verdict: [FORWARDED]}]", false),
        ("includeFilters: [{verdict: [DROPPED, ERROR]}]", true),
        ("includeFilters: [{verdict: [FORWARDED]}, {verdict: [DROPPED], source_ip: [10.0.0.1]}]", true),
        ("includeFilters: [{drop_reason_desc: [POLICY_DENIED]}]", true),
        ("includeFilters: [{verdict: [FORWARDED], drop_reason_desc: [POLICY_DENIED]}]", false),
        ("includeFilters: [{event_type: [{type: 1}]}]", true),
        ("includeFilters: [{event_type: [{type: 4}]}]", false),
        ("includeFilters: [{event_type: [{type: 0}]}]", true),
        ("excludeFilters: [{verdict: [DROPPED]}]", false),
        ("excludeFilters: [{verdict: [FORWARDED]}]", true),
        ("excludeFilters: [{verdict: [FORWARDED], source_ip: [10.0.0.1]}]", false),
        ("excludeFilters: [{event_type: [{type: 4}]}]", true),
        ("excludeFilters: [{event_type: [{type: 4, match_sub_type: true, sub_type: 10}]}]", false),
        ("events: [start, drop]", true),
        ("events: [start, end]", false),
    ];
    for (keys, expected) in table {
        let text = format!("flowLogs:\n- name: a\n  filePath: /a\n  {keys}\n");
        let (specs, problems) = read(&text);
        assert!(problems.errors.is_empty(), "{keys}: {:?}", problems.errors);
        assert_eq!(specs[0].drops, expected, "{keys}");
    }
}
