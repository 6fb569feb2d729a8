//! The writer's other half: from the encoder into files, and what happens when that fails.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::super::backlog::Backlog;
use super::super::encoder::Encoder;
use super::super::finish::finish;
use super::super::held::Held;
use super::super::live::{Book, Fate};
use super::super::losses::Place;
use super::super::notice::{Loss, Notices};
use super::super::{Compression, Error, OnFull, Spec, Sync, repack};
use super::{Boundary, Pending, Trouble, Writer, open_live};
use crate::clock::wall_ns;
use crate::limits::{RETRY_MS, SYNC_MS, TROUBLE_LOG_MS};
use crate::record::container::LEFT;
use crate::record::container::{self, Index};
use crate::record::{Format, rfc3339 as time};

impl Writer {
    /// Opens a live file. What an error left in it goes under a finished name.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        if !self.folder.is_in_place() {
            self.folder.reopen()?;
            self.backlog = Backlog::default();
            self.backlog.scan(&self.folder, &self.names)?;
        }
        // A clock that went back does not bring old days back.
        if let Some(names) = self.names.of_day(wall_ns().max(self.named_ns)) {
            self.names = names;
        }
        let (live, salvaged, _) =
            open_live(&self.folder, &self.names, &self.spec, self.owner, &self.notices, LEFT)?;
        if let Some(salvaged) = salvaged {
            let path = salvaged.path.display();
            tracing::warn!(%path, records = salvaged.records, "kept what an error left behind");
            self.written.rotations += 1;
        }
        self.live = Some(live);
        self.begin_book(Instant::now());
        Ok(())
    }

    /// Writes what is pending up to a boundary; only then do records count as written. After an error it waits.
    pub(super) fn write_out(&mut self, boundary: Boundary) -> Result<(), Error> {
        let result = self.try_write_out(boundary);
        match &result {
            Ok(()) => self.recover(),
            Err(error) => self.suffer(error),
        }
        result
    }

    fn try_write_out(&mut self, boundary: Boundary) -> Result<(), Error> {
        if self.live.is_none() {
            self.begin()?;
        }
        if self.pending.waiting_bytes == 0 && (boundary == Boundary::Flush || self.book.frame.is_none()) {
            return Ok(());
        }
        let fate = self.live.as_ref().map_or(Fate::Intact, |live| live.fate(&self.folder, &self.names.live));
        match fate {
            Fate::Intact => self.encode(boundary)?,
            Fate::Moved => self.encode(Boundary::FrameEnd)?,
            Fate::Deleted | Fate::Changed => return self.begin_anew(fate),
        }
        let written = self.write();
        if fate == Fate::Moved {
            if let Err(error) = written {
                // Where it went nothing can be written; what waits has no other place.
                self.discard(&error.to_string());
            }
            return self.begin_anew(fate);
        }
        written?;
        self.sync(self.book.frame.is_none())
    }

    fn encode(&mut self, boundary: Boundary) -> Result<(), Error> {
        let encoded = match boundary {
            Boundary::Flush => self.encoder.flush(),
            Boundary::FrameEnd => self.encoder.end(),
        };
        if let Err(source) = encoded {
            let error = self.folder.io("compress for", &self.names.live, source);
            self.abandon(&error);
            return Err(error);
        }
        if self.encoder.frame_bytes == 0
            && let Some((frame, _)) = self.book.frame.take()
            && self.encoder.buffers()
        {
            if self.book.frames.is_empty() {
                let header = container::header(&header_json(&self.spec, &self.notices));
                self.encoder.out.extend_from_slice(&header);
            }
            self.book.frames.push(frame);
        }
        Ok(())
    }

    /// Hands the encoder's output to the kernel, and counts.
    fn write(&mut self) -> Result<(), Error> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let left = (self.encoder.out.len() - self.encoder.done) as u64;
        self.backlog.make_room(&self.folder, live.bytes + left, self.spec.total_bytes_max);
        if let Some(min) = self.spec.free_percent_min {
            while let Some(free) = self.folder.free_percent()
                && free < u64::from(min)
            {
                if self.backlog.is_empty() {
                    let (task, path) = (self.spec.task.clone(), self.folder.path.clone());
                    return Err(Error::LowSpace { task, path, free, min });
                }
                self.backlog.delete_oldest(&self.folder);
            }
        }
        let before = live.bytes;
        let mut result = live.write(&mut self.encoder);
        while let Err(error) = &result
            && self.spec.on_full == OnFull::DeleteOldest
            && matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT))
            && !self.backlog.is_empty()
        {
            self.backlog.delete_oldest(&self.folder);
            result = live.write(&mut self.encoder);
        }
        self.written.disk_bytes += live.bytes - before;
        result.map_err(|error| self.folder.io("write", &self.names.live, error))?;
        let pending = std::mem::take(&mut self.pending);
        self.written.records += pending.records;
        self.written.bytes += pending.bytes;
        self.written.notices += pending.notices;
        self.book.records += pending.records;
        self.book.text_bytes += pending.waiting_bytes;
        self.book.writes += 1;
        self.written_ever |= pending.waiting_bytes > 0;
        self.losses.written();
        Ok(())
    }

    /// Syncs as configured. A sync that failed is not tried again, since the next one would succeed without having
    /// written anything: a new file is begun.
    fn sync(&mut self, frame_ended: bool) -> Result<(), Error> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let due = match self.spec.sync {
            Sync::None => false,
            Sync::Frame => frame_ended,
            Sync::Interval => live.synced.elapsed() >= Duration::from_millis(SYNC_MS),
        };
        if !due || !live.dirty {
            return Ok(());
        }
        match live.file.sync_data() {
            Ok(()) => {
                (live.synced, live.dirty) = (Instant::now(), false);
                Ok(())
            }
            Err(error) => {
                live.dirty = false;
                let error = self.folder.io("sync", &self.names.live, error);
                self.doubt(&error);
                self.rotate()
            }
        }
    }

    /// Says in log and file that what was written may not be on the disk.
    pub(super) fn doubt(&mut self, error: &Error) {
        let records = self.book.records;
        tracing::error!(%error, records, "records may not be on the disk; a new file is begun");
        self.losses.say(format!(
            "{error}; the {records} records of the file before, from {} on, may not be on the disk",
            time(self.book.first.map_or(0, |(ns, _)| ns))
        ));
    }

    /// Leaves a file that is not what was written, and begins a new one.
    fn begin_anew(&mut self, fate: Fate) -> Result<(), Error> {
        let what = match fate {
            Fate::Deleted => "deleted",
            Fate::Moved => "moved or replaced",
            Fate::Changed | Fate::Intact => "changed",
        };
        let path = self.folder.path.join(&self.names.live);
        let error = Error::Tampered { task: self.spec.task.clone(), path, what };
        tracing::warn!(%error, records = self.book.records, "somebody else works on the task's files");
        let fate_of_records = if fate == Fate::Deleted { " are gone with it" } else { " were written to it" };
        self.losses.say(format!("{error}; {} records{fate_of_records}", self.book.records));
        match fate {
            Fate::Moved => {
                self.write_index();
                self.live = None;
                self.book = Book::default();
            }
            Fate::Deleted => {
                self.discard(&error.to_string());
                self.live = None;
                self.book = Book::default();
            }
            Fate::Changed | Fate::Intact => self.abandon(&error),
        }
        self.begin()?;
        self.say_losses(Instant::now(), true)
    }

    /// After an error: the next records begin a new file.
    pub(super) fn abandon(&mut self, error: &Error) {
        self.discard(&error.to_string());
        if let Err(error) = self.finish_live() {
            tracing::warn!(%error, "the file keeps its live name for now");
        }
    }

    /// Counts what is not written as lost, and takes half a write back; what was written before it is no damage.
    pub(super) fn discard(&mut self, reason: &str) {
        let Pending { records, first_ns, last_ns, .. } = std::mem::take(&mut self.pending);
        self.written.lost += records;
        self.losses.put_back();
        self.losses.add(Place::File, Loss { records, first_ns, last_ns, reason: reason.into() });
        self.encoder.reset();
        if let Some(live) = &mut self.live
            && let Err(error) = live.take_back()
        {
            tracing::warn!(task = self.spec.task, %error, "half a write stays at the end of the file");
        }
        let whole = self.live.as_ref().map_or(0, |live| live.whole_bytes);
        self.book.frames.retain(|frame| frame.offset < whole);
        // An index behind a frame without an end would be damage.
        if self.book.frame.take().is_some_and(|(frame, _)| frame.offset < whole) {
            self.book.frames.clear();
        }
    }

    fn suffer(&mut self, error: &Error) {
        let now = Instant::now();
        let retry_at = now + Duration::from_millis(RETRY_MS);
        let text = error.to_string();
        match &mut self.trouble {
            Some(trouble) => {
                trouble.retry_at = retry_at;
                if trouble.logged.elapsed() >= Duration::from_millis(TROUBLE_LOG_MS) {
                    trouble.logged = now;
                    tracing::warn!(%error, lost = trouble.lost, "records still cannot be written");
                }
                trouble.text = text;
            }
            None => {
                tracing::warn!(%error, "records cannot be written; trying again every second");
                let held = Held::default();
                self.trouble = Some(Trouble { text, since: now, logged: now, retry_at, lost: 0, held });
            }
        }
    }

    fn recover(&mut self) {
        if let Some(trouble) = self.trouble.take() {
            let seconds = trouble.since.elapsed().as_secs();
            tracing::info!(task = self.spec.task, lost = trouble.lost, seconds, "records are written again");
        }
    }

    pub(super) fn rotate(&mut self) -> Result<(), Error> {
        self.write_out(Boundary::FrameEnd)?;
        let finished = self.finish_live();
        let begun = self.begin();
        if let Err(error) = &begun {
            self.suffer(error);
        }
        finished.and(begun)
    }

    /// Ends the file with an index of its frames.
    fn write_index(&mut self) {
        let Some(live) = &mut self.live else { return };
        if self.book.frames.is_empty() || live.bytes != live.whole_bytes {
            return;
        }
        let frames = std::mem::take(&mut self.book.frames);
        let mut encoder = Encoder::new(Compression::None);
        encoder.out = Index { task: self.spec.task.clone(), frames }.to_bytes();
        let before = live.bytes;
        // Without an index a file is read by scanning.
        if let Err(error) = live.write(&mut encoder).or_else(|error| live.take_back().and(Err(error))) {
            tracing::warn!(task = self.spec.task, %error, "the file gets no index");
        }
        self.written.disk_bytes += live.bytes - before;
    }

    /// Puts small frames and flushes together, where they cost more than they should.
    fn repack(&mut self) {
        let Some(live) = &mut self.live else { return };
        if !repack::is_worth_it(&self.book, live) {
            return;
        }
        let header = container::header(&header_json(&self.spec, &self.notices));
        match repack::repack(
            &self.folder,
            &self.names,
            &self.spec,
            self.owner,
            (live, &self.book.frames, &header),
        ) {
            Ok(whole) => {
                *live = whole;
                self.book.frames.clear();
            }
            Err(error) => {
                tracing::warn!(%error, "the file stays as it was written, somewhat larger than it could be");
            }
        }
    }

    /// Gives the live file its finished name, or removes it when it is empty. Afterwards there is none.
    pub(super) fn finish_live(&mut self) -> Result<Option<String>, Error> {
        self.repack();
        self.write_index();
        let Some(mut live) = self.live.take() else { return Ok(None) };
        if live.bytes == 0 || live.file.metadata().is_ok_and(|found| found.len() == 0) {
            self.book = Book::default();
            if self.folder.is(&self.names.live, &live.file) {
                self.folder.unlink(&self.names.live)?;
            }
            return Ok(None);
        }
        if live.dirty
            && let Err(error) = live.file.sync_data()
        {
            let error = self.folder.io("sync", &self.names.live, error);
            self.doubt(&error);
        }
        let book = std::mem::take(&mut self.book);
        // Names sort as the files were written, also when times do not.
        let first_ns = book.first.map_or(0, |(ns, _)| ns).max(self.named_ns);
        self.named_ns = first_ns;
        let name = finish(&self.folder, &self.names, &self.spec, self.owner, &mut live.file, first_ns)?;
        self.written.rotations += 1;
        self.backlog.scan(&self.folder, &self.names)?;
        self.backlog.make_room(&self.folder, 0, self.spec.total_bytes_max);
        Ok(Some(name))
    }
}

/// What a file's header says.
fn header_json(spec: &Spec, notices: &Notices) -> String {
    let definition = serde_json::from_str(&spec.definition.0).unwrap_or(serde_json::Value::Null);
    serde_json::json!({
        "format": match spec.format { Format::Json => "hubble-json", other => other.name() },
        "version": env!("CARGO_PKG_VERSION"),
        "node": notices.node,
        "task": spec.task,
        "definition": definition,
        "schema": spec.format.schema(),
        "clock": "unix time, UTC; index times are nanoseconds of [first_seen, last_seen]",
        "written": time(wall_ns()),
    })
    .to_string()
}
