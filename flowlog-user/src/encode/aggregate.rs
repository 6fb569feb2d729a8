//! Many records as one line: what they have in common, and what they add up to.

use super::text::{key, number, string, time};
use crate::record::Aggregate;

/// How every line of a flow begins.
const OPEN: &[u8] = b"{\"flow\":{";
const EXTENSIONS: &[u8] = b"\"extensions\":{";
const VALUE: &[u8] = b",\"value\":{";

/// Appends the line of records whose line under the mask of their common fields is `common`: that line with the time of
/// the first record, our sums below `extensions`, and Hubble's counts (`flow.Aggregate`) at the flow's end.
pub fn encode(common: &[u8], sums: &Aggregate, out: &mut Vec<u8>) {
    let begin = out.len();
    let Some(Parts { flow, extensions, tail }) = parts(common) else { return };
    let timed = flow.starts_with(b"\"time\":");
    out.extend_from_slice(OPEN);
    if !timed {
        key(out, "\"time\":");
        time(out, sums.time_ns);
        if !flow.is_empty() {
            out.push(b',');
        }
    }
    // `extensions` is there already where records share some of it.
    let (before, after) = flow.split_at(extensions.unwrap_or(flow.len()));
    out.extend_from_slice(before);
    if extensions.is_none() {
        key(out, "\"extensions\":{\"@type\":\"type.googleapis.com/google.protobuf.Struct\",\"value\":{");
    }
    values(out, sums);
    out.extend_from_slice(if extensions.is_none() { b"}}" } else { after });
    counts(out, sums);
    let tail = tail.strip_suffix(b"}\n").unwrap_or(tail);
    out.extend_from_slice(tail);
    if !timed {
        key(out, "\"time\":");
        time(out, sums.time_ns);
    }
    out.extend_from_slice(b"}\n");
    debug_assert!(serde_json::from_slice::<serde_json::Value>(out.get(begin..).unwrap_or_default()).is_ok());
}

/// The common line of records for whose keys there is no room.
#[must_use]
pub fn overflow(node_name: &str) -> Vec<u8> {
    let mut out = OPEN.to_vec();
    for end in ["}", "}\n"] {
        if !node_name.is_empty() {
            key(&mut out, "\"node_name\":");
            string(&mut out, node_name);
        }
        out.extend_from_slice(end.as_bytes());
    }
    out
}

fn values(out: &mut Vec<u8>, sums: &Aggregate) {
    if sums.overflow {
        key(out, "\"overflow\":true");
    }
    if sums.connections > 0 {
        key(out, "\"connections\":");
        number(out, sums.connections);
    }
    for (quoted, ns) in [("\"first_seen\":", sums.first_ns), ("\"last_seen\":", sums.last_ns)] {
        key(out, quoted);
        time(out, ns);
    }
    let duplicates = sums.duplicate_packets > 0;
    for (quoted, value, said) in [
        ("\"packets\":", sums.packets, sums.counted),
        ("\"bytes\":", sums.bytes, sums.counted),
        ("\"duplicate_packets\":", sums.duplicate_packets, duplicates),
        ("\"duplicate_bytes\":", sums.duplicate_bytes, duplicates),
    ] {
        if said {
            key(out, quoted);
            number(out, value);
        }
    }
}

/// Hubble's message; like all of its numbers, zeros are left out.
fn counts(out: &mut Vec<u8>, sums: &Aggregate) {
    key(out, "\"aggregate\":{");
    for (quoted, count) in [
        ("\"ingress_flow_count\":", sums.ingress),
        ("\"egress_flow_count\":", sums.egress),
        ("\"unknown_direction_flow_count\":", sums.unknown),
    ] {
        if count > 0 {
            key(out, quoted);
            number(out, u32::try_from(count).unwrap_or(u32::MAX)); // a uint32 there
        }
    }
    out.extend_from_slice(b"}}");
}

/// A line of a flow, taken apart.
struct Parts<'a> {
    /// Its fields, without the braces.
    flow: &'a [u8],
    /// Where the last value below its `extensions` ends, counted from the first field.
    extensions: Option<usize>,
    /// What follows the flow.
    tail: &'a [u8],
}

/// Finds the ends of the flow and of its `extensions` in a line that an encoder has written.
fn parts(line: &[u8]) -> Option<Parts<'_>> {
    let rest = line.strip_prefix(OPEN)?;
    let (mut depth, mut text, mut escaped) = (1_u32, false, false);
    let (mut inside, mut extensions) = (false, None);
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => {
                // A text that is a value is never followed by a colon.
                let here = rest.get(at..).unwrap_or_default();
                inside |= !text && depth == 1 && here.starts_with(EXTENSIONS);
                text = !text;
            }
            b'{' | b'[' if !text => depth += 1,
            b'}' | b']' if !text => {
                depth -= 1;
                match depth {
                    0 => {
                        let (flow, tail) = (rest.get(..at)?, rest.get(at + 1..)?);
                        return Some(Parts { flow, extensions, tail });
                    }
                    1 if inside => {
                        inside = false;
                        let before = rest.get(..at.checked_sub(1)?)?;
                        let whole = before.windows(VALUE.len()).any(|window| window == VALUE);
                        extensions = (rest.get(at - 1) == Some(&b'}') && whole).then_some(at - 1);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(common: &str, sums: &Aggregate) -> String {
        let mut out = Vec::new();
        encode(common.as_bytes(), sums, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Written by hand after Hubble's rules: declaration order, zeros left out.
    #[test]
    fn common_fields_then_ours_then_hubbles_counts() {
        let sums = Aggregate {
            ingress: 4,
            egress: 6,
            connections: 3,
            packets: 20,
            bytes: 2000,
            counted: true,
            time_ns: 1_000_000_000,
            first_ns: 500_000_000,
            last_ns: 9_000_000_000,
            ..Aggregate::default()
        };
        let ours = r#""first_seen":"1970-01-01T00:00:00.500Z","last_seen":"1970-01-01T00:00:09Z","packets":20,"bytes":2000}},"aggregate":{"ingress_flow_count":4,"egress_flow_count":6}}"#;
        let time = r#""time":"1970-01-01T00:00:01Z""#;
        let of = "\"@type\":\"type.googleapis.com/google.protobuf.Struct\",\"value\":{";
        assert_eq!(
            line("{\"flow\":{\"verdict\":\"FORWARDED\",\"node_name\":\"n\"},\"node_name\":\"n\"}\n", &sums),
            format!(
                "{{\"flow\":{{{time},\"verdict\":\"FORWARDED\",\"node_name\":\"n\",\"extensions\":{{{of}\"connections\":3,{ours},\
                 \"node_name\":\"n\",{time}}}\n"
            )
        );
        assert_eq!(
            line("{\"flow\":{}}\n", &sums),
            format!("{{\"flow\":{{{time},\"extensions\":{{{of}\"connections\":3,{ours},{time}}}\n")
        );
        // The key has fields of its own there, and text that looks like one.
        assert_eq!(
            line(
                &format!(
                    "{{\"flow\":{{\"Summary\":\"a }}\\\"extensions\\\":{{\",\"extensions\":{{{of}\"event\":\"end\"}}}}}}}}\n"
                ),
                &sums
            ),
            format!(
                "{{\"flow\":{{{time},\"Summary\":\"a }}\\\"extensions\\\":{{\",\"extensions\":{{{of}\"event\":\"end\",\"connections\":3,{ours},{time}}}\n"
            )
        );
    }

    #[test]
    fn what_overflows_says_so() {
        let sums = Aggregate { unknown: 7, overflow: true, ..Aggregate::default() };
        let line = line(&String::from_utf8(overflow("n<1")).unwrap(), &sums);
        let found: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(found["node_name"], "n<1");
        assert_eq!(found["flow"]["extensions"]["value"]["overflow"], true);
        assert_eq!(found["flow"]["aggregate"], serde_json::json!({ "unknown_direction_flow_count": 7 }));
        assert!(found["flow"]["extensions"]["value"].get("packets").is_none());
    }
}
