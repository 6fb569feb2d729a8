use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An amount of what the kernel told: records, and the packets and layer-2 bytes that they were the first to tell of.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Told {
    /// Reports.
    pub records: u64,
    /// Packets (segments on the wire).
    pub packets: u64,
    /// Layer-2 bytes of the same.
    pub bytes: u64,
}

/// What the daemons that use one pinned table after another leave for the next. No program looks at it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Kept {
    /// Daemons that have begun to use the table.
    pub starts: u64,
    /// Last reports that daemons made of entries which they took out of the table.
    pub ended: Told,
    /// The same of entries that are being taken out: those still in the table have a tag of 0 and are not yet.
    pub ending: Told,
    /// What of the ring's records and of the last reports is in the tasks' files, or was dropped there by name.
    pub settled: Told,
    /// When that was noted, nanoseconds of CLOCK_MONOTONIC.
    pub settled_ns: u64,
}

impl Told {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            records: self.records.wrapping_add(other.records),
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }

    /// What this has beyond the other; 0 where it has less.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self {
            records: self.records.saturating_sub(other.records),
            packets: self.packets.saturating_sub(other.packets),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}
