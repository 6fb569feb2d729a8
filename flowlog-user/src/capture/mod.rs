//! Room 1, capture: bytes in.
//!
//! In: packets, through the kernel's programs ([`live`]) or from capture files ([`replay`]). Out: [`Captured`] items,
//! a batch at a time, in an order in which a connection's end comes last. What never happens here: decoding into
//! flows, filtering, anything per task. To add a source: a file beside these two that gives the same items.

pub mod live;
pub mod replay;
pub mod rules;
pub mod tunnels;

use flowlog_abi::{Counters, Drops, Ledger, Report, Told};

use crate::record::{Dropped, EndReason};

/// What a source hands on.
#[derive(Debug)]
pub enum Captured<'a> {
    /// A [`Report`] as the kernel wrote it.
    Bytes(&'a [u8]),
    /// The last report of a connection: it has left the table.
    End(&'a Report, EndReason),
    /// Packets that the kernel has dropped.
    Drop(&'a DropReport),
}

/// Packets of one direction of a connection that the kernel dropped in one place for one reason.
#[derive(Clone, Copy, Debug)]
pub struct DropReport {
    /// The connection, with one direction filled: what was dropped since the first such drop and, as reported, what an
    /// earlier report had told of.
    pub report: Report,
    /// Index of that direction.
    pub direction: usize,
    /// Why and where.
    pub dropped: Dropped,
}

/// What became of dropped packets: the ledger's line of them.
#[derive(Clone, Debug)]
pub struct DropLedger {
    /// Whether they are seen.
    pub hook: live::DropHook,
    /// The program's counters, over all CPUs.
    pub counters: Drops,
    /// Drops that the kernel did not show, since the program was running on that CPU already.
    pub missed: u64,
    /// Packets that are added up here and that no report has told of yet.
    pub pending_packets: u64,
    /// Bytes of the same.
    pub pending_bytes: u64,
    /// Packets of what was added up that were parts of another buffer, of which no report tells.
    pub part_packets: u64,
    /// Bytes of the same.
    pub part_bytes: u64,
}

impl DropLedger {
    /// Packets that were dropped.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.counters.added_packets.saturating_sub(self.part_packets)
    }

    /// Bytes of the same.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.counters.added_bytes.saturating_sub(self.part_bytes)
    }

    /// Drops that the kernel has shown, or would have, and that are in no record.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        let Drops { lost_full, lost_refused, lost_nested, lost_unread, .. } = self.counters;
        lost_full + lost_refused + lost_nested + lost_unread + self.missed
    }
}

impl Default for DropLedger {
    fn default() -> Self {
        Self {
            hook: live::DropHook::NotWanted,
            counters: Drops::default(),
            missed: 0,
            pending_packets: 0,
            pending_bytes: 0,
            part_packets: 0,
            part_bytes: 0,
        }
    }
}

/// Takes what a source hands on.
pub type Sink<'a> = &'a mut dyn FnMut(Captured<'_>);

/// What was taken from the kernel's tables before this process began; 0 where it has made them itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Records of the ring, with their packets and bytes.
    pub ring: Told,
    /// Last reports, of this process too.
    pub ended: Told,
    /// Records that this process has read from the ring of tables that are no longer used.
    pub other: Told,
}

/// The kernel's side of the ledger, summed over CPUs. Closes exactly after [`Self::stopped`] is true.
#[derive(Clone, Debug, Default)]
pub struct CaptureLedger {
    /// Each hook: interface name, `ingress` or `egress`, and what became of its packets.
    pub hooks: Vec<(String, &'static str, Counters)>,
    /// Table and ring.
    pub kernel: Ledger,
    /// Dropped packets.
    pub drops: DropLedger,
    /// Packets by reason, those that were counted only.
    pub reasons: Vec<(&'static str, u64)>,
    /// Packets in the final reports made from the table by the daemon.
    pub ended_packets: u64,
    /// Layer-2 bytes of the same.
    pub ended_bytes: u64,
    /// Packets still in the table beyond what has been reported (0 after an orderly stop).
    pub table_packets: u64,
    /// Layer-2 bytes of the same.
    pub table_bytes: u64,
    /// Connections in the table.
    pub table_entries: u64,
    /// Records taken from the ring.
    pub ring_taken: u64,
    /// What daemons before this one took from the same tables.
    pub before: Before,
    /// The tables go on counting without this process, so the sums are those of a moment.
    pub continues: bool,
    /// All hooks are detached and everything is drained, so the sums are exact.
    pub stopped: bool,
}
