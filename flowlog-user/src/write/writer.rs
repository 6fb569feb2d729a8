use std::collections::VecDeque;
use std::path::PathBuf;
#[cfg(test)]
use std::time::Duration;
use std::time::Instant;

use bytes::Bytes;

#[cfg(test)]
use super::OnFull;
use super::backlog::Backlog;
use super::encoder::Encoder;
use super::folder::Folder;
use super::live::{Book, Live};
use super::losses::{Losses, Place};
use super::name::Names;
use super::notice::{Loss, Notices};
use super::owner::Ids;
use super::pending::Pending;
use super::pieces::pieces;
use super::salvage::{Salvaged, modified_ns, salvage};
use super::waiting::Waiting;
use super::{Compression, Error, OnEnd, Roots, Spec, gzip, period};
use crate::clock::wall_ns;
use crate::limits::WAITING_BYTES_MAX;
#[cfg(test)]
use crate::limits::{AGE_CHECK_MS, FLUSH_MS, FRAME_MS_MAX};
use crate::record::Format;
use crate::record::container::CRASHED;

#[path = "due.rs"]
mod due;
#[path = "ending.rs"]
mod ending;
#[path = "output.rs"]
mod output;
#[path = "saying.rs"]
mod saying;
#[path = "tampered.rs"]
mod tampered;

/// Encoded records, whole ones.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// How they are written. A file has records of one format only.
    pub format: Format,
    /// The records, each with its newline or behind its length.
    pub lines: Bytes,
    /// How many.
    pub records: u32,
    /// Time of the first record, nanoseconds since the Unix epoch; names the file it begins.
    pub first_ns: i64,
    /// Time of the last record, nanoseconds since the Unix epoch.
    pub last_ns: i64,
    /// When the first packet of any of the records was seen, nanoseconds since the Unix epoch.
    pub seen_from_ns: i64,
}

/// What became of records since it was last asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records whose bytes a write has handed to the kernel.
    pub records: u64,
    /// Bytes of their lines.
    pub bytes: u64,
    /// Bytes on disk (before gzip, where a task uses it).
    pub disk_bytes: u64,
    /// Records that could not be written.
    pub lost: u64,
    /// Records that were written, counted as such, and are gone with a live file that somebody else deleted or cut short.
    pub gone: u64,
    /// Files finished under their final name.
    pub rotations: u64,
    /// Lines about the log itself, beside the records.
    pub notices: u64,
    /// Records that were not to be shown, being more than were asked for.
    pub passed_over: u64,
}

/// How a file was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The last file's finished name; `None` when it was empty and is removed.
    pub path: Option<PathBuf>,
}

/// Files that one writer has finished or left behind, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The newest of them.
    pub paths: VecDeque<PathBuf>,
    /// How many came before those.
    pub before: u64,
    /// Files that retention had deleted before that.
    pub removed: u64,
    /// Files that retention has deleted since the last call, of this writer or of those before, and why.
    pub deleted: Vec<(PathBuf, String)>,
}

/// Writes one task's files. Owned by one thread; nothing in it waits for another task.
///
/// What cannot be written waits, up to a limit, and is tried again every second; what comes beyond the limit is lost,
/// counted, and named in the file once it can be written again.
pub struct Writer {
    spec: Spec,
    folder: Folder,
    names: Names,
    notices: Notices,
    owner: Ids,
    encoder: Encoder,
    /// `None` after an error, or when it could not be begun.
    live: Option<Live>,
    book: Book,
    pending: Pending,
    /// Records taken and not yet written, as they came. While there is trouble the encoder holds none of them.
    waiting: Waiting,
    /// They are to be encoded anew.
    behind: bool,
    losses: Losses,
    trouble: Option<Trouble>,
    written: Written,
    written_ever: bool,
    backlog: Backlog,
    aged: Instant,
    /// By what the next finished file is named at the earliest: a name is not given twice, also where its file is gone.
    named_ns: i64,
    /// Since when an earlier process had written nothing to the live file that it left (ns since the epoch), until that
    /// is said.
    left_ns: Option<i64>,
    /// That is said, but not yet in the file.
    left_said: bool,
    /// Why the task ends, for its last line.
    gone: Option<String>,
    /// It is being closed.
    closing: bool,
    /// What is set aside for the last lines may be used.
    spending: bool,
    /// What it has finished.
    files: Files,
}

/// Why nothing is written.
struct Trouble {
    text: String,
    since: Instant,
    logged: Instant,
    retry_at: Instant,
    lost: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Boundary {
    Flush,
    FrameEnd,
}

impl Writer {
    /// Opens and locks the live file. What a killed process left in it gets a finished name first.
    ///
    /// # Errors
    /// The path is outside the roots, leads through a link, is locked, or the system refuses.
    pub fn open(spec: &Spec, roots: &Roots) -> Result<(Self, Option<Salvaged>), Error> {
        let (folder, name) = roots.folder(&spec.task, &spec.path)?;
        let names = Names::new(&name, spec.compression);
        // A clock that went back does not bring old days back.
        let all = roots.listings.names(&folder)?;
        let own = names.among(&all);
        let newest_ns = names.newest_ns(own).unwrap_or(0);
        let names = names.of_day(wall_ns().max(newest_ns)).unwrap_or(names);
        let owner = Ids::find(&spec.owner, &spec.task)?;
        let notices = Notices {
            task: spec.task.clone(),
            node: roots.node.clone(),
            format: spec.format,
            encoder: spec.notices,
        };
        let (live, salvaged, left_ns) = open_live(&folder, &names, spec, owner, &notices, CRASHED)?;
        folder.unlink(&names.unfinished())?;
        let salvaged = match finish_next(&folder, &names, spec, owner, &notices) {
            Ok(next) => salvaged.or(next),
            Err(error) => {
                tracing::warn!(%error, "a whole file keeps the name that it had on the way to its own");
                salvaged
            }
        };
        let zips = matches!(spec.compression, Compression::Gzip { .. });
        if zips {
            gzip::tidy(&folder, &names)?;
        }
        let mut backlog = Backlog::default();
        if zips || salvaged.is_some() {
            // The task's files are others now.
            backlog.scan(&folder, &names)?;
        } else {
            backlog.find(&folder, &names, own);
        }
        backlog.make_room(&folder, 0, spec.total_bytes_max);
        let left = salvaged.as_ref().and_then(|salvaged| salvaged.path.file_name()?.to_str());
        let named_ns = left.map_or(newest_ns, |name| newest_ns.max(names.behind(name)));
        let now = Instant::now();
        let mut writer = Self {
            spec: spec.clone(),
            folder,
            names,
            notices,
            owner,
            encoder: Encoder::new(spec.compression),
            live: Some(live),
            book: Book::default(),
            pending: Pending::default(),
            waiting: Waiting::default(),
            behind: false,
            losses: Losses::default(),
            trouble: None,
            written: Written::default(),
            written_ever: false,
            backlog,
            aged: now,
            named_ns,
            left_ns,
            left_said: false,
            gone: None,
            closing: false,
            spending: false,
            files: Files::default(),
        };
        writer.begin_book(now);
        writer.expire(now);
        Ok((writer, salvaged))
    }

    /// Takes records.
    ///
    /// # Errors
    /// The file could not be written, or no new one be begun. The records wait, or are in [`Written::lost`].
    pub fn append(&mut self, chunk: &Chunk) -> Result<(), Error> {
        if self.encoder.buffers() {
            return self.append_piece(chunk);
        }
        // Plain lines are written as they come: a piece that does not fit shall not be all that came.
        pieces(chunk).map(|piece| self.append_piece(&piece)).fold(Ok(()), Result::and)
    }

    fn append_piece(&mut self, chunk: &Chunk) -> Result<(), Error> {
        if chunk.records == 0 {
            return Ok(());
        }
        let now = Instant::now();
        let len = chunk.lines.len() as u64;
        // Plain lines are as long on disk, so a file can end before it is too large.
        let mut result = Ok(());
        if !self.encoder.buffers()
            && self.trouble.is_none()
            && let Some(live) = &self.live
            && live.bytes > 0
            && live.bytes + len > self.size_bytes_max()
        {
            result = self.rotate();
        }
        if self.trouble.is_some() {
            pieces(chunk).for_each(|piece| self.keep_or_lose(&piece));
            return result.and(self.tick(now));
        }
        let taken = self.take_records(chunk, now);
        if let Err(error) = taken {
            self.suffer(&error);
            return Err(error);
        }
        if !self.encoder.buffers() {
            self.write_out(Boundary::Flush)?;
        } else if self.encoder.is_full() {
            self.write_out(Boundary::FrameEnd)?;
        }
        // Also where records come so fast that nobody finds the time to call `tick`.
        result.and(self.tick(now))
    }

    /// Hands records to the encoder, and keeps them until they are written.
    fn take_records(&mut self, chunk: &Chunk, now: Instant) -> Result<(), Error> {
        self.say_left(now)?;
        self.begin_records(chunk.first_ns, now);
        if self.pending.records == 0 {
            (self.pending.first_ns, self.pending.last_ns) = (chunk.first_ns, chunk.last_ns);
        }
        self.pending.records += u64::from(chunk.records);
        self.pending.bytes += chunk.lines.len() as u64;
        self.pending.last_ns = self.pending.last_ns.max(chunk.last_ns);
        if !self.behind {
            self.waiting.push(chunk);
        }
        self.take(&chunk.lines, u64::from(chunk.records), (chunk.seen_from_ns, chunk.last_ns), now)
    }

    /// While nothing can be written.
    fn keep_or_lose(&mut self, piece: &Chunk) {
        let fits = self.waiting.bytes + piece.lines.len() as u64 <= WAITING_BYTES_MAX;
        if fits && self.waiting.push(piece) {
            return;
        }
        let (records, reason) = (u64::from(piece.records), self.trouble().unwrap_or_default().to_owned());
        if let Some(trouble) = &mut self.trouble {
            trouble.lost += records;
        }
        self.lose(Loss { records, first_ns: piece.first_ns, last_ns: piece.last_ns, reason });
    }

    /// Counts records that could not be written, and has the file say so.
    fn lose(&mut self, loss: Loss) {
        self.written.lost += loss.records;
        self.losses.add(Place::File, loss);
    }

    /// Notes records that were lost before they came here.
    pub fn note_lost(&mut self, place: Place, records: u64, first_ns: i64, last_ns: i64, reason: &str) {
        self.losses.add(place, Loss { records, first_ns, last_ns, reason: reason.into() });
    }

    /// Does what is due: retry, flush, frame end, rotation by time, notices, retention.
    ///
    /// # Errors
    /// The file could not be written or finished.
    pub fn tick(&mut self, now: Instant) -> Result<(), Error> {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if let Some(trouble) = &self.trouble {
            return if trouble.retry_at <= now { self.write_out(Boundary::Flush) } else { Ok(()) };
        }
        if due(self.age_check_at()) {
            self.expire(now);
        }
        if due(self.losses.at(now)) {
            self.say_losses(now, false)?;
        }
        let over = period::is_over(self.period_end_ns());
        if due(self.rotation_at()) || over && self.book.first.is_some() {
            return self.rotate();
        }
        if due(self.idle_rotation_at()) || over {
            self.say_idle(now)?;
            return self.rotate();
        }
        if due(self.frame_end_at()) {
            self.write_out(Boundary::FrameEnd)?;
        } else if due(self.flush_at()) {
            self.write_out(Boundary::Flush)?;
        }
        match &self.live {
            Some(live) if live.bytes >= self.size_bytes_max() => self.rotate(),
            _ => Ok(()),
        }
    }

    /// When [`Self::tick`] has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if let Some(trouble) = &self.trouble {
            return Some(trouble.retry_at);
        }
        [
            self.rotation_at(),
            self.idle_rotation_at(),
            self.frame_end_at(),
            self.flush_at(),
            self.losses.at(Instant::now()),
            self.age_check_at(),
            period::look_at(self.period_end_ns()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The settings it was opened with.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Why nothing is written at the moment.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.text.as_str())
    }

    /// Why the task ends, for its last line; nothing is said where nothing was ever written, or without a reason. To be
    /// followed by [`Self::close`].
    pub fn gone(&mut self, reason: &str) {
        self.gone = Some(reason.into());
    }

    /// Deletes the task's finished files, those that are proved its own, where they are to go with it. To be called when
    /// the task is gone for good and its writer closed.
    ///
    /// # Errors
    /// The folder could not be listed.
    pub fn clear(&mut self) -> Result<u64, Error> {
        let mut deleted = 0;
        if self.spec.on_end == OnEnd::Delete {
            self.backlog.scan(&self.folder, &self.names)?;
            while !self.backlog.is_empty() {
                deleted += u64::from(self.backlog.delete_oldest(&self.folder, "onEnd: delete"));
            }
        }
        Ok(deleted)
    }

    /// What became of records since the last call.
    pub fn take_written(&mut self) -> Written {
        std::mem::take(&mut self.written)
    }

    /// Hands lines to the compressor.
    fn take(&mut self, lines: &Bytes, count: u64, seen_ns: (i64, i64), now: Instant) -> Result<(), Error> {
        self.pending.since.get_or_insert(now);
        self.pending.waiting_bytes += lines.len() as u64;
        let offset = self.live.as_ref().map_or(0, |live| live.bytes)
            + (self.encoder.out.len() - self.encoder.done) as u64;
        self.book.add(count, seen_ns.0, seen_ns.1, offset, now);
        self.encoder.add(lines).map_err(|source| self.folder.io("compress for", &self.names.live, source))
    }
}

/// A process that was killed while one file took another's place may have left the whole one on its way.
fn finish_next(
    folder: &Folder,
    names: &Names,
    spec: &Spec,
    owner: Ids,
    notices: &Notices,
) -> Result<Option<Salvaged>, Error> {
    let names = names.on_the_way();
    match folder.size(&names.live) {
        None => return Ok(None),
        Some(0) => return folder.unlink(&names.live).map(|()| None),
        Some(_) => {}
    }
    let (file, ..) = folder.open_live(&names.live, spec.mode, owner)?;
    salvage(folder, &names, spec, owner, (notices, CRASHED), file).map(Some)
}

/// Also since when an earlier process had left the file empty: whoever ends in order takes an empty file away.
fn open_live(
    folder: &Folder,
    names: &Names,
    spec: &Spec,
    owner: Ids,
    notices: &Notices,
    why: &str,
) -> Result<(Live, Option<Salvaged>, Option<i64>), Error> {
    let (file, bytes, was_there) = folder.open_live(&names.live, spec.mode, owner)?;
    if bytes > 0 {
        let salvaged = salvage(folder, names, spec, owner, (notices, why), file)?;
        let (fresh, bytes, _) = folder.open_live(&names.live, spec.mode, owner)?;
        if bytes > 0 {
            return Err(Error::Busy { task: spec.task.clone(), path: folder.path.join(&names.live) });
        }
        let left_ns = salvaged.untold_ns;
        return Ok((Live::new(fresh), Some(salvaged), left_ns));
    }
    let left_ns = if was_there { modified_ns(&file).ok() } else { None };
    Ok((Live::new(file), None, left_ns))
}

#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "mend_tests.rs"]
mod mend_tests;

#[cfg(test)]
#[path = "race_tests.rs"]
mod race_tests;

#[cfg(test)]
#[path = "frame_tests.rs"]
mod frame_tests;

#[cfg(test)]
#[path = "retention_tests.rs"]
mod retention_tests;

#[cfg(test)]
#[path = "ending_tests.rs"]
mod ending_tests;

#[cfg(test)]
#[path = "tampered_tests.rs"]
mod tampered_tests;

#[cfg(test)]
#[path = "damage_tests.rs"]
mod damage_tests;
