use std::path::PathBuf;
use std::time::Duration;

use super::name::Names;

/// Where and how one task's records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The task's name, for messages.
    pub task: String,
    /// The task's `filePath`.
    pub path: PathBuf,
    /// How files are compressed.
    pub compression: Compression,
    /// Bytes on disk after which a file is finished.
    pub size_bytes_max: u64,
    /// Bytes on disk of all of the task's files; the oldest finished ones go first.
    pub total_bytes_max: u64,
    /// Time after a file's first record at which it is finished.
    pub rotation_interval: Option<Duration>,
    /// Permission bits of the files.
    pub mode: u32,
}

impl Spec {
    /// The file that grows: no two tasks may share it.
    #[must_use]
    pub fn live_path(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(Names::new(&name, self.compression).live)
    }

    /// Where finished files are, as a glob.
    #[must_use]
    pub fn finished_paths(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(Names::new(&name, self.compression).pattern(self.compression))
    }
}

/// How files are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// zstd frames, live and finished.
    Zstd {
        /// zstd's level.
        level: i32,
    },
    /// Plain lines while live, one gzip member when finished (Hubble's `fileCompress: true`).
    Gzip,
    /// Plain lines (Hubble's `fileCompress: false`).
    None,
}

impl Compression {
    /// The name as in a task's `compression`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd { .. } => "zstd",
            Self::Gzip => "gzip",
            Self::None => "none",
        }
    }
}
