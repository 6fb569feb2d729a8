//! The writer's other half: from the encoder into files, and what happens when that fails.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::super::backlog::Backlog;
use super::super::encoder::Encoder;
use super::super::live::{Fate, Live};
use super::super::mend::{Seal, seal};
use super::super::notice::{Loss, header};
use super::super::{Compression, Error, OnFull, Sync};
use super::{Boundary, Pending, Trouble, Writer, open_live};
use crate::clock::wall_ns;
use crate::limits::{LAST_WORDS_BYTES, RETRY_MS, SYNC_MS, TROUBLE_LOG_MS};
use crate::record::container::LEFT;
use crate::record::rfc3339 as time;

/// Bytes of an index for a frame at most, about, and of a header beside the task's definition.
const INDEX_FRAME_BYTES: u64 = 32;
const HEADER_BYTES: u64 = 1 << 10;
/// Records of fewer bytes are not divided further where they do not fit.
const PIECE_BYTES_MIN: usize = 4 << 10;

impl Writer {
    /// Opens a live file. What an error left in it goes under a finished name.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        if !self.folder.is_in_place() {
            self.folder.reopen()?;
            self.backlog = Backlog::default();
            self.backlog.scan(&self.folder, &self.names)?;
        }
        self.names_of_today();
        let (live, salvaged, _) =
            open_live(&self.folder, &self.names, &self.spec, self.owner, &self.notices, LEFT)?;
        if let Some(salvaged) = salvaged {
            let path = salvaged.path.display();
            tracing::warn!(%path, records = salvaged.records, "kept what an error left behind");
            let name = salvaged.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.named_ns = self.named_ns.max(self.names.behind(&name));
            self.note_finished(salvaged.path);
        }
        self.live = Some(live);
        self.begin_book(Instant::now());
        Ok(())
    }

    /// A clock that went back does not bring old days back.
    pub(super) fn names_of_today(&mut self) {
        if let Some(names) = self.names.of_day(wall_ns().max(self.named_ns)) {
            self.names = names;
        }
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
        let nothing = |writer: &Self| {
            writer.pending.waiting_bytes == 0 && (boundary == Boundary::Flush || writer.book.frame.is_none())
        };
        // Who ends a file looks at it in any case.
        let ends = self.closing || boundary == Boundary::FrameEnd;
        let looks = ends && self.live.as_ref().is_some_and(|live| live.bytes > 0);
        if nothing(self) && !self.behind && !looks {
            return Ok(());
        }
        let fate = self.live.as_ref().map_or(Fate::Intact, |live| live.fate(&self.folder, &self.names.live));
        if nothing(self) && !self.behind && fate == Fate::Moved {
            return Ok(()); // It is whole where it went.
        }
        if fate == Fate::Moved
            && !self.behind
            && let Err(error) = self.encode(Boundary::FrameEnd).and_then(|()| self.write())
        {
            self.step_back(&error.to_string()); // Into the new file, then.
        }
        if fate != Fate::Intact {
            self.begin_anew(fate)?;
        }
        self.drain()?;
        if nothing(self) {
            return Ok(());
        }
        self.encode(boundary)?;
        self.write()?;
        self.sync(self.book.frame.is_none())
    }

    pub(super) fn encode(&mut self, boundary: Boundary) -> Result<(), Error> {
        let encoded = match boundary {
            Boundary::Flush => self.encoder.flush(),
            Boundary::FrameEnd => self.encoder.end(),
        };
        encoded.map_err(|source| self.folder.io("compress for", &self.names.live, source))?;
        if self.encoder.frame_bytes == 0
            && let Some((frame, _)) = self.book.frame.take()
            && self.encoder.buffers()
        {
            if self.book.frames.is_empty() {
                self.encoder.out.extend_from_slice(&header(&self.spec, &self.notices));
            }
            self.book.frames.push(frame);
        }
        Ok(())
    }

    /// Hands the encoder's output to the kernel, and counts.
    pub(super) fn write(&mut self) -> Result<(), Error> {
        let spare = self.spare_bytes();
        let Some(live) = &mut self.live else { return Ok(()) };
        let left = (self.encoder.out.len() - self.encoder.done) as u64;
        self.backlog.make_room(&self.folder, live.bytes + left, self.spec.total_bytes_max);
        if let Some(min) = self.spec.free_percent_min.filter(|_| spare > 0) {
            while let Some(free) = self.folder.free_percent()
                && free < u64::from(min)
            {
                if self.backlog.is_empty() {
                    let (task, path) = (self.spec.task.clone(), self.folder.path.clone());
                    return Err(Error::LowSpace { task, path, free, min });
                }
                self.backlog.delete_oldest(&self.folder, "fileMinFreePercent");
            }
        }
        let before = live.bytes;
        let put = |live: &mut Live, encoder: &mut Encoder| {
            live.reserve(left, spare).and_then(|()| live.write(encoder))
        };
        let mut result = put(live, &mut self.encoder);
        while let Err(error) = &result
            && self.spec.on_full == OnFull::DeleteOldest
            && matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT))
            && !self.backlog.is_empty()
        {
            self.backlog.delete_oldest(&self.folder, "onFull: deleteOldest");
            result = put(live, &mut self.encoder);
        }
        let written = live.bytes.saturating_sub(before);
        result.map_err(|error| self.folder.io("write", &self.names.live, error))?;
        self.count_disk(written);
        let pending = std::mem::take(&mut self.pending);
        self.written.records += pending.records;
        self.written.bytes += pending.bytes;
        self.written.notices += pending.notices;
        self.book.note_written(&pending);
        self.book.text_bytes += pending.waiting_bytes;
        self.book.writes += 1;
        self.written_ever |= pending.waiting_bytes > 0;
        if self.left_said {
            self.left_ns = None;
        }
        if !self.behind {
            self.waiting.clear();
        }
        self.losses.written();
        Ok(())
    }

    /// What goes through gzip is counted when it has.
    pub(super) fn count_disk(&mut self, bytes: u64) {
        if !matches!(self.spec.compression, Compression::Gzip { .. }) {
            self.written.disk_bytes += bytes;
        }
    }

    /// What is to stay free behind the records for what ends the file.
    fn spare_bytes(&self) -> u64 {
        if self.spending {
            return 0;
        }
        let index = if self.encoder.buffers() {
            let frames = self.book.frames.len() as u64 + 3;
            HEADER_BYTES + self.spec.definition.0.len() as u64 + frames * INDEX_FRAME_BYTES
        } else {
            0
        };
        LAST_WORDS_BYTES + index
    }

    /// Writes what an error kept waiting: closes the frame that it left open, then piece by piece, as far as they fit.
    fn drain(&mut self) -> Result<(), Error> {
        while self.behind {
            if !self.seal()? {
                self.begin_anew(Fate::Changed)?;
            }
            let Some(piece) = self.waiting.front().cloned() else {
                self.behind = false;
                break;
            };
            self.take_records(&piece, Instant::now())?;
            let written = self.encode(Boundary::FrameEnd).and_then(|()| self.write());
            match written {
                Ok(()) => self.waiting.pop_front(),
                Err(error) if error.is_full() && self.waiting.halve_front(PIECE_BYTES_MIN) => {
                    self.step_back(&error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Closes the frame that an error left open on the disk. False where it is not what was written.
    pub(super) fn seal(&mut self) -> Result<bool, Error> {
        let Some(live) = &mut self.live else { return Ok(true) };
        let failed = |what| {
            let (folder, name) = (&self.folder, &self.names.live);
            move |error: std::io::Error| folder.io(what, name, error)
        };
        live.take_back().map_err(failed("take half a write off"))?;
        let is_first = self.book.frames.len() == 1;
        let Some(last) = self.book.frames.last_mut().filter(|_| self.book.unsealed) else { return Ok(true) };
        match seal(&live.file, last.offset, live.whole_bytes).map_err(failed("read back"))? {
            Seal::Closed => {}
            Seal::Foreign => return Ok(false),
            Seal::Open(bytes, lines) => {
                let mut encoder = Encoder::new(Compression::None);
                encoder.out = bytes;
                if is_first {
                    encoder.out.extend_from_slice(&header(&self.spec, &self.notices));
                }
                let before = live.bytes;
                let written = live.write(&mut encoder).or_else(|error| live.take_back().and(Err(error)));
                written.map_err(failed("close a frame of"))?;
                last.lines = lines;
                let bytes = live.bytes - before;
                self.count_disk(bytes);
            }
        }
        self.book.unsealed = false;
        Ok(true)
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

    /// Empties the encoder: what it holds waits, to be encoded anew. Only what could not be kept is lost.
    pub(super) fn put_back(&mut self, reason: &str) {
        let Pending { records, first_ns, last_ns, .. } = std::mem::take(&mut self.pending);
        self.losses.put_back();
        self.book.put_back();
        self.left_said = false;
        self.encoder.reset();
        if !self.behind {
            let unkept = records.saturating_sub(self.waiting.records);
            if unkept > 0 {
                self.lose(Loss { records: unkept, first_ns, last_ns, reason: reason.into() });
            }
            self.waiting.cut();
            self.behind = true;
        }
    }

    /// After an error: the file ends with the last whole write, and what is not written waits.
    pub(super) fn step_back(&mut self, reason: &str) {
        self.put_back(reason);
        if let Some(live) = &mut self.live
            && let Err(error) = live.take_back()
        {
            tracing::warn!(task = self.spec.task, %error, "half a write stays at the end of the file for now");
        }
        let whole = self.live.as_ref().map_or(0, |live| live.whole_bytes);
        let book = &mut self.book;
        book.frames.extend(book.frame.take().map(|(frame, _)| frame));
        book.frames.retain(|frame| self.encoder.buffers() && frame.offset < whole);
        book.unsealed = !book.frames.is_empty();
    }

    /// Counts what waits as lost.
    pub(super) fn discard(&mut self, reason: &str) {
        self.step_back(reason);
        let records = self.waiting.records;
        if let Some((first_ns, last_ns)) = self.waiting.clear() {
            self.lose(Loss { records, first_ns, last_ns, reason: reason.into() });
        }
    }

    pub(super) fn suffer(&mut self, error: &Error) {
        let now = Instant::now();
        let retry_at = now + Duration::from_millis(RETRY_MS);
        let text = error.to_string();
        self.step_back(&text);
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
                self.trouble = Some(Trouble { text, since: now, logged: now, retry_at, lost: 0 });
            }
        }
    }

    fn recover(&mut self) {
        if let Some(trouble) = self.trouble.take() {
            let seconds = trouble.since.elapsed().as_secs();
            tracing::info!(task = self.spec.task, lost = trouble.lost, seconds, "records are written again");
        }
    }
}
