//! The atomic add of the BPF instruction set, and the spin lock.
#![expect(unsafe_code, reason = "inline assembly and a helper on a raw pointer")]

use aya_ebpf::helpers::generated::{bpf_spin_lock, bpf_spin_unlock};
use core::arch::asm;
use flowlog_abi::FlowEntry;
use flowlog_ebpf::Add;

/// Adds in one instruction of the first BPF instruction set: no fetch, so that 5.10 knows it. Written in assembly,
/// since the compiler's own atomics are absent or miscompiled for this target.
pub(crate) struct Atomic;

impl Add for Atomic {
    #[inline(always)]
    fn add(total: &mut u64, value: u64) {
        // SAFETY: `total` is an aligned u64 of a map's value; the verifier checks the access again.
        unsafe {
            asm!("lock *(u64 *)({total} + 0) += {value}", total = in(reg) total, value = in(reg) value,
                options(nostack));
        }
    }
}

/// Runs `decide` while no other CPU is in such a place for this entry. `decide` must be inlined and call nothing.
#[inline(always)]
pub(crate) fn locked<T>(entry: *mut FlowEntry, decide: impl FnOnce(&mut FlowEntry) -> T) -> T {
    // SAFETY: the pointer comes from a look-up in the map of flows and lives as long as this run of the program.
    unsafe {
        let lock = (&raw mut (*entry).lock).cast();
        bpf_spin_lock(lock);
        let result = decide(&mut *entry);
        bpf_spin_unlock(lock);
        result
    }
}
