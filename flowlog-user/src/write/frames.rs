//! The frames of a file that another process has written, for an index of it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use jiff::Timestamp;

use super::mend::next_frame;
use super::salvage::{first_time_ns, records_in};
use crate::record::Framing;
use crate::record::container::{Frame, is_header};
use crate::record::format::{Head, delimited_head, delimited_time_ns};

/// Bytes of a frame, compressed and not, beyond which a file is none of ours.
const FRAME_BYTES_MAX: u64 = 64 << 20;
const CONTENT_BYTES_MAX: u64 = 256 << 20;

/// What the writer of a file would have known of it.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) frames: Vec<Frame>,
    pub(super) has_header: bool,
    /// Frames that are whole by their heads and cannot be decoded: from where to where.
    pub(super) damaged: Vec<(u64, u64)>,
    /// How the records of the first frame that can be read are told apart, and the `time` of its first record.
    pub(super) first: Option<(Framing, Option<i64>)>,
}

/// Reads a file of whole frames; nothing where they are not such as ours.
pub(super) fn frames(file: &File) -> io::Result<Option<Frames>> {
    let len = file.metadata()?.len();
    let mut found = Frames::default();
    let mut at = 0;
    while at < len {
        let Some((end, is_content)) = next_frame(file, at, len)? else { return Ok(None) };
        if end - at > FRAME_BYTES_MAX {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(end - at).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, at)?;
        if is_content {
            let mut text = Vec::new();
            let decoder = zstd::stream::read::Decoder::with_buffer(&*bytes)?;
            if decoder.take(CONTENT_BYTES_MAX).read_to_end(&mut text).is_err() {
                found.damaged.push((at, end));
                at = end;
                continue;
            }
            let framing = Framing::recognise(&text, true).unwrap_or_default();
            if framing.whole_len(&text) != text.len() {
                return Ok(None);
            }
            let (first_ns, last_ns) = times_ns(framing, &text);
            found.first.get_or_insert_with(|| (framing, first_time_ns(framing, &text)));
            found.frames.push(Frame { offset: at, first_ns, last_ns, lines: records_in(framing, &text) });
        } else {
            found.has_header |= bytes.get(8..).is_some_and(is_header);
        }
        at = end;
    }
    Ok(Some(found))
}

/// The earliest and the latest time in records. Of delimited ones only `time` is looked at, so that nothing is known of
/// the earliest.
fn times_ns(framing: Framing, text: &[u8]) -> (i64, i64) {
    let mut times = (i64::MAX, i64::MIN);
    let mut add = |ns: i64| times = (times.0.min(ns), times.1.max(ns));
    match framing {
        Framing::Lines => {
            for key in [&b"\"time\":\""[..], b"\"first_seen\":\"", b"\"last_seen\":\""] {
                values(text, key).filter_map(time_ns).for_each(&mut add);
            }
        }
        Framing::Delimited => {
            let mut rest = text;
            while let Head::Record(prefix, length) = delimited_head(rest)
                && let Some(record) = rest.get(prefix..prefix + length).filter(|record| !record.is_empty())
            {
                delimited_time_ns(record).into_iter().for_each(&mut add);
                rest = rest.get(prefix + length..).unwrap_or_default();
            }
            add(0);
        }
    }
    if times.0 > times.1 { (0, i64::MAX) } else { times }
}

/// What follows a key in JSON's text, up to the quote. Within a string quotes are escaped, so a key is found as such only.
fn values<'a>(text: &'a [u8], key: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = rest.windows(key.len()).position(|window| window == key)?;
        rest = rest.get(at + key.len()..)?;
        let end = rest.iter().position(|byte| *byte == b'"')?;
        rest.get(..end)
    })
}

fn time_ns(text: &[u8]) -> Option<i64> {
    let time: Timestamp = std::str::from_utf8(text).ok()?.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_records() {
        // date -u -d @1796069666 gives 2026-11-30T20:14:26.
        let s = 1_796_069_666_000_000_000;
        let line = concat!(
            r#"{"flow":{"time":"2026-11-30T20:14:27Z","extensions":{"first_seen":"2026-11-30T20:14:26.5Z"},"#,
            r#""x":"\"time\":\"2020-01-01T00:00:00Z\""},"time":"2026-11-30T20:14:28Z"}"#,
            "\n"
        );
        assert_eq!(times_ns(Framing::Lines, line.as_bytes()), (s + 500_000_000, s + 2_000_000_000));
        assert_eq!(times_ns(Framing::Lines, b"{}\n"), (0, i64::MAX));
        let record = [10, 0x0a, 0, 0xca, 0x3e, 5, 8, 3, 0x10, 0x96, 0x01];
        assert_eq!(times_ns(Framing::Delimited, &record), (0, 3_000_000_150));
    }
}
