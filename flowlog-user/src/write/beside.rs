//! A new file beside one that stays as it is.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RawMode, RenameFlags, Uid, fchown, fsync, open, openat2, renameat_with, stat,
    unlinkat,
};

use super::Error;
use super::roots::{FOLDER, INSIDE};

/// Writes a new file with the permissions of `like`, and with its owner and group where that is permitted, whole or not at
/// all; what is there already is never touched.
///
/// # Errors
/// It is there already, or cannot be written.
pub fn create_beside(path: &Path, like: &Path, text: &[u8]) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let unfinished = format!(".{name}.tmp");
    let failed = |source: io::Error| {
        let remedy = match source.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "somebody else has written it, or writes it now: run the command again, and remove {unfinished} if it stays there"
            ),
            _ => "print it without --write and put it where it belongs".to_owned(),
        };
        Error::Beside { path: path.into(), source, remedy }
    };
    let create = || -> io::Result<()> {
        let like = stat(like)?;
        let mode: RawMode = like.st_mode & 0o666;
        let at = open(folder, FOLDER, Mode::empty())?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat2(&at, &unfinished, flags, Mode::from_raw_mode(mode), INSIDE)?);
        let (user, group) = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
        for owner in [(None, Some(group)), (Some(user), None)] {
            // Only some may give files away: else it is whose it was made by.
            let _ = fchown(&file, owner.0, owner.1);
        }
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown};

    use super::create_beside;

    #[test]
    fn it_belongs_to_whom_the_old_one_does_and_what_is_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("a.yaml"), folder.path().join("a.v1.yaml"));
        fs::write(&old, "old").unwrap();
        // Only root may give a file away.
        let gave = chown(&old, Some(1000), Some(1001)).is_ok();
        create_beside(&new, &old, b"new").unwrap();
        let (like, made) = (fs::metadata(&old).unwrap(), fs::metadata(&new).unwrap());
        assert_eq!((made.uid(), made.gid(), made.mode()), (like.uid(), like.gid(), like.mode()));
        assert!(!gave || (made.uid(), made.gid()) == (1000, 1001));
        let error = create_beside(&new, &old, b"other").unwrap_err().to_string();
        assert!(error.contains("somebody else has written it") && !error.contains("put it where"), "{error}");
        assert_eq!(fs::read(&new).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }
}
