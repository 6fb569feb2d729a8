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
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

/// A file that could not be read to its end. What stands before the place was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Bytes of the file (compressed, where it is) that were taken before the trouble.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, what } = self;
        write!(f, "{}: damaged at byte {offset}: {what}; the records before it were printed", path.display())
    }
}
