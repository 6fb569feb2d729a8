/// Which records are wanted, and how often: tasks that agree in both share their flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cadence {
    /// The first packet of each direction.
    pub start: bool,
    /// While traffic flows.
    pub update: bool,
    /// When the connection is over.
    pub end: bool,
    /// Nanoseconds between two updates of a connection, at least the node's active timeout.
    pub interval_ns: u64,
}

impl Cadence {
    /// Whether an update is due `since_ns` after the one before. The kernel times reports by the packet that
    /// triggers them, a hair away from what is compared here, hence the slack.
    pub(super) const fn due(&self, since_ns: u64) -> bool {
        self.update && since_ns + self.interval_ns / 64 >= self.interval_ns
    }
}
