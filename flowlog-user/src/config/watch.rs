//! Notifications of changed task files: hints only, since a queue can overflow and a mount can be silent.
//!
//! Folders are watched, not files: a ConfigMap changes by a rename of `..data`, and its file names never appear in an
//! event.

use std::collections::{BTreeMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Time to wait after a change that is complete in itself: a rename, a closed file.
const SETTLE_WHOLE: Duration = Duration::from_millis(10);
/// After a file was created: its text is still to come.
const SETTLE_CREATED: Duration = Duration::from_millis(25);
/// While somebody writes without having closed the file.
const SETTLE_WRITING: Duration = Duration::from_millis(60);

/// An inotify queue over the folders of task files.
#[derive(Debug)]
pub struct Watch {
    queue: OwnedFd,
    /// Descriptor by folder.
    watched: BTreeMap<PathBuf, i32>,
    /// Files that were written to and not yet closed, by descriptor and name.
    writing: HashSet<(i32, Vec<u8>)>,
}

impl Watch {
    /// A queue that watches nothing yet.
    ///
    /// # Errors
    /// The system has no more of them.
    pub fn new() -> std::io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { queue, watched: BTreeMap::new(), writing: HashSet::new() })
    }

    /// Watches these folders, and no others any more. Gives those that cannot be watched.
    pub fn set(&mut self, folders: &[PathBuf]) -> Vec<(PathBuf, std::io::Error)> {
        let mut failed = Vec::new();
        let mut watched = BTreeMap::new();
        for folder in folders {
            // Adding again is how a folder that was replaced under its name is found.
            match inotify::add_watch(&self.queue, folder, interest()) {
                Ok(descriptor) => drop(watched.insert(folder.clone(), descriptor)),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => failed.push((folder.clone(), error.into())),
            }
        }
        for (_, descriptor) in std::mem::replace(&mut self.watched, watched) {
            if !self.watched.values().any(|kept| *kept == descriptor) {
                // It is gone already when its folder is.
                let _ = inotify::remove_watch(&self.queue, descriptor);
            }
        }
        failed
    }

    /// Takes all that has come. How long to wait for more before reading the files; `None` when nothing concerns them.
    pub fn take(&mut self, concerns: impl Fn(&Path, Option<&str>) -> bool) -> Option<Duration> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        let mut settle: Option<Duration> = None;
        // Ends when the queue is empty; any other error is one more reason to look.
        while let Ok(event) = reader.next() {
            let (events, name) = (event.events(), event.file_name());
            let folder = self.watched.iter().find(|(_, descriptor)| **descriptor == event.wd());
            let text = name.and_then(|name| name.to_str().ok());
            let lost = events.intersects(ReadFlags::QUEUE_OVERFLOW);
            if !lost && !folder.is_some_and(|(folder, _)| concerns(folder, text)) {
                continue;
            }
            let file = (event.wd(), name.map(|name| name.to_bytes().to_vec()).unwrap_or_default());
            let pause = if events.intersects(ReadFlags::MODIFY) {
                self.writing.insert(file);
                SETTLE_WRITING
            } else {
                self.writing.remove(&file);
                if events.intersects(ReadFlags::CREATE) { SETTLE_CREATED } else { SETTLE_WHOLE }
            };
            settle = Some(if self.writing.is_empty() { pause } else { SETTLE_WRITING });
        }
        settle
    }

    /// The files have been read: what was still being written is looked at again with its next event.
    pub fn settled(&mut self) {
        self.writing.clear();
    }
}

fn interest() -> WatchFlags {
    WatchFlags::CREATE
        | WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::DELETE
        | WatchFlags::ATTRIB
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        self.queue.as_raw_fd()
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
