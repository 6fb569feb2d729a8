use flowlog_abi::{
    Around, DirectionReport, FlowKey, KIND_ECHO, REPORT_ALONE, REPORT_END, REPORT_FLOW, Report, hook,
    protocol, tcp,
};
use proptest::prelude::*;
use zerocopy::IntoBytes;

use super::{Cadence, Cadences, Change, Decoder, Flows};
use crate::clock::Clock;

use crate::record::{EndReason, Event, Flow, Hook, Joined, L4};

const ALL: Cadence = Cadence { start: true, update: true, end: true, interval_ns: 60_000_000_000 };
const END: Cadence = Cadence { start: false, update: false, end: true, interval_ns: 60_000_000_000 };
const SECOND: u64 = 1_000_000_000;

/// A decoder with these cadences, numbered from 0.
fn decoder(cadences: &[Cadence]) -> Decoder {
    Decoder::new(slots(cadences))
}

fn slots(cadences: &[Cadence]) -> Cadences {
    let mut slots = Cadences::default();
    for (slot, cadence) in slots.iter_mut().zip(cadences) {
        *slot = Some(*cadence);
    }
    slots
}

fn mapped(last: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last]
}

/// 10.0.0.2:40000 opens to 10.0.0.1:443; the client is the high side.
fn report() -> Report {
    let key = FlowKey {
        low: mapped(1),
        high: mapped(2),
        low_port: 443,
        high_port: 40_000,
        protocol: protocol::TCP,
        version: 4,
        kind: 0,
    };
    let side = DirectionReport { ifindex: 7, hook: hook::UPLINK_EGRESS, ..DirectionReport::default() };
    Report {
        key,
        directions: [side, side],
        started_ns: 100 * SECOND,
        connection: 42,
        interfaces: [7, 9, 0, 0],
        generation: 0,
        rtt_ns: 0,
        number: 1,
        what: REPORT_FLOW,
        opener: 1,
        midstream: 0,
        zero: 0,
        around: [Around::default(); 2],
    }
}

/// The report with these totals, and the totals before it, of direction `at`.
fn with(
    mut report: Report,
    at: usize,
    now: (u64, u64),
    before: (u64, u64),
    first_s: u64,
    last_s: u64,
) -> Report {
    let side = &mut report.directions[at];
    (side.packets, side.bytes) = now;
    (side.reported_packets, side.reported_bytes) = before;
    (side.first_ns, side.last_ns) = (first_s * SECOND, last_s * SECOND);
    report
}

fn shorthand(flows: &[Flow]) -> Vec<(Event, bool, u64, u64, u64)> {
    flows.iter().map(|f| (f.event, f.is_reply.unwrap(), f.packets, f.bytes, f.packets_total)).collect()
}

fn take(decoder: &mut Decoder, report: &Report, out: &mut Flows) {
    decoder.bytes(report.as_bytes(), Clock::wall(), out);
}

#[test]
fn a_short_connection_gives_a_start_and_an_end_in_each_direction() {
    let mut decoder = decoder(&[ALL, END]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
    let both = with(with(report(), 1, (1, 74), (1, 74), 0, 100), 0, (1, 70), (0, 0), 101, 101);
    take(&mut decoder, &both, &mut out);
    let last = with(with(report(), 1, (5, 500), (1, 74), 102, 110), 0, (4, 4000), (1, 70), 103, 109);
    decoder.end(&last, EndReason::Fin, Clock::wall(), &mut out);

    assert_eq!(
        shorthand(&out[0]),
        [
            (Event::Start, false, 1, 74, 1),
            (Event::Start, true, 1, 70, 1),
            (Event::End, true, 3, 3930, 4),
            (Event::End, false, 4, 426, 5),
        ]
    );
    // The other cadence's interval is the whole connection: the starts of the first never cut it.
    assert_eq!(shorthand(&out[1]), [(Event::End, true, 4, 4000, 4), (Event::End, false, 5, 500, 5)]);
    assert_eq!(out[1][1].first_seen_ns, 100 * 1_000_000_000);
    assert_eq!(out[1][1].last_seen_ns, 110 * 1_000_000_000);
    assert!(
        out[0]
            .iter()
            .chain(&out[1])
            .all(|f| f.end_reason == (f.event == Event::End).then_some(EndReason::Fin))
    );
    assert_eq!(decoder.open(), 0);
    let counts = decoder.counts();
    assert_eq!((counts.decoded, counts.reported_packets, counts.ended_packets), (2, 2, 7));
}

#[test]
fn the_end_of_a_connection_whose_ports_are_used_again_comes_through_the_ring() {
    for (flags, reason) in [(tcp::FIN, EndReason::Fin), (tcp::RST, EndReason::Rst)] {
        let mut decoder = decoder(&[ALL]);
        let mut out = decoder.flows();
        take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
        let mut last = with(with(report(), 1, (5, 500), (1, 74), 102, 110), 0, (4, 400), (0, 0), 101, 109);
        last.what = REPORT_END;
        for side in &mut last.directions {
            side.tcp_flags = flags | tcp::ACK;
        }
        take(&mut decoder, &last, &mut out);
        assert_eq!(out[0].iter().map(|f| f.event).collect::<Vec<_>>()[2..], [Event::End, Event::End]);
        assert!(out[0][2..].iter().all(|f| f.end_reason == Some(reason)), "{:?}", out[0]);
        assert_eq!((decoder.open(), decoder.counts().decoded, decoder.counts().reported_packets), (0, 2, 9));
    }
}

#[test]
fn the_opener_is_the_source_of_the_first_record_and_fields_are_right() {
    let mut decoder = decoder(&[ALL]);
    let mut out = decoder.flows();
    let mut syn = with(report(), 1, (1, 74), (0, 0), 100, 100);
    syn.directions[1].tcp_flags = tcp::SYN;
    take(&mut decoder, &syn, &mut out);
    let flow = out[0][0];
    assert_eq!(flow.source.to_string(), "10.0.0.2");
    assert_eq!(flow.destination.to_string(), "10.0.0.1");
    assert_eq!(flow.l4, L4::Tcp { source_port: 40_000, destination_port: 443, flags: tcp::SYN });
    assert_eq!(flow.hook, Hook::UplinkEgress);
    assert_eq!(flow.interfaces, [7, 9, 0, 0]);
    assert_eq!((flow.is_reply, flow.connection, flow.number), (Some(false), 42, 1));
}

#[test]
fn updates_come_at_the_interval_and_only_when_packets_did() {
    let mut decoder = decoder(&[ALL]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
    // Too early (the kernel reported for another reason), then due, then due again without a packet.
    take(&mut decoder, &with(report(), 1, (5, 500), (1, 74), 110, 120), &mut out);
    take(&mut decoder, &with(report(), 1, (9, 900), (5, 500), 130, 161), &mut out);
    take(&mut decoder, &with(report(), 1, (9, 900), (9, 900), 0, 161), &mut out);
    assert_eq!(shorthand(&out[0]), [(Event::Start, false, 1, 74, 1), (Event::Update, false, 8, 826, 9)]);
    // The interval began with the first packet after the start, not with the last report of the kernel.
    assert_eq!(out[0][1].first_seen_ns, 110 * 1_000_000_000);
}

#[test]
fn an_end_without_any_report_before_gives_start_and_end() {
    let mut decoder = decoder(&[ALL]);
    let mut out = decoder.flows();
    decoder.end(&with(report(), 1, (3, 300), (0, 0), 100, 105), EndReason::Idle, Clock::wall(), &mut out);
    assert_eq!(shorthand(&out[0]), [(Event::Start, false, 3, 300, 3), (Event::End, false, 0, 0, 3)]);
}

#[test]
fn a_packet_alone_is_one_record_in_each_cadence() {
    let start = Cadence { end: false, ..ALL };
    let update = Cadence { start: false, ..start };
    let mut decoder = decoder(&[ALL, start, update]);
    let mut out = decoder.flows();
    let mut alone = with(report(), 1, (1, 74), (0, 0), 100, 100);
    alone.what = REPORT_ALONE;
    take(&mut decoder, &alone, &mut out);
    assert_eq!(out.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(out[0][0].end_reason, Some(EndReason::TableFull));
    assert_eq!(
        [out[0][0].event, out[1][0].event, out[2][0].event],
        [Event::End, Event::Start, Event::Update]
    );
    assert_eq!(decoder.counts().alone_bytes, 74);
    assert_eq!(decoder.open(), 0);
}

#[test]
fn a_cadence_that_begins_counts_from_then_on_and_leaves_the_others_alone() {
    let mut decoder = decoder(&[ALL]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
    take(&mut decoder, &with(report(), 1, (5, 500), (1, 74), 101, 110), &mut out);
    decoder.change(slots(&[ALL, END]), 115 * SECOND);
    let both = with(with(report(), 1, (9, 900), (5, 500), 120, 161), 0, (2, 120), (0, 0), 130, 160);
    take(&mut decoder, &both, &mut out);
    let last = with(with(report(), 1, (10, 974), (9, 900), 162, 170), 0, (2, 120), (2, 120), 0, 160);
    decoder.end(&last, EndReason::Fin, Clock::wall(), &mut out);
    // The first goes on as if nothing had happened: its update is due 60 s after its start.
    assert_eq!(
        shorthand(&out[0]),
        [
            (Event::Start, false, 1, 74, 1),
            (Event::Start, true, 2, 120, 2),
            (Event::Update, false, 8, 826, 9),
            (Event::End, true, 0, 0, 2),
            (Event::End, false, 1, 74, 10),
        ]
    );
    // The second sees five of ten packets, and the totals since the connection began.
    assert_eq!(shorthand(&out[1]), [(Event::End, true, 2, 120, 2), (Event::End, false, 5, 474, 10)]);
    assert_eq!(out[1][1].first_seen_ns, 120 * 1_000_000_000);
}

#[test]
fn what_was_counted_before_a_change_goes_to_the_tasks_before() {
    let update = Cadence { start: false, end: false, ..ALL };
    let mut decoder = decoder(&[ALL, update]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
    // Seven packets stand in the table and one is reported; a task leaves each cadence, one of the first stays.
    let mut last = decoder.flows();
    let standing = with(report(), 1, (7, 700), (1, 74), 101, 110);
    let leaving = Change { leaving: [true, true, false, false], ..Change::default() };
    decoder.stand(&standing, leaving, Clock::wall(), &mut last);
    assert_eq!(shorthand(&last[0]), [(Event::End, false, 6, 626, 7)]);
    assert_eq!(last[0][0].end_reason, Some(EndReason::Shutdown));
    assert_eq!(shorthand(&last[1]), [(Event::Update, false, 7, 700, 7)]);
    decoder.change(slots(&[ALL, END]), 111 * SECOND);
    // This one was in the ring already when the table was looked at.
    take(&mut decoder, &with(report(), 1, (5, 500), (1, 74), 101, 105), &mut out);
    decoder.end(&with(report(), 1, (10, 974), (5, 500), 106, 120), EndReason::Fin, Clock::wall(), &mut out);
    assert_eq!(shorthand(&out[0]), [(Event::Start, false, 1, 74, 1), (Event::End, false, 9, 900, 10)]);
    assert_eq!(shorthand(&out[1]), [(Event::End, false, 3, 274, 10)]);
    let numbers: Vec<u32> = [&out[0][0], &last[0][0], &out[0][1]].map(|flow| flow.number).to_vec();
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn who_moves_gets_what_came_before_and_others_notice_nothing() {
    let update = Cadence { start: false, end: false, ..ALL };
    let mut decoder = decoder(&[ALL, update, END]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
    // Seven packets stand in the table; a task of each cadence goes on with another filter, another leaves the first.
    let mut last = decoder.flows();
    let change = Change {
        number: 1,
        leaving: [true, false, false, false],
        moving: [true, true, true, false],
        joining: [true, true, true, false],
    };
    decoder.stand(&with(report(), 1, (7, 700), (1, 74), 101, 110), change, Clock::wall(), &mut last);
    assert_eq!(shorthand(&last[0]), [(Event::End, false, 6, 626, 7)]);
    let moved = &last[super::MOVED];
    assert_eq!(
        shorthand(moved),
        [
            (Event::Update, false, 6, 626, 7),
            (Event::Update, false, 7, 700, 7),
            (Event::End, false, 7, 700, 7)
        ]
    );
    assert_eq!(moved.iter().map(|flow| flow.cadence).collect::<Vec<_>>(), [0, 1, 2]);
    decoder.end(&with(report(), 1, (10, 974), (7, 700), 111, 120), EndReason::Fin, Clock::wall(), &mut out);
    // Who stays gets the whole of it, who has moved the rest.
    let rest: Vec<_> =
        out[super::DIVIDED].iter().map(|flow| (flow.cadence, flow.joined.from, flow.packets)).collect();
    assert_eq!(rest, [(0, 0, 9), (0, 1, 3), (2, 0, 10), (2, 1, 3)]);
    // No number comes twice: a record's uuid is made of it.
    let numbers = |cadence: u8| {
        let all = out
            .iter()
            .chain(&last)
            .flatten()
            .filter(move |flow| flow.cadence == cadence && flow.joined.from == 0);
        all.map(|flow| flow.number).collect::<Vec<_>>()
    };
    for cadence in 0..3 {
        let (all, mut distinct) = (numbers(cadence), numbers(cadence));
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(all.len(), distinct.len(), "{all:?}");
    }
}

#[test]
fn a_record_is_divided_for_tasks_that_join_its_cadence() {
    let mut decoder = decoder(&[ALL]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
    let mut none = decoder.flows();
    let join = |number| Change { number, joining: [true, false, false, false], ..Change::default() };
    // Seven packets stand in the table when one task joins, nine when another does.
    decoder.stand(&with(report(), 1, (7, 700), (1, 74), 101, 110), join(1), Clock::wall(), &mut none);
    decoder.stand(&with(report(), 1, (9, 900), (1, 74), 101, 115), join(2), Clock::wall(), &mut none);
    assert!(none.iter().all(Vec::is_empty));
    take(&mut decoder, &with(report(), 1, (12, 1200), (1, 74), 101, 170), &mut out);
    decoder.end(
        &with(report(), 1, (13, 1300), (12, 1200), 171, 180),
        EndReason::Fin,
        Clock::wall(),
        &mut out,
    );
    // The start and the end are everybody's.
    assert_eq!(shorthand(&out[0]), [(Event::Start, false, 1, 74, 1), (Event::End, false, 1, 100, 13)]);
    let divided = &out[super::DIVIDED];
    assert_eq!(
        shorthand(divided),
        [
            (Event::Update, false, 11, 1126, 12),
            (Event::Update, false, 5, 500, 12),
            (Event::Update, false, 3, 300, 12)
        ]
    );
    let for_whom: Vec<_> = divided.iter().map(|flow| (flow.joined.from, flow.joined.before)).collect();
    assert_eq!(for_whom, [(0, 1), (1, 2), (2, u32::MAX)]);
    // Each sees one of them, whenever it joined.
    for change in 0..4 {
        assert_eq!(divided.iter().filter(|flow| flow.joined.has(change)).count(), 1, "{change}");
    }
}

/// A task joins while packets wait in the table and leaves before any record of them: it gets an end without them, and
/// those that were there before get all of it.
#[test]
fn who_joins_and_leaves_gets_nothing_of_what_came_before() {
    let mut decoder = decoder(&[ALL]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
    let (join, leave) = ([true, false, false, false], [true, false, false, false]);
    let change = |number, joining, leaving| Change { number, joining, leaving, ..Change::default() };
    let stands = with(report(), 1, (7, 700), (1, 74), 101, 110);
    decoder.stand(&stands, change(1, join, [false; 4]), Clock::wall(), &mut out);
    let mut last = decoder.flows();
    decoder.stand(&stands, change(2, [false; 4], leave), Clock::wall(), &mut last);
    assert!(last[0].is_empty(), "{:?}", last[0]);
    let parts: Vec<_> = last[super::DIVIDED].iter().map(|flow| (flow.joined, flow.packets)).collect();
    let joined = |from, before| Joined { from, before };
    assert_eq!(parts, [(joined(0, 1), 6), (joined(1, u32::MAX), 0)]);
    // The mark stays for who stays: of five more packets the end says all to those before, five to who joined.
    decoder.end(&with(report(), 1, (12, 1200), (7, 700), 111, 120), EndReason::Fin, Clock::wall(), &mut out);
    let parts: Vec<_> = out[super::DIVIDED].iter().map(|flow| (flow.joined, flow.packets)).collect();
    assert_eq!(parts, [(joined(0, 1), 11), (joined(1, u32::MAX), 5)]);
}

#[test]
fn nothing_is_divided_where_nothing_was_pending() {
    let mut decoder = decoder(&[ALL]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (5, 500), (0, 0), 100, 100), &mut out);
    let join = Change { number: 1, joining: [true, false, false, false], ..Change::default() };
    decoder.stand(&with(report(), 1, (5, 500), (5, 500), 100, 100), join, Clock::wall(), &mut out);
    decoder.end(&with(report(), 1, (8, 800), (5, 500), 171, 180), EndReason::Fin, Clock::wall(), &mut out);
    assert_eq!(shorthand(&out[0]), [(Event::Start, false, 5, 500, 5), (Event::End, false, 3, 300, 8)]);
    assert!(out[super::DIVIDED].is_empty());
}

#[test]
fn a_cadence_that_returns_neither_repeats_nor_numbers_anew() {
    let mut decoder = decoder(&[ALL, END]);
    let mut out = decoder.flows();
    take(&mut decoder, &with(report(), 1, (1, 74), (0, 0), 100, 100), &mut out);
    decoder.change(slots(&[]), 101 * SECOND);
    take(&mut decoder, &with(report(), 1, (5, 500), (1, 74), 101, 170), &mut out);
    decoder.change(slots(&[ALL]), 171 * SECOND);
    decoder.end(&with(report(), 1, (6, 574), (5, 500), 172, 180), EndReason::Rst, Clock::wall(), &mut out);
    assert_eq!(shorthand(&out[0]), [(Event::Start, false, 1, 74, 1), (Event::End, false, 1, 74, 6)]);
    assert_eq!(out[0].iter().map(|flow| flow.number).collect::<Vec<_>>(), [1, 2]);
    assert!(out[1].is_empty());
}

#[test]
fn echo_knows_replies_and_other_icmp_does_not() {
    let mut decoder = decoder(&[ALL]);
    let mut out = decoder.flows();
    let mut ping = with(report(), 1, (1, 98), (0, 0), 100, 100);
    ping.key.protocol = protocol::ICMP;
    ping.key.kind = KIND_ECHO;
    ping.directions[1].icmp_type = 8;
    take(&mut decoder, &ping, &mut out);
    assert_eq!(out[0][0].is_reply, Some(false));
    assert_eq!(out[0][0].l4, L4::Icmpv4 { icmp_type: 8, code: 0 });
    ping.key.kind = 0;
    ping.connection = 43;
    take(&mut decoder, &ping, &mut out);
    assert_eq!(out[0][1].is_reply, None);
}

/// Bytes of any length, bytes of a report's length, and reports with one byte changed.
fn junk() -> impl Strategy<Value = Vec<u8>> {
    let size = size_of::<Report>();
    let sound = with(report(), 1, (3, 300), (1, 74), 100, 105).as_bytes().to_vec();
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..2 * size),
        prop::collection::vec(any::<u8>(), size),
        (0..size, any::<u8>()).prop_map(move |(at, byte)| {
            let mut bytes = sound.clone();
            bytes[at] = byte;
            bytes
        }),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_a_flow_or_a_count(bytes in junk()) {
        let mut decoder = decoder(&[ALL, END]);
        let mut out = decoder.flows();
        decoder.bytes(&bytes, Clock::wall(), &mut out);
        let counts = decoder.counts();
        prop_assert_eq!(counts.decoded + counts.malformed, 1);
        prop_assert!(counts.malformed == 0 || out.iter().all(Vec::is_empty));
    }

    /// Over any sequence of reports the intervals of each cadence add up to the totals.
    #[test]
    fn intervals_add_up(steps in prop::collection::vec((0..5_u64, 0..5_u64, 0..90_u64), 1..30)) {
        let mut decoder = decoder(&[ALL, END]);
        let mut out = decoder.flows();
        let mut now = report();
        let mut at_s = 100;
        for (low, high, seconds) in steps {
            at_s += seconds;
            for (at, packets) in [low, high].into_iter().enumerate() {
                let side = now.directions[at];
                let before = (side.packets, side.bytes);
                now = with(now, at, (before.0 + packets, before.1 + packets * 100), before, at_s, at_s);
            }
            if now.directions.iter().any(|side| side.packets > 0) {
                take(&mut decoder, &now, &mut out);
            }
        }
        let totals: u64 = now.directions.iter().map(|side| side.packets).sum();
        prop_assume!(totals > 0);
        decoder.end(&now, EndReason::Idle, Clock::wall(), &mut out);
        for flows in out.iter().take(2) {
            prop_assert_eq!(flows.iter().map(|f| f.packets).sum::<u64>(), totals);
            prop_assert_eq!(flows.iter().map(|f| f.bytes).sum::<u64>(), totals * 100);
        }
    }
}
