use std::path::PathBuf;
use std::time::Duration;

/// Where and how one task's records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The task's name.
    pub task: String,
    /// The live file, without the extension of its compression.
    pub path: PathBuf,
    /// How it is compressed.
    pub compression: Compression,
    /// Bytes on disk after which a file is rotated.
    pub size_bytes_max: u64,
    /// Bytes on disk that the live file and the finished ones may take together.
    pub total_bytes_max: u64,
    /// Age after which a file is rotated.
    pub rotation_interval: Option<Duration>,
    /// Permission bits of new files.
    pub mode: u32,
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// While it is written.
    Zstd {
        /// zstd's level.
        level: i32,
    },
    /// At rotation; the live file has plain lines.
    Gzip,
    /// Plain lines.
    None,
}
