//! A task at work: its queue, its writer on a thread of its own, its counters.
//!
//! One slow disk holds up only the task that writes to it: the queue is bounded, and what finds it full is counted
//! as dropped.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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

/// What a writer's thread is told.
enum Order {
    Write(Chunk),
    /// Look at [`Shared::reshape`].
    Look,
}

/// What a task and its writer's thread both see.
#[derive(Debug)]
struct Shared {
    roots: Arc<Roots>,
    counters: Arc<TaskCounters>,
    /// Other settings for the file, until the writer has taken them.
    reshape: Mutex<Option<Spec>>,
    /// Why it stops, for the task's last line.
    reason: OnceLock<&'static str>,
    /// Losses before this process, for the file to tell.
    earlier: Mutex<Vec<Earlier>>,
}

/// Records that a daemon before this one lost.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// At most so many.
    pub records: u64,
    /// From when on, nanoseconds since the Unix epoch.
    pub first_ns: i64,
    /// Until when.
    pub last_ns: i64,
    /// In words.
    pub reason: String,
}

/// A running task.
#[derive(Debug)]
pub struct Running {
    name: Arc<str>,
    shared: Arc<Shared>,
    sender: SyncSender<Order>,
    thread: JoinHandle<Option<PathBuf>>,
}

/// A task that was told to stop and writes what is queued.
#[derive(Debug)]
pub struct Closing {
    name: Arc<str>,
    counters: Arc<TaskCounters>,
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
    /// Opens the task's file and starts its writer, which goes on with the counters. Gives back what a killed process
    /// had left in the file's place.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread cannot be started.
    pub fn start(
        spec: &Spec,
        roots: &Arc<Roots>,
        counters: Arc<TaskCounters>,
    ) -> Result<(Self, Option<Salvaged>), Error> {
        let (writer, salvaged) = Writer::open(spec, roots)?;
        let (sender, receiver) = sync_channel(WRITER_QUEUE_CHUNKS);
        let shared = Arc::new(Shared {
            roots: Arc::clone(roots),
            counters,
            reshape: Mutex::default(),
            reason: OnceLock::new(),
            earlier: Mutex::default(),
        });
        let name: Arc<str> = spec.task.as_str().into();
        let seen = Arc::clone(&shared);
        // Before the thread: what is dropped while it starts is the file's to tell.
        let before = LossesBefore::new(&shared.counters);
        let thread = Builder::new()
            .name("flowlog-write".into())
            .stack_size(512 << 10)
            .spawn(move || write_all(writer, &receiver, &seen, before))
            .map_err(|source| Error::Io {
                task: spec.task.clone(),
                what: "start a thread for",
                path: spec.live_path(),
                source,
            })?;
        Ok((Self { name, shared, sender, thread }, salvaged))
    }

    /// The task's name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The task's counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<TaskCounters> {
        &self.shared.counters
    }

    /// Hands records to the writer.
    pub fn write(&self, chunk: Chunk, overflow: Overflow) {
        let records = u64::from(chunk.records);
        let (bytes, queued) = (chunk.lines.len() as u64, &self.shared.counters.queued_bytes);
        if overflow == Overflow::Drop && queued.get() > 0 && queued.get() + bytes > WRITER_QUEUE_BYTES {
            self.shared.counters.dropped_queue_full.add(records);
            return;
        }
        queued.add(bytes); // first: the writer may take it before the next line
        let refused = match overflow {
            Overflow::Wait => self.sender.send(Order::Write(chunk)).is_err(),
            Overflow::Drop => match self.sender.try_send(Order::Write(chunk)) {
                Ok(()) => false,
                Err(TrySendError::Full(_)) => {
                    queued.sub(bytes);
                    self.shared.counters.dropped_queue_full.add(records);
                    return;
                }
                Err(TrySendError::Disconnected(_)) => true,
            },
        };
        if refused {
            // The writer's thread is gone, which only a panic there can do.
            queued.sub(bytes);
            self.shared.counters.dropped_write_error.add(records);
        }
    }

    /// Has the file tell of what was lost before this process began.
    pub fn note_lost(&self, lost: Earlier) {
        self.shared.earlier.lock().unwrap_or_else(PoisonError::into_inner).push(lost);
        let _ = self.sender.try_send(Order::Look);
    }

    /// Other settings for the same live file: it is finished, and the next one begins with them.
    pub fn reshape(&self, spec: Spec) {
        *self.shared.reshape.lock().unwrap_or_else(PoisonError::into_inner) = Some(spec);
        // A full queue makes the writer look by itself.
        let _ = self.sender.try_send(Order::Look);
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
        Closing { name: self.name, counters: Arc::clone(&self.shared.counters), thread: self.thread }
    }

    /// Writes what is queued, closes the file and waits for it.
    #[must_use]
    pub fn finish(self) -> Finished {
        self.close().wait()
    }
}

impl Closing {
    /// The task's name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether everything is written and closed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for it.
    #[must_use]
    pub fn wait(self) -> Finished {
        let Self { name, counters, thread } = self;
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
    writer: Writer,
    orders: &Receiver<Order>,
    shared: &Shared,
    before: LossesBefore,
) -> Option<PathBuf> {
    let mut desk = Desk { writer: Ok(writer), last_file: None, before, shared };
    loop {
        let deadline = desk.writer.as_ref().ok().and_then(Writer::deadline);
        let next = match deadline {
            Some(at) => orders.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let asked = shared.reshape.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(spec) = asked {
            desk.close();
            desk.open(&spec);
        }
        desk.note();
        match &next {
            Ok(Order::Write(chunk)) => {
                desk.append(chunk);
                shared.counters.queued_bytes.sub(chunk.lines.len() as u64);
            }
            Ok(Order::Look) => {}
            Err(RecvTimeoutError::Timeout) => desk.tick(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    desk.say_goodbye();
    desk.close();
    desk.last_file
}

/// A writer's thread with its writer, or with the settings by which none could be opened.
struct Desk<'a> {
    writer: Result<Writer, Spec>,
    last_file: Option<PathBuf>,
    before: LossesBefore,
    shared: &'a Shared,
}

impl Desk<'_> {
    fn open(&mut self, spec: &Spec) {
        match Writer::open(spec, &self.shared.roots) {
            Ok((writer, salvaged)) => {
                if let Some(salvaged) = salvaged {
                    tracing::warn!(task = spec.task, file = %salvaged.path.display(), records = salvaged.records,
                        damaged = salvaged.damaged, "kept what was in the file's place");
                }
                self.writer = Ok(writer);
            }
            Err(error) => {
                tracing::warn!(%error, "no file could be begun; trying again with the next records");
                self.shared.counters.trouble.set(Some(&error.to_string()));
                self.writer = Err(spec.clone());
            }
        }
    }

    fn append(&mut self, chunk: &Chunk) {
        let spec = match &self.writer {
            Ok(writer) => writer.spec(),
            Err(spec) => spec,
        };
        // Records of one format only: those that were encoded before a change of it may come after the change.
        if self.writer.is_err() || spec.format != chunk.format {
            let spec = Spec { format: chunk.format, ..spec.clone() };
            self.close();
            self.open(&spec);
        }
        match &mut self.writer {
            // The writer itself tries again, counts and tells the log; its state says what the trouble is.
            Ok(writer) => drop(writer.append(chunk)),
            Err(_) => self.shared.counters.dropped_write_error.add(chunk.records.into()),
        }
        self.account();
    }

    fn tick(&mut self) {
        if let Ok(writer) = &mut self.writer {
            let _ = writer.tick(Instant::now());
        }
        self.account();
    }

    fn close(&mut self) {
        if let Ok(writer) = &mut self.writer {
            match writer.close() {
                Ok(closed) => self.last_file = closed.path.or(self.last_file.take()),
                Err(error) => tracing::warn!(%error, "the file could not be closed properly"),
            }
        }
        self.account();
    }

    fn note(&mut self) {
        if let Ok(writer) = &mut self.writer {
            self.before.note(writer, &self.shared.counters);
            let earlier =
                std::mem::take(&mut *self.shared.earlier.lock().unwrap_or_else(PoisonError::into_inner));
            for Earlier { records, first_ns, last_ns, reason } in earlier {
                writer.note_lost(Place::Restart, records, first_ns, last_ns, &reason);
            }
        }
    }

    fn say_goodbye(&mut self) {
        if let Ok(writer) = &mut self.writer
            && let Err(error) = writer.gone(self.shared.reason.get().unwrap_or(&STOPPED))
        {
            tracing::warn!(%error, "the task's last line is missing");
        }
    }

    fn account(&mut self) {
        let Ok(writer) = &mut self.writer else { return };
        let (written, counters) = (writer.take_written(), &self.shared.counters);
        counters.written.add(written.records);
        counters.written_bytes.add(written.bytes);
        counters.disk_bytes.add(written.disk_bytes);
        counters.dropped_write_error.add(written.lost);
        counters.rotations.add(written.rotations);
        counters.notices.add(written.notices);
        counters.trouble.set(writer.trouble());
    }
}

/// Losses before the writer, handed to it so that the file says so: what found the queue full, and what was more than
/// the task's `rateLimit`.
struct LossesBefore {
    queue: u64,
    rate: u64,
    checked_ns: i64,
}

impl LossesBefore {
    fn new(counters: &TaskCounters) -> Self {
        Self {
            queue: counters.dropped_queue_full.get(),
            rate: counters.rate_limited.get(),
            checked_ns: wall_ns(),
        }
    }

    fn note(&mut self, writer: &mut Writer, counters: &TaskCounters) {
        let now_ns = wall_ns();
        for (seen, now, place, why) in [
            (&mut self.queue, counters.dropped_queue_full.get(), Place::Queue, "the task's queue was full"),
            (
                &mut self.rate,
                counters.rate_limited.get(),
                Place::RateLimit,
                "the task's rateLimit was reached",
            ),
        ] {
            if now > *seen {
                writer.note_lost(place, now - *seen, self.checked_ns, now_ns, why);
                *seen = now;
            }
        }
        self.checked_ns = now_ns;
    }
}

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
            mode: 0o640,
            owner: Owner::default(),
            sync: Sync::None,
            on_full: OnFull::Drop,
            definition: Definition::default(),
        }
    }

    #[test]
    fn what_is_lost_while_the_writer_starts_is_told_in_the_file() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let roots = Arc::new(Roots::new(&[folder.path().into()]).unwrap());
            let (running, _) = Running::start(&spec(folder.path()), &roots, Arc::default()).unwrap();
            running.counters().dropped_queue_full.add(7); // most often before the thread's first step
            let lines = Bytes::from_static(b"{\"flow\":{}}\n");
            running.write(
                Chunk {
                    format: crate::record::Format::Json,
                    lines,
                    records: 1,
                    seen_from_ns: 0,
                    first_ns: 0,
                    last_ns: 0,
                },
                Overflow::Wait,
            );
            let file = running.finish().last_file.unwrap();
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
        let lines = Bytes::from(vec![b'\n'; 16 << 20]);
        let chunk = Chunk {
            format: crate::record::Format::Json,
            lines,
            records: 1,
            seen_from_ns: 0,
            first_ns: 0,
            last_ns: 0,
        };
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
