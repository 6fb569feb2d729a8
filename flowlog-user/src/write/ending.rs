//! How a file ends: rotated, or closed for good.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Instant;

use super::super::encoder::Encoder;
use super::super::finish::{Successor, finish};
use super::super::live::{Book, Live};
use super::super::notice::header;
use super::super::{Compression, Error, repack};
use super::{Boundary, Closed, Files, Writer};
use crate::limits::FILES_TOLD_MAX;
use crate::record::container::Index;

impl Writer {
    /// Writes everything out and gives the file its finished name; removes it when it is empty. Ask
    /// [`Self::take_written`] and [`Self::take_files`] afterwards for the last counts.
    ///
    /// # Errors
    /// Not everything could be written, or the file not be finished. What counts as written can be read: a file that
    /// cannot even be closed keeps its live name, and the next start finishes it.
    pub fn close(&mut self) -> Result<Closed, Error> {
        self.closing = true;
        let written = match self.trouble {
            // What waits comes before what is lost.
            Some(_) => self.write_out(Boundary::Flush),
            None => Ok(()),
        };
        let written =
            written.and_then(|()| self.say_last()).and_then(|()| self.write_out(Boundary::FrameEnd));
        if let Err(error) = &written {
            self.discard(&error.to_string());
            self.say_at_the_end();
        }
        let left = self.live.as_ref().filter(|live| live.bytes > 0).is_some();
        let finished = if self.book.unsealed { Ok(None) } else { self.finish_live(false) };
        if left && !matches!(finished, Ok(Some(_))) && self.folder.exists(&self.names.live) {
            self.files.push(self.folder.path.join(&self.names.live));
        }
        self.live = None;
        (self.closing, self.spending) = (false, false);
        written?;
        Ok(Closed { path: finished?.map(|name| self.folder.path.join(name)) })
    }

    fn say_last(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        self.say_losses(now, true)?;
        self.say_gone(now)
    }

    /// Not everything could be written: with what is set aside for it the open frame is closed, and the file says so.
    pub(super) fn say_at_the_end(&mut self) {
        self.spending = true;
        let sealed = self.seal();
        if !matches!(sealed, Ok(true)) {
            let error = sealed.err().map(|error| error.to_string());
            tracing::warn!(task = self.spec.task, error, "the file stays as a crash would leave it");
            return;
        }
        self.behind = false;
        let said = self.say_last().and_then(|()| self.encode(Boundary::FrameEnd)).and_then(|()| self.write());
        if let Err(error) = said {
            tracing::warn!(%error, "the file cannot say what is missing at its end");
            self.step_back("");
            let _ = self.seal(); // It is closed already.
        }
    }

    /// Finishes the live file and begins the next.
    pub(super) fn rotate(&mut self) -> Result<(), Error> {
        self.write_out(Boundary::FrameEnd)?;
        let finished = self.finish_live(true);
        let begun = if self.live.is_some() { Ok(()) } else { self.begin() };
        if let Err(error) = &begun {
            self.suffer(error);
        }
        finished.and(begun)
    }

    /// Ends the file with an index of its frames.
    pub(super) fn write_index(&mut self) {
        let Some(live) = &mut self.live else { return };
        // Of what others have changed nothing is known.
        let as_written = live.file.metadata().is_ok_and(|found| found.len() == live.bytes);
        if self.book.frames.is_empty() || live.bytes != live.whole_bytes || !as_written || self.book.unsealed
        {
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
        let written = live.bytes - before;
        self.count_disk(written);
    }

    /// Puts small frames and flushes together, where they cost more than they should.
    fn repack(&mut self) {
        let Some(live) = &mut self.live else { return };
        if !repack::is_worth_it(&self.book, live) {
            return;
        }
        let header = header(&self.spec, &self.notices);
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

    /// Gives the live file its finished name, or removes it when it is empty. Afterwards there is none, or the next one
    /// where that is asked for and could be begun in the same step.
    pub(super) fn finish_live(&mut self, go_on: bool) -> Result<Option<String>, Error> {
        self.repack();
        self.write_index();
        let Some(mut live) = self.live.take() else { return Ok(None) };
        live.release();
        if live.bytes == 0 || live.file.metadata().is_ok_and(|found| found.len() == 0) {
            self.book = Book::default();
            self.losses.begin_file();
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
        self.losses.begin_file();
        // Names sort as the files were written, also when times do not.
        let first_ns = book.first.map_or(0, |(ns, _)| ns).max(self.named_ns);
        let before = self.names.live.clone();
        let mut names = self.names.clone();
        std::mem::swap(&mut names, &mut self.names);
        self.names_of_today();
        let successor = if go_on && self.names.live == before { Successor::Wanted } else { Successor::None };
        let finished =
            finish(&self.folder, &names, &self.spec, self.owner, &mut live.file, (first_ns, successor));
        if finished.is_err() {
            self.names = names; // It keeps its live name.
        }
        let finished = finished?;
        if let Some(next) = finished.next {
            self.live = Some(Live::new(next));
            self.begin_book(Instant::now());
        }
        if matches!(self.spec.compression, Compression::Gzip { .. }) {
            self.written.disk_bytes += self.folder.size(&finished.name).unwrap_or(0);
        }
        self.named_ns = first_ns.max(self.names.behind(&finished.name));
        self.note_finished(self.folder.path.join(&finished.name));
        self.backlog.note_own(&self.folder, &finished.name);
        let mut all = finished.others;
        all.push(finished.name.clone());
        self.backlog.find(&self.folder, &self.names, &all);
        self.backlog.make_room(&self.folder, 0, self.spec.total_bytes_max);
        Ok(Some(finished.name))
    }

    pub(super) fn note_finished(&mut self, path: PathBuf) {
        self.written.rotations += 1;
        self.files.push(path);
    }

    /// The files since the last call.
    pub fn take_files(&mut self) -> Files {
        self.files.deleted = self.backlog.take_deleted();
        std::mem::take(&mut self.files)
    }
}

impl Files {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { paths: VecDeque::new(), before: 0, removed: 0, deleted: Vec::new() }
    }

    /// The last one.
    #[must_use]
    pub fn last(&self) -> Option<&PathBuf> {
        self.paths.back()
    }

    pub(super) fn push(&mut self, path: PathBuf) {
        self.paths.push_back(path);
        if self.paths.len() > FILES_TOLD_MAX {
            self.paths.pop_front();
            self.before += 1;
        }
    }

    /// Adds what came later. What is deleted is no longer there.
    pub fn join(&mut self, later: Self) {
        self.before += later.before;
        self.removed += later.removed + later.deleted.len() as u64;
        later.paths.into_iter().for_each(|path| self.push(path));
        let deleted: HashSet<&PathBuf> = later.deleted.iter().map(|(path, _)| path).collect();
        self.paths.retain(|path| !deleted.contains(path));
    }
}
