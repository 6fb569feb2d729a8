//! A task's writer and what it does in a turn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::running::{Earlier, Order, STOPPED, Shared};
use super::writers::{Next, Work};
use crate::clock::wall_ns;
use crate::metrics::TaskCounters;
use crate::write::{Chunk, Place, Sink, Spec};

/// A writer, or the settings by which none could be opened.
pub(super) struct Desk {
    writer: Result<Sink, Spec>,
    last_file: Option<PathBuf>,
    before: LossesBefore,
    shared: Arc<Shared>,
}

/// How long a turn goes on while there is more to do.
const TURN: Duration = Duration::from_millis(1);

impl Work for Desk {
    fn turn(&mut self) -> Next {
        catch_unwind(AssertUnwindSafe(|| self.work())).unwrap_or_else(|_| {
            tracing::error!(task = %self.shared.name, "the writer died; its last records may be missing from the file");
            self.shared.stop(self.last_file.take());
            Next::Done
        })
    }
}

impl Desk {
    pub(super) const fn new(writer: Sink, before: LossesBefore, shared: Arc<Shared>) -> Self {
        Self { writer: Ok(writer), last_file: None, before, shared }
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
                    let bytes = chunk.lines.len() as u64;
                    drop(chunk);
                    self.shared.release(bytes);
                }
                Order::Close => {
                    self.say_goodbye();
                    self.close();
                    self.clear();
                    self.shared.stop(self.last_file.take());
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
            Ok(files) => {
                tracing::info!(files, "the files of a task that is gone are deleted");
                self.last_file = None;
            }
            Err(error) => tracing::warn!(%error, "the files of a task that is gone stay"),
        }
    }

    fn open(&mut self, spec: &Spec) {
        match Sink::open(spec, &self.shared.roots) {
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
            Ok(writer) => drop(writer.append(chunk, self.shared.patient.load(Ordering::Relaxed))),
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
            match writer.close(self.shared.patient.load(Ordering::Relaxed)) {
                Ok(path) => self.last_file = path.or(self.last_file.take()),
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
        if written.records > 0 {
            counters.written_last_ns.set(u64::try_from(wall_ns()).unwrap_or(0));
        }
        counters.written_bytes.add(written.bytes);
        counters.disk_bytes.add(written.disk_bytes);
        counters.dropped_write_error.add(written.lost);
        counters.rotations.add(written.rotations);
        counters.notices.add(written.notices);
        counters.passed_over.add(written.passed_over);
        counters.trouble.set(writer.trouble());
    }
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
