//! The model's records as the kernel reports them: what a ring buffer and a sweep of the table would hand on.

use std::collections::HashMap;
use std::net::IpAddr;

use flowlog_abi::{Around, DirectionReport, FlowKey, REPORT_FLOW, Report, hook};
use flowlog_user::record::{EndReason, Event, Flow, Hook, L4};

/// A report, and why it is the connection's last one.
pub(crate) struct Fed {
    pub(crate) report: Report,
    pub(crate) end: Option<EndReason>,
}

/// Reports whose records are these flows, in their order. Times stay wall time.
pub(crate) fn reports(flows: &[Flow]) -> Vec<Fed> {
    let mut known: HashMap<u64, Report> = HashMap::new();
    let same = |a: &Flow, b: &Flow| a.connection == b.connection && a.event == b.event;
    let mut fed = Vec::with_capacity(flows.len() / 2);
    for records in flows.chunk_by(same) {
        let Some(first) = records.first() else { continue };
        let before = known.remove(&first.connection).unwrap_or_else(|| begun(first));
        let report = records.iter().fold(told(before), with);
        if first.event != Event::End {
            known.insert(first.connection, report);
        }
        fed.push(Fed { report, end: first.end_reason });
    }
    fed
}

/// A connection of which nothing was reported yet. Its client is the lower side, whatever the addresses.
fn begun(flow: &Flow) -> Report {
    let (client, server) =
        if flow.high_to_low { (flow.destination, flow.source) } else { (flow.source, flow.destination) };
    let (source_port, destination_port) = flow.l4.ports().unwrap_or_default();
    let ports =
        if flow.high_to_low { (destination_port, source_port) } else { (source_port, destination_port) };
    let echo = matches!(flow.l4, L4::Icmpv4 { .. } | L4::Icmpv6 { .. });
    Report {
        key: FlowKey {
            low: address(client),
            high: address(server),
            low_port: ports.0,
            high_port: ports.1,
            protocol: flow.protocol,
            version: if client.is_ipv4() { 4 } else { 6 },
            kind: if echo { flowlog_abi::KIND_ECHO } else { 0 },
        },
        directions: [DirectionReport::default(); 2],
        started_ns: flow.started_ns.unsigned_abs(),
        connection: flow.connection,
        interfaces: flow.interfaces,
        generation: 0,
        rtt_ns: 0,
        number: 0,
        what: REPORT_FLOW,
        opener: 0,
        midstream: 0,
        zero: 0,
        around: [Around::default(); 2],
    }
}

/// What follows a report, before anything new is in it.
fn told(mut report: Report) -> Report {
    report.number += 1;
    for side in &mut report.directions {
        (side.reported_packets, side.reported_bytes, side.first_ns) = (side.packets, side.bytes, 0);
    }
    report
}

/// Adds what a record says of its direction.
fn with(mut report: Report, flow: &Flow) -> Report {
    report.rtt_ns = report.rtt_ns.max(flow.rtt_ns);
    let Some(side) = report.directions.get_mut(usize::from(flow.high_to_low)) else { return report };
    (side.packets, side.bytes) = (flow.packets_total, flow.bytes_total);
    (side.first_ns, side.last_ns) = (flow.first_seen_ns.unsigned_abs(), flow.last_seen_ns.unsigned_abs());
    side.ifindex = flow.interfaces.first().copied().unwrap_or_default();
    side.hook = match flow.hook {
        Hook::EndpointIngress => hook::ENDPOINT_INGRESS,
        Hook::EndpointEgress => hook::ENDPOINT_EGRESS,
        Hook::UplinkIngress => hook::UPLINK_INGRESS,
        Hook::UplinkEgress => hook::UPLINK_EGRESS,
    };
    match flow.l4 {
        L4::Tcp { flags, .. } => side.tcp_flags |= flags,
        L4::Icmpv4 { icmp_type, code } | L4::Icmpv6 { icmp_type, code } => {
            (side.icmp_type, side.icmp_code) = (icmp_type, code);
        }
        L4::Udp { .. } | L4::Sctp { .. } | L4::Other => {}
    }
    report
}

fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}
