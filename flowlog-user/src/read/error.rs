use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why nothing more can be read or printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder that was named cannot be opened.
    #[error("cannot read {path}: {source}; check the path and its permissions", path = path.display())]
    Open {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A pattern that is none, or that nothing fits.
    #[error("{pattern}: {what}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        what: String,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

/// A part of a file that could not be read. What stands before and behind it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in the file (compressed, where it is) it begins: with the frame, where it has frames.
    pub offset: u64,
    /// Where what can be read begins again, or the file ends.
    pub end: u64,
    /// What is wrong.
    pub what: String,
}

impl Damage {
    /// Adds to a list; what continues the last one makes that longer.
    pub(super) fn note(list: &mut Vec<Self>, damage: Self) {
        match list.last_mut() {
            Some(last)
                if last.path == damage.path && last.what == damage.what && last.end == damage.offset =>
            {
                last.end = damage.end;
            }
            _ => list.push(damage),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, end, what } = self;
        write!(f, "{}: damaged at byte {offset}", path.display())?;
        if end > offset {
            write!(f, " to {end}")?;
        }
        write!(f, ": {what}")
    }
}
