use std::fs::File;

use rustix::io::Errno;

use super::folder::Folder;
use super::name::Names;
use super::owner::Ids;
use super::{Compression, Error, Spec, gzip};

/// Names that are tried: one that others have taken is passed over.
const TRIES_MAX: u32 = 10_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// Gives a live file, synced by the caller, its finished name, and compresses it where that is the task's way. On an
/// error the content stays where it was.
pub(super) fn finish(
    folder: &Folder,
    names: &Names,
    spec: &Spec,
    owner: Ids,
    file: &mut File,
    first_ns: i64,
) -> Result<String, Error> {
    if !folder.is(&names.live, file) {
        return Err(Error::Replaced { task: spec.task.clone(), path: folder.path.join(&names.live) });
    }
    let name = rename(folder, names, first_ns)?;
    folder.sync()?;
    match spec.compression {
        Compression::Gzip { level } => gzip::compress(folder, file, &name, level, (spec.mode, owner)),
        Compression::Zstd { .. } | Compression::None => Ok(name),
    }
}

/// A name is the time of the first record or, where that would not sort behind every name that is there (a collision,
/// a clock that went back, also before a restart), the next millisecond.
fn rename(folder: &Folder, names: &Names, first_ns: i64) -> Result<String, Error> {
    let newest = names.newest_ns(&folder.names()?);
    let mut ns = newest.map_or(first_ns, |newest| first_ns.max(newest.saturating_add(MILLISECOND_NS)));
    for _ in 0..TRIES_MAX {
        // A name is taken when it is taken under any compression.
        if !names.variants(ns).iter().any(|name| folder.exists(name)) {
            let name = names.finished(ns);
            match folder.rename(&names.live, &name) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(folder.io("rename", &names.live, error)),
            }
        }
        ns = ns.saturating_add(MILLISECOND_NS);
    }
    Err(folder.io("rename", &names.live, Errno::EXIST))
}
