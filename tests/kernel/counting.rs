//! What packets weigh, and at which hook they count.

use crate::loaded::{Beside, IFINDEX, Loaded};
use crate::packets::*;
use aya::EbpfLoader;
use flowlog_abi::{KIND_VIEW, hook, names};

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];
const OUT: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_EGRESS as usize];
const ENDPOINT_IN: &str = names::ETHERNET_PROGRAMS[hook::ENDPOINT_INGRESS as usize];
const ENDPOINT_OUT: &str = names::ETHERNET_PROGRAMS[hook::ENDPOINT_EGRESS as usize];

#[test]
fn a_connection_has_both_directions_in_one_entry() {
    let mut loaded = Loaded::new();
    loaded.run(IN, &a_to_b(SYN, b""));
    loaded.run(OUT, &b_to_a(SYN | ACK, b""));
    loaded.run(IN, &a_to_b(ACK, b""));
    loaded.run(IN, &a_to_b(ACK | FIN, b"hello"));
    let (_, entry) = loaded.flow();
    let [up, down] = entry.directions;
    assert_eq!((up.packets, up.bytes), (3, 3 * 54 + 5));
    assert_eq!((down.packets, down.bytes), (1, 54));
    assert_eq!(up.l4, [1, 1, 0, 0, 1, 0, 0, 0]);
    assert_eq!(down.l4, [0, 1, 0, 0, 1, 0, 0, 0]);
    assert_eq!((up.hook, down.hook), (hook::UPLINK_INGRESS, hook::UPLINK_EGRESS));
    assert_eq!((up.arrived, down.arrived), (1, 0));
    assert_eq!((up.ifindex, down.ifindex), (IFINDEX, IFINDEX));
    assert_eq!((entry.opener, entry.midstream, entry.interfaces), (0, 0, [IFINDEX, 0, 0, 0]));
    assert!(entry.started_ns <= up.last_ns && entry.started_ns > 0);
    assert_eq!(loaded.ledger().connections, 1);
}

#[test]
fn who_opened_it_is_told_by_the_answer_too() {
    let mut loaded = Loaded::new();
    loaded.run(IN, &b_to_a(SYN | ACK, b""));
    let (_, entry) = loaded.flow();
    assert_eq!((entry.opener, entry.midstream), (0, 0));
    let mut loaded = Loaded::new();
    loaded.run(IN, &b_to_a(ACK, b"data"));
    let (_, entry) = loaded.flow();
    assert_eq!((entry.opener, entry.midstream), (1, 1));
}

#[test]
fn offloaded_packets_count_as_their_segments() {
    let headers = 14 + 20 + 20;
    let data = a_to_b(ACK, &[7; 3000]);
    for (segs, size, packets) in [(0, 0, 1), (3, 1000, 3), (0, 1000, 3), (0, 999, 4), (1, 0, 1)] {
        let mut loaded = Loaded::new();
        loaded.run_as(IN, &data, Beside { gso_segs: segs, gso_size: size, ..Beside::default() }, 1);
        let (_, entry) = loaded.flow();
        let counted = (entry.directions[0].packets, entry.directions[0].bytes);
        assert_eq!(counted, (packets, 3000 + packets * headers), "gso_segs {segs}, gso_size {size}");
        let hook = loaded.hook(false);
        assert_eq!((hook.counted_packets, hook.counted_bytes), counted);
    }
}

#[test]
fn a_forwarded_packet_counts_where_it_entered() {
    let mut loaded = Loaded::new();
    loaded.observe(77, 1);
    let through_77 = Beside { ingress_ifindex: 77, ..Beside::default() };
    loaded.run(IN, &a_to_b(SYN, b""));
    loaded.run_as(OUT, &a_to_b(SYN, b""), through_77, 1);
    let hooks = (loaded.hook(false), loaded.hook(true));
    assert_eq!((hooks.0.counted_packets, hooks.1.elsewhere_packets), (1, 1));
    // Made here, or entered through a device that nobody observes: counts at egress.
    loaded.run(OUT, &a_to_b(ACK, b""));
    loaded.run_as(OUT, &a_to_b(ACK, b""), Beside { ingress_ifindex: 78, ..Beside::default() }, 1);
    // Observed, but this direction never arrived anywhere.
    loaded.run_as(OUT, &b_to_a(ACK, b""), through_77, 1);
    assert_eq!(loaded.hook(true).counted_packets, 3);
    let (_, entry) = loaded.flow();
    assert_eq!(entry.directions.map(|side| side.packets), [3, 1]);
}

#[test]
fn a_flow_between_two_endpoints_is_recorded_at_both() {
    let mut loaded = Loaded::new();
    loaded.observe(77, 2);
    let through_77 = Beside { ingress_ifindex: 77, ..Beside::default() };
    loaded.run(ENDPOINT_IN, &a_to_b(SYN, b""));
    loaded.run_as(ENDPOINT_OUT, &a_to_b(SYN, b""), through_77, 1);
    let mut flows = loaded.flows();
    flows.sort_by_key(|(key, _)| key.kind);
    assert_eq!(flows.iter().map(|(key, _)| key.kind).collect::<Vec<_>>(), [0, KIND_VIEW]);
    assert_eq!(flows[0].1.directions[0].hook, hook::ENDPOINT_INGRESS);
    assert_eq!(flows[1].1.directions[0].hook, hook::ENDPOINT_EGRESS);
    assert_eq!((flows[0].1.directions[0].packets, flows[1].1.directions[0].packets), (1, 1));
    assert_eq!((loaded.hook(true).counted_packets, loaded.hook(true).elsewhere_packets), (1, 0));
    // At an uplink the same packet is no second view.
    loaded.run_as(OUT, &a_to_b(SYN, b""), through_77, 1);
    assert_eq!(loaded.hook(true).elsewhere_packets, 1);
}

#[test]
fn a_full_table_counts_a_forwarded_packet_once_too() {
    let mut loaded = Loaded::with(EbpfLoader::new().map_max_entries(names::FLOWS, 1));
    loaded.observe(77, 1);
    let through_77 = Beside { ingress_ifindex: 77, ..Beside::default() };
    loaded.run(IN, &b_to_a(SYN, b""));
    let other = ethernet(0x0800, &ipv4(A4, B4, 17, &udp(1, 2, b"")));
    loaded.run(IN, &other);
    loaded.run_as(OUT, &other, through_77, 1);
    assert_eq!((loaded.hook(false).alone_packets, loaded.hook(true).elsewhere_packets), (1, 1));
    // Made on this node: seen nowhere else.
    loaded.run(OUT, &other);
    assert_eq!(loaded.hook(true).alone_packets, 1);
}
