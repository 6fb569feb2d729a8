use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::Error;
use super::content::Stream;
use super::event::{self, Malformed};
use super::protobuf;
use crate::record::format::{Head, RECORD_BYTES_MAX, delimited_head};
use crate::record::{Foreign, Framing};

/// Bytes of a line that are taken at most.
const LINE_BYTES_MAX: u64 = RECORD_BYTES_MAX as u64;

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

/// Reads recorded events: lines of Hubble's export, or ours of any format, compressed or not; `-` is stdin. A line or
/// record that is none is told and passed over. Counts as it goes, so that an error leaves what came before counted.
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
    let mut content = open(path).map(Stream::new).map_err(failed)?;
    let (framing, head) = recognise(&mut content).map_err(failed)?;
    let mut content = BufReader::with_capacity(64 << 10, Cursor::new(head).chain(content));
    if framing == Framing::Delimited {
        return delimited(path, &mut content, counts, sink, bad);
    }
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

/// How records are told apart, and what had to be read to know it.
fn recognise(content: &mut Stream) -> std::io::Result<(Framing, Vec<u8>)> {
    let mut head = Vec::new();
    let mut buffer = [0; 4 << 10];
    loop {
        let read = content.read(&mut buffer)?;
        head.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let whole = read == 0 || head.len() > RECORD_BYTES_MAX;
        if let Some(framing) = Framing::recognise(&head, whole) {
            return Ok((framing, head));
        }
        if whole {
            return Ok((Framing::Lines, head));
        }
    }
}

/// Records behind their lengths. One that is no event is told by its number; without a length nothing can follow.
fn delimited(
    path: &Path,
    content: &mut impl BufRead,
    counts: &mut Counts,
    mut sink: impl FnMut(Foreign),
    mut bad: impl FnMut(&BadLine),
) -> Result<(), Error> {
    let failed = |source| Error::Open { path: path.to_owned(), source };
    let mut record = Vec::new();
    for number in 1.. {
        let Some(length) = length(content).map_err(failed)? else { break };
        record.clear();
        let read = content.take(length).read_to_end(&mut record).map_err(failed)?;
        if read as u64 != length {
            return Err(failed(ErrorKind::UnexpectedEof.into()));
        }
        counts.lines += 1;
        match protobuf::event(&record) {
            Ok(event) => {
                counts.taken += 1;
                sink(event);
            }
            Err(what) => {
                counts.malformed += 1;
                bad(&BadLine { path: path.to_owned(), line: number, what });
            }
        }
    }
    Ok(())
}

/// A record's length; `None` at the end.
fn length(content: &mut impl BufRead) -> std::io::Result<Option<u64>> {
    let mut head = Vec::new();
    loop {
        let mut byte = [0];
        if content.read(&mut byte)? == 0 {
            return if head.is_empty() { Ok(None) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
        head.extend(byte);
        match delimited_head(&head) {
            Head::Record(_, length) => return Ok(Some(length as u64)),
            Head::Short => {}
            Head::None => {
                return Err(std::io::Error::new(ErrorKind::InvalidData, "a length that no record has"));
            }
        }
    }
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
