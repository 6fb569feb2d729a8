//! Packets that may hold another one. They are handed over to programs of their own, so that plain packets pay one
//! comparison, and neither the verifier nor the stack meets two parsers and a table in one program.
#![expect(unsafe_code, reason = "map values are reached through raw pointers, and tail calls")]

use crate::firsts;
use crate::ledger::{settle, settle_inner};
use crate::maps::{FLOWLOG_HANDED, FLOWLOG_HANDTO, FLOWLOG_OWN, FLOWLOG_TUNNEL};
use crate::observe::{count, is_egress};
use crate::skb::Skb;
use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::programs::TcContext;
use flowlog_abi::{Around, TUNNEL_AUTO, TUNNEL_BOTH, TUNNEL_OUTER, TunnelRules, names, tunnel};
use flowlog_ebpf::fragments::LATER;
use flowlog_ebpf::{Bytes as _, Packet, inside, measure, tunnel_kind, wants_inner};

/// What one program tells the next.
#[repr(C)]
pub(crate) struct Handed {
    /// What was found first, and then what is to be counted.
    outer: Packet,
    inner: Packet,
    /// What is around the inner one.
    around: Around,
    /// Segments on the wire and their layer-2 bytes.
    packets: u64,
    bytes: u64,
    /// One of `flowlog_abi::hook`.
    hook: u8,
    /// One of `flowlog_abi::tunnel`.
    kind: u8,
    counts: Counts,
}

/// Which of the two is still to be counted.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Outer = 0,
    Inner = 1,
    /// The outer one, and then the inner one.
    Both = 2,
    /// The inner one, of a packet that has been counted as the outer one.
    InnerToo = 3,
}

#[inline(always)]
fn rules() -> Option<&'static TunnelRules> {
    // SAFETY: numbers that the daemon writes, each on its own; any mixture of old and new ones is as good.
    FLOWLOG_TUNNEL.get_ptr(0).map(|rules| unsafe { &*rules })
}

/// This CPU's own; programs at TC hooks do not interrupt each other on one CPU, and a tail call runs next.
#[inline(always)]
fn handed() -> Option<&'static mut Handed> {
    // SAFETY: as just said.
    FLOWLOG_HANDED.get_ptr_mut(0).map(|handed| unsafe { &mut *handed })
}

/// Runs another program instead of the rest of this one. Should that fail, this returns.
#[inline(always)]
fn go_on_in(context: &TcContext, program: u32) {
    // SAFETY: nothing is left to be dropped here.
    unsafe { FLOWLOG_HANDTO.tail_call(context, program) };
}

/// Hands a packet over if it may hold another one that matters: as a flow, or for what its segments weigh. Then this does
/// not return. Should that fail, the packet goes on as the outer one that it is.
#[inline(always)]
pub(crate) fn hand_over(context: &TcContext, hook: u8, packet: &Packet, segment_bytes: u32) {
    let Some(rules) = rules() else { return };
    let kind = tunnel_kind(packet, rules);
    if kind == tunnel::NONE
        || packet.fragment & LATER != 0
        || (rules.mode == TUNNEL_OUTER && segment_bytes == 0)
    {
        return;
    }
    let Some(handed) = handed() else { return };
    handed.outer = *packet;
    handed.hook = hook;
    handed.kind = kind;
    go_on_in(context, names::HANDOVER_TUNNEL);
}

/// Looks for the packet inside one that was handed over, and decides which of them counts.
#[inline(always)]
pub(crate) fn look_inside(context: &TcContext) -> i32 {
    let skb = Skb::new(context);
    let (Some(rules), Some(handed)) = (rules(), handed()) else { return TC_ACT_UNSPEC };
    let mut weighed = &handed.outer;
    handed.counts = Counts::Outer;
    if let Some((packet, around)) = inside(&skb, &handed.outer, handed.kind) {
        handed.inner = packet;
        handed.around = around;
        let is_own = rules.mode == TUNNEL_AUTO && ends_here(handed);
        if wants_inner(rules, handed.kind, is_own) {
            handed.counts = follow_fragments(handed, rules.mode == TUNNEL_BOTH);
        }
        weighed = &handed.inner;
    }
    let (segments, segment_bytes) = skb.offload();
    (handed.packets, handed.bytes) =
        measure(weighed, skb.length() as u64, segments, segment_bytes, skb.vlan_in_metadata());
    go_on_in(context, names::HANDOVER_INSIDE);
    TC_ACT_UNSPEC
}

/// What is left of a packet that was cut up, inside or outside the tunnel, belongs to what was inside.
#[inline(always)]
fn follow_fragments(handed: &mut Handed, both: bool) -> Counts {
    if handed.inner.is_fragment() {
        firsts::complete(&mut handed.inner);
    }
    match (handed.outer.is_fragment(), both) {
        (false, false) => Counts::Inner,
        (false, true) => Counts::Both,
        (true, false) => {
            firsts::remember(&handed.outer, &handed.inner);
            Counts::Inner
        }
        // The rest can be remembered as one flow only.
        (true, true) => Counts::Outer,
    }
}

/// Whether the near end of the tunnel has one of the node's own addresses, or is a group that many receive.
#[inline(always)]
fn ends_here(handed: &Handed) -> bool {
    let near = if is_egress(handed.hook) { &handed.outer.source } else { &handed.outer.destination };
    if matches!(near, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224..=239, ..] | [0xff, ..]) {
        return true;
    }
    // SAFETY: only whether it is there is asked.
    unsafe { FLOWLOG_OWN.get(near) }.is_some()
}

/// Counts what was handed over: one packet, and where both count, the other one in another run.
#[inline(always)]
pub(crate) fn count_handed(context: &TcContext) -> i32 {
    let skb = Skb::new(context);
    let Some(handed) = handed() else { return TC_ACT_UNSPEC };
    let Handed { hook, packets, bytes, counts, .. } = *handed;
    if matches!(counts, Counts::Inner | Counts::InnerToo) {
        // One place for either, or the verifier follows all that comes twice.
        handed.outer = handed.inner;
    }
    let fate = count(&skb, hook, &handed.outer, Some(&handed.around), packets, bytes);
    if counts == Counts::InnerToo {
        settle_inner(skb.ifindex(), is_egress(hook), fate, packets, bytes);
        return TC_ACT_UNSPEC;
    }
    settle(skb.ifindex(), is_egress(hook), fate, packets, bytes);
    if counts == Counts::Both {
        handed.counts = Counts::InnerToo;
        go_on_in(context, names::HANDOVER_INSIDE);
    }
    TC_ACT_UNSPEC
}
