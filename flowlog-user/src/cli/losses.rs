//! What was lost before it came to any task, for every task's file to tell: whose it would have been nobody knows.

use flowlog_user::capture::{CaptureLedger, live};
use flowlog_user::clock::{Clock, monotonic_ns, wall_ns};
use flowlog_user::task::Earlier;
use flowlog_user::write::Place;

/// What an earlier daemon took from pinned tables and had not brought into files when it was ended.
pub(super) fn by_a_kill(live::Lost { told, since_ns }: live::Lost, clock: Clock) -> Earlier {
    tracing::warn!(
        records = told.records,
        packets = told.packets,
        bytes = told.bytes,
        "an earlier flowlog took these from the kernel and was ended before they were in a file"
    );
    let reason = format!(
        "flowlog was ended before they were in the file: at most {} packets, {} bytes, as the kernel's tables tell",
        told.packets, told.bytes
    );
    let [first_ns, last_ns] = [since_ns, monotonic_ns()].map(|ns| clock.to_wall_ns(ns));
    Earlier { place: Place::Restart, records: told.records.max(1), first_ns, last_ns, reason }
}

/// Packets for which the kernel had no place.
#[derive(Debug)]
pub(super) struct InKernel {
    /// How many were told of; nothing while that is not known.
    told: Option<u64>,
    /// When that was, nanoseconds since the Unix epoch.
    at_ns: i64,
}

impl InKernel {
    /// Tables that other daemons have counted in begin with what those were told.
    pub(super) fn new(is_pinned: bool) -> Self {
        Self { told: (!is_pinned).then_some(0), at_ns: wall_ns() }
    }

    /// What was lost since the last call.
    pub(super) fn news(&mut self, ledger: &CaptureLedger) -> Option<Earlier> {
        let lost: u64 = ledger.hooks.iter().map(|(_, _, counters)| counters.lost_packets).sum();
        let (first_ns, last_ns) = (self.at_ns, wall_ns());
        self.at_ns = last_ns;
        let told = self.told.replace(lost).unwrap_or(lost);
        let records = lost.checked_sub(told).filter(|packets| *packets > 0)?;
        tracing::warn!(
            packets = records,
            "the kernel's table and ring were full; these packets are in no record"
        );
        let reason = format!(
            "table and ring were full: {records} packets of connections that had no place, whichever tasks' they were"
        );
        Some(Earlier { place: Place::Kernel, records, first_ns, last_ns, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowlog_abi::Counters;

    #[test]
    fn each_packet_is_told_of_once() {
        let ledger = |of: [u64; 2]| CaptureLedger {
            hooks: of
                .map(|lost_packets| {
                    (String::new(), "ingress", Counters { lost_packets, ..Counters::default() })
                })
                .into(),
            ..CaptureLedger::default()
        };
        let told = |losses: &mut InKernel, of| losses.news(&ledger(of)).map(|lost| lost.records);
        let mut fresh = InKernel::new(false);
        assert_eq!(told(&mut fresh, [0, 0]), None);
        assert_eq!(told(&mut fresh, [3, 4]), Some(7));
        assert_eq!(told(&mut fresh, [3, 4]), None);
        assert_eq!(told(&mut fresh, [3, 5]), Some(1));
        // What others' daemons lost they have told.
        let mut pinned = InKernel::new(true);
        assert_eq!(told(&mut pinned, [3, 4]), None);
        assert_eq!(told(&mut pinned, [3, 6]), Some(2));
    }
}
