//! Devices whose packets begin with the IP header.

use crate::observe::observe;
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use flowlog_abi::hook;

#[classifier]
#[inline(always)]
pub(crate) fn fl_ep_in_l3(context: TcContext) -> i32 {
    observe::<{ hook::ENDPOINT_INGRESS }, false>(&context)
}

#[classifier]
#[inline(always)]
pub(crate) fn fl_ep_out_l3(context: TcContext) -> i32 {
    observe::<{ hook::ENDPOINT_EGRESS }, false>(&context)
}

#[classifier]
#[inline(always)]
pub(crate) fn fl_up_in_l3(context: TcContext) -> i32 {
    observe::<{ hook::UPLINK_INGRESS }, false>(&context)
}

#[classifier]
#[inline(always)]
pub(crate) fn fl_up_out_l3(context: TcContext) -> i32 {
    observe::<{ hook::UPLINK_EGRESS }, false>(&context)
}
