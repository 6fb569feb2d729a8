//! Protobuf's wire: keys, varints and messages behind their length. Written by hand: prost's primitives append a varint
//! byte by byte, which was a quarter of the encoder's time; a test holds these equal to them.

#![expect(clippy::cast_possible_truncation, reason = "the lowest bits are meant")]

use prost::encoding::{WireType, encoded_len_varint};

/// A field's number and type.
#[inline]
pub(super) fn encode_key(number: u32, wire_type: WireType, out: &mut Vec<u8>) {
    encode_varint(u64::from(number) << 3 | wire_type as u64, out);
}

/// Seven bits a byte, the lowest first; all but the last have the upper bit set.
#[inline]
pub(super) fn encode_varint(value: u64, out: &mut Vec<u8>) {
    match value {
        0..0x80 => out.push(value as u8),
        0x80..0x4000 => out.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]),
        _ => long_varint(value, out),
    }
}

fn long_varint(value: u64, out: &mut Vec<u8>) {
    let (mut bytes, mut rest, mut length) = ([0; 10], value, 0);
    for byte in &mut bytes {
        length += 1;
        *byte = rest as u8 | 0x80;
        rest >>= 7;
        if rest == 0 {
            *byte &= 0x7f;
            break;
        }
    }
    out.extend_from_slice(bytes.get(..length).unwrap_or_default());
}

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
    let mut prefix = length;
    for (place, left) in out.iter_mut().skip(at).zip((0..bytes).rev()) {
        *place = prefix as u8 & 0x7f | if left > 0 { 0x80 } else { 0 };
        prefix >>= 7;
    }
}

/// A `google.protobuf.Timestamp`.
pub(super) fn timestamp(out: &mut Vec<u8>, number: u32, seconds: i64, nanoseconds: u32) {
    message(out, number, |out| {
        nonzero(out, 1, seconds.cast_unsigned());
        nonzero(out, 2, nanoseconds.into());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_keys_and_lengths_are_prosts() {
        let bits = (0..64).map(|bit| 1_u64 << bit);
        for value in bits.flat_map(|edge| [edge - 1, edge, edge + 1]).chain([u64::MAX]) {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            encode_varint(value, &mut ours);
            prost::encoding::encode_varint(value, &mut theirs);
            assert_eq!(ours, theirs, "{value}");
        }
        for number in [1, 15, 16, 2000, 21_007, 100_000, (1 << 29) - 1] {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            encode_key(number, WireType::LengthDelimited, &mut ours);
            prost::encoding::encode_key(number, WireType::LengthDelimited, &mut theirs);
            assert_eq!(ours, theirs, "{number}");
        }
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 3_000_000] {
            let (body, mut ours, mut theirs) = (vec![7; length], vec![1, 2], vec![1, 2]);
            delimited(&mut ours, |out| out.extend_from_slice(&body));
            prost::encoding::encode_varint(length as u64, &mut theirs);
            theirs.extend_from_slice(&body);
            assert_eq!(ours, theirs, "{length}");
        }
    }
}
