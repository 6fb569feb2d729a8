//! The lines about the log itself that a writer takes up.

use std::time::Instant;

use super::super::Error;
use super::Writer;
use crate::clock::wall_ns;
use crate::record::rfc3339 as time;

impl Writer {
    /// Before the first records, since where none come nothing is missed: that an earlier process left an empty file.
    pub(super) fn say_left(&mut self, now: Instant) -> Result<(), Error> {
        let Some(since_ns) = self.left_ns.filter(|_| !self.left_said) else { return Ok(()) };
        self.left_said = true;
        let message = format!(
            "task {}: flowlog ended without closing its last file; what it had not written of the time since {} is \
             missing",
            self.spec.task,
            time(since_ns)
        );
        // As of when it was gone: from there on records are missing.
        let line = self.notices.status("NODE_GONE", &message, since_ns);
        self.begin_records(wall_ns(), now);
        self.book.add_notices(1, &self.pending);
        self.pending.notices += 1;
        self.take(&line.into(), 1, (since_ns, since_ns), now)
    }

    /// Why the task ends. Nothing where nothing was ever written.
    pub(super) fn say_gone(&mut self, now: Instant) -> Result<(), Error> {
        let Some(reason) = self.gone.as_deref().filter(|reason| !reason.is_empty()) else { return Ok(()) };
        if !self.written_ever && self.pending.waiting_bytes == 0 {
            return Ok(());
        }
        let now_ns = wall_ns();
        let message = format!("task {}: {reason}", self.spec.task);
        let line = self.notices.status("NODE_GONE", &message, now_ns);
        self.take_notice(line, 1, now_ns, now)
    }

    pub(super) fn say_losses(&mut self, now: Instant, all: bool) -> Result<(), Error> {
        let now_ns = wall_ns();
        let (lines, count) = self.losses.lines(&self.notices, now, now_ns, all);
        if count == 0 { Ok(()) } else { self.take_notice(lines, count, now_ns, now) }
    }

    pub(super) fn say_idle(&mut self, now: Instant) -> Result<(), Error> {
        let now_ns = wall_ns();
        let (from, to) = (time(self.book.begun.map_or(now_ns, |(_, ns)| ns)), time(now_ns));
        let message = format!("task {}: no records from {from} to {to}", self.spec.task);
        let line = self.notices.status("NODE_CONNECTED", &message, now_ns);
        self.take_notice(line, 1, now_ns, now)
    }

    pub(super) fn take_notice(
        &mut self,
        lines: Vec<u8>,
        count: u64,
        now_ns: i64,
        now: Instant,
    ) -> Result<(), Error> {
        self.begin_records(now_ns, now);
        self.book.add_notices(count, &self.pending);
        self.pending.notices += count;
        self.take(&lines.into(), count, (now_ns, now_ns), now)
    }
}
