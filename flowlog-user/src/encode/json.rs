//! One flow as one line of Hubble's export: `ExportEvent` in protobuf's JSON form, keys in declaration order.

use super::extensions::extensions;
use super::l4::l4;
use super::text::{address, key, nonzero, number, plain, string, time};
use super::tunnel::tunnel;
use super::uuid::uuid;
use crate::record::fields::{FIELDS, Field, FieldSet, Mask};
use crate::record::schema::DROP_REASON;
use crate::record::{End, Flow, Identity, Node, Texts};

/// A message: its key as `"name":`, the fields below it, and whether this flow has it.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) key: &'static str,
    pub(super) fields: FieldSet,
    pub(super) present: bool,
}

/// Appends the flow's line, newline included, with the fields that the mask keeps. Zero values are left out.
pub fn encode(flow: &Flow, node: &Node, mask: &Mask, out: &mut Vec<u8>) {
    let keep = |field| mask.keep.has(field);
    out.extend_from_slice(b"{\"flow\":{");
    head(out, flow, node, mask);
    l4(out, flow.l4, mask);
    tunnel(out, flow.tunnel.as_ref(), mask);
    ends(out, flow, node, mask);
    if keep(Field::Type) {
        plain(out, "\"Type\":", "L3_L4");
    }
    if keep(Field::NodeName) {
        node_name(out, node);
    }
    absent(out, mask, "\"l7\":", const { span(Field::L7Type, Field::KafkaTopic) });
    point(out, flow, node, mask);
    if keep(Field::Summary) {
        key(out, "\"Summary\":\"");
        flow.summary(out);
        out.push(b'"');
    }
    extensions(out, flow, node, mask);
    let aggregate =
        const { span(Field::AggregateIngressFlowCount, Field::AggregateUnknownDirectionFlowCount) };
    absent(out, mask, "\"aggregate\":", aggregate);
    out.push(b'}');
    // The same two once more: readers look at these without unpacking the flow.
    if keep(Field::NodeName) {
        node_name(out, node);
    }
    if keep(Field::Time) {
        key(out, "\"time\":");
        time(out, flow.last_seen_ns);
    }
    out.extend_from_slice(b"}\n");
}

/// `time` to `IP`.
fn head(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let keep = |field| mask.keep.has(field);
    if keep(Field::Time) {
        key(out, "\"time\":");
        time(out, flow.last_seen_ns);
    }
    if keep(Field::Uuid) {
        key(out, "\"uuid\":");
        uuid(out, flow, node);
    }
    let emitter = const { span(Field::EmitterName, Field::EmitterVersion) };
    message(out, mask, &Message { key: "\"emitter\":", fields: emitter, present: true }, |out| {
        if keep(Field::EmitterName) {
            plain(out, "\"name\":", "flowlog");
        }
        if keep(Field::EmitterVersion) {
            plain(out, "\"version\":", env!("CARGO_PKG_VERSION"));
        }
    });
    if keep(Field::Verdict) {
        plain(out, "\"verdict\":", flow.verdict().0);
    }
    if keep(Field::DropReason) {
        nonzero(out, "\"drop_reason\":", flow.drop_reason().unsigned_abs());
    }
    absent(out, mask, "\"ethernet\":", const { span(Field::EthernetSource, Field::EthernetDestination) });
    let ip = const { span(Field::IpSource, Field::IpEncrypted) };
    message(out, mask, &Message { key: "\"IP\":", fields: ip, present: true }, |out| {
        if keep(Field::IpSource) {
            key(out, "\"source\":");
            address(out, flow.source);
        }
        if keep(Field::IpDestination) {
            key(out, "\"destination\":");
            address(out, flow.destination);
        }
        if keep(Field::IpVersion) {
            plain(out, "\"ipVersion\":", flow.ip_version().name());
        }
    });
}

/// `source` and `destination`.
fn ends(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let source = Message {
        key: "\"source\":",
        fields: const { span(Field::SourceId, Field::SourceWorkloads) },
        present: true,
    };
    let destination = Message {
        key: "\"destination\":",
        fields: const { span(Field::DestinationId, Field::DestinationWorkloads) },
        present: true,
    };
    let labels = [Field::SourceIdentity, Field::SourceLabels];
    let texts = flow.labels(End::Source, node);
    message(out, mask, &source, |out| identity(out, flow.source_identity, texts, labels, mask));
    let labels = [Field::DestinationIdentity, Field::DestinationLabels];
    let texts = flow.labels(End::Destination, node);
    message(out, mask, &destination, |out| identity(out, flow.destination_identity, texts, labels, mask));
}

fn identity(
    out: &mut Vec<u8>,
    identity: Identity,
    texts: Texts<'_>,
    [number, labels]: [Field; 2],
    mask: &Mask,
) {
    if mask.keep.has(number) {
        nonzero(out, "\"identity\":", identity.number());
    }
    if mask.keep.has(labels) {
        key(out, "\"labels\":[");
        for (at, text) in texts.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
            // Nothing in it needs to be escaped.
            out.extend_from_slice(text.as_bytes());
            out.push(b'"');
        }
        out.push(b']');
    }
}

/// `event_type` to `interface`: where the flow was seen, and which way it went.
fn point(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let keep = |field| mask.keep.has(field);
    let event_type = const { span(Field::EventTypeType, Field::EventTypeSubType) };
    message(out, mask, &Message { key: "\"event_type\":", fields: event_type, present: true }, |out| {
        let (kind, sub_type) = flow.event_type();
        for (field, quoted, value) in
            [(Field::EventTypeType, "\"type\":", kind), (Field::EventTypeSubType, "\"sub_type\":", sub_type)]
        {
            if value != 0 && keep(field) {
                key(out, quoted);
                number(out, value);
            }
        }
    });
    let service = const { span(Field::SourceServiceName, Field::SourceServiceNamespace) };
    absent(out, mask, "\"source_service\":", service);
    let service = const { span(Field::DestinationServiceName, Field::DestinationServiceNamespace) };
    absent(out, mask, "\"destination_service\":", service);
    for (field, quoted, value) in [
        (Field::TrafficDirection, "\"traffic_direction\":", Some(flow.traffic_direction().name())),
        (Field::TraceObservationPoint, "\"trace_observation_point\":", flow.trace_observation_point()),
        (Field::TraceReason, "\"trace_reason\":", flow.trace_reason()),
    ] {
        if let Some(value) = value.filter(|_| keep(field)) {
            plain(out, quoted, value);
        }
    }
    absent(out, mask, "\"file\":", const { span(Field::FileName, Field::FileLine) });
    absent(
        out,
        mask,
        "\"ip_trace_id\":",
        const { span(Field::IpTraceIdTraceId, Field::IpTraceIdIpOptionType) },
    );
    if let Some(name) = drop_reason_desc(flow).filter(|_| keep(Field::DropReasonDesc)) {
        plain(out, "\"drop_reason_desc\":", name);
    }
    if let Some(is_reply) = flow.is_reply.filter(|_| keep(Field::IsReply)) {
        key(out, if is_reply { "\"is_reply\":true" } else { "\"is_reply\":false" });
    }
    interface(out, flow, node, mask);
    let trace = const { span(Field::TraceContextTraceId, Field::TraceContextTraceId) };
    message(out, mask, &Message { key: "\"trace_context\":", fields: trace, present: false }, |out| {
        absent(out, mask, "\"parent\":", trace);
    });
}

/// Hubble's word for why the packets were dropped; zero is left out, as everywhere.
pub(super) fn drop_reason_desc(flow: &Flow) -> Option<&'static str> {
    Some(flow.drop_reason()).filter(|number| *number != 0).and_then(|number| DROP_REASON.name_of(number))
}

fn interface(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let [index, ..] = flow.interfaces;
    let fields = const { span(Field::InterfaceIndex, Field::InterfaceName) };
    message(out, mask, &Message { key: "\"interface\":", fields, present: index != 0 }, |out| {
        if mask.keep.has(Field::InterfaceIndex) {
            nonzero(out, "\"index\":", index);
        }
        if mask.keep.has(Field::InterfaceName)
            && let Some(interface) =
                node.interfaces.get(&index).filter(|interface| !interface.name.is_empty())
        {
            key(out, "\"name\":");
            string(out, &interface.name);
        }
    });
}

fn node_name(out: &mut Vec<u8>, node: &Node) {
    if !node.name.is_empty() {
        key(out, "\"node_name\":");
        string(out, &node.name);
    }
}

/// A message that no flow has: written, empty, only where a mask leads into it.
pub(super) fn absent(out: &mut Vec<u8>, mask: &Mask, key: &'static str, fields: FieldSet) {
    message(out, mask, &Message { key, fields, present: false }, |_| {});
}

/// Writes a message when the flow has it and the mask keeps some of it, or when a path of the mask leads into it.
pub(super) fn message(out: &mut Vec<u8>, mask: &Mask, message: &Message, body: impl FnOnce(&mut Vec<u8>)) {
    let wanted = message.present && mask.keep.intersects(message.fields);
    if wanted || mask.named.intersects(message.fields) {
        key(out, message.key);
        out.push(b'{');
        body(out);
        out.push(b'}');
    }
}

/// The fields from one to another, both included.
pub(super) const fn span(first: Field, last: Field) -> FieldSet {
    let mut set = FieldSet::NONE;
    let mut rest = FIELDS;
    while let [(field, _), tail @ ..] = rest {
        if *field as u32 >= first as u32 && *field as u32 <= last as u32 {
            set = set.with(*field);
        }
        rest = tail;
    }
    set
}
