use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

use jiff::Timestamp;
use rustix::fs::fsync;

use super::finish::finish;
use super::folder::Folder;
use super::name::Names;
use super::owner::Ids;
use super::{Compression, Error, Spec};
use crate::record::Framing;
use crate::record::format::{Head, RECORD_BYTES_MAX, delimited_head, delimited_time_ns};

/// What an earlier process left in the live file; it is under a finished name now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// Where it is now.
    pub path: PathBuf,
    /// Whole records in it.
    pub records: u64,
    /// Its end is missing: an unfinished frame or half a line. What was flushed can be read.
    pub damaged: bool,
}

/// Gives a live file that holds something its finished name.
pub(super) fn salvage(
    folder: &Folder,
    names: &Names,
    spec: &Spec,
    owner: Ids,
    file: &mut File,
) -> Result<Salvaged, Error> {
    let content = inspect(file, spec).map_err(|error| folder.io("read", &names.live, error))?;
    let first_ns = match content.first_ns {
        Some(ns) => ns,
        None => modified_ns(file).map_err(|error| folder.io("examine", &names.live, error))?,
    };
    fsync(&*file).map_err(|error| folder.io("sync", &names.live, error))?;
    let name = finish(folder, names, spec, owner, file, first_ns)?;
    Ok(Salvaged { path: folder.path.join(name), records: content.records, damaged: content.damaged })
}

#[derive(Default)]
struct Content {
    records: u64,
    damaged: bool,
    first_ns: Option<i64>,
}

fn inspect(file: &mut File, spec: &Spec) -> io::Result<Content> {
    file.rewind()?;
    match spec.compression {
        Compression::Zstd { .. } => Ok(count(&mut zstd::stream::read::Decoder::new(&*file)?)),
        Compression::Gzip { .. } | Compression::None => Ok(count(file)),
    }
}

/// Counts whole records up to the end or the first damage. Which kind they are, the file itself says: an earlier process
/// may have been told otherwise than this one.
fn count(from: &mut dyn Read) -> Content {
    let mut content = Content::default();
    let mut framing = None;
    let mut text = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => {
                content.damaged = true;
                break;
            }
        };
        text.extend_from_slice(buffer.get(..read).unwrap_or_default());
        framing = framing.or_else(|| Framing::recognise(&text, read == 0));
        if let Some(framing) = framing {
            let taken = whole_records(framing, &text, &mut content);
            text.drain(..taken);
        }
        if read == 0 || text.len() > RECORD_BYTES_MAX + buffer.len() {
            break;
        }
    }
    content.damaged |= !text.is_empty();
    content
}

/// Whole records at the beginning.
pub(super) fn records_in(framing: Framing, text: &[u8]) -> u64 {
    let mut content = Content::default();
    whole_records(framing, text, &mut content);
    content.records
}

/// Counts the whole records at the beginning, and says where they end.
fn whole_records(framing: Framing, text: &[u8], content: &mut Content) -> usize {
    let mut taken = 0;
    while let Some(rest) = text.get(taken..).filter(|rest| !rest.is_empty()) {
        let (begin, end) = match framing {
            Framing::Lines => match rest.iter().position(|byte| *byte == b'\n') {
                Some(at) => (0, at + 1),
                None => break,
            },
            Framing::Delimited => match delimited_head(rest) {
                Head::Record(prefix, length) if rest.len() >= prefix + length => (prefix, prefix + length),
                _ => break,
            },
        };
        if content.records == 0 {
            let record = rest.get(begin..end).unwrap_or_default();
            content.first_ns = match framing {
                Framing::Lines => time_ns(record),
                Framing::Delimited => delimited_time_ns(record),
            };
        }
        content.records += 1;
        taken += end;
    }
    taken
}

fn time_ns(line: &[u8]) -> Option<i64> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let time: Timestamp = value.get("time")?.as_str()?.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

fn modified_ns(file: &File) -> io::Result<i64> {
    let stat = rustix::fs::fstat(file)?;
    let ns = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
    Ok(i64::try_from(ns).unwrap_or(0))
}
