//! The way of one packet, from the hook to exactly one counter.
#![expect(unsafe_code, reason = "helpers and map look-ups")]

use crate::firsts;
use crate::ledger::{Fate, settle};
use crate::maps::{FLOWLOG_OBSERV, OBSERVE_ALL};
use crate::ring::{cut, report_alone, report_if_due};
use crate::rules::Control;
use crate::skb::Skb;
use crate::table::{self, NoPlace};
use crate::tunnels::hand_over;
use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::programs::TcContext;
use flowlog_abi::{
    Around, FlowKey, KIND_BITS, KIND_VIEW, REPORT_ALONE, REPORT_APART, Reason, hook, observed,
};
use flowlog_ebpf::{Bytes, Packet, Sight, measure, parse_ethernet, parse_raw_ip, tag};

const TAG_BYTES: u64 = 4;

/// Looks at a packet and lets it pass untouched: the next program, or the stack, decides.
#[inline(always)]
pub(crate) fn observe<const HOOK: u8, const ETHERNET: bool>(context: &TcContext) -> i32 {
    let skb = Skb::new(context);
    let parsed = if ETHERNET { parse_ethernet(&skb) } else { parse_raw_ip(&skb) };
    let (fate, packets, bytes) = match parsed {
        Ok(mut packet) => {
            if packet.is_fragment() {
                firsts::complete(&mut packet);
            }
            if skb.vlan_in_metadata() {
                packet.tag_in_metadata(skb.vlan_tci());
            }
            // What these are decides little, so the verifier need not follow each way to them on its own.
            packet.vlans = skb.forget(packet.vlans as usize) as u32;
            packet.fragment = skb.forget(packet.fragment as usize) as u8;
            flow(context, &skb, HOOK, &packet)
        }
        Err(reason) => no_flow(&skb, reason),
    };
    settle(skb.ifindex(), is_egress(HOOK), fate, packets, bytes);
    TC_ACT_UNSPEC
}

pub(crate) const fn is_egress(hook: u8) -> bool {
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
fn flow(context: &TcContext, skb: &Skb<'_>, hook: u8, packet: &Packet) -> (Fate, u64, u64) {
    let (segments, segment_bytes) = skb.offload();
    hand_over(context, hook, packet, segment_bytes);
    let (packets, bytes) =
        measure(packet, skb.length() as u64, segments, segment_bytes, skb.vlan_in_metadata());
    (count(skb, hook, packet, None, packets, bytes), packets, bytes)
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

/// What the map of observed interfaces says of one; 0 where it does not know it.
#[inline(always)]
fn observed_as(ifindex: u32) -> u32 {
    // SAFETY: the value is a number written whole.
    unsafe { FLOWLOG_OBSERV.get(&ifindex) }.map_or(0, |value| *value)
}

#[inline(always)]
fn before(
    skb: &Skb<'_>,
    hook: u8,
    packet: &Packet,
    around: Option<&Around>,
    key: &FlowKey,
    direction: usize,
) -> Before {
    if !is_egress(hook) {
        return Before::New;
    }
    let entered = skb.ingress_ifindex();
    let role = if entered == 0 { 0 } else { observed_as(entered) & observed::ROLE };
    // Encapsulation makes a new packet of one that came in, so of what is inside a tunnel the mark alone tells.
    if role == 0 && !packet.is_inside() {
        return Before::New;
    }
    let unmarked = if role == 0 { Before::New } else { Before::Unmarked };
    let Some(entry) = table::find(key) else { return unmarked };
    // Whatever the tag: an entry in removal was alive when this packet was counted (or reported alone) at ingress.
    if !table::has_arrived(entry, direction) {
        return unmarked;
    }
    let from_endpoint = role == observed::ENDPOINT
        || role == observed::CARRIER && table::came_from_endpoint(entry, direction);
    if hook == hook::ENDPOINT_EGRESS && from_endpoint {
        return Before::CountedAtEndpoint;
    }
    if table::tag_of(entry) == tag(key) {
        table::note_crossing(entry, skb.ifindex());
        table::note_around(entry, direction, packet, around);
    }
    Before::Counted
}

/// Counts a packet as a flow; `around` is what is around one inside a tunnel.
#[inline(always)]
pub(crate) fn count(
    skb: &Skb<'_>,
    hook: u8,
    packet: &Packet,
    around: Option<&Around>,
    packets: u64,
    bytes: u64,
) -> Fate {
    let (mut key, direction) = packet.key();
    let each_for_itself = OBSERVE_ALL.load() != 0;
    if each_for_itself {
        key.kind |= ((observed_as(skb.ifindex()) >> observed::NUMBER_SHIFT) << KIND_BITS) as u16;
    }
    let rules = Control::read();
    if rules.tests() && rules.has_rejected(&key, tag(&key)) {
        return Fate::Rejected;
    }
    let ifindex = skb.ifindex();
    let before =
        if each_for_itself { Before::New } else { before(skb, hook, packet, around, &key, direction) };
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
    let sight = Sight { hook, ifindex, now_ns, packets, bytes, generation: rules.generation() };
    match table::live_or_enter(found, &key, tag, direction, packet, &sight) {
        Ok(entry) => {
            cut(entry, &key, tag, direction, packet, &sight);
            table::add(entry, direction, packet, &sight);
            table::note_around(entry, direction, packet, around);
            report_if_due(entry, &key, tag, direction, now_ns);
            Fate::Counted
        }
        // A full table left no mark at ingress either: there the packet was reported alone already.
        Err(NoPlace::Full) if before == Before::Unmarked => Fate::Elsewhere,
        Err(why) => {
            let what = if why == NoPlace::Full { REPORT_ALONE } else { REPORT_APART };
            report_alone(packet, around, &key, direction, &sight, what)
        }
    }
}
