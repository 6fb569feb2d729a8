//! The leaves of a JSON line: keys, numbers, strings and times as Hubble's encoder writes them.

use std::io::Write;
use std::net::IpAddr;

use jiff::Timestamp;
use jiff::tz::Offset;

/// Writes a key, given as `"name":`, with a comma before it unless it is the first of its object.
pub(super) fn key(out: &mut Vec<u8>, quoted: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.extend_from_slice(quoted.as_bytes());
}

pub(super) fn number(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A number's key and value; zero is left out.
pub(super) fn nonzero(out: &mut Vec<u8>, quoted: &str, value: u32) {
    if value != 0 {
        key(out, quoted);
        number(out, value);
    }
}

/// A key and a string that needs no escapes.
pub(super) fn plain(out: &mut Vec<u8>, quoted: &str, value: &str) {
    key(out, quoted);
    out.push(b'"');
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

/// A string, escaped as Go's encoder does: also `<`, `>`, `&`, U+2028 and U+2029.
pub(super) fn string(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    if value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\<>&".contains(&byte)) {
        out.extend_from_slice(value.as_bytes());
    } else {
        escaped(out, value);
    }
    out.push(b'"');
}

fn escaped(out: &mut Vec<u8>, value: &str) {
    for c in value.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => escape(out, u32::from(c)),
            ascii if ascii.is_ascii() => out.push(ascii as u8),
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

fn escape(out: &mut Vec<u8>, c: u32) {
    out.extend_from_slice(b"\\u");
    hex(out, u128::from(c), 4);
}

/// The lowest `digits` hexadecimal digits.
pub(super) fn hex(out: &mut Vec<u8>, value: u128, digits: u32) {
    for digit in (0..digits).rev() {
        let nibble = (value >> (4 * digit) & 0xf) as u8;
        out.push(if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble });
    }
}

/// RFC 3339 in UTC with 0, 3, 6 or 9 digits of a second, quoted.
pub(super) fn time(out: &mut Vec<u8>, ns: i64) {
    let fraction = u32::try_from(ns.rem_euclid(1_000_000_000)).unwrap_or(0);
    // 64 bits of nanoseconds reach from 1677 to 2262, well inside what jiff holds.
    time_at(out, ns.div_euclid(1_000_000_000), fraction);
}

/// The same from whole seconds and the nanoseconds after them.
pub(super) fn time_at(out: &mut Vec<u8>, seconds: i64, fraction: u32) {
    let at = Offset::UTC.to_datetime(Timestamp::new(seconds, 0).unwrap_or(Timestamp::UNIX_EPOCH));
    let year = u32::from(at.year().unsigned_abs());
    let [y3, y2, y1, y0] = [digit(year, 1000), digit(year, 100), digit(year, 10), digit(year, 1)];
    let [[mo1, mo0], [d1, d0], [h1, h0], [mi1, mi0], [s1, s0]] =
        [at.month(), at.day(), at.hour(), at.minute(), at.second()].map(|value| {
            let value = u32::from(value.unsigned_abs());
            [digit(value, 10), digit(value, 1)]
        });
    out.extend_from_slice(&[
        b'"', y3, y2, y1, y0, b'-', mo1, mo0, b'-', d1, d0, b'T', h1, h0, b':', mi1, mi0, b':', s1, s0,
    ]);
    if fraction != 0 {
        let point: [u8; 10] = [
            b'.',
            digit(fraction, 100_000_000),
            digit(fraction, 10_000_000),
            digit(fraction, 1_000_000),
            digit(fraction, 100_000),
            digit(fraction, 10_000),
            digit(fraction, 1_000),
            digit(fraction, 100),
            digit(fraction, 10),
            digit(fraction, 1),
        ];
        let length = match fraction {
            milliseconds if milliseconds % 1_000_000 == 0 => 4,
            microseconds if microseconds % 1_000 == 0 => 7,
            _ => 10,
        };
        out.extend_from_slice(point.get(..length).unwrap_or_default());
    }
    out.extend_from_slice(b"Z\"");
}

/// The decimal digit at a place (1, 10, 100, ...).
const fn digit(value: u32, place: u32) -> u8 {
    b'0' + (value / place % 10) as u8
}

/// An address, quoted.
pub(super) fn address(out: &mut Vec<u8>, address: IpAddr) {
    out.push(b'"');
    plain_address(out, address);
    out.push(b'"');
}

/// An address.
pub(super) fn plain_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            for (index, octet) in v4.octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                number(out, octet);
            }
        }
        IpAddr::V6(v6) => {
            // Writing to a Vec does not fail.
            let _ = write!(out, "{v6}");
        }
    }
}
