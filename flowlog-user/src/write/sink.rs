use std::time::Instant;

use super::nothing::Nothing;
use super::stdout::Stdout;
use super::{Chunk, Error, Files, Place, Roots, Salvaged, Show, Spec, Writer, Written};

/// Where one task's records go.
pub enum Sink {
    /// Its files.
    File(Box<Writer>),
    /// The process' stdout.
    Stdout(Box<Stdout>),
    /// Nowhere, compressed: to know what it would cost.
    Nothing(Box<Nothing>),
}

impl Sink {
    /// Opens what the spec names. Gives back what a killed process left in a file's place.
    ///
    /// # Errors
    /// As [`Writer::open`]; or stdout is closed.
    pub fn open(spec: &Spec, roots: &Roots) -> Result<(Self, Option<Salvaged>), Error> {
        if spec.is_stdout() {
            return Ok((Self::Stdout(Box::new(Stdout::open(spec, &roots.node)?)), None));
        }
        let (writer, salvaged) = Writer::open(spec, roots)?;
        Ok((Self::File(Box::new(writer)), salvaged))
    }

    /// The process' stdout, with records as `show` lays them out.
    ///
    /// # Errors
    /// Stdout is closed.
    pub fn shown(spec: &Spec, node: &str, show: Show) -> Result<Self, Error> {
        Ok(Self::Stdout(Box::new(Stdout::shown(spec, node, show)?)))
    }

    /// Takes records. `patient` waits for a slow reader of stdout.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn append(&mut self, chunk: &Chunk, patient: bool) -> Result<(), Error> {
        match self {
            Self::File(writer) => writer.append(chunk),
            Self::Stdout(stdout) => stdout.append(chunk, patient),
            Self::Nothing(nothing) => nothing.append(chunk),
        }
    }

    /// Notes records that were lost before they came here.
    pub fn note_lost(&mut self, place: Place, records: u64, first_ns: i64, last_ns: i64, reason: &str) {
        match self {
            Self::File(writer) => writer.note_lost(place, records, first_ns, last_ns, reason),
            Self::Stdout(stdout) => stdout.note_lost(place, records, first_ns, last_ns, reason),
            Self::Nothing(_) => {}
        }
    }

    /// Does what is due.
    ///
    /// # Errors
    /// As [`Writer::tick`].
    pub fn tick(&mut self, now: Instant) -> Result<(), Error> {
        match self {
            Self::File(writer) => writer.tick(now),
            Self::Stdout(stdout) => stdout.tick(now),
            Self::Nothing(_) => Ok(()),
        }
    }

    /// When [`Self::tick`] has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self {
            Self::File(writer) => writer.deadline(),
            Self::Stdout(stdout) => stdout.deadline(),
            Self::Nothing(_) => None,
        }
    }

    /// The settings it was opened with.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        match self {
            Self::File(writer) => writer.spec(),
            Self::Stdout(stdout) => stdout.spec(),
            Self::Nothing(nothing) => nothing.spec(),
        }
    }

    /// Why nothing is written at the moment.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Self::File(writer) => writer.trouble(),
            Self::Stdout(stdout) => stdout.trouble(),
            Self::Nothing(_) => None,
        }
    }

    /// Why the task ends, for its last record.
    pub fn gone(&mut self, reason: &str) {
        match self {
            Self::File(writer) => writer.gone(reason),
            Self::Stdout(stdout) => stdout.gone(reason),
            Self::Nothing(_) => {}
        }
    }

    /// Writes everything out.
    ///
    /// # Errors
    /// As [`Writer::close`].
    pub fn close(&mut self, patient: bool) -> Result<(), Error> {
        match self {
            Self::File(writer) => writer.close().map(drop),
            Self::Stdout(stdout) => stdout.close(patient),
            Self::Nothing(nothing) => nothing.close(),
        }
    }

    /// The files since the last call.
    pub fn take_files(&mut self) -> Files {
        match self {
            Self::File(writer) => writer.take_files(),
            Self::Stdout(_) | Self::Nothing(_) => Files::default(),
        }
    }

    /// Deletes what a task that is gone for good leaves, where that is configured.
    ///
    /// # Errors
    /// As [`Writer::clear`].
    pub fn clear(&mut self) -> Result<u64, Error> {
        match self {
            Self::File(writer) => writer.clear(),
            Self::Stdout(_) | Self::Nothing(_) => Ok(0),
        }
    }

    /// What became of records since the last call.
    pub fn take_written(&mut self) -> Written {
        match self {
            Self::File(writer) => writer.take_written(),
            Self::Stdout(stdout) => stdout.take_written(),
            Self::Nothing(nothing) => nothing.take_written(),
        }
    }
}
