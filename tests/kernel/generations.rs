//! What was counted under one set of rules is told under it, whatever comes after.

use aya::EbpfLoader;
use flowlog_abi::{REPORT_FLOW, Report, hook, names};
use flowlog_user::capture::rules::Tables;
use flowlog_user::record::rules::{Group, Rules};

use crate::loaded::Loaded;
use crate::packets::*;
use flowlog_tests::rules::many;

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];

/// Nothing is reported by itself.
fn silent() -> Loaded {
    Loaded::with(
        EbpfLoader::new()
            .override_global(names::GLOBAL_REPORT_START, &0_u32, true)
            .override_global(names::GLOBAL_ACTIVE_NS, &u64::MAX, true)
            .map_max_entries(names::RING, 4096),
    )
}

fn told(reports: &[Report]) -> Vec<(u32, u32, [u64; 2])> {
    let delta = |report: &Report| report.directions.map(|side| side.packets - side.reported_packets);
    reports.iter().map(|report| (report.generation, report.number, delta(report))).collect()
}

#[test]
fn a_packet_under_other_rules_first_tells_what_was_counted_under_the_old() {
    let mut loaded = silent();
    loaded.set_rules(&many(), 1);
    for packet in [a_to_b(SYN, b""), b_to_a(SYN | ACK, b""), a_to_b(ACK, b"")] {
        loaded.run(IN, &packet);
    }
    assert_eq!(told(&loaded.reports()), []);
    loaded.set_rules(&many(), 2);
    loaded.run(IN, &b_to_a(ACK, b""));
    let reports = loaded.reports();
    assert_eq!(told(&reports), [(1, 1, [2, 1])]);
    assert_eq!(reports[0].what, REPORT_FLOW);
    let (_, entry) = loaded.flow();
    assert_eq!(entry.generation, 2);
    assert_eq!(entry.directions.map(|side| (side.packets, side.reported_packets)), [(2, 2), (2, 1)]);
    assert_eq!(entry.directions[1].first_ns, entry.directions[1].last_ns, "a new interval begins");
    loaded.run(IN, &a_to_b(ACK, b""));
    assert_eq!(told(&loaded.reports()), [], "only the first packet");
    // To rules that want everything, and back: generations of their own.
    loaded.pass_everything(3);
    loaded.run(IN, &a_to_b(ACK, b""));
    assert_eq!(told(&loaded.reports()), [(2, 2, [1, 1])]);
    loaded.set_rules(&many(), 4);
    loaded.run(IN, &a_to_b(ACK, b""));
    assert_eq!(told(&loaded.reports()), [(3, 3, [1, 0])]);
    assert_eq!(loaded.hook(false).counted_packets, 7);
}

#[test]
fn with_a_full_ring_the_connection_stays_with_the_old_rules_until_it_could_be_told() {
    let mut loaded = silent();
    loaded.set_rules(&many(), 1);
    loaded.run(IN, &a_to_b(ACK, b"one"));
    // Other connections fill the ring: each is told at the change of rules.
    let other = |port| ethernet(0x0800, &ipv4(A4, B4, 6, &tcp(port, 7, ACK, &[], b"")));
    for port in 1_000..1_050 {
        loaded.run(IN, &other(port));
    }
    loaded.set_rules(&many(), 2);
    for port in 1_000..1_050 {
        loaded.run(IN, &other(port));
    }
    assert!(loaded.ledger().ring_full > 0);
    loaded.run(IN, &a_to_b(ACK, b"two"));
    loaded.reports();
    loaded.run(IN, &a_to_b(ACK, b"three"));
    assert_eq!(told(&loaded.reports()), [(1, 1, [2, 0])]);
    let entries = loaded.flows();
    let (_, entry) = entries.iter().find(|(key, _)| key.high_port == 443).expect("the connection");
    assert_eq!((entry.generation, entry.directions[0].packets), (2, 3));
}

#[test]
fn one_that_is_no_longer_wanted_keeps_what_it_has_under_the_old_rules() {
    let mut loaded = silent();
    loaded.set_rules(&many(), 1);
    loaded.run(IN, &a_to_b(ACK, b""));
    let udp = Rules { groups: vec![Group { protocols: Some([17].into()), ..Group::default() }] };
    loaded.set_rules(&Tables::new(&udp), 2);
    loaded.run(IN, &a_to_b(ACK, b""));
    assert_eq!(told(&loaded.reports()), []);
    let (_, entry) = loaded.flow();
    assert_eq!(
        (entry.generation, entry.directions[0].packets, entry.directions[0].reported_packets),
        (1, 1, 0)
    );
    assert_eq!(loaded.hook(false).rejected_packets, 1);
}
