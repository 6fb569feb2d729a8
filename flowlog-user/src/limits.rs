//! Every bound of the daemon in one place, with its unit and why it is what it is.

/// Bytes of the BPF ring buffer (a power of two). Its pages are mapped twice, so they count twice in VmRSS.
pub const RING_BYTES: u32 = 8 << 20;

/// Default entries of the kernel's flow table.
pub const TABLE_ENTRIES: u32 = 1 << 17;

/// Prefixes and addresses of all tasks that the kernel tests; more widen its test.
pub const RULE_PREFIXES_MAX: usize = 1 << 15;

/// Ports of all tasks that the kernel tests; more widen its test.
pub const RULE_PORTS_MAX: usize = 1 << 13;

/// Directions of open connections whose next record is divided because tasks have joined; of more than that a task that
/// joins gets the whole record.
pub const DIVIDED_MAX: usize = 1 << 18;

/// Connections of which is remembered what they had sent a moment ago, while somebody asks who speaks most; what others
/// send is not told.
pub const TALKERS_CONNECTIONS_MAX: usize = 1 << 17;

/// Distinct pairs of events and update interval over all tasks.
pub const CADENCES_MAX: usize = 4;

/// Bytes of records (before compression) after which a zstd frame ends.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// Milliseconds after which a frame that holds records ends.
pub const FRAME_MS_MAX: u64 = 30_000;

/// Milliseconds after which records that were taken are readable in the file.
pub const FLUSH_MS: u64 = 1_000;

/// The same for a file's first records: whoever waits for something to be logged sees it at once.
pub const FIRST_FLUSH_MS: u64 = 100;

/// Bytes of encoded records that may wait for one task's writer. There is no limit to their chunks: a second of a quiet node
/// is hundreds of them, and a sync or the compression of a finished file takes as long.
pub const WRITER_QUEUE_BYTES: u64 = 64 << 20;

/// Bytes that a chunk takes in the queue beside its records.
pub const WRITER_CHUNK_BYTES: u64 = 256;

/// Bytes of encoded records that may wait for the writers of all tasks together.
pub const WRITER_QUEUES_BYTES: u64 = 256 << 20;

/// Threads of all writers, and those that one file system may keep: a disk that hangs keeps a thread for each task that
/// writes to it, until it is taken to hang for all of them.
pub const WRITER_THREADS_MAX: usize = 512;
/// See [`WRITER_THREADS_MAX`].
pub const WRITER_THREADS_DEVICE_MAX: usize = 64;

/// Milliseconds after which a writer's thread that has not come back does not count as moving: another one takes over
/// what waits.
pub const WRITER_STUCK_MS: u64 = 4;

/// Bytes of a task file (YAML) that are read at most.
pub const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// Depth of a task file that is followed at most.
pub const CONFIG_DEPTH_MAX: usize = 64;

/// Nodes of a task file that aliases (`*name`) may add: enough for shared lists, too few for a file that explodes.
pub const CONFIG_ALIAS_NODES_MAX: usize = 10_000;

/// Values of a task file that are read at most: ten thousand tasks have a quarter million, and each takes some 200 bytes
/// while it is read.
pub const CONFIG_NODES_MAX: usize = 500_000;

/// Errors, and warnings, about one file that are said one by one.
pub const CONFIG_PROBLEMS_MAX: usize = 100;

/// CIDRs and ranges of all address pools.
pub const POOL_BLOCKS_MAX: usize = 1 << 15;

/// Bytes of keys and connections that one task's `fieldAggregate` remembers; records of further ones share a line.
pub const AGGREGATE_BYTES_MAX: usize = 8 << 20;

/// Bytes of aggregated lines that are handed to the writer together.
pub const AGGREGATE_CHUNK_BYTES: usize = 256 << 10;

/// Milliseconds that a task's `aggregationInterval` must have.
pub const AGGREGATION_INTERVAL_MS_MIN: u64 = 10;

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

/// Bytes that a regular expression of a filter may take when compiled.
pub const REGEX_BYTES_MAX: usize = 4 << 20;

/// Bytes that the patterns of names in one field of a filter may have, as regular expressions: thousands of names.
pub const NAME_PATTERNS_BYTES_MAX: usize = 256 << 10;

/// Depth to which a regular expression may be nested.
pub const REGEX_DEPTH_MAX: u32 = 250;

/// Characters of a CEL expression, as many as Hubble takes.
pub const CEL_CHARACTERS_MAX: usize = 4096;

/// Depth to which a CEL expression may be nested.
pub const CEL_DEPTH_MAX: u16 = 64;

/// Steps that evaluating a CEL expression may take on one flow; beyond it the flow does not match.
pub const CEL_STEPS_MAX: u32 = 100_000;

/// Bytes that compressors of open frames take over all tasks; a task beyond it writes a frame at each flush.
pub const COMPRESSORS_BYTES_MAX: usize = 96 << 20;

/// Compressors that tasks beyond that share, each for a moment.
pub const COMPRESSORS_SHARED: usize = 4;

/// Bytes of lines that wait for a shared compressor at most.
pub const UNCOMPRESSED_BYTES_MAX: usize = 64 << 10;

/// Bytes of lines that one task keeps while its file cannot be written; what comes then is lost.
pub const WAITING_BYTES_MAX: u64 = 1 << 20;

/// The same of all tasks together, also of what is not yet flushed: a full disk is trouble for a thousand of them at once.
pub const WAITING_ALL_BYTES_MAX: u64 = 64 << 20;

/// Bytes that are set aside behind a live file for what ends it when the disk is full: lines that say what was lost and
/// why nothing follows, beside header and index.
pub const LAST_WORDS_BYTES: u64 = 4 << 10;

/// Finished files of a task that are named one by one at the end of a run.
pub const FILES_TOLD_MAX: usize = 1000;

/// A reader of stdout that takes nothing for so long is left behind, milliseconds.
pub const STDOUT_STALL_MS: u64 = 1_000;

/// Milliseconds between two attempts to write to a file in trouble.
pub const RETRY_MS: u64 = 1_000;

/// Milliseconds between two log messages about a file that stays in trouble.
pub const TROUBLE_LOG_MS: u64 = 60_000;

/// Milliseconds between two notices of loss in a task's file, for each place.
pub const NOTICE_MS: u64 = 1_000;

/// Milliseconds between two syncs of a file with `fileSync: interval`.
pub const SYNC_MS: u64 = 1_000;

/// Milliseconds between two looks for files older than `fileMaxAge`.
pub const AGE_CHECK_MS: u64 = 60_000;

/// Bytes of a file that is put together anew when it is finished: below, nothing is gained worth a name; above, it
/// would take its task too long.
pub const REPACK_BYTES_MIN: u64 = 4 << 10;
/// The upper end of that.
pub const REPACK_BYTES_MAX: u64 = 64 << 20;

/// Bytes of records in a flush, on average, from which frames and flushes cost little (5 %) as they are.
pub const REPACK_FLUSH_BYTES_MAX: u64 = 48 << 10;

/// Milliseconds after which a write or sync that has not returned is trouble.
pub const HANG_MS: u64 = 3_000;
