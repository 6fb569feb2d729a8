//! One flow as a `flowlog.v1.Record` (`config/flowlog.proto`) behind its length: Hubble's `ExportEvent` with what
//! flowlog measured beside the flow, typed, instead of in `flow.extensions`.

use super::json::span;
use super::protobuf_event;
use super::wire::{bytes, delimited, nonzero, timestamp};
use crate::record::fields::{Field, FieldSet, Mask};
use crate::record::{End, Flow, Foreign, Identity, IpVersion, L4, Measured, Node, Texts, Tunnel, schema};

/// Appends the flow with the fields that the mask keeps. Zero values are left out.
pub fn encode(flow: &Flow, node: &Node, mask: &Mask, out: &mut Vec<u8>) {
    let keep = |field| mask.keep.has(field);
    delimited(out, |out| {
        super::wire::message(out, 1, |out| {
            head(out, flow, node, mask);
            l4(out, flow.l4, mask);
            tunnel(out, flow.tunnel.as_ref(), mask);
            ends(out, flow, node, mask);
            if keep(Field::Type) {
                nonzero(out, 10, 1); // L3_L4
            }
            if keep(Field::NodeName) && !node.name.is_empty() {
                bytes(out, 11, node.name.as_bytes());
            }
            absent(out, mask, 15, const { span(Field::L7Type, Field::KafkaTopic) });
            point(out, flow, node, mask);
            if keep(Field::Summary) {
                summary(out, flow);
            }
            absent(
                out,
                mask,
                21007,
                const { span(Field::AggregateIngressFlowCount, Field::AggregateUnknownDirectionFlowCount) },
            );
        });
        let base_ns = if keep(Field::Time) { flow.last_seen_ns } else { 0 };
        if mask.keep.intersects(super::extensions::EXTENSIONS)
            || mask.named.intersects(super::extensions::EXTENSIONS)
        {
            protobuf_event::measured(out, &Measured::of(flow, node, mask), base_ns);
        }
        if keep(Field::NodeName) && !node.name.is_empty() {
            bytes(out, 1000, node.name.as_bytes());
        }
        if keep(Field::Time) {
            time(out, 1001, flow.last_seen_ns);
        }
    });
}

/// Appends any event.
pub fn event(event: &Foreign, mask: &Mask, out: &mut Vec<u8>) {
    protobuf_event::encode(event, mask, out);
}

fn time(out: &mut Vec<u8>, number: u32, ns: i64) {
    let nanoseconds = u32::try_from(ns.rem_euclid(1_000_000_000)).unwrap_or(0);
    timestamp(out, number, ns.div_euclid(1_000_000_000), nanoseconds);
}

/// `time` to `IP`.
fn head(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let keep = |field| mask.keep.has(field);
    if keep(Field::Time) {
        time(out, 1, flow.last_seen_ns);
    }
    if keep(Field::Uuid) {
        bytes(out, 34, &flow.uuid(node));
    }
    message(out, mask, 41, const { span(Field::EmitterName, Field::EmitterVersion) }, true, |out| {
        if keep(Field::EmitterName) {
            bytes(out, 1, b"flowlog");
        }
        if keep(Field::EmitterVersion) {
            bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
        }
    });
    if keep(Field::Verdict) {
        nonzero(out, 2, flow.verdict().1.unsigned_abs().into());
    }
    if keep(Field::DropReason) {
        nonzero(out, 3, flow.drop_reason().unsigned_abs().into());
    }
    absent(out, mask, 4, const { span(Field::EthernetSource, Field::EthernetDestination) });
    message(out, mask, 5, const { span(Field::IpSource, Field::IpEncrypted) }, true, |out| {
        if keep(Field::IpSource) {
            address(out, 1, flow.source);
        }
        if keep(Field::IpDestination) {
            address(out, 2, flow.destination);
        }
        if keep(Field::IpVersion) {
            nonzero(out, 3, u64::from(flow.ip_version().number().unsigned_abs()));
        }
    });
}

fn address(out: &mut Vec<u8>, number: u32, address: std::net::IpAddr) {
    super::wire::message(out, number, |out| super::text::plain_address(out, address));
}

/// `source` and `destination`.
fn ends(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let source = const { span(Field::SourceId, Field::SourceWorkloads) };
    let fields = [Field::SourceIdentity, Field::SourceLabels];
    let source_labels = flow.labels(End::Source, node);
    message(out, mask, 8, source, true, |out| {
        identity(out, flow.source_identity, source_labels, fields, mask);
    });
    let destination = const { span(Field::DestinationId, Field::DestinationWorkloads) };
    let fields = [Field::DestinationIdentity, Field::DestinationLabels];
    let destination_labels = flow.labels(End::Destination, node);
    message(out, mask, 9, destination, true, |out| {
        identity(out, flow.destination_identity, destination_labels, fields, mask);
    });
}

fn identity(
    out: &mut Vec<u8>,
    identity: Identity,
    texts: Texts<'_>,
    [number, labels]: [Field; 2],
    mask: &Mask,
) {
    if mask.keep.has(number) {
        nonzero(out, 2, identity.number().into());
    }
    if mask.keep.has(labels) {
        for text in texts.iter() {
            bytes(out, 4, text.as_bytes());
        }
    }
}

fn l4(out: &mut Vec<u8>, l4: L4, mask: &Mask) {
    const WHOLE: FieldSet = span(Field::TcpSourcePort, Field::IgmpGroupAddress);
    message(out, mask, 6, WHOLE, l4 != L4::Other, |out| match l4 {
        L4::Tcp { source_port, destination_port, flags } => {
            message(out, mask, 1, const { span(Field::TcpSourcePort, Field::TcpNs) }, true, |out| {
                number(out, mask, Field::TcpSourcePort, 1, source_port);
                number(out, mask, Field::TcpDestinationPort, 2, destination_port);
                message(out, mask, 3, const { span(Field::TcpFin, Field::TcpNs) }, true, |out| {
                    for (field, bit, _) in super::l4::TCP_FLAGS {
                        if mask.keep.has(field) {
                            nonzero(out, u32::from(bit) + 1, u64::from(flags >> bit & 1));
                        }
                    }
                });
            });
        }
        L4::Udp { source_port, destination_port } => {
            let fields = [(Field::UdpSourcePort, source_port), (Field::UdpDestinationPort, destination_port)];
            pair(out, mask, 2, fields);
        }
        L4::Icmpv4 { icmp_type, code } => {
            pair(out, mask, 3, [(Field::Icmpv4Type, icmp_type.into()), (Field::Icmpv4Code, code.into())]);
        }
        L4::Icmpv6 { icmp_type, code } => {
            pair(out, mask, 4, [(Field::Icmpv6Type, icmp_type.into()), (Field::Icmpv6Code, code.into())]);
        }
        L4::Sctp { source_port, destination_port } => {
            let fields =
                [(Field::SctpSourcePort, source_port), (Field::SctpDestinationPort, destination_port)];
            pair(out, mask, 5, fields);
        }
        L4::Other => {}
    });
}

/// A member of two numbers.
fn pair(out: &mut Vec<u8>, mask: &Mask, member: u32, [first, second]: [(Field, u16); 2]) {
    let fields = FieldSet::NONE.with(first.0).with(second.0);
    message(out, mask, member, fields, true, |out| {
        number(out, mask, first.0, 1, first.1);
        number(out, mask, second.0, 2, second.1);
    });
}

fn number(out: &mut Vec<u8>, mask: &Mask, field: Field, number: u32, value: u16) {
    if mask.keep.has(field) {
        nonzero(out, number, value.into());
    }
}

/// `event_type` to `trace_context`: where the flow was seen, and which way it went.
fn point(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let keep = |field| mask.keep.has(field);
    let (kind, sub_type) = flow.event_type();
    message(out, mask, 19, const { span(Field::EventTypeType, Field::EventTypeSubType) }, true, |out| {
        for (field, number, value) in
            [(Field::EventTypeType, 1, kind), (Field::EventTypeSubType, 2, sub_type)]
        {
            if keep(field) {
                nonzero(out, number, value.unsigned_abs().into());
            }
        }
    });
    absent(out, mask, 20, const { span(Field::SourceServiceName, Field::SourceServiceNamespace) });
    absent(out, mask, 21, const { span(Field::DestinationServiceName, Field::DestinationServiceNamespace) });
    for (field, number, value) in [
        (Field::TrafficDirection, 22, flow.traffic_direction().number()),
        (
            Field::TraceObservationPoint,
            24,
            flow.trace_observation_point().map_or(0, |name| of(&schema::TRACE_OBSERVATION_POINT, name)),
        ),
        (Field::TraceReason, 36, flow.trace_reason().map_or(0, |name| of(&schema::TRACE_REASON, name))),
        (Field::DropReasonDesc, 25, flow.drop_reason()),
    ] {
        if keep(field) {
            nonzero(out, number, value.unsigned_abs().into());
        }
    }
    absent(out, mask, 38, const { span(Field::FileName, Field::FileLine) });
    absent(out, mask, 40, const { span(Field::IpTraceIdTraceId, Field::IpTraceIdIpOptionType) });
    if let Some(is_reply) = flow.is_reply.filter(|_| keep(Field::IsReply)) {
        super::wire::message(out, 26, |out| nonzero(out, 1, is_reply.into()));
    }
    let [index, ..] = flow.interfaces;
    message(out, mask, 28, const { span(Field::InterfaceIndex, Field::InterfaceName) }, index != 0, |out| {
        if keep(Field::InterfaceIndex) {
            nonzero(out, 1, index.into());
        }
        let name = node.interfaces.get(&index).map_or("", |interface| interface.name.as_str());
        if keep(Field::InterfaceName) && !name.is_empty() {
            bytes(out, 2, name.as_bytes());
        }
    });
    let trace = const { span(Field::TraceContextTraceId, Field::TraceContextTraceId) };
    message(out, mask, 30, trace, false, |out| absent(out, mask, 1, trace));
}

fn of(of: &schema::Enumeration, name: &str) -> i32 {
    of.number_of(name).unwrap_or(0)
}

fn summary(out: &mut Vec<u8>, flow: &Flow) {
    super::wire::message(out, 100_000, |out| flow.summary(out));
}

/// The outer headers of what came in a tunnel; without one only what a mask leads through.
fn tunnel(out: &mut Vec<u8>, tunnel: Option<&Tunnel>, mask: &Mask) {
    const WHOLE: FieldSet = span(Field::TunnelProtocol, Field::TunnelVni);
    const IP: FieldSet = span(Field::TunnelIpSource, Field::TunnelIpEncrypted);
    const L4: FieldSet = span(Field::TunnelTcpSourcePort, Field::TunnelIgmpGroupAddress);
    let keep = |field| mask.keep.has(field);
    message(out, mask, 39, WHOLE, tunnel.is_some(), |out| {
        let Some(tunnel) = tunnel else {
            absent(out, mask, 2, IP);
            absent(out, mask, 3, L4);
            return;
        };
        if let Some(name) = tunnel.kind.hubble_name().filter(|_| keep(Field::TunnelProtocol)) {
            nonzero(out, 1, of(&schema::TUNNEL_PROTOCOL, name).unsigned_abs().into());
        }
        message(out, mask, 2, IP, true, |out| {
            for (field, number, value) in [
                (Field::TunnelIpSource, 1, tunnel.source),
                (Field::TunnelIpDestination, 2, tunnel.destination),
            ] {
                if keep(field) {
                    address(out, number, value);
                }
            }
            if keep(Field::TunnelIpVersion) {
                nonzero(out, 3, IpVersion::of(tunnel.source).number().unsigned_abs().into());
            }
        });
        let (source, destination) = tunnel.ports;
        message(out, mask, 3, L4, tunnel.kind.is_udp(), |out| {
            if tunnel.kind.is_udp() {
                let ports =
                    [(Field::TunnelUdpSourcePort, source), (Field::TunnelUdpDestinationPort, destination)];
                pair(out, mask, 2, ports);
            }
        });
        if keep(Field::TunnelVni) {
            nonzero(out, 4, tunnel.vni.into());
        }
    });
}

/// A message that no flow has: written, empty, only where a mask leads into it.
fn absent(out: &mut Vec<u8>, mask: &Mask, number: u32, fields: FieldSet) {
    message(out, mask, number, fields, false, |_| {});
}

/// Writes a message when the flow has it and the mask keeps some of it, or when a path of the mask leads into it.
fn message(
    out: &mut Vec<u8>,
    mask: &Mask,
    number: u32,
    fields: FieldSet,
    present: bool,
    body: impl FnOnce(&mut Vec<u8>),
) {
    if (present && mask.keep.intersects(fields)) || mask.named.intersects(fields) {
        super::wire::message(out, number, body);
    }
}
