//! A task at work: its queue, its writer with turns on the threads of [`super::writers`], its counters.
//!
//! One slow disk holds up only the tasks that write to it: queues are bounded, and what finds its queue full is counted
//! as dropped.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::desk::{Desk, LossesBefore};
use super::writers::{Calls, Post, WRITERS};
use crate::limits::{WRITER_CHUNK_BYTES, WRITER_QUEUE_BYTES, WRITER_QUEUES_BYTES};
use crate::metrics::TaskCounters;
use crate::write::{Chunk, Error, Files, Place, Roots, Salvaged, Sink, Spec};

/// What to do with a chunk that finds the queue full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Drop and count it: the live path never waits for a disk.
    Drop,
    /// Wait: a replay has all the time there is.
    Wait,
}

/// What a task and its writer both see.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: Arc<str>,
    is_stdout: bool,
    pub(super) roots: Arc<Roots>,
    pub(super) counters: Arc<TaskCounters>,
    /// Other settings for the file, until the writer has taken them.
    pub(super) reshape: Mutex<Option<Spec>>,
    /// Why it stops, for the task's last line.
    pub(super) reason: OnceLock<&'static str>,
    /// Losses before the task, for the file to tell.
    pub(super) earlier: Mutex<Vec<Earlier>>,
    /// Records come from a replay, which has all the time there is.
    pub(super) patient: AtomicBool,
    /// It is gone for good.
    pub(super) is_gone: AtomicBool,
    queue: Mutex<Queue>,
    /// The queue has become shorter, or the task has stopped.
    moved: Condvar,
}

/// Records that were lost earlier on their way than at the task.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// Where.
    pub place: Place,
    /// At most so many.
    pub records: u64,
    /// From when on, nanoseconds since the Unix epoch.
    pub first_ns: i64,
    /// Until when.
    pub last_ns: i64,
    /// In words.
    pub reason: String,
}

#[derive(Debug, Default)]
struct Queue {
    chunks: std::collections::VecDeque<Chunk>,
    closing: bool,
    /// It has stopped; the files it has finished, and why the last is not as it should be.
    stopped: Option<(Files, Option<String>)>,
}

/// What the writer finds in its queue.
#[derive(Debug)]
pub(super) enum Order {
    Write(Chunk),
    Close,
    Nothing,
}

/// Bytes that wait for all writers, and tasks that have one.
static QUEUED_BYTES: AtomicU64 = AtomicU64::new(0);
static TASKS: AtomicU64 = AtomicU64::new(0);

/// A running task.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    post: Arc<Post>,
}

/// A task that was told to stop and writes what is queued.
#[derive(Debug)]
pub struct Closing {
    shared: Arc<Shared>,
}

/// A task that has stopped.
#[derive(Debug)]
pub struct Finished {
    /// Its name.
    pub name: Arc<str>,
    /// What became of its records.
    pub counters: Arc<TaskCounters>,
    /// Whether its records went to stdout.
    pub is_stdout: bool,
    /// The files it has finished, or left behind where that failed.
    pub files: Files,
    /// Why not everything was written at the end, or the file not closed as it should be.
    pub failed: Option<String>,
}

impl Running {
    /// Opens the task's file, which goes on with the counters. Gives back what a killed process had left in the file's
    /// place.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn start(
        spec: &Spec,
        roots: &Arc<Roots>,
        counters: Arc<TaskCounters>,
    ) -> Result<(Self, Option<Salvaged>), Error> {
        let (sink, salvaged) = Sink::open(spec, roots)?;
        let device = spec.live_path().parent().and_then(|folder| folder.metadata().ok());
        let device = device.map_or(0, |folder| folder.dev());
        Ok((Self::on(sink, device, spec, roots, counters), salvaged))
    }

    /// A task whose records go elsewhere than its spec says: to a person, or nowhere. It says nothing at its end.
    #[must_use]
    pub fn onto(sink: Sink, spec: &Spec, roots: &Arc<Roots>, counters: Arc<TaskCounters>) -> Self {
        let running = Self::on(sink, 0, spec, roots, counters);
        running.shared.reason.get_or_init(|| "");
        running
    }

    fn on(sink: Sink, device: u64, spec: &Spec, roots: &Arc<Roots>, counters: Arc<TaskCounters>) -> Self {
        let shared = Arc::new(Shared {
            name: spec.task.as_str().into(),
            is_stdout: spec.is_stdout(),
            roots: Arc::clone(roots),
            counters,
            reshape: Mutex::default(),
            reason: OnceLock::new(),
            earlier: Mutex::default(),
            patient: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            queue: Mutex::default(),
            moved: Condvar::new(),
        });
        // Before the first turn: what is dropped until then is the file's to tell.
        let before = LossesBefore::new(&shared.counters);
        let post = WRITERS.post(device, Box::new(Desk::new(sink, before, Arc::clone(&shared))));
        TASKS.fetch_add(1, Ordering::Relaxed);
        // It may have something to do at some moment, without any record.
        post.wake();
        Self { shared, post }
    }

    /// The task's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Has the file tell of what was lost before it came here.
    pub fn note_lost(&self, lost: Earlier) {
        self.shared.earlier.lock().unwrap_or_else(PoisonError::into_inner).push(lost);
        self.post.wake();
    }

    /// The task's counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<TaskCounters> {
        &self.shared.counters
    }

    /// Hands records to the writer.
    pub fn write(&self, chunk: Chunk, overflow: Overflow) {
        self.write_with(chunk, overflow, &mut Calls::default());
    }

    /// The same, of several tasks in turn, whose writers are called together.
    pub fn write_with(&self, chunk: Chunk, overflow: Overflow, calls: &mut Calls) {
        let Shared { counters, moved, .. } = &*self.shared;
        let (records, bytes) = (u64::from(chunk.records), held_bytes(&chunk));
        if overflow == Overflow::Wait {
            self.shared.patient.store(true, Ordering::Relaxed);
        }
        let mut queue = self.shared.queue();
        while queue.stopped.is_none() && !has_room(bytes, counters.queued_bytes.get()) {
            if overflow == Overflow::Drop {
                counters.dropped_queue_full.add(records);
                return;
            }
            // Nobody makes room who has not been called.
            calls.make();
            // Room may also come from other tasks, which do not say so.
            queue = moved.wait_timeout(queue, RECHECK).unwrap_or_else(PoisonError::into_inner).0;
        }
        if queue.stopped.is_some() {
            // Only a fault of the writer itself stops it before it is told to.
            counters.dropped_write_error.add(records);
            return;
        }
        counters.queued_bytes.add(bytes);
        QUEUED_BYTES.fetch_add(bytes, Ordering::Relaxed);
        queue.chunks.push_back(chunk);
        drop(queue);
        self.post.wake_with(calls);
    }

    /// Other settings for the same live file: it is finished, and the next one begins with them.
    pub fn reshape(&self, spec: Spec) {
        *self.shared.reshape.lock().unwrap_or_else(PoisonError::into_inner) = Some(spec);
        self.post.wake();
    }

    /// Lets the writer finish what is queued, without waiting for it.
    #[must_use]
    pub fn close(self) -> Closing {
        self.close_because(STOPPED)
    }

    /// As [`Self::close`], with another reason in the file's last line.
    #[must_use]
    pub fn close_because(self, why: &'static str) -> Closing {
        self.shared.reason.get_or_init(|| why);
        Closing { shared: Arc::clone(&self.shared) }
    }

    /// As [`Self::close_because`], of a task that is gone for good: its files go too where that is configured.
    #[must_use]
    pub fn remove(self, why: &'static str) -> Closing {
        self.shared.is_gone.store(true, Ordering::Relaxed);
        self.close_because(why)
    }

    /// Writes what is queued, closes the file and waits for it.
    #[must_use]
    pub fn finish(self) -> Finished {
        self.close().wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.queue().closing = true;
        self.post.wake();
    }
}

impl Closing {
    /// The task's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Whether everything is written and closed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shared.queue().stopped.is_some()
    }

    /// Waits for it.
    #[must_use]
    pub fn wait(self) -> Finished {
        let mut queue = self.shared.queue();
        let (files, failed) = loop {
            match &queue.stopped {
                Some(stopped) => break stopped.clone(),
                None => queue = self.shared.moved.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(queue);
        let Shared { name, counters, is_stdout, .. } = &*self.shared;
        Finished {
            name: Arc::clone(name),
            is_stdout: *is_stdout,
            counters: Arc::clone(counters),
            files,
            failed,
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the writer is to do next.
    pub(super) fn next(&self) -> Order {
        let mut queue = self.queue();
        match queue.chunks.pop_front() {
            Some(chunk) => Order::Write(chunk),
            None if queue.closing => Order::Close,
            None => Order::Nothing,
        }
    }

    /// A chunk that was taken is no longer in memory.
    pub(super) fn release(&self, bytes: u64) {
        self.counters.queued_bytes.sub(bytes);
        QUEUED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        self.moved.notify_all();
    }

    /// The writer has stopped. What is still queued then is lost, and counted.
    pub(super) fn stop(&self, files: Files, failed: Option<String>) {
        let mut queue = self.queue();
        for chunk in std::mem::take(&mut queue.chunks) {
            self.counters.dropped_write_error.add(chunk.records.into());
            self.release(held_bytes(&chunk));
        }
        queue.stopped = Some((files, failed));
        TASKS.fetch_sub(1, Ordering::Relaxed);
        self.moved.notify_all();
    }
}

/// Bytes that a chunk takes while it waits.
pub(super) fn held_bytes(chunk: &Chunk) -> u64 {
    chunk.lines.len() as u64 + WRITER_CHUNK_BYTES
}

/// Whether so many bytes more may wait for a task that has `own` of them waiting. While all tasks together have much
/// waiting, each has its share and no more: so those that hang leave room to the others.
fn has_room(bytes: u64, own: u64) -> bool {
    const HALF: u64 = WRITER_QUEUES_BYTES / 2;
    let all = QUEUED_BYTES.load(Ordering::Relaxed);
    let most = if all + bytes <= HALF {
        WRITER_QUEUE_BYTES
    } else {
        (HALF / TASKS.load(Ordering::Relaxed).max(1)).min(WRITER_QUEUE_BYTES)
    };
    // A single chunk always finds room while there is any.
    all == 0 || all + bytes <= WRITER_QUEUES_BYTES && (own == 0 || own + bytes <= most)
}

/// How long to wait at most before room is looked for again.
const RECHECK: Duration = Duration::from_millis(5);

/// Why a task stops when nobody says otherwise.
pub(super) const STOPPED: &str = "flowlog was stopped";

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::write::{Compression, Definition, OnFull, Owner, Sync};

    fn spec(folder: &std::path::Path) -> Spec {
        Spec {
            task: "t".into(),
            path: folder.join("a.log"),
            format: crate::record::Format::Json,
            notices: crate::write::NoticeEncoder(crate::encode::notice),
            compression: Compression::Zstd { level: 1 },
            size_bytes_max: 1 << 30,
            total_bytes_max: 1 << 30,
            age_max: None,
            free_percent_min: None,
            rotation_interval: None,
            rotation_aligned: false,
            mode: 0o640,
            owner: Owner::default(),
            sync: Sync::None,
            on_full: OnFull::Drop,
            on_end: crate::write::OnEnd::Keep,
            definition: Definition::default(),
        }
    }

    fn chunk(lines: Bytes) -> Chunk {
        let format = crate::record::Format::Json;
        Chunk { format, lines, records: 1, seen_from_ns: 0, first_ns: 0, last_ns: 0 }
    }

    #[test]
    fn what_is_lost_while_the_writer_starts_is_told_in_the_file() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let roots = Arc::new(Roots::new(&[folder.path().into()]).unwrap());
            let (running, _) = Running::start(&spec(folder.path()), &roots, Arc::default()).unwrap();
            running.counters().dropped_queue_full.add(7); // most often before the thread's first step
            running.write(chunk(Bytes::from_static(b"{\"flow\":{}}\n")), Overflow::Wait);
            let file = running.finish().files.last().cloned().unwrap();
            let text = zstd::decode_all(std::fs::File::open(file).unwrap()).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(text.contains("\"num_events_lost\":\"7\""), "{text}");
        }
    }

    #[test]
    fn a_writer_that_falls_behind_keeps_no_more_than_the_queue_may_hold() {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec(folder.path());
        let roots = Roots::new(&[folder.path().into()]).unwrap();
        let (running, _) = Running::start(&spec, &Arc::new(roots), Arc::default()).unwrap();
        // Far more than is written while this loop runs: each chunk is compressed, and none of them copied here.
        let chunk = chunk(Bytes::from(vec![b'\n'; 16 << 20]));
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
