//! What was lost before it came to any task, for every task's file to tell: whose it would have been nobody knows.

use flowlog_user::capture::{CaptureLedger, live};
use flowlog_user::clock::{Clock, monotonic_ns, wall_ns};
use flowlog_user::pipeline::Pipeline;
use flowlog_user::task::Earlier;
use flowlog_user::write::Place;

/// What an earlier daemon took from pinned tables and had not brought into files when it was ended.
pub(super) fn by_a_kill(live::Lost { told, since_ns }: live::Lost, clock: Clock) -> Lost {
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
    let records = told.records.max(1);
    Lost { earlier: Earlier { place: Place::Restart, records, first_ns, last_ns, reason }, is_dropped: false }
}

/// What was lost, for the files of those tasks whose it may have been.
#[derive(Debug)]
pub(super) struct Lost {
    earlier: Earlier,
    is_dropped: bool,
}

impl Lost {
    /// Has the files tell of it.
    pub(super) fn tell(&self, pipeline: &Pipeline) {
        let note = if self.is_dropped { Pipeline::note_lost_drops } else { Pipeline::note_lost };
        note(pipeline, &self.earlier);
    }
}

/// What is lost in the kernel.
#[derive(Debug)]
pub(super) struct Losses {
    packets: InKernel,
    drops: InKernel,
}

impl Losses {
    /// Tables that other daemons have counted in begin with what those were told.
    pub(super) fn new(is_pinned: bool) -> Self {
        Self { packets: InKernel::packets(is_pinned), drops: InKernel::drops(is_pinned) }
    }

    /// What was lost since the last call.
    pub(super) fn news(&mut self, ledger: &CaptureLedger) -> impl Iterator<Item = Lost> + use<> {
        let packets = self.packets.news(ledger).map(|earlier| Lost { earlier, is_dropped: false });
        let drops = self.drops.news(ledger).map(|earlier| Lost { earlier, is_dropped: true });
        packets.into_iter().chain(drops)
    }
}

/// What the kernel's side had no place for: packets at interfaces, or dropped packets.
#[derive(Debug)]
struct InKernel {
    /// How many were told of; nothing while that is not known.
    told: Option<u64>,
    /// When that was, nanoseconds since the Unix epoch.
    at_ns: i64,
    count: fn(&CaptureLedger) -> u64,
    words: fn(u64) -> String,
}

impl InKernel {
    /// Tables that other daemons have counted in begin with what those were told.
    const fn new(
        is_pinned: bool,
        at_ns: i64,
        count: fn(&CaptureLedger) -> u64,
        words: fn(u64) -> String,
    ) -> Self {
        Self { told: if is_pinned { None } else { Some(0) }, at_ns, count, words }
    }

    /// Packets at interfaces, which are of any task.
    fn packets(is_pinned: bool) -> Self {
        let count =
            |ledger: &CaptureLedger| ledger.hooks.iter().map(|(_, _, counters)| counters.lost_packets).sum();
        Self::new(is_pinned, wall_ns(), count, |packets| {
            format!(
                "table and ring were full: {packets} packets of connections that had no place, whichever tasks' they were"
            )
        })
    }

    /// Dropped packets, which are of tasks that ask for them.
    fn drops(is_pinned: bool) -> Self {
        let count = |ledger: &CaptureLedger| ledger.drops.lost();
        Self::new(is_pinned, wall_ns(), count, |drops| {
            format!(
                "{drops} drops were of more kinds than there is room for, or came in the middle of another, whichever \
                 tasks' they were"
            )
        })
    }

    /// What was lost since the last call.
    fn news(&mut self, ledger: &CaptureLedger) -> Option<Earlier> {
        let lost = (self.count)(ledger);
        let (first_ns, last_ns) = (self.at_ns, wall_ns());
        self.at_ns = last_ns;
        let told = self.told.replace(lost).unwrap_or(lost);
        let records = lost.checked_sub(told).filter(|records| *records > 0)?;
        let reason = (self.words)(records);
        tracing::warn!(lost = records, why = reason, "what the kernel has shown is in no record");
        Some(Earlier { place: Place::Kernel, records, first_ns, last_ns, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowlog_abi::{Counters, Drops};

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
        let mut fresh = InKernel::packets(false);
        assert_eq!(told(&mut fresh, [0, 0]), None);
        assert_eq!(told(&mut fresh, [3, 4]), Some(7));
        assert_eq!(told(&mut fresh, [3, 4]), None);
        assert_eq!(told(&mut fresh, [3, 5]), Some(1));
        // A drop is another matter than a packet at an interface.
        let mut drops = InKernel::drops(false);
        let mut lost = ledger([3, 4]);
        assert!(drops.news(&lost).is_none());
        lost.drops.counters = Drops {
            seen: 20,
            added: 2,
            lost_full: 5,
            lost_refused: 1,
            lost_nested: 1,
            lost_unread: 1,
            ..Drops::default()
        };
        lost.drops.missed = 2;
        assert_eq!(drops.news(&lost).map(|lost| lost.records), Some(10));
        assert_eq!(told(&mut fresh, [3, 5]), None);
        // What others' daemons lost they have told.
        let mut pinned = InKernel::packets(true);
        assert_eq!(told(&mut pinned, [3, 4]), None);
        assert_eq!(told(&mut pinned, [3, 6]), Some(2));
    }
}
