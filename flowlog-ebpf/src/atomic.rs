//! What the compiler does not give on this target: the atomic add, the spin lock, zeroing in place.
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

/// Zeroes a value of the boundary, 8 bytes at a time. Left to the compiler this is a call to a loop over bytes, which
/// is slow to run and slower to verify; volatile stores it does not gather.
///
/// # Safety
/// `value` points to a `T` that may be written, is aligned to 8, has a size that 8 divides, and may be all zeroes.
#[inline(always)]
pub(crate) unsafe fn clear<T>(value: *mut T) {
    for word in 0..size_of::<T>() / 8 {
        // SAFETY: within the value, by the contract above.
        unsafe { value.cast::<u64>().add(word).write_volatile(0) };
    }
}
