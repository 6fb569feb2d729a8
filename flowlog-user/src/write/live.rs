use std::fs::File;
use std::io::{self, Write};
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate, fstat, ftruncate};
use rustix::io::Errno;

use super::encoder::Encoder;
use super::folder::Folder;
use super::pending::Pending;
use crate::record::container::Frame;

/// The file that grows.
pub(super) struct Live {
    pub(super) file: File,
    /// Bytes in it.
    pub(super) bytes: u64,
    /// Bytes in it up to the last whole write.
    pub(super) whole_bytes: u64,
    /// The last sync, and whether there was a write since.
    pub(super) synced: Instant,
    pub(super) dirty: bool,
    /// Up to where the file system has set space aside for it.
    reserved_bytes: u64,
}

/// Space that is set aside at a time at most, beyond what is needed.
const AHEAD_BYTES_MAX: u64 = 1 << 20;

/// What is in the file that grows, or will be in the next one.
#[derive(Default)]
pub(super) struct Book {
    /// Time of the first record (ns since the epoch), and when it came.
    pub(super) first: Option<(i64, Instant)>,
    /// When the file was begun, and the same in ns since the epoch.
    pub(super) begun: Option<(Instant, i64)>,
    /// The open frame, and when it began.
    pub(super) frame: Option<(Frame, Instant)>,
    /// Frames that have ended.
    pub(super) frames: Vec<Frame>,
    /// Records in it, and the times of the first and the last (ns since the epoch).
    pub(super) records: u64,
    pub(super) span_ns: Option<(i64, i64)>,
    /// Lines in it about the log itself, and which of its lines these are, counted from 0; also of those on their way.
    notices: u64,
    notice_lines: Vec<u64>,
    /// Whether the last of the frames is open on the disk, after an error, and has to be closed before anything follows.
    pub(super) unsealed: bool,
    /// Bytes of their lines, and in how many writes they went.
    pub(super) text_bytes: u64,
    pub(super) writes: u64,
    /// When the clock's period ends in which it was begun, or got its first record (ns since the epoch).
    pub(super) ends_ns: Option<i64>,
}

/// What became of the live file outside the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing.
    Intact,
    /// It has another name, or its folder has.
    Moved,
    /// It has no name any more.
    Deleted,
    /// It is shorter or longer than what was written.
    Changed,
}

impl Live {
    pub(super) fn new(file: File) -> Self {
        Self::of(file, 0)
    }

    /// One that holds so many bytes, all of them synced.
    pub(super) fn of(file: File, bytes: u64) -> Self {
        Self { file, bytes, whole_bytes: bytes, synced: Instant::now(), dirty: false, reserved_bytes: 0 }
    }

    /// Sets space aside for `bytes` more and `spare` behind them, so that a file system that is full refuses before
    /// anything is written, and what ends the file has room whatever happens. File systems that cannot do that are as
    /// they are.
    pub(super) fn reserve(&mut self, bytes: u64, spare: u64) -> io::Result<()> {
        let needed = self.bytes + bytes + spare;
        if needed <= self.reserved_bytes {
            return Ok(());
        }
        let mut set_aside = |until: u64| {
            let from = self.reserved_bytes.max(self.bytes);
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, until - from) {
                Err(error @ (Errno::NOSPC | Errno::DQUOT)) => Err(io::Error::from(error)),
                Err(_) => Ok(()),
                Ok(()) => {
                    self.reserved_bytes = until;
                    Ok(())
                }
            }
        };
        set_aside(needed + bytes.saturating_mul(4).min(AHEAD_BYTES_MAX)).or_else(|_| set_aside(needed))
    }

    /// Gives back what is set aside.
    pub(super) fn release(&mut self) {
        if self.reserved_bytes > self.bytes
            && self.file.metadata().is_ok_and(|found| found.len() == self.bytes)
        {
            let _ = ftruncate(&self.file, self.bytes); // The space goes when the file does.
        }
        self.reserved_bytes = 0;
    }

    /// Writes what the encoder holds. After an error what was taken is known, and the rest can be written later.
    pub(super) fn write(&mut self, encoder: &mut Encoder) -> io::Result<()> {
        while let Some(rest) = encoder.out.get(encoder.done..).filter(|rest| !rest.is_empty()) {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    encoder.done += n;
                    self.bytes += n as u64;
                    self.dirty = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.whole_bytes = self.bytes;
        encoder.written();
        Ok(())
    }

    /// Takes back what is not whole.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        // A file that others made shorter would become longer.
        if self.bytes > self.whole_bytes && self.file.metadata()?.len() > self.whole_bytes {
            self.file.set_len(self.whole_bytes)?;
            (self.bytes, self.reserved_bytes) = (self.whole_bytes, 0);
        }
        Ok(())
    }

    pub(super) fn fate(&self, folder: &Folder, name: &str) -> Fate {
        let Ok(stat) = fstat(&self.file) else { return Fate::Intact };
        if stat.st_nlink == 0 {
            Fate::Deleted
        } else if stat.st_size.unsigned_abs() != self.bytes {
            Fate::Changed
        } else if !folder.is(name, &self.file) || !folder.is_in_place() {
            Fate::Moved
        } else {
            Fate::Intact
        }
    }
}

impl Book {
    /// Notes so many lines about the log itself, which come behind what is pending.
    pub(super) fn add_notices(&mut self, count: u64, pending: &Pending) {
        let at = self.lines() + pending.records + pending.notices;
        self.notice_lines.extend(at..at + count);
    }

    /// What was pending is in the file.
    pub(super) fn note_written(&mut self, pending: &Pending) {
        self.records += pending.records;
        self.notices += pending.notices;
        if pending.records > 0 {
            let (first, last) = self.span_ns.unwrap_or((pending.first_ns, pending.last_ns));
            self.span_ns = Some((first.min(pending.first_ns), last.max(pending.last_ns)));
        }
    }

    /// What was pending is not.
    pub(super) fn put_back(&mut self) {
        let lines = self.lines();
        self.notice_lines.retain(|at| *at < lines);
    }

    /// Records and notices among the lines that a file begins with.
    pub(super) fn of_lines(&self, lines: u64) -> (u64, u64) {
        let notices = self.notice_lines.iter().filter(|at| **at < lines).count() as u64;
        (lines.saturating_sub(notices).min(self.records), notices)
    }

    const fn lines(&self) -> u64 {
        self.records + self.notices
    }

    /// Notes lines that go into the open frame, which begins at `offset` if there is none.
    pub(super) fn add(&mut self, lines: u64, first_ns: i64, last_ns: i64, offset: u64, now: Instant) {
        let (frame, _) = self.frame.get_or_insert((Frame { offset, first_ns, last_ns, lines: 0 }, now));
        frame.first_ns = frame.first_ns.min(first_ns);
        frame.last_ns = frame.last_ns.max(last_ns);
        frame.lines += lines;
    }
}
