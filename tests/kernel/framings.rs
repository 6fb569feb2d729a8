//! What stands in front of the IP header, on real devices: VLAN tags in the packet and in the kernel's metadata, and
//! nothing at all.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use flowlog_tests::capture::Capture;
use flowlog_tests::daemon::Daemon;
use flowlog_tests::netns::{INTERFACE, Pair, run};
use flowlog_tests::records::{Record, all};
use flowlog_tests::topology::{host, ip};

use crate::end_to_end::{EVERYTHING, tasks};
use crate::packets::*;
use flowlog_tests::wire::{send, wire};

/// Tags from the outside in: EtherType and TCI.
const TAGS: [&[(u16, u16)]; 6] = [
    &[],
    &[(0x8100, 7)],
    // Priority 7 in no VLAN.
    &[(0x8100, 0xe000)],
    &[(0x88a8, 100), (0x8100, 0x2007)],
    &[(0x8100, 5), (0x8100, 6)],
    &[(0x88a8, 1), (0x8100, 2), (0x8100, 3)],
];

/// A datagram to this port, inside these tags.
fn frame(tags: &[(u16, u16)], port: u16) -> Vec<u8> {
    let mut payload = ipv4(A4, B4, 17, &udp(9, port, &[7; 60]));
    let mut ethertype = 0x0800_u16;
    for (tpid, tci) in tags.iter().rev() {
        payload = [&tci.to_be_bytes()[..], &ethertype.to_be_bytes(), &payload].concat();
        ethertype = *tpid;
    }
    ethernet(ethertype, &payload)
}

/// VLANs, packets and bytes of the flow to a port.
type Told = (u64, u64, u64, u64);

fn told(records: &[Record]) -> BTreeMap<u64, Told> {
    let mut all = BTreeMap::<u64, Told>::new();
    for record in records {
        let of = all.entry(record.number("l4/UDP/destination_port")).or_default();
        let more = (of.2 + record.amount("packets"), of.3 + record.amount("bytes"));
        *of = (record.amount("vlan"), record.amount("inner_vlan"), more.0, more.1);
    }
    all
}

/// By tshark: the first two tags, and the length of the frame. What it calls VLAN 0 is none.
fn by_tshark(pcap: &std::path::Path) -> Result<BTreeMap<u64, Told>> {
    let fields = ["udp.dstport", "vlan.id", "ieee8021ad.id", "frame.len"].map(|field| ["-e", field]).concat();
    let pcap = pcap.to_string_lossy();
    let line = [&["-n", "-r", &pcap, "-Y", "udp", "-T", "fields", "-E", "separator=;"][..], &fields];
    let mut all = BTreeMap::new();
    for line in run("tshark", &line.concat())?.lines() {
        let columns: Vec<&str> = line.split(';').collect();
        let [port, inner, outer, length] = columns[..] else { continue };
        let tags: Vec<u64> =
            outer.split(',').chain(inner.split(',')).filter_map(|id| id.parse().ok()).collect();
        let tag = |at: usize| tags.get(at).copied().unwrap_or(0);
        all.insert(port.parse()?, (tag(0), tag(1), 1, length.parse()?));
    }
    Ok(all)
}

#[test]
fn tags_in_the_packet_and_in_the_metadata_are_told_and_weighed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let wire = wire(folder.path())?;
    let pair = Pair::new(false)?;
    let daemon = Daemon::start(&pair.near, &tasks(folder.path(), EVERYTHING)?, &logs, &[])?;
    let capture = Capture::start(&pair.near, INTERFACE, &folder.path().join("near.pcap"))?;
    for (tags, port) in TAGS.into_iter().zip(5_000..) {
        // Arriving, the kernel has taken the outermost tag out; sent raw, all are in the packet.
        send(&pair.far, &wire, &["raw", INTERFACE], &frame(tags, port))?;
        send(&pair.near, &wire, &["raw", INTERFACE], &frame(tags, port + 1_000))?;
    }
    let pcap = capture.stop(2 * TAGS.len() as u64)?;
    daemon.stop()?.check()?;
    let (ours, theirs) = (told(&all(&logs, "all-")?), by_tshark(&pcap)?);
    ensure!(ours == theirs, "flowlog {ours:#?}, tshark {theirs:#?}");
    ensure!(ours.len() == 2 * TAGS.len() && ours[&5_003] == (100, 7, 1, 110), "{ours:#?}");
    Ok(())
}

#[test]
fn packets_of_a_device_without_link_header_are_read() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let wire = wire(folder.path())?;
    let node = host("tun")?;
    ip(&node, &["tuntap add dev tun0 mode tun", "address add 10.9.8.7/16 dev tun0", "link set tun0 up"])?;
    let more = ["--interface", "tun0"];
    let daemon = Daemon::start(&node, &tasks(folder.path(), EVERYTHING)?, &logs, &more)?;
    let request = ipv4(A4, B4, 17, &udp(9, 5_000, &[7; 60]));
    send(&node, &wire, &["tun", "tun0"], &request)?;
    send(&node, &wire, &["tun", "tun0"], &ipv6(A6, B6, 17, &udp(9, 5_001, &[7; 60])))?;
    daemon.stop()?.check()?;
    let ours = told(&all(&logs, "all-")?);
    // 28 bytes of IPv4 and UDP, 48 of IPv6 and UDP.
    let of = |port| ours.get(&port).copied().context("no flow");
    ensure!(of(5_000)? == (0, 0, 1, 88) && of(5_001)? == (0, 0, 1, 108), "{ours:#?}");
    Ok(())
}
