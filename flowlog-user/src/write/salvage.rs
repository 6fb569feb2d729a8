use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use rustix::fs::fsync;

use super::finish::{Successor, finish};
use super::folder::Folder;
use super::frames::frames;
use super::mend::{Mended, data_len, frame, last_record, mend_plain, mend_zstd};
use super::name::Names;
use super::notice::{Notices, header};
use super::owner::Ids;
use super::{Compression, Error, Spec};
use crate::record::Framing;
use crate::record::container::{Frame, Index};
use crate::record::format::{Head, RECORD_BYTES_MAX, delimited_head, delimited_time_ns};

/// What an earlier process left in the live file; it is under a finished name now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// Where it is now.
    pub path: PathBuf,
    /// Whole records in it, without what was added.
    pub records: u64,
    /// It cannot be read to its end.
    pub damaged: bool,
    /// What was done, and what is missing, in words.
    pub what: String,
    /// Since when what was not written is missing (ns since the Unix epoch), where the file itself does not say so.
    pub untold_ns: Option<i64>,
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
    let mut untold_ns = match mended {
        // Whole as it was, so that nothing is added to it.
        Mended::Nothing => Some(at_ns),
        // Nor to what is no file of the task's; of that there is nothing to tell.
        Mended::Unreadable => is_left(folder, &file, &content).map_err(failed("read"))?.then_some(at_ns),
        Mended::Open | Mended::Cut => (content.records == 0).then_some(at_ns),
    };
    // Records of one kind only: the file may have been begun in another format.
    let same = content.framing == Some(spec.format.framing());
    if matches!(mended, Mended::Open | Mended::Cut) && content.records > 0 && same {
        let record = last_record(notices, &[why, &content.missing()].concat(), at_ns);
        if let Err(error) = say(&file, (spec, notices), &record, at_ns) {
            tracing::warn!(task = spec.task, %error, "the file gets no last line");
            untold_ns = Some(at_ns);
        }
    }
    // What its writer had set aside is given back.
    file.metadata().and_then(|found| file.set_len(found.len())).map_err(failed("examine"))?;
    owner.own(folder, &file, &names.live)?;
    fsync(&file).map_err(|error| folder.io("sync", &names.live, error))?;
    let at = (content.first_ns.unwrap_or(at_ns), Successor::None);
    let name = finish(folder, names, spec, owner, &mut file, at)?.name;
    let damaged = content.damaged || mended == Mended::Unreadable;
    let what = said(mended, &content, spec.compression);
    Ok(Salvaged { path: folder.path.join(name), records: content.records, damaged, what, untold_ns })
}

/// What was done to a file, and what is missing of it.
fn said(mended: Mended, content: &Content, compression: Compression) -> String {
    let done = match mended {
        Mended::Nothing => "it was finished, and has its finished name now",
        Mended::Open => "its end was missing",
        Mended::Cut => "half a write at its end was cut off",
        Mended::Unreadable => {
            return "it is no file that flowlog has written, or is damaged; it was put aside as it was"
                .into();
        }
    };
    let whole = match (mended, content.records) {
        (Mended::Nothing, _) => "",
        (_, 0) => "; nothing in it can be read, and the next file says so",
        _ if content.damaged => "; its last record says what is missing",
        _ if matches!(compression, Compression::Zstd { .. }) => {
            "; it is whole now, and its last record says what is missing"
        }
        // Nothing vouches for plain lines.
        _ => "; it ends with a whole record now, and its last record says what is missing",
    };
    [done, whole, &content.missing()].concat()
}

/// Whether what cannot be mended is, for all that is known, what an earlier process of the task left.
fn is_left(folder: &Folder, file: &File, content: &Content) -> io::Result<bool> {
    Ok(content.records > 0 || folder.is_signed(file) || data_len(file, file.metadata()?.len())? == 0)
}

/// Appends a record and, with zstd, what else a finished file has; where there is no room for that, the record alone, or
/// nothing.
fn say(file: &File, (spec, notices): (&Spec, &Notices), record: &[u8], at_ns: i64) -> io::Result<()> {
    let before = file.metadata()?.len();
    let append = |bytes: &[u8]| {
        let mut to = file;
        to.write_all(bytes).or_else(|error| file.set_len(before).and(Err(error)))
    };
    if !matches!(spec.compression, Compression::Zstd { .. }) {
        return append(record);
    }
    let record = frame(record)?;
    let whole = frames(file)?.filter(|found| found.damaged.is_empty()).map(|mut found| {
        let header = if found.has_header { Vec::new() } else { header(spec, notices) };
        let offset = before + header.len() as u64;
        found.frames.push(Frame { offset, first_ns: at_ns, last_ns: at_ns, lines: 1 });
        let index = Index { task: spec.task.clone(), frames: found.frames };
        [header, record.clone(), index.to_bytes()].concat()
    });
    match whole.map(|whole| append(&whole)) {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) | None => append(&record),
    }
}

#[derive(Default)]
struct Content {
    records: u64,
    damaged: bool,
    first_ns: Option<i64>,
    framing: Option<Framing>,
    /// Frames that cannot be read.
    frames: Vec<(u64, u64)>,
    /// Lines that are no records.
    no_records: u64,
}

/// Damaged frames that are named; of more their number is told.
const NAMED_MAX: usize = 3;

impl Content {
    /// What is missing before the end, to be added to a sentence.
    fn missing(&self) -> String {
        let mut text = String::new();
        if !self.frames.is_empty() {
            let named = self.frames.iter().take(NAMED_MAX).map(|(from, to)| format!("{from} to {to}"));
            let more = match self.frames.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let places = named.collect::<Vec<_>>().join(", ");
            text = format!(
                "; before that it is damaged: the records of the frames at bytes {places}{more} are missing"
            );
        }
        if self.no_records > 0 {
            text.push_str(&format!("; before that it is damaged: {} lines are no records", self.no_records));
        }
        text
    }
}

fn inspect(file: &mut File, spec: &Spec) -> io::Result<Content> {
    file.rewind()?;
    match spec.compression {
        Compression::Zstd { .. } => match frames(file)? {
            Some(found) if !found.damaged.is_empty() => Ok(Content {
                records: found.frames.iter().map(|frame| frame.lines).sum(),
                damaged: true,
                first_ns: found.first.and_then(|(_, ns)| ns),
                framing: found.first.map(|(framing, _)| framing),
                frames: found.damaged,
                no_records: 0,
            }),
            _ => Ok(count(&mut zstd::stream::read::Decoder::new(&*file)?)),
        },
        Compression::Gzip { .. } | Compression::None => Ok(count(file)),
    }
}

/// How many whole records can still be read of a file that others have changed, up to the first damage.
pub(super) fn records_left(file: &File, spec: &Spec) -> io::Result<u64> {
    let mut file = file.try_clone()?;
    if file.metadata()?.len() == 0 {
        return Ok(0);
    }
    inspect(&mut file, spec).map(|content| content.records)
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
    content.damaged |= !text.is_empty() || content.no_records > 0;
    content
}

/// Whole records at the beginning.
pub(super) fn records_in(framing: Framing, text: &[u8]) -> u64 {
    let mut content = Content::default();
    whole_records(framing, text, &mut content);
    content.records
}

/// The `time` of the first record.
pub(super) fn first_time_ns(framing: Framing, text: &[u8]) -> Option<i64> {
    let first = framing.first_len(text).and_then(|len| text.get(..len)).unwrap_or_default();
    let mut content = Content::default();
    whole_records(framing, first, &mut content);
    content.first_ns
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
        // Holes in a file read as zeros.
        if framing == Framing::Lines && !is_line(rest.get(..end).unwrap_or_default()) {
            content.no_records += 1;
        } else {
            content.records += 1;
        }
        taken += end;
    }
    taken
}

/// Whether a line may be a record: control characters stand escaped in JSON.
fn is_line(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"{") && line.ends_with(b"}") && line.iter().all(|byte| *byte >= b' ')
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
