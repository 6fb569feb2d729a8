//! When a writer has something to do.

use std::time::{Duration, Instant};

use super::super::{OnFull, period};
use super::Writer;
use crate::clock::wall_ns;
use crate::limits::{AGE_CHECK_MS, FIRST_FLUSH_MS, FLUSH_MS, FRAME_MS_MAX};

impl Writer {
    pub(super) fn rotation_at(&self) -> Option<Instant> {
        Some(self.book.first?.1 + self.interval()?)
    }

    /// When a file that holds nothing is finished with a line that says so.
    pub(super) fn idle_rotation_at(&self) -> Option<Instant> {
        let interval = self.interval().filter(|_| self.book.first.is_none())?;
        Some(self.book.begun?.0 + interval)
    }

    /// The interval of files that do not end with the clock.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.spec.rotation_interval.filter(|_| !self.spec.rotation_aligned)
    }

    /// When the period of the clock ends to which the file belongs. A file that holds nothing belongs to none, unless
    /// that is to be told.
    pub(super) fn period_end_ns(&self) -> Option<i64> {
        self.book.ends_ns.filter(|_| self.book.first.is_some() || self.spec.rotation_aligned)
    }

    /// Where the oldest files are to make room, a file ends before it fills the file system alone.
    pub(super) fn size_bytes_max(&self) -> u64 {
        let quarter = match self.spec.on_full {
            OnFull::DeleteOldest => self.folder.total_bytes().map_or(u64::MAX, |bytes| bytes / 4),
            OnFull::Drop => u64::MAX,
        };
        self.spec.size_bytes_max.min(quarter)
    }

    pub(super) fn begin_book(&mut self, now: Instant) {
        let wall_ns = wall_ns();
        self.book.begun = Some((now, wall_ns));
        if self.book.first.is_none() {
            self.book.ends_ns = period::end_ns(&self.spec, self.names.is_dated(), wall_ns);
        }
    }

    /// Notes that the file holds something from now on.
    pub(super) fn begin_records(&mut self, first_ns: i64, now: Instant) {
        if self.book.first.is_none() {
            self.book.first = Some((first_ns, now));
            self.book.ends_ns = period::end_ns(&self.spec, self.names.is_dated(), wall_ns());
        }
    }

    pub(super) fn frame_end_at(&self) -> Option<Instant> {
        let (_, since) = self.book.frame.filter(|_| self.encoder.buffers())?;
        Some(since + Duration::from_millis(FRAME_MS_MAX))
    }

    pub(super) fn flush_at(&self) -> Option<Instant> {
        let first = self.live.as_ref().is_some_and(|live| live.bytes == 0);
        Some(self.pending.since? + Duration::from_millis(if first { FIRST_FLUSH_MS } else { FLUSH_MS }))
    }

    pub(super) fn age_check_at(&self) -> Option<Instant> {
        let age_max = self.spec.age_max.filter(|_| !self.backlog.is_empty())?;
        Some(self.aged + age_max.clamp(Duration::from_secs(1), Duration::from_millis(AGE_CHECK_MS)))
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.aged = now;
        if let Some(age_max) = self.spec.age_max {
            self.backlog.expire(&self.folder, age_max);
        }
    }
}
