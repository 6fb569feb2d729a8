//! CPUs that meet at one connection lose nothing and report nothing twice.

use crate::loaded::Loaded;
use crate::packets::*;
use aya::EbpfLoader;
use flowlog_abi::{REPORT_FLOW, hook, names};

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];
const EACH: u32 = 300_000;

#[test]
fn cpus_that_share_a_connection_report_each_packet_once() {
    // Every packet is an occasion for a report: they fight for the lease all the time.
    let mut loaded = Loaded::with(EbpfLoader::new().override_global(names::GLOBAL_ACTIVE_NS, &0_u64, true));
    let packets = [a_to_b(ACK, b"one"), b_to_a(ACK, b"other"), a_to_b(ACK, b"three")];
    let reports = loaded.race(IN, &packets, EACH);
    let each = u64::from(EACH);
    let (_, entry) = loaded.flow();
    assert_eq!(entry.directions.map(|side| side.packets), [2 * each, each]);
    assert_eq!(entry.directions.map(|side| side.bytes), [each * (57 + 59), each * 59]);
    assert_eq!(loaded.hook(false).counted_packets, 3 * each);
    assert_eq!((entry.lease, loaded.ledger().connections), (0, 1));

    // Numbers without gap, and each report begins where the one before it ended.
    let ledger = loaded.ledger();
    assert_eq!(reports.len() as u64, ledger.ring_records);
    let mut told = [(0, 0); 2];
    for (report, number) in reports.iter().zip(1..) {
        assert_eq!((report.number, report.what), (number, REPORT_FLOW));
        assert_eq!(report.directions.map(|side| (side.reported_packets, side.reported_bytes)), told);
        told = report.directions.map(|side| (side.packets, side.bytes));
    }
    assert_eq!(entry.directions.map(|side| (side.reported_packets, side.reported_bytes)), told);
    assert_eq!(ledger.reported_packets, told[0].0 + told[1].0);
    assert_eq!(ledger.reported_bytes, told[0].1 + told[1].1);
}
