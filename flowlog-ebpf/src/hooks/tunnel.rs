//! Takes over packets that may hold another one; never attached, reached by tail calls.

use crate::tunnels;
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;

#[classifier]
#[inline(always)]
pub(crate) fn fl_tunnel(context: TcContext) -> i32 {
    tunnels::look_inside(&context)
}

#[classifier]
#[inline(always)]
pub(crate) fn fl_inside(context: TcContext) -> i32 {
    tunnels::count_handed(&context)
}
