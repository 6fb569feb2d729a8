//! The flow table on the host: the kernel's own entries, kept and swept by the capture's clock.

use std::collections::{BTreeMap, HashMap};

use flowlog_abi::{
    Around, Counters, FlowEntry, FlowKey, Ledger, REASONS, Reason, Report, TUNNEL_BOTH, TunnelRules, hook,
    tunnel,
};
use flowlog_ebpf::fragments::{FIRST, FirstFragment, FragmentKey, LATER};
use flowlog_ebpf::{
    Captured as Slice, Closed, Packet, Sight, Timeouts, acknowledge, add, alone, closed, expired, inside,
    new_entry, note_around,
};
use flowlog_ebpf::{parse_ethernet, parse_raw_ip, reopens, report, tunnel_kind, wants_inner, wants_report};
use zerocopy::IntoBytes;

use super::{Frame, Link};
use crate::capture::tunnels::TunnelMode;
use crate::capture::{Before, CaptureLedger, Captured, DropLedger, Sink};
use crate::limits::TABLE_ENTRIES;
use crate::record::EndReason;

/// The kernel side sweeps its table about once a second.
const SWEEP_NS: u64 = 1_000_000_000;

/// First fragments that are remembered, as in the kernel.
const FIRSTS_MAX: usize = 4096;

/// Connections in the order in which they began, so that a replay is repeatable.
#[derive(Debug)]
pub(super) struct Table {
    timeouts: Timeouts,
    tunnels: TunnelRules,
    report_start: bool,
    ids: HashMap<FlowKey, u64>,
    open: BTreeMap<u64, (FlowKey, FlowEntry)>,
    firsts: HashMap<FragmentKey, FirstFragment>,
    now_ns: u64,
    swept_ns: u64,
    counters: Counters,
    ledger: Ledger,
    reasons: [u64; REASONS.len()],
    ended: (u64, u64),
    stopped: bool,
}

impl Table {
    pub(super) fn new(timeouts: Timeouts, tunnel: TunnelMode, report_start: bool) -> Self {
        Self {
            timeouts,
            tunnels: tunnel.rules(0, &[]).0,
            report_start,
            ids: HashMap::new(),
            open: BTreeMap::new(),
            firsts: HashMap::new(),
            now_ns: 0,
            swept_ns: 0,
            counters: Counters::default(),
            ledger: Ledger::default(),
            reasons: [0; REASONS.len()],
            ended: (0, 0),
            stopped: false,
        }
    }

    /// Takes one packet; ends first what had expired by then.
    pub(super) fn frame(&mut self, frame: Frame<'_>, sink: Sink<'_>) {
        self.now_ns = self.now_ns.max(frame.time_ns);
        if self.now_ns.saturating_sub(self.swept_ns) >= SWEEP_NS {
            self.swept_ns = self.now_ns;
            self.sweep(sink);
        }
        let (parsed, bytes, slice) = parse(&frame);
        self.counters.seen_packets += 1;
        self.counters.seen_bytes += bytes;
        match parsed {
            Ok(mut packet) => {
                self.complete(&mut packet);
                self.look_inside(&packet, &slice, frame.time_ns, bytes, sink);
            }
            Err(reason) => {
                let (packets, sum) = match reason {
                    Reason::Arp | Reason::Llc | Reason::OtherEthertype => {
                        (&mut self.counters.not_ip_packets, &mut self.counters.not_ip_bytes)
                    }
                    _ => (&mut self.counters.unparsed_packets, &mut self.counters.unparsed_bytes),
                };
                *packets += 1;
                *sum += bytes;
                if let Some(count) = self.reasons.get_mut(reason as usize) {
                    *count += 1;
                }
            }
        }
    }

    /// Counts a packet, the one inside it, or both; as the kernel's programs do. No tunnel ends in a capture.
    fn look_inside(&mut self, outer: &Packet, slice: &Slice<'_>, time_ns: u64, bytes: u64, sink: Sink<'_>) {
        let kind = tunnel_kind(outer, &self.tunnels);
        let found = if kind == tunnel::NONE
            || outer.fragment & LATER != 0
            || !wants_inner(&self.tunnels, kind, false)
        {
            None
        } else {
            inside(slice, outer, kind)
        };
        let both = self.tunnels.mode == TUNNEL_BOTH;
        let Some((mut inner, around)) = found.filter(|_| !(both && outer.is_fragment())) else {
            return self.packet(outer, None, time_ns, bytes, sink);
        };
        self.complete(&mut inner);
        if both {
            self.counters.inner_packets += 1;
            self.counters.inner_bytes += bytes;
            self.packet(outer, None, time_ns, bytes, sink);
        } else if outer.is_fragment() {
            self.remember(FragmentKey::of(outer), FirstFragment::of(&inner, self.now_ns));
        }
        self.packet(&inner, Some(&around), time_ns, bytes, sink);
    }

    fn remember(&mut self, key: FragmentKey, first: FirstFragment) {
        if self.firsts.len() >= FIRSTS_MAX {
            self.firsts.retain(|_, first| !first.is_over(self.now_ns));
        }
        if self.firsts.len() >= FIRSTS_MAX {
            self.firsts.clear();
        }
        self.firsts.insert(key, first);
    }

    /// Remembers a first fragment; gives a later one the ports of its first.
    fn complete(&mut self, packet: &mut Packet) {
        let key = FragmentKey::of(packet);
        if packet.fragment & FIRST != 0 {
            self.remember(key, FirstFragment::of(packet, self.now_ns));
        } else if packet.fragment & LATER != 0
            && let Some(first) = self.firsts.get_mut(&key)
        {
            first.complete(packet, self.now_ns);
        }
    }

    fn packet(&mut self, packet: &Packet, around: Option<&Around>, time_ns: u64, bytes: u64, sink: Sink<'_>) {
        let (key, direction) = packet.key();
        let sight =
            Sight { hook: side_of(packet), ifindex: 0, now_ns: time_ns, packets: 1, bytes, generation: 0 };
        if let Some(id) = self.ids.get(&key).copied()
            && self.open.get(&id).is_some_and(|(_, entry)| reopens(packet, entry))
        {
            self.ledger.reopened += 1;
            self.end(id, EndReason::Fin, sink);
        }
        let id = match self.ids.get(&key) {
            Some(id) => *id,
            None if self.open.len() < TABLE_ENTRIES as usize => self.insert(key, packet, &sight, direction),
            None => {
                let id = self.next_id();
                self.ledger.table_full += 1;
                self.counters.alone_packets += 1;
                self.counters.alone_bytes += bytes;
                return self.send(&alone(packet, around, &key, direction, &sight, id), sink);
            }
        };
        let Some((_, entry)) = self.open.get_mut(&id) else { return };
        add_at(entry, direction, packet, &sight);
        note_around(entry, direction, packet, around);
        self.counters.counted_packets += 1;
        self.counters.counted_bytes += bytes;
        if wants_report(entry, direction, time_ns, self.timeouts.spacing(), self.report_start) {
            let report = report(&key, entry);
            acknowledge(entry, &report);
            let (packets, bytes) = delta(&report);
            self.ledger.reported_packets += packets;
            self.ledger.reported_bytes += bytes;
            self.send(&report, sink);
        }
    }

    fn next_id(&mut self) -> u64 {
        self.ledger.connections += 1;
        self.ledger.connections
    }

    fn insert(&mut self, key: FlowKey, packet: &Packet, sight: &Sight, direction: usize) -> u64 {
        let id = self.next_id();
        self.ids.insert(key, id);
        self.open.insert(id, (key, new_entry(packet, sight, direction, id)));
        id
    }

    fn send(&mut self, report: &Report, sink: Sink<'_>) {
        self.ledger.ring_records += 1;
        sink(Captured::Bytes(report.as_bytes()));
    }

    fn sweep(&mut self, sink: Sink<'_>) {
        let (now_ns, timeouts) = (self.now_ns, self.timeouts);
        let over: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, (key, entry))| expired(key, entry, now_ns, &timeouts))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.end(id, EndReason::Idle, sink);
        }
    }

    fn end(&mut self, id: u64, otherwise: EndReason, sink: Sink<'_>) {
        let Some((key, entry)) = self.open.remove(&id) else { return };
        self.ids.remove(&key);
        let reason = match closed(&key, &entry) {
            Some(Closed::Fin) => EndReason::Fin,
            Some(Closed::Rst) => EndReason::Rst,
            None => otherwise,
        };
        let last = report(&key, &entry);
        let (packets, bytes) = delta(&last);
        self.ended.0 += packets;
        self.ended.1 += bytes;
        sink(Captured::End(&last, reason));
    }

    /// Ends every connection.
    pub(super) fn stop(&mut self, sink: Sink<'_>) {
        self.sweep(sink);
        for id in self.open.keys().copied().collect::<Vec<_>>() {
            self.end(id, EndReason::Shutdown, sink);
        }
        self.stopped = true;
    }

    pub(super) const fn counters(&self) -> Counters {
        self.counters
    }

    pub(super) fn ledger(&self) -> CaptureLedger {
        let pending = self.open.values().map(|(key, entry)| delta(&report(key, entry)));
        let (table_packets, table_bytes) = pending.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        CaptureLedger {
            before: Before::default(),
            continues: false,
            hooks: vec![("capture".into(), "both", self.counters)],
            kernel: self.ledger,
            drops: DropLedger::default(),
            reasons: REASONS
                .iter()
                .zip(self.reasons)
                .map(|((_, name), n)| (*name, n))
                .filter(|(_, n)| *n > 0)
                .collect(),
            ended_packets: self.ended.0,
            ended_bytes: self.ended.1,
            table_packets,
            table_bytes,
            table_entries: self.open.len() as u64,
            ring_taken: self.ledger.ring_records,
            stopped: self.stopped,
        }
    }
}

/// Adds a packet of a capture, which may be older than the one before it.
fn add_at(entry: &mut FlowEntry, direction: usize, packet: &Packet, sight: &Sight) {
    let last_ns = entry.directions.get(direction).map_or(0, |side| side.last_ns);
    add(entry, direction, packet, sight);
    entry.started_ns = entry.started_ns.min(sight.now_ns);
    if let Some(side) = entry.directions.get_mut(direction) {
        side.first_ns = side.first_ns.min(sight.now_ns);
        side.last_ns = side.last_ns.max(last_ns);
    }
}

fn delta(report: &Report) -> (u64, u64) {
    report.directions.iter().fold((0, 0), |(packets, bytes), side| {
        (packets + side.packets - side.reported_packets, bytes + side.bytes - side.reported_bytes)
    })
}

/// The packet, its layer-2 bytes, and the bytes that it was read from. Cooked and loopback headers are the capture's,
/// never on a wire: not counted.
fn parse<'a>(frame: &Frame<'a>) -> (Result<Packet, Reason>, u64, Slice<'a>) {
    let behind = |header: usize| Slice {
        bytes: frame.data.get(header..).unwrap_or_default(),
        length: frame.length.saturating_sub(header),
    };
    let (slice, refused) = match frame.link {
        Link::Ethernet => {
            let slice = behind(0);
            return (parse_ethernet(&slice), slice.length as u64, slice);
        }
        Link::RawIp => (behind(0), None),
        Link::Version(version) => {
            let other = frame.data.first().is_some_and(|first| first >> 4 != version);
            (behind(0), other.then_some(Reason::BadVersion))
        }
        Link::Null => (behind(4), None),
        Link::Unread => (behind(0), Some(Reason::LinkType)),
        Link::Cooked { header, ethertype } => {
            let kind = frame
                .data
                .get(ethertype..ethertype + 2)
                .map(|kind| [kind.first().copied(), kind.last().copied()]);
            let refused = match kind {
                None => Some(Reason::TruncatedLink),
                Some([Some(0x08), Some(0x00)] | [Some(0x86), Some(0xdd)]) => None,
                Some([Some(0x08), Some(0x06)]) => Some(Reason::Arp),
                Some([Some(0..=0x05), _]) => Some(Reason::Llc),
                Some(_) => Some(Reason::OtherEthertype),
            };
            (behind(header), refused)
        }
    };
    let parsed = refused.map_or_else(|| parse_raw_ip(&slice), Err);
    (parsed, slice.length as u64, slice)
}

/// A capture does not say which way a packet went through the node.
const fn side_of(packet: &Packet) -> u8 {
    if is_private(packet.source) && !is_private(packet.destination) {
        hook::UPLINK_EGRESS
    } else {
        hook::UPLINK_INGRESS
    }
}

/// RFC 1918, RFC 4193, link-local, loopback and unspecified.
const fn is_private(address: [u8; 16]) -> bool {
    matches!(
        address,
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10 | 127 | 0, ..]
            | [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 172, 16..=31, ..]
            | [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, ..]
            | [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 169, 254, ..]
            | [0xfc | 0xfd, ..]
            | [0xfe, 0x80..=0xbf, ..]
            | [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 | 1]
    )
}
