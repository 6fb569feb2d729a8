//! When reports reach the ring, and what they say.

use crate::loaded::Loaded;
use crate::packets::*;
use aya::EbpfLoader;
use flowlog_abi::{REPORT_ALONE, REPORT_FLOW, hook, names};

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];

fn start(report_start: u32, active_ns: u64) -> Loaded {
    Loaded::with(
        EbpfLoader::new()
            .override_global(names::GLOBAL_REPORT_START, &report_start, true)
            .override_global(names::GLOBAL_ACTIVE_NS, &active_ns, true)
            .override_global(names::GLOBAL_CONNECTION_BASE, &1_000_u64, true),
    )
}

#[test]
fn the_first_packet_of_each_direction_is_reported() {
    let mut loaded = start(1, u64::MAX);
    loaded.run(IN, &a_to_b(SYN, b""));
    loaded.run(IN, &a_to_b(ACK, b""));
    loaded.run(IN, &b_to_a(SYN | ACK, b""));
    loaded.run(IN, &b_to_a(ACK, b""));
    let reports = loaded.reports();
    assert_eq!(reports.len(), 2, "{reports:#?}");
    let (first, second) = (reports[0], reports[1]);
    assert_eq!((first.number, first.what, first.opener, first.midstream), (1, REPORT_FLOW, 0, 0));
    assert_eq!(first.directions.map(|side| side.packets), [1, 0]);
    assert_eq!(first.directions[0].tcp_flags, SYN);
    assert_eq!(first.directions[0].first_ns, first.started_ns);
    assert_eq!(second.number, 2);
    assert_eq!(second.connection, first.connection);
    assert!(first.connection >= 1_000);
    assert_eq!(second.directions.map(|side| (side.packets, side.reported_packets)), [(2, 1), (1, 0)]);
    assert_eq!(second.directions.map(|side| (side.bytes, side.reported_bytes)), [(108, 54), (54, 0)]);
    assert_eq!(second.directions.map(|side| side.tcp_flags), [SYN | ACK, SYN | ACK]);
    let (_, entry) = loaded.flow();
    assert_eq!(entry.directions.map(|side| (side.packets, side.reported_packets)), [(2, 2), (2, 1)]);
    assert_eq!((entry.lease, entry.number), (0, 2));
    let ledger = loaded.ledger();
    assert_eq!((ledger.ring_records, ledger.reported_packets, ledger.reported_bytes), (2, 3, 3 * 54));
}

#[test]
fn without_start_records_nothing_is_reported_before_its_time() {
    let mut loaded = start(0, u64::MAX);
    loaded.run(IN, &a_to_b(SYN, b""));
    loaded.run(IN, &b_to_a(SYN | ACK, b""));
    assert_eq!(loaded.reports(), []);
    assert_eq!(loaded.hook(false).counted_packets, 2);
}

#[test]
fn the_active_timeout_reports_what_is_new() {
    let mut loaded = start(0, 0);
    loaded.run(IN, &a_to_b(SYN, b""));
    loaded.run(IN, &a_to_b(ACK, b""));
    let deltas: Vec<_> = loaded
        .reports()
        .iter()
        .map(|report| (report.number, report.directions[0].packets - report.directions[0].reported_packets))
        .collect();
    assert_eq!(deltas, [(1, 1), (2, 1)]);
}

#[test]
fn a_full_ring_costs_no_counts() {
    let mut loaded = Loaded::with(EbpfLoader::new().map_max_entries(names::RING, 4096).override_global(
        names::GLOBAL_ACTIVE_NS,
        &0_u64,
        true,
    ));
    for _ in 0..50 {
        loaded.run(IN, &a_to_b(ACK, b""));
    }
    let ledger = loaded.ledger();
    assert!(ledger.ring_full > 0 && ledger.ring_records > 0, "{ledger:?}");
    assert_eq!(ledger.ring_records + ledger.ring_full, 50);
    assert_eq!(loaded.reports().len() as u64, ledger.ring_records);
    loaded.run(IN, &a_to_b(ACK, b""));
    let last = loaded.reports()[0].directions[0];
    assert_eq!((last.packets, last.reported_packets), (51, ledger.reported_packets));
    assert_eq!(loaded.hook(false).counted_packets, 51);
}

#[test]
fn a_full_table_reports_packets_alone_while_the_ring_is_half_empty() {
    let mut loaded =
        Loaded::with(EbpfLoader::new().map_max_entries(names::FLOWS, 1).map_max_entries(names::RING, 4096));
    loaded.run(IN, &a_to_b(SYN, b""));
    loaded.reports();
    let other = |port| ethernet(0x0800, &ipv4(B4, A4, 17, &udp(port, 53, b"xyz")));
    for port in 1..=30 {
        loaded.run(IN, &other(port));
    }
    let reports = loaded.reports();
    // A record is a 296-byte report and 8 bytes of header; below half of 4096 is up to the seventh.
    assert_eq!(reports.len(), 7);
    for (report, port) in reports.iter().zip(1..) {
        assert_eq!((report.what, report.number, report.opener), (REPORT_ALONE, 1, 1));
        assert_eq!((report.key.low_port, report.key.high_port), (53, port));
        assert_eq!(report.directions.map(|side| side.packets), [0, 1]);
        assert_eq!(report.directions[1].bytes, 45);
        assert_eq!(report.directions[1].first_ns, report.started_ns);
    }
    let ids: std::collections::HashSet<_> = reports.iter().map(|report| report.connection).collect();
    assert_eq!(ids.len(), 7);
    let hook = loaded.hook(false);
    assert_eq!((hook.counted_packets, hook.alone_packets, hook.lost_packets), (1, 7, 23));
    assert_eq!(hook.alone_bytes, 7 * 45);
    let ledger = loaded.ledger();
    assert_eq!((ledger.table_full, ledger.insert_failed, ledger.ring_records), (30, 0, 8));
}
