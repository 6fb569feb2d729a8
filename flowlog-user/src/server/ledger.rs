//! The ledger: every packet and every record in exactly one counter, and the sums that show it.

use std::sync::Arc;

use flowlog_abi::Counters;
use serde::Serialize;

use crate::capture::live::DropHook;
use crate::capture::{CaptureLedger, DropLedger};
use crate::decode::Counts;
use crate::metrics::TaskCounters;
use crate::read;

/// One stage's counters.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// Kernel, table and ring.
    pub capture: CaptureLedger,
    /// What the decoder made of the ring.
    pub decode: Counts,
    /// Lines of recorded events, where they are what is replayed.
    pub recorded: Option<read::Counts>,
    /// Each task's records.
    pub tasks: Vec<(Arc<str>, Arc<TaskCounters>)>,
}

/// A sum that should close.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// What is compared.
    pub name: String,
    /// The whole.
    pub left: u64,
    /// Its parts.
    pub right: u64,
}

impl Sum {
    /// Whether it closes.
    #[must_use]
    pub const fn closes(&self) -> bool {
        self.left == self.right
    }

    /// By how much it does not.
    #[must_use]
    pub const fn gap(&self) -> u64 {
        self.left.abs_diff(self.right)
    }
}

/// Packets and layer-2 bytes by outcome, over all hooks or of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "named as in flowlog_abi::Counters, which explains them")]
pub struct Packets {
    pub seen: Amount,
    pub counted: Amount,
    pub elsewhere: Amount,
    pub rejected: Amount,
    pub unparsed: Amount,
    pub not_ip: Amount,
    pub alone: Amount,
    pub lost: Amount,
    pub inner: Amount,
}

/// Packets with their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Packets (segments on the wire).
    pub packets: u64,
    /// Layer-2 bytes without FCS.
    pub bytes: u64,
}

impl Packets {
    fn add(&mut self, c: &Counters) {
        let pairs = [
            (&mut self.seen, c.seen_packets, c.seen_bytes),
            (&mut self.counted, c.counted_packets, c.counted_bytes),
            (&mut self.elsewhere, c.elsewhere_packets, c.elsewhere_bytes),
            (&mut self.rejected, c.rejected_packets, c.rejected_bytes),
            (&mut self.unparsed, c.unparsed_packets, c.unparsed_bytes),
            (&mut self.not_ip, c.not_ip_packets, c.not_ip_bytes),
            (&mut self.alone, c.alone_packets, c.alone_bytes),
            (&mut self.lost, c.lost_packets, c.lost_bytes),
            (&mut self.inner, c.inner_packets, c.inner_bytes),
        ];
        for (amount, packets, bytes) in pairs {
            amount.packets += packets;
            amount.bytes += bytes;
        }
    }

    fn parts(&self) -> Amount {
        [self.counted, self.elsewhere, self.rejected, self.unparsed, self.not_ip, self.alone, self.lost]
            .into_iter()
            .fold(Amount::default(), |sum, part| Amount {
                packets: sum.packets + part.packets,
                bytes: sum.bytes + part.bytes,
            })
    }
}

impl Books {
    /// Packets by outcome over all hooks.
    #[must_use]
    pub fn packets(&self) -> Packets {
        let mut sum = Packets::default();
        for (_, _, counters) in &self.capture.hooks {
            sum.add(counters);
        }
        sum
    }

    /// The sums of one hook's packets and bytes.
    #[must_use]
    pub fn of_hook((_, _, counters): &(String, &'static str, Counters)) -> [Sum; 2] {
        let mut packets = Packets::default();
        packets.add(counters);
        seen(&packets)
    }

    /// Every sum of the ledger, outermost first. Exact once the capture has stopped.
    #[must_use]
    pub fn sums(&self) -> Vec<Sum> {
        let (capture, decode) = (&self.capture, &self.decode);
        let packets = self.packets();
        // Of tables that outlive a process the counters go back to before this one.
        let ended = if capture.continues {
            (capture.before.ended.packets, capture.before.ended.bytes)
        } else {
            (capture.ended_packets, capture.ended_bytes)
        };
        let mut sums = seen(&packets).to_vec();
        sums.extend([
            sum(
                "packets counted in the table",
                packets.counted.packets,
                capture.kernel.reported_packets + ended.0 + capture.table_packets,
            ),
            sum(
                "bytes counted in the table",
                packets.counted.bytes,
                capture.kernel.reported_bytes + ended.1 + capture.table_bytes,
            ),
            sum(
                "records sent through the ring",
                capture.kernel.ring_records + capture.before.other.records,
                capture.before.ring.records + decode.decoded + decode.malformed,
            ),
            sum(
                "packets reported through the ring",
                capture.kernel.reported_packets + packets.alone.packets + capture.before.other.packets,
                capture.before.ring.packets + decode.reported_packets + decode.alone_packets,
            ),
            sum("packets in last reports", capture.ended_packets, decode.ended_packets),
        ]);
        sums.extend(drops(&capture.drops, decode));
        if !capture.continues {
            sums.push(sum("packets reported alone", packets.alone.packets, decode.alone_packets));
        }
        if let Some(recorded) = self.recorded {
            sums.push(sum("lines of recorded events", recorded.lines, recorded.taken + recorded.malformed));
        }
        for (name, task) in &self.tasks {
            let (decoded, matched) = (task.decoded.get(), task.matched.get());
            let dropped = task.dropped_queue_full.get()
                + task.dropped_write_error.get()
                + task.rate_limited.get()
                + task.passed_over.get();
            let (aggregated, aggregates) = (task.aggregated.get(), task.aggregates.get());
            sums.push(sum(
                &format!("records shown to task {name}"),
                decoded,
                matched + task.not_matched.get(),
            ));
            // Records that were added up are gone; the lines made of them have come.
            let (taken, made) = (matched + aggregates, task.written.get() + dropped + aggregated);
            sums.push(sum(&format!("records taken by task {name}"), taken, made));
        }
        sums
    }

    /// The whole as JSON: what `flowlog run -o json` prints at its end.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let hooks: Vec<_> = self
            .capture
            .hooks
            .iter()
            .map(|(interface, side, counters)| {
                let mut packets = Packets::default();
                packets.add(counters);
                serde_json::json!({ "interface": interface, "side": side, "packets": packets })
            })
            .collect();
        let tasks: Vec<_> = self.tasks.iter().map(|(name, task)| task_json(name, task)).collect();
        let sums = self.sums();
        let kernel = &self.capture.kernel;
        let reasons: serde_json::Map<_, _> =
            self.capture.reasons.iter().map(|(reason, n)| ((*reason).to_owned(), (*n).into())).collect();
        if let Some(recorded) = self.recorded {
            return serde_json::json!({
                "closes": sums.iter().all(Sum::closes),
                "recorded": { "lines": recorded.lines, "taken": recorded.taken, "malformed": recorded.malformed },
                "tasks": tasks,
                "sums": sums,
            });
        }
        serde_json::json!({
            "closes": sums.iter().all(Sum::closes),
            "continues": self.capture.continues,
            "connections": kernel.connections,
            "packets": self.packets(),
            "hooks": hooks,
            "reasons": reasons,
            "drops": drops_json(&self.capture.drops),
            "ring": { "records": kernel.ring_records, "full": kernel.ring_full,
                "decoded": self.decode.decoded, "malformed": self.decode.malformed },
            "table": { "full": kernel.table_full, "insert_failed": kernel.insert_failed, "removed": kernel.removed },
            "tasks": tasks,
            "sums": sums,
        })
    }
}

/// One task's counters as JSON.
pub(super) fn task_json(name: &str, task: &TaskCounters) -> serde_json::Value {
    serde_json::json!({
        "task": name,
        "decoded": task.decoded.get(),
        "matched": task.matched.get(),
        "not_matched": task.not_matched.get(),
        "written": task.written.get(),
        "gone": task.gone.get(),
        "written_bytes": task.written_bytes.get(),
        "disk_bytes": task.disk_bytes.get(),
        "rate_limited": task.rate_limited.get(),
        "aggregated": { "records": task.aggregated.get(), "lines": task.aggregates.get(),
            "overflow": task.aggregate_overflow.get() },
        "dropped": { "queue_full": task.dropped_queue_full.get(), "write_error": task.dropped_write_error.get() },
        "rotations": task.rotations.get(),
        "notices": task.notices.get(),
        "trouble": task.trouble.get().as_deref(),
    })
}

/// Drops by outcome: what the ledger's line of them adds up.
#[must_use]
pub fn drops_by_outcome(drops: &DropLedger) -> [(&'static str, u64); 9] {
    let c = &drops.counters;
    [
        ("added", c.added),
        ("rejected", c.rejected),
        ("unparsed", c.unparsed),
        ("not_ip", c.not_ip),
        ("no_drop", c.no_drop),
        ("lost_table_full", c.lost_full),
        ("lost_refused", c.lost_refused),
        ("lost_nested", c.lost_nested + drops.missed),
        ("lost_unreadable", c.lost_unread),
    ]
}

fn drops(drops: &DropLedger, decode: &Counts) -> [Sum; 3] {
    let c = &drops.counters;
    let parts = drops_by_outcome(drops).iter().map(|(_, n)| n).sum();
    [
        sum("drops shown by the kernel", c.seen + drops.missed, parts),
        sum(
            "packets dropped",
            c.added_packets,
            decode.dropped_packets + drops.pending_packets + drops.part_packets,
        ),
        sum("bytes dropped", c.added_bytes, decode.dropped_bytes + drops.pending_bytes + drops.part_bytes),
    ]
}

/// The drops as JSON. Drops are counted in the kernel's buffers, of which one may stand for several packets.
#[must_use]
pub fn drops_json(drops: &DropLedger) -> serde_json::Value {
    let (state, why) = match &drops.hook {
        DropHook::NotWanted => ("not_wanted", None),
        DropHook::Attached(less) => ("watched", less.as_deref()),
        DropHook::Failed(why) => ("failed", Some(why.as_str())),
    };
    let outcomes: serde_json::Map<_, _> =
        drops_by_outcome(drops).into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect();
    serde_json::json!({
        "hook": state,
        "why": why,
        "seen": drops.counters.seen + drops.missed,
        "outcomes": outcomes,
        "packets": drops.packets(),
        "bytes": drops.bytes(),
        "parts": { "packets": drops.part_packets, "bytes": drops.part_bytes },
    })
}

/// Drops that stand in no counter or in two, if none was shown between two looks; else 0.
#[must_use]
pub fn drops_imbalance(last: &DropLedger, before: &DropLedger) -> u64 {
    let [shown, ..] = drops(last, &Counts::default());
    if last.counters.seen == before.counters.seen { shown.gap() } else { 0 }
}

fn seen(packets: &Packets) -> [Sum; 2] {
    let parts = packets.parts();
    [
        sum("packets seen at the hooks", packets.seen.packets + packets.inner.packets, parts.packets),
        sum("bytes seen at the hooks", packets.seen.bytes + packets.inner.bytes, parts.bytes),
    ]
}

fn sum(name: &str, left: u64, right: u64) -> Sum {
    Sum { name: name.into(), left, right }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowlog_abi::Drops;

    #[test]
    fn the_books_close_only_when_every_packet_and_record_is_somewhere() {
        let counters =
            Counters { seen_packets: 10, counted_packets: 7, not_ip_packets: 3, ..Counters::default() };
        let mut books = Books::default();
        books.capture.hooks.push(("eth0".into(), "ingress", counters));
        books.capture.kernel.reported_packets = 5;
        books.capture.ended_packets = 2;
        books.decode.reported_packets = 5;
        books.decode.ended_packets = 2;
        assert!(books.sums().iter().all(Sum::closes), "{:?}", books.sums());
        books.capture.hooks[0].2.lost_packets = 1;
        assert!(!books.sums()[0].closes());
        books.capture.hooks[0].2.lost_packets = 0;
        books.capture.drops.counters = Drops { seen: 9, added: 7, lost_full: 1, ..Drops::default() };
        books.capture.drops.counters.added_packets = 8;
        books.decode.dropped_packets = 8;
        let open: Vec<_> = books.sums().into_iter().filter(|sum| !sum.closes()).collect();
        assert_eq!(open, [Sum { name: "drops shown by the kernel".into(), left: 9, right: 8 }]);
        books.capture.drops.counters.not_ip = 1;
        let task = TaskCounters::default();
        task.decoded.add(4);
        task.matched.add(4);
        task.written.add(3);
        books.tasks.push(("t".into(), Arc::new(task)));
        let open: Vec<_> = books.sums().into_iter().filter(|sum| !sum.closes()).collect();
        assert_eq!(open, [Sum { name: "records taken by task t".into(), left: 4, right: 3 }]);
    }
}
