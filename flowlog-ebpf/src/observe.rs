//! The way of one packet, from the hook to exactly one counter.
#![expect(unsafe_code, reason = "helpers and map look-ups")]

use crate::firsts;
use crate::ledger::{Fate, settle};
use crate::maps::FLOWLOG_OBSERV;
use crate::ring::{cut, report_alone, report_if_due};
use crate::rules::Control;
use crate::skb::Skb;
use crate::table::{self, NoPlace};
use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::programs::TcContext;
use flowlog_abi::{FlowKey, KIND_VIEW, REPORT_ALONE, REPORT_APART, Reason, hook};
use flowlog_ebpf::{Bytes, Packet, Sight, measure, parse_ethernet, parse_raw_ip, tag};

/// Value in the map of observed interfaces that stands for an endpoint.
const ENDPOINT: u32 = 2;
const TAG_BYTES: u64 = 4;

/// Looks at a packet and lets it pass untouched: the next program, or the stack, decides.
#[inline(always)]
pub(crate) fn observe<const HOOK: u8, const ETHERNET: bool>(context: &TcContext) -> i32 {
    let skb = Skb::new(context);
    let parsed = if ETHERNET { parse_ethernet(&skb) } else { parse_raw_ip(&skb) };
    let (fate, packets, bytes) = match parsed {
        Ok(mut packet) => {
            if packet.fragment != 0 {
                firsts::complete(&mut packet);
            }
            flow::<HOOK>(&skb, &packet)
        }
        Err(reason) => no_flow(&skb, reason),
    };
    settle(skb.ifindex(), is_egress(HOOK), fate, packets, bytes);
    TC_ACT_UNSPEC
}

const fn is_egress(hook: u8) -> bool {
    hook & 1 == 1
}

#[inline(always)]
fn no_flow(skb: &Skb<'_>, reason: Reason) -> (Fate, u64, u64) {
    let (segments, _) = skb.offload();
    let packets = if segments == 0 { 1 } else { u64::from(segments) };
    let tag_bytes = if skb.vlan_in_metadata() { TAG_BYTES } else { 0 };
    (Fate::NoFlow(reason), packets, skb.length() as u64 + tag_bytes)
}

#[inline(always)]
fn flow<const HOOK: u8>(skb: &Skb<'_>, packet: &Packet) -> (Fate, u64, u64) {
    let (segments, segment_bytes) = skb.offload();
    let (packets, bytes) =
        measure(packet, skb.length() as u64, segments, segment_bytes, skb.vlan_in_metadata());
    (count::<HOOK>(skb, packet, packets, bytes), packets, bytes)
}

/// How a packet at egress stands to an earlier hook of this node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// It did not come through an observed interface, or not as this flow.
    New,
    /// Its interface is observed, but its flow is not known from there.
    Unmarked,
    /// Counted there.
    Counted,
    /// Counted at another endpoint of this node.
    CountedAtEndpoint,
}

#[inline(always)]
fn before<const HOOK: u8>(skb: &Skb<'_>, key: &FlowKey, direction: usize, ifindex: u32) -> Before {
    if !is_egress(HOOK) {
        return Before::New;
    }
    let entered = skb.ingress_ifindex();
    if entered == 0 {
        return Before::New;
    }
    // SAFETY: the value is a number written whole.
    let Some(role) = (unsafe { FLOWLOG_OBSERV.get(&entered) }) else { return Before::New };
    let role = *role;
    let Some(entry) = table::find(key) else { return Before::Unmarked };
    // Whatever the tag: an entry in removal was alive when this packet was counted (or reported alone) at ingress.
    if !table::has_arrived(entry, direction) {
        return Before::Unmarked;
    }
    if HOOK == hook::ENDPOINT_EGRESS && role == ENDPOINT {
        return Before::CountedAtEndpoint;
    }
    if table::tag_of(entry) == tag(key) {
        table::note_crossing(entry, ifindex);
    }
    Before::Counted
}

#[inline(always)]
fn count<const HOOK: u8>(skb: &Skb<'_>, packet: &Packet, packets: u64, bytes: u64) -> Fate {
    let (mut key, direction) = packet.key();
    let rules = Control::read();
    if rules.tests() && rules.has_rejected(&key, tag(&key)) {
        return Fate::Rejected;
    }
    let ifindex = skb.ifindex();
    let before = before::<HOOK>(skb, &key, direction, ifindex);
    match before {
        Before::Counted => return Fate::Elsewhere,
        Before::CountedAtEndpoint => key.kind |= KIND_VIEW,
        Before::New | Before::Unmarked => {}
    }
    let tag = tag(&key);
    let found = table::find(&key);
    if rules.tests() && !table::has_passed(found, rules.generation()) && !rules.wants(&key, tag) {
        return Fate::Rejected;
    }
    // Only now: the precise clock is the dearest single step.
    // SAFETY: a helper without arguments.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    let sight = Sight { hook: HOOK, ifindex, now_ns, packets, bytes, generation: rules.generation() };
    match table::live_or_enter(found, &key, tag, direction, packet, &sight) {
        Ok(entry) => {
            cut(entry, &key, tag, direction, packet, &sight);
            table::add(entry, direction, packet, &sight);
            report_if_due(entry, &key, tag, direction, now_ns);
            Fate::Counted
        }
        // A full table left no mark at ingress either: there the packet was reported alone already.
        Err(NoPlace::Full) if before == Before::Unmarked => Fate::Elsewhere,
        Err(NoPlace::Full) => report_alone(packet, &key, direction, &sight, REPORT_ALONE),
        Err(NoPlace::Other) => report_alone(packet, &key, direction, &sight, REPORT_APART),
    }
}
