//! Reports into the ring: of an entry under a lease, or of a packet alone.
#![expect(
    unsafe_code,
    reason = "ring records are written in place, entries are reached through raw pointers"
)]

use crate::atomic::{Atomic, clear, locked};
use crate::ledger::{Fate, ledger};
use crate::maps::{ACTIVE_NS, CONNECTION_BASE, CPUS, FLOWLOG_RING, REPORT_AGED, REPORT_START};
use crate::table;
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_NO_WAKEUP, BPF_RB_RING_SIZE};
use aya_ebpf::helpers::bpf_get_smp_processor_id;
use aya_ebpf::helpers::generated::bpf_ringbuf_query;
use aya_ebpf::maps::ring_buf::RingBufEntry;
use core::ptr;
use flowlog_abi::{Around, FlowEntry, FlowKey, Ledger, REPORT_END, Report};
use flowlog_ebpf::{
    Packet, Sight, Spacing, acknowledge, pending, reopen, reopens, wants_report, write_alone, write_report,
};

/// Connection ids of packets reported alone have this bit, so that they never meet those of entries.
const ALONE_ID: u64 = 1 << 52;

/// The daemon drains on a timer: a wake-up for each report costs more than the report.
const NO_WAKEUP: u64 = BPF_RB_NO_WAKEUP as u64;

/// Connection id number `count` of this CPU: interleaved, so that CPUs need not agree.
#[inline(always)]
pub(crate) fn connection_id(count: u64) -> u64 {
    // SAFETY: a helper without arguments.
    let cpu = u64::from(unsafe { bpf_get_smp_processor_id() });
    CONNECTION_BASE.load() + count * u64::from(CPUS.load()) + cpu
}

/// Reports the connection that a packet was just added to, if that is due and nobody else is about it.
#[inline(always)]
pub(crate) fn report_if_due(entry: *mut FlowEntry, key: &FlowKey, tag: u32, direction: usize, now_ns: u64) {
    let spacing = Spacing { active_ns: ACTIVE_NS.load(), aged: REPORT_AGED.load() != 0 };
    let start = REPORT_START.load() != 0;
    let due = |entry: &FlowEntry| wants_report(entry, direction, now_ns, spacing, start);
    if take_lease(entry, due) {
        // Removed meanwhile: whoever removes it reports the rest.
        if table::tag_of(entry) == tag {
            send(entry, key);
        }
        give_lease(entry);
    }
}

/// Cuts a connection where a packet that is yet to be added divides it: ends it, if it is closed and the packet opens
/// another one with the same ports; tells what was counted under other rules than those of now, if there is any.
/// While somebody else reports it, and while the ring is full, it goes on as it is: no count is worth a neat cut.
#[inline(always)]
pub(crate) fn cut(
    entry: *mut FlowEntry,
    key: &FlowKey,
    tag: u32,
    direction: usize,
    packet: &Packet,
    sight: &Sight,
) {
    // SAFETY: from a look-up of this run, as every entry here.
    let divides = unsafe { (*entry).generation != sight.generation || reopens(packet, &*entry) };
    // Looked at again with the lease: another packet may have come first.
    if divides && take_lease(entry, |_| true) {
        if table::tag_of(entry) == tag {
            send_and_cut(entry, key, direction, packet, sight);
        }
        give_lease(entry);
    }
}

/// Takes the entry's lease if nobody has it and there is a reason to, which is looked at once more under the lock.
#[inline(always)]
fn take_lease(entry: *mut FlowEntry, wanted: impl Fn(&FlowEntry) -> bool) -> bool {
    // SAFETY: from a look-up of this run, as every entry here.
    if !wanted(unsafe { &*entry }) {
        return false;
    }
    locked(entry, |entry| {
        let free = entry.lease == 0 && wanted(entry);
        if free {
            entry.lease = 1;
        }
        free
    })
}

/// Under the lock, so that the next holder sees what was acknowledged.
#[inline(always)]
fn give_lease(entry: *mut FlowEntry) {
    locked(entry, |entry| entry.lease = 0);
}

/// The record's bytes, every one of which is about to be written.
#[inline(always)]
fn in_place(record: &mut RingBufEntry<Report>) -> &mut Report {
    // SAFETY: mapped and aligned to 8; any bytes make a `Report`.
    unsafe { &mut *record.as_mut_ptr() }
}

/// A full ring changes nothing: the counts stay in the entry and the next packet tries again.
#[inline(always)]
fn send(entry: *mut FlowEntry, key: &FlowKey) {
    let Some(ledger) = ledger() else { return };
    let Some(mut record) = FLOWLOG_RING.reserve(0) else {
        ledger.ring_full += 1;
        return;
    };
    let said = in_place(&mut record);
    // SAFETY: the lease is ours; totals may grow meanwhile, so they are read once, into the record.
    let entry = unsafe { &mut *entry };
    write_report(said, key, entry);
    note_sent(ledger, said);
    acknowledge(entry, said);
    record.submit(NO_WAKEUP);
}

/// The last report of a connection, and its entry to the next, or to the same under other rules; as [`send`].
#[inline(always)]
fn send_and_cut(entry: *mut FlowEntry, key: &FlowKey, direction: usize, packet: &Packet, sight: &Sight) {
    // SAFETY: from a look-up of this run, as every entry here; the lease is ours.
    let current = unsafe { &mut *entry };
    let ends = reopens(packet, current);
    if !ends && (current.generation == sight.generation || !pending(current)) {
        current.generation = sight.generation;
        return;
    }
    let Some(ledger) = ledger() else { return };
    let Some(mut record) = FLOWLOG_RING.reserve(0) else {
        ledger.ring_full += 1;
        return;
    };
    let said = in_place(&mut record);
    write_report(said, key, current);
    note_sent(ledger, said);
    if ends {
        said.what = REPORT_END;
        let connection = connection_id(ledger.connections);
        // Under the lock, so that whoever reads the entry under it never sees half of one and half of the other.
        locked(entry, |entry| reopen::<Atomic>(entry, said, sight, direction, connection));
        ledger.connections += 1;
        ledger.reopened += 1;
    } else {
        acknowledge(current, said);
        current.generation = sight.generation;
    }
    record.submit(NO_WAKEUP);
}

#[inline(always)]
fn note_sent(ledger: &mut Ledger, said: &Report) {
    let [up, down] = &said.directions;
    ledger.ring_records += 1;
    ledger.reported_packets += up.packets - up.reported_packets + down.packets - down.reported_packets;
    ledger.reported_bytes += up.bytes - up.reported_bytes + down.bytes - down.reported_bytes;
}

/// Reports one packet that found no place in the table (`what` says why), while the ring is less than half full: a flood of such
/// packets must not starve the reports of connections.
#[inline(always)]
pub(crate) fn report_alone(
    packet: &Packet,
    around: Option<&Around>,
    key: &FlowKey,
    direction: usize,
    sight: &Sight,
    what: u8,
) -> Fate {
    let Some(ledger) = ledger() else { return Fate::Lost };
    let ring = ptr::from_ref(&FLOWLOG_RING).cast_mut().cast();
    // SAFETY: the ring's own map.
    let (used, size) = unsafe {
        (
            bpf_ringbuf_query(ring, u64::from(BPF_RB_AVAIL_DATA)),
            bpf_ringbuf_query(ring, u64::from(BPF_RB_RING_SIZE)),
        )
    };
    if used >= size / 2 {
        return Fate::Lost;
    }
    let Some(mut record) = FLOWLOG_RING.reserve(0) else {
        ledger.ring_full += 1;
        return Fate::Lost;
    };
    let connection = connection_id(ledger.ring_records) | ALONE_ID;
    let said = in_place(&mut record);
    // SAFETY: 112 and 96 bytes of integers, aligned to 8.
    unsafe {
        clear(&raw mut said.directions);
        clear(&raw mut said.around);
    }
    said.what = what;
    write_alone(said, packet, around, key, direction, sight, connection);
    ledger.ring_records += 1;
    record.submit(NO_WAKEUP);
    Fate::Alone
}
