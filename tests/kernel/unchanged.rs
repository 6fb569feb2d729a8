//! Packets are the same behind us as before us.

use std::path::Path;

use anyhow::{Result, ensure};
use flowlog_tests::capture::Capture;
use flowlog_tests::daemon::Daemon;
use flowlog_tests::guest::hooks;
use flowlog_tests::netns::run;
use flowlog_tests::records::all;
use flowlog_tests::topology::{host, ip, veth};

use crate::end_to_end::{EVERYTHING, tasks};
use crate::packets::*;
use flowlog_tests::wire::{send, wire};

/// The hashes of the frames that a MAC address sent, sorted.
fn hashes(pcap: &Path, source: &str) -> Result<Vec<String>> {
    let filter = format!("eth.src == {source}");
    let file = pcap.to_string_lossy();
    let words = ["-n", "-r", &file, "-Y", &filter, "-o", "frame.generate_md5_hash:TRUE"];
    let said = run("tshark", &[&words[..], &["-T", "fields", "-e", "frame.md5_hash"]].concat())?;
    let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

/// EtherTypes and payloads: tags, and what nobody can parse.
fn frames() -> Vec<(u16, Vec<u8>)> {
    let packet = ipv4(A4, B4, 17, &udp(9, 5_000, &[7; 60]));
    let mut state = 7_u64;
    let mut frames: Vec<(u16, Vec<u8>)> = vec![
        (0x0800, packet.clone()),
        (0x8100, [&[0, 7, 8, 0][..], &packet].concat()),
        (0x88a8, [&[0, 100, 0x81, 0, 0x20, 7, 8, 0][..], &packet].concat()),
        (0x86dd, ipv6(A6, B6, 17, &udp(9, 5_001, &[7; 60]))),
        (0x0806, vec![1; 46]),
        (0x0800, packet[..10].to_vec()),
    ];
    for length in 1..60_usize {
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u8::try_from(state >> 56).unwrap_or(0)
        };
        let kind = if length.is_multiple_of(2) { 0x0800 } else { 0x86dd };
        frames.push((kind, (0..length * 20).map(|_| random()).collect()));
    }
    frames
}

#[test]
fn packets_are_the_same_behind_us() -> Result<()> {
    const MACS: [&str; 2] = ["02:01:00:00:00:0a", "02:01:00:00:00:0b"];
    for hook in hooks() {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let wire = wire(folder.path())?;
        let (node, a, b) = (host("node")?, host("a")?, host("b")?);
        ip(&node, &["link add br0 type bridge", "link set br0 up"])?;
        // Where the bridge calls netfilter, that drops what is no proper IP.
        let off =
            "for file in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -e $file ] || echo 0 > $file; done";
        node.run(&["sh", "-c", off])?;
        for (pod, name, address, mac) in [(&a, "pa", "10.1.0.2", MACS[0]), (&b, "pb", "10.1.0.3", MACS[1])] {
            veth((&node, name), (pod, "eth0"))?;
            ip(&node, &[&format!("link set {name} master br0")])?;
            ip(
                pod,
                &[&format!("link set eth0 address {mac}"), &format!("address add {address}/24 dev eth0")],
            )?;
            // What the kernel says by itself may pass between the beginnings of two captures.
            let quiet = "for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $file; done";
            pod.run(&["sh", "-c", quiet])?;
        }
        let daemon = Daemon::start(&node, &tasks(folder.path(), EVERYTHING)?, &logs, &["--hook", hook])?;
        let captures = [
            Capture::start(&a, "eth0", &folder.path().join("a.pcap"))?,
            Capture::start(&b, "eth0", &folder.path().join("b.pcap"))?,
        ];
        a.run(&["ping", "-q", "-c", "20", "-i", "0.01", "-s", "4000", "10.1.0.3"])?;
        // To everyone, from the first pod.
        let source: Vec<u8> =
            MACS[0].split(':').map(|byte| u8::from_str_radix(byte, 16)).collect::<Result<_, _>>()?;
        let frames = frames();
        for (ethertype, payload) in &frames {
            let frame = [&[0xff; 6][..], &source, &ethertype.to_be_bytes(), payload].concat();
            send(&a, &wire, &["raw", "eth0"], &frame)?;
        }
        let counters = [&a, &b].map(|pod| -> Result<u64> {
            Ok(pod.counter("eth0", "rx_packets")? + pod.counter("eth0", "tx_packets")?)
        });
        let pcaps = captures
            .into_iter()
            .zip(counters)
            .map(|(capture, count)| capture.stop(count?))
            .collect::<Result<Vec<_>>>()?;
        daemon.stop()?.check()?;
        for (mac, least) in [(MACS[0], 60 + frames.len()), (MACS[1], 60)] {
            let [at_a, at_b] = [hashes(&pcaps[0], mac)?, hashes(&pcaps[1], mac)?];
            ensure!(at_a.len() >= least, "{hook}: {mac} sent only {} frames", at_a.len());
            ensure!(
                at_a == at_b,
                "{hook}: frames of {mac} differ: {} here, {} there",
                at_a.len(),
                at_b.len()
            );
        }
        let records = all(&logs, "all-")?;
        ensure!(records.len() > 4, "{hook}: nothing was looked at: {records:#?}");
    }
    Ok(())
}
