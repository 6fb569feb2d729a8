//! A recorded event as a line: what Hubble's exporter makes of it, to the byte.

use super::masked::masked;
use super::text::{number, string, time_at};
use crate::record::fields::Mask;
use crate::record::schema::{Kind, Spec};
use crate::record::{Foreign, Json, Message, Value};

/// Appends the event's line, newline included. A mask holds for flows only; under one, the event's own time and node
/// name stay where it keeps the flow's.
pub fn encode(event: &Foreign, mask: &Mask, out: &mut Vec<u8>) {
    out.push(b'{');
    for (spec, value) in masked(event, mask) {
        field(out, spec, &value);
    }
    out.extend_from_slice(b"}\n");
}

/// A value as JSON.
pub(super) fn json_text(spec: &Spec, value: &Value) -> String {
    let mut out = Vec::new();
    self::value(&mut out, spec.kind, value);
    String::from_utf8(out).unwrap_or_default()
}

fn whole(out: &mut Vec<u8>, message: &Message) {
    out.push(b'{');
    for (spec, value) in message.fields() {
        field(out, spec, value);
    }
    out.push(b'}');
}

fn field(out: &mut Vec<u8>, spec: &Spec, value: &Value) {
    name(out, spec);
    self::value(out, spec.kind, value);
}

fn name(out: &mut Vec<u8>, spec: &Spec) {
    quoted(out, spec.name);
}

fn quoted(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), Some(b'{')) {
        out.push(b',');
    }
    string(out, name);
    out.push(b':');
}

fn value(out: &mut Vec<u8>, kind: Kind, value: &Value) {
    match value {
        Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Int(value) => match kind {
            Kind::Enum(of) => match i32::try_from(*value).ok().and_then(|number| of.name_of(number)) {
                Some(name) => string(out, name),
                None => number(out, *value),
            },
            Kind::Int64 => quoted_number(out, *value),
            _ => number(out, *value),
        },
        Value::Uint(value) if matches!(kind, Kind::Uint64) => quoted_number(out, *value),
        Value::Uint(value) => number(out, *value),
        Value::Text(text) => string(out, text),
        Value::Time(seconds, nanoseconds) => time_at(out, *seconds, *nanoseconds),
        Value::Message(message) => whole(out, message),
        Value::Packed(message) => {
            any(out, message.descriptor().name);
            for (spec, value) in message.fields() {
                field(out, spec, value);
            }
            out.push(b'}');
        }
        Value::Free(of, free) => {
            any(out, of);
            out.extend_from_slice(b",\"value\":");
            json(out, free);
            out.push(b'}');
        }
        Value::List(values) => {
            out.push(b'[');
            for (at, item) in values.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                self::value(out, kind, item);
            }
            out.push(b']');
        }
    }
}

/// The opening of an `Any`.
fn any(out: &mut Vec<u8>, of: &str) {
    out.extend_from_slice(b"{\"@type\":\"type.googleapis.com/");
    out.extend_from_slice(of.as_bytes());
    out.push(b'"');
}

fn quoted_number(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.push(b'"');
    number(out, value);
    out.push(b'"');
}

fn json(out: &mut Vec<u8>, free: &Json) {
    match free {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Json::Unsigned(value) => number(out, *value),
        Json::Signed(value) => number(out, *value),
        Json::Float(value) => float(out, *value),
        Json::Text(text) => string(out, text),
        Json::List(values) => {
            out.push(b'[');
            for (at, item) in values.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                json(out, item);
            }
            out.push(b']');
        }
        Json::Map(entries) => {
            out.push(b'{');
            for (name, value) in entries {
                quoted(out, name);
                json(out, value);
            }
            out.push(b'}');
        }
    }
}

/// A number as Go writes it: shortest, with an exponent below 1e-6 and from 1e21.
fn float(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    let text = if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        if text.contains("e-") { text } else { text.replace('e', "e+") }
    } else {
        value.to_string()
    };
    out.extend_from_slice(text.as_bytes());
}
