//! `flowlog.v1.Record`s, and so Hubble's `ExportEvent`s, by the schema and with prost's primitives.

use bytes::Buf;
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::event::Malformed;
use crate::record::measured::number;
use crate::record::schema::{Arity, Descriptor, EXPORT_EVENT, Kind, Spec};
use crate::record::{EndReason, Event, Foreign, Json, Measured, Message, TunnelKind, Value};

/// Messages inside messages inside free JSON.
const DEPTH_MAX: u32 = 64;
/// Whole numbers up to here are exact in floating point.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

type Decoded<T> = Result<T, Malformed>;

/// Reads a record, without its length.
///
/// # Errors
/// What is not protobuf, or not an event by Hubble's messages. Fields that are not known are passed over.
pub fn event(record: &[u8]) -> Decoded<Foreign> {
    let mut measured = None;
    let mut fields = Vec::new();
    each(record, |number, wire, bytes| {
        if number == self::number::MEASURED && wire == WireType::LengthDelimited {
            measured = Some(delimited(bytes)?);
            return Ok(true);
        }
        read(&EXPORT_EVENT, number, wire, bytes, DEPTH_MAX, &mut fields)
    })
    .map_err(|error| malformed(&EXPORT_EVENT, &error))?;
    if let Some(measured) = measured {
        let Some((_, Value::Message(flow))) = fields.iter_mut().find(|(spec, _)| spec.name == "flow") else {
            return Err(Malformed { path: "measured".into(), what: "stands beside no flow".into() });
        };
        let time_ns = flow.time_ns("time").unwrap_or(0);
        let json = ours(measured, time_ns).map_err(|error| malformed(&EXPORT_EVENT, &error))?.to_json();
        let mut of_flow = flow.fields().to_vec();
        of_flow.retain(|(spec, _)| spec.name != "extensions");
        if let Some(spec) = flow.descriptor().field("extensions") {
            of_flow.push((spec, Value::Free("google.protobuf.Struct", json)));
        }
        *flow = Message::new(flow.descriptor(), of_flow);
    }
    let message = Message::new(&EXPORT_EVENT, fields);
    Foreign::new(message).ok_or_else(|| Malformed { path: String::new(), what: "no event".into() })
}

fn malformed(of: &Descriptor, error: &DecodeError) -> Malformed {
    Malformed { path: String::new(), what: format!("no {} in protobuf: {error}", of.name) }
}

#[expect(deprecated, reason = "the only way to an error with a message")]
fn wrong(what: &'static str) -> DecodeError {
    DecodeError::new(what)
}

/// Goes over the fields of a message; those that `take` leaves (false) are skipped.
fn each<'a>(
    mut bytes: &'a [u8],
    mut take: impl FnMut(u32, WireType, &mut &'a [u8]) -> Result<bool, DecodeError>,
) -> Result<(), DecodeError> {
    while bytes.has_remaining() {
        let (number, wire) = decode_key(&mut bytes)?;
        if !take(number, wire, &mut bytes)? {
            skip_field(wire, number, &mut bytes, DecodeContext::default())?;
        }
    }
    Ok(())
}

fn delimited<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = decode_varint(bytes)?;
    let split = usize::try_from(length).ok().and_then(|length| bytes.split_at_checked(length));
    let (value, rest) = split.ok_or_else(|| wrong("a field is longer than what it is in"))?;
    *bytes = rest;
    Ok(value)
}

fn text(bytes: &[u8]) -> Result<Box<str>, DecodeError> {
    std::str::from_utf8(bytes).map(Into::into).map_err(|_| wrong("a string is not UTF-8"))
}

fn message(of: &'static Descriptor, bytes: &[u8], depth: u32) -> Result<Message, DecodeError> {
    let depth = depth.checked_sub(1).ok_or_else(|| wrong("messages are nested too deep"))?;
    let mut fields = Vec::new();
    each(bytes, |number, wire, bytes| read(of, number, wire, bytes, depth, &mut fields))?;
    Ok(Message::new(of, fields))
}

/// Reads a field into those that are set; false when the message has no such field.
fn read(
    of: &'static Descriptor,
    number: u32,
    wire: WireType,
    bytes: &mut &[u8],
    depth: u32,
    fields: &mut Vec<(&'static Spec, Value)>,
) -> Result<bool, DecodeError> {
    let Some(spec) = of.fields.iter().find(|spec| spec.number == number) else { return Ok(false) };
    if wire != wire_of(spec.kind) {
        return Err(wrong("a field has another type than in the schema"));
    }
    let value = if wire == WireType::Varint {
        number_of(spec.kind, decode_varint(bytes)?)
    } else {
        Some(value(spec.kind, delimited(bytes)?, depth)?)
    };
    // As everywhere in protobuf, the last one counts; of a union, whichever it is.
    if spec.arity == Arity::Many {
        let Some(value) = value else { return Ok(true) };
        match fields.iter_mut().find(|(known, _)| known.number == number) {
            Some((_, Value::List(values))) => values.push(value),
            _ => fields.push((spec, Value::List(vec![value]))),
        }
        return Ok(true);
    }
    fields.retain(|(known, _)| {
        known.number != number && (spec.arity != Arity::Member || known.arity != Arity::Member)
    });
    fields.extend(value.map(|value| (spec, value)));
    Ok(true)
}

const fn wire_of(kind: Kind) -> WireType {
    match kind {
        Kind::Bool | Kind::Int32 | Kind::Uint32 | Kind::Int64 | Kind::Uint64 | Kind::Enum(_) => {
            WireType::Varint
        }
        Kind::Text
        | Kind::Message(_)
        | Kind::Timestamp
        | Kind::BoolValue
        | Kind::Int32Value
        | Kind::Uint32Value
        | Kind::Any => WireType::LengthDelimited,
    }
}

/// A number's value; `None` where it is the zero of a field without presence.
#[expect(clippy::cast_possible_truncation, reason = "protobuf cuts a number to its field's width")]
fn number_of(kind: Kind, bits: u64) -> Option<Value> {
    match kind {
        Kind::Bool => (bits != 0).then_some(Value::Bool(true)),
        Kind::Int32 | Kind::Enum(_) => {
            Some(i64::from(bits as i32)).filter(|value| *value != 0).map(Value::Int)
        }
        Kind::Int64 => Some(bits.cast_signed()).filter(|value| *value != 0).map(Value::Int),
        Kind::Uint32 => Some(u64::from(bits as u32)).filter(|value| *value != 0).map(Value::Uint),
        _ => (bits != 0).then_some(Value::Uint(bits)),
    }
}

fn value(kind: Kind, bytes: &[u8], depth: u32) -> Result<Value, DecodeError> {
    match kind {
        Kind::Text => text(bytes).map(Value::Text),
        Kind::Message(of) => message(of, bytes, depth).map(Value::Message),
        Kind::Timestamp => timestamp(bytes),
        Kind::BoolValue => Ok(Value::Bool(first(bytes)? != 0)),
        #[expect(clippy::cast_possible_truncation, reason = "protobuf cuts a number to its field's width")]
        Kind::Int32Value => Ok(Value::Int(i64::from(first(bytes)? as i32))),
        #[expect(clippy::cast_possible_truncation, reason = "protobuf cuts a number to its field's width")]
        Kind::Uint32Value => Ok(Value::Uint(u64::from(first(bytes)? as u32))),
        _ => any(bytes, depth),
    }
}

/// The number in a wrapper.
fn first(bytes: &[u8]) -> Result<u64, DecodeError> {
    let mut found = 0;
    each(bytes, |number, wire, bytes| {
        let ours = number == 1 && wire == WireType::Varint;
        if ours {
            found = decode_varint(bytes)?;
        }
        Ok(ours)
    })?;
    Ok(found)
}

fn timestamp(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut seconds, mut nanoseconds) = (0_i64, 0_u64);
    each(bytes, |number, wire, bytes| {
        match (number, wire) {
            (1, WireType::Varint) => seconds = decode_varint(bytes)?.cast_signed(),
            (2, WireType::Varint) => nanoseconds = decode_varint(bytes)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let nanoseconds = u32::try_from(nanoseconds).ok().filter(|nanoseconds| *nanoseconds < 1_000_000_000);
    match nanoseconds.filter(|_| jiff::Timestamp::new(seconds, 0).is_ok()) {
        Some(nanoseconds) => Ok(Value::Time(seconds, nanoseconds)),
        None => Err(wrong("a time is outside the years that there are")),
    }
}

/// A message of a type that it names itself.
fn any(bytes: &[u8], depth: u32) -> Result<Value, DecodeError> {
    let depth = depth.checked_sub(1).ok_or_else(|| wrong("messages are nested too deep"))?;
    let (mut url, mut body) = (&[][..], &[][..]);
    each(bytes, |number, wire, bytes| {
        match (number, wire) {
            (1, WireType::LengthDelimited) => url = delimited(bytes)?,
            (2, WireType::LengthDelimited) => body = delimited(bytes)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let url = text(url)?;
    let name = url.rsplit_once('/').map_or("", |(_, name)| name);
    match name {
        "google.protobuf.Struct" => Ok(Value::Free("google.protobuf.Struct", structure(body, depth)?)),
        "google.protobuf.Value" => Ok(Value::Free("google.protobuf.Value", free(body, depth)?)),
        name => match Descriptor::named(name) {
            Some(of) => message(of, body, depth).map(Value::Packed),
            None => Err(wrong("an extension is of a type that is not known here")),
        },
    }
}

/// The entries of a struct, which have no order; they get the one in which Go prints them.
fn structure(bytes: &[u8], depth: u32) -> Result<Json, DecodeError> {
    let depth = depth.checked_sub(1).ok_or_else(|| wrong("free values are nested too deep"))?;
    let mut entries: Vec<(Box<str>, Json)> = Vec::new();
    each(bytes, |number, wire, bytes| {
        if (number, wire) != (1, WireType::LengthDelimited) {
            return Ok(false);
        }
        let (mut key, mut value) = (Box::default(), Json::Null);
        each(delimited(bytes)?, |number, wire, bytes| {
            match (number, wire) {
                (1, WireType::LengthDelimited) => key = text(delimited(bytes)?)?,
                (2, WireType::LengthDelimited) => value = free(delimited(bytes)?, depth)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        entries.retain(|(known, _)| *known != key);
        entries.push((key, value));
        Ok(true)
    })?;
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Json::Map(entries))
}

fn free(bytes: &[u8], depth: u32) -> Result<Json, DecodeError> {
    let depth = depth.checked_sub(1).ok_or_else(|| wrong("free values are nested too deep"))?;
    let mut found = Json::Null;
    each(bytes, |number, wire, bytes| {
        found = match (number, wire) {
            (1, WireType::Varint) => decode_varint(bytes).map(|_| Json::Null)?,
            (2, WireType::SixtyFourBit) => {
                number_in(bytes.try_get_u64_le().map_err(|_| wrong("a number is cut"))?)
            }
            (3, WireType::LengthDelimited) => Json::Text(text(delimited(bytes)?)?),
            (4, WireType::Varint) => Json::Bool(decode_varint(bytes)? != 0),
            (5, WireType::LengthDelimited) => structure(delimited(bytes)?, depth)?,
            (6, WireType::LengthDelimited) => list(delimited(bytes)?, depth)?,
            _ => return Ok(false),
        };
        Ok(true)
    })?;
    Ok(found)
}

fn list(bytes: &[u8], depth: u32) -> Result<Json, DecodeError> {
    let mut values = Vec::new();
    each(bytes, |number, wire, bytes| {
        let ours = (number, wire) == (1, WireType::LengthDelimited);
        if ours {
            values.push(free(delimited(bytes)?, depth)?);
        }
        Ok(ours)
    })?;
    Ok(Json::List(values))
}

/// A free number: a whole one where it is exact.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole and small enough, as just tested"
)]
fn number_in(bits: u64) -> Json {
    let value = f64::from_bits(bits);
    if value.fract() != 0.0 || value.abs() > EXACT_MAX || (value == 0.0 && value.is_sign_negative()) {
        Json::Float(value)
    } else if value < 0.0 {
        Json::Signed(value as i64)
    } else {
        Json::Unsigned(value as u64)
    }
}

/// What flowlog measured.
fn ours(bytes: &[u8], time_ns: i64) -> Result<Measured<'_>, DecodeError> {
    let mut measured = Measured::default();
    each(bytes, |number, wire, bytes| {
        let is_name = matches!(
            number,
            number::INTERFACES | number::DROP_REASON | number::DROP_LOCATION | number::DROP_INTERFACE
        );
        if is_name && wire == WireType::LengthDelimited {
            let name = std::str::from_utf8(delimited(bytes)?).map_err(|_| wrong("a name is not UTF-8"))?;
            match number {
                number::DROP_REASON => measured.drop_reason = Some(name.into()),
                number::DROP_LOCATION => measured.drop_location = Some(name.into()),
                number::DROP_INTERFACE => measured.drop_interface = Some(name.into()),
                _ => measured.interfaces.push(name.into()),
            }
            return Ok(true);
        }
        if wire != WireType::Varint {
            return Ok(false);
        }
        let value = decode_varint(bytes)?;
        let before = || Some(time_ns.wrapping_sub(value.cast_signed()));
        match number {
            number::EVENT => measured.event = Event::from_number(value),
            number::END_REASON => measured.end_reason = EndReason::from_number(value),
            number::CONNECTION => measured.connection = Some(value),
            number::STARTED => measured.started_ns = before(),
            number::FIRST_SEEN => measured.first_seen_ns = before(),
            number::LAST_SEEN => measured.last_seen_ns = before(),
            number::PACKETS => measured.packets = Some(value),
            number::BYTES => measured.bytes = Some(value),
            number::PACKETS_TOTAL => measured.packets_total = Some(value),
            number::BYTES_TOTAL => measured.bytes_total = Some(value),
            number::MIDSTREAM => measured.midstream = value != 0,
            number::DUPLICATE => measured.duplicate = value != 0,
            number::FRAGMENT => measured.fragment = value != 0,
            number::RTT => measured.rtt_ns = Some(value),
            number::OVERFLOW => measured.overflow = value != 0,
            number::CONNECTIONS => measured.connections = Some(value),
            number::DUPLICATE_PACKETS => measured.duplicate_packets = Some(value),
            number::DUPLICATE_BYTES => measured.duplicate_bytes = Some(value),
            number::VLAN => measured.vlan = Some(value),
            number::INNER_VLAN => measured.inner_vlan = Some(value),
            number::DROP_NETNS => measured.drop_netns = Some(value),
            number::TUNNEL => measured.tunnel = TunnelKind::from_number(value),
            _ => {}
        }
        Ok(true)
    })?;
    Ok(measured)
}
