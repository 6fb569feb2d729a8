//! Floors for measurements: never attached, not even loaded by the daemon, run by `BPF_PROG_TEST_RUN`.
#![expect(unsafe_code, reason = "helpers, the context, and an entry reached through a raw pointer")]

use crate::atomic::Atomic;
use crate::maps::{FLOWLOG_FLOWS, FLOWLOG_HANDTO};
use crate::skb::Skb;
use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::helpers::{bpf_get_prandom_u32, bpf_ktime_get_ns};
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use flowlog_abi::{FlowKey, protocol};
use flowlog_ebpf::{Add as _, Bytes as _};

/// The cost of the measurement itself.
#[classifier]
pub(crate) fn fl_bench_empty(_: TcContext) -> i32 {
    TC_ACT_UNSPEC
}

/// The least that any such agent must do with a packet: a TCP or UDP five-tuple over IPv4, one hit in a hash, a clock, two sums.
#[classifier]
pub(crate) fn fl_bench_ref(context: TcContext) -> i32 {
    let skb = Skb::new(&context);
    let Some([e0, e1]) = skb.read::<2>(12) else { return TC_ACT_UNSPEC };
    let Some(ip) = skb.read::<20>(14) else { return TC_ACT_UNSPEC };
    let Some([p0, p1, q0, q1]) = skb.read::<4>(34) else { return TC_ACT_UNSPEC };
    let [first, _, _, _, _, _, _, _, _, number, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = ip;
    // Ports are in the same place in both.
    if [e0, e1, first] != [8, 0, 0x45] || (number != protocol::TCP && number != protocol::UDP) {
        return TC_ACT_UNSPEC;
    }
    let key = FlowKey {
        low: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, s0, s1, s2, s3],
        high: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, d0, d1, d2, d3],
        low_port: u16::from_be_bytes([p0, p1]),
        high_port: u16::from_be_bytes([q0, q1]),
        protocol: number,
        version: 4,
        kind: 0,
    };
    if let Some(entry) = FLOWLOG_FLOWS.get_ptr_mut(&key) {
        // SAFETY: a look-up of this run, and a helper without arguments.
        let (side, now_ns) = unsafe { (&mut (*entry).directions[0], bpf_ktime_get_ns()) };
        side.last_ns = now_ns;
        Atomic::add(&mut side.packets, 1);
        Atomic::add(&mut side.bytes, skb.length() as u64);
    }
    TC_ACT_UNSPEC
}

/// Gives an IPv4 packet one of `mark` sources from 9.0.0.0 on, at random, and goes on in the first program of the
/// hand-over array: many flows in turn, though a test run repeats one packet.
#[classifier]
pub(crate) fn fl_bench_turn(context: TcContext) -> i32 {
    const SOURCE: usize = 14 + 12;
    // SAFETY: a helper without arguments, and a field of the context.
    let (random, sources) = unsafe { (bpf_get_prandom_u32(), (*context.skb.skb).mark) };
    let [_, high, middle, low] = ((u64::from(random) * u64::from(sources) >> 32) as u32).to_be_bytes();
    if context.store(SOURCE, &[9, high, middle, low], 0).is_ok() {
        // SAFETY: nothing is left to be dropped here.
        unsafe { FLOWLOG_HANDTO.tail_call(&context, 0) };
    }
    TC_ACT_UNSPEC
}
