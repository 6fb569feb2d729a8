use std::io;

use super::content::{Content, Piece};
use super::input::Input;
use super::range::TimeRange;
use crate::record::Framing;
use crate::record::container::{CRASHED, LEFT};
use crate::record::format::{Head, RECORD_BYTES_MAX as LINE_BYTES_MAX, delimited_head, is_record};

/// The last bytes of a file in which its last word is looked for.
const NOTICE_BYTES: usize = 1 << 10;
const NO_INDEX: &str =
    "the file has no whole index at its end: it was cut off or damaged there, and records may be missing";

/// What a file gives next.
pub(super) enum Step {
    /// A whole record stands in the buffer: a line with its newline, or what stands behind a length.
    Line,
    /// Nothing more, at least at the moment.
    End,
    /// Something that cannot be read: from where to where, and what is wrong. What follows can be read.
    Damage(u64, u64, String),
}

/// A file's records: lines, or what is delimited by lengths.
pub(super) struct Lines {
    content: Content,
    /// How records are told apart, once there is a record to see.
    framing: Option<Framing>,
    /// Still being written: that its end is missing is no damage.
    pub(super) growing: bool,
    /// Its name says that flowlog finished it.
    named: bool,
    /// The last record tells that the writer left without closing the file.
    crashed: bool,
    text: Vec<u8>,
    taken: usize,
    /// The rest of an endless line is passed over.
    passing: bool,
    ended: bool,
    /// Bytes of text so far.
    pub(super) text_bytes: u64,
    /// Where the frame of the text begins.
    frame: u64,
}

impl Lines {
    pub(super) const fn new(input: Input, growing: bool, range: TimeRange) -> Self {
        let content = Content::new(input, range);
        Self {
            content,
            framing: None,
            growing,
            named: false,
            crashed: false,
            text: Vec::new(),
            taken: 0,
            passing: false,
            ended: false,
            text_bytes: 0,
            frame: 0,
        }
    }

    /// A file whose name says that flowlog finished it.
    pub(super) fn named(mut self) -> Self {
        self.named = true;
        self
    }

    /// Whether the file ends within a record or a frame.
    pub(super) fn is_amid(&self) -> bool {
        self.content.is_amid() || self.taken < self.text.len()
    }

    /// How records are told apart.
    pub(super) fn framing(&self) -> Framing {
        self.framing.unwrap_or_default()
    }

    /// Where the frame of the line that came last begins.
    pub(super) const fn frame(&self) -> u64 {
        self.frame
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
                if line.starts_with(b"{") && line.ends_with(b"}\n") {
                    return Step::Line;
                }
                return Step::Damage(place, place, "this line is no record".into());
            }
            if rest.len() >= LINE_BYTES_MAX {
                let place = self.place();
                self.taken = self.text.len();
                if !std::mem::replace(&mut self.passing, true) {
                    return Step::Damage(place, place, "a line without an end is no record".into());
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

    /// The next record behind a length; `None` when that is to be tried again.
    fn delimited(&mut self, record: &mut Vec<u8>) -> Option<Step> {
        let rest = self.text.get(self.taken..).unwrap_or_default();
        match whole(rest, self.ended) {
            Found::Record(begin, end) => {
                record.extend_from_slice(rest.get(begin..end).unwrap_or_default());
                self.taken += end;
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
        let result = self.content.more(self.growing, &mut self.text);
        self.text_bytes += (self.text.len() - before) as u64;
        match result {
            Ok(Piece::Text) => {
                self.frame = self.content.place();
                None
            }
            Ok(Piece::End) if self.growing => Some(Step::End),
            Ok(Piece::End) => {
                self.ended = true;
                if self.content.lacks_index(self.named) && !self.crashed {
                    self.text.clear();
                    let place = self.content.offset();
                    return Some(Step::Damage(place, place, NO_INDEX.into()));
                }
                if self.text.is_empty() || self.passing {
                    return Some(Step::End);
                }
                let place = self.place();
                self.text.clear();
                Some(Step::Damage(place, place, "the file ends within a record".into()))
            }
            Ok(Piece::Damage { from, to, what, more }) => {
                // Frames hold whole lines: what follows begins a new one.
                self.text.clear();
                self.ended = !more;
                Some(Step::Damage(from, to, what.into()))
            }
            Err(error) => {
                self.ended = true;
                let place = self.place();
                Some(Step::Damage(place, place, unreadable(&error)))
            }
        }
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
        Head::Record(_, 0) | Head::None => Found::Nothing,
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
