//! The flow table: find or enter a connection, and add a packet to it exactly once or not at all.
#![expect(unsafe_code, reason = "entries are reached through raw pointers")]

use crate::atomic::{Atomic, clear};
use crate::ledger::ledger;
use crate::maps::{FLOWLOG_FLOWS, FLOWLOG_FRESH};
use crate::ring::connection_id;
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_log_ebpf::warn;
use core::ptr;
use flowlog_abi::{Around, FlowEntry, FlowKey, hook};
use flowlog_ebpf::{Packet, Sight, add_with, cross, write_entry};

const EEXIST: i32 = -17;
const E2BIG: i32 = -7;
/// Look-ups of an entry that another CPU has inserted and is about to tag.
const PATIENCE: usize = 4;

/// Why a packet found no place in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// The table is full.
    Full,
    /// The entry is being removed, or the kernel refused the insert.
    Other,
}

/// The tag, read anew.
#[inline(always)]
pub(crate) fn tag_of(entry: *mut FlowEntry) -> u32 {
    // SAFETY: every entry pointer in this program comes from a look-up of the same run.
    unsafe { ptr::read_volatile(&raw const (*entry).tag) }
}

/// Sets the tag: to its key's own once, to 0 for removal.
#[inline(always)]
pub(crate) fn set_tag(entry: *mut FlowEntry, tag: u32) {
    // SAFETY: as above.
    unsafe { ptr::write_volatile(&raw mut (*entry).tag, tag) }
}

#[inline(always)]
pub(crate) fn find(key: &FlowKey) -> Option<*mut FlowEntry> {
    FLOWLOG_FLOWS.get_ptr_mut(key)
}

/// Whether a packet of this direction has been counted at an ingress hook.
#[inline(always)]
pub(crate) fn has_arrived(entry: *mut FlowEntry, direction: usize) -> bool {
    // SAFETY: as above.
    let [up, down] = unsafe { &(*entry).directions };
    (if direction == 0 { up.arrived } else { down.arrived }) != 0
}

/// Whether a direction was first counted where an endpoint sent it.
#[inline(always)]
pub(crate) fn came_from_endpoint(entry: *mut FlowEntry, direction: usize) -> bool {
    // SAFETY: as above.
    let [up, down] = unsafe { &(*entry).directions };
    (if direction == 0 { up.hook } else { down.hook }) == hook::ENDPOINT_INGRESS
}

/// Notes what is around a packet.
#[inline(always)]
pub(crate) fn note_around(entry: *mut FlowEntry, direction: usize, packet: &Packet, around: Option<&Around>) {
    // SAFETY: as above.
    flowlog_ebpf::note_around(unsafe { &mut *entry }, direction, packet, around);
}

/// Notes an interface that the connection crossed without being counted there.
#[inline(always)]
pub(crate) fn note_crossing(entry: *mut FlowEntry, ifindex: u32) {
    // SAFETY: as above.
    cross(unsafe { &mut *entry }, ifindex);
}

#[inline(always)]
pub(crate) fn add(entry: *mut FlowEntry, direction: usize, packet: &Packet, sight: &Sight) {
    // SAFETY: as above; totals are added to atomically, all else bears concurrent stores.
    add_with::<Atomic>(unsafe { &mut *entry }, direction, packet, sight);
}

/// Whether the rules of this generation have let the connection of this entry pass.
#[inline(always)]
pub(crate) fn has_passed(found: Option<*mut FlowEntry>, generation: u32) -> bool {
    // SAFETY: as above.
    found.is_some_and(|entry| unsafe { (*entry).generation } == generation)
}

/// The entry that this packet may be added to, if it was found; entered if it is the first of its connection.
#[inline(always)]
pub(crate) fn live_or_enter(
    found: Option<*mut FlowEntry>,
    key: &FlowKey,
    tag: u32,
    direction: usize,
    packet: &Packet,
    sight: &Sight,
) -> Result<*mut FlowEntry, NoPlace> {
    if let Some(entry) = found {
        #[cfg(feature = "slow")]
        spin();
        if is_live(entry, tag) {
            #[cfg(feature = "slow")]
            spin();
            return Ok(entry);
        }
        return wait_for_tag(key, tag);
    }
    enter(key, tag, direction, packet, sight)
}

/// Whether a packet of the key with this tag may be added.
#[inline(always)]
fn is_live(entry: *mut FlowEntry, tag: u32) -> bool {
    if cfg!(feature = "boolean-mark") { tag_of(entry) != 0 } else { tag_of(entry) == tag }
}

/// 1.5 us, so that a race which is rare becomes one that is seen.
/// Between the look-up and a check that does not tell keys apart it is 20 us: an entry must be deleted and entered again
/// from userspace in between, two system calls.
#[cfg(feature = "slow")]
#[inline(always)]
fn spin() {
    use aya_ebpf::helpers::bpf_ktime_get_ns;
    // SAFETY: a helper without arguments.
    let until_ns =
        unsafe { bpf_ktime_get_ns() } + if cfg!(feature = "boolean-mark") { 20_000 } else { 1_500 };
    for _ in 0..1024 {
        // SAFETY: as above.
        if unsafe { bpf_ktime_get_ns() } >= until_ns {
            break;
        }
    }
}

#[inline(always)]
fn enter(
    key: &FlowKey,
    tag: u32,
    direction: usize,
    packet: &Packet,
    sight: &Sight,
) -> Result<*mut FlowEntry, NoPlace> {
    let Some(ledger) = ledger() else { return Err(NoPlace::Other) };
    let Some(fresh) = FLOWLOG_FRESH.get_ptr_mut(0) else { return Err(NoPlace::Other) };
    // SAFETY: this CPU's own, as large as an entry and aligned like one; zero is a value of each of its integers.
    let fresh = unsafe {
        clear(fresh);
        &mut *fresh.cast::<FlowEntry>()
    };
    write_entry(fresh, packet, sight, direction, connection_id(ledger.connections));
    match FLOWLOG_FLOWS.insert(key, &*fresh, BPF_NOEXIST.into()) {
        Ok(()) => {
            ledger.connections += 1;
            let Some(entry) = find(key) else { return Err(NoPlace::Other) };
            // Only now: nobody adds to an entry whose first value could still be copied over the sum.
            set_tag(entry, tag);
            Ok(entry)
        }
        Err(EEXIST) => wait_for_tag(key, tag),
        Err(E2BIG) => {
            ledger.table_full += 1;
            Err(NoPlace::Full)
        }
        Err(error) => {
            if ledger.insert_failed == 0 {
                fl_warn_insert(error.unsigned_abs());
            }
            ledger.insert_failed += 1;
            Err(NoPlace::Other)
        }
    }
}

/// A function of its own with external linkage: the verifier checks it once, and not again for each way to its call.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn fl_warn_insert(errno: u32) -> u32 {
    warn!((), "an insert into the flow table failed with errno {}, packet reported alone", errno);
    0
}

/// Another CPU inserted the entry a moment ago, or it is being removed: look a few times, then go without it.
#[inline(always)]
fn wait_for_tag(key: &FlowKey, tag: u32) -> Result<*mut FlowEntry, NoPlace> {
    for _ in 0..PATIENCE {
        if let Some(entry) = find(key) {
            if tag_of(entry) == tag {
                return Ok(entry);
            }
        }
    }
    if let Some(ledger) = ledger() {
        ledger.removed += 1;
    }
    Err(NoPlace::Other)
}
