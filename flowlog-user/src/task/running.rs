//! A task at work: its queue, its writer on a thread of its own, its counters.
//!
//! One slow disk holds up only the task that writes to it: the queue is bounded, and what finds it full is counted
//! as dropped.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use crate::clock::wall_ns;
use crate::limits::{WRITER_QUEUE_BYTES, WRITER_QUEUE_CHUNKS};
use crate::metrics::TaskCounters;
use crate::write::{Chunk, Error, Place, Roots, Salvaged, Spec, Writer};

/// What to do with a chunk that finds the queue full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Drop and count it: the live path never waits for a disk.
    Drop,
    /// Wait: a replay has all the time there is.
    Wait,
}

/// A running task.
#[derive(Debug)]
pub struct Running {
    name: Arc<str>,
    counters: Arc<TaskCounters>,
    sender: SyncSender<Chunk>,
    /// Why it stops, for the task's last line.
    reason: Arc<OnceLock<&'static str>>,
    thread: JoinHandle<Option<PathBuf>>,
}

/// A task that has stopped.
#[derive(Debug)]
pub struct Finished {
    /// Its name.
    pub name: Arc<str>,
    /// What became of its records.
    pub counters: Arc<TaskCounters>,
    /// The last file it finished, if it wrote any since the last rotation.
    pub last_file: Option<PathBuf>,
}

impl Running {
    /// Opens the task's file and starts its writer. Gives back what a killed process had left in the file's place.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread cannot be started.
    pub fn start(spec: &Spec, roots: &Roots) -> Result<(Self, Option<Salvaged>), Error> {
        let (writer, salvaged) = Writer::open(spec, roots)?;
        let (sender, receiver) = sync_channel(WRITER_QUEUE_CHUNKS);
        let counters = Arc::new(TaskCounters::default());
        let shared = Arc::clone(&counters);
        let reason = Arc::new(OnceLock::new());
        let why = Arc::clone(&reason);
        let name: Arc<str> = spec.task.as_str().into();
        let thread = Builder::new()
            .name("flowlog-write".into())
            .stack_size(512 << 10)
            .spawn(move || write_all(writer, &receiver, &shared, &why))
            .map_err(|source| Error::Io {
                task: spec.task.clone(),
                what: "start a thread for",
                path: spec.live_path(),
                source,
            })?;
        Ok((Self { name, counters, sender, reason, thread }, salvaged))
    }

    /// The task's name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The task's counters.
    #[must_use]
    pub const fn counters(&self) -> &Arc<TaskCounters> {
        &self.counters
    }

    /// Hands records to the writer.
    pub fn write(&self, chunk: Chunk, overflow: Overflow) {
        let records = u64::from(chunk.records);
        let (bytes, queued) = (chunk.lines.len() as u64, &self.counters.queued_bytes);
        if overflow == Overflow::Drop && queued.get() > 0 && queued.get() + bytes > WRITER_QUEUE_BYTES {
            self.counters.dropped_queue_full.add(records);
            return;
        }
        queued.add(bytes); // first: the writer may take it before the next line
        let refused = match overflow {
            Overflow::Wait => self.sender.send(chunk).is_err(),
            Overflow::Drop => match self.sender.try_send(chunk) {
                Ok(()) => false,
                Err(TrySendError::Full(_)) => {
                    queued.sub(bytes);
                    self.counters.dropped_queue_full.add(records);
                    return;
                }
                Err(TrySendError::Disconnected(_)) => true,
            },
        };
        if refused {
            // The writer's thread is gone, which only a panic there can do.
            queued.sub(bytes);
            self.counters.dropped_write_error.add(records);
        }
    }

    /// Writes what is queued, closes the file and waits for it.
    #[must_use]
    pub fn finish(self) -> Finished {
        self.finish_because(STOPPED)
    }

    /// As [`Self::finish`], but without a last line of ours: what was recorded elsewhere is written as it came.
    #[must_use]
    pub fn finish_recorded(self) -> Finished {
        self.finish_because("")
    }

    /// As [`Self::finish`], with another reason in the file's last line.
    #[must_use]
    pub fn finish_because(self, why: &'static str) -> Finished {
        let Self { name, counters, sender, reason, thread } = self;
        reason.get_or_init(|| why);
        drop(sender);
        let last_file = thread.join().unwrap_or_else(|_| {
            tracing::error!(task = %name, "the writer died; its last records may be missing from the file");
            None
        });
        Finished { name, counters, last_file }
    }
}

/// Why a task stops when nobody says otherwise.
const STOPPED: &str = "flowlog was stopped";

fn write_all(
    mut writer: Writer,
    chunks: &Receiver<Chunk>,
    counters: &TaskCounters,
    reason: &OnceLock<&'static str>,
) -> Option<PathBuf> {
    let mut queue = QueueLosses { seen: 0, checked_ns: wall_ns() };
    loop {
        let next = match writer.deadline() {
            Some(at) => chunks.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => chunks.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        queue.note(&mut writer, counters);
        // The writer itself tries again, counts and tells the log; its state says what the trouble is.
        let _ = match &next {
            Ok(chunk) => {
                let outcome = writer.append(chunk);
                counters.queued_bytes.sub(chunk.lines.len() as u64);
                outcome
            }
            Err(RecvTimeoutError::Timeout) => writer.tick(Instant::now()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        account(&mut writer, counters);
    }
    if let Err(error) = writer.gone(reason.get().unwrap_or(&STOPPED)) {
        tracing::warn!(%error, "the task's last line is missing");
    }
    let last_file = writer.close().map(|closed| closed.path).unwrap_or_else(|error| {
        tracing::warn!(%error, "the file could not be closed properly");
        None
    });
    account(&mut writer, counters);
    last_file
}

/// What found the queue full, handed to the writer so that the file says so.
struct QueueLosses {
    seen: u64,
    checked_ns: i64,
}

impl QueueLosses {
    fn note(&mut self, writer: &mut Writer, counters: &TaskCounters) {
        let (now, now_ns) = (counters.dropped_queue_full.get(), wall_ns());
        if now > self.seen {
            writer.note_lost(
                Place::Queue,
                now - self.seen,
                self.checked_ns,
                now_ns,
                "the task's queue was full",
            );
            self.seen = now;
        }
        self.checked_ns = now_ns;
    }
}

fn account(writer: &mut Writer, counters: &TaskCounters) {
    let written = writer.take_written();
    counters.written.add(written.records);
    counters.written_bytes.add(written.bytes);
    counters.disk_bytes.add(written.disk_bytes);
    counters.dropped_write_error.add(written.lost);
    counters.rotations.add(written.rotations);
    counters.notices.add(written.notices);
    counters.trouble.set(writer.trouble());
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::write::{Compression, Definition, OnFull, Owner, Sync};

    #[test]
    fn a_writer_that_falls_behind_keeps_no_more_than_the_queue_may_hold() {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec {
            task: "t".into(),
            path: folder.path().join("a.log"),
            compression: Compression::Zstd { level: 1 },
            size_bytes_max: 1 << 30,
            total_bytes_max: 1 << 30,
            age_max: None,
            free_percent_min: None,
            rotation_interval: None,
            mode: 0o640,
            owner: Owner::default(),
            sync: Sync::None,
            on_full: OnFull::Drop,
            definition: Definition::default(),
        };
        let roots = Roots::new(&[folder.path().into()]).unwrap();
        let (running, _) = Running::start(&spec, &roots).unwrap();
        // Far more than is written while this loop runs: each chunk is compressed, and none of them copied here.
        let lines = Bytes::from(vec![b'\n'; 16 << 20]);
        let chunk = Chunk { lines, records: 1, seen_from_ns: 0, first_ns: 0, last_ns: 0 };
        for _ in 0..64 {
            running.write(chunk.clone(), Overflow::Drop);
            assert!(running.counters().queued_bytes.get() <= WRITER_QUEUE_BYTES);
        }
        let counters = running.finish().counters;
        let dropped = counters.dropped_queue_full.get();
        assert!(dropped > 0, "a gibibyte was queued");
        assert_eq!(counters.written.get() + dropped, 64);
        assert_eq!(counters.queued_bytes.get(), 0);
    }
}
