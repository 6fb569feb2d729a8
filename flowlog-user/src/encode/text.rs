//! The leaves of a JSON line: keys, numbers, strings and times as Hubble's encoder writes them.

use std::io::Write;
use std::net::IpAddr;

use jiff::Timestamp;
use jiff::tz::Offset;

/// Writes a key, given as `"name":`, with a comma before it unless it is the first of its object.
// Inlined so that its length is known, and copying it is a few stores.
#[inline(always)]
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
#[inline(always)]
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
    let (year, month, day, second) = moment(seconds);
    let [[y1, y0], [y3, y2]] = [pair(year % 100), pair(year / 100)];
    let [[mo1, mo0], [d1, d0]] = [pair(month), pair(day)];
    let [[h1, h0], [mi1, mi0], [s1, s0]] = [pair(second / 3600), pair(second / 60 % 60), pair(second % 60)];
    out.extend_from_slice(&[
        b'"', y3, y2, y1, y0, b'-', mo1, mo0, b'-', d1, d0, b'T', h1, h0, b':', mi1, mi0, b':', s1, s0,
    ]);
    if fraction != 0 {
        let [[a, b], [c, d], [e, f], [g, h]] = [
            pair(fraction / 10_000_000 % 100),
            pair(fraction / 100_000 % 100),
            pair(fraction / 1_000 % 100),
            pair(fraction / 10 % 100),
        ];
        let point: [u8; 10] = [b'.', a, b, c, d, e, f, g, h, b'0' + (fraction % 10) as u8];
        let length = match fraction {
            milliseconds if milliseconds % 1_000_000 == 0 => 4,
            microseconds if microseconds % 1_000 == 0 => 7,
            _ => 10,
        };
        out.extend_from_slice(point.get(..length).unwrap_or_default());
    }
    out.extend_from_slice(b"Z\"");
}

/// Year, month, day and second of the day in UTC.
fn moment(seconds: i64) -> (u32, u32, u32, u32) {
    const DAY: u32 = 86_400;
    if let Ok(seconds) = u32::try_from(seconds) {
        let (year, month, day) = date(seconds / DAY);
        return (year, month, day, seconds % DAY);
    }
    // Before 1970 or after 2106: somebody else's record.
    let at = Offset::UTC.to_datetime(Timestamp::new(seconds, 0).unwrap_or(Timestamp::UNIX_EPOCH));
    let [month, day, hour, minute, second] = [at.month(), at.day(), at.hour(), at.minute(), at.second()]
        .map(|value| u32::from(value.unsigned_abs()));
    (at.year().unsigned_abs().into(), month, day, hour * 3600 + minute * 60 + second)
}

/// The date in the Gregorian calendar so many days after 1970-01-01. Years are counted from March here, so that a leap
/// day is the last of its year; four centuries have 146,097 days, five months from March on 153.
const fn date(days: u32) -> (u32, u32, u32) {
    const TO_MARCH_OF_YEAR_0: u32 = 719_468;
    let days = days + TO_MARCH_OF_YEAR_0;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + (month < 3) as u32, month, day)
}

/// The last two decimal digits.
fn pair(value: u32) -> [u8; 2] {
    PAIRS.get(value as usize % 100).copied().unwrap_or(*b"00")
}

/// The digits of 0 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let (mut rest, mut value): (&mut [[u8; 2]], u8) = (&mut pairs, 0);
    while let [pair, tail @ ..] = rest {
        *pair = [b'0' + value / 10, b'0' + value % 10];
        (rest, value) = (tail, value + 1);
    }
    pairs
};

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
            let (mut text, mut length) = ([b'.'; 16], 0);
            for octet in v4.octets() {
                let [tens, ones] = pair(octet.into());
                let digits = [b'0' + octet / 100, tens, ones];
                let skipped = usize::from(octet < 100) + usize::from(octet < 10);
                let shown = digits.get(skipped..).unwrap_or_default();
                if let Some(place) = text.get_mut(length..length + shown.len()) {
                    place.copy_from_slice(shown);
                }
                // And the dot, which is there.
                length += shown.len() + 1;
            }
            out.extend_from_slice(text.get(..length - 1).unwrap_or_default());
        }
        IpAddr::V6(v6) => {
            // Writing to a Vec does not fail.
            let _ = write!(out, "{v6}");
        }
    }
}
