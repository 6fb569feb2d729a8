use std::fs::File;

use rustix::io::Errno;

use super::folder::Folder;
use super::name::{MILLISECOND_NS, Names};
use super::owner::Ids;
use super::{Compression, Error, Spec, gzip};

/// Names that are tried: one that others have taken is passed over.
const TRIES_MAX: u32 = 10_000;

/// Whether another file is to take the finished one's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Successor {
    Wanted,
    None,
}

/// A finished file.
pub(super) struct Finished {
    pub(super) name: String,
    /// The next live file, locked, where it could be put in the other's place.
    pub(super) next: Option<File>,
    /// What else was in the folder.
    pub(super) others: Vec<String>,
}

/// Gives a live file, synced by the caller, its finished name, and compresses it where that is the task's way. On an
/// error the content stays where it was.
pub(super) fn finish(
    folder: &Folder,
    names: &Names,
    spec: &Spec,
    owner: Ids,
    file: &mut File,
    (first_ns, successor): (i64, Successor),
) -> Result<Finished, Error> {
    if !folder.is(&names.live, file) {
        return Err(Error::Replaced { task: spec.task.clone(), path: folder.path.join(&names.live) });
    }
    let next = match successor {
        Successor::Wanted => succeed(folder, names, spec, owner),
        Successor::None => None,
    };
    let from = if next.is_some() { names.next() } else { names.live.clone() };
    let (name, others) = rename(folder, names, &from, first_ns).inspect_err(|_| {
        if next.is_some() {
            // As it was, if that can be.
            let _ = folder.exchange(&from, &names.live).map(|()| folder.unlink(&from));
        }
    })?;
    folder.sync()?;
    let Compression::Gzip { level } = spec.compression else { return Ok(Finished { name, next, others }) };
    let mark = folder.mark();
    let name =
        gzip::compress(folder, file, &name, (level, &mark), (spec.mode, owner)).unwrap_or_else(|error| {
            tracing::warn!(%error, "a finished file stays uncompressed");
            name
        });
    Ok(Finished { name, next, others })
}

/// Puts a new file in the live file's place in one step, so that its name is locked at every moment; the live file goes
/// under the next one's name. Where that cannot be, the name is free for a moment.
fn succeed(folder: &Folder, names: &Names, spec: &Spec, owner: Ids) -> Option<File> {
    let name = names.next();
    folder.unlink(&name).ok()?;
    let file = folder.create_locked(&name, spec.mode).ok()?;
    let exchanged = owner.own(folder, &file, &name).is_ok() && folder.exchange(&name, &names.live).is_ok();
    if exchanged {
        folder.sign(&file);
        return Some(file);
    }
    let _ = folder.unlink(&name); // It is removed at the next start.
    None
}

/// A name is the time of the first record or, where that would not sort behind every name that is there (a collision,
/// a clock that went back, also before a restart), the next millisecond. The names that were there are given too: a folder
/// that thousands of tasks share is not read twice for each file.
fn rename(folder: &Folder, names: &Names, from: &str, first_ns: i64) -> Result<(String, Vec<String>), Error> {
    let others = folder.names()?;
    let newest = names.newest_ns(&others);
    let mut ns = newest.map_or(first_ns, |newest| first_ns.max(newest.saturating_add(MILLISECOND_NS)));
    for _ in 0..TRIES_MAX {
        // A name is taken when it is taken under any compression.
        if !names.variants(ns).iter().any(|name| folder.exists(name)) {
            let name = names.finished(ns);
            match folder.rename(from, &name) {
                Ok(()) => return Ok((name, others)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(folder.io("rename", from, error)),
            }
        }
        ns = ns.saturating_add(MILLISECOND_NS);
    }
    Err(folder.io("rename", from, Errno::EXIST))
}
