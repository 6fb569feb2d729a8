//! A seeded model of a node's traffic, for sizes and speeds: pods that call services, as Pareto has it, in the order in
//! which flowlog writes records of it.
//!
//! 60 pods of one node call 40 services of their cluster and 3,000 addresses outside; a few of each get most of the
//! calls. Of a hundred connections 62 are short requests over TCP (half of them to the outside), 30 ask for a name, 5
//! stay open and move data, 2 find nobody, 1 is a ping. Counts and bytes add up: what a record says of its interval is
//! what was not yet said, both directions know the same connection, times are the packets'. Both directions are
//! written, with a `start`, an `update` each minute and an `end`.

#![expect(clippy::cast_possible_truncation, reason = "what is drawn at random is small enough")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr};

use flowlog_user::record::{EndReason, Event, Flow, Hook, Identity, Interface, L4, Node, PoolTag, Role};

const SECOND_NS: i64 = 1_000_000_000;
const UPDATE_NS: i64 = 60 * SECOND_NS;
const BEGIN_NS: i64 = 1_796_069_666 * SECOND_NS;
const UPLINK: u32 = 2;
const PODS: usize = 60;
const SERVICES: usize = 40;
const OUTSIDE: usize = 3000;
/// Ports of services inside, the most used ones first.
const PORTS: [u16; 12] = [8080, 443, 5432, 6379, 9092, 80, 3306, 9090, 8443, 4317, 2379, 27017];

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Pareto's law: at least `low`, now and then far more; `shape` says how seldom.
    fn pareto(&mut self, low: f64, shape: f64) -> f64 {
        low / (1.0 - self.unit()).powf(1.0 / shape)
    }

    /// A rank below `end`: the first ones get most.
    fn rank(&mut self, end: usize) -> usize {
        ((self.pareto(1.0, 0.7) - 1.0) as usize) % end
    }
}

/// One direction as the packets have made it, and what is said of it.
#[derive(Clone, Copy, Default)]
struct Side {
    packets: u64,
    bytes: u64,
    said: (u64, u64),
    number: u32,
}

/// A connection while it lives.
struct Connection {
    id: u64,
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    l4: u8,
    pod: u32,
    outside: bool,
    started_ns: i64,
    answered_ns: i64,
    ends_ns: i64,
    reason: EndReason,
    /// Packets and bytes of the whole connection, by direction.
    whole: [(u64, u64); 2],
    sides: [Side; 2],
}

/// The node, and this many of its records in the order in which they are written.
pub(crate) fn records(seed: u64, count: usize) -> (Node, Vec<Flow>) {
    let mut random = Random(seed);
    let mut flows: Vec<Flow> = Vec::with_capacity(count + 8);
    let mut open: BTreeMap<u64, Connection> = BTreeMap::new();
    // What happens next: a report of a connection, or (0) a new one.
    let mut due = BinaryHeap::from([Reverse((BEGIN_NS, 0_u64))]);
    let mut id = 0x0011_5eed_0000;
    while flows.len() < count {
        let Some(Reverse((now_ns, connection))) = due.pop() else { break };
        if connection == 0 {
            id += 1 + random.below(3);
            let new = begin(&mut random, id, now_ns);
            start(&new, &mut flows);
            let first_ns = new.ends_ns.min(now_ns + UPDATE_NS);
            due.push(Reverse((first_ns, id)));
            open.insert(id, started(new));
            // 500 connections a second, in bursts.
            due.push(Reverse((now_ns + (random.pareto(0.6e6, 1.4)) as i64, 0)));
        } else if let Some(mut known) = open.remove(&connection) {
            let over = now_ns >= known.ends_ns;
            report(&mut random, &mut known, now_ns, over, &mut flows);
            if !over {
                due.push(Reverse((known.ends_ns.min(now_ns + UPDATE_NS), connection)));
                open.insert(connection, known);
            }
        }
    }
    flows.truncate(count);
    (node(), flows)
}

fn node() -> Node {
    let pod = |at| {
        (
            10 + at,
            Interface { name: format!("lxc{:012x}", u64::from(at) * 0x9e37_79b9), role: Role::Endpoint },
        )
    };
    let mut interfaces: BTreeMap<u32, Interface> = (0..PODS as u32).map(pod).collect();
    interfaces.insert(UPLINK, Interface { name: "eth0".into(), role: Role::Uplink });
    Node { name: "east/node-17".into(), boot: 0x0001_2345_6789, interfaces, ..Node::default() }
}

fn begin(random: &mut Random, id: u64, now_ns: i64) -> Connection {
    let pod = random.rank(PODS) as u32;
    let client = IpAddr::V4(Ipv4Addr::new(10, 244, 3, 10 + pod as u8));
    let port = 32_768 + random.below(28_232) as u16;
    let service = random.rank(SERVICES);
    let inside = IpAddr::V4(Ipv4Addr::new(10, 96, (service * 37 % 256) as u8, (service * 101 % 256) as u8));
    let outside = Random(random.rank(OUTSIDE) as u64).next();
    let world = IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + (outside as u32 % 0xd000_0000)));
    // From here to the server and back, and how long it thinks.
    let rtt = |random: &mut Random, low: f64| random.pareto(low, 2.5) as i64;
    let (mut l4, mut server, mut reason, mut far) = (6, (inside, PORTS[service % 12]), EndReason::Fin, false);
    let (answer_ns, lasts_ns, whole);
    match random.below(100) {
        kind @ 0..62 => {
            far = kind < 31;
            if far {
                server = (world, if kind < 28 { 443 } else { 80 });
            }
            answer_ns = rtt(random, if far { 8e6 } else { 0.15e6 });
            lasts_ns = answer_ns * 3 + random.pareto(2e6, 1.1).min(3e11) as i64;
            let (sent, got) =
                (random.pareto(300.0, 1.2).min(1e6) as u64, random.pareto(900.0, 1.1).min(1e8) as u64);
            whole = [segments(sent), segments(got)];
        }
        62..92 => {
            (l4, server) = (17, (IpAddr::V4(Ipv4Addr::new(10, 96, 0, 10)), 53));
            answer_ns = rtt(random, 0.2e6);
            (lasts_ns, reason) = (answer_ns + 30 * SECOND_NS, EndReason::Idle);
            let name = 62 + random.below(40);
            // A and AAAA are asked for in one go.
            whole = [(2, 2 * name), (2, 2 * name + 32 + 16 * random.below(8))];
        }
        92..97 => {
            answer_ns = rtt(random, 0.15e6);
            lasts_ns = random.pareto(2e10, 0.9).min(4e12) as i64;
            let rate = random.pareto(500.0, 0.8).min(1e7) * (lasts_ns as f64 / 1e9);
            whole = [segments(rate as u64), segments((rate * random.unit() * 8.0) as u64)];
        }
        97..99 => {
            (answer_ns, lasts_ns, reason) = (0, 30 * SECOND_NS + 7 * SECOND_NS, EndReason::Idle);
            whole = [(4, 4 * 74), (0, 0)];
        }
        _ => {
            (l4, server, far) = (1, (world, 0), true);
            answer_ns = rtt(random, 8e6);
            (lasts_ns, reason) = (answer_ns + 13 * SECOND_NS, EndReason::Idle);
            whole = [(4, 4 * 98), (4, 4 * 98)];
        }
    }
    let (client, outside) = ((client, if l4 == 1 { 0 } else { port }), far);
    Connection {
        id,
        client,
        server,
        l4,
        pod: 10 + pod,
        outside,
        started_ns: now_ns,
        answered_ns: now_ns + answer_ns,
        ends_ns: now_ns + lasts_ns,
        reason,
        whole,
        sides: [Side::default(); 2],
    }
}

/// Packets and bytes on the wire for a payload, with those that open and close the connection.
const fn segments(payload: u64) -> (u64, u64) {
    let packets = payload / 1448 + 4;
    (packets, payload + packets * 66 + 8)
}

/// The first packets are written at once.
fn start(new: &Connection, flows: &mut Vec<Flow>) {
    let mut new = Connection { sides: new.sides, ..*new };
    for way in 0..if new.whole[1].0 == 0 { 1 } else { 2 } {
        first(&mut new, way);
        let at_ns = if way == 0 { new.started_ns } else { new.answered_ns };
        flows.push(flow(&mut new, way, Event::Start, at_ns, at_ns));
    }
}

fn first(connection: &mut Connection, way: usize) {
    let (packets, bytes) = connection.whole[way];
    connection.sides[way].packets = 1;
    connection.sides[way].bytes = if connection.l4 == 6 { 74 } else { bytes / packets.max(1) };
}

/// The same after its first records.
fn started(mut connection: Connection) -> Connection {
    for way in 0..if connection.whole[1].0 == 0 { 1 } else { 2 } {
        first(&mut connection, way);
        let side = &mut connection.sides[way];
        (side.said, side.number) = ((side.packets, side.bytes), 1);
    }
    connection
}

fn report(random: &mut Random, connection: &mut Connection, now_ns: i64, over: bool, flows: &mut Vec<Flow>) {
    let (begin_ns, end_ns) = (connection.started_ns, connection.ends_ns);
    let share = (now_ns - begin_ns) as f64 / (end_ns - begin_ns).max(1) as f64;
    for way in 0..2 {
        let (packets, bytes) = connection.whole[way];
        if packets == 0 {
            continue;
        }
        let side = &mut connection.sides[way];
        if over {
            (side.packets, side.bytes) = (packets, bytes);
        } else {
            side.packets = side.packets.max((packets as f64 * share) as u64);
            side.bytes = side.bytes.max((bytes as f64 * share) as u64).max(side.packets * 60);
        }
        let quiet = side.said == (side.packets, side.bytes);
        if quiet && !over {
            continue;
        }
        // What ended by silence was last seen before it.
        let silent = connection.reason == EndReason::Idle && over;
        let last_ns = if silent { connection.answered_ns } else { now_ns } - random.below(400_000) as i64;
        let last_ns = last_ns.max(connection.answered_ns);
        let first_ns = if quiet { last_ns } else { connection.answered_ns.max(last_ns - UPDATE_NS) };
        let event = if over { Event::End } else { Event::Update };
        flows.push(flow(connection, way, event, first_ns.min(last_ns), last_ns));
    }
}

fn flow(connection: &mut Connection, way: usize, event: Event, first_ns: i64, last_ns: i64) -> Flow {
    let Connection { client, server, l4, pod, outside, .. } = *connection;
    let reply = way == 1;
    let (source, destination) = if reply { (server, client) } else { (client, server) };
    let (pods, others) = (Identity::Unmanaged, if outside { Identity::World } else { Identity::Unmanaged });
    let flags = match (event, connection.reason) {
        (Event::Start | Event::Drop, _) => {
            if reply {
                0x12
            } else {
                0x02
            }
        }
        (Event::Update, _) => 0x1a,
        (Event::End, EndReason::Fin) => 0x1b,
        (Event::End, _) => 0x02,
    };
    let side = &mut connection.sides[way];
    side.number += 1;
    let said = std::mem::replace(&mut side.said, (side.packets, side.bytes));
    let hook = match (reply, outside) {
        (false, _) => Hook::EndpointIngress,
        (true, true) => Hook::UplinkIngress,
        (true, false) => Hook::UplinkIngress,
    };
    Flow {
        joined: flowlog_user::record::Joined::EVER,
        cadence: 0,
        event,
        end_reason: (event == Event::End).then_some(connection.reason),
        connection: connection.id,
        number: side.number,
        high_to_low: reply,
        midstream: false,
        duplicate: false,
        fragment: false,
        rtt_ns: match (l4, event, reply) {
            (6, Event::Start, false) => 0,
            (6, ..) => u32::try_from(connection.answered_ns - connection.started_ns).unwrap_or(0),
            _ => 0,
        },
        vlans: [0; 2],
        tunnel: None,
        dropped: None,
        source: source.0,
        destination: destination.0,
        protocol: l4,
        l4: match l4 {
            6 => L4::Tcp { source_port: source.1, destination_port: destination.1, flags },
            17 => L4::Udp { source_port: source.1, destination_port: destination.1 },
            _ => L4::Icmpv4 { icmp_type: if reply { 0 } else { 8 }, code: 0 },
        },
        is_reply: Some(reply),
        hook,
        interfaces: if reply { [UPLINK, pod, 0, 0] } else { [pod, UPLINK, 0, 0] },
        started_ns: connection.started_ns,
        first_seen_ns: first_ns,
        last_seen_ns: last_ns,
        packets: side.packets - said.0,
        bytes: side.bytes - said.1,
        packets_total: side.packets,
        bytes_total: side.bytes,
        source_pool: PoolTag::NONE,
        destination_pool: PoolTag::NONE,
        source_identity: if reply { others } else { pods },
        destination_identity: if reply { pods } else { others },
    }
}
