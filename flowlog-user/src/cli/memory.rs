//! What the daemon and its tables can take of the machine's memory, said at the start.

use flowlog_user::capture::live::{self, Memory};
use flowlog_user::decode::Decoder;
use flowlog_user::record::Flow;
use flowlog_user::task;

use super::data_plane::{BATCH_FLOWS, BATCHES_WAITING};

/// Program, threads, libraries and what they allocate once.
const PROGRAM_BYTES: u64 = 48 << 20;
/// A line of a record is hardly longer.
const LINE_BYTES: u64 = 2 << 10;
/// Tasks whose turns are taken at the same time, each with a batch of lines on its way into the compressor.
const TURNS: u64 = 8;

/// What the tables take of the kernel's memory.
pub(super) fn say_kernels(options: &live::Options) {
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = cpus.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<u32>().ok());
    let memory = Memory::of(options, last.map_or(1, |last| last + 1));
    tracing::info!(
        table_entries = options.table_entries,
        table_bytes = memory.table_bytes,
        ring_bytes = memory.ring_bytes,
        total_bytes = memory.total_bytes,
        "kernel memory"
    );
}

/// What the daemon itself can come to, which limits see to; resident pages of the ring, which count twice, included.
pub(super) fn say_daemons<'a>(
    options: &live::Options,
    running: impl ExactSizeIterator<Item = &'a task::Spec>,
) {
    let tasks = running.len();
    let memory = task::Memory::of(running);
    let connections_bytes = Decoder::bytes_max(options.table_entries);
    let batches = (BATCH_FLOWS * (BATCHES_WAITING + 2)) as u64 * size_of::<Flow>() as u64;
    let lines = BATCH_FLOWS as u64 * LINE_BYTES * TURNS;
    let program_bytes = PROGRAM_BYTES + 2 * u64::from(options.ring_bytes) + batches + lines;
    tracing::info!(
        tasks,
        tasks_bytes = memory.tasks_bytes,
        queues_bytes = memory.queues_bytes,
        compressors_bytes = memory.compressors_bytes,
        aggregates_bytes = memory.aggregates_bytes,
        connections_bytes,
        program_bytes,
        total_bytes = memory.total_bytes() + connections_bytes + program_bytes,
        "daemon memory, at most"
    );
}
