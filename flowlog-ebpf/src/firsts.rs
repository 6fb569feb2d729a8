//! The memory of first fragments.
#![expect(unsafe_code, reason = "map values are reached through raw pointers")]

use crate::maps::{FLOWLOG_FIRSTS, FLOWLOG_FRAGMT};
use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use flowlog_ebpf::Packet;
use flowlog_ebpf::fragments::{FIRST, FirstFragment, FragmentKey};

/// Remembers what a first fragment holds for those that follow: what is inside the tunnel that it carries.
#[inline(always)]
pub(crate) fn remember(outer: &Packet, inner: &Packet) {
    let Some(scratch) = FLOWLOG_FRAGMT.get_ptr_mut(0) else { return };
    // SAFETY: this CPU's own, and a helper without arguments.
    let (scratch, now_ns) = unsafe { (&mut *scratch, bpf_ktime_get_ns()) };
    scratch.key = FragmentKey::of(outer);
    scratch.first = FirstFragment::of(inner, now_ns);
    let _ = FLOWLOG_FIRSTS.insert(&scratch.key, &scratch.first, BPF_ANY.into());
}

/// Remembers a first fragment; gives a later one the ports of its first, where that was seen.
#[inline(always)]
pub(crate) fn complete(packet: &mut Packet) {
    // SAFETY: a helper without arguments.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    let Some(scratch) = FLOWLOG_FRAGMT.get_ptr_mut(0) else { return };
    // SAFETY: this CPU's own.
    let scratch = unsafe { &mut *scratch };
    scratch.key = FragmentKey::of(packet);
    if packet.fragment & FIRST != 0 {
        scratch.first = FirstFragment::of(packet, now_ns);
        // A refused one leaves its rest without ports, which is said in the records.
        let _ = FLOWLOG_FIRSTS.insert(&scratch.key, &scratch.first, BPF_ANY.into());
    } else if let Some(first) = FLOWLOG_FIRSTS.get_ptr_mut(&scratch.key) {
        // SAFETY: from a look-up of this run; other CPUs store much the same.
        unsafe { (*first).complete(packet, now_ns) };
    }
}
