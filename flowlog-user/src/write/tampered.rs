//! What somebody else has done to the live file: where to go on, and what is gone with it.

use std::time::Instant;

use super::super::Error;
use super::super::live::{Book, Fate};
use super::super::losses::Place;
use super::super::notice::Loss;
use super::super::salvage::records_left;
use super::Writer;

impl Writer {
    /// Leaves a file that is not what was written, and begins a new one, into which goes what waits, and what is gone
    /// with the old one.
    pub(super) fn begin_anew(&mut self, fate: Fate) -> Result<(), Error> {
        let what = match fate {
            Fate::Deleted => "deleted",
            Fate::Moved => "moved or replaced",
            Fate::Changed | Fate::Intact => "changed",
        };
        let path = self.folder.path.join(&self.names.live);
        let error = Error::Tampered { task: self.spec.task.clone(), path, what };
        tracing::warn!(%error, records = self.book.records, "somebody else works on the task's files");
        let gone = self.note_gone(fate, &error.to_string());
        if gone == 0 || fate != Fate::Deleted {
            self.losses.say(format!("{error}; {} records were written to it", self.book.records));
        }
        match fate {
            Fate::Moved => {
                self.write_index();
                self.forget(&error.to_string());
            }
            Fate::Deleted => self.forget(&error.to_string()),
            Fate::Changed | Fate::Intact => {
                // It is not known what stands where, so it gets no index.
                self.put_back(&error.to_string());
                self.book.frames.clear();
                self.book.unsealed = false;
                if let Err(error) = self.finish_live(false) {
                    tracing::warn!(%error, "the file keeps its live name for now");
                }
            }
        }
        if self.live.is_none() {
            self.begin()?;
        }
        self.say_losses(Instant::now(), true)
    }

    /// Counts the records that were written and cannot be read any more, and has the next file say so; gives how many.
    /// What the file told of losses is told again where none of it is left.
    fn note_gone(&mut self, fate: Fate, reason: &str) -> u64 {
        let lines = match (fate, &self.live) {
            (Fate::Deleted, _) => 0,
            // What cannot be read now may be later: nothing is called gone.
            (Fate::Changed, Some(live)) => records_left(&live.file, &self.spec).unwrap_or(u64::MAX),
            (Fate::Changed | Fate::Moved | Fate::Intact, _) => u64::MAX,
        };
        let (records, notices) = self.book.of_lines(lines);
        if notices == 0 {
            self.losses.tell_again();
        }
        let gone = self.book.records - records;
        if let Some((first_ns, last_ns)) = self.book.span_ns.filter(|_| gone > 0) {
            self.written.gone += gone;
            self.losses.add(Place::Written, Loss { records: gone, first_ns, last_ns, reason: reason.into() });
        }
        gone
    }

    /// Lets go of a live file that has gone elsewhere.
    fn forget(&mut self, reason: &str) {
        self.put_back(reason);
        if let Some(live) = &mut self.live {
            live.release();
        }
        self.live = None;
        self.losses.begin_file();
        self.book = Book::default();
    }
}
