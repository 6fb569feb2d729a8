use std::fs::File;

use rustix::io::Errno;

use super::folder::Folder;
use super::name::Names;
use super::owner::Ids;
use super::{Compression, Error, Spec, gzip};

/// Collisions within one millisecond that are told apart.
const COLLISIONS_MAX: u32 = 10_000;

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

fn rename(folder: &Folder, names: &Names, first_ns: i64) -> Result<String, Error> {
    for n in 0..COLLISIONS_MAX {
        // A name is taken when it is taken under any compression.
        if names.variants(first_ns, n).iter().any(|name| folder.exists(name)) {
            continue;
        }
        let name = names.finished(first_ns, n);
        match folder.rename(&names.live, &name) {
            Ok(()) => return Ok(name),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(folder.io("rename", &names.live, error)),
        }
    }
    Err(folder.io("rename", &names.live, Errno::EXIST))
}
