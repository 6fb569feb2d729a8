use super::around::{NOTHING, wrap};
use super::entry::gather;
use super::{Sight, of, of_mut};
use crate::Packet;
use flowlog_abi::{
    Around, Direction, DirectionReport, FlowEntry, FlowKey, REPORT_ALONE, REPORT_FLOW, Report, protocol,
};

const BLANK_SIDE: DirectionReport = DirectionReport {
    packets: 0,
    bytes: 0,
    reported_packets: 0,
    reported_bytes: 0,
    first_ns: 0,
    last_ns: 0,
    ifindex: 0,
    hook: 0,
    tcp_flags: 0,
    icmp_type: 0,
    icmp_code: 0,
};

const fn blank(key: &FlowKey) -> Report {
    Report {
        key: *key,
        directions: [BLANK_SIDE; 2],
        started_ns: 0,
        connection: 0,
        interfaces: [0; 4],
        generation: 0,
        rtt_ns: 0,
        number: 0,
        what: REPORT_FLOW,
        opener: 0,
        midstream: 0,
        zero: 0,
        around: [NOTHING; 2],
    }
}

#[inline(always)]
fn write_side(said: &mut DirectionReport, direction: &Direction, number: u8) {
    let [kind, code, ..] = direction.l4;
    let is_icmp = number == protocol::ICMP || number == protocol::ICMPV6;
    said.packets = direction.packets;
    said.bytes = direction.bytes;
    said.reported_packets = direction.reported_packets;
    said.reported_bytes = direction.reported_bytes;
    said.first_ns = direction.first_ns;
    said.last_ns = direction.last_ns;
    said.ifindex = direction.ifindex;
    said.hook = direction.hook;
    said.tcp_flags = if number == protocol::TCP { gather(direction.l4) } else { 0 };
    said.icmp_type = if is_icmp { kind } else { 0 };
    said.icmp_code = if is_icmp { code } else { 0 };
}

/// What is to be said of a connection now. Changes nothing: see [`acknowledge`].
#[must_use]
pub fn report(key: &FlowKey, entry: &FlowEntry) -> Report {
    let mut said = blank(key);
    write_report(&mut said, key, entry);
    said
}

/// [`report`], written in place whatever stood there: the kernel's stack has no room for it.
#[inline(always)]
pub fn write_report(said: &mut Report, key: &FlowKey, entry: &FlowEntry) {
    let [up, down] = &mut said.directions;
    let [entry_up, entry_down] = &entry.directions;
    write_side(up, entry_up, key.protocol);
    write_side(down, entry_down, key.protocol);
    said.key = *key;
    said.started_ns = entry.started_ns;
    said.connection = entry.connection;
    // One by one: the whole array at once would be a call to a byte loop on the BPF target.
    let [a, b, c, d] = &mut said.interfaces;
    [*a, *b, *c, *d] = entry.interfaces;
    said.generation = entry.generation;
    said.rtt_ns = entry.rtt_ns;
    said.number = entry.number.wrapping_add(1);
    said.what = REPORT_FLOW;
    said.opener = entry.opener;
    said.midstream = entry.midstream;
    said.zero = 0;
    let [up, down] = &mut said.around;
    [*up, *down] = entry.around;
}

/// Notes in the entry what a report that has reached the ring said, and nothing that was added since. The time of
/// the report is that of the last packet in it, which was its occasion.
#[inline(always)]
pub fn acknowledge(entry: &mut FlowEntry, report: &Report) {
    acknowledge_side(entry, report, 0);
    acknowledge_side(entry, report, 1);
    entry.number = report.number;
    let [up, down] = &report.directions;
    entry.last_report_ns = if up.last_ns > down.last_ns { up.last_ns } else { down.last_ns };
}

#[inline(always)]
fn acknowledge_side(entry: &mut FlowEntry, report: &Report, direction: usize) {
    let said = of(&report.directions, direction);
    let side = of_mut(&mut entry.directions, direction);
    side.reported_packets = said.packets;
    side.reported_bytes = said.bytes;
    // A packet that another CPU added meanwhile found the old first time and left it: it gets its own.
    side.first_ns = if side.packets == said.packets { 0 } else { side.last_ns };
    if said.packets > 0 {
        side.announced = 1;
    }
}

/// The report of a packet that found the table full.
#[must_use]
pub fn alone(
    packet: &Packet,
    around: Option<&Around>,
    key: &FlowKey,
    direction: usize,
    sight: &Sight,
    connection: u64,
) -> Report {
    let mut said = blank(key);
    said.what = REPORT_ALONE;
    write_alone(&mut said, packet, around, key, direction, sight, connection);
    said
}

/// [`alone`], written in place where all bytes of the directions and of what is around them are 0; what it is stands
/// there already.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the opener is 0 or 1")]
pub fn write_alone(
    said: &mut Report,
    packet: &Packet,
    around: Option<&Around>,
    key: &FlowKey,
    direction: usize,
    sight: &Sight,
    connection: u64,
) {
    said.key = *key;
    said.started_ns = sight.now_ns;
    said.connection = connection;
    said.interfaces = [sight.ifindex, 0, 0, 0];
    said.generation = sight.generation;
    said.rtt_ns = 0;
    said.number = 1;
    said.opener = packet.opener(direction) as u8;
    said.midstream = u8::from(packet.midstream());
    said.zero = 0;
    wrap(of_mut(&mut said.around, direction), packet, around);
    let side = of_mut(&mut said.directions, direction);
    side.packets = sight.packets;
    side.bytes = sight.bytes;
    side.first_ns = sight.now_ns;
    side.last_ns = sight.now_ns;
    side.ifindex = sight.ifindex;
    side.hook = sight.hook;
    side.tcp_flags = packet.tcp_flags;
    side.icmp_type = packet.icmp_type;
    side.icmp_code = packet.icmp_code;
}
