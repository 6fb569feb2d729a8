use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::backlog::Backlog;
use super::encoder::Encoder;
use super::finish::finish;
use super::folder::Folder;
use super::name::Names;
use super::salvage::{Salvaged, salvage};
use super::{Compression, Error, Roots, Spec, gzip};
use crate::limits::{FLUSH_MS, FRAME_BYTES_MAX, FRAME_MS_MAX};

/// Encoded records: whole lines.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The lines, each with its newline.
    pub lines: Bytes,
    /// How many.
    pub records: u32,
    /// Time of the first record, nanoseconds since the Unix epoch; names the file it begins.
    pub first_ns: i64,
    /// Time of the last record, nanoseconds since the Unix epoch.
    pub last_ns: i64,
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
    /// Files finished under their final name.
    pub rotations: u64,
}

/// How a file was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The last file's finished name; `None` when it was empty and is removed.
    pub path: Option<PathBuf>,
}

/// Writes one task's files. Owned by one thread; nothing in it waits for another task.
pub struct Writer {
    spec: Spec,
    folder: Folder,
    names: Names,
    encoder: Encoder,
    /// `None` after an error: the next records begin a new file.
    live: Option<Live>,
    pending: Pending,
    written: Written,
    backlog: Backlog,
}

struct Live {
    file: File,
    bytes: u64,
    /// Time of the first record (ns since the epoch), and when it came.
    first: Option<(i64, Instant)>,
    /// When the open frame began.
    frame_since: Option<Instant>,
}

/// Records taken and not yet written.
#[derive(Default)]
struct Pending {
    records: u64,
    bytes: u64,
    since: Option<Instant>,
}

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
        let encoder = Encoder::new(spec.compression)
            .map_err(|error| folder.io("prepare compression for", &name, error))?;
        let (live, salvaged) = open_live(&folder, &names, spec)?;
        if spec.compression == Compression::Gzip {
            gzip::tidy(&folder, &names)?;
        }
        let mut backlog = Backlog::scan(&folder, &names)?;
        backlog.make_room(&folder, 0, spec.total_bytes_max);
        let writer = Self {
            spec: spec.clone(),
            folder,
            names,
            encoder,
            live: Some(live),
            pending: Pending::default(),
            written: Written::default(),
            backlog,
        };
        Ok((writer, salvaged))
    }

    /// Takes records. After an error they are in [`Written::lost`], and the next ones begin a new file.
    ///
    /// # Errors
    /// The file could not be written, or no new one be begun.
    pub fn append(&mut self, chunk: &Chunk) -> Result<(), Error> {
        if chunk.records == 0 {
            return Ok(());
        }
        let now = Instant::now();
        let result = self.make_ready(chunk.lines.len());
        let Some(live) = &mut self.live else {
            self.written.lost += u64::from(chunk.records);
            return result;
        };
        live.first.get_or_insert((chunk.first_ns, now));
        self.pending.records += u64::from(chunk.records);
        self.pending.bytes += chunk.lines.len() as u64;
        self.pending.since.get_or_insert(now);
        if self.encoder.buffers() {
            live.frame_since.get_or_insert(now);
        }
        if let Err(error) = self.encoder.add(&chunk.lines) {
            let error = self.folder.io("compress for", &self.names.live, error);
            self.give_up();
            return Err(error);
        }
        if !self.encoder.buffers() {
            self.write_out(&Boundary::Flush)?;
        } else if self.encoder.frame_bytes >= FRAME_BYTES_MAX {
            self.write_out(&Boundary::FrameEnd)?;
        }
        // Also where records come so fast that nobody finds the time to call `tick`.
        result.and(self.tick(now))
    }

    /// Does what is due: flush, frame end, rotation by time.
    ///
    /// # Errors
    /// The file could not be written or finished.
    pub fn tick(&mut self, now: Instant) -> Result<(), Error> {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.rotation_at()) {
            return self.rotate();
        }
        if due(self.frame_end_at()) {
            self.write_out(&Boundary::FrameEnd)?;
        } else if due(self.flush_at()) {
            self.write_out(&Boundary::Flush)?;
        }
        self.rotate_when_full()
    }

    /// When [`Self::tick`] has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        [self.rotation_at(), self.frame_end_at(), self.flush_at()].into_iter().flatten().min()
    }

    /// Writes everything out and gives the file its finished name; removes it when it is empty. Ask
    /// [`Self::take_written`] afterwards for the last counts.
    ///
    /// # Errors
    /// The file could not be written or finished. What was written before is on disk.
    pub fn close(&mut self) -> Result<Closed, Error> {
        let result = self.write_out(&Boundary::FrameEnd);
        let finished = self.finish_live();
        result?;
        Ok(Closed { path: finished?.map(|name| self.folder.path.join(name)) })
    }

    /// What became of records since the last call.
    pub fn take_written(&mut self) -> Written {
        std::mem::take(&mut self.written)
    }

    fn rotation_at(&self) -> Option<Instant> {
        Some(self.live.as_ref()?.first?.1 + self.spec.rotation_interval?)
    }

    fn frame_end_at(&self) -> Option<Instant> {
        Some(self.live.as_ref()?.frame_since? + Duration::from_millis(FRAME_MS_MAX))
    }

    fn flush_at(&self) -> Option<Instant> {
        Some(self.pending.since? + Duration::from_millis(FLUSH_MS))
    }

    /// Makes sure that there is a file with room for that many bytes of lines. An error with a live file set means
    /// that the file before could not be finished properly, but a new one is there.
    fn make_ready(&mut self, line_bytes: usize) -> Result<(), Error> {
        let mut result = Ok(());
        // Plain lines are as long on disk, so a file can end before it is too large.
        if !self.encoder.buffers()
            && let Some(live) = &self.live
            && live.bytes > 0
            && live.bytes + line_bytes as u64 > self.spec.size_bytes_max
        {
            result = self.rotate();
        }
        if self.live.is_none() {
            self.begin()?;
        }
        result
    }

    /// Opens a live file. What an error left in it goes under a finished name.
    fn begin(&mut self) -> Result<(), Error> {
        let (live, salvaged) = open_live(&self.folder, &self.names, &self.spec)?;
        if let Some(salvaged) = salvaged {
            let path = salvaged.path.display();
            tracing::warn!(%path, records = salvaged.records, "kept what an error left behind");
            self.written.rotations += 1;
        }
        self.live = Some(live);
        Ok(())
    }

    /// Writes what is pending up to a boundary; only then do records count as written.
    fn write_out(&mut self, boundary: &Boundary) -> Result<(), Error> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let encoded = match boundary {
            Boundary::Flush => self.encoder.flush(),
            Boundary::FrameEnd => self.encoder.end(),
        };
        let bytes = self.encoder.out.len() as u64;
        self.backlog.make_room(&self.folder, live.bytes + bytes, self.spec.total_bytes_max);
        if let Err(error) = encoded.and_then(|()| live.file.write_all(&self.encoder.out)) {
            let error = self.folder.io("write", &self.names.live, error);
            self.give_up();
            return Err(error);
        }
        self.encoder.out.clear();
        live.bytes += bytes;
        if self.encoder.frame_bytes == 0 {
            live.frame_since = None;
        }
        let pending = std::mem::take(&mut self.pending);
        self.written.records += pending.records;
        self.written.bytes += pending.bytes;
        self.written.disk_bytes += bytes;
        Ok(())
    }

    /// After an error: what was not written is lost, what was stays readable, and the next records begin a new file.
    fn give_up(&mut self) {
        self.written.lost += std::mem::take(&mut self.pending).records;
        if let Err(error) = self.encoder.reset() {
            tracing::warn!(task = self.spec.task, %error, "the compressor could not be reset");
        }
        if let Some(live) = &self.live {
            // Half a write would be damage; what was written before it is not.
            if let Err(error) = live.file.set_len(live.bytes) {
                tracing::warn!(task = self.spec.task, %error, "half a write stays at the end of the file");
            }
        }
        if let Err(error) = self.finish_live() {
            tracing::warn!(%error, "the file keeps its live name for now");
        }
    }

    fn rotate_when_full(&mut self) -> Result<(), Error> {
        match &self.live {
            Some(live) if live.bytes >= self.spec.size_bytes_max => self.rotate(),
            _ => Ok(()),
        }
    }

    fn rotate(&mut self) -> Result<(), Error> {
        self.write_out(&Boundary::FrameEnd)?;
        let finished = self.finish_live();
        self.begin()?;
        finished.map(|_| ())
    }

    /// Gives the live file its finished name, or removes it when it is empty. Afterwards there is none.
    fn finish_live(&mut self) -> Result<Option<String>, Error> {
        let Some(mut live) = self.live.take() else { return Ok(None) };
        if live.bytes == 0 {
            if self.folder.is(&self.names.live, &live.file) {
                self.folder.unlink(&self.names.live)?;
            }
            return Ok(None);
        }
        let first_ns = live.first.map_or(0, |(ns, _)| ns);
        let name = finish(&self.folder, &self.names, &self.spec, &mut live.file, first_ns)?;
        self.written.rotations += 1;
        self.backlog = Backlog::scan(&self.folder, &self.names)?;
        self.backlog.make_room(&self.folder, 0, self.spec.total_bytes_max);
        Ok(Some(name))
    }
}

fn open_live(folder: &Folder, names: &Names, spec: &Spec) -> Result<(Live, Option<Salvaged>), Error> {
    let (mut file, bytes) = folder.open_live(&names.live, spec.mode)?;
    let mut salvaged = None;
    if bytes > 0 {
        salvaged = Some(salvage(folder, names, spec, &mut file)?);
        let (fresh, bytes) = folder.open_live(&names.live, spec.mode)?;
        if bytes > 0 {
            return Err(Error::Busy { task: spec.task.clone(), path: folder.path.join(&names.live) });
        }
        file = fresh;
    }
    Ok((Live { file, bytes: 0, first: None, frame_since: None }, salvaged))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
