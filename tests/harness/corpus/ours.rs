//! A capture as our replay reads it: the sums of its reports.

use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use anyhow::Result;
use flowlog_abi::{KIND_FRAGMENT, Report};
use flowlog_ebpf::Timeouts;
use flowlog_user::capture::Captured;
use flowlog_user::capture::replay::{Error, Replay};
use flowlog_user::capture::tunnels::TunnelMode;
use zerocopy::FromBytes;

use super::{NOT_IP, NOT_UNDERSTOOD, Reading, Tuple};

/// The reading, and what the replay said when the file ends inside a packet.
pub(super) fn read(file: &Path) -> Result<(Reading, Option<String>)> {
    let mut reading = Reading::default();
    let mut replay = Replay::new(Timeouts::default(), TunnelMode::Outer, false);
    let mut take = |captured: Captured<'_>| match captured {
        Captured::Bytes(bytes) => {
            if let Ok(report) = Report::read_from_bytes(bytes) {
                add(&mut reading, &report);
            }
        }
        Captured::End(report, _) => add(&mut reading, report),
        // A capture has none.
        Captured::Drop(_) => {}
    };
    let cut = match replay.file(file, &mut take) {
        Ok(_) => None,
        Err(Error::Format { what, .. }) if what.contains("ends inside a packet") => Some(what),
        Err(error) => return Err(error.into()),
    };
    replay.stop(&mut take);
    let counters = replay.counters();
    for (kind, packets, bytes) in [
        (NOT_IP, counters.not_ip_packets, counters.not_ip_bytes),
        (NOT_UNDERSTOOD, counters.unparsed_packets, counters.unparsed_bytes),
    ] {
        if packets > 0 {
            reading.others.insert(kind, (packets, bytes));
        }
    }
    Ok((reading, cut))
}

/// What a report says beyond the one before it.
fn add(reading: &mut Reading, report: &Report) {
    let key = &report.key;
    let (low, high) = (address(key.low), address(key.high));
    let ends = [(low, high, (key.low_port, key.high_port)), (high, low, (key.high_port, key.low_port))];
    for (side, (source, destination, ports)) in report.directions.iter().zip(ends) {
        let packets = side.packets - side.reported_packets;
        if packets == 0 {
            continue;
        }
        let fragment = key.kind & KIND_FRAGMENT != 0;
        let tuple = Tuple { protocol: key.protocol, source, destination, ports, fragment };
        let sum = reading.flows.entry(tuple).or_default();
        sum.0 += packets;
        sum.1 += side.bytes - side.reported_bytes;
    }
}

fn address(bytes: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(bytes).to_canonical()
}
