//! A seeded model of a node's traffic: what the benches call a realistic mix.
//!
//! A few services get most connections (about Zipf's law), clients come from a few large and many small networks, most
//! traffic is TCP, DNS comes next; connections are short more often than long, and both directions are recorded, with a
//! `start` and an `end` each and an `update` where a minute passes. Addresses are private, of a cluster's pods, or of the
//! wide world; a fifth is IPv6.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flowlog_user::record::{
    EndReason, Event, Flow, Hook, Identity, Interface, Joined, L4, Node, PoolTag, Role,
};

use crate::random::Random;

/// Interfaces of the node: an uplink and some pods.
const UPLINK: u32 = 2;
const PODS: u32 = 40;
const SECOND_NS: i64 = 1_000_000_000;

/// Ports of services, the most used ones first.
pub const SERVICE_PORTS: [u16; 24] = [
    443, 53, 80, 8080, 6443, 9090, 5432, 3306, 6379, 9092, 2379, 10250, 8443, 22, 25, 123, 389, 636, 1883,
    4317, 4318, 5672, 11211, 27017,
];

/// The node that all flows were seen on.
#[must_use]
pub fn node() -> Node {
    let pods =
        (0..PODS).map(|pod| (10 + pod, Interface { name: format!("lxc{pod:04x}"), role: Role::Endpoint }));
    let mut interfaces: BTreeMap<u32, Interface> = pods.collect();
    interfaces.insert(UPLINK, Interface { name: "eth0".into(), role: Role::Uplink });
    Node {
        name: "east/node-1".into(),
        boot: 0x5eed,
        interfaces,
        addresses: vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::LOCALHOST)],
        ..Node::default()
    }
}

/// Records in the order in which they would be written.
#[must_use]
pub fn flows(seed: u64, records: usize) -> Vec<Flow> {
    let mut random = Random::new(seed);
    let mut flows = Vec::with_capacity(records + 8);
    let mut now_ns = 1_760_000_000 * SECOND_NS;
    let mut connection = 0;
    while flows.len() < records {
        connection += 1;
        now_ns += i64::try_from(random.below(400_000)).unwrap_or(0);
        add(&mut random, connection, now_ns, &mut flows);
    }
    flows.truncate(records);
    flows
}

/// Addresses of a client and of a service.
pub fn ends(random: &mut Random) -> (IpAddr, IpAddr) {
    let v6 = random.once_in(5);
    let (client, service) = (random.rank(200_000), random.rank(4_000));
    (address(client, v6, 0), address(service, v6, 1))
}

/// The address of a rank: networks of the ranks, most of them pods' and private, the rest spread over the world.
fn address(rank: usize, v6: bool, side: u64) -> IpAddr {
    // Fixed by the rank, so that frequent addresses come again.
    let bits = Random::new(rank as u64 * 2 + side).number();
    let [a, b, c, d, e, f, ..] = bits.to_be_bytes();
    match (v6, rank % 4) {
        (false, 0) => IpAddr::V4(Ipv4Addr::new(10, 244, b % 16, c)),
        (false, 1) => IpAddr::V4(Ipv4Addr::new(10, b, c, d)),
        (false, _) => IpAddr::V4(Ipv4Addr::new(a % 200 + 11, b, c, d)),
        (true, 0) => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, u16::from(b % 16), 0, 0, 0, u16::from(c))),
        (true, _) => IpAddr::V6(Ipv6Addr::new(
            0x2001,
            u16::from_be_bytes([a, b]),
            u16::from_be_bytes([c, d]),
            u16::from(e),
            0,
            0,
            0,
            u16::from(f),
        )),
    }
}

fn add(random: &mut Random, connection: u64, started_ns: i64, flows: &mut Vec<Flow>) {
    let (client, service) = ends(random);
    let client_port = u16::try_from(32_768 + random.below(28_000)).unwrap_or(0);
    let service_port = *random.pick_ranked(&SERVICE_PORTS);
    let kind = if service_port == 53 { 80 } else { random.below(100) };
    let hook = *random.pick(&[Hook::EndpointIngress, Hook::UplinkEgress, Hook::UplinkIngress]);
    let back = match hook {
        Hook::EndpointIngress => Hook::EndpointEgress,
        Hook::EndpointEgress => Hook::EndpointIngress,
        Hook::UplinkIngress => Hook::UplinkEgress,
        Hook::UplinkEgress => Hook::UplinkIngress,
    };
    let pod = 10 + u32::try_from(random.below(PODS as usize)).unwrap_or(0);
    let interfaces = if hook == Hook::EndpointIngress { [pod, UPLINK, 0, 0] } else { [UPLINK, 0, 0, 0] };
    let packets = 1 + random.rank(2_000) as u64;
    let lasts_ns = i64::try_from(random.rank(120_000)).unwrap_or(0) * SECOND_NS / 1000;
    let events: &[Event] = if lasts_ns > 60 * SECOND_NS {
        &[Event::Start, Event::Update, Event::End]
    } else {
        &[Event::Start, Event::End]
    };
    for (number, event) in (1..).zip(events) {
        for reply in [false, true] {
            let (source, destination) = if reply { (service, client) } else { (client, service) };
            let ports = if reply { (service_port, client_port) } else { (client_port, service_port) };
            let (protocol, l4) = transport(kind, ports, *event, client.is_ipv6());
            let share = if *event == Event::Start { 1 } else { packets };
            let last_seen_ns = started_ns + if *event == Event::Start { 0 } else { lasts_ns };
            flows.push(Flow {
                joined: Joined::EVER,
                cadence: 0,
                event: *event,
                end_reason: (*event == Event::End).then_some(if protocol == 6 {
                    EndReason::Fin
                } else {
                    EndReason::Idle
                }),
                connection,
                number,
                high_to_low: reply,
                midstream: false,
                duplicate: false,
                fragment: false,
                rtt_ns: 0,
                vlans: [0, 0],
                tunnel: None,
                dropped: None,
                source_pool: PoolTag::NONE,
                destination_pool: PoolTag::NONE,
                source,
                destination,
                protocol,
                l4,
                is_reply: Some(reply),
                hook: if reply { back } else { hook },
                interfaces,
                started_ns,
                first_seen_ns: started_ns,
                last_seen_ns,
                packets: share,
                bytes: share * (60 + random.rank(1_400) as u64),
                packets_total: share,
                bytes_total: share * 400,
                source_identity: Identity::World,
                destination_identity: Identity::World,
            });
        }
    }
}

/// The transport of a connection: of a hundred, 84 TCP, 12 UDP, 4 ICMP.
fn transport(kind: usize, (source_port, destination_port): (u16, u16), event: Event, v6: bool) -> (u8, L4) {
    match kind {
        0..84 if kind != 80 => {
            let flags = if event == Event::Start { 0x02 } else { 0x1b };
            (6, L4::Tcp { source_port, destination_port, flags })
        }
        80 | 84..96 => (17, L4::Udp { source_port, destination_port }),
        _ if v6 => (58, L4::Icmpv6 { icmp_type: 128, code: 0 }),
        _ => (1, L4::Icmpv4 { icmp_type: 8, code: 0 }),
    }
}
