//! A task's writer and what it does in a turn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::running::{Earlier, Order, STOPPED, Shared, held_bytes};
use super::writers::{Next, Work};
use crate::clock::wall_ns;
use crate::metrics::{FileEvent, TaskCounters};
use crate::write::{Chunk, Files, Place, Salvaged, Sink, Spec};

/// A writer, or the settings by which none could be opened.
pub(super) struct Desk {
    writer: Result<Sink, Spec>,
    files: Files,
    /// Why the last file is not as it should be.
    failed: Option<String>,
    /// What came while no file could be opened.
    unopened: Option<Earlier>,
    before: LossesBefore,
    shared: Arc<Shared>,
}

/// How long a turn goes on while there is more to do.
const TURN: Duration = Duration::from_millis(1);

impl Work for Desk {
    fn turn(&mut self) -> Next {
        catch_unwind(AssertUnwindSafe(|| self.work())).unwrap_or_else(|_| {
            tracing::error!(task = %self.shared.name, "the writer died; its last records may be missing from the file");
            self.shared.stop(std::mem::take(&mut self.files), self.failed.take());
            Next::Done
        })
    }
}

impl Desk {
    pub(super) const fn new(writer: Sink, before: LossesBefore, shared: Arc<Shared>) -> Self {
        Self { writer: Ok(writer), files: Files::new(), failed: None, unopened: None, before, shared }
    }

    fn work(&mut self) -> Next {
        self.shared.counters.trouble.busy(true);
        let next = self.work_on();
        self.shared.counters.trouble.busy(false);
        next
    }

    fn work_on(&mut self) -> Next {
        let began = Instant::now();
        loop {
            let asked = self.shared.reshape.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(spec) = asked {
                self.close();
                self.open(&spec);
            }
            self.note();
            match self.shared.next() {
                Order::Write(chunk) => {
                    self.append(&chunk);
                    let bytes = held_bytes(&chunk);
                    drop(chunk);
                    self.shared.release(bytes);
                }
                Order::Close => {
                    self.say_goodbye();
                    self.close();
                    self.clear();
                    self.shared.stop(std::mem::take(&mut self.files), self.failed.take());
                    return Next::Done;
                }
                Order::Nothing => {
                    self.tick();
                    return Next::Sleep(self.writer.as_ref().ok().and_then(Sink::deadline));
                }
            }
            if began.elapsed() >= TURN {
                return Next::Again;
            }
        }
    }

    /// Deletes what a task that is gone leaves, where that is configured.
    fn clear(&mut self) {
        let gone = self.shared.is_gone.load(std::sync::atomic::Ordering::Relaxed);
        let Some(writer) = self.writer.as_mut().ok().filter(|_| gone) else { return };
        match writer.clear() {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "the files of a task that is gone are deleted"),
            Err(error) => tracing::warn!(%error, "the files of a task that is gone stay"),
        }
        self.account();
    }

    fn open(&mut self, spec: &Spec) {
        match Sink::open(spec, &self.shared.roots) {
            Ok((writer, salvaged)) => {
                if let Some(salvaged) = salvaged {
                    tracing::warn!(task = spec.task, file = %salvaged.path.display(), records = salvaged.records,
                        damaged = salvaged.damaged, what = %salvaged.what, "something was in the file's place");
                    note_salvaged(&self.shared.counters, &salvaged);
                }
                self.writer = Ok(writer);
                if let (Some(lost), Ok(writer)) = (self.unopened.take(), &mut self.writer) {
                    writer.note_lost(lost.place, lost.records, lost.first_ns, lost.last_ns, &lost.reason);
                }
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
            Ok(writer) => drop(writer.append(chunk, self.shared.patient.load(Ordering::Relaxed))),
            Err(_) => self.lose(chunk),
        }
        self.account();
    }

    /// Counts what came while no file could be opened; the next one tells of it.
    fn lose(&mut self, chunk: &Chunk) {
        let counters = &self.shared.counters;
        counters.dropped_write_error.add(chunk.records.into());
        let reason = counters.trouble.get().unwrap_or_default().to_string();
        let (first_ns, last_ns) = (chunk.first_ns, chunk.last_ns);
        let place = Place::File;
        let lost = self.unopened.get_or_insert(Earlier { place, records: 0, first_ns, last_ns, reason });
        lost.records += u64::from(chunk.records);
        lost.last_ns = lost.last_ns.max(last_ns);
    }

    fn tick(&mut self) {
        if let Ok(writer) = &mut self.writer {
            let _ = writer.tick(Instant::now());
        }
        self.account();
    }

    fn close(&mut self) {
        if let Ok(writer) = &mut self.writer
            && let Err(error) = writer.close(self.shared.patient.load(Ordering::Relaxed))
        {
            tracing::warn!(%error, "the file could not be closed properly");
            self.failed = Some(error.to_string());
        }
        self.account();
    }

    fn note(&mut self) {
        if let Ok(writer) = &mut self.writer {
            self.before.note(writer, &self.shared.counters);
            let earlier =
                std::mem::take(&mut *self.shared.earlier.lock().unwrap_or_else(PoisonError::into_inner));
            for Earlier { place, records, first_ns, last_ns, reason } in earlier {
                writer.note_lost(place, records, first_ns, last_ns, &reason);
            }
        }
    }

    fn say_goodbye(&mut self) {
        match &mut self.writer {
            Ok(writer) => writer.gone(self.shared.reason.get().unwrap_or(&STOPPED)),
            Err(_) => self.failed = self.shared.counters.trouble.get().map(|why| why.to_string()),
        }
    }

    fn account(&mut self) {
        let Ok(writer) = &mut self.writer else { return };
        let (written, counters) = (writer.take_written(), &self.shared.counters);
        counters.written.add(written.records);
        if written.records > 0 {
            counters.written_last_ns.set(u64::try_from(wall_ns()).unwrap_or(0));
        }
        counters.written_bytes.add(written.bytes);
        counters.disk_bytes.add(written.disk_bytes);
        counters.dropped_write_error.add(written.lost);
        counters.gone.add(written.gone);
        counters.rotations.add(written.rotations);
        counters.notices.add(written.notices);
        counters.passed_over.add(written.passed_over);
        counters.trouble.set(writer.trouble());
        let files = writer.take_files();
        for (path, why) in &files.deleted {
            counters.news.add(FileEvent { event: "file_deleted", path: path.clone(), why: why.clone() });
        }
        for path in &files.paths {
            counters.news.add(FileEvent { event: "file_finished", path: path.clone(), why: String::new() });
        }
        self.files.join(files);
    }
}

/// Notes for `audit.log` what stood in the live file's place.
pub(crate) fn note_salvaged(counters: &TaskCounters, salvaged: &Salvaged) {
    let (path, why) = (salvaged.path.clone(), salvaged.what.clone());
    counters.news.add(FileEvent { event: "file_salvaged", path, why });
}

/// Losses before the writer, handed to it so that the file says so: what found the queue full, and what was more than
/// the task's `rateLimit`.
pub(super) struct LossesBefore {
    queue: u64,
    rate: u64,
    checked_ns: i64,
}

impl LossesBefore {
    pub(super) fn new(counters: &TaskCounters) -> Self {
        Self {
            queue: counters.dropped_queue_full.get(),
            rate: counters.rate_limited.get(),
            checked_ns: wall_ns(),
        }
    }

    fn note(&mut self, writer: &mut Sink, counters: &TaskCounters) {
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
