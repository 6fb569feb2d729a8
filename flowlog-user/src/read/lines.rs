use std::io;

use super::content::{Content, Piece, Reading, Vouched};
use super::input::Input;
use crate::record::Framing;
use crate::record::container::{CRASHED, Index, LEFT};
use crate::record::format::{Head, RECORD_BYTES_MAX as LINE_BYTES_MAX, delimited_head, is_record};

/// The last bytes of a file in which its last word is looked for.
const NOTICE_BYTES: usize = 1 << 10;
const NO_INDEX: &str =
    "the file has no whole index at its end: it was cut off or damaged there, and records may be missing";
const NO_HEADER: &str = "the file's header is gone, which tells of task, node and definition";

/// What a file gives next.
pub(super) enum Step {
    /// A whole record stands in the buffer: a line with its newline, or what stands behind a length.
    Line,
    /// Nothing more, at least at the moment.
    End,
    /// A line that is no record: from where to where (compressed: its frame), and what is wrong.
    NoRecord(u64, u64, &'static str),
    /// Something that cannot be read: from where to where, and what is wrong. What follows can be read.
    Damage(u64, u64, String),
}

/// A file's records: lines, or what is delimited by lengths.
pub(super) struct Lines {
    content: Content,
    /// How records are told apart, once there is a record to see.
    framing: Option<Framing>,
    how: Reading,
    /// The last record tells that the writer left without closing the file.
    crashed: bool,
    /// Its name leads to another file by now.
    is_let_go: bool,
    text: Vec<u8>,
    taken: usize,
    /// The rest of an endless line is passed over.
    passing: bool,
    ended: bool,
    /// Bytes of text so far.
    pub(super) text_bytes: u64,
    /// Records and lines so far.
    pub(super) number: u64,
    /// Where the frame of the text begins.
    frame: u64,
    /// Where the line that came last begins, in a plain file.
    line_at: u64,
    /// Where each frame begins and how many records came of it, since the last index.
    counts: Vec<(u64, u64)>,
    /// Something of them was damaged.
    hurt: bool,
    /// Where the gzip member begins that was read last, and how many records came before it.
    member: Option<(u64, u64)>,
    /// What vouches for all that was read.
    pub(super) vouched: Option<Vouched>,
    /// The last index agreed with them.
    pub(super) index_agrees: bool,
}

impl Lines {
    pub(super) const fn new(input: Input, how: Reading) -> Self {
        Self {
            content: Content::new(input),
            framing: None,
            how,
            crashed: false,
            is_let_go: false,
            text: Vec::new(),
            taken: 0,
            passing: false,
            ended: false,
            text_bytes: 0,
            number: 0,
            frame: 0,
            line_at: 0,
            counts: Vec::new(),
            hurt: false,
            member: None,
            vouched: None,
            index_agrees: false,
        }
    }

    /// Whether the file is still being written.
    pub(super) const fn is_growing(&self) -> bool {
        self.how.growing
    }

    /// It grows no more under this name. Its end is another file's: no index is missed.
    pub(super) const fn let_go(&mut self) {
        self.how.growing = false;
        self.is_let_go = true;
    }

    /// Whether the file ends within a record or a frame.
    pub(super) fn is_amid(&self) -> bool {
        self.content.is_amid() || self.taken < self.text.len()
    }

    /// Bytes of the file that were passed.
    pub(super) fn offset(&self) -> u64 {
        self.content.offset()
    }

    /// How records are told apart.
    pub(super) fn framing(&self) -> Framing {
        self.framing.unwrap_or_default()
    }

    /// Where the line that came last stands: itself in a plain file, else its frame.
    pub(super) const fn frame(&self) -> u64 {
        if self.content.is_plain() { self.line_at } else { self.frame }
    }

    /// Where the line that came last ends, in a plain file; else its frame.
    pub(super) fn line_end(&self) -> u64 {
        if self.content.is_plain() { self.place() } else { self.frame }
    }

    /// Bytes of the file that were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.content.read_bytes()
    }

    /// Puts the next line into the buffer.
    pub(super) fn next(&mut self, line: &mut Vec<u8>) -> Step {
        line.clear();
        loop {
            let rest = self.text.get(self.taken..).unwrap_or_default();
            if self.framing.is_none() && !rest.is_empty() {
                self.framing = Framing::recognise(rest, self.ended || rest.len() > LINE_BYTES_MAX);
            }
            let Some(Framing::Lines) = self.framing else {
                let step = match self.framing {
                    Some(_) => self.delimited(line),
                    None if self.ended => Some(Step::End),
                    None => self.read_on(),
                };
                match step {
                    Some(step) => return step,
                    None => continue,
                }
            };
            if let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                let place = self.place();
                line.extend_from_slice(rest.get(..=at).unwrap_or_default());
                self.taken += at + 1;
                if std::mem::take(&mut self.passing) {
                    continue;
                }
                self.count(place);
                if let Some(step) = self.one(line, place) {
                    return step;
                }
                continue;
            }
            if rest.len() >= LINE_BYTES_MAX {
                let place = self.place();
                self.taken = self.text.len();
                if !std::mem::replace(&mut self.passing, true) {
                    self.count(place);
                    return Step::NoRecord(place, place, "a line without an end is no record");
                }
            }
            if self.ended {
                return Step::End;
            }
            if let Some(step) = self.read_on() {
                return step;
            }
        }
    }

    /// Looks at a line; `None` for a blank one.
    fn one(&self, line: &mut Vec<u8>, place: u64) -> Option<Step> {
        let body = line.trim_ascii();
        if body.is_empty() {
            return None;
        }
        // Control characters stand escaped in JSON; holes in a file read as zeros.
        let is_record =
            body.starts_with(b"{") && body.ends_with(b"}") && !body.iter().any(|byte| *byte < b' ');
        if !is_record {
            let end = if self.content.is_plain() { place + line.len() as u64 } else { place };
            return Some(Step::NoRecord(place, end, "this line is no record"));
        }
        if body.len() + 1 != line.len() {
            let body = body.to_vec();
            line.clear();
            line.extend_from_slice(&body);
            line.push(b'\n');
        }
        Some(Step::Line)
    }

    /// Notes that a record or line came from there.
    fn count(&mut self, place: u64) {
        self.number += 1;
        self.line_at = place;
        match self.counts.last_mut() {
            Some((frame, count)) if *frame == self.frame => *count += 1,
            _ if self.content.is_plain() => {}
            _ => self.counts.push((self.frame, 1)),
        }
    }

    /// The next record behind a length; `None` when that is to be tried again.
    fn delimited(&mut self, record: &mut Vec<u8>) -> Option<Step> {
        let rest = self.text.get(self.taken..).unwrap_or_default();
        match whole(rest, self.ended) {
            Found::Record(begin, end) => {
                record.extend_from_slice(rest.get(begin..end).unwrap_or_default());
                let place = self.place();
                self.taken += end;
                self.count(place);
                Some(Step::Line)
            }
            Found::More if self.ended => Some(Step::End),
            Found::More => self.read_on(),
            Found::Nothing => {
                let place = self.place();
                // Nothing but the length says where a record begins: the next place where one may is looked for.
                let next = (1..rest.len()).find(|at| {
                    rest.get(*at..).is_some_and(|rest| matches!(whole(rest, false), Found::Record(..)))
                });
                let passed = next.unwrap_or(rest.len());
                self.taken += passed;
                let end = if self.content.is_plain() { place + passed as u64 } else { place };
                Some(Step::Damage(place, end, "what stands here is no record".into()))
            }
        }
    }

    fn read_on(&mut self) -> Option<Step> {
        if self.taken > 0 {
            let last = self.text.get(self.taken.saturating_sub(NOTICE_BYTES)..self.taken).unwrap_or_default();
            self.crashed = [CRASHED, LEFT].iter().any(|why| holds(last, why.as_bytes()));
        }
        self.text.drain(..self.taken);
        self.taken = 0;
        let before = self.text.len();
        let result = self.content.more(&self.how, &mut self.text);
        self.text_bytes += (self.text.len() - before) as u64;
        match result {
            Ok(Piece::Text) => {
                self.frame = self.content.place();
                let vouched = self.content.vouched();
                self.vouched = Some(self.vouched.map_or(vouched, |before| before.min(vouched)));
                if let Some(start) = self.content.member()
                    && self.member.is_none_or(|(known, _)| known != start)
                {
                    self.member = Some((start, self.number));
                }
                None
            }
            Ok(Piece::End) if self.how.growing => Some(Step::End),
            Ok(Piece::End) => self.end(),
            Ok(Piece::Index { at, index }) => self.compare(at, &index),
            Ok(Piece::Damage { from, to, what, more }) => {
                // Frames hold whole lines: what follows begins a new one.
                self.text.clear();
                self.ended = !more;
                self.hurt = true;
                Some(Step::Damage(from, to, [what, &self.doubtful()].concat()))
            }
            Err(error) => {
                self.ended = true;
                let place = self.place();
                Some(Step::Damage(place, place, unreadable(&error)))
            }
        }
    }

    /// Which records came of a gzip member that is damaged: they were given out before its checksum was seen.
    fn doubtful(&self) -> String {
        let Some((_, before)) = self.member.filter(|(start, _)| self.content.member() == Some(*start)) else {
            return String::new();
        };
        if before == self.number {
            return "; no record of it was read".into();
        }
        format!(
            "; records {} to {} of the file come of it, and any of them may be altered",
            before + 1,
            self.number
        )
    }

    /// The file ends here. What its last line lacks is a newline at most, or half of it.
    fn end(&mut self) -> Option<Step> {
        self.ended = true;
        let place = self.content.offset();
        if self.content.lacks_index(self.how.named) && !self.crashed && !self.is_let_go {
            self.text.clear();
            return Some(Step::Damage(place, place, NO_INDEX.into()));
        }
        if self.how.named && place == 0 && matches!(self.content, Content::Unknown(_)) {
            return Some(Step::Damage(0, 0, "the file is empty: what it held is gone".into()));
        }
        if self.text.is_empty() || self.passing {
            return Some(Step::End);
        }
        let place = self.place();
        if !self.how.named
            && self.framing == Some(Framing::Lines)
            && self.text.trim_ascii_end().ends_with(b"}")
        {
            // Written by hand, or cut off where it does not matter.
            self.text.push(b'\n');
            return None;
        }
        self.text.clear();
        Some(Step::Damage(place, place, "the file ends within a record".into()))
    }

    /// Compares an index with what came. Where several files were put together, each index tells of the frames before
    /// it, as far as it has any; only a file of flowlog's own name is no such thing.
    fn compare(&mut self, at: u64, index: &Index) -> Option<Step> {
        let mut counts = std::mem::take(&mut self.counts);
        let hurt = std::mem::take(&mut self.hurt);
        if !self.how.named && counts.len() > index.frames.len() {
            counts.drain(..counts.len() - index.frames.len());
        }
        let base = if self.how.named { 0 } else { counts.first().map_or(0, |(offset, _)| *offset) };
        let told = index.frames.iter().map(|frame| (frame.offset.saturating_add(base), frame.lines));
        self.index_agrees = told.eq(counts.iter().copied());
        if self.index_agrees && self.how.named && self.content.lacks_header() {
            return Some(Step::Damage(at, at, NO_HEADER.into()));
        }
        let told: u64 = index.frames.iter().map(|frame| frame.lines).sum();
        let read: u64 = counts.iter().map(|(_, count)| count).sum();
        if self.index_agrees || (hurt && told == read && index.frames.len() == counts.len()) {
            return None;
        }
        let what = format!(
            "the index tells of {told} records in {} frames, and {read} in {} were read, or at other places",
            index.frames.len(),
            counts.len()
        );
        Some(Step::Damage(base, at, what))
    }

    /// Where the line that comes next stands.
    fn place(&self) -> u64 {
        let ahead = if self.content.is_plain() { self.text.len() - self.taken } else { 0 };
        self.content.place() - ahead as u64
    }
}

/// What delimited bytes begin with.
enum Found {
    /// A record, from here to there.
    Record(usize, usize),
    /// Too little to tell.
    More,
    /// No record.
    Nothing,
}

fn whole(bytes: &[u8], ended: bool) -> Found {
    match delimited_head(bytes) {
        Head::None => Found::Nothing,
        Head::Record(begin, length) => match bytes.get(begin..begin + length) {
            Some(body) if is_record(body) => Found::Record(begin, begin + length),
            Some(_) => Found::Nothing,
            None if ended => Found::Nothing,
            None => Found::More,
        },
        Head::Short => Found::More,
    }
}

fn holds(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|window| window == what)
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}
