//! Says from which sources the object was built; never attached, run by `BPF_PROG_TEST_RUN`.

use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use aya_log_ebpf::info;
use flowlog_abi::LAYOUT_ID;

#[classifier]
pub(crate) fn fl_self_test(context: TcContext) -> i32 {
    info!(&context, "programs loaded, layout {:x}", LAYOUT_ID);
    LAYOUT_ID.cast_signed()
}
