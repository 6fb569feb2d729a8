//! A recorded event as a line: what Hubble's exporter makes of it, to the byte.

use super::text::{key, number, string, time_at};
use crate::record::fields::{FIELDS, FieldSet, Mask};
use crate::record::schema::{Kind, Spec};
use crate::record::{Foreign, Json, Message, Value};

/// Fields below `extensions` that a mask can name.
const EXTENSIONS: &str = "extensions.";

/// Appends the event's line, newline included. A mask holds for flows only; under one, the event's own time and node
/// name stay where it keeps the flow's.
pub fn encode(event: &Foreign, mask: &Mask, out: &mut Vec<u8>) {
    out.push(b'{');
    for (spec, value) in event.event().fields() {
        match (spec.name, value) {
            ("flow", Value::Message(flow)) => {
                key(out, "\"flow\":");
                masked(out, flow, mask, 0);
            }
            ("time" | "node_name", _) => {}
            _ => field(out, spec, value),
        }
    }
    let is_flow = event.flow().is_some();
    for spec in event.event().descriptor().fields {
        if !matches!(spec.name, "time" | "node_name") {
            continue;
        }
        let kept = !is_flow || FIELDS.iter().any(|(field, path)| *path == spec.name && mask.keep.has(*field));
        let value = event.event().get(spec.name).or_else(|| event.flow()?.get(spec.name));
        if let Some(value) = value.filter(|_| kept) {
            field(out, spec, value);
        }
    }
    out.extend_from_slice(b"}\n");
}

/// Writes a message's fields that the mask keeps; its first leaf has the given number in the field table.
fn masked(out: &mut Vec<u8>, message: &Message, mask: &Mask, first: usize) {
    if *mask == Mask::ALL {
        return whole(out, message);
    }
    out.push(b'{');
    let mut set = message.fields().iter().peekable();
    let mut at = first;
    for spec in message.descriptor().fields {
        let value = set.next_if(|(next, _)| next.name == spec.name).map(|(_, value)| value);
        let end = at + leaves(spec);
        let span = FieldSet::span(at, end);
        let keep = mask.keep.intersects(span);
        if keep {
            part(out, spec, value, mask, at);
        }
        at = end;
    }
    out.push(b'}');
}

/// Writes a field of which the mask keeps something.
fn part(out: &mut Vec<u8>, spec: &Spec, value: Option<&Value>, mask: &Mask, at: usize) {
    let span = FieldSet::span(at, at + leaves(spec));
    match (spec.kind, value) {
        (Kind::Any, Some(value)) => {
            name(out, spec);
            extensions(out, value, mask);
        }
        (Kind::Message(_), Some(Value::Message(message))) => {
            name(out, spec);
            masked(out, message, mask, at);
        }
        // A path into a message leaves it there, whether the flow has it or not; of a union only the member that is set.
        (Kind::Message(of), None)
            if spec.arity == crate::record::schema::Arity::One && mask.named.intersects(span) =>
        {
            name(out, spec);
            masked(out, &Message::new(of, Vec::new()), mask, at);
        }
        (_, Some(value)) => field(out, spec, value),
        (_, None) => {}
    }
}

/// Leaves of a field in the field table.
fn leaves(spec: &Spec) -> usize {
    match spec.kind {
        Kind::Message(of) if spec.arity != crate::record::schema::Arity::Many => {
            of.fields.iter().map(leaves).sum()
        }
        Kind::Any => FIELDS.iter().filter(|(_, path)| path.starts_with(EXTENSIONS)).count(),
        _ => 1,
    }
}

/// Writes `extensions`: of a struct the keys that the mask keeps.
fn extensions(out: &mut Vec<u8>, value: &Value, mask: &Mask) {
    let Value::Free(of, Json::Map(entries)) = value else { return self::value(out, Kind::Any, value) };
    any(out, of);
    out.extend_from_slice(b",\"value\":{");
    let whole = FIELDS
        .iter()
        .filter(|(_, path)| path.starts_with(EXTENSIONS))
        .all(|(field, _)| mask.keep.has(*field));
    for (entry, value) in entries {
        let kept = whole
            || FIELDS
                .iter()
                .any(|(field, path)| path.strip_prefix(EXTENSIONS) == Some(entry) && mask.keep.has(*field));
        if kept {
            quoted(out, entry);
            json(out, value);
        }
    }
    out.extend_from_slice(b"}}");
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
