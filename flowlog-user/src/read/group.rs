use std::fs::File;
use std::io;
use std::vec::IntoIter;

use jiff::Timestamp;
use serde_json::Value;

use super::lines::{Lines, Step};
use super::sources::{Position, Source};
use super::{Damage, Error};

/// The lines of one task's files, one file open at a time.
pub(super) struct Group {
    files: IntoIter<Source>,
    /// The live file is opened at once: its name may lead elsewhere by the time it is its turn.
    live: Vec<(Source, File)>,
    current: Option<(Source, Lines)>,
    /// The line that [`Self::advance`] found, newline included.
    pub(super) line: Vec<u8>,
}

impl Group {
    pub(super) fn new(sources: Vec<Source>) -> Result<Self, Error> {
        let (live, finished): (Vec<_>, Vec<_>) =
            sources.into_iter().partition(|source| matches!(source.position, Position::Live(_)));
        let live = live.into_iter().filter_map(|source| match File::open(&source.path) {
            Ok(file) => Some(Ok((source, file))),
            Err(error) if source.listed && error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(Error::Open { path: source.path, source: error })),
        });
        let mut live = live.collect::<Result<Vec<_>, _>>()?;
        live.reverse();
        Ok(Self { files: finished.into_iter(), live, current: None, line: Vec::new() })
    }

    /// Goes to the next line; false at the end. What cannot be read is noted and passed over.
    pub(super) fn advance(&mut self, damage: &mut Vec<Damage>) -> Result<bool, Error> {
        loop {
            if let Some((source, lines)) = &mut self.current {
                match lines.next(&mut self.line) {
                    Step::Line => return Ok(true),
                    Step::End => {}
                    Step::Damage(offset, what) => {
                        damage.push(Damage { path: source.path.clone(), offset, what });
                    }
                }
            }
            self.current = self.open_next(damage)?;
            if self.current.is_none() {
                return Ok(false);
            }
        }
    }

    fn open_next(&mut self, damage: &mut Vec<Damage>) -> Result<Option<(Source, Lines)>, Error> {
        for source in self.files.by_ref() {
            match File::open(&source.path).and_then(|file| Lines::new(file, false)) {
                Ok(lines) => return Ok(Some((source, lines))),
                Err(error) if source.listed && error.kind() == io::ErrorKind::NotFound => {
                    let what = "the file is gone, deleted since the folder was listed".into();
                    damage.push(Damage { path: source.path, offset: 0, what });
                }
                Err(error) => return Err(Error::Open { path: source.path, source: error }),
            }
        }
        let Some((source, file)) = self.live.pop() else { return Ok(None) };
        match Lines::new(file, true) {
            Ok(lines) => Ok(Some((source, lines))),
            Err(error) => Err(Error::Open { path: source.path, source: error }),
        }
    }
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
