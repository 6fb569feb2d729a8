//! A lock that only this user can take, released with the process.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, open, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::Error;

/// Others may look, not lock.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Bits of a folder in which others could put a lock of their own.
const OTHERS_WRITE: u32 = 0o022;

/// How long somebody who has a lock alone is waited for: it cleans up, which takes moments.
const PATIENCE: Duration = Duration::from_secs(2);

/// Held as long as it lives.
#[derive(Debug)]
pub struct Lock {
    folder: OwnedFd,
    name: String,
    file: OwnedFd,
}

impl Lock {
    /// Takes the lock of this name for itself alone, in a folder of our own (created when its parent exists). `None`:
    /// somebody has it.
    ///
    /// # Errors
    /// The folder cannot be made, or others can write to it, so that the lock would mean nothing.
    pub fn take(folder: &Path, name: &str) -> Result<Option<Self>, Error> {
        Self::open(folder, name, FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes it beside others that share it. `None`: somebody has it alone, and for too long.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_shared(folder: &Path, name: &str) -> Result<Option<Self>, Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            let taken = Self::open(folder, name, FlockOperation::NonBlockingLockShared)?;
            if taken.is_some() || Instant::now() >= until {
                return Ok(taken);
            }
            std::thread::sleep(PATIENCE / 100);
        }
    }

    /// Shares it from now on: nobody can have it alone as long as anybody has it.
    pub fn share(&self) {
        // It cannot fail: nobody else has it.
        let _ = flock(&self.file, FlockOperation::NonBlockingLockShared);
    }

    fn open(folder: &Path, name: &str, how: FlockOperation) -> Result<Option<Self>, Error> {
        let failed =
            |source: Errno| Error::State { what: "lock", path: folder.join(name), source: source.into() };
        match mkdirat(CWD, folder, Mode::from_raw_mode(FOLDER_MODE)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let at = open(folder, flags, Mode::empty()).map_err(failed)?;
        let stat = fstat(&at).map_err(failed)?;
        if stat.st_mode & OTHERS_WRITE != 0 || stat.st_uid != geteuid().as_raw() {
            return Err(failed(Errno::PERM));
        }
        loop {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(&at, name, flags, Mode::from_raw_mode(FILE_MODE)).map_err(failed)?;
            match flock(&file, how) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(failed(error)),
            }
            // Whoever had it before may have taken the file away between the two.
            let (own, there) = (fstat(&file), statat(&at, name, AtFlags::SYMLINK_NOFOLLOW));
            if let (Ok(own), Ok(there)) = (own, there)
                && (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)
            {
                return Ok(Some(Self { folder: at, name: name.to_owned(), file }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Others who share it find each other by the file.
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty()); // it may stay: an empty file in /run
        }
    }
}

/// Where and under which name those that watch one network namespace find each other.
///
/// # Errors
/// `/proc` does not say in which namespace this is.
pub fn namespace_lock() -> Result<(PathBuf, String), Error> {
    let path = Path::new("/proc/self/ns/net");
    let stat = rustix::fs::stat(path).map_err(|source| Error::State {
        what: "look at",
        path: path.to_owned(),
        source: source.into(),
    })?;
    Ok((PathBuf::from("/run/flowlog"), format!("net-{}.lock", stat.st_ino)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn one_has_it_until_it_is_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        let held = Lock::take(&folder, "a").unwrap().expect("free");
        assert!(Lock::take(&folder, "a").unwrap().is_none());
        assert!(Lock::take(&folder, "b").unwrap().is_some());
        drop(held);
        assert!(!folder.join("a").exists());
        assert!(Lock::take(&folder, "a").unwrap().is_some());
    }

    #[test]
    fn who_shares_it_keeps_others_from_having_it_alone() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        let first = Lock::take(&folder, "a").unwrap().expect("free");
        assert!(Lock::open(&folder, "a", FlockOperation::NonBlockingLockShared).unwrap().is_none());
        first.share();
        let second = Lock::take_shared(&folder, "a").unwrap().expect("shared");
        drop(first);
        assert!(folder.join("a").exists() && Lock::take(&folder, "a").unwrap().is_none());
        drop(second);
        assert!(!folder.join("a").exists() && Lock::take(&folder, "a").unwrap().is_some());
    }

    #[test]
    fn a_folder_that_others_write_to_is_no_place_for_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(Lock::take(&folder, "a").is_err());
        let link = parent.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(Lock::take(&link, "a").is_err());
    }
}
