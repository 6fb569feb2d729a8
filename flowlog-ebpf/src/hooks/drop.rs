//! Where the kernel frees a packet that it does not deliver.

use crate::drops::look;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

#[raw_tracepoint(tracepoint = "kfree_skb")]
pub(crate) fn fl_drop(context: RawTracePointContext) {
    look(&context);
}
