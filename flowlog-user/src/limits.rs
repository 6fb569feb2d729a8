//! Every bound of the daemon in one place, with its unit and why it is what it is.

/// Bytes of the BPF ring buffer (a power of two). Its pages are mapped twice, so they count twice in VmRSS.
pub const RING_BYTES: u32 = 8 << 20;

/// Default entries of the kernel's flow table.
pub const TABLE_ENTRIES: u32 = 1 << 17;

/// Distinct pairs of events and update interval over all tasks.
pub const CADENCES_MAX: usize = 4;

/// Bytes of records (before compression) after which a zstd frame ends.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// Milliseconds after which a frame that holds records ends.
pub const FRAME_MS_MAX: u64 = 30_000;

/// Milliseconds after which records that were taken are readable in the file.
pub const FLUSH_MS: u64 = 1_000;

/// Chunks of encoded records that may wait for one task's writer.
pub const WRITER_QUEUE_CHUNKS: usize = 256;

/// Bytes of a task file (YAML) that are read at most.
pub const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// Depth of a task file that is followed at most.
pub const CONFIG_DEPTH_MAX: usize = 64;

/// Nodes of a task file that aliases (`*name`) may add: enough for shared lists, too few for a file that explodes.
pub const CONFIG_ALIAS_NODES_MAX: usize = 10_000;

/// Milliseconds that a task's `updateInterval` must have.
pub const UPDATE_INTERVAL_MS_MIN: u64 = 1_000;

/// Milliseconds that a task's `fileRotationInterval` must have.
pub const ROTATION_INTERVAL_MS_MIN: u64 = 1_000;

/// Bytes of `audit.log` after which it is put aside as `audit.log.1` (and what was there before is gone).
pub const AUDIT_BYTES_MAX: u64 = 16 << 20;

/// Milliseconds for which a task file must be absent before its tasks go: editors and ConfigMaps take files away for
/// a moment.
pub const CONFIG_GONE_MS: u64 = 50;

/// Milliseconds after which a burst of changes is read even though it goes on.
pub const CONFIG_SETTLE_MS_MAX: u64 = 250;

/// Milliseconds between two looks at all task files, whatever was notified.
pub const CONFIG_POLL_MS: u64 = 5_000;
