//! What is told of files: each change once.

use std::path::PathBuf;

use super::diff::Decision;
use super::memory::Hash;
use super::versions::Form;
use crate::tree::Problem;

/// Something about a file that was not so at the look before.
#[derive(Clone, Debug)]
pub enum News {
    /// Its text is new and valid.
    Accepted {
        /// The file.
        file: PathBuf,
        /// SHA-256 of its text.
        hash: Hash,
        /// What is allowed but probably not meant.
        warnings: Vec<Problem>,
    },
    /// It is not valid or cannot be read; what it held stays as it was.
    Rejected {
        /// The file, or the folder.
        file: PathBuf,
        /// SHA-256 of its text, where that could be read.
        hash: Option<Hash>,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
    /// It has an older form and was converted, for the first time with this text.
    Converted {
        /// The file.
        file: PathBuf,
        /// Its form.
        form: Form,
        /// SHA-256 of its text.
        hash: Hash,
        /// A task of it is in force: not each of them is there in a newer form.
        counts: bool,
    },
    /// It is bad at the start; the text that was accepted last is used instead.
    Restored {
        /// The file.
        file: PathBuf,
        /// SHA-256 of the text that is used.
        hash: Hash,
    },
    /// It is not there any more.
    Gone {
        /// The file.
        file: PathBuf,
    },
    /// A pool is not defined any more.
    PoolGone {
        /// Its name.
        name: Box<str>,
        /// Where it was defined.
        file: PathBuf,
        /// Tasks that name it and go on with the addresses that it had.
        tasks: Vec<String>,
    },
    /// Of a pool an older version counts than before, or another file has it now, with other addresses.
    PoolOther {
        /// Its name.
        name: Box<str>,
        /// Where that is defined.
        file: PathBuf,
        /// What is different: versions or files, and numbers of addresses.
        what: String,
        /// An older version of the same counts.
        is_older: bool,
        /// Tasks that name it.
        tasks: Vec<String>,
    },
    /// What several files say together: allowed, and worth knowing.
    Noticed {
        /// The file.
        file: PathBuf,
        /// What.
        warnings: Vec<Problem>,
        /// What of it is not in force.
        refused: Vec<Problem>,
    },
}

/// What a look at the files has shown.
#[derive(Debug, Default)]
pub struct Look {
    /// What is new, in byte order of files.
    pub news: Vec<News>,
    /// The tasks from now on; `None` when no file has changed.
    pub decision: Option<Decision>,
    /// A file seems to be gone; look again after [`CONFIG_GONE_MS`](crate::limits::CONFIG_GONE_MS).
    pub again: bool,
}
