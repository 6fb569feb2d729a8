//! The kernel's test is a superset of the tasks' filters: over any tasks and packets, whatever a task would log passes.

use std::collections::BTreeMap;

use flowlog_abi::{FlowKey, KIND_ECHO, KIND_FRAGMENT, Report, hook};
use flowlog_ebpf::{Packet, Sight, add, new_entry, report, wanted};
use flowlog_user::capture::rules::Tables;
use flowlog_user::clock::Clock;
use flowlog_user::config;
use flowlog_user::decode::{Cadence, Decoder};
use flowlog_user::record::{EndReason, Flow, Node};
use flowlog_user::task::{Plan, rules};
use proptest::prelude::*;

const ADDRESSES: [&str; 8] = [
    "10.0.0.1",
    "10.0.0.2",
    "10.1.0.1",
    "192.168.7.9",
    "fd00::1",
    "fd00::2",
    "2001:db8::1",
    "::ffff:10.0.0.1",
];
const PREFIXES: [&str; 12] = [
    "10.0.0.1",
    "10.0.0.2",
    "10.0.0.0/8",
    "10.0.0.0/31",
    "0.0.0.0/0",
    "192.168.0.0/16",
    "fd00::1",
    "fd00::/16",
    "::/0",
    "2001:db8::/32",
    "::ffff:0:0/96",
    "10.9.9.9",
];
const PORTS: [u16; 6] = [0, 53, 80, 443, 8080, 40_000];
const PROTOCOLS: [&str; 8] = ["tcp", "udp", "sctp", "icmp", "icmpv4", "icmpv6", "TCP", "vrrp"];

fn list(key: &'static str, values: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec(values, 1..4).prop_map(move |values| format!("{key}: [{}]", values.join(", ")))
}

/// A field of a filter with some values, as it stands in a task file.
fn field() -> impl Strategy<Value = String> {
    let quoted = |text: &str| format!("\"{text}\"");
    let address = prop::sample::select(&PREFIXES[..]).prop_map(quoted);
    let port = prop::sample::select(&PORTS[..]).prop_map(move |port| format!("\"{port}\""));
    let protocol = prop::sample::select(&PROTOCOLS[..]).prop_map(quoted);
    prop_oneof![
        list("source_ip", address.clone()),
        list("destination_ip", address),
        list("source_port", port.clone()),
        list("destination_port", port),
        list("protocol", protocol),
        list("ip_version", prop::sample::select(&["IPv4", "IPv6"][..]).prop_map(str::to_owned)),
        list("tcp_flags", Just("{SYN: true}".to_owned())),
        list("reply", any::<bool>().prop_map(|reply| reply.to_string())),
        list("traffic_direction", Just("EGRESS".to_owned())),
        list("verdict", Just("FORWARDED".to_owned())),
        list("source_identity", Just("2".to_owned())),
    ]
}

fn filters() -> impl Strategy<Value = String> {
    let filter = prop::collection::vec(field(), 0..4).prop_map(|fields| {
        // One of each kind: a key may stand in a map only once.
        let by_key: BTreeMap<String, String> = fields
            .into_iter()
            .filter_map(|field| Some((field.split_once(':')?.0.to_owned(), field)))
            .collect();
        format!("{{{}}}", by_key.into_values().collect::<Vec<_>>().join(", "))
    });
    prop::collection::vec(filter, 0..4).prop_map(|filters| format!("[{}]", filters.join(", ")))
}

/// Pools that overlap, of both families, with parts that are reserved, as prefixes and as ranges.
const POOLS: &str = "
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata: {name: a}
spec:
  ipv4: {cidrs: [{cidr: 10.0.0.0/30, reservedRange: 10.0.0.1-10.0.0.1}, 192.168.0.0/16], maskSize: 32}
  ipv6: {cidrs: ['fd00::/64'], maskSize: 128, pool: [{cidr: 'fd00::/64', reservedRange: 'fd00::2-fd00::ffff'}]}
---
apiVersion: flowlog.io/v1
kind: AddressPool
metadata: {name: b}
spec: {cidrs: ['2001:db8::/32'], ranges: [10.0.0.2-10.1.0.1], reserved: [10.0.0.3-10.1.0.0]}
---
apiVersion: flowlog.io/v1
kind: AddressPool
metadata: {name: c}
spec: {cidrs: ['::ffff:0:0/96'], ranges: [10.9.9.9-10.9.9.9]}
";
const NAMES: [&str; 10] =
    ["a", "b", "c", "a=reserved", "b=reserved", "!a", "!b", "!c", "!a=reserved", "!b=reserved"];

fn conditions() -> impl Strategy<Value = String> {
    let pools = |key| list(key, prop::sample::select(&NAMES[..]).prop_map(|name| format!("\"{name}\"")));
    prop_oneof![
        Just("{}".to_owned()),
        pools("source_pool").prop_map(|pools| format!("{{{pools}}}")),
        pools("destination_pool").prop_map(|pools| format!("{{{pools}}}")),
        (pools("source_pool"), pools("destination_pool"))
            .prop_map(|(one, other)| format!("{{{one}, {other}}}")),
    ]
}

/// Up to `max` tasks with filters.
fn plan(max: usize) -> impl Strategy<Value = Plan> {
    prop::collection::vec((filters(), filters(), conditions()), 1..=max).prop_map(|tasks| {
        let mut text = "flowLogs:\n".to_owned();
        for (number, (include, exclude, conditions)) in tasks.iter().enumerate() {
            text += &format!("  - {{name: t{number}, filePath: /var/log/flowlog/t{number}.log, ");
            text += &format!("includeFilters: {include}, excludeFilters: {exclude}, where: {conditions}}}\n");
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("tasks.yaml"), &text).expect("room");
        std::fs::write(folder.path().join("pools.yaml"), POOLS).expect("room");
        config::load(&[folder.path().to_owned()]).unwrap_or_else(|error| panic!("{text}: {error:?}")).plan
    })
}

fn octets(text: &str) -> [u8; 16] {
    match text.parse().expect("an address") {
        std::net::IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(address) => address.octets(),
    }
}

prop_compose! {
    fn packet()(source in prop::sample::select(&ADDRESSES[..]), destination in prop::sample::select(&ADDRESSES[..]),
            ports in prop::array::uniform2(prop::sample::select(&PORTS[..])),
            protocol in prop::sample::select(&[1_u8, 6, 17, 47, 58, 132][..]),
            kind in prop::sample::select(&[0, 0, 0, KIND_FRAGMENT][..]),
            flags: u8, answered: bool) -> (Packet, bool) {
        let is_v4 = |text: &str| text.contains('.') && !text.contains(':');
        let kind = if protocol == 1 || protocol == 58 { KIND_ECHO } else { kind };
        let [source_port, destination_port] = if kind == KIND_FRAGMENT { [0, 0] } else { ports };
        let packet = Packet {
            source: octets(source), destination: octets(destination), source_port, destination_port, protocol,
            version: if is_v4(source) && is_v4(destination) { 4 } else { 6 }, kind,
            tcp_flags: if protocol == 6 { flags } else { 0 }, icmp_type: 0, icmp_code: 0, header_bytes: 54, jumbo_bytes: 0, fragment: 0, fragment_id: 0,
            vlans: 0,
        };
        (packet, answered)
    }
}

/// Every record that any task could get of a connection of this packet, and its key.
fn records(packet: &Packet, answered: bool) -> (FlowKey, Vec<Flow>) {
    let (key, direction) = packet.key();
    let sight =
        Sight { hook: hook::UPLINK_EGRESS, ifindex: 2, now_ns: 1, packets: 1, bytes: 60, generation: 0 };
    let mut entry = new_entry(packet, &sight, direction, 7);
    add(&mut entry, direction, packet, &sight);
    if answered {
        add(&mut entry, 1 - direction, packet, &sight);
    }
    let cadence = Cadence { start: true, update: true, end: true, interval_ns: 1 };
    let mut decoder = Decoder::new([Some(cadence), None, None, None]);
    let mut flows = decoder.flows();
    let last: Report = report(&key, &entry);
    decoder.end(&last, EndReason::Idle, Clock::wall(), &mut flows);
    (key, flows.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_task_would_log_passes(plan in plan(5), packets in prop::collection::vec(packet(), 40)) {
        let tables = Tables::new(&rules(plan.tasks.iter().map(|task| &task.spec)));
        let node = Node::default();
        for (packet, answered) in &packets {
            let (key, flows) = records(packet, *answered);
            prop_assert!(!flows.is_empty());
            let passes = tables.everything || wanted(&key, &tables);
            for task in &plan.tasks {
                if let Some(flow) = flows.iter().find(|flow| task.filter.matches(flow, &node)) {
                    prop_assert!(passes, "{} wants {flow:?}, but {key:?} is rejected", task.spec.name);
                }
            }
        }
    }

    /// With more filters than there are bits for.
    #[test]
    fn many_tasks_widen_and_never_narrow(plan in plan(60), packets in prop::collection::vec(packet(), 20)) {
        let tables = Tables::new(&rules(plan.tasks.iter().map(|task| &task.spec)));
        let node = Node::default();
        for (packet, answered) in &packets {
            let (key, flows) = records(packet, *answered);
            let wants = plan.tasks.iter().any(|task| flows.iter().any(|flow| task.filter.matches(flow, &node)));
            prop_assert!(!wants || tables.everything || wanted(&key, &tables), "{key:?} is rejected");
        }
    }
}

/// Whether the first packet of a connection of IPv4 passes.
fn passes(
    tables: &Tables,
    source: &str,
    source_port: u16,
    destination: &str,
    destination_port: u16,
    protocol: u8,
) -> bool {
    let packet = Packet {
        source: octets(source),
        destination: octets(destination),
        source_port,
        destination_port,
        protocol,
        version: 4,
        kind: 0,
        tcp_flags: 0,
        icmp_type: 0,
        icmp_code: 0,
        header_bytes: 54,
        jumbo_bytes: 0,
        fragment: 0,
        fragment_id: 0,
        vlans: 0,
    };
    wanted(&packet.key().0, tables)
}

/// What a pool asks for is asked in the kernel.
#[test]
fn what_lies_in_no_pool_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("pools.yaml"), POOLS).expect("room");
    let task = "{name: a, filePath: /var/log/flowlog/a.log, where: {source_pool: [a=reserved], destination_pool: [b]}}";
    std::fs::write(folder.path().join("tasks.yaml"), format!("flowLogs: [{task}]\n")).expect("room");
    let plan = config::load(&[folder.path().to_owned()]).expect("a task").plan;
    assert_eq!(plan.tasks[0].spec.filter.divide().kernel, ["where.source_pool", "where.destination_pool"]);
    let tables = Tables::new(&rules(plan.tasks.iter().map(|task| &task.spec)));
    let passes = |source, destination| passes(&tables, source, 1, destination, 2, 17);
    assert!(passes("10.0.0.1", "10.1.0.1") && passes("10.1.0.1", "10.0.0.1"));
    assert!(!passes("10.0.0.0", "10.1.0.1"), "not reserved");
    assert!(!passes("10.0.0.1", "10.1.0.2"), "past the range's end");
    assert!(passes("10.0.0.1", "10.0.0.3") && !passes("10.0.0.1", "192.168.0.1"));
}

/// A test that passes everything would be a superset too.
#[test]
fn what_nobody_wants_is_rejected() {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().expect("a file");
    let task = "{name: a, filePath: /var/log/flowlog/a.log, includeFilters: \
                [{source_ip: [10.0.0.0/31], destination_port: [\"443\"], protocol: [tcp]}]}";
    std::fs::write(file.path(), format!("flowLogs:\n  - {task}\n")).expect("room");
    let plan = config::load(&[file.path().to_owned()]).expect("a task").plan;
    let tables = Tables::new(&rules(plan.tasks.iter().map(|task| &task.spec)));
    let passes = |source, source_port, destination, destination_port, protocol| {
        passes(&tables, source, source_port, destination, destination_port, protocol)
    };
    assert!(passes("10.0.0.1", 40_000, "192.168.7.9", 443, 6));
    assert!(passes("192.168.7.9", 443, "10.0.0.1", 40_000, 6), "the answer");
    assert!(!passes("10.0.0.1", 443, "192.168.7.9", 40_000, 6), "the port on the wrong side");
    assert!(!passes("10.0.0.2", 40_000, "192.168.7.9", 443, 6));
    assert!(!passes("10.0.0.1", 40_000, "192.168.7.9", 443, 17));
    assert!(!passes("10.0.0.1", 40_000, "192.168.7.9", 80, 6));
}
