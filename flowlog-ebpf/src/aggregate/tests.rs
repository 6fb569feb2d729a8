extern crate std;

use super::{
    Closed, Plain, Sight, Spacing, Timeouts, acknowledge, add, alone, closed, expired, new_entry,
    note_around, pending, reopen, reopens, report, tag, wants_report,
};
use crate::Packet;
use crate::fragments::INSIDE;
use flowlog_abi::{Around, FlowEntry, FlowKey, KIND_ECHO, REPORT_ALONE, REPORT_FLOW, hook, tcp, tunnel};
use proptest::prelude::*;
use std::vec::Vec;

const SECOND: u64 = 1_000_000_000;

fn packet(protocol: u8, flags: u8) -> Packet {
    Packet {
        source: [1; 16],
        destination: [2; 16],
        source_port: 1000,
        destination_port: 80,
        protocol,
        version: 6,
        kind: 0,
        tcp_flags: flags,
        icmp_type: 0,
        icmp_code: 0,
        header_bytes: 60,
        jumbo_bytes: 0,
        fragment: 0,
        fragment_id: 0,
        vlans: 0,
    }
}

fn back(packet: Packet) -> Packet {
    Packet {
        source: packet.destination,
        destination: packet.source,
        source_port: packet.destination_port,
        destination_port: packet.source_port,
        ..packet
    }
}

fn sight(now_ns: u64) -> Sight {
    Sight { hook: hook::UPLINK_INGRESS, ifindex: 7, now_ns, packets: 2, bytes: 300, generation: 0 }
}

fn even(active_ns: u64) -> Spacing {
    Spacing { active_ns, aged: false }
}

/// A connection of these packets, a second apart from second 1 on.
fn connection(packets: &[Packet]) -> (FlowKey, FlowEntry) {
    let (key, direction) = packets[0].key();
    let mut entry = new_entry(&packets[0], &sight(SECOND), direction, 5);
    for (packet, second) in packets.iter().zip(1..) {
        let (same, direction) = packet.key();
        assert_eq!(same, key);
        add(&mut entry, direction, packet, &sight(second * SECOND));
    }
    (key, entry)
}

#[test]
fn the_opener_is_who_asked() {
    let opener = |packet: Packet| packet.opener(packet.key().1);
    assert_eq!(opener(packet(6, tcp::SYN)), 0);
    assert_eq!(opener(back(packet(6, tcp::SYN | tcp::ACK))), 0);
    assert_eq!(opener(back(packet(6, tcp::ACK))), 1);
    assert_eq!(opener(back(packet(17, 0))), 1);
    let reply = Packet { kind: KIND_ECHO, icmp_type: 129, ..packet(58, 0) };
    assert_eq!((opener(reply), opener(Packet { icmp_type: 128, ..reply })), (1, 0));
    assert!(packet(6, tcp::ACK).midstream() && !packet(6, tcp::SYN).midstream());
    assert!(!packet(17, 0).midstream());
}

#[test]
fn an_entry_adds_up_both_directions() {
    let syn = packet(6, tcp::SYN);
    let (_, entry) = connection(&[syn, back(packet(6, tcp::SYN | tcp::ACK)), packet(6, tcp::ACK | tcp::CWR)]);
    let [up, down] = entry.directions;
    assert_eq!((up.packets, up.bytes, up.first_ns, up.last_ns), (4, 600, SECOND, 3 * SECOND));
    assert_eq!((down.packets, down.bytes, down.first_ns, down.last_ns), (2, 300, 2 * SECOND, 2 * SECOND));
    assert_eq!(up.l4, [0, 1, 0, 0, 1, 0, 0, 1]);
    assert_eq!((up.arrived, up.hook, up.ifindex), (1, hook::UPLINK_INGRESS, 7));
    assert_eq!((entry.interfaces, entry.tag, entry.connection), ([7, 0, 0, 0], 0, 5));
}

#[test]
fn four_interfaces_are_named_and_each_once() {
    let (_, mut entry) = connection(&[packet(17, 0)]);
    for ifindex in [9, 7, 9, 8, 6, 5] {
        super::cross(&mut entry, ifindex);
    }
    assert_eq!(entry.interfaces, [7, 9, 8, 6]);
}

#[test]
fn reports_of_an_old_connection_come_rarer_if_asked() {
    let minute = 60 * SECOND;
    let (key, mut entry) = connection(&[packet(6, tcp::ACK)]);
    let mut due_s = Vec::new();
    for second in 1..=86_400 {
        if wants_report(&entry, 0, second * SECOND, Spacing { active_ns: minute, aged: true }, false) {
            add(&mut entry, 0, &packet(6, tcp::ACK), &sight(second * SECOND));
            let said = report(&key, &entry);
            acknowledge(&mut entry, &said);
            due_s.push(second);
        }
    }
    // Every minute until it is four minutes old (it began at second 1), then when it is a quarter older: 240 x 1.25^26
    // is 79,527 seconds, and a day has 86,400.
    assert_eq!(due_s[..5], [61, 121, 181, 241, 301]);
    assert_eq!((due_s[5], due_s.len()), (376, 30));
    assert!(!pending(&new_entry(&packet(6, tcp::ACK), &sight(1), 0, 1)) && !pending(&entry));
    add(&mut entry, 1, &packet(6, tcp::ACK), &sight(90_000 * SECOND));
    assert!(pending(&entry));
}

#[test]
fn reports_are_acknowledged_exactly() {
    let (key, mut entry) = connection(&[packet(6, tcp::SYN)]);
    assert!(wants_report(&entry, 0, SECOND, even(60 * SECOND), true));
    assert!(!wants_report(&entry, 0, SECOND, even(60 * SECOND), false));
    let first = report(&key, &entry);
    assert_eq!((first.number, first.what, first.directions[0].packets), (1, REPORT_FLOW, 2));
    assert_eq!(first.directions[0].tcp_flags, tcp::SYN);
    // Added between the report and its acknowledgement: belongs to the next.
    add(&mut entry, 0, &packet(6, tcp::ACK), &sight(4 * SECOND));
    acknowledge(&mut entry, &first);
    let [up, down] = entry.directions;
    assert_eq!((up.reported_packets, up.reported_bytes, up.announced, up.first_ns), (2, 300, 1, 4 * SECOND));
    assert_eq!((down.announced, entry.number, entry.last_report_ns), (0, 1, SECOND));
    assert!(!wants_report(&entry, 0, 60 * SECOND, even(60 * SECOND), true));
    assert!(wants_report(&entry, 1, 60 * SECOND, even(60 * SECOND), true));
    assert!(wants_report(&entry, 0, 61 * SECOND, even(60 * SECOND), false));
    let second = report(&key, &entry);
    acknowledge(&mut entry, &second);
    let said = second.directions[0];
    assert_eq!((second.number, said.packets, said.reported_packets), (2, 4, 2));
    assert_eq!((said.first_ns, entry.directions[0].first_ns), (4 * SECOND, 0));
}

#[test]
fn a_reopened_entry_keeps_what_the_last_report_did_not_tell() {
    let (key, mut entry) = connection(&[packet(6, tcp::SYN), back(packet(6, tcp::RST))]);
    let syn = back(packet(6, tcp::SYN));
    assert!(reopens(&syn, &entry) && !reopens(&back(packet(6, tcp::SYN | tcp::ACK)), &entry));
    let first = report(&key, &entry);
    acknowledge(&mut entry, &first);
    let last = report(&key, &entry);
    // A packet that another CPU adds after the last word on the old connection.
    add(&mut entry, 0, &packet(6, tcp::ACK), &sight(8 * SECOND));
    let here = Sight { ifindex: 9, hook: hook::UPLINK_EGRESS, ..sight(9 * SECOND) };
    reopen::<Plain>(&mut entry, &last, &here, 1, 6);
    assert!(!reopens(&syn, &entry));
    add(&mut entry, 1, &syn, &here);
    let said = report(&key, &entry);
    assert_eq!((said.number, said.connection, said.opener, said.started_ns), (1, 6, 1, 9 * SECOND));
    assert_eq!(said.directions.map(|side| (side.packets, side.reported_packets)), [(2, 0), (2, 0)]);
    assert_eq!(said.directions.map(|side| side.tcp_flags), [0, tcp::SYN]);
    assert_eq!(said.directions.map(|side| side.first_ns), [8 * SECOND, 9 * SECOND]);
    assert_eq!(said.directions.map(|side| side.ifindex), [7, 9]);
    assert!(wants_report(&entry, 1, 9 * SECOND, even(u64::MAX), true));
}

#[test]
fn the_answer_to_a_single_syn_tells_the_round_trip_time() {
    let (syn, answer) = (packet(6, tcp::SYN), back(packet(6, tcp::SYN | tcp::ACK)));
    // A second between two packets; each sight stands for two, so the first is told to be of one.
    let rtt = |packets: &[Packet], first: u64| {
        let (key, direction) = packets[0].key();
        let one = Sight { packets: first, ..sight(SECOND) };
        let mut entry = new_entry(&packets[0], &one, direction, 5);
        for (packet, second) in packets.iter().zip(1..) {
            add(&mut entry, packet.key().1, packet, &Sight { packets: first, ..sight(second * SECOND) });
        }
        report(&key, &entry).rtt_ns
    };
    assert_eq!(rtt(&[syn], 1), 0);
    assert_eq!(u64::from(rtt(&[syn, answer], 1)), SECOND);
    assert_eq!(u64::from(rtt(&[syn, answer, answer, packet(6, tcp::ACK)], 1)), SECOND);
    assert_eq!(rtt(&[syn, syn, answer], 1), 0);
    assert_eq!(rtt(&[answer, packet(6, tcp::ACK)], 1), 0);
    assert_eq!(rtt(&[packet(6, tcp::ACK), answer], 1), 0);
}

#[test]
fn icmp_reports_carry_type_and_code_and_no_flags() {
    let unreachable = Packet { icmp_type: 1, icmp_code: 4, ..packet(58, 0) };
    let (key, entry) = connection(&[unreachable]);
    let said = report(&key, &entry).directions[0];
    assert_eq!((said.icmp_type, said.icmp_code, said.tcp_flags), (1, 4, 0));
}

#[test]
fn a_packet_alone_fills_its_own_direction() {
    let answer = back(packet(6, tcp::SYN | tcp::ACK));
    let (key, direction) = answer.key();
    let said = alone(&answer, None, &key, direction, &sight(9), 77);
    assert_eq!((said.what, said.number, said.opener, said.connection), (REPORT_ALONE, 1, 0, 77));
    assert_eq!(said.directions.map(|side| side.packets), [0, 2]);
    assert_eq!(said.directions[1].tcp_flags, tcp::SYN | tcp::ACK);
    assert_eq!((said.directions[1].first_ns, said.directions[1].last_ns, said.started_ns), (9, 9, 9));
}

#[test]
fn connections_end_by_the_protocols_own_rules() {
    let timeouts = Timeouts::default();
    let tcp_packets = |flags: &[(bool, u8)]| {
        let packets: Vec<_> = flags
            .iter()
            .map(|(reply, flags)| if *reply { back(packet(6, *flags)) } else { packet(6, *flags) })
            .collect();
        connection(&packets)
    };
    let (syn, ack, fin, rst) = (tcp::SYN, tcp::ACK, tcp::FIN, tcp::RST);
    // Seconds of silence after which each is over, from the design.
    let cases = [
        (connection(&[packet(17, 0)]), None, 30),
        (connection(&[packet(58, 0)]), None, 10),
        (connection(&[packet(1, 0)]), None, 10),
        (connection(&[packet(47, 0)]), None, 60),
        (tcp_packets(&[(false, syn)]), None, 30),
        (tcp_packets(&[(false, syn), (true, syn | ack)]), None, 30),
        (tcp_packets(&[(false, syn), (true, syn | ack), (false, ack)]), None, 300),
        (tcp_packets(&[(false, syn), (true, ack), (false, ack | fin)]), None, 300),
        (tcp_packets(&[(false, ack | fin), (true, ack | fin)]), Some(Closed::Fin), 5),
        (tcp_packets(&[(false, syn), (true, rst)]), Some(Closed::Rst), 5),
    ];
    for (index, ((key, entry), how, silence)) in cases.iter().enumerate() {
        assert_eq!(closed(key, entry), *how, "case {index}");
        let last = entry.directions.iter().map(|side| side.last_ns).max().expect("two");
        let over = last + silence * SECOND;
        assert!(!expired(key, entry, over - 1, &timeouts), "case {index}");
        assert!(expired(key, entry, over, &timeouts), "case {index}");
    }
    assert_eq!(timeouts.active_ns, 60 * SECOND);
}

prop_compose! {
    fn any_packet()(source: [u8; 16], destination: [u8; 16], source_port: u16, destination_port: u16,
            protocol: u8, kind in 0..3_u16, tcp_flags: u8, same: bool) -> Packet {
        Packet { source, destination: if same { source } else { destination }, source_port, destination_port,
            protocol, version: 6, kind, tcp_flags, icmp_type: 0, icmp_code: 0, header_bytes: 0, jumbo_bytes: 0, fragment: 0, fragment_id: 0,
            vlans: 0 }
    }
}

proptest! {
    #[test]
    fn both_directions_share_a_key(packet in any_packet()) {
        let (key, direction) = packet.key();
        let (same, opposite) = back(packet).key();
        prop_assert_eq!(key, same);
        let alike = packet.source == packet.destination && packet.source_port == packet.destination_port;
        prop_assert_eq!(direction + opposite, usize::from(!alike));
        prop_assert!((key.low, key.low_port.to_be_bytes()) <= (key.high, key.high_port.to_be_bytes()));
        prop_assert_ne!(tag(&key), 0);
    }

    #[test]
    fn flags_come_back_as_they_were(flags in prop::collection::vec(any::<u8>(), 1..5)) {
        let packets: Vec<_> = flags.iter().map(|flags| packet(6, *flags)).collect();
        let (key, entry) = connection(&packets);
        let all = flags.iter().fold(0, |all, flags| all | flags);
        prop_assert_eq!(report(&key, &entry).directions[0].tcp_flags, all);
    }

    #[test]
    fn deltas_add_up_to_the_totals(occasions in prop::collection::vec((any::<bool>(), any::<bool>()), 1..40)) {
        let (key, mut entry) = connection(&[packet(17, 0)]);
        let mut reported = [0; 2];
        let mut say = |entry: &mut FlowEntry| {
            let said = report(&key, entry);
            for (sum, side) in reported.iter_mut().zip(said.directions) {
                *sum += side.packets - side.reported_packets;
            }
            acknowledge(entry, &said);
        };
        for (reply, reporting) in &occasions {
            let packet = if *reply { back(packet(17, 0)) } else { packet(17, 0) };
            add(&mut entry, packet.key().1, &packet, &sight(2));
            if *reporting {
                say(&mut entry);
            }
        }
        say(&mut entry);
        let replies = occasions.iter().filter(|(reply, _)| *reply).count() as u64;
        prop_assert_eq!(reported, [2 * (1 + occasions.len() as u64 - replies), 2 * replies]);
    }

    #[test]
    fn one_changed_bit_changes_the_tag(packet in any_packet(), byte in 0..16_usize, bit in 0..8_u32) {
        let (key, _) = packet.key();
        let mut other = key;
        other.low[byte] ^= 1 << bit;
        prop_assert_ne!(tag(&key), tag(&other));
        let mut view = key;
        view.kind |= flowlog_abi::KIND_VIEW;
        prop_assert_ne!(tag(&key), tag(&view));
    }
}

#[test]
fn the_last_that_was_around_a_direction_is_kept_and_forgotten_with_the_connection() {
    let opening = packet(6, tcp::SYN);
    let (key, mut entry) = connection(&[opening]);
    let (_, direction) = opening.key();
    let tunnel = Around { source: [7; 16], vni: 5, protocol: tunnel::VXLAN, version: 6, ..Around::default() };
    let wrapped = Packet { vlans: 7 << 16 | 9, fragment: INSIDE, ..opening };
    note_around(&mut entry, direction, &wrapped, Some(&tunnel));
    // A packet that is bare again, or is outside, changes nothing.
    note_around(&mut entry, direction, &opening, Some(&Around { vni: 6, ..tunnel }));
    let said = report(&key, &entry).around;
    assert_eq!(said[direction], Around { vlan: 7, inner_vlan: 9, ..tunnel });
    assert_eq!(said[1 - direction], Around::default());
    note_around(&mut entry, direction, &wrapped, Some(&Around { vni: 6, ..tunnel }));
    let last = report(&key, &entry);
    assert_eq!(last.around[direction].vni, 6);
    reopen::<Plain>(&mut entry, &last, &sight(9 * SECOND), direction, 6);
    assert_eq!(report(&key, &entry).around, [Around::default(); 2]);
    let said = alone(&wrapped, Some(&tunnel), &key, direction, &sight(9), 77);
    assert_eq!(said.around[direction], Around { vlan: 7, inner_vlan: 9, ..tunnel });
}
