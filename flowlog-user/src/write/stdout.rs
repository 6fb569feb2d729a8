use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::losses::{Losses, Place};
use super::notice::{Loss, Notices};
use super::show::{Show, Shown};
use super::{Chunk, Error, Spec, Written, salvage};
use crate::clock::wall_ns;
use crate::limits::{RETRY_MS, STDOUT_STALL_MS, WAITING_BYTES_MAX};
use crate::record::Format;

/// What a pipe takes without waiting once it says that it can be written to: PIPE_BUF, pipe(7).
const WRITE_BYTES: usize = 4096;
/// How long one look for room takes at most.
const LOOK_MS: u64 = 100;

/// Writes one task's records to stdout, as they come. A reader that is slow or gone holds up this task alone: what is
/// too much is lost, counted, and named to the reader when it takes records again.
pub struct Stdout {
    spec: Spec,
    notices: Notices,
    /// How records are shown, where they are not written as they are.
    show: Option<Show>,
    to: OwnedFd,
    waiting: VecDeque<Batch>,
    waiting_bytes: u64,
    losses: Losses,
    trouble: Option<String>,
    retry_at: Option<Instant>,
    written: Written,
    written_ever: bool,
}

/// Records that are written one behind the other.
struct Batch {
    bytes: Bytes,
    done: usize,
    records: u64,
    /// Records about the log itself.
    notices: u64,
    /// Where each record ends; empty where the format's framing tells.
    ends: Vec<usize>,
    times_ns: (i64, i64),
}

impl Batch {
    /// Records of which every byte is written.
    fn whole(&self, format: Format) -> u64 {
        if self.ends.is_empty() {
            let whole = self.bytes.get(..self.done).unwrap_or_default();
            return salvage::records_in(format.framing(), whole).min(self.records);
        }
        self.ends.partition_point(|end| *end <= self.done) as u64
    }

    /// The record that is written in part, if one is: the reader has its beginning and needs the rest.
    fn begun(&self, format: Format) -> Option<Self> {
        let begin = self.record_begin(format);
        let rest = self.bytes.get(begin..).filter(|_| begin < self.done)?;
        let next = self.ends.iter().copied().find(|end| *end > begin);
        let end =
            next.or_else(|| Some(begin + format.framing().first_len(rest)?)).unwrap_or(self.bytes.len());
        Some(Self {
            bytes: self.bytes.slice(begin..end),
            done: self.done - begin,
            records: 1,
            notices: 0,
            ends: vec![end - begin],
            times_ns: self.times_ns,
        })
    }

    /// Where the record begins of which something is to be written next.
    fn record_begin(&self, format: Format) -> usize {
        if self.ends.is_empty() {
            return format.framing().whole_len(self.bytes.get(..self.done).unwrap_or_default());
        }
        self.ends.iter().copied().take_while(|end| *end <= self.done).last().unwrap_or(0)
    }

    /// Bytes of the first so many records.
    fn whole_bytes(&self, format: Format, records: u64) -> u64 {
        let last = records.checked_sub(1).and_then(|last| usize::try_from(last).ok());
        let Some(last) = last else { return 0 };
        let whole = self.bytes.get(..self.done).unwrap_or_default();
        self.ends.get(last).copied().unwrap_or_else(|| format.framing().whole_len(whole)) as u64
    }
}

/// Whether there is room for a write.
enum Room {
    Yes,
    No,
    /// Nobody will ever read it.
    Gone,
}

impl Stdout {
    /// The process' own stdout.
    ///
    /// # Errors
    /// It is closed.
    pub fn open(spec: &Spec, node: &str) -> Result<Self, Error> {
        match io::stdout().as_fd().try_clone_to_owned() {
            Ok(to) => Ok(Self::new(spec, node, to)),
            Err(source) => Err(failed(spec, source)),
        }
    }

    /// The same, for records that are shown to a person. Of a reader that is gone nothing is logged.
    ///
    /// # Errors
    /// It is closed.
    pub fn shown(spec: &Spec, node: &str, show: Show) -> Result<Self, Error> {
        Ok(Self { show: Some(show), ..Self::open(spec, node)? })
    }

    fn new(spec: &Spec, node: &str, to: OwnedFd) -> Self {
        let notices = Notices {
            task: spec.task.clone(),
            node: node.into(),
            format: spec.format,
            encoder: spec.notices,
        };
        Self {
            spec: spec.clone(),
            notices,
            show: None,
            to,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            losses: Losses::default(),
            trouble: None,
            retry_at: None,
            written: Written::default(),
            written_ever: false,
        }
    }

    pub(super) const fn spec(&self) -> &Spec {
        &self.spec
    }

    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    pub(super) fn take_written(&mut self) -> Written {
        std::mem::take(&mut self.written)
    }

    pub(super) fn note_lost(
        &mut self,
        place: Place,
        records: u64,
        first_ns: i64,
        last_ns: i64,
        reason: &str,
    ) {
        self.losses.add(place, Loss { records, first_ns, last_ns, reason: reason.into() });
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let now = Instant::now();
        if self.trouble.is_some() {
            return self.retry_at;
        }
        let waits = (!self.waiting.is_empty()).then_some(now + Duration::from_millis(LOOK_MS));
        waits.into_iter().chain(self.losses.at(now)).min()
    }

    /// Takes records. `patient` waits for a slow reader however long it takes, as a replay can.
    pub(super) fn append(&mut self, chunk: &Chunk, patient: bool) -> Result<(), Error> {
        let shown = match &mut self.show {
            Some(show) => {
                let (shown, passed_over) = show.take(chunk);
                self.written.passed_over += passed_over;
                shown
            }
            None => Shown {
                bytes: chunk.lines.clone(),
                records: chunk.records.into(),
                ends: Vec::new(),
                times_ns: (chunk.first_ns, chunk.last_ns),
            },
        };
        if shown.records > 0 {
            self.offer(shown, patient);
        }
        self.tick(Instant::now())
    }

    /// Takes what is to be printed of records, or counts them as lost.
    fn offer(&mut self, shown: Shown, patient: bool) {
        let stalls_at = Instant::now() + Duration::from_millis(STDOUT_STALL_MS);
        self.pump(Duration::ZERO);
        while self.waiting_bytes > 0
            && self.waiting_bytes + shown.bytes.len() as u64 > WAITING_BYTES_MAX
            && self.trouble.is_none()
        {
            if !patient && Instant::now() >= stalls_at {
                self.suffer("nobody reads stdout");
                break;
            }
            self.pump(Duration::from_millis(LOOK_MS));
        }
        match self.trouble.clone() {
            Some(reason) => self.lose(shown.records, shown.times_ns, &reason),
            None => self.push(shown, 0),
        }
    }

    fn push(&mut self, shown: Shown, notices: u64) {
        let Shown { bytes, records, ends, times_ns } = shown;
        self.waiting_bytes += bytes.len() as u64;
        self.waiting.push_back(Batch { bytes, done: 0, records, notices, ends, times_ns });
    }

    fn push_notices(&mut self, lines: Vec<u8>, count: u64, at_ns: i64) {
        let bytes = match &mut self.show {
            Some(show) => show.notices(&lines),
            None => lines.into(),
        };
        self.push(Shown { bytes, times_ns: (at_ns, at_ns), ..Shown::default() }, count);
    }

    fn lose(&mut self, records: u64, (first_ns, last_ns): (i64, i64), reason: &str) {
        self.written.lost += records;
        self.losses.add(Place::Stdout, Loss { records, first_ns, last_ns, reason: reason.into() });
    }

    /// Does what is due: looks for room, tells of losses.
    pub(super) fn tick(&mut self, now: Instant) -> Result<(), Error> {
        if self.trouble.is_some() {
            if self.retry_at.is_some_and(|at| at > now) {
                return Ok(());
            }
            let room = self.room(Duration::ZERO);
            if !matches!(room, Room::Yes) {
                if matches!(room, Room::Gone) {
                    self.reader_is_gone();
                }
                self.retry_at = Some(now + Duration::from_millis(RETRY_MS));
                return Ok(());
            }
            self.trouble = None;
            if self.show.is_none() {
                tracing::info!(task = self.spec.task, "stdout takes records again");
            }
        }
        self.say_losses(now, false);
        self.pump(Duration::ZERO);
        Ok(())
    }

    fn say_losses(&mut self, now: Instant, all: bool) {
        if all || self.losses.at(now).is_some_and(|at| at <= now) {
            let now_ns = wall_ns();
            let (bytes, count) = self.losses.lines(&self.notices, now, now_ns, all);
            if count > 0 {
                self.push_notices(bytes, count, now_ns);
                // What waits about losses is never dropped.
                self.losses.written();
            }
        }
    }

    /// The task's last record, which says why it is the last.
    pub(super) fn gone(&mut self, reason: &str) {
        self.say_losses(Instant::now(), true);
        if !reason.is_empty() && (self.written_ever || !self.waiting.is_empty()) {
            let now_ns = wall_ns();
            let message = format!("task {}: {reason}", self.spec.task);
            let line = self.notices.status("NODE_GONE", &message, now_ns);
            self.push_notices(line, 1, now_ns);
        }
    }

    /// Writes what waits, as long as it goes on; the rest is lost and counted.
    pub(super) fn close(&mut self, patient: bool) -> Result<(), Error> {
        if let Some(rest) = self.show.as_mut().map(Show::rest).filter(|rest| rest.records > 0) {
            self.offer(rest, patient);
        }
        // The reader may have come back since the last look.
        self.retry_at = None;
        self.tick(Instant::now())?;
        let mut moved = (Instant::now(), self.waiting_bytes);
        while !self.waiting.is_empty() && self.trouble.is_none() {
            self.pump(Duration::from_millis(LOOK_MS));
            if self.waiting_bytes != moved.1 {
                moved = (Instant::now(), self.waiting_bytes);
            } else if !patient && moved.0.elapsed() >= Duration::from_millis(STDOUT_STALL_MS) {
                self.suffer("nobody reads stdout");
            }
        }
        let why = self.trouble.clone().unwrap_or_default();
        for batch in std::mem::take(&mut self.waiting) {
            self.lose(batch.records, batch.times_ns, &why);
        }
        self.waiting_bytes = 0;
        Ok(())
    }

    /// Nothing can be written: the records that wait are lost. What tells of losses goes on waiting, and so does the
    /// record of which the reader has the beginning.
    fn suffer(&mut self, why: &str) {
        if self.show.is_none() {
            tracing::warn!(
                task = self.spec.task,
                "{why}; its records are dropped and counted until it is read again"
            );
        }
        let format = self.spec.format;
        for batch in std::mem::take(&mut self.waiting) {
            if batch.records == 0 {
                self.waiting.push_back(batch);
                continue;
            }
            let handed_on = batch.whole(format);
            self.written.records += handed_on;
            self.written.bytes += batch.whole_bytes(format, handed_on);
            let begun = batch.begun(format).filter(|_| handed_on < batch.records);
            self.lose(batch.records - handed_on - u64::from(begun.is_some()), batch.times_ns, why);
            self.waiting.extend(begun);
        }
        self.waiting_bytes = self.waiting.iter().map(|batch| (batch.bytes.len() - batch.done) as u64).sum();
        self.trouble = Some(why.into());
        self.retry_at = Some(Instant::now() + Duration::from_millis(RETRY_MS));
    }

    /// The reader is gone, and nobody has use for the rest of a record: a new one begins with a whole one.
    fn reader_is_gone(&mut self) {
        const WHY: &str = "the reader of stdout is gone";
        if self.trouble.is_none() {
            self.suffer(WHY);
        }
        let format = self.spec.format;
        let Some(front) = self.waiting.front_mut() else { return };
        if front.records > 0 {
            let (records, times_ns) = (front.records, front.times_ns);
            self.waiting.pop_front();
            self.lose(records, times_ns, WHY);
        } else {
            front.done = front.record_begin(format);
        }
        self.waiting_bytes = self.waiting.iter().map(|batch| (batch.bytes.len() - batch.done) as u64).sum();
    }

    /// Writes as long as there is room; waits for room once, that long at most.
    fn pump(&mut self, mut patience: Duration) {
        while let Some(rest) = self.waiting.front().and_then(|batch| batch.bytes.get(batch.done..)) {
            let part = rest.get(..WRITE_BYTES).unwrap_or(rest);
            match self.room(std::mem::take(&mut patience)) {
                Room::Yes => {}
                Room::No => return,
                Room::Gone => return self.reader_is_gone(),
            }
            match rustix::io::write(&self.to, part) {
                Ok(n) => self.wrote(n),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE) => return self.reader_is_gone(),
                Err(error) => return self.suffer(&format!("stdout cannot be written: {error}")),
            }
        }
    }

    fn wrote(&mut self, n: usize) {
        self.waiting_bytes = self.waiting_bytes.saturating_sub(n as u64);
        self.written.disk_bytes += n as u64;
        self.written_ever = true;
        let Some(batch) = self.waiting.front_mut() else { return };
        batch.done += n;
        if batch.done >= batch.bytes.len() {
            self.written.records += batch.records;
            self.written.notices += batch.notices;
            self.written.bytes += if batch.records > 0 { batch.bytes.len() as u64 } else { 0 };
            self.waiting.pop_front();
        }
    }

    fn room(&self, patience: Duration) -> Room {
        let mut fds = [PollFd::new(&self.to, PollFlags::OUT)];
        let Ok(patience) = Timespec::try_from(patience) else { return Room::No };
        if poll(&mut fds, Some(&patience)).is_err() {
            return Room::No;
        }
        let [fd] = &fds;
        let found = fd.revents();
        if found.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
            Room::Gone
        } else if found.contains(PollFlags::OUT) {
            Room::Yes
        } else {
            Room::No
        }
    }
}

fn failed(spec: &Spec, source: io::Error) -> Error {
    Error::Io { task: spec.task.clone(), what: "open", path: spec.path.clone(), source }
}

#[cfg(test)]
#[path = "stdout_tests.rs"]
mod tests;
