/// How records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Lines of Hubble's export: `ExportEvent` in protobuf's JSON form.
    #[default]
    Json,
    /// Lines of one level: a key for each column (`config/columns.md`).
    Flat,
    /// Length-delimited `flowlog.v1.Record`, which is Hubble's `ExportEvent` with one field more
    /// (`config/flowlog.proto`).
    Protobuf,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Json, Self::Flat, Self::Protobuf];

    /// The name in a task's `format`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Flat => "flat",
            Self::Protobuf => "protobuf",
        }
    }

    /// What a file's header says of its records.
    #[must_use]
    pub const fn schema(self) -> &'static str {
        match self {
            Self::Json => "observer.ExportEvent (Hubble 1.19), flow.extensions by flowlog",
            Self::Flat => "flowlog's columns, a JSON object of one level in each line",
            Self::Protobuf => {
                "flowlog.v1.Record, each behind its length as a varint; also observer.ExportEvent (Hubble 1.19)"
            }
        }
    }

    /// How its records are told apart.
    #[must_use]
    pub const fn framing(self) -> Framing {
        match self {
            Self::Json | Self::Flat => Framing::Lines,
            Self::Protobuf => Framing::Delimited,
        }
    }
}

/// How one record is told from the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Each ends with a newline.
    #[default]
    Lines,
    /// Each begins with its length, a varint.
    Delimited,
}

impl Framing {
    /// Bytes of the record that these bytes begin with; `None` where it is not whole.
    #[must_use]
    pub fn first_len(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Lines => bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
            Self::Delimited => match delimited_head(bytes) {
                Head::Record(prefix, length) => Some(prefix + length).filter(|end| *end <= bytes.len()),
                Head::Short | Head::None => None,
            },
        }
    }

    /// Bytes of the whole records that these bytes begin with.
    #[must_use]
    pub fn whole_len(self, bytes: &[u8]) -> usize {
        match self {
            Self::Lines => bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            Self::Delimited => {
                let mut at = 0;
                while let Some(len) = bytes.get(at..).and_then(|rest| self.first_len(rest)) {
                    at += len;
                }
                at
            }
        }
    }
}

/// What stands at the beginning of bytes that are delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// A record: the bytes of its length, and the record's.
    Record(usize, usize),
    /// The beginning of a length.
    Short,
    /// No length that a record has.
    None,
}

/// Bytes of a record that are taken at most; Hubble's own readers stop at 64 KiB.
pub const RECORD_BYTES_MAX: usize = 1 << 20;
/// Bytes of a varint that a length takes at most.
const LENGTH_BYTES_MAX: usize = 3;
/// The numbers of a record's fields, each of which holds bytes (wire type 2).
const RECORD_FIELDS: [u64; 8] = [1, 2, 3, 4, 5, 1000, 1001, super::measured::number::MEASURED as u64];

/// Reads a record's length.
#[must_use]
pub fn delimited_head(bytes: &[u8]) -> Head {
    match varint(bytes.get(..LENGTH_BYTES_MAX).unwrap_or(bytes)) {
        Some((length, rest)) => match usize::try_from(length) {
            Ok(length) if (1..=RECORD_BYTES_MAX).contains(&length) => {
                Head::Record(bytes.len().min(LENGTH_BYTES_MAX) - rest.len(), length)
            }
            _ => Head::None,
        },
        None if bytes.len() < LENGTH_BYTES_MAX => Head::Short,
        None => Head::None,
    }
}

/// Whether a record's bytes (without its length) are fields of a record, one behind the other. What is in them is not
/// looked at.
#[must_use]
pub fn is_record(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let Some((number, _, rest)) = field(bytes) else { return false };
        if !RECORD_FIELDS.contains(&number) {
            return false;
        }
        bytes = rest;
    }
    true
}

/// The value of a delimited record's `time`, nanoseconds since the Unix epoch.
#[must_use]
pub fn delimited_time_ns(mut record: &[u8]) -> Option<i64> {
    while let Some((number, value, rest)) = field(record) {
        if number == 1001 {
            let (mut value, mut ns) = (value, 0_i64);
            while let Some((key, after)) = varint(value) {
                let (part, after) = varint(after)?;
                let scale = if key == 1 << 3 { 1_000_000_000 } else { 1 };
                ns = ns.saturating_add(part.cast_signed().saturating_mul(scale));
                value = after;
            }
            return Some(ns);
        }
        record = rest;
    }
    None
}

/// A field that holds bytes: its number, them, and what follows.
fn field(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (key, rest) = varint(bytes)?;
    let (length, rest) = varint(rest)?;
    let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    (key & 7 == 2).then_some((key >> 3, value, rest))
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at).min(63);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

impl Framing {
    /// Tells from a file's first bytes, of which `whole` says whether they are all. `None` where more are needed.
    #[must_use]
    pub fn recognise(head: &[u8], whole: bool) -> Option<Self> {
        // `{` is also the length 123; but no record's 123 bytes are all printable.
        let is_text = |byte: &u8| *byte >= b' ' || byte.is_ascii_whitespace();
        if head.starts_with(b"{") && head.iter().take(1 + usize::from(b'{')).all(is_text) {
            return Some(Self::Lines);
        }
        let body = match delimited_head(head) {
            Head::Record(prefix, length) => head.get(prefix..prefix + length),
            Head::Short => None,
            Head::None => Some(&[][..]),
        };
        match body {
            Some(body) if !body.is_empty() && is_record(body) => Some(Self::Delimited),
            None if !whole => None,
            _ => Some(Self::Lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delimited(body: &[u8]) -> Vec<u8> {
        [&[u8::try_from(body.len()).unwrap()][..], body].concat()
    }

    #[test]
    fn a_files_framing_is_told_from_its_first_bytes() {
        let flow = delimited(&[0x0a, 2, 0x10, 1, 0xca, 0x3e, 2, 8, 5]);
        assert_eq!(Framing::recognise(&flow, false), Some(Framing::Delimited));
        assert_eq!(Framing::recognise(&flow[..5], false), None);
        assert_eq!(Framing::recognise(&flow[..5], true), Some(Framing::Lines));
        for text in
            ["{\"flow\":{}}\n", "{}", "{\n}", "nothing", "[]", "\n{}", "", "{\"flow\":{\"uuid\":\"", " {}"]
        {
            assert_eq!(Framing::recognise(text.as_bytes(), true), Some(Framing::Lines), "{text:?}");
        }
        assert_eq!(Framing::recognise(b"{\"flow\"", false), Some(Framing::Lines));
        // An agent's event of 123 bytes begins like JSON: `{"`.
        let mut event = vec![0x22, 101, 8, 2];
        event.resize(103, b'x');
        event.extend_from_slice(&[0xc2, 0x3e, 17]);
        event.resize(123, b'n');
        let event = delimited(&event);
        assert!(event.starts_with(b"{\""));
        assert_eq!(Framing::recognise(&event, false), Some(Framing::Delimited));
    }

    #[test]
    fn heads_and_times_are_read_as_protobuf_has_them() {
        assert_eq!(delimited_head(&[]), Head::Short);
        assert_eq!(delimited_head(&[0x96, 0x01, 0xff, 0xff]), Head::Record(2, 150)); // protobuf's own example
        assert_eq!(delimited_head(&[0x96]), Head::Short);
        assert_eq!(delimited_head(&[0xff, 0xff, 0xff, 0xff]), Head::None);
        assert_eq!(delimited_head(&[0xff, 0xff, 0x7f, 0]), Head::None);
        let record = [0x0a, 0, 0xca, 0x3e, 5, 8, 3, 0x10, 0x96, 0x01];
        assert_eq!(delimited_time_ns(&record), Some(3_000_000_150));
        assert!(is_record(&record) && !is_record(&record[..9]) && !is_record(&[0x32, 0]));
        assert_eq!(delimited_time_ns(&[0x0a, 0]), None);
    }
}
