//! The daemon's own small files: replaced whole or appended to by the line, never through a link.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, fsync, mkdirat, openat2, renameat, unlinkat};
use rustix::io::Errno;

use super::Error;
use super::roots::{FOLDER, INSIDE, open_root};
use crate::limits::AUDIT_BYTES_MAX;

/// Owner alone: task texts may say more than the logs' readers should know.
const PRIVATE: u32 = 0o600;
/// As logs.
const GROUP: u32 = 0o640;

/// A folder for state (`--state-dir`).
#[derive(Debug)]
pub struct StateDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl StateDir {
    /// Opens the folder; creates it (0750) when its parent exists.
    ///
    /// # Errors
    /// It cannot be opened or created.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (path, fd) = open_root(path).map_err(|error| match error {
            Error::Root { path, source } => Error::State { what: "open", path, source },
            other => other,
        })?;
        Ok(Self { fd, path })
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces a file as a whole, so that a crash leaves the old or the new text; creates its folder (0750).
    ///
    /// # Errors
    /// It cannot be written. The old text is still there then.
    pub fn put(&self, folder: &str, name: &str, text: &[u8]) -> Result<(), Error> {
        let unfinished = format!(".{name}.tmp");
        let put = || -> Result<(), Errno> {
            match mkdirat(&self.fd, folder, Mode::from_raw_mode(0o750)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            let at = self.folder(folder)?;
            match unlinkat(&at, &unfinished, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = openat2(&at, &unfinished, flags, Mode::from_raw_mode(PRIVATE), INSIDE)?;
            let mut file = File::from(fd);
            file.write_all(text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            fsync(&file)?;
            renameat(&at, &unfinished, &at, name)?;
            fsync(&at)
        };
        put().map_err(|error| self.error("write", &format!("{folder}/{name}"), error))
    }

    /// The text of a file of at most `bytes_max` bytes; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be read, is longer, or is no regular file.
    pub fn get(&self, folder: &str, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Error> {
        let get = || -> Result<Option<Vec<u8>>, io::Error> {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let at = match self.folder(folder) {
                Err(Errno::NOENT) => return Ok(None),
                at => at?,
            };
            let fd = match openat2(&at, name, flags, Mode::empty(), INSIDE) {
                Err(Errno::NOENT) => return Ok(None),
                fd => fd?,
            };
            if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::RegularFile {
                return Err(io::Error::other("it is no regular file"));
            }
            let mut text = Vec::new();
            File::from(fd).take(bytes_max + 1).read_to_end(&mut text)?;
            if text.len() as u64 > bytes_max {
                return Err(io::Error::other("it is too long"));
            }
            Ok(Some(text))
        };
        get().map_err(|error| self.error("read", &format!("{folder}/{name}"), error))
    }

    /// The names of a folder's files, without those that are not finished.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn names(&self, folder: &str) -> Result<Vec<String>, Error> {
        let names = || -> Result<Vec<String>, Errno> {
            let at = match self.folder(folder) {
                Err(Errno::NOENT) => return Ok(Vec::new()),
                at => at?,
            };
            let mut names = Vec::new();
            for entry in Dir::read_from(at)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if !name.starts_with('.') {
                    names.push(name);
                }
            }
            names.sort_unstable();
            Ok(names)
        };
        names().map_err(|error| self.error("list", folder, error))
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// It is there and cannot be removed.
    pub fn remove(&self, folder: &str, name: &str) -> Result<(), Error> {
        match self.folder(folder).and_then(|at| unlinkat(at, name, AtFlags::empty())) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.error("remove", &format!("{folder}/{name}"), error)),
        }
    }

    /// Appends whole lines to a file by one write. A file that has grown long is put aside as `<name>.1` first.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&self, name: &str, lines: &str) -> Result<(), Error> {
        let append = || -> Result<(), io::Error> {
            let flags = OFlags::CREATE
                | OFlags::WRONLY
                | OFlags::APPEND
                | OFlags::NOFOLLOW
                | OFlags::NONBLOCK
                | OFlags::CLOEXEC;
            let open = || openat2(&self.fd, name, flags, Mode::from_raw_mode(GROUP), INSIDE);
            let mut fd = open()?;
            let mut stat = fstat(&fd)?;
            if stat.st_size.unsigned_abs() >= AUDIT_BYTES_MAX {
                renameat(&self.fd, name, &self.fd, format!("{name}.1"))?;
                fd = open()?;
                stat = fstat(&fd)?;
            }
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink > 1 {
                return Err(io::Error::other("it is no regular file of a single name"));
            }
            File::from(fd).write_all(lines.as_bytes())
        };
        append().map_err(|error| self.error("append to", name, error))
    }

    fn folder(&self, folder: &str) -> Result<OwnedFd, Errno> {
        openat2(&self.fd, folder, FOLDER, Mode::empty(), INSIDE)
    }

    fn error(&self, what: &'static str, name: &str, source: impl Into<io::Error>) -> Error {
        Error::State { what, path: self.path.join(name), source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_is_put_is_got_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let state = StateDir::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(state.get("tasks", "a", 10).unwrap(), None);
        state.put("tasks", "a", b"one").unwrap();
        state.put("tasks", "a", b"two").unwrap();
        assert_eq!(state.get("tasks", "a", 10).unwrap().as_deref(), Some(&b"two"[..]));
        assert_eq!(fs::metadata(path.join("tasks/a")).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(path.join("tasks/.b.tmp"), "half").unwrap();
        assert_eq!(state.names("tasks").unwrap(), ["a"]);
        assert!(state.get("tasks", "a", 2).unwrap_err().to_string().contains("too long"));
        state.remove("tasks", "a").unwrap();
        state.remove("tasks", "a").unwrap();
        assert_eq!(state.get("tasks", "a", 10).unwrap(), None);
    }

    #[test]
    fn links_are_neither_read_nor_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "precious").unwrap();
        let path = dir.path().join("state");
        let state = StateDir::open(&path).unwrap();
        state.put("tasks", "other", b"x").unwrap();
        symlink(&target, path.join("tasks/a")).unwrap();
        symlink(&target, path.join("audit.log")).unwrap();
        assert!(state.get("tasks", "a", 100).is_err());
        assert!(state.append("audit.log", "line\n").is_err());
        state.put("tasks", "a", b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        assert_eq!(state.get("tasks", "a", 100).unwrap().as_deref(), Some(&b"new"[..]));
        fs::remove_dir_all(path.join("tasks")).unwrap();
        symlink(dir.path(), path.join("tasks")).unwrap();
        assert!(state.put("tasks", "a", b"new").is_err());
        assert!(!dir.path().join("a").exists());
    }

    #[test]
    fn lines_are_appended_and_a_long_file_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        state.append("audit.log", "1\n").unwrap();
        state.append("audit.log", "2\n3\n").unwrap();
        let log = dir.path().join("audit.log");
        assert_eq!(fs::read(&log).unwrap(), b"1\n2\n3\n");
        assert_eq!(fs::metadata(&log).unwrap().mode() & 0o777 & !0o640, 0);
        fs::OpenOptions::new().append(true).open(&log).unwrap().set_len(AUDIT_BYTES_MAX).unwrap();
        state.append("audit.log", "4\n").unwrap();
        assert_eq!(fs::read(&log).unwrap(), b"4\n");
        assert_eq!(fs::metadata(dir.path().join("audit.log.1")).unwrap().len(), AUDIT_BYTES_MAX);
    }
}
