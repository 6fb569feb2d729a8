use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::content::Reading;
use super::event::{self, Malformed};
use super::input::Input;
use super::lines::{Lines, Step};
use super::sources::is_finished;
use super::{Damage, Error, protobuf};
use crate::record::{Foreign, Framing};

/// What became of the lines of recorded events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that are not empty.
    pub lines: u64,
    /// Those that were understood and handed on.
    pub taken: u64,
    /// Those that were not.
    pub malformed: u64,
    /// Parts of files that could not be read.
    pub damaged: u64,
}

/// What is no event, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// A line or record.
    #[error("{path}:{line}: {what}", path = path.display())]
    Malformed {
        /// The file; `-` is stdin.
        path: PathBuf,
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        what: Malformed,
    },
    /// A part of the file.
    #[error("{0}")]
    Damage(Damage),
}

/// Reads recorded events: lines of Hubble's export, or ours of any format, compressed or not; `-` is stdin. A line or
/// record that is none, and what is damaged, is told and passed over. Counts as it goes, so that an error leaves what came
/// before counted.
///
/// # Errors
/// When a file cannot be opened.
pub fn flows(
    path: &Path,
    counts: &mut Counts,
    mut sink: impl FnMut(Foreign),
    mut bad: impl FnMut(&BadLine),
) -> Result<(), Error> {
    let failed = |source| Error::Open { path: path.to_owned(), source };
    let is_stdin = path == Path::new("-");
    let input =
        if is_stdin { Input::pipe(io::stdin()) } else { Input::file(File::open(path).map_err(failed)?) };
    let finished = !is_stdin && is_finished(path);
    let mut lines =
        Lines::new(input, Reading { growing: !finished && !is_stdin, named: finished, ..Reading::default() });
    let mut record = Vec::new();
    let malformed = |line: u64, what| BadLine::Malformed { path: path.to_owned(), line, what };
    loop {
        match lines.next(&mut record) {
            Step::End => return Ok(()),
            Step::Line => {
                counts.lines += 1;
                let event = match lines.framing() {
                    Framing::Lines => event::event(record.trim_ascii()),
                    Framing::Delimited => protobuf::event(&record),
                };
                match event {
                    Ok(event) => {
                        counts.taken += 1;
                        sink(event);
                    }
                    Err(what) => {
                        counts.malformed += 1;
                        bad(&malformed(lines.number, what));
                    }
                }
            }
            Step::NoRecord(_, _, what) => {
                counts.lines += 1;
                counts.malformed += 1;
                bad(&malformed(lines.number, Malformed { path: String::new(), what: what.into() }));
            }
            Step::Damage(offset, end, what) => {
                counts.damaged += 1;
                bad(&BadLine::Damage(Damage { path: path.to_owned(), offset, end, what }));
            }
        }
    }
}
