//! What the maps take of the kernel's memory, computed before they are made.

use flowlog_abi::{
    Counters, Direction, DropKey, FlowEntry, FlowKey, Ledger, REASONS, REJECTED_SETS, Rejected, SLOTS, names,
};

use super::Options;

/// Bytes of `struct htab_elem` before the key (kernel/bpf/hashtab.c, from 5.x on).
const ELEMENT_BYTES: u64 = 48;
/// Bytes of `struct bucket` (there too).
const BUCKET_BYTES: u64 = 16;
const PAGE_BYTES: u64 = 4096;
/// Memory of the fragments, of ports and protocols, and of each map itself: less than this whatever the options.
const FIXED_BYTES: u64 = 1 << 20;

/// Bytes of kernel memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The flow table, allocated at the start whatever is in it.
    pub table_bytes: u64,
    /// The ring.
    pub ring_bytes: u64,
    /// All maps together, without the tasks' prefixes and ports.
    pub total_bytes: u64,
}

impl Memory {
    /// For these options on a machine with so many possible CPUs.
    #[must_use]
    pub fn of(options: &Options, cpus: u32) -> Self {
        let (entries, cpus) = (u64::from(options.table_entries), u64::from(cpus));
        // Each CPU has an element of its own to exchange for one that is replaced.
        let table_bytes =
            (entries + cpus) * element::<FlowKey, FlowEntry>() + entries.next_power_of_two() * BUCKET_BYTES;
        // The data's pages are mapped twice in a row, so there are twice as many pointers to them.
        let pages = u64::from(options.ring_bytes) / PAGE_BYTES;
        let ring_bytes = (pages + 3) * PAGE_BYTES + (2 * pages + 3) * 8;
        let each_cpu = u64::from(SLOTS) * size::<Counters>()
            + u64::from(REJECTED_SETS) * size::<Rejected>()
            + size::<Ledger>()
            + size::<FlowEntry>()
            + REASONS.len() as u64 * 8;
        let drops = u64::from(names::DROP_TABLE_ENTRIES);
        let drop_bytes =
            2 * ((drops + cpus) * element::<DropKey, Direction>() + drops.next_power_of_two() * BUCKET_BYTES);
        Self {
            table_bytes,
            ring_bytes,
            total_bytes: table_bytes + ring_bytes + drop_bytes + each_cpu * cpus + FIXED_BYTES,
        }
    }
}

const fn size<T>() -> u64 {
    size_of::<T>() as u64
}

const fn element<K, V>() -> u64 {
    ELEMENT_BYTES + size::<K>().next_multiple_of(8) + size::<V>().next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_table_takes_what_its_elements_and_buckets_take() {
        let memory = Memory::of(&Options { table_entries: 1 << 17, ..Options::default() }, 2);
        // 48 bytes of header, 40 of key.
        let element = 48 + 40 + size_of::<FlowEntry>() as u64;
        assert_eq!(memory.table_bytes, ((1 << 17) + 2) * element + (1 << 17) * 16);
        assert!(memory.total_bytes > memory.table_bytes + memory.ring_bytes);
    }
}
