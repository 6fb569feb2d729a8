use std::time::Instant;

/// Lines taken and not yet written.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) notices: u64,
    /// Bytes of all lines, notices included.
    pub(super) waiting_bytes: u64,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    pub(super) since: Option<Instant>,
}
