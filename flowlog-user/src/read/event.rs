//! JSON into Hubble's messages, as strict as protobuf's own reader.

use super::{flat, json};
use crate::record::schema::{Arity, Descriptor, EXPORT_EVENT, FLOW, Kind, Spec};
use crate::record::{Foreign, Json, Message, Value};
use crate::tree::hint;

/// What is wrong with an event: where in it, and what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
pub struct Malformed {
    /// Path of the field, e.g. `flow.l4.TCP`; empty for the line as a whole.
    pub path: String,
    /// What is wrong, and what was expected.
    pub what: String,
}

type Parsed<T> = Result<T, Malformed>;

/// Parses a line of an export, or a flat one of ours. A bare `flow.Flow` is taken too.
///
/// # Errors
/// What is not JSON, or not an event by Hubble's messages.
pub fn event(line: &[u8]) -> Parsed<Foreign> {
    let json = json::parse(line).map_err(|error| wrong("", error.to_string()))?;
    let Json::Map(entries) = &json else { return Err(expected("", "an object", &json)) };
    let unfolded;
    let entries = if flat::is_flat(entries) {
        unfolded = flat::unfold(entries)?;
        &unfolded
    } else {
        entries
    };
    // Only these two keys are in both.
    let wrapped =
        |key: &str| !matches!(key, "time" | "node_name" | "nodeName") && find(&EXPORT_EVENT, key).is_some();
    let is_event = entries.iter().any(|(key, _)| wrapped(key))
        || entries.iter().all(|(key, _)| find(&EXPORT_EVENT, key).is_some());
    let of = if is_event { &EXPORT_EVENT } else { &FLOW };
    let message = message(of, entries, "")?;
    let mut events = EXPORT_EVENT.fields.iter().filter(|field| field.arity == Arity::Member);
    if is_event && !events.any(|field| message.get(field.name).is_some()) {
        return Err(wrong("", "there is no event in it".into()));
    }
    Foreign::new(message).ok_or_else(|| wrong("", "no event".into()))
}

fn message(of: &'static Descriptor, entries: &[(Box<str>, Json)], path: &str) -> Parsed<Message> {
    let mut fields: Vec<(&'static Spec, Value)> = Vec::new();
    for (key, json) in entries {
        let Some(spec) = find(of, key) else {
            let known: Vec<&str> = of.fields.iter().map(|field| field.name).collect();
            return Err(wrong(
                &join(path, key),
                format!("{} has no such field; {}", of.name, hint(key, &known)),
            ));
        };
        let path = join(path, spec.name);
        if matches!(json, Json::Null) {
            continue;
        }
        let union = |(other, _): &&(&Spec, Value)| {
            other.name == spec.name || (spec.arity == Arity::Member && other.arity == Arity::Member)
        };
        if let Some((other, _)) = fields.iter().find(union) {
            return Err(wrong(
                &path,
                format!("stands beside `{}`, of which only one may be set", other.name),
            ));
        }
        if let Some(value) = field(spec, json, &path)? {
            fields.push((spec, value));
        }
    }
    Ok(Message::new(of, fields))
}

fn find(of: &'static Descriptor, key: &str) -> Option<&'static Spec> {
    of.fields.iter().find(|field| field.name == key || field.json == key)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

/// A field's value; `None` where it is the zero value of a field without presence.
fn field(spec: &Spec, json: &Json, path: &str) -> Parsed<Option<Value>> {
    if spec.arity == Arity::Many {
        let Json::List(items) = json else { return Err(expected(path, "a list", json)) };
        let values =
            items.iter().enumerate().map(|(at, item)| value(spec.kind, item, &format!("{path}[{at}]")));
        let values: Vec<Value> = values.collect::<Parsed<_>>()?;
        return Ok((!values.is_empty()).then_some(Value::List(values)));
    }
    let value = value(spec.kind, json, path)?;
    let present = match (&value, spec.kind) {
        (_, Kind::BoolValue | Kind::Int32Value | Kind::Uint32Value) => true,
        (Value::Bool(value), _) => *value,
        (Value::Int(value), _) => *value != 0,
        (Value::Uint(value), _) => *value != 0,
        (Value::Text(text), _) => !text.is_empty(),
        _ => true,
    };
    Ok(present.then_some(value))
}

fn value(kind: Kind, json: &Json, path: &str) -> Parsed<Value> {
    match (kind, json) {
        (Kind::Bool | Kind::BoolValue, Json::Bool(value)) => Ok(Value::Bool(*value)),
        (Kind::Bool | Kind::BoolValue, _) => Err(expected(path, "true or false", json)),
        (Kind::Text, Json::Text(text)) => Ok(Value::Text(text.clone())),
        (Kind::Text, _) => Err(expected(path, "a string", json)),
        (Kind::Int32 | Kind::Int32Value, _) => signed(json, i32::MIN.into(), i32::MAX.into(), path),
        (Kind::Int64, _) => signed(json, i64::MIN, i64::MAX, path),
        (Kind::Uint32 | Kind::Uint32Value, _) => unsigned(json, u32::MAX.into(), path),
        (Kind::Uint64, _) => unsigned(json, u64::MAX, path),
        (Kind::Enum(of), Json::Text(name)) => {
            of.number_of(name).map(|n| Value::Int(n.into())).ok_or_else(|| {
                let known: Vec<&str> = of.values.iter().map(|(name, _)| *name).collect();
                let known = crate::tree::nearest(name, &known)
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                wrong(path, format!("{} has no value `{name}`{known}", of.name))
            })
        }
        (Kind::Enum(_), _) => signed(json, i32::MIN.into(), i32::MAX.into(), path),
        (Kind::Message(of), Json::Map(entries)) => Ok(Value::Message(message(of, entries, path)?)),
        (Kind::Message(_), _) => Err(expected(path, "an object", json)),
        (Kind::Timestamp, Json::Text(text)) => {
            timestamp(text).ok_or_else(|| expected(path, "a time like 2026-12-31T23:59:59Z", json))
        }
        (Kind::Timestamp, _) => Err(expected(path, "a time in quotes", json)),
        (Kind::Any, Json::Map(entries)) => any(entries, path),
        (Kind::Any, _) => Err(expected(path, "an object with `@type`", json)),
    }
}

fn signed(json: &Json, low: i64, high: i64, path: &str) -> Parsed<Value> {
    let number = whole(json).and_then(|number| i64::try_from(number).ok());
    let number = number.filter(|number| (low..=high).contains(number));
    number
        .map(Value::Int)
        .ok_or_else(|| expected(path, &format!("a whole number from {low} to {high}"), json))
}

fn unsigned(json: &Json, high: u64, path: &str) -> Parsed<Value> {
    let number = whole(json).and_then(|number| u64::try_from(number).ok()).filter(|number| *number <= high);
    number.map(Value::Uint).ok_or_else(|| expected(path, &format!("a whole number from 0 to {high}"), json))
}

/// A whole number, also in quotes, also as `1e3`.
fn whole(json: &Json) -> Option<i128> {
    match json {
        Json::Unsigned(number) => Some((*number).into()),
        Json::Signed(number) => Some((*number).into()),
        Json::Float(number) => from_float(*number),
        Json::Text(text) if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            text.parse().ok().or_else(|| text.parse().ok().and_then(from_float))
        }
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole and within 64 bits, as just tested")]
fn from_float(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() < 1.9e19).then_some(number as i128)
}

/// RFC 3339, at most nine digits of a second, years 1 to 9999.
fn timestamp(text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00";
    let (head, rest) = bytes.split_at_checked(shape.len())?;
    let fits = |(byte, want): (&u8, &u8)| if *want == b'0' { byte.is_ascii_digit() } else { byte == want };
    if !head.iter().zip(shape).all(fits) || head.ends_with(b"60") {
        return None;
    }
    let digits = match rest {
        [b'.', digits @ ..] => digits.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    let zone = rest.get(if digits > 0 { digits + 1 } else { 0 }..)?;
    let zone_fits = match zone {
        b"Z" => true,
        [b'+' | b'-', offset @ ..] => offset.len() == 5 && offset.iter().zip(b"00:00").all(fits),
        _ => false,
    };
    if digits > 9 || !zone_fits {
        return None;
    }
    let at: jiff::Timestamp = text.parse().ok()?;
    let nanoseconds = u32::try_from(at.as_nanosecond().rem_euclid(1_000_000_000)).ok()?;
    let seconds = i64::try_from(at.as_nanosecond().div_euclid(1_000_000_000)).ok()?;
    Some(Value::Time(seconds, nanoseconds))
}

/// A message of a type that it names itself.
fn any(entries: &[(Box<str>, Json)], path: &str) -> Parsed<Value> {
    let url = match entries.iter().find(|(key, _)| &**key == "@type") {
        Some((_, Json::Text(url))) => url,
        _ => return Err(wrong(path, "expected `@type` with the name of a type".into())),
    };
    let name = url.rsplit_once('/').map_or("", |(_, name)| name);
    let rest: Vec<(Box<str>, Json)> = entries.iter().filter(|(key, _)| &**key != "@type").cloned().collect();
    for free in ["google.protobuf.Struct", "google.protobuf.Value"] {
        if name == free {
            return match &*rest {
                [(key, json)]
                    if &**key == "value" && (matches!(json, Json::Map(_)) || free.ends_with("Value")) =>
                {
                    Ok(Value::Free(free, json.clone()))
                }
                _ => Err(wrong(
                    path,
                    format!("expected `value` with an object, and nothing else beside {free}"),
                )),
            };
        }
    }
    match Descriptor::named(name) {
        Some(of) => Ok(Value::Packed(message(of, &rest, path)?)),
        None => Err(wrong(path, format!("the type `{url}` is not known here"))),
    }
}

fn wrong(path: &str, what: String) -> Malformed {
    Malformed { path: path.into(), what }
}

fn expected(path: &str, what: &str, found: &Json) -> Malformed {
    wrong(path, format!("expected {what}, found {}", found.kind()))
}
