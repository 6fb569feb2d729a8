//! Tasks and packets out of a random generator: few values, so that they meet.

use std::collections::BTreeMap;

use crate::packets;
use crate::random::Random;

/// Values of each filter field, few enough for flows to meet them.
const ADDRESSES: [&str; 16] = [
    "10.0.0.0/8",
    "10.0.0.0/9",
    "10.1.0.0/16",
    "10.1.2.0/24",
    "10.1.2.3",
    "10.1.2.3/32",
    "0.0.0.0/0",
    "255.255.255.255",
    "fd00::/8",
    "fd00::1",
    "::/0",
    "2001:db8::/32",
    "::ffff:0:0/96",
    "::ffff:10.1.2.3",
    "203.0.113.0/24",
    "10.1.2.4/30",
];
const LISTS: [(&str, &[&str]); 24] = [
    ("source_ip", &ADDRESSES),
    ("destination_ip", &ADDRESSES),
    ("source_port", &["0", "53", "80", "443", "40000", "65535"]),
    ("destination_port", &["0", "53", "80", "443", "40000", "65535"]),
    ("protocol", &["tcp", "udp", "sctp", "icmp", "icmpv6", "dns"]),
    ("tcp_flags", &["{SYN: true}", "{SYN: true, ACK: true}", "{FIN: true}", "{RST: true}"]),
    ("reply", &["true", "false"]),
    ("traffic_direction", &["INGRESS", "EGRESS"]),
    ("verdict", &["FORWARDED", "DROPPED"]),
    ("ip_version", &["IPv4", "IPv6"]),
    ("event_type", &["{type: 4}", "{type: 4, match_sub_type: true, sub_type: 5}", "{type: 1}"]),
    ("source_identity", &["1", "2", "3"]),
    ("destination_identity", &["1", "2", "3"]),
    ("source_label", &["'reserved:world'", "'!reserved:host'", "'k8s:app=web'"]),
    ("destination_label", &["'reserved:host'", "'reserved:unmanaged'"]),
    ("node_name", &["'east/'", "'node-*'", "'west/'", "'other'"]),
    ("interface", &["{name: eth0}", "{index: 10}", "{name: lxc0003}"]),
    ("source_pod", &["'shop/'"]),
    ("encrypted", &["true", "false"]),
    ("ip_trace_id", &["0", "5"]),
    ("trace_id", &["'a'"]),
    ("http_status_code", &["'404'"]),
    ("node_labels", &["'a=b'"]),
    ("drop_reason_desc", &["POLICY_DENIED"]),
];
/// One filter: fields with some of their values.
fn filter(random: &mut Random, fields_max: usize) -> String {
    let mut fields = BTreeMap::new();
    for _ in 0..random.below(fields_max + 1) {
        // The first ten are what people ask for.
        let lists = if random.once_in(3) { &LISTS[..] } else { &LISTS[..10] };
        let (key, values) = *random.pick(lists);
        let some: Vec<String> =
            (0..=random.below(3)).map(|_| quoted(key, random.pick::<&str>(values))).collect();
        fields.insert(key, format!("{key}: [{}]", some.join(", ")));
    }
    if random.once_in(400) {
        let expression = *random.pick(&[
            "_flow.l4.TCP.destination_port == 443u",
            "has(_flow.source) && _flow.source.identity == 3u",
        ]);
        fields.insert("cel", format!("experimental: {{cel_expression: ['{expression}']}}"));
    }
    if fields.contains_key("event_type") {
        // HTTP is asked of other events than these.
        fields.remove("http_status_code");
    }
    format!("{{{}}}", fields.into_values().collect::<Vec<_>>().join(", "))
}

fn quoted(key: &str, value: &str) -> String {
    if key.ends_with("_ip") || key.ends_with("_port") { format!("\"{value}\"") } else { value.to_owned() }
}

/// So many filters, as they stand in a task file.
pub fn filters(random: &mut Random, max: usize) -> String {
    // Some tasks share filters, word for word.
    let mut one = |at: usize| {
        if random.once_in(3) { filter(&mut Random::new(at as u64 % 7), 3) } else { filter(random, 4) }
    };
    let filters: Vec<String> = (0..max).map(&mut one).collect();
    format!("[{}]", filters.join(", "))
}

const MASKS: [&str; 4] =
    ["", ", fieldMask: [IP, l4, extensions]", ", fieldMask: [Summary]", ", fieldMask: [source, uuid]"];

/// A task of a file, `t` and its number, that writes to `folder`; what it says beside filters and mask is one of
/// `others`, each with a comma before it.
pub fn task(random: &mut Random, number: usize, folder: &str, others: &[&str]) -> String {
    let (include, exclude) = (random.below(3), random.below(2));
    let (include, exclude) = (filters(random, include), filters(random, exclude));
    let (other, mask) = (random.pick(others), random.pick(&MASKS));
    format!(
        "  - {{name: t{number}, filePath: {folder}/t{number}.log, includeFilters: {include}, excludeFilters: \
         {exclude}{other}{mask}}}\n"
    )
}

/// A frame between hosts that the filters know: a datagram, an echo, GRE, or a segment that opens, goes on with, answers
/// or ends a connection, whatever came before.
pub fn frame(random: &mut Random) -> Vec<u8> {
    const HOSTS: [[u8; 4]; 5] =
        [[10, 1, 2, 3], [10, 1, 2, 4], [203, 0, 113, 7], [10, 200, 0, 1], [192, 0, 2, 1]];
    const PORTS: [u16; 4] = [53, 80, 443, 40_000];
    let (source, destination) = (*random.pick(&HOSTS), *random.pick(&HOSTS));
    let (from, to) = (*random.pick(&PORTS), *random.pick(&PORTS));
    let (protocol, payload) = match random.below(5) {
        0 => (17, packets::udp(from, to, &[1, 2, 3, 4])),
        1 => (1, vec![8, 0, 0, 0, 0, 1, 0, 1]),
        2 => (47, vec![0; 8]),
        _ => (6, packets::tcp(from, to, *random.pick(&[0x02, 0x12, 0x10, 0x18, 0x11, 0x04]), &[], &[])),
    };
    packets::ethernet(0x0800, &packets::ipv4(source, destination, protocol, &payload))
}
