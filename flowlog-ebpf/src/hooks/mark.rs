//! Marks connections for removal; never attached, run by `BPF_PROG_TEST_RUN`.

use crate::table;
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use flowlog_abi::{FlowKey, names::MARK_KEYS_MAX};

/// The Ethernet header that a test run wants in front.
const HEADER_BYTES: usize = 14;

/// Only a program can do this: userspace replaces an element when it updates it, and loses counts.
#[classifier]
pub(crate) fn fl_mark(context: TcContext) -> i32 {
    let mut found = 0;
    for index in 0..MARK_KEYS_MAX {
        let offset = HEADER_BYTES + index * size_of::<FlowKey>();
        let Ok(key) = context.load::<FlowKey>(offset) else { break };
        if let Some(entry) = table::find(&key) {
            table::set_tag(entry, 0);
            found += 1;
        }
    }
    found
}
