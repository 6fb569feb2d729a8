//! Entries being removed take no packets.

use crate::loaded::Loaded;
use crate::packets::*;
use flowlog_abi::{REPORT_APART, hook, names};
use zerocopy::IntoBytes;

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];

#[test]
fn a_marked_entry_takes_no_packet() {
    let mut loaded = Loaded::new();
    loaded.run(IN, &a_to_b(SYN, b""));
    loaded.run(IN, &ethernet(0x0800, &ipv4(A4, B4, 17, &udp(1, 2, b""))));
    loaded.reports();
    let (victim, before) =
        *loaded.flows().iter().find(|(key, _)| key.protocol == 6).expect("the TCP connection");
    assert_ne!(before.tag, 0);
    let mut unknown = victim;
    unknown.low_port = 1;
    let data = [&[0; 14][..], unknown.as_bytes(), victim.as_bytes()].concat();
    assert_eq!(loaded.run(names::MARK_PROGRAM, &data), 1);

    loaded.run(IN, &a_to_b(ACK, b""));
    for (key, entry) in loaded.flows() {
        assert_eq!(entry.directions[0].packets, 1);
        assert_eq!(entry.tag == 0, key == victim);
    }
    let reports = loaded.reports();
    assert_eq!(
        reports.iter().map(|report| (report.what, report.key)).collect::<Vec<_>>(),
        [(REPORT_APART, victim)]
    );
    let (counters, ledger) = (loaded.hook(false), loaded.ledger());
    assert_eq!((counters.counted_packets, counters.alone_packets, ledger.removed), (2, 1, 1));
}

#[test]
fn a_full_batch_of_marks_is_one_run() {
    let mut loaded = Loaded::new();
    let count = u16::try_from(names::MARK_KEYS_MAX).expect("few");
    for port in 1..=count {
        loaded.run(IN, &ethernet(0x0800, &ipv4(A4, B4, 17, &udp(port, 53, b""))));
    }
    let mut data = vec![0; 14];
    for (key, _) in loaded.flows() {
        data.extend_from_slice(key.as_bytes());
    }
    assert_eq!(loaded.run(names::MARK_PROGRAM, &data), u32::from(count));
    assert!(loaded.flows().iter().all(|(_, entry)| entry.tag == 0));
}
