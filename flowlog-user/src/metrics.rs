//! The daemon's counters. Every record of a task ends in exactly one of them.
//!
//! In: increments from the data plane. Out: snapshots that close: `decoded = matched + not_matched` and
//! `matched + aggregates = written + queued + dropped + rate_limited + passed_over + aggregated`. What never happens here: I/O.

mod news;
mod talkers;
mod tally;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::HANG_MS;

pub use news::{FileEvent, FileNews};
pub use talkers::{Pair, Sent, Talkers};
pub use tally::Tally;

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The value so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An amount that grows and shrinks.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Adds.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Takes away what was added before.
    pub fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }

    /// Makes it this amount.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The amount now.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What became of the records shown to one task (records, unless the name says otherwise).
#[derive(Debug, Default)]
pub struct TaskCounters {
    /// Records of the task's cadence that were shown to its filter.
    pub decoded: Counter,
    /// Taken by the filter.
    pub matched: Counter,
    /// Not taken by the filter.
    pub not_matched: Counter,
    /// In a file: handed to the kernel by a successful write.
    pub written: Counter,
    /// Of them, those that are gone with a live file that somebody else deleted or cut short.
    pub gone: Counter,
    /// When the last record was written (nanoseconds since the Unix epoch); 0 before the first.
    pub written_last_ns: Gauge,
    /// Bytes of the same before compression.
    pub written_bytes: Counter,
    /// Bytes on disk.
    pub disk_bytes: Counter,
    /// Left out because the task's `rateLimit` was reached.
    pub rate_limited: Counter,
    /// Records that went into an aggregated line instead of one of their own.
    pub aggregated: Counter,
    /// Aggregated lines made of them.
    pub aggregates: Counter,
    /// Of the records, those for whose key there was no room: they share the overflow line.
    pub aggregate_overflow: Counter,
    /// Bytes of lines that wait for the task's writer.
    pub queued_bytes: Gauge,
    /// Dropped because the task's queue was full.
    pub dropped_queue_full: Counter,
    /// Dropped because the file could not be written.
    pub dropped_write_error: Counter,
    /// Not shown because more were not asked for (`flowlog observe --first` and `--last`).
    pub passed_over: Counter,
    /// Files finished under their final name.
    pub rotations: Counter,
    /// Lines about the log itself (losses, the task's end) in the files, beside the records.
    pub notices: Counter,
    /// Why nothing is written at the moment; nothing while all is well.
    pub trouble: Trouble,
    /// What happened to its files.
    pub news: FileNews,
}

/// What keeps a task from writing.
#[derive(Debug, Default)]
pub struct Trouble {
    text: Mutex<Option<Arc<str>>>,
    /// Since when its writer has been at something that may not return.
    busy: Mutex<Option<Instant>>,
}

impl Trouble {
    /// Takes the state as it is now.
    pub fn set(&self, text: Option<&str>) {
        let mut held = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if held.as_deref() != text {
            *held = text.map(Into::into);
        }
    }

    /// Its writer turns to the disk, or has come back from it.
    pub fn busy(&self, busy: bool) {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) = busy.then(Instant::now);
    }

    /// The state. A disk that hangs tells nothing, so that it is deduced from its silence.
    #[must_use]
    pub fn get(&self) -> Option<Arc<str>> {
        let busy = *self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = busy.map(|since| since.elapsed())
            && since >= Duration::from_millis(HANG_MS)
        {
            let seconds = since.as_secs();
            return Some(
                format!("the disk has not answered for {seconds} s; records wait in the queue").into(),
            );
        }
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
