//! One direction of a report as a [`Flow`].

use std::net::{IpAddr, Ipv6Addr};

use flowlog_abi::{
    Around, DirectionReport, KIND_ECHO, KIND_FRAGMENT, KIND_VIEW, Report, hook, protocol, tunnel,
};
use flowlog_ebpf::{Closed, how};

use crate::clock::Clock;
use crate::record::{
    Dropped, EndReason, Event, Flow, Hook, Identity, Joined, L4, PoolTag, Tunnel, TunnelKind,
};

/// What one record says of an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) cadence: u8,
    pub(super) event: Event,
    pub(super) end_reason: Option<EndReason>,
    pub(super) number: u32,
    /// Nanoseconds of the kernel's clock; 0 = no packet in this interval.
    pub(super) first_ns: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// Numbers from 2^53 on are not exact in JSON; no counter of a connection gets there.
const LARGEST: u64 = 1 << 53;

const fn hook_of(number: u8) -> Option<Hook> {
    match number {
        hook::ENDPOINT_INGRESS => Some(Hook::EndpointIngress),
        hook::ENDPOINT_EGRESS => Some(Hook::EndpointEgress),
        hook::UPLINK_INGRESS => Some(Hook::UplinkIngress),
        hook::UPLINK_EGRESS => Some(Hook::UplinkEgress),
        _ => None,
    }
}

/// Whether every number of the report means something.
pub(super) fn sound(report: &Report) -> bool {
    matches!(report.key.version, 4 | 6)
        && report.opener < 2
        && report.directions.iter().all(|side| hook_of(side.hook).is_some())
        && report.directions.iter().any(|side| side.packets > 0)
        && report.directions.iter().all(|side| side.packets < LARGEST && side.bytes < LARGEST)
        && report.connection < LARGEST
        && report.around.iter().all(|around| usize::from(around.protocol) < tunnel::KINDS)
}

/// How a connection was closed whose ports have been used again.
pub(super) fn closed(report: &Report) -> EndReason {
    match how(report.directions.map(|side| side.tcp_flags)) {
        Some(Closed::Rst) => EndReason::Rst,
        _ => EndReason::Fin,
    }
}

/// The flow of direction `at` (0 = low to high). `None` only for a report that is not [`sound`].
pub(super) fn build(report: &Report, at: usize, interval: &Interval, clock: Clock) -> Option<Flow> {
    let (side, around) = (report.directions.get(at)?, report.around.get(at)?);
    let key = &report.key;
    let (low, high) = (address(key.low), address(key.high));
    let high_to_low = at == 1;
    let (source, destination) = if high_to_low { (high, low) } else { (low, high) };
    let ports = if high_to_low { (key.high_port, key.low_port) } else { (key.low_port, key.high_port) };
    let directed = matches!(key.protocol, protocol::TCP | protocol::UDP | protocol::SCTP)
        && key.kind & KIND_FRAGMENT == 0
        || key.kind & KIND_ECHO != 0;
    let first_ns = if interval.first_ns == 0 { side.last_ns } else { interval.first_ns.min(side.last_ns) };
    Some(Flow {
        cadence: interval.cadence,
        joined: Joined::EVER,
        event: interval.event,
        end_reason: interval.end_reason,
        connection: report.connection,
        number: interval.number,
        high_to_low,
        midstream: report.midstream != 0,
        duplicate: key.kind & KIND_VIEW != 0,
        fragment: key.kind & KIND_FRAGMENT != 0,
        rtt_ns: report.rtt_ns,
        vlans: [around.vlan, around.inner_vlan],
        tunnel: tunnel_of(around),
        dropped: None,
        source,
        destination,
        protocol: key.protocol,
        l4: transport(report, side, ports),
        is_reply: directed.then_some(usize::from(report.opener) != at),
        hook: hook_of(side.hook)?,
        interfaces: interfaces(side.ifindex, report.interfaces),
        started_ns: clock.to_wall_ns(report.started_ns),
        first_seen_ns: clock.to_wall_ns(first_ns),
        last_seen_ns: clock.to_wall_ns(side.last_ns),
        packets: interval.packets,
        bytes: interval.bytes,
        packets_total: side.packets,
        bytes_total: side.bytes,
        source_identity: Identity::default(),
        destination_identity: Identity::default(),
        source_pool: PoolTag::NONE,
        destination_pool: PoolTag::NONE,
    })
}

/// The record of what the kernel dropped: one direction, which is an answer to nothing.
pub(super) fn dropped(
    (report, direction): (&Report, usize),
    dropped: Dropped,
    (packets, bytes): (u64, u64),
    clock: Clock,
) -> Option<Flow> {
    let side = report.directions.get(direction)?;
    let interval = Interval {
        cadence: 0,
        event: Event::Drop,
        end_reason: None,
        number: report.number,
        first_ns: side.first_ns,
        packets,
        bytes,
    };
    let flow = build(report, direction, &interval, clock)?;
    Some(Flow { dropped: Some(dropped), is_reply: None, ..flow })
}

fn tunnel_of(around: &Around) -> Option<Tunnel> {
    let kind = match around.protocol {
        tunnel::VXLAN => TunnelKind::Vxlan,
        tunnel::GENEVE => TunnelKind::Geneve,
        tunnel::GRE => TunnelKind::Gre,
        tunnel::IPV4 => TunnelKind::Ipip,
        tunnel::IPV6 => TunnelKind::Ip6ip,
        _ => return None,
    };
    Some(Tunnel {
        kind,
        source: address(around.source),
        destination: address(around.destination),
        ports: (around.source_port, around.destination_port),
        vni: around.vni,
    })
}

fn address(bytes: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(bytes).to_canonical()
}

const fn transport(report: &Report, side: &DirectionReport, ports: (u16, u16)) -> L4 {
    let (source_port, destination_port) = ports;
    if report.key.kind & KIND_FRAGMENT != 0 {
        return L4::Other;
    }
    match report.key.protocol {
        protocol::TCP => L4::Tcp { source_port, destination_port, flags: side.tcp_flags },
        protocol::UDP => L4::Udp { source_port, destination_port },
        protocol::SCTP => L4::Sctp { source_port, destination_port },
        protocol::ICMP => L4::Icmpv4 { icmp_type: side.icmp_type, code: side.icmp_code },
        protocol::ICMPV6 => L4::Icmpv6 { icmp_type: side.icmp_type, code: side.icmp_code },
        _ => L4::Other,
    }
}

/// The interface where the direction was counted first, then the others the connection crossed.
fn interfaces(counted_at: u32, crossed: [u32; 4]) -> [u32; 4] {
    let mut all = [0; 4];
    let others = crossed.into_iter().filter(|&index| index != 0 && index != counted_at);
    for (slot, index) in all.iter_mut().zip(std::iter::once(counted_at).chain(others)) {
        *slot = index;
    }
    all
}
