use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use rustix::fs::fsync;

use super::finish::finish;
use super::folder::Folder;
use super::mend::{Mended, frame, last_record, mend_plain, mend_zstd};
use super::name::Names;
use super::notice::Notices;
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
    /// Its end was missing, or it cannot be read to its end. What was flushed can be read.
    pub damaged: bool,
}

/// Gives a live file that holds something its finished name, once its end is mended and a last line says `why` it has
/// none of its own. What cannot be mended (no space, no file of ours) is kept as it is.
pub(super) fn salvage(
    folder: &Folder,
    names: &Names,
    spec: &Spec,
    owner: Ids,
    (notices, why): (&Notices, &str),
    file: File,
) -> Result<Salvaged, Error> {
    let failed = |what: &'static str| move |error: io::Error| folder.io(what, &names.live, error);
    let at_ns = modified_ns(&file).map_err(failed("examine"))?;
    let spare = file.try_clone().map_err(failed("examine"))?;
    let (mut file, mended) = match spec.compression {
        Compression::Zstd { .. } => mend_zstd(folder, names, spec.mode, file),
        Compression::Gzip { .. } | Compression::None => {
            mend_plain(&file).map_err(failed("mend")).map(|mended| (file, mended))
        }
    }
    .unwrap_or_else(|error| {
        tracing::warn!(%error, "the file is kept as it was left");
        (spare, Mended::Unreadable)
    });
    let content = inspect(&mut file, spec).map_err(failed("read"))?;
    // Records of one kind only: the file may have been begun in another format.
    let same = content.framing == Some(spec.format.framing());
    if matches!(mended, Mended::Open | Mended::Cut) && content.records > 0 && same {
        let record = last_record(notices, why, at_ns);
        if let Err(error) = say(&file, spec.compression, &record) {
            tracing::warn!(task = spec.task, %error, "the file gets no last line");
        }
    }
    owner.own(folder, &file, &names.live)?;
    fsync(&file).map_err(|error| folder.io("sync", &names.live, error))?;
    let name = finish(folder, names, spec, owner, &mut file, content.first_ns.unwrap_or(at_ns))?;
    let damaged = content.damaged || mended != Mended::Nothing;
    Ok(Salvaged { path: folder.path.join(name), records: content.records, damaged })
}

/// Appends a record, or takes back what of it is there.
fn say(file: &File, compression: Compression, record: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    let bytes = match compression {
        Compression::Zstd { .. } => frame(record)?,
        Compression::Gzip { .. } | Compression::None => record.to_vec(),
    };
    let mut to = file;
    to.write_all(&bytes).or_else(|error| file.set_len(before).and(Err(error)))
}

#[derive(Default)]
struct Content {
    records: u64,
    damaged: bool,
    first_ns: Option<i64>,
    framing: Option<Framing>,
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
    content.framing = framing;
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

pub(super) fn modified_ns(file: &File) -> io::Result<i64> {
    let stat = rustix::fs::fstat(file)?;
    let ns = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
    Ok(i64::try_from(ns).unwrap_or(0))
}
