//! Any event as protobuf, field by field as the schema says: recorded events, and lines about the log itself.

use prost::encoding::WireType;

use super::masked::masked;
use super::wire::{bytes, delimited, encode_key, encode_varint, message, nonzero, timestamp, varint};
use crate::record::fields::Mask;
use crate::record::measured::number;
use crate::record::schema::{Kind, Spec};
use crate::record::{Foreign, Json, Measured, Message, TunnelKind, Value};

/// Where a type's name stands in an `Any`.
const TYPES: &str = "type.googleapis.com/";

/// Appends the event as a `flowlog.v1.Record` behind its length.
pub(super) fn encode(event: &Foreign, mask: &Mask, out: &mut Vec<u8>) {
    delimited(out, |out| {
        for (spec, value) in masked(event, mask) {
            match &value {
                Value::Message(flow) if spec.name == "flow" => record_of_flow(out, spec, flow),
                value => field(out, spec, value),
            }
        }
    });
}

/// A flow, and beside it what flowlog measured of it. Extensions of any other kind stay in the flow.
fn record_of_flow(out: &mut Vec<u8>, spec: &Spec, flow: &Message) {
    let ours = flow.get("extensions").and_then(Value::free).and_then(Measured::from_json);
    message(out, spec.number, |out| {
        for (spec, value) in flow.fields() {
            if ours.is_none() || spec.name != "extensions" {
                field(out, spec, value);
            }
        }
    });
    if let Some(ours) = ours {
        measured(out, &ours, flow.time_ns("time").unwrap_or(0));
    }
}

/// What flowlog measured. Times are given by how much they were before the flow's, which are small numbers.
pub(super) fn measured(out: &mut Vec<u8>, ours: &Measured<'_>, time_ns: i64) {
    message(out, number::MEASURED, |out| {
        nonzero(out, number::EVENT, ours.event.map_or(0, |event| event.number()));
        nonzero(out, number::END_REASON, ours.end_reason.map_or(0, |reason| reason.number()));
        for (number, ns) in [
            (number::STARTED, ours.started_ns),
            (number::FIRST_SEEN, ours.first_seen_ns),
            (number::LAST_SEEN, ours.last_seen_ns),
        ] {
            if let Some(ns) = ns {
                varint(out, number, time_ns.wrapping_sub(ns).cast_unsigned());
            }
        }
        for (number, value) in [
            (number::CONNECTION, ours.connection),
            (number::PACKETS, ours.packets),
            (number::BYTES, ours.bytes),
            (number::PACKETS_TOTAL, ours.packets_total),
            (number::BYTES_TOTAL, ours.bytes_total),
            (number::RTT, ours.rtt_ns),
            (number::CONNECTIONS, ours.connections),
            (number::DUPLICATE_PACKETS, ours.duplicate_packets),
            (number::DUPLICATE_BYTES, ours.duplicate_bytes),
            (number::VLAN, ours.vlan),
            (number::INNER_VLAN, ours.inner_vlan),
            (number::DROP_NETNS, ours.drop_netns),
            (number::TUNNEL, ours.tunnel.map(TunnelKind::number)),
        ] {
            if let Some(value) = value {
                varint(out, number, value);
            }
        }
        for (number, set) in [
            (number::MIDSTREAM, ours.midstream),
            (number::DUPLICATE, ours.duplicate),
            (number::FRAGMENT, ours.fragment),
            (number::OVERFLOW, ours.overflow),
        ] {
            nonzero(out, number, set.into());
        }
        for (number, text) in [
            (number::DROP_REASON, &ours.drop_reason),
            (number::DROP_LOCATION, &ours.drop_location),
            (number::DROP_INTERFACE, &ours.drop_interface),
        ] {
            if let Some(text) = text {
                bytes(out, number, text.as_bytes());
            }
        }
        for name in ours.interfaces.iter() {
            bytes(out, number::INTERFACES, name.as_bytes());
        }
    });
}

fn fields(out: &mut Vec<u8>, message: &Message) {
    for (spec, value) in message.fields() {
        field(out, spec, value);
    }
}

/// A field that is set.
fn field(out: &mut Vec<u8>, spec: &Spec, value: &Value) {
    let number = spec.number;
    match value {
        Value::List(values) => values.iter().for_each(|value| field(out, spec, value)),
        Value::Bool(value) => scalar(out, spec, u64::from(*value)),
        Value::Int(value) => scalar(out, spec, value.cast_unsigned()),
        Value::Uint(value) => scalar(out, spec, *value),
        Value::Text(text) => bytes(out, number, text.as_bytes()),
        Value::Time(seconds, nanoseconds) => timestamp(out, number, *seconds, *nanoseconds),
        Value::Message(of) => message(out, number, |out| fields(out, of)),
        Value::Packed(of) => any(out, number, of.descriptor().name, |out| fields(out, of)),
        Value::Free(of, json) => any(out, number, of, |out| match json {
            Json::Map(entries) if *of == "google.protobuf.Struct" => structure(out, entries),
            other => free(out, other),
        }),
    }
}

/// A number, which a wrapper has in a message of its own.
fn scalar(out: &mut Vec<u8>, spec: &Spec, value: u64) {
    match spec.kind {
        Kind::BoolValue | Kind::Int32Value | Kind::Uint32Value => {
            message(out, spec.number, |out| nonzero(out, 1, value));
        }
        _ => varint(out, spec.number, value),
    }
}

fn any(out: &mut Vec<u8>, number: u32, of: &str, body: impl FnOnce(&mut Vec<u8>)) {
    message(out, number, |out| {
        encode_key(1, WireType::LengthDelimited, out);
        encode_varint((TYPES.len() + of.len()) as u64, out);
        out.extend_from_slice(TYPES.as_bytes());
        out.extend_from_slice(of.as_bytes());
        message(out, 2, body);
    });
}

/// The entries of a `google.protobuf.Struct`.
fn structure(out: &mut Vec<u8>, entries: &[(Box<str>, Json)]) {
    for (key, value) in entries {
        message(out, 1, |out| {
            bytes(out, 1, key.as_bytes());
            message(out, 2, |out| free(out, value));
        });
    }
}

/// A `google.protobuf.Value`, whose numbers are floating point ones.
#[expect(clippy::cast_precision_loss, reason = "as protobuf has it: above 2^53 the last digits are lost")]
fn free(out: &mut Vec<u8>, json: &Json) {
    let float = |out: &mut Vec<u8>, value: f64| super::wire::fixed64(out, 2, value.to_bits());
    match json {
        Json::Null => varint(out, 1, 0),
        Json::Unsigned(value) => float(out, *value as f64),
        Json::Signed(value) => float(out, *value as f64),
        Json::Float(value) => float(out, *value),
        Json::Text(text) => bytes(out, 3, text.as_bytes()),
        Json::Bool(value) => varint(out, 4, u64::from(*value)),
        Json::Map(entries) => message(out, 5, |out| structure(out, entries)),
        Json::List(values) => message(out, 6, |out| {
            for value in values {
                message(out, 1, |out| free(out, value));
            }
        }),
    }
}
