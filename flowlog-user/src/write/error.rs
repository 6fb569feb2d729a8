use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

/// What can go wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder given as log root cannot be used.
    #[error("cannot open the log root {path}: {source}; create it or choose another --log-root", path = path.display())]
    Root {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder given for a replay's files cannot be made.
    #[error("cannot create {path}: {source}; choose another folder", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The path is below none of the log roots.
    #[error(
        "task {task}: {path} is in none of the folders that may be written ({roots}); choose another filePath, \
         or allow its folder with --log-root", path = path.display()
    )]
    OutsideRoots {
        /// The task.
        task: String,
        /// Its path.
        path: PathBuf,
        /// The roots, separated by commas.
        roots: String,
    },
    /// A symbolic link stands where a folder or file of ours should.
    #[error(
        "task {task}: {path} is or leads through a symbolic link, which is never followed; remove the link or \
         choose another filePath", path = path.display()
    )]
    Link {
        /// The task.
        task: String,
        /// Where the link was met.
        path: PathBuf,
    },
    /// Something else than a file of one name.
    #[error(
        "task {task}: {path} is no regular file of a single name; remove it or choose another filePath",
        path = path.display()
    )]
    NotRegular {
        /// The task.
        task: String,
        /// What is in the way.
        path: PathBuf,
    },
    /// The live file is locked.
    #[error("task {task}: another process writes {path}; stop it or choose another filePath", path = path.display())]
    Busy {
        /// The task.
        task: String,
        /// The live file.
        path: PathBuf,
    },
    /// The live file was renamed or replaced by someone else.
    #[error(
        "task {task}: {path} was moved or replaced while it was written; its records are wherever it went, and \
         a new file is begun", path = path.display()
    )]
    Replaced {
        /// The task.
        task: String,
        /// The live file.
        path: PathBuf,
    },
    /// A user or group is not known.
    #[error(
        "task {task}: {key} {name} is neither a number nor a name in {database}; create it or choose another"
    )]
    Owner {
        /// The task.
        task: String,
        /// `fileUser` or `fileGroup`.
        key: &'static str,
        /// What was given.
        name: String,
        /// Where it was looked for.
        database: &'static str,
    },
    /// Less of the file system is free than the task leaves free.
    #[error(
        "task {task}: only {free} % of the file system at {path} are free and {min} % are to stay so; records are \
         dropped until there is space", path = path.display()
    )]
    LowSpace {
        /// The task.
        task: String,
        /// Its folder.
        path: PathBuf,
        /// Free now, per cent.
        free: u64,
        /// `fileMinFreePercent`.
        min: u8,
    },
    /// The live file is not what was written.
    #[error(
        "task {task}: {path} was {what} by someone else while it was written; a new file is begun", path = path.display()
    )]
    Tampered {
        /// The task.
        task: String,
        /// The live file.
        path: PathBuf,
        /// What was done to it.
        what: &'static str,
    },
    /// The system refused.
    #[error("task {task}: cannot {what} {path}: {source}", path = path.display())]
    Io {
        /// The task.
        task: String,
        /// The attempt, as a verb.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file beside another.
    #[error("cannot write {path}: {source}; {remedy}", path = path.display())]
    Beside {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What to do.
        remedy: String,
    },
    /// One of the daemon's own files.
    #[error("cannot {what} {path}: {source}; choose another --state-dir or free its path", path = path.display())]
    State {
        /// The attempt, as a verb.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// Whether it is that of a full disk.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::LowSpace { .. })
            || matches!(self, Self::Io { source, .. } if matches!(Errno::from_io_error(source), Some(Errno::NOSPC | Errno::DQUOT)))
    }
}
