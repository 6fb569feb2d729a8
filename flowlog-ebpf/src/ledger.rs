//! Where each packet is counted: exactly once beside `seen`.
#![expect(unsafe_code, reason = "per-CPU map values are reached through raw pointers")]

use crate::maps::{FLOWLOG_HOOKS, FLOWLOG_LEDGER, FLOWLOG_REASONS};
use flowlog_abi::{Counters, Ledger, Reason, slot};

/// What became of a packet.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// Added to an entry of the table.
    Counted,
    /// Counted at another hook that it crossed before.
    Elsewhere,
    /// No task wants its connection.
    Rejected,
    /// Reported alone.
    Alone,
    /// Neither in the table nor in the ring.
    Lost,
    /// No flow.
    NoFlow(Reason),
}

/// This CPU's counters of a hook.
#[inline(always)]
pub(crate) fn counters(ifindex: u32, egress: bool) -> Option<&'static mut Counters> {
    let counters = FLOWLOG_HOOKS.get_ptr_mut(slot(ifindex, egress))?;
    // SAFETY: this CPU's slot; programs at TC hooks do not interrupt each other on one CPU.
    Some(unsafe { &mut *counters })
}

/// This CPU's ledger.
#[inline(always)]
pub(crate) fn ledger() -> Option<&'static mut Ledger> {
    let ledger = FLOWLOG_LEDGER.get_ptr_mut(0)?;
    // SAFETY: as above.
    Some(unsafe { &mut *ledger })
}

/// Counts a packet where it belongs.
#[inline(always)]
pub(crate) fn settle(ifindex: u32, egress: bool, fate: Fate, packets: u64, bytes: u64) {
    let Some(counters) = counters(ifindex, egress) else { return };
    counters.seen_packets += packets;
    counters.seen_bytes += bytes;
    note(counters, fate, packets, bytes);
}

/// Counts the packet inside one that counts as well.
#[inline(always)]
pub(crate) fn settle_inner(ifindex: u32, egress: bool, fate: Fate, packets: u64, bytes: u64) {
    let Some(counters) = counters(ifindex, egress) else { return };
    counters.inner_packets += packets;
    counters.inner_bytes += bytes;
    note(counters, fate, packets, bytes);
}

#[inline(always)]
fn note(counters: &mut Counters, fate: Fate, packets: u64, bytes: u64) {
    match fate {
        Fate::Counted => {
            counters.counted_packets += packets;
            counters.counted_bytes += bytes;
        }
        Fate::Elsewhere => {
            counters.elsewhere_packets += packets;
            counters.elsewhere_bytes += bytes;
        }
        Fate::Rejected => {
            counters.rejected_packets += packets;
            counters.rejected_bytes += bytes;
        }
        Fate::Alone => {
            counters.alone_packets += packets;
            counters.alone_bytes += bytes;
        }
        Fate::Lost => {
            counters.lost_packets += packets;
            counters.lost_bytes += bytes;
        }
        Fate::NoFlow(reason) => settle_no_flow(counters, reason, packets, bytes),
    }
}

#[inline(always)]
fn settle_no_flow(counters: &mut Counters, reason: Reason, packets: u64, bytes: u64) {
    if matches!(reason, Reason::Arp | Reason::Llc | Reason::OtherEthertype) {
        counters.not_ip_packets += packets;
        counters.not_ip_bytes += bytes;
    } else {
        counters.unparsed_packets += packets;
        counters.unparsed_bytes += bytes;
    }
    if let Some(count) = FLOWLOG_REASONS.get_ptr_mut(reason as u32) {
        // SAFETY: this CPU's element, as above.
        unsafe { *count += packets };
    }
}
