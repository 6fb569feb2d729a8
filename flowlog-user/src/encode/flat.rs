//! One record as a line of one level: a JSON object with a key for each column (`record::columns`) that is not empty.
//! Times are RFC 3339, numbers are numbers.

use super::json::{drop_reason_desc, span};
use super::text::{address, key, nonzero, number, plain, string, time, time_at};
use super::{foreign, l4, masked};
use crate::record::columns::{COLUMNS, Cell, cells};
use crate::record::fields::{Field, FieldSet, Mask};
use crate::record::measured::{Entry, column_of};
use crate::record::{End, Flow, Foreign, Identity, IpVersion, L4, Measured, Node, Texts, Tunnel};

/// Appends the flow's line, newline included, with the fields that the mask keeps.
pub fn encode(flow: &Flow, node: &Node, mask: &Mask, out: &mut Vec<u8>) {
    let keep = |field| mask.keep.has(field);
    out.extend_from_slice(b"{\"kind\":\"flow\"");
    if keep(Field::Time) {
        key(out, "\"time\":");
        time(out, flow.last_seen_ns);
    }
    if keep(Field::Uuid) {
        key(out, "\"uuid\":");
        super::uuid::uuid(out, flow, node);
    }
    for (field, quoted, value) in [
        (Field::EmitterName, "\"emitter_name\":", "flowlog"),
        (Field::EmitterVersion, "\"emitter_version\":", env!("CARGO_PKG_VERSION")),
        (Field::Verdict, "\"verdict\":", flow.verdict().0),
    ] {
        if keep(field) {
            plain(out, quoted, value);
        }
    }
    if keep(Field::DropReason) {
        nonzero(out, "\"drop_reason\":", flow.drop_reason().unsigned_abs());
    }
    for (field, quoted, value) in [
        (Field::IpSource, "\"source_ip\":", flow.source),
        (Field::IpDestination, "\"destination_ip\":", flow.destination),
    ] {
        if keep(field) {
            key(out, quoted);
            address(out, value);
        }
    }
    if keep(Field::IpVersion) {
        plain(out, "\"ip_version\":", flow.ip_version().name());
    }
    transport(out, flow.l4, mask);
    if let Some(tunnel) = &flow.tunnel {
        self::tunnel(out, tunnel, mask);
    }
    end(
        out,
        (flow.source_identity, flow.labels(End::Source, node)),
        ["\"source_identity\":", "\"source_labels\":"],
        [Field::SourceIdentity, Field::SourceLabels],
        mask,
    );
    end(
        out,
        (flow.destination_identity, flow.labels(End::Destination, node)),
        ["\"destination_identity\":", "\"destination_labels\":"],
        [Field::DestinationIdentity, Field::DestinationLabels],
        mask,
    );
    if keep(Field::Type) {
        plain(out, "\"flow_type\":", "L3_L4");
    }
    if keep(Field::NodeName) && !node.name.is_empty() {
        key(out, "\"node_name\":");
        string(out, &node.name);
    }
    point(out, flow, node, mask);
    if keep(Field::Summary) {
        key(out, "\"summary\":\"");
        flow.summary(out);
        out.push(b'"');
    }
    measured(out, &Measured::of(flow, node, mask));
    out.extend_from_slice(b"}\n");
}

/// `l4`: its member's name where the mask keeps anything of it.
fn transport(out: &mut Vec<u8>, l4: L4, mask: &Mask) {
    let keep = |field| mask.keep.has(field);
    let ports = |out: &mut Vec<u8>, fields: [Field; 2], source: u16, destination: u16| {
        for (field, quoted, port) in
            [(fields[0], "\"source_port\":", source), (fields[1], "\"destination_port\":", destination)]
        {
            if keep(field) {
                nonzero(out, quoted, port.into());
            }
        }
    };
    let icmp = |out: &mut Vec<u8>, fields: [Field; 2], kind: u8, code: u8| {
        for (field, quoted, value) in
            [(fields[0], "\"icmp_type\":", kind), (fields[1], "\"icmp_code\":", code)]
        {
            if keep(field) {
                nonzero(out, quoted, value.into());
            }
        }
    };
    if let Some(name) = l4.name().filter(|_| l4::is_kept(l4, mask)) {
        plain(out, "\"protocol\":", name);
    }
    match l4 {
        L4::Tcp { source_port, destination_port, flags } => {
            ports(out, [Field::TcpSourcePort, Field::TcpDestinationPort], source_port, destination_port);
            tcp_flags(out, flags, mask);
        }
        L4::Udp { source_port, destination_port } => {
            ports(out, [Field::UdpSourcePort, Field::UdpDestinationPort], source_port, destination_port);
        }
        L4::Sctp { source_port, destination_port } => {
            ports(out, [Field::SctpSourcePort, Field::SctpDestinationPort], source_port, destination_port);
        }
        L4::Icmpv4 { icmp_type, code } => icmp(out, [Field::Icmpv4Type, Field::Icmpv4Code], icmp_type, code),
        L4::Icmpv6 { icmp_type, code } => icmp(out, [Field::Icmpv6Type, Field::Icmpv6Code], icmp_type, code),
        L4::Other => {}
    }
}

/// The outer headers of what came in a tunnel.
fn tunnel(out: &mut Vec<u8>, tunnel: &Tunnel, mask: &Mask) {
    const UDP: FieldSet = span(Field::TunnelUdpSourcePort, Field::TunnelUdpDestinationPort);
    let keep = |field| mask.keep.has(field);
    if let Some(name) = tunnel.kind.hubble_name().filter(|_| keep(Field::TunnelProtocol)) {
        plain(out, "\"tunnel_protocol\":", name);
    }
    for (field, quoted, value) in [
        (Field::TunnelIpSource, "\"tunnel_source_ip\":", tunnel.source),
        (Field::TunnelIpDestination, "\"tunnel_destination_ip\":", tunnel.destination),
    ] {
        if keep(field) {
            key(out, quoted);
            address(out, value);
        }
    }
    if keep(Field::TunnelIpVersion) {
        plain(out, "\"tunnel_ip_version\":", IpVersion::of(tunnel.source).name());
    }
    if tunnel.kind.is_udp() && mask.keep.intersects(UDP) {
        plain(out, "\"tunnel_l4_protocol\":", "UDP");
        for (field, quoted, port) in [
            (Field::TunnelUdpSourcePort, "\"tunnel_source_port\":", tunnel.ports.0),
            (Field::TunnelUdpDestinationPort, "\"tunnel_destination_port\":", tunnel.ports.1),
        ] {
            if keep(field) {
                nonzero(out, quoted, port.into());
            }
        }
    }
    if keep(Field::TunnelVni) {
        nonzero(out, "\"tunnel_vni\":", tunnel.vni);
    }
}

fn tcp_flags(out: &mut Vec<u8>, flags: u8, mask: &Mask) {
    if !mask.keep.intersects(l4::FLAGS_SET) {
        return;
    }
    key(out, "\"tcp_flags\":\"");
    let mut first = true;
    for (field, bit, quoted) in l4::TCP_FLAGS {
        if flags >> bit & 1 == 1 && mask.keep.has(field) {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            // `"SYN":true`
            out.extend_from_slice(quoted.get(1..4).unwrap_or_default().as_bytes());
        }
    }
    out.push(b'"');
}

fn end(
    out: &mut Vec<u8>,
    (identity, labels): (Identity, Texts<'_>),
    keys: [&str; 2],
    fields: [Field; 2],
    mask: &Mask,
) {
    if mask.keep.has(fields[0]) {
        nonzero(out, keys[0], identity.number());
    }
    if mask.keep.has(fields[1]) {
        key(out, keys[1]);
        strings(out, labels.iter());
    }
}

/// `event_type` to `interface_name`.
fn point(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let keep = |field| mask.keep.has(field);
    let (kind, sub_type) = flow.event_type();
    for (field, quoted, value) in [
        (Field::EventTypeType, "\"event_type\":", kind),
        (Field::EventTypeSubType, "\"event_sub_type\":", sub_type),
    ] {
        if keep(field) {
            nonzero(out, quoted, value.unsigned_abs());
        }
    }
    for (field, quoted, value) in [
        (Field::TrafficDirection, "\"traffic_direction\":", Some(flow.traffic_direction().name())),
        (Field::TraceObservationPoint, "\"trace_observation_point\":", flow.trace_observation_point()),
        (Field::TraceReason, "\"trace_reason\":", flow.trace_reason()),
    ] {
        if let Some(value) = value.filter(|_| keep(field)) {
            plain(out, quoted, value);
        }
    }
    if let Some(name) = drop_reason_desc(flow).filter(|_| keep(Field::DropReasonDesc)) {
        plain(out, "\"drop_reason_desc\":", name);
    }
    if let Some(is_reply) = flow.is_reply.filter(|_| keep(Field::IsReply)) {
        key(out, if is_reply { "\"is_reply\":true" } else { "\"is_reply\":false" });
    }
    let [index, ..] = flow.interfaces;
    if keep(Field::InterfaceIndex) {
        nonzero(out, "\"interface_index\":", index);
    }
    let name = node.interfaces.get(&index).map_or("", |interface| interface.name.as_str());
    if keep(Field::InterfaceName) && index != 0 && !name.is_empty() {
        key(out, "\"interface_name\":");
        string(out, name);
    }
}

fn measured(out: &mut Vec<u8>, ours: &Measured<'_>) {
    for (key, entry) in ours.entries() {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(column_of(key).as_bytes());
        out.extend_from_slice(b"\":");
        match entry {
            Entry::Text(name) => {
                out.push(b'"');
                out.extend_from_slice(name.as_bytes());
                out.push(b'"');
            }
            Entry::Foreign(name) => string(out, name),
            Entry::Number(value) => number(out, value),
            Entry::Time(ns) => time(out, ns),
            Entry::Yes => out.extend_from_slice(b"true"),
            Entry::Texts(names) => strings(out, names.iter().map(|name| &**name)),
        }
    }
}

fn strings<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    out.push(b'[');
    for (at, text) in texts.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, text);
    }
    out.push(b']');
}

/// Appends any event's line.
pub fn event(event: &Foreign, mask: &Mask, out: &mut Vec<u8>) {
    let event = masked::event(event, mask);
    out.push(b'{');
    for (at, cell) in cells(&event) {
        let Some(column) = COLUMNS.get(at) else { continue };
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        string(out, column.name);
        out.push(b':');
        self::cell(out, &cell);
    }
    out.extend_from_slice(b"}\n");
}

pub(super) fn cell(out: &mut Vec<u8>, cell: &Cell<'_>) {
    match cell {
        Cell::Text(text) => string(out, text),
        Cell::Texts(texts) => strings(out, texts.iter().map(|text| &**text)),
        Cell::Unsigned(value) => number(out, *value),
        Cell::Signed(value) => number(out, *value),
        Cell::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Cell::Time(seconds, nanoseconds) => time_at(out, *seconds, *nanoseconds),
        Cell::Json(spec, value) => string(out, &foreign::json_text(spec, value)),
    }
}
