use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use rustix::fs::fsync;

use super::finish::finish;
use super::folder::Folder;
use super::mend::{Mended, frame, last_line, mend_lines, mend_zstd};
use super::name::Names;
use super::notice::Notices;
use super::owner::Ids;
use super::{Compression, Error, Spec};

/// Bytes of the first line that are looked at for its time.
const FIRST_LINE_BYTES_MAX: usize = 64 << 10;

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
        Compression::Gzip | Compression::None => {
            mend_lines(&file).map_err(failed("mend")).map(|mended| (file, mended))
        }
    }
    .unwrap_or_else(|error| {
        tracing::warn!(%error, "the file is kept as it was left");
        (spare, Mended::Unreadable)
    });
    let content = inspect(&mut file, spec.compression).map_err(failed("read"))?;
    if matches!(mended, Mended::Open | Mended::Cut) && content.records > 0 {
        let line = last_line(notices, why, at_ns);
        if let Err(error) = say(&file, spec.compression, &line) {
            tracing::warn!(task = spec.task, %error, "the file gets no last line");
        }
    }
    owner.own(folder, &file, &names.live)?;
    fsync(&file).map_err(|error| folder.io("sync", &names.live, error))?;
    let name = finish(folder, names, spec, owner, &mut file, content.first_ns.unwrap_or(at_ns))?;
    let damaged = content.damaged || mended != Mended::Nothing;
    Ok(Salvaged { path: folder.path.join(name), records: content.records, damaged })
}

/// Appends a line, or takes back what of it is there.
fn say(file: &File, compression: Compression, line: &str) -> io::Result<()> {
    let before = file.metadata()?.len();
    let bytes = match compression {
        Compression::Zstd { .. } => frame(line.as_bytes())?,
        Compression::Gzip | Compression::None => line.as_bytes().to_vec(),
    };
    let mut to = file;
    to.write_all(&bytes).or_else(|error| file.set_len(before).and(Err(error)))
}
#[derive(Default)]
struct Content {
    records: u64,
    damaged: bool,
    first_ns: Option<i64>,
}

fn inspect(file: &mut File, compression: Compression) -> io::Result<Content> {
    file.rewind()?;
    match compression {
        Compression::Zstd { .. } => Ok(count(&mut zstd::stream::read::Decoder::new(&*file)?)),
        Compression::Gzip | Compression::None => Ok(count(file)),
    }
}

/// Counts whole lines up to the end or the first damage.
fn count(from: &mut dyn Read) -> Content {
    let mut content = Content::default();
    let mut first = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let mut whole = true;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                let bytes = buffer.get(..n).unwrap_or_default();
                if content.records == 0 && first.len() < FIRST_LINE_BYTES_MAX {
                    first.extend_from_slice(bytes);
                }
                content.records += bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
                whole = bytes.last() == Some(&b'\n');
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                content.damaged = true;
                break;
            }
        }
    }
    content.damaged |= !whole;
    content.first_ns = first.split(|byte| *byte == b'\n').next().and_then(time_ns);
    content
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
