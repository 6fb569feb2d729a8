//! Room 2, decode: the kernel's reports become [`Flow`]s.
//!
//! In: [`Report`]s, as bytes from the ring or as the last word on a connection. Out: flows, grouped by cadence (the
//! distinct pairs of events and update interval over all tasks), so that one task's rhythm never cuts another's
//! interval. What never happens here: a lost report without a count, I/O, anything per task. A report that cannot be
//! understood is counted as malformed; to add a field, extend `flow.rs`.

mod cadence;
mod connections;
mod divided;
mod flow;
mod ids;

pub use cadence::Cadence;

use flowlog_abi::{REPORT_ALONE, REPORT_APART, REPORT_END, REPORT_FLOW, Report, Told};
use zerocopy::FromBytes;

use crate::clock::Clock;
use crate::limits::CADENCES_MAX;
use crate::record::{Dropped, EndReason, Flow};
use connections::Connections;

/// Flows by cadence: index = the number in [`Flow::cadence`]. Behind them a list of drops, one of those that are for some
/// tasks of their cadence only ([`Flow::joined`]), which come before all others, and one for tasks that move.
pub type Flows = Vec<Vec<Flow>>;

/// Where in [`Flows`] those are that the kernel dropped; their cadence says nothing.
pub const DROPPED: usize = CADENCES_MAX;
/// Where those are that are for some tasks only.
pub const DIVIDED: usize = CADENCES_MAX + 1;
/// Where those are that tasks get which go on in another way: last.
pub const MOVED: usize = CADENCES_MAX + 2;

/// A change of tasks, as far as it concerns connections that are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Its number; they grow, from 1.
    pub number: u32,
    /// Cadences that tasks leave for good, by their numbers until now.
    pub leaving: [bool; CADENCES_MAX],
    /// Cadences, by their numbers until now, of tasks that go on with another filter or cadence.
    pub moving: [bool; CADENCES_MAX],
    /// Cadences that tasks join and that others have already; who goes on with another filter joins anew.
    pub joining: [bool; CADENCES_MAX],
}

/// What became of what was handed in. Packets and bytes are deltas against the report before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records from the ring that were understood.
    pub decoded: u64,
    /// Records from the ring that were not.
    pub malformed: u64,
    /// Packets in reports of connections.
    pub reported_packets: u64,
    /// Layer-2 bytes of the same.
    pub reported_bytes: u64,
    /// Packets reported alone.
    pub alone_packets: u64,
    /// Layer-2 bytes of the same.
    pub alone_bytes: u64,
    /// Packets in last reports.
    pub ended_packets: u64,
    /// Layer-2 bytes of the same.
    pub ended_bytes: u64,
    /// Records of drops.
    pub drops: u64,
    /// Packets in them.
    pub dropped_packets: u64,
    /// Bytes of the same.
    pub dropped_bytes: u64,
}

/// The cadences by number; tasks come and go, numbers stay.
pub type Cadences = [Option<Cadence>; CADENCES_MAX];

/// Turns reports into flows. Remembers of each connection what each cadence has written.
#[derive(Debug)]
pub struct Decoder {
    connections: Connections,
    counts: Counts,
}

impl Decoder {
    /// A decoder for these cadences.
    #[must_use]
    pub fn new(cadences: Cadences) -> Self {
        Self { connections: Connections::new(cadences), counts: Counts::default() }
    }

    /// Other cadences from now on (`now_ns`: the kernel's clock). Those that stay are not touched; one that begins
    /// sees of open connections what comes after their last report.
    pub fn change(&mut self, cadences: Cadences, now_ns: u64) {
        self.connections.change(cadences, now_ns);
    }

    /// Before [`Self::change`]: takes how a connection stands in the table, so that what was counted before goes to the
    /// tasks before. Those that leave a cadence get their last records of it in `out`, those that move theirs in its last
    /// list; those that join one get of its next record only what comes from now on.
    pub fn stand(&mut self, report: &Report, change: Change, clock: Clock, out: &mut Flows) {
        if flow::sound(report) {
            self.connections.stand(report, change, clock, out);
        }
    }

    /// Goes on with the tables of earlier daemons, `before` of them: what they were told is not told again.
    pub const fn go_on(&mut self, before: u64) {
        self.connections.go_on(before);
    }

    /// What the kernel has told and no record says yet, since no task's cadence has asked for one.
    #[must_use]
    pub fn held(&self) -> Told {
        self.connections.held()
    }

    /// Another daemon will go on with a connection, which stands in the table like this: whatever was told of it and is
    /// in no record yet comes into `out`.
    pub fn suspend(&mut self, report: &Report, clock: Clock, out: &mut Flows) {
        if flow::sound(report) {
            self.connections.suspend(report, clock, out);
        }
    }

    /// An empty set of flows, one list for each cadence.
    #[must_use]
    pub fn flows(&self) -> Flows {
        vec![Vec::new(); MOVED + 1]
    }

    /// What has been counted so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Connections that are remembered.
    #[must_use]
    pub fn open(&self) -> usize {
        self.connections.len()
    }

    /// The most bytes that the connections of so large a table take here.
    #[must_use]
    pub fn bytes_max(table_entries: u32) -> u64 {
        Connections::bytes_max(u64::from(table_entries))
    }

    /// Takes a record from the ring.
    pub fn bytes(&mut self, bytes: &[u8], clock: Clock, out: &mut Flows) {
        let Ok(report) = Report::read_from_bytes(bytes) else {
            self.counts.malformed += 1;
            return;
        };
        let Some((packets, length)) = delta(&report).filter(|_| flow::sound(&report)) else {
            self.counts.malformed += 1;
            return;
        };
        match report.what {
            REPORT_FLOW => {
                self.counts.reported_packets += packets;
                self.counts.reported_bytes += length;
                self.connections.report(&report, clock, out);
            }
            REPORT_END => {
                self.counts.reported_packets += packets;
                self.counts.reported_bytes += length;
                self.connections.end(&report, flow::closed(&report), clock, out);
            }
            REPORT_ALONE | REPORT_APART => {
                self.counts.alone_packets += packets;
                self.counts.alone_bytes += length;
                let full = report.what == REPORT_ALONE;
                let reason = if full { EndReason::TableFull } else { EndReason::Alone };
                self.connections.alone(&report, reason, clock, out);
            }
            _ => {
                self.counts.malformed += 1;
                return;
            }
        }
        self.counts.decoded += 1;
    }

    /// Takes what the kernel dropped: a report in which one direction is filled.
    pub fn dropped(
        &mut self,
        report: &Report,
        direction: usize,
        dropped: Dropped,
        clock: Clock,
        out: &mut Flows,
    ) {
        let Some((packets, bytes)) = delta(report).filter(|_| flow::sound(report)) else {
            self.counts.malformed += 1;
            return;
        };
        self.counts.drops += 1;
        self.counts.dropped_packets += packets;
        self.counts.dropped_bytes += bytes;
        let flow = flow::dropped((report, direction), dropped, (packets, bytes), clock);
        if let (Some(flow), Some(out)) = (flow, out.get_mut(DROPPED)) {
            out.push(flow);
        }
    }

    /// Takes the last report of a connection.
    pub fn end(&mut self, report: &Report, reason: EndReason, clock: Clock, out: &mut Flows) {
        let Some((packets, length)) = delta(report).filter(|_| flow::sound(report)) else {
            self.counts.malformed += 1;
            return;
        };
        self.counts.ended_packets += packets;
        self.counts.ended_bytes += length;
        self.connections.end(report, reason, clock, out);
    }
}

/// Packets and bytes since the report before; `None` when totals have shrunk or cannot be.
fn delta(report: &Report) -> Option<(u64, u64)> {
    report.directions.iter().try_fold((0, 0), |(packets, bytes), side| {
        Some((
            side.packets.checked_sub(side.reported_packets)?.checked_add(packets)?,
            side.bytes.checked_sub(side.reported_bytes)?.checked_add(bytes)?,
        ))
    })
}

#[cfg(test)]
mod tests;
