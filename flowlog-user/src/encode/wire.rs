//! Protobuf's wire: keys, varints and messages behind their length, by prost's primitives.

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

/// A varint; zero is left out.
pub(super) fn nonzero(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        varint(out, number, value);
    }
}

/// A varint, also a zero.
pub(super) fn varint(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

/// Eight bytes.
pub(super) fn fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::SixtyFourBit, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Bytes or a string, also an empty one.
pub(super) fn bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// A message, also an empty one.
pub(super) fn message(out: &mut Vec<u8>, number: u32, body: impl FnOnce(&mut Vec<u8>)) {
    encode_key(number, WireType::LengthDelimited, out);
    delimited(out, body);
}

/// What the body appends, behind its length.
pub(super) fn delimited(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    body(out);
    let length = out.len() - at - 1;
    if let Ok(short @ 0..0x80) = u8::try_from(length) {
        if let Some(place) = out.get_mut(at) {
            *place = short;
        }
        return;
    }
    // Seldom longer than two bytes: what was appended makes room for the rest of them.
    let bytes = encoded_len_varint(length as u64);
    out.resize(at + bytes + length, 0);
    out.copy_within(at + 1..=at + length, at + bytes);
    if let Some(mut place) = out.get_mut(at..at + bytes) {
        encode_varint(length as u64, &mut place);
    }
}

/// A `google.protobuf.Timestamp`.
pub(super) fn timestamp(out: &mut Vec<u8>, number: u32, seconds: i64, nanoseconds: u32) {
    message(out, number, |out| {
        nonzero(out, 1, seconds.cast_unsigned());
        nonzero(out, 2, nanoseconds.into());
    });
}
