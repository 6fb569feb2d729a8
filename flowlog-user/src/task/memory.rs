use super::Spec;
use crate::limits::{
    AGGREGATE_BYTES_MAX, COMPRESSORS_BYTES_MAX, COMPRESSORS_SHARED, UNCOMPRESSED_BYTES_MAX,
    WAITING_ALL_BYTES_MAX, WRITER_QUEUES_BYTES,
};
use crate::write::{Compression, SCRATCH_BYTES, compressor_bytes};

/// Of each task: its settings, its writer, what of its folder it remembers.
const TASK_BYTES: u64 = 32 << 10;
/// What zstd's output takes while it is written, for each task that has a frame open.
const OUTPUT_BYTES: u64 = (128 << 10) + 64;
/// What a byte of a task's text becomes: a tree while it is read (200 bytes for a value of five or more), a filter, its
/// part of the classifier, and the two of them before while they are replaced.
const TEXT_FACTOR: u64 = 100;

/// The most memory that tasks can take in the daemon, in bytes, by what keeps it so. Compiled regular expressions are
/// not in it: each has a limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Settings, filters and writers, each with lines that wait to be compressed.
    pub tasks_bytes: u64,
    /// Records that wait for writers, and lines of files that cannot be written.
    pub queues_bytes: u64,
    /// Compressors.
    pub compressors_bytes: u64,
    /// What tasks with `fieldAggregate` add up.
    pub aggregates_bytes: u64,
}

impl Memory {
    /// Of these tasks.
    #[must_use]
    pub fn of<'a>(tasks: impl IntoIterator<Item = &'a Spec>) -> Self {
        let mut memory =
            Self { queues_bytes: WRITER_QUEUES_BYTES + WAITING_ALL_BYTES_MAX, ..Self::default() };
        let mut shared_bytes = 0;
        for task in tasks {
            let text = task.file.definition.0.len() as u64 * TEXT_FACTOR;
            let frame = match task.file.compression {
                Compression::Zstd { level } => {
                    shared_bytes = shared_bytes.max(compressor_bytes(level) as u64);
                    UNCOMPRESSED_BYTES_MAX as u64 + OUTPUT_BYTES
                }
                Compression::Gzip { .. } | Compression::None => 0,
            };
            memory.tasks_bytes += TASK_BYTES + text + frame;
            memory.aggregates_bytes += task.aggregation.map_or(0, |_| AGGREGATE_BYTES_MAX as u64);
        }
        // Those that are lent for a moment, and those that lie idle.
        let others = if shared_bytes == 0 { 0 } else { shared_bytes + SCRATCH_BYTES as u64 };
        let others = 2 * COMPRESSORS_SHARED as u64 * others;
        memory.compressors_bytes = if others == 0 { 0 } else { COMPRESSORS_BYTES_MAX as u64 + others };
        memory
    }

    /// All of it.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.tasks_bytes + self.queues_bytes + self.compressors_bytes + self.aggregates_bytes
    }
}
