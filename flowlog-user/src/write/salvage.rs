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

/// Bytes of the first line that are looked at for its time.
const FIRST_LINE_BYTES_MAX: usize = 64 << 10;

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
    let content = inspect(file, spec.compression).map_err(|error| folder.io("read", &names.live, error))?;
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
