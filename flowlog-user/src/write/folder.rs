use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, fchmod, flock, fstat, fsync, openat2,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::Error;
use super::roots::INSIDE;

/// How often an open is tried again when the live file changes hands at that very moment.
const OPEN_TRIES: u32 = 16;

/// A task's folder: everything is done relative to it, so that nobody can move the ground away.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) task: String,
}

impl Folder {
    /// Opens or creates the live file and locks it. Gives the file and its size.
    pub(super) fn open_live(&self, name: &str, mode: u32) -> Result<(File, u64), Error> {
        // Non-blocking: opening a FIFO must not hang.
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
        for _ in 0..OPEN_TRIES {
            let fd = self.open(name, flags, mode)?;
            let stat = fstat(&fd).map_err(|error| self.io("examine", name, error))?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink > 1 {
                return Err(Error::NotRegular { task: self.task.clone(), path: self.path.join(name) });
            }
            match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    return Err(Error::Busy { task: self.task.clone(), path: self.path.join(name) });
                }
                Err(error) => return Err(self.io("lock", name, error)),
            }
            let file = File::from(fd);
            if !self.is(name, &file) {
                continue; // Its writer finished it between open and lock.
            }
            let size = file.metadata().map_err(|error| self.io("examine", name, error))?.len();
            if size == 0 {
                fchmod(&file, Mode::from_raw_mode(mode))
                    .map_err(|error| self.io("set the mode of", name, error))?;
            }
            return Ok((file, size));
        }
        Err(Error::Busy { task: self.task.clone(), path: self.path.join(name) })
    }

    /// Creates a file that must not exist.
    pub(super) fn create(&self, name: &str, mode: u32) -> Result<File, Error> {
        let fd = self.open(name, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, mode)?;
        fchmod(&fd, Mode::from_raw_mode(mode)).map_err(|error| self.io("set the mode of", name, error))?;
        Ok(File::from(fd))
    }

    fn open(&self, name: &str, flags: OFlags, mode: u32) -> Result<OwnedFd, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat2(&self.fd, name, flags, Mode::from_raw_mode(mode), INSIDE).map_err(|error| match error {
            Errno::LOOP => Error::Link { task: self.task.clone(), path: self.path.join(name) },
            Errno::ISDIR | Errno::NXIO => {
                Error::NotRegular { task: self.task.clone(), path: self.path.join(name) }
            }
            other => self.io("open", name, other),
        })
    }

    /// Whether the name still leads to this file.
    pub(super) fn is(&self, name: &str, file: &File) -> bool {
        match (fstat(file), statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)) {
            (Ok(held), Ok(named)) => held.st_ino == named.st_ino && held.st_dev == named.st_dev,
            _ => false,
        }
    }

    /// The size of a regular file; `None` for anything else.
    pub(super) fn size(&self, name: &str) -> Option<u64> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
            .then_some(stat.st_size.unsigned_abs())
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        !matches!(statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
    }

    /// Renames, unless the new name is taken.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE)
    }

    pub(super) fn unlink(&self, name: &str) -> Result<(), Error> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.io("delete", name, error)),
        }
    }

    /// Makes renames durable.
    pub(super) fn sync(&self) -> Result<(), Error> {
        fsync(&self.fd).map_err(|error| self.io("sync the folder of", "", error))
    }

    /// Names in the folder, those that are UTF-8.
    pub(super) fn names(&self) -> Result<Vec<String>, Error> {
        let dir = Dir::read_from(&self.fd).map_err(|error| self.io("list", "", error))?;
        let mut names = Vec::new();
        for entry in dir {
            let entry = entry.map_err(|error| self.io("list", "", error))?;
            if let Ok(name) = entry.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(super) fn io(&self, what: &'static str, name: &str, source: impl Into<io::Error>) -> Error {
        let path = if name.is_empty() { self.path.clone() } else { self.path.join(name) };
        Error::Io { task: self.task.clone(), what, path, source: source.into() }
    }
}
