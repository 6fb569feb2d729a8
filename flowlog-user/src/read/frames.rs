use std::collections::VecDeque;
use std::io;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::content::{Piece, Reading};
use super::input::Input;
use super::range::TimeRange;
use crate::record::container::{
    FRAME_HEAD_BYTES_MAX, FRAME_MAGIC, Index, SKIPPABLE_HEAD_BYTES, SKIPPABLE_MAGIC, TAG_BYTES, TAIL_BYTES,
    block_head, frame_head, header_is_intact, is_sized, may_be_index, payload_len,
};

/// Bytes of an index that are read at most.
const INDEX_BYTES_MAX: u64 = 64 << 20;
const OUTPUT_BYTES: usize = 128 << 10;
/// Text of a frame that is held back until its checksum has been seen; flowlog's frames hold about 1 MiB.
const HELD_BYTES_MAX: usize = 8 << 20;
/// Bytes that are decoded at once where damaged frames are given out too: what a decoder finds wrong takes with it all that
/// it was given at once.
const DOUBTFUL_BYTES: usize = 1;
const BLOCK_HEAD_BYTES: usize = 3;
const CHECKSUM_BYTES: u64 = 4;
const BAD_HEADER: &str =
    "the file's header is damaged: what it tells of task, node and definition may be altered";
const DAMAGED: &str =
    "the frame is damaged, so that its records may be altered: they are left out (--doubtful prints them)";

/// The frames of a zstd file, read one after the other, also behind damage and while the file grows.
pub(super) struct Frames {
    decoder: Decoder<'static>,
    state: State,
    /// What is to be read, as (from, to); `None` is everything.
    wanted: Option<VecDeque<(u64, u64)>>,
    /// Where the frame begins that the last text came from.
    pub(super) text_frame: u64,
    /// A header of flowlog's was seen.
    pub(super) has_header: bool,
    /// The first frame is one as `zstd FILE` makes them.
    pub(super) is_foreign: bool,
    /// Every frame so far says that a checksum stands at its end.
    pub(super) have_checksums: bool,
    /// Text of a frame that has not ended.
    held: Vec<u8>,
    /// The decoder may have more text without reading on.
    holds_text: bool,
    /// What was passed last is a header that is not as it was written.
    header_is_bad: bool,
    /// What was passed last is a whole index.
    indexed: bool,
}

#[derive(Clone, Copy)]
enum State {
    /// A frame may begin here.
    Between,
    /// In a frame that began there.
    Inside(u64),
    /// The damage from there on is being passed over.
    Lost(u64, &'static str),
}

/// Whether a frame that zstd's tools skip begins with these bytes: 0x184D2A5? in little endian.
pub(super) fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [first, 0x2a, 0x4d, 0x18, ..] if first & 0xf0 == 0x50)
}

impl Frames {
    pub(super) fn new(input: &mut Input, how: &Reading) -> io::Result<Self> {
        let range = &how.range;
        let wanted =
            if range.is_open() { None } else { index(input)?.and_then(|index| wanted(&index, range)) };
        Ok(Self {
            decoder: Decoder::new()?,
            state: State::Between,
            wanted,
            text_frame: 0,
            has_header: false,
            is_foreign: false,
            have_checksums: true,
            held: Vec::new(),
            holds_text: false,
            header_is_bad: false,
            indexed: false,
        })
    }

    /// Whether a frame has begun and not ended.
    pub(super) const fn is_amid(&self) -> bool {
        matches!(self.state, State::Inside(_))
    }

    /// Whether what ends here has an index, as every file of flowlog's that was finished.
    pub(super) const fn is_indexed(&self) -> bool {
        self.wanted.is_some() || self.indexed
    }

    /// Decodes a piece.
    pub(super) fn more(&mut self, input: &mut Input, how: &Reading, out: &mut Vec<u8>) -> io::Result<Piece> {
        loop {
            match self.state {
                State::Between => {
                    if let Some(piece) = self.begin(input, how.growing)? {
                        return Ok(piece);
                    }
                }
                State::Inside(start) => {
                    if let Some(piece) = self.decode(input, how, start, out)? {
                        return Ok(piece);
                    }
                }
                State::Lost(from, what) => {
                    let found = find_frame(input)?;
                    self.state = State::Between;
                    return Ok(Piece::Damage { from, to: input.offset(), what, more: found });
                }
            }
        }
    }

    fn begin(&mut self, input: &mut Input, growing: bool) -> io::Result<Option<Piece>> {
        if let Some(wanted) = &mut self.wanted {
            while wanted.front().is_some_and(|(_, to)| *to <= input.offset()) {
                wanted.pop_front();
            }
            match wanted.front() {
                Some((from, _)) if *from > input.offset() => {
                    let from = *from;
                    input.skip_to(from)?;
                }
                Some(_) => {}
                None => return Ok(Some(Piece::End)),
            }
        }
        let start = input.offset();
        let head = input.ready_for(SKIPPABLE_HEAD_BYTES)?;
        if head.is_empty() {
            return Ok(Some(Piece::End));
        }
        if head.starts_with(&FRAME_MAGIC) {
            let is_sized = is_sized(head);
            // The descriptor's third bit.
            self.have_checksums &= head.get(FRAME_MAGIC.len()).is_some_and(|byte| byte & 0b100 != 0);
            self.decoder.reinit()?;
            self.state = State::Inside(start);
            self.indexed = false;
            self.holds_text = false;
            self.is_foreign |= start == 0 && is_sized;
            return Ok(None);
        }
        if is_skippable(head)
            && let Some((_, len)) =
                head.get(..SKIPPABLE_HEAD_BYTES).and_then(|head| head.split_last_chunk::<4>())
        {
            let end = start + SKIPPABLE_HEAD_BYTES as u64 + u64::from(u32::from_le_bytes(*len));
            let index = self.look(input, end - start)?;
            if input.skip_to(end)? {
                let next = input.ready_for(FRAME_MAGIC.len())?;
                // A damaged length leads into the midst of something.
                if next.len() >= FRAME_MAGIC.len() && !next.starts_with(&FRAME_MAGIC) && !is_skippable(next) {
                    self.lose(input, start, "the length of this skippable frame leads nowhere")?;
                    return Ok(None);
                }
                if std::mem::take(&mut self.header_is_bad) {
                    return Ok(Some(Piece::Damage { from: start, to: end, what: BAD_HEADER, more: true }));
                }
                // Of a part that was asked for there is nothing to compare.
                let index = index.filter(|_| self.wanted.is_none());
                return Ok(index.map(|index| Piece::Index { at: start, index }));
            }
            return self.cut(input, growing, start);
        }
        let begins = head.len() < SKIPPABLE_HEAD_BYTES
            && (FRAME_MAGIC.starts_with(head) || is_skippable(head) || SKIPPABLE_MAGIC.starts_with(head));
        if begins {
            return self.cut(input, growing, start);
        }
        self.lose(input, start, "what stands here is no frame")?;
        Ok(None)
    }

    /// Looks at a skippable frame before it is passed over.
    fn look(&mut self, input: &mut Input, bytes: u64) -> io::Result<Option<Index>> {
        let payload =
            |frame: &[u8]| frame.get(SKIPPABLE_HEAD_BYTES..).map(<[u8]>::to_vec).unwrap_or_default();
        let begin = payload(input.ready_for(SKIPPABLE_HEAD_BYTES + TAG_BYTES)?);
        let is_ours = input.ready().starts_with(&SKIPPABLE_MAGIC);
        if !is_ours || bytes > INDEX_BYTES_MAX {
            return Ok(None);
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let whole = input.ready_for(bytes)?.get(..bytes).map(payload);
        if !may_be_index(&begin) {
            // Nobody else writes frames of this kind: what is none of the two was one of them.
            self.has_header = true;
            self.header_is_bad = whole.is_some_and(|whole| header_is_intact(&whole) != Some(true));
            return Ok(None);
        }
        let index = whole.and_then(|whole| Index::parse(&whole));
        self.indexed = index.is_some();
        Ok(index)
    }

    /// The file ends within a frame: it was cut off, or a damaged length leads too far.
    fn cut(&mut self, input: &mut Input, growing: bool, from: u64) -> io::Result<Option<Piece>> {
        if growing {
            return Ok(Some(Piece::End));
        }
        self.lose(input, from, "the frame has no end")?;
        Ok(None)
    }

    fn decode(
        &mut self,
        input: &mut Input,
        how: &Reading,
        start: u64,
        out: &mut Vec<u8>,
    ) -> io::Result<Option<Piece>> {
        if !self.holds_text && input.ready().is_empty() && input.fill()? == 0 {
            // What stands before a missing end is not altered.
            return match self.release(start, out) {
                None => self.cut(input, how.growing, start),
                text => Ok(text),
            };
        }
        let filled = self.held.len();
        self.held.reserve(OUTPUT_BYTES);
        let most = if how.doubtful { DOUBTFUL_BYTES } else { usize::MAX };
        let ready = input.ready();
        let mut from = InBuffer::around(ready.get(..most).unwrap_or(ready));
        let result = self.decoder.run(&mut from, &mut OutBuffer::around_pos(&mut self.held, filled));
        // It may hold more than there was room for, also when it has taken all that there is to read.
        self.holds_text = self.held.len() == self.held.capacity();
        let taken = from.pos();
        input.take(taken);
        match result {
            Ok(0) => self.state = State::Between,
            Ok(_) if self.held.len() > HELD_BYTES_MAX => {}
            Ok(_) => return Ok(None),
            Err(_) => {
                self.lose(input, start, DAMAGED)?;
                if !how.doubtful {
                    self.held.clear();
                }
            }
        }
        Ok(self.release(start, out))
    }

    /// Hands out the text of a frame.
    fn release(&mut self, start: u64, out: &mut Vec<u8>) -> Option<Piece> {
        if self.held.is_empty() {
            return None;
        }
        self.text_frame = start;
        out.append(&mut self.held);
        Some(Piece::Text)
    }

    fn lose(&mut self, input: &mut Input, start: u64, what: &'static str) -> io::Result<()> {
        // What the decoder took of the frame may hold the beginning of the next one.
        input.back_to(start + 1)?;
        if input.offset() <= start {
            input.take(1);
        }
        self.state = State::Lost(start, what);
        Ok(())
    }
}

/// Whether a frame may begin anywhere in these bytes.
pub(super) fn holds_frame(bytes: &[u8]) -> bool {
    frame_in(bytes).is_some()
}

fn frame_in(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find(|at| {
        let rest = bytes.get(*at..).unwrap_or_default();
        frame_head(rest).is_some()
            || (rest.starts_with(&SKIPPABLE_MAGIC) && rest.get(8..15) == Some(b"flowlog"))
    })
}

/// Goes to the next place at which a frame may begin; false at the end.
fn find_frame(input: &mut Input) -> io::Result<bool> {
    loop {
        let ready = input.ready_for(FRAME_HEAD_BYTES_MAX)?;
        if ready.is_empty() {
            return Ok(false);
        }
        let found = frame_in(ready);
        if let Some(at) = found {
            input.take(at);
            return Ok(true);
        }
        // A magic number may stand across the border.
        let pass = ready.len().saturating_sub(FRAME_HEAD_BYTES_MAX);
        if pass == 0 {
            let end = input.fill()? == 0;
            if end {
                input.take(usize::MAX);
                return Ok(false);
            }
        } else {
            input.take(pass);
        }
    }
}

/// The index at the end of a file, if there is a whole one.
pub(super) fn index(input: &mut Input) -> io::Result<Option<Index>> {
    let Some((_, tail)) = input.last(TAIL_BYTES as u64)? else { return Ok(None) };
    let Some(len) =
        tail.try_into().ok().and_then(|tail| payload_len(&tail)).filter(|len| *len <= INDEX_BYTES_MAX)
    else {
        return Ok(None);
    };
    let Some((start, payload)) = input.last(len)? else { return Ok(None) };
    let Some(index) = Index::parse(&payload) else { return Ok(None) };
    let ordered = index.frames.is_sorted_by(|a, b| a.offset < b.offset)
        && index.frames.first().is_some_and(|frame| frame.offset == 0);
    let end = start.saturating_sub(SKIPPABLE_HEAD_BYTES as u64);
    Ok(if ordered && leads_to(input, &index, end)? { Some(index) } else { None })
}

/// Whether the last frame of an index ends where the index begins, so that it is the index of these frames. (Files that
/// were put together, or out of which something was taken, are read as a whole.)
fn leads_to(input: &mut Input, index: &Index, end: u64) -> io::Result<bool> {
    let Some(last) = index.frames.last() else { return Ok(false) };
    let Some((len, has_checksum)) = frame_head(&input.at(last.offset, FRAME_HEAD_BYTES_MAX)?) else {
        return Ok(false);
    };
    let mut at = last.offset + len as u64;
    let mut is_last = false;
    while !is_last && at < end {
        let head = input.at(at, BLOCK_HEAD_BYTES)?;
        let Some((last, len)) = head.try_into().ok().and_then(block_head) else { return Ok(false) };
        at += BLOCK_HEAD_BYTES as u64 + len;
        is_last = last;
    }
    at += if has_checksum { CHECKSUM_BYTES } else { 0 };
    while at < end {
        let head = input.at(at, SKIPPABLE_HEAD_BYTES)?;
        let Some(len) = head.get(4..).and_then(|len| len.try_into().ok()).filter(|_| is_skippable(&head))
        else {
            return Ok(false);
        };
        at += SKIPPABLE_HEAD_BYTES as u64 + u64::from(u32::from_le_bytes(len));
    }
    Ok(at == end)
}

/// The parts of a file that a time range needs; behind the last frame there may be more than the index knows.
fn wanted(index: &Index, range: &TimeRange) -> Option<VecDeque<(u64, u64)>> {
    let ends = index.frames.iter().skip(1).map(|frame| frame.offset).chain([u64::MAX]);
    let mut parts: VecDeque<(u64, u64)> = VecDeque::new();
    for (frame, end) in index.frames.iter().zip(ends) {
        if !range.overlaps(frame.first_ns, frame.last_ns) {
            continue;
        }
        match parts.back_mut() {
            Some((_, to)) if *to == frame.offset => *to = end,
            _ => parts.push_back((frame.offset, end)),
        }
    }
    (!index.frames.is_empty()).then_some(parts)
}
