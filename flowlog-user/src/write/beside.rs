//! A new file beside one that stays as it is.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode, OFlags, RawMode, RenameFlags, fsync, open, openat2, renameat_with, stat, unlinkat,
};

use super::Error;
use super::roots::{FOLDER, INSIDE};

/// Writes a new file with the permissions of `like`, whole or not at all; what is there already is never touched.
///
/// # Errors
/// It is there already, or cannot be written.
pub fn create_beside(path: &Path, like: &Path, text: &[u8]) -> Result<(), Error> {
    let failed = |source: io::Error| Error::Beside { path: path.into(), source };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let unfinished = format!(".{name}.tmp");
    let create = || -> io::Result<()> {
        let mode: RawMode = stat(like)?.st_mode & 0o666;
        let at = open(folder, FOLDER, Mode::empty())?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat2(&at, &unfinished, flags, Mode::from_raw_mode(mode), INSIDE)?);
        let written = file.write_all(text).and_then(|()| Ok(fsync(&file)?));
        let done = written
            .and_then(|()| Ok(renameat_with(&at, &unfinished, &at, &name, RenameFlags::NOREPLACE)?))
            .and_then(|()| Ok(fsync(&at)?));
        if done.is_err() {
            // What is left of it is of no use to anybody.
            let _ = unlinkat(&at, &unfinished, AtFlags::empty());
        }
        done
    };
    create().map_err(failed)
}
