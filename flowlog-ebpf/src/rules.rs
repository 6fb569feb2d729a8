//! The rules in the kernel's maps, and the memory of what they rejected.
#![expect(unsafe_code, reason = "map values are reached through raw pointers")]

use crate::maps::{
    FLOWLOG_CONTROL, FLOWLOG_NO, FLOWLOG_PORTS, FLOWLOG_PREFIX, FLOWLOG_PROTOS, FLOWLOG_RULES,
};
use aya_ebpf::btf_maps::lpm_trie::Key;
use core::ptr;
use flowlog_abi::{
    CONTROL_TEST, CONTROL_TEST_DROPS, FlowKey, Groups, PREFIX_SET_BITS, REJECTED_SETS, REJECTED_WAYS,
    RuleBase, port_key, prefix_data, protocol_index,
};
use flowlog_ebpf::{Lookup, wanted, wanted_dropped};

const ADDRESS_BITS: u32 = 128;

/// The control word, read once for each packet.
#[derive(Clone, Copy)]
pub(crate) struct Control(u64);

impl Control {
    #[inline(always)]
    pub(crate) fn read() -> Self {
        // SAFETY: a number written whole; volatile, so that it is not read again.
        Self(FLOWLOG_CONTROL.get_ptr(0).map_or(0, |control| unsafe { ptr::read_volatile(control) }))
    }

    /// Whether connections are tested at all.
    #[inline(always)]
    pub(crate) const fn tests(self) -> bool {
        self.0 & CONTROL_TEST != 0
    }

    #[inline(always)]
    pub(crate) const fn generation(self) -> u32 {
        self.0 as u32
    }

    /// Whether a connection with this key and its tag was rejected by these rules before.
    #[inline(always)]
    pub(crate) fn has_rejected(self, key: &FlowKey, tag: u32) -> bool {
        let Some(set) = FLOWLOG_NO.get_ptr(tag & (REJECTED_SETS - 1)) else { return false };
        // SAFETY: this CPU's own set.
        let set = unsafe { &*set };
        set.generation == self.generation()
            && set.tags.iter().zip(&set.keys).any(|(other, full)| *other == tag && same(full, key))
    }

    /// Tests a connection of which something was dropped. What was rejected is not remembered: the memory belongs to
    /// programs that do not interrupt each other.
    #[inline(always)]
    pub(crate) fn wants_dropped(self, key: &FlowKey) -> bool {
        self.0 & CONTROL_TEST_DROPS == 0 || wanted_dropped(key, &self)
    }

    /// Tests a connection; remembers a no.
    #[inline(always)]
    pub(crate) fn wants(self, key: &FlowKey, tag: u32) -> bool {
        if wanted(key, &self) {
            return true;
        }
        if let Some(set) = FLOWLOG_NO.get_ptr_mut(tag & (REJECTED_SETS - 1)) {
            // SAFETY: as above.
            let set = unsafe { &mut *set };
            if set.generation != self.generation() {
                set.tags = [0; REJECTED_WAYS];
                set.generation = self.generation();
            }
            let oldest = set.count as usize % REJECTED_WAYS;
            set.count = set.count.wrapping_add(1);
            for (way, (place, full)) in set.tags.iter_mut().zip(&mut set.keys).enumerate() {
                if way == oldest {
                    *place = tag;
                    *full = *key;
                }
            }
        }
        false
    }
}

/// Word by word: the comparison of the derived kind is one of bytes.
#[inline(always)]
fn same(one: &FlowKey, other: &FlowKey) -> bool {
    let rest = |key: &FlowKey| {
        (key.low_port as u64) << 48
            | (key.high_port as u64) << 32
            | (key.protocol as u64) << 24
            | (key.version as u64) << 16
            | key.kind as u64
    };
    rest(one) == rest(other)
        && u128::from_ne_bytes(one.low) == u128::from_ne_bytes(other.low)
        && u128::from_ne_bytes(one.high) == u128::from_ne_bytes(other.high)
}

impl Lookup for Control {
    #[inline(always)]
    fn base(&self) -> Option<RuleBase> {
        // SAFETY: the set of this generation is not written to before a grace period has passed, here and below.
        FLOWLOG_RULES.get_ptr(self.generation() & 1).map(|base| unsafe { *base })
    }

    #[inline(always)]
    fn address(&self, address: &[u8; 16]) -> Option<Groups> {
        let key = Key::new(PREFIX_SET_BITS + ADDRESS_BITS, prefix_data(self.generation(), *address));
        FLOWLOG_PREFIX.get(&key).copied()
    }

    #[inline(always)]
    fn port(&self, port: u16) -> Option<Groups> {
        // SAFETY: as above.
        unsafe { FLOWLOG_PORTS.get(port_key(self.generation(), port)) }.copied()
    }

    #[inline(always)]
    fn protocol(&self, protocol: u8) -> Option<u64> {
        // SAFETY: as above.
        FLOWLOG_PROTOS.get_ptr(protocol_index(self.generation(), protocol)).map(|groups| unsafe { *groups })
    }
}
