//! Any byte string as a packet: nothing panics, and what the parser says is what a parser that is not ours says.

use etherparse::{LaxNetSlice, LaxSlicedPacket, NetSlice, SlicedPacket, TransportSlice};
use flowlog_ebpf::fragments::LATER;
use flowlog_ebpf::{Captured, Packet, inside, measure, parse_ethernet, parse_raw_ip};
use flowlog_tests::packets::{
    A4, A6, B4, B6, SYN, ethernet, ipv4, ipv4_with, ipv6, mapped, tagged, tcp, udp,
};

const AUTHENTICATION: u8 = 51;
const UDP: u8 = 17;
const TCP: u8 = 6;

/// A sequence that is the same each time (xorshift64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.roll() >> 16).expect("64 bits") % most.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.roll().to_be_bytes()[3]
    }

    /// Numbers that headers trip over, or any.
    fn number(&mut self) -> u8 {
        const ODD: [u8; 20] =
            [0, 1, 4, 5, 6, 8, 17, 20, 40, 43, 44, 47, 51, 58, 59, 60, 0x45, 0x60, 132, 255];
        if self.below(2) == 0 { ODD[self.below(ODD.len())] } else { self.byte() }
    }
}

/// A packet that is as it should be.
fn good(dice: &mut Dice) -> Vec<u8> {
    let (from, to) = (u16::from(dice.byte()) + 1, u16::from(dice.byte()) + 1_000);
    let payload = vec![b'p'; dice.below(40)];
    let (number, transport) = match dice.below(5) {
        0 | 1 => (TCP, tcp(from, to, SYN, &vec![1; 4 * dice.below(10)], &payload)),
        2 | 3 => (UDP, udp(from, to, &payload)),
        _ => (1, [&[8, 0, 0, 0, dice.byte(), dice.byte(), 0, 1][..], &payload].concat()),
    };
    let number6 = if number == 1 { 58 } else { number };
    let extension = |next: u8, dice: &mut Dice| {
        let words = dice.below(3);
        let length = u8::try_from(words).expect("few");
        [&[next, length, 1, 4][..], &vec![0; 4 + 8 * words]].concat()
    };
    let (ethertype, packet) = match dice.below(8) {
        0 => (0x0800, ipv4(A4, B4, number, &transport)),
        1 => (0x0800, ipv4_with(A4, B4, number, &vec![1; 4 * dice.below(11)], 0, &transport)),
        2 => (0x0800, ipv4_with(A4, B4, number, &[], [0x2000, 0x2001, 5, 0x4000][dice.below(4)], &transport)),
        3 => (0x86dd, ipv6(A6, B6, number6, &transport)),
        4 => (0x86dd, ipv6(A6, B6, 0, &[extension(number6, dice), transport].concat())),
        5 => (0x86dd, ipv6(A6, B6, 60, &[extension(43, dice), extension(number6, dice), transport].concat())),
        6 => {
            let length = u8::try_from(2 * dice.below(4)).expect("few");
            let authentication = [&[number6, length][..], &vec![0; 6 + 4 * usize::from(length)]].concat();
            (0x86dd, ipv6(A6, B6, AUTHENTICATION, &[authentication, transport].concat()))
        }
        _ => {
            let flags = [[0, 0], [0, 1], [0, 0x51], [0, 0x50]][dice.below(4)];
            let fragment = [&[number6, 0][..], &flags, &[0, 0, 0, 9]].concat();
            (0x86dd, ipv6(A6, B6, 44, &[fragment, transport].concat()))
        }
    };
    match dice.below(4) {
        0 => ethernet(0x8100, &tagged(7, ethertype, &packet)),
        1 => ethernet(0x88a8, &tagged(7, 0x8100, &tagged(8, ethertype, &packet))),
        _ => ethernet(ethertype, &packet),
    }
}

/// The same with a few bytes changed, cut off or grown.
fn bent(dice: &mut Dice) -> Vec<u8> {
    let mut frame = good(dice);
    for _ in 0..dice.below(4) {
        let at = 12 + dice.below(frame.len() - 12);
        frame[at] = dice.number();
    }
    match dice.below(6) {
        0 => frame.truncate(dice.below(frame.len() + 1)),
        1 => frame.extend(vec![0; dice.below(30)]),
        _ => {}
    }
    frame
}

fn address(bytes: &[u8]) -> [u8; 16] {
    bytes.try_into().unwrap_or_else(|_| mapped(bytes.try_into().expect("4 or 16 bytes")))
}

fn ports(transport: Option<&TransportSlice<'_>>) -> Option<(u8, u16, u16)> {
    match transport? {
        TransportSlice::Tcp(tcp) => Some((TCP, tcp.source_port(), tcp.destination_port())),
        TransportSlice::Udp(udp) => Some((UDP, udp.source_port(), udp.destination_port())),
        TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_) => None,
    }
}

/// What we say of a frame must be what the other parser reads, as far as it reads. True when ports were compared.
fn agrees(frame: &[u8], packet: &Packet) -> bool {
    let theirs = LaxSlicedPacket::from_ethernet(frame).expect("a whole Ethernet header");
    let (source, destination, protocol) = match &theirs.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            (address(&header.source()), address(&header.destination()), Some(header.protocol().0))
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let walked = theirs.stop_err.is_none().then(|| ip.payload().ip_number.0);
            (address(&header.source()), address(&header.destination()), walked)
        }
        other => panic!("we read {packet:?} where there is {other:?}"),
    };
    assert_eq!((packet.source, packet.destination), (source, destination), "{packet:?}");
    // Our walk ends at a later fragment; theirs may stop before.
    if let Some(protocol) = protocol.filter(|_| packet.fragment & LATER == 0) {
        assert_eq!(packet.protocol, protocol, "{packet:?}");
    }
    if packet.fragment & LATER != 0 {
        assert_eq!((packet.source_port, packet.destination_port), (0, 0), "{packet:?}");
        return false;
    }
    // Behind IPv4's authentication header we do not look.
    match ports(theirs.transport.as_ref()) {
        Some(theirs) if packet.protocol != AUTHENTICATION || packet.version == 6 => {
            assert_eq!((packet.protocol, packet.source_port, packet.destination_port), theirs, "{packet:?}");
            true
        }
        _ => false,
    }
}

/// What the other parser takes for whole and sound is a flow for us, too.
fn none_refused(frame: &[u8], ours: Result<Packet, flowlog_abi::Reason>) {
    let Ok(theirs) = SlicedPacket::from_ethernet(frame) else { return };
    let Some((protocol, source, destination)) = ports(theirs.transport.as_ref()) else { return };
    match ours {
        Ok(packet) if packet.protocol == AUTHENTICATION => {}
        // RFC 8200 has the reserved bits of IPv6's fragment header lowest but one; theirs masks two of the offset's.
        Ok(packet) if packet.version == 6 && packet.fragment & LATER != 0 => {}
        Ok(packet) => assert_eq!(
            (packet.protocol, packet.source_port, packet.destination_port),
            (protocol, source, destination),
            "{packet:?} of {frame:02x?}"
        ),
        // A length of 0 stands for what offloads leave unsaid, but only in a packet too long for the field; theirs is
        // content with any.
        Err(_) if says_nothing(&theirs) => {}
        Err(reason) => panic!("refused as {reason:?}: {theirs:?}"),
    }
}

fn says_nothing(theirs: &SlicedPacket<'_>) -> bool {
    matches!(&theirs.net, Some(NetSlice::Ipv6(ip)) if ip.header().payload_length() == 0)
}

/// What follows from a packet must not overflow, whatever its headers say.
fn follow(frame: &[u8], packet: &Packet) {
    for (segments, size) in [(0, 0), (0, 1_000), (3, 1_000), (1, 0), (65_535, 1)] {
        let (packets, bytes) = measure(packet, frame.len() as u64, segments, size, false);
        assert!(packets > 0 && bytes > 0, "{packet:?}, {segments} segments of {size}");
    }
    assert_eq!(measure(packet, frame.len() as u64, 0, 0, false), (1, frame.len() as u64), "{packet:?}");
    for kind in 0..8 {
        if let Some((inner, _)) = inside(frame, packet, kind) {
            assert!(inner.header_bytes >= packet.header_bytes, "{inner:?} in {packet:?}");
        }
    }
}

fn try_frames(seed: u64, count: usize) {
    let mut dice = Dice(seed);
    let (mut flows, mut compared) = (0_usize, 0_usize);
    for n in 0..count {
        let frame = match n % 8 {
            0 => good(&mut dice),
            1 => (0..dice.below(120)).map(|_| dice.number()).collect(),
            _ => bent(&mut dice),
        };
        let ours = parse_ethernet(&frame[..]);
        let checked = std::panic::catch_unwind(|| {
            // A capture that kept less says the same or nothing.
            let short = Captured { bytes: &frame[..frame.len() / 2], length: frame.len() };
            if let (Ok(short), Ok(whole)) = (parse_ethernet(&short), ours) {
                assert_eq!((short.source, short.source_port), (whole.source, whole.source_port));
            }
            let _ = parse_raw_ip(&frame[..]);
            let Ok(packet) = ours else { return (0, 0) };
            follow(&frame, &packet);
            (1, usize::from(agrees(&frame, &packet)))
        });
        none_refused(&frame, ours);
        let (flow, same) = checked.unwrap_or_else(|_| panic!("seed {seed}, frame {n}: {frame:02x?}"));
        flows += flow;
        compared += same;
    }
    println!("seed {seed}: {count} frames, {flows} flows, ports of {compared} compared");
    assert!(compared > count / 5, "hardly anything was compared: {compared} of {count}");
}

#[test]
fn any_bytes_are_a_flow_as_another_parser_reads_it_or_none() {
    try_frames(1, 60_000);
}

#[test]
#[ignore = "takes minutes"]
fn ten_million_frames_are_read_as_another_parser_reads_them() {
    (2..12).for_each(|seed| try_frames(seed, 1_000_000));
}
