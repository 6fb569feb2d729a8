use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::name::Names;
use crate::record::{Foreign, Format};

/// The `filePath` that stands for the process' stdout.
pub const STDOUT: &str = "stdout";

/// Where and how one task's records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The task's name, for messages.
    pub task: String,
    /// The task's `filePath`; `{task}`, `{node}` and `{date}` stand for the obvious.
    pub path: PathBuf,
    /// How records are written.
    pub format: Format,
    /// How lines about the log itself become records of that format.
    pub notices: NoticeEncoder,
    /// How files are compressed.
    pub compression: Compression,
    /// Bytes on disk after which a file is finished.
    pub size_bytes_max: u64,
    /// Bytes on disk of all of the task's files; the oldest finished ones go first.
    pub total_bytes_max: u64,
    /// Age (of its last write) at which a finished file is deleted.
    pub age_max: Option<Duration>,
    /// Per cent of the file system that stay free: the task's oldest files go first, then nothing is written.
    pub free_percent_min: Option<u8>,
    /// Time after a file's first record at which it is finished.
    pub rotation_interval: Option<Duration>,
    /// Whether files end with the clock: at whole multiples of that interval in UTC.
    pub rotation_aligned: bool,
    /// Permission bits of the files.
    pub mode: u32,
    /// Whose files they are.
    pub owner: Owner,
    /// What is safe from a power cut.
    pub sync: Sync,
    /// What happens when there is no space left.
    pub on_full: OnFull,
    /// What becomes of the files when the task is gone.
    pub on_end: OnEnd,
    /// The task as configured, for the file's header.
    pub definition: Definition,
}

impl Spec {
    /// Whether records go to the process' stdout instead of files, as with Hubble's exporter.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        self.path == Path::new(STDOUT)
    }

    /// The task's `filePath` with its name filled in, as far as that can be before the node is known.
    #[must_use]
    pub fn filled_path(&self) -> PathBuf {
        fill(&self.path, &self.task, None)
    }

    /// The file that grows: no two tasks may share it.
    #[must_use]
    pub fn live_path(&self) -> PathBuf {
        if self.is_stdout() {
            return self.path.clone();
        }
        let path = self.filled_path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.with_file_name(Names::new(&name, self.compression).live)
    }

    /// Where finished files are, as a glob.
    #[must_use]
    pub fn finished_paths(&self) -> PathBuf {
        if self.is_stdout() {
            return self.path.clone();
        }
        let path = self.filled_path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.with_file_name(Names::new(&name, self.compression).pattern(self.compression))
    }

    /// Tells by its name whether a file beside the live one is a finished one.
    pub fn finished_names(&self) -> impl Fn(&str) -> bool + use<> {
        let path = self.filled_path();
        let names = Names::new(&path.file_name().unwrap_or_default().to_string_lossy(), self.compression);
        move |name| names.parse(name).is_some()
    }
}

/// A path with its placeholders filled in, apart from `{date}`, and from `{node}` where that is not known yet. What
/// would begin a folder becomes `-`.
pub(super) fn fill(path: &Path, task: &str, node: Option<&str>) -> PathBuf {
    let plain = |text: &str| text.replace(['/', '\0'], "-");
    let mut text = path.to_string_lossy().replace("{task}", &plain(task));
    if let Some(node) = node {
        text = text.replace("{node}", &plain(node));
    }
    text.into()
}

/// How files are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// zstd frames, live and finished.
    Zstd {
        /// zstd's level.
        level: i32,
    },
    /// Plain records while live, one gzip member when finished (Hubble's `fileCompress: true`).
    Gzip {
        /// gzip's level.
        level: u32,
    },
    /// Plain records (Hubble's `fileCompress: false`).
    None,
}

impl Compression {
    /// The name as in a task's `compression`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd { .. } => "zstd",
            Self::Gzip { .. } => "gzip",
            Self::None => "none",
        }
    }
}

/// User and group of the files, each a name or a number; `None` is the daemon's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// `fileUser`.
    pub user: Option<String>,
    /// `fileGroup`.
    pub group: Option<String>,
}

/// `fileSync`: when a file is synced to the disk. A crash of the daemon never loses what was flushed; this is about
/// the machine losing power. A finished file is always synced before it gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// When it is finished: a power cut can take the whole live file.
    #[default]
    None,
    /// At the end of each frame too: a power cut takes at most the last 30 s or 1 MiB of records.
    Frame,
    /// A second after the last sync at the latest, with the flush: a power cut takes at most about two seconds.
    Interval,
}

/// `onFull`: what happens when there is no space left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// Records are dropped and counted until there is space again; what is written stays.
    #[default]
    Drop,
    /// The task's oldest finished files are deleted first, one after the other.
    DeleteOldest,
}

/// `onEnd`: what becomes of the files of a task that has ended or was removed. A stop of the daemon is neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEnd {
    /// They stay.
    #[default]
    Keep,
    /// Those proved the task's own are deleted.
    Delete,
}

/// Appends an event in a format. The format says which, so all are equal.
#[derive(Clone, Copy, Debug)]
pub struct NoticeEncoder(pub fn(Format, &Foreign, &mut Vec<u8>));

impl PartialEq for NoticeEncoder {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for NoticeEncoder {}

/// The task as configured, as JSON. It says what a file holds, not how it is written, so that a change of it is no
/// reason to begin a new file: all definitions are equal.
#[derive(Clone, Debug, Default)]
pub struct Definition(pub Arc<str>);

impl PartialEq for Definition {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Definition {}
