//! Devices whose packets begin with an Ethernet header.

use crate::observe::observe;
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use flowlog_abi::hook;

#[classifier]
#[inline(always)]
pub(crate) fn fl_ep_in(context: TcContext) -> i32 {
    observe::<{ hook::ENDPOINT_INGRESS }, true>(&context)
}

#[classifier]
#[inline(always)]
pub(crate) fn fl_ep_out(context: TcContext) -> i32 {
    observe::<{ hook::ENDPOINT_EGRESS }, true>(&context)
}

#[classifier]
#[inline(always)]
pub(crate) fn fl_up_in(context: TcContext) -> i32 {
    observe::<{ hook::UPLINK_INGRESS }, true>(&context)
}

#[classifier]
#[inline(always)]
pub(crate) fn fl_up_out(context: TcContext) -> i32 {
    observe::<{ hook::UPLINK_EGRESS }, true>(&context)
}
