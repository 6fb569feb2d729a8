use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::Error;
use super::content::Stream;
use super::event::{self, Malformed};
use crate::record::Foreign;

/// Bytes of a line that are taken at most.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What became of the lines of recorded events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that are not empty.
    pub lines: u64,
    /// Those that were understood and handed on.
    pub taken: u64,
    /// Those that were not.
    pub malformed: u64,
}

/// A line that is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {what}", path = path.display())]
pub struct BadLine {
    /// The file; `-` is stdin.
    pub path: PathBuf,
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: Malformed,
}

/// Reads recorded events: lines of Hubble's export or ours, compressed or not; `-` is stdin. A line that is none is
/// told and passed over. Counts as it goes, so that an error leaves what came before counted.
///
/// # Errors
/// When a file cannot be opened or read to its end.
pub fn flows(
    path: &Path,
    counts: &mut Counts,
    mut sink: impl FnMut(Foreign),
    mut bad: impl FnMut(&BadLine),
) -> Result<(), Error> {
    let failed = |source| Error::Open { path: path.to_owned(), source };
    let mut content = BufReader::with_capacity(64 << 10, open(path).map(Stream::new).map_err(failed)?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut content).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            break;
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        counts.lines += 1;
        match event::event(text) {
            Ok(event) => {
                counts.taken += 1;
                sink(event);
            }
            Err(what) => {
                counts.malformed += 1;
                bad(&BadLine { path: path.to_owned(), line: number, what });
            }
        }
        if read as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            skip_line(&mut content).map_err(failed)?;
        }
    }
    Ok(())
}

fn open(path: &Path) -> std::io::Result<File> {
    if path == Path::new("-") {
        return Ok(std::io::stdin().as_fd().try_clone_to_owned()?.into());
    }
    File::open(path)
}

/// Passes over the rest of a line that is too long to be an event.
fn skip_line(content: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = content.fill_buf()?;
        let (length, done) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        content.consume(length);
        if done {
            return Ok(());
        }
    }
}
