use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, XattrFlags, fchmod, fgetxattr,
    flock, fsetxattr, fstat, fstatvfs, fsync, openat2, renameat, renameat_with, stat, statat, unlinkat,
};
use rustix::io::Errno;

use super::Error;
use super::owner::Ids;
use super::roots::{INSIDE, open_below, open_root};

/// How often an open is tried again when the live file changes hands at that very moment.
const OPEN_TRIES: u32 = 16;
/// The extended attribute that says whose a file is, and its bytes at most.
const MARK: &str = "user.flowlog";
const MARK_BYTES_MAX: usize = 1 << 10;

/// A task's folder: everything is done relative to it, so that nobody can move the ground away.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) task: String,
    pub(super) node: String,
    /// The root it is below, and the way from there.
    pub(super) root: (PathBuf, OwnedFd),
    pub(super) below: PathBuf,
}

impl Folder {
    /// What tells whose a file is, in its gzip header or beside its permissions.
    pub(super) fn mark(&self) -> String {
        serde_json::json!({ "task": self.task, "node": self.node }).to_string()
    }

    /// Notes with a file whose it is, where the file system can do that.
    pub(super) fn sign(&self, file: &File) {
        let _ = fsetxattr(file, MARK, self.mark().as_bytes(), XattrFlags::empty());
    }

    /// Whether a file says that it is the task's.
    pub(super) fn is_signed(&self, file: &File) -> bool {
        let (mark, mut found) = (self.mark(), vec![0; MARK_BYTES_MAX]);
        let len = fgetxattr(file, MARK, &mut found);
        len.is_ok_and(|len| found.get(..len) == Some(mark.as_bytes()))
    }

    /// Whether the path still leads here. Only what shows that it does not counts: without descriptors or memory
    /// nothing can be told.
    pub(super) fn is_in_place(&self) -> bool {
        let (path, root) = &self.root;
        let below = if self.below.as_os_str().is_empty() { Path::new(".") } else { &self.below };
        leads_to(stat(path), root)
            && leads_to(
                openat2(root, below, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), INSIDE).and_then(fstat),
                &self.fd,
            )
    }

    /// Opens the folder anew, wherever the path leads now; what is missing is created.
    pub(super) fn reopen(&mut self) -> Result<(), Error> {
        let (path, fd) = open_root(&self.root.0)?;
        self.root = (path, fd);
        self.fd = open_below(&self.root.1, &self.below).map_err(|error| match error {
            Errno::LOOP => Error::Link { task: self.task.clone(), path: self.path.clone() },
            other => self.io("open the folder", "", other),
        })?;
        Ok(())
    }

    /// A finished file to be examined: regular, of one name.
    pub(super) fn open_own(&self, name: &str) -> Result<File, Error> {
        let file = File::from(self.open(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, 0)?);
        self.refuse_special(&file, name)?;
        Ok(file)
    }

    fn refuse_special(&self, file: impl AsFd, name: &str) -> Result<(), Error> {
        let stat = fstat(file).map_err(|error| self.io("examine", name, error))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink <= 1 {
            return Ok(());
        }
        Err(Error::NotRegular { task: self.task.clone(), path: self.path.join(name) })
    }

    /// Opens or creates the live file and locks it. Gives the file, its size, and whether it was there before.
    pub(super) fn open_live(&self, name: &str, mode: u32, owner: Ids) -> Result<(File, u64, bool), Error> {
        // Non-blocking: opening a FIFO must not hang.
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
        for _ in 0..OPEN_TRIES {
            let was_there = self.exists(name);
            let create = if was_there { OFlags::empty() } else { OFlags::CREATE | OFlags::EXCL };
            let fd = match self.open(name, flags | create, mode) {
                // Somebody made or took it in between.
                Err(Error::Io { source, .. }) if is_race(was_there, &source) => continue,
                opened => opened?,
            };
            self.refuse_special(&fd, name)?;
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
                self.sign(&file);
                owner.own(self, &file, name)?;
            }
            return Ok((file, size, was_there));
        }
        Err(Error::Busy { task: self.task.clone(), path: self.path.join(name) })
    }

    /// Creates a file that must not exist.
    pub(super) fn create(&self, name: &str, mode: u32) -> Result<File, Error> {
        let fd = self.open(name, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, mode)?;
        fchmod(&fd, Mode::from_raw_mode(mode)).map_err(|error| self.io("set the mode of", name, error))?;
        Ok(File::from(fd))
    }

    /// Creates a file that must not exist, to be read and written, and locks it: it will take the live file's place.
    pub(super) fn create_locked(&self, name: &str, mode: u32) -> Result<File, Error> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::APPEND;
        let fd = self.open(name, flags, mode)?;
        fchmod(&fd, Mode::from_raw_mode(mode)).map_err(|error| self.io("set the mode of", name, error))?;
        flock(&fd, FlockOperation::NonBlockingLockExclusive).map_err(|error| self.io("lock", name, error))?;
        Ok(File::from(fd))
    }

    fn open(&self, name: &str, flags: OFlags, mode: u32) -> Result<OwnedFd, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(mode) } else { Mode::empty() };
        openat2(&self.fd, name, flags, mode, INSIDE).map_err(|error| match error {
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

    /// The inode of a regular file; `None` for anything else.
    pub(super) fn inode(&self, name: &str) -> Option<u64> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(stat.st_ino)
    }

    /// When a file was last written, nanoseconds since the Unix epoch.
    pub(super) fn modified_ns(&self, name: &str) -> Option<i128> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec))
    }

    /// Per cent of the file system that are free for the daemon.
    pub(super) fn free_percent(&self) -> Option<u64> {
        let stat = fstatvfs(&self.fd).ok()?;
        (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(100) / stat.f_blocks)
    }

    /// Bytes of the whole file system.
    pub(super) fn total_bytes(&self) -> Option<u64> {
        let stat = fstatvfs(&self.fd).ok()?;
        Some(stat.f_blocks.saturating_mul(stat.f_frsize)).filter(|bytes| *bytes > 0)
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        !matches!(statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
    }

    /// Renames, unless the new name is taken.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE)
    }

    /// Lets two files change their names.
    pub(super) fn exchange(&self, one: &str, other: &str) -> Result<(), Errno> {
        renameat_with(&self.fd, one, &self.fd, other, RenameFlags::EXCHANGE)
    }

    /// Renames in the place of what has the new name.
    pub(super) fn replace(&self, from: &str, to: &str) -> Result<(), Errno> {
        renameat(&self.fd, from, &self.fd, to)
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

fn leads_to(found: Result<Stat, Errno>, held: &OwnedFd) -> bool {
    match (found, fstat(held)) {
        (Ok(found), Ok(held)) => found.st_ino == held.st_ino && found.st_dev == held.st_dev,
        (Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV), _) => false,
        _ => true,
    }
}

/// Whether an error of opening what was there, or of making what was not, only tells that this has just changed.
fn is_race(was_there: bool, error: &io::Error) -> bool {
    error.kind() == if was_there { io::ErrorKind::NotFound } else { io::ErrorKind::AlreadyExists }
}
