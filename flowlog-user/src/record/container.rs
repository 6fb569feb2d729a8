//! What flowlog adds to a zstd file, in skippable frames that zstd's own tools pass over: a header behind the first
//! frame, and an index of all frames at the end. The shape of frames too, as far as it takes to walk over them.

/// What a frame with content begins with.
pub const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What flowlog's skippable frames begin with (0x184D2A55; pzstd and the seekable format use others of the sixteen).
pub const SKIPPABLE_MAGIC: [u8; 4] = [0x55, 0x2a, 0x4d, 0x18];
/// Bytes before a skippable frame's payload: magic and length.
pub const SKIPPABLE_HEAD_BYTES: usize = 8;
/// Bytes at the end of a file that say where its index begins.
pub const TAIL_BYTES: usize = 12;
/// Bytes that say what a skippable frame of flowlog's is.
pub const TAG_BYTES: usize = 8;
/// Bytes of a frame's head at most.
pub const FRAME_HEAD_BYTES_MAX: usize = 18;

/// What the last record of a file says that its writer left without closing it; a file with it has no index.
pub const CRASHED: &str =
    "flowlog ended without closing this file; what it had not written by then is missing";
/// The same, where the daemon went on.
pub const LEFT: &str = "the file was left after an error";

const HEADER_TAG: &[u8; TAG_BYTES] = b"flowlogH";
/// What follows the tag of a header with a checksum; in those of earlier versions the text's `{` does.
const HEADER_VERSION: u8 = 2;
const INDEX_TAG: &[u8; TAG_BYTES] = b"flowlogI";
const TAIL_TAG: &[u8; 8] = b"flowlogE";
const INDEX_VERSION: u8 = 1;

/// One frame of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Where it begins in the file.
    pub offset: u64,
    /// When the first packet of any of its records was seen, nanoseconds since the Unix epoch.
    pub first_ns: i64,
    /// When the last packet of any of its records was seen, nanoseconds since the Unix epoch.
    pub last_ns: i64,
    /// Lines in it: records and notices.
    pub lines: u64,
}

/// A finished file's index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// The task whose file it is.
    pub task: String,
    /// Its frames in order.
    pub frames: Vec<Frame>,
}

/// A skippable frame with a header (JSON text) and its checksum.
#[must_use]
pub fn header(json: &str) -> Vec<u8> {
    let crc = crc32(json.as_bytes()).to_le_bytes();
    skippable(&[HEADER_TAG, &[HEADER_VERSION][..], &crc, json.as_bytes()].concat())
}

/// Whether the payload of a skippable frame that begins so is a header.
#[must_use]
pub fn is_header(payload: &[u8]) -> bool {
    payload.starts_with(HEADER_TAG)
}

/// The JSON text of a header frame's payload, damaged or not ([`header_is_intact`]); `None` for any other skippable
/// frame.
#[must_use]
pub fn parse_header(payload: &[u8]) -> Option<&str> {
    std::str::from_utf8(checked_header(payload)?.1).ok()
}

/// Whether a header frame's payload is as it was written; `None` for any other skippable frame. Headers of earlier
/// versions have no checksum: of them only what is no text at all is known to be damaged.
#[must_use]
pub fn header_is_intact(payload: &[u8]) -> Option<bool> {
    let (crc, json) = checked_header(payload)?;
    Some(match crc {
        Some(crc) => crc == crc32(json),
        None => json.starts_with(b"{") && std::str::from_utf8(json).is_ok(),
    })
}

/// A header's checksum, where it has one, and its text.
fn checked_header(payload: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let rest = payload.strip_prefix(HEADER_TAG)?;
    let checked = rest.strip_prefix(&[HEADER_VERSION]).and_then(|rest| rest.split_first_chunk::<4>());
    Some(checked.map_or((None, rest), |(crc, json)| (Some(u32::from_le_bytes(*crc)), json)))
}

fn skippable(payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    [&SKIPPABLE_MAGIC[..], &len.to_le_bytes(), payload].concat()
}

/// Whether a skippable frame that begins so is one of flowlog's that may hold an [`Index`].
#[must_use]
pub fn may_be_index(payload: &[u8]) -> bool {
    payload.starts_with(INDEX_TAG)
}

impl Index {
    /// The skippable frame that ends a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = INDEX_TAG.to_vec();
        payload.push(INDEX_VERSION);
        put(&mut payload, self.task.len() as u64);
        payload.extend_from_slice(self.task.as_bytes());
        put(&mut payload, self.frames.len() as u64);
        let mut before = Frame::default();
        for frame in &self.frames {
            put(&mut payload, frame.offset.wrapping_sub(before.offset));
            put(&mut payload, zigzag(frame.first_ns.wrapping_sub(before.first_ns)));
            put(&mut payload, zigzag(frame.last_ns.wrapping_sub(frame.first_ns)));
            put(&mut payload, frame.lines);
            before = *frame;
        }
        payload.extend_from_slice(&crc32(&payload).to_le_bytes());
        let len = u32::try_from(payload.len() + TAIL_BYTES).unwrap_or(u32::MAX);
        payload.extend_from_slice(&len.to_le_bytes());
        payload.extend_from_slice(TAIL_TAG);
        skippable(&payload)
    }

    /// Reads the payload of the last skippable frame; `None` when it is no index or not whole.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let (body, tail) = payload.split_at_checked(payload.len().checked_sub(TAIL_BYTES)?)?;
        payload_len(tail.try_into().ok()?).filter(|len| *len == payload.len() as u64)?;
        let (body, crc) = body.split_last_chunk::<4>()?;
        if crc32(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let rest = &mut body.strip_prefix(INDEX_TAG)?.strip_prefix(&[INDEX_VERSION])?;
        let len = usize::try_from(take(rest)?).ok()?;
        let (task, after) = rest.split_at_checked(len)?;
        let task = std::str::from_utf8(task).ok()?.to_owned();
        let rest = &mut &*after;
        let mut index = Self { task, frames: Vec::new() };
        let mut before = Frame::default();
        for _ in 0..take(rest)? {
            let offset = before.offset.wrapping_add(take(rest)?);
            let first_ns = before.first_ns.wrapping_add(unzigzag(take(rest)?));
            let last_ns = first_ns.wrapping_add(unzigzag(take(rest)?));
            before = Frame { offset, first_ns, last_ns, lines: take(rest)? };
            index.frames.push(before);
        }
        rest.is_empty().then_some(index)
    }
}

/// The length of the index's payload, from a file's last bytes; `None` when they are no index's.
#[must_use]
pub fn payload_len(tail: &[u8; TAIL_BYTES]) -> Option<u64> {
    let (len, tag) = tail.split_first_chunk::<4>()?;
    (tag == TAIL_TAG).then(|| u64::from(u32::from_le_bytes(*len)))
}

/// The length of a frame's head and whether a checksum ends the frame; `None` when the bytes are no frame's.
#[must_use]
pub fn frame_head(bytes: &[u8]) -> Option<(usize, bool)> {
    let rest = bytes.strip_prefix(&FRAME_MAGIC)?;
    let descriptor = *rest.first()?;
    if descriptor & 0b1000 != 0 {
        return None; // Reserved.
    }
    let single = descriptor & 0b10_0000 != 0;
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 0b11))?;
    let size = match descriptor >> 6 {
        0 => usize::from(single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    Some((5 + usize::from(!single) + dictionary + size, descriptor & 0b100 != 0))
}

/// Whether a frame's head tells how much it holds: flowlog's never do, since they grow, and those of `zstd FILE` do.
#[must_use]
pub fn is_sized(head: &[u8]) -> bool {
    head.get(FRAME_MAGIC.len()).is_some_and(|descriptor| descriptor >> 6 != 0 || descriptor & 0b10_0000 != 0)
}

/// From a block's three bytes: whether it is the frame's last, and the bytes that follow; `None` when it is none.
#[must_use]
pub fn block_head(bytes: [u8; 3]) -> Option<(bool, u64)> {
    let [a, b, c] = bytes;
    let head = u32::from_le_bytes([a, b, c, 0]);
    let size = u64::from(head >> 3);
    match (head >> 1) & 0b11 {
        1 => Some((head & 1 == 1, 1)),
        0 | 2 if size <= 128 << 10 => Some((head & 1 == 1, size)),
        _ => None,
    }
}

/// LEB128.
fn put(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value.to_le_bytes().first().map_or(0, |byte| byte | 0x80));
        value >>= 7;
    }
    to.extend(value.to_le_bytes().first());
}

fn take(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// CRC-32 as in zip and PNG; an index is a few KiB, so bit by bit will do.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_comes_back_as_it_was_and_never_damaged() {
        let frames = vec![
            Frame {
                offset: 0,
                first_ns: 1_796_069_666_123_000_000,
                last_ns: 1_796_069_667_000_000_001,
                lines: 3,
            },
            Frame { offset: 70_000, first_ns: 1_796_069_660_000_000_000, last_ns: i64::MAX, lines: 0 },
            Frame { offset: u64::MAX, first_ns: i64::MIN, last_ns: -1, lines: u64::MAX },
        ];
        let index = Index { task: "a task".into(), frames };
        let bytes = index.to_bytes();
        let (head, payload) = bytes.split_at(SKIPPABLE_HEAD_BYTES);
        assert_eq!(head[..4], 0x184d_2a55_u32.to_le_bytes());
        let tail = payload[payload.len() - TAIL_BYTES..].try_into().unwrap();
        assert_eq!(payload_len(tail), Some(payload.len() as u64));
        assert_eq!(Index::parse(payload), Some(index));
        for at in 0..payload.len() {
            let mut damaged = payload.to_vec();
            damaged[at] ^= 1;
            assert_eq!(Index::parse(&damaged), None, "byte {at}");
            assert_eq!(Index::parse(&payload[..at]), None, "cut at {at}");
        }
        assert_eq!(parse_header(&header("{}")[8..]), Some("{}"));
        assert_eq!(parse_header(payload), None);
    }

    #[test]
    fn a_header_that_is_not_as_it_was_written_is_told() {
        let json = r#"{"task":"a","node":"n\u00e9"}"#;
        let frame = header(json);
        let payload = &frame[SKIPPABLE_HEAD_BYTES..];
        assert_eq!((parse_header(payload), header_is_intact(payload)), (Some(json), Some(true)));
        for at in HEADER_TAG.len()..payload.len() {
            for bit in 0..8 {
                let mut damaged = payload.to_vec();
                damaged[at] ^= 1 << bit;
                assert_eq!(header_is_intact(&damaged), Some(false), "bit {bit} of byte {at}");
            }
            assert_eq!(header_is_intact(&payload[..at]), Some(false), "cut at {at}");
        }
        // Of an earlier version.
        let old = [HEADER_TAG, json.as_bytes()].concat();
        assert_eq!((parse_header(&old), header_is_intact(&old)), (Some(json), Some(true)));
        assert_eq!(header_is_intact(b"flowlogI"), None);
    }

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926); // The check value every catalogue of CRCs gives.
    }

    #[test]
    fn heads_are_read_as_the_format_says() {
        // RFC 8878, 3.1.1.1: 0x04 = checksum, window descriptor; 0x20 = single segment, one byte of size.
        assert_eq!(frame_head(&[0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x50]), Some((6, true)));
        assert_eq!(frame_head(&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x05]), Some((6, false)));
        assert_eq!(frame_head(&[0x28, 0xb5, 0x2f, 0xfd, 0xc3]), Some((18, false)));
        assert_eq!(frame_head(&[0x28, 0xb5, 0x2f, 0xfd, 0x08]), None);
        assert_eq!(frame_head(b"{}"), None);
        assert_eq!(block_head([0x01, 0x00, 0x00]), Some((true, 0)));
        assert_eq!(block_head([0b10, 0x10, 0x00]), Some((false, 1))); // RLE: one byte, however long.
        assert_eq!(block_head([0b110, 0x00, 0x00]), None);
    }
}
