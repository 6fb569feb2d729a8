//! Names a place in the kernel's code; never attached, run by `BPF_PROG_TEST_RUN`.
#![expect(unsafe_code, reason = "a helper, and a map value reached through a raw pointer")]

use crate::maps::FLOWLOG_SYMBOL;
use aya_ebpf::helpers::generated::bpf_snprintf;
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use flowlog_abi::names::SYMBOL_BYTES;

/// The Ethernet header that a test run wants in front.
const HEADER_BYTES: usize = 14;

/// "Symbol", in the language of the kernel's printf. In a map, which is where the helper wants it.
#[unsafe(no_mangle)]
static SYMBOL_FORMAT: [u8; 4] = *b"%ps\0";

/// What /proc/kallsyms says takes CAP_SYSLOG; this takes what the daemon has in any case.
#[classifier]
pub(crate) fn fl_symbol(context: TcContext) -> i32 {
    let Ok(mut address) = context.load::<u64>(HEADER_BYTES) else { return -1 };
    let Some(name) = FLOWLOG_SYMBOL.get_ptr_mut(0) else { return -1 };
    // SAFETY: the name's place is as long as said, the format ends with a zero and asks for one number.
    let length = unsafe {
        bpf_snprintf(
            name.cast(),
            SYMBOL_BYTES as u32,
            SYMBOL_FORMAT.as_ptr().cast(),
            &raw mut address,
            size_of::<u64>() as u32,
        )
    };
    length as i32
}
