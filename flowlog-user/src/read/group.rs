use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

use super::cat::{Request, ToLine};
use super::content::{Reading, Suffix};
use super::input::Input;
use super::lines::{Lines, Step};
use super::sources::{Identity, Position, Source, identity, identity_of};
use super::stats::Stats;
use super::{Damage, Error, Malformed, event, protobuf, shape};
use crate::record::Framing;

/// What is said of a live file that ends in the midst of things.
pub(super) const STILL: &str = "the file ends within a frame or record and nothing has written to it for minutes: it was cut \
     off, or its writer is gone";

/// What a flat line of ours begins with; Hubble has no such key.
pub(super) const FLAT: &[u8] = b"{\"kind\":";

/// A file that is being read.
struct Open {
    source: Source,
    lines: Lines,
    /// Its first line, its lines so far, and how many of them were given before.
    place: Option<(u64, u64, u64)>,
}

/// The lines of one task's files, one file open at a time.
pub(super) struct Group {
    files: VecDeque<Source>,
    /// The live file is opened at once: its name may lead elsewhere by the time it is its turn.
    live: VecDeque<(Source, File)>,
    current: Option<Open>,
    /// Live files that wait while another file is read: one that appears is not always the one that comes after them.
    parked: VecDeque<Open>,
    /// How many of the live files have ended since one gave a line.
    ended: usize,
    /// How live files are read.
    how: Reading,
    /// More files may come.
    follow: bool,
    /// While following: how many lines of a file were given, by its first line. A file that was compressed or put
    /// together when it was finished is another file with the same lines.
    given: HashMap<u64, u64>,
    to_line: ToLine,
    /// A record that is no line.
    record: Vec<u8>,
    /// [`Source::log`] of its files.
    pub(super) log: String,
    /// The line that [`Self::advance`] found, newline included.
    pub(super) line: Vec<u8>,
}

/// Why a file that was found in a folder is not read.
pub(super) fn not_opened(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return "the file is gone, deleted since the folder was listed".into();
    }
    format!("it cannot be opened: {error}; check its permissions")
}

impl Group {
    pub(super) fn new(sources: Vec<Source>, request: &Request, follow: bool) -> Result<Self, Error> {
        let mut group = Self {
            files: VecDeque::new(),
            live: VecDeque::new(),
            current: None,
            parked: VecDeque::new(),
            ended: 0,
            how: Reading {
                range: request.range,
                growing: true,
                doubtful: request.doubtful,
                ..Reading::default()
            },
            follow,
            given: HashMap::new(),
            to_line: request.to_line,
            record: Vec::new(),
            log: String::new(),
            line: Vec::new(),
        };
        for source in sources {
            group.add(source)?;
        }
        Ok(group)
    }

    /// Adds a file behind those that are there, and gives back which one it is: a live file's name may lead to another
    /// one than when it was listed, or nowhere.
    pub(super) fn add(&mut self, mut source: Source) -> Result<Option<Identity>, Error> {
        if self.log.is_empty() {
            self.log = source.log();
        }
        if !matches!(source.position, Position::Live(_)) || source.is_stdin() {
            let identity = source.identity;
            self.files.push_back(source);
            return Ok(identity);
        }
        let opened = File::open(&source.path).and_then(|file| Ok((file.metadata()?, file)));
        let (found, file) = match opened {
            Ok(opened) => opened,
            Err(error) if source.listed && error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) if source.listed => {
                // Nobody named it. That it cannot be opened is told when its turn comes.
                let identity = source.identity;
                self.files.push_back(source);
                return Ok(identity);
            }
            Err(error) => return Err(Error::Open { path: source.path, source: error }),
        };
        let identity = identity_of(&found);
        source.identity = Some(identity);
        if !self.holds(identity) {
            self.live.push_back((source, file));
        }
        Ok(Some(identity))
    }

    /// Goes to the next line; false at the end, or when there is nothing at the moment. What cannot be read is noted
    /// and passed over.
    pub(super) fn advance(&mut self, stats: &mut Stats, damage: &mut Vec<Damage>) -> Result<bool, Error> {
        loop {
            if let Some(Open { source, lines, place }) = &mut self.current {
                let before = (lines.text_bytes, lines.read_bytes());
                let step = lines.next(&mut self.line);
                stats.text_bytes += lines.text_bytes - before.0;
                stats.read_bytes += lines.read_bytes() - before.1;
                match step {
                    Step::Line => {
                        self.ended = 0;
                        if was_given(&mut self.given, place, &self.line, self.follow) {
                            continue;
                        }
                        match as_line(lines.framing(), &mut self.line, &mut self.record, self.to_line) {
                            Ok(()) => return Ok(true),
                            Err(error) => {
                                let (path, offset, end) =
                                    (source.path.clone(), lines.frame(), lines.line_end());
                                let what = format!("this record is no event: {error}");
                                Damage::note(damage, Damage { path, offset, end, what });
                                continue;
                            }
                        }
                    }
                    Step::NoRecord(from, to, what) => {
                        let (path, what) = (source.path.clone(), what.into());
                        Damage::note(damage, Damage { path, offset: from, end: to, what });
                        continue;
                    }
                    Step::Damage(from, to, what) => {
                        damage.push(Damage { path: source.path.clone(), offset: from, end: to, what });
                        continue;
                    }
                    Step::End if self.follow && lines.is_growing() => match self.pause(damage) {
                        Pause::ReadOn => continue,
                        Pause::Wait => return Ok(false),
                        Pause::Leave => {}
                    },
                    Step::End if lines.is_growing() && lines.is_amid() && source.is_still() => {
                        let at = lines.frame();
                        damage.push(Damage {
                            path: source.path.clone(),
                            offset: at,
                            end: at,
                            what: STILL.into(),
                        });
                    }
                    Step::End => {}
                }
            }
            self.current = self.open_next(damage)?;
            let Some(Open { source, lines, place }) = &self.current else { return Ok(false) };
            if place.is_none() && lines.read_bytes() == 0 {
                stats.files += 1;
                stats.file_bytes += source.path.metadata().map_or(0, |found| found.len());
            }
        }
    }

    /// What follows the present end of a live file, to one that follows.
    fn pause(&mut self, damage: &mut Vec<Damage>) -> Pause {
        let Some(Open { source, lines, place }) = &mut self.current else { return Pause::Leave };
        if source.is_shorter_than(lines.offset()) {
            let (path, at) = (source.path.clone(), lines.offset());
            let what = "the file became shorter; what is in it now is read from its beginning".into();
            damage.push(Damage { path, offset: at, end: at, what });
            if let Ok(file) = File::open(&source.path) {
                *lines = Lines::new(Input::file(file), self.how);
                *place = None;
                return Pause::ReadOn;
            }
        }
        // Whether more comes is seen when the next file is there: see `follow`.
        if self.files.is_empty() && self.live.is_empty() && self.ended >= self.parked.len() {
            self.ended = 0;
            return Pause::Wait;
        }
        if identity(&source.path) == source.identity {
            self.ended += 1;
            self.parked.extend(self.current.take());
            return Pause::Leave;
        }
        // It was finished, maybe with more than was read, before the next one was begun.
        lines.let_go();
        Pause::ReadOn
    }

    fn open_next(&mut self, damage: &mut Vec<Damage>) -> Result<Option<Open>, Error> {
        while let Some(source) = self.files.pop_front() {
            if source.is_stdin() {
                let lines = Lines::new(Input::pipe(io::stdin()), Reading { growing: false, ..self.how });
                return Ok(Some(Open { source, lines, place: None }));
            }
            match File::open(&source.path) {
                Ok(file) => {
                    // What is no live file is one that has a finished one's name.
                    let says = Suffix::of(&source.path);
                    let how = Reading { growing: false, named: true, says, ..self.how };
                    let lines = Lines::new(Input::file(file), how);
                    return Ok(Some(Open { source, lines, place: None }));
                }
                Err(error) if source.listed => {
                    let what = not_opened(&error);
                    damage.push(Damage { path: source.path, offset: 0, end: 0, what });
                }
                Err(error) => return Err(Error::Open { path: source.path, source: error }),
            }
        }
        let next = self.live.pop_front().map(|(source, file)| {
            let says = Suffix::of(&source.path);
            let lines = Lines::new(Input::file(file), Reading { says, ..self.how });
            Open { source, lines, place: None }
        });
        Ok(next.or_else(|| self.parked.pop_front()))
    }

    /// The file and where in it the line's text comes from (its frame, where there are frames).
    pub(super) fn place(&self) -> (PathBuf, u64) {
        self.current
            .as_ref()
            .map_or_else(Default::default, |open| (open.source.path.clone(), open.lines.frame()))
    }

    /// Whether the file that is being read is the one of that identity, or one that waits is.
    pub(super) fn holds(&self, wanted: Identity) -> bool {
        let open = self.current.iter().chain(&self.parked).map(|open| &open.source);
        open.chain(&self.files)
            .chain(self.live.iter().map(|(source, _)| source))
            .any(|source| source.identity == Some(wanted))
    }
}

/// What is to be done at the present end of a live file.
enum Pause {
    /// The same file goes on.
    ReadOn,
    /// Nothing, until there is more.
    Wait,
    /// Another file is read first.
    Leave,
}

/// Whether a record was given when its file was another one; `place` is where the current file is.
fn was_given(
    given: &mut HashMap<u64, u64>,
    place: &mut Option<(u64, u64, u64)>,
    record: &[u8],
    follow: bool,
) -> bool {
    if !follow {
        return false;
    }
    let (first, records, before) = place.get_or_insert_with(|| {
        let mut hasher = DefaultHasher::new();
        record.hash(&mut hasher);
        let first = hasher.finish();
        (first, 0, given.get(&first).copied().unwrap_or(0))
    });
    *records += 1;
    let known = *records <= *before;
    if !known {
        given.insert(*first, *records);
    }
    known
}

/// Makes Hubble's line of a record that is none: it is delimited, or flat. What is no event is refused.
fn as_line(
    framing: Framing,
    line: &mut Vec<u8>,
    record: &mut Vec<u8>,
    to_line: ToLine,
) -> Result<(), Malformed> {
    let event = match framing {
        Framing::Delimited => protobuf::event(line)?,
        Framing::Lines if line.starts_with(FLAT) => event::event(line)?,
        Framing::Lines if shape::is_event(line) => return Ok(()),
        Framing::Lines => return event::event(line).map(drop),
    };
    let Some(to_line) = to_line.0 else {
        return Err(Malformed {
            path: String::new(),
            what: "there is no way to make a line of it here".into(),
        });
    };
    record.clear();
    to_line(&event, record);
    std::mem::swap(line, record);
    Ok(())
}

/// What a file is, whatever its name.
pub(super) fn file_identity(source: &Source) -> Option<Identity> {
    source.identity.or_else(|| identity(&source.path))
}

/// A line's time, nanoseconds since the Unix epoch; `None` where a mask took it.
pub(super) fn time_ns(line: &[u8]) -> Option<i128> {
    last_time(line).or_else(|| {
        let value: Value = serde_json::from_slice(line).ok()?;
        let time = value.get("time").or_else(|| value.get("flow")?.get("time"))?;
        time.as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_nanosecond)
    })
}

/// The shortcut: `time` is the last key of every line that flowlog or Hubble writes.
fn last_time(line: &[u8]) -> Option<i128> {
    let line = line.strip_suffix(b"\"}\n")?;
    let at = line.iter().rposition(|byte| *byte == b'"')?;
    let (before, text) = line.split_at_checked(at + 1)?;
    if !before.ends_with(b",\"time\":\"") {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse::<Timestamp>().ok().map(Timestamp::as_nanosecond)
}
