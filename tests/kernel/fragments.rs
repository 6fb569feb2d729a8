//! Fragments belong to the connection of their first one.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flowlog_abi::{KIND_ECHO, KIND_FRAGMENT, hook, names};
use flowlog_tests::capture::Capture;
use flowlog_tests::daemon::Daemon;
use flowlog_tests::netns::{FAR, FAR6, INTERFACE, NEAR, NEAR6, Pair, run};
use flowlog_tests::records::{all, sums};
use flowlog_tests::traffic::udp as send_udp;

use crate::end_to_end::{EVERYTHING, agree_with_replay, tasks};
use crate::loaded::{Beside, Loaded};
use crate::packets::*;

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];
const OUT: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_EGRESS as usize];
const MORE: u16 = 0x2000;

fn fragment(at: u16, payload: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4_with(A4, B4, 17, &[], at, payload))
}

#[test]
fn later_fragments_count_under_the_ports_of_the_first() {
    let mut loaded = Loaded::new();
    loaded.run(IN, &fragment(MORE, &udp(1_000, 53, &[7; 16])));
    loaded.run(IN, &fragment(MORE | 3, &[7; 24]));
    loaded.run(IN, &fragment(6, &[7; 10]));
    let (key, entry) = loaded.flow();
    assert_eq!((key.kind, key.low_port, key.high_port), (0, 1_000, 53));
    assert_eq!((entry.directions[0].packets, entry.directions[0].bytes), (3, 3 * 34 + 24 + 24 + 10));
}

#[test]
fn one_that_comes_before_its_first_stands_without_ports() {
    let mut loaded = Loaded::new();
    loaded.run(IN, &fragment(MORE | 3, &[7; 24]));
    let (key, _) = loaded.flow();
    assert_eq!((key.kind, key.low_port, key.high_port), (KIND_FRAGMENT, 0, 0));
    loaded.run(IN, &fragment(MORE, &udp(1_000, 53, &[7; 16])));
    loaded.run(IN, &fragment(6, &[7; 10]));
    let packets: BTreeMap<u16, u64> =
        loaded.flows().iter().map(|(key, entry)| (key.kind, entry.directions[0].packets)).collect();
    assert_eq!(packets, [(0, 2), (KIND_FRAGMENT, 1)].into());
    // Another packet's fragment: the id is another one.
    let mut other = fragment(3, &[7; 24]);
    other[19] ^= 1;
    loaded.run(IN, &other);
    assert_eq!(loaded.flows().iter().map(|(_, entry)| entry.directions[0].packets).sum::<u64>(), 4);
    assert_eq!(loaded.flows().len(), 2);
}

#[test]
fn the_same_fragments_at_the_next_hook_count_elsewhere() {
    let mut loaded = Loaded::new();
    loaded.observe(77, 1);
    let through_77 = Beside { ingress_ifindex: 77, ..Beside::default() };
    for frame in [fragment(MORE, &udp(1_000, 53, &[7; 16])), fragment(3, &[7; 24])] {
        loaded.run(IN, &frame);
        loaded.run_as(OUT, &frame, through_77, 1);
    }
    assert_eq!((loaded.hook(false).counted_packets, loaded.hook(true).elsewhere_packets), (2, 2));
    assert_eq!(loaded.flow().1.directions[0].packets, 2);
}

#[test]
fn ipv6_and_pings_are_joined_too() {
    let mut loaded = Loaded::new();
    let echo = [128, 0, 0, 0, 0x12, 0x34, 0, 1];
    for (at, payload) in [([0, 1], &echo[..]), ([0, 8], &[7; 8][..])] {
        let header = [&[58, 0, at[0], at[1], 9, 9, 9, 9][..], payload].concat();
        loaded.run(IN, &ethernet(0x86dd, &ipv6(A6, B6, 44, &header)));
    }
    let (key, entry) = loaded.flow();
    assert_eq!((key.kind, key.low_port), (KIND_ECHO, 0x1234));
    assert_eq!((entry.directions[0].packets, entry.directions[0].l4[0]), (2, 128));
}

/// UDP datagrams by tshark: packets and frame bytes by ports, fragments joined to their first by id.
fn by_tshark(pcap: &Path) -> Result<BTreeMap<(u64, u64), (u64, u64)>> {
    let mut words = vec!["-n", "-r", pcap.to_str().context("a path")?, "-o", "ip.defragment:FALSE", "-Y"];
    words.extend(["ip.proto==17", "-T", "fields", "-E", "separator=,"]);
    for field in ["ip.src", "ip.id", "udp.srcport", "udp.dstport", "frame.len"] {
        words.extend(["-e", field]);
    }
    let mut firsts = HashMap::new();
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for line in run("tshark", &words)?.lines() {
        let [from, id, source, destination, length] = line.split(',').collect::<Vec<_>>()[..] else {
            continue;
        };
        if !source.is_empty() {
            firsts.insert((from.to_owned(), id.to_owned()), (source.parse()?, destination.parse()?));
        }
        let ports = firsts.get(&(from.to_owned(), id.to_owned())).context("a first fragment")?;
        let sum = sums.entry(*ports).or_default();
        sum.0 += 1;
        sum.1 += length.parse::<u64>()?;
    }
    Ok(sums)
}

#[test]
fn large_datagrams_and_pings_are_one_flow_each() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), EVERYTHING)?;
    let daemon = Daemon::start(&pair.near, &tasks, &logs, &[])?;
    let capture = Capture::start(&pair.near, INTERFACE, &folder.path().join("near.pcap"))?;
    let made = send_udp(&pair, format!("{FAR}:5353").parse()?, 20, 4_000)?;
    let made6 = send_udp(&pair, format!("[{FAR6}]:5353").parse()?, 20, 4_000)?;
    for to in [FAR, FAR6] {
        pair.near.run(&["ping", "-q", "-c", "10", "-i", "0.01", "-s", "4000", to])?;
    }
    let passed = pair.near.counter(INTERFACE, "rx_packets")? + pair.near.counter(INTERFACE, "tx_packets")?;
    let ended = daemon.stop()?;
    let pcap = capture.stop(passed)?;
    ended.check()?;
    let records = all(&logs, "all-")?;
    ensure!(records.iter().all(|record| record.extension("fragment").is_empty()), "fragments without ports");
    let sums = sums(&records);
    // 4,008 bytes of UDP in pieces of 1,480 (34 bytes of headers each), or of 1,448 (62 bytes of headers).
    let cases = [
        ("UDP", NEAR, u64::from(made.client.port()), FAR, 5353, 60, 20 * (4_008 + 3 * 34)),
        ("UDP", NEAR6, made6.client.port().into(), FAR6, 5353, 60, 20 * (4_008 + 3 * 62)),
        ("ICMPv4", FAR, 0, NEAR, 0, 30, 10 * (4_008 + 3 * 34)),
        ("ICMPv6", NEAR6, 0, FAR6, 0, 30, 10 * (4_008 + 3 * 62)),
    ];
    for (protocol, from, from_port, to, to_port, packets, bytes) in cases {
        let tuple = (protocol.to_owned(), from.to_owned(), from_port, to.to_owned(), to_port);
        let sum = sums.get(&tuple).with_context(|| format!("{tuple:?} is missing in {sums:#?}"))?;
        ensure!((sum.packets, sum.bytes, sum.starts) == (packets, bytes, 1), "{tuple:?}: {sum:?}");
    }
    for ((source, destination), expected) in by_tshark(&pcap)? {
        let of_ports = sums.iter().filter(|(tuple, _)| tuple.0 == "UDP" && !tuple.1.contains(':'));
        let ours =
            of_ports.filter(|(tuple, _)| (tuple.2, tuple.4) == (source, destination)).map(|(_, sum)| sum);
        let ours = ours.fold((0, 0), |all, sum| (all.0 + sum.packets, all.1 + sum.bytes));
        ensure!(ours == expected, "{source} to {destination}: flowlog {ours:?}, tshark {expected:?}");
    }
    agree_with_replay(&records, &pcap, &tasks, &folder.path().join("replayed"))
}
