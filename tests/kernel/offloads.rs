//! Buffers that become many packets, from everything that makes such: each packet and each byte of the wire is counted.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use flowlog_tests::capture::Capture;
use flowlog_tests::daemon::Daemon;
use flowlog_tests::netns::{FAR, FAR6, INTERFACE, NEAR, NEAR6, Pair, run};
use flowlog_tests::records::{all, sums};
use flowlog_tests::topology::{host, ip};
use flowlog_tests::traffic::stream;
use flowlog_tests::wire::{send, wire};

use crate::end_to_end::{EVERYTHING, tasks};
use crate::packets::*;

/// linux/virtio_net.h.
const GSO_TCPV4: u8 = 1;
const GSO_UDP_L4: u8 = 5;

#[test]
fn datagrams_cut_by_the_kernel_are_what_the_receiver_gets() -> Result<()> {
    const SEGMENT: usize = 1_000;
    const TOTAL: usize = 10_500;
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let wire = wire(folder.path())?;
    let pair = Pair::new(true)?;
    let daemon = Daemon::start(&pair.near, &tasks(folder.path(), EVERYTHING)?, &logs, &[])?;
    let (ready, bound) = std::sync::mpsc::channel();
    let receiving = pair.far.enter(move || -> Result<(u64, u64)> {
        let socket = std::net::UdpSocket::bind(format!("{FAR}:5353"))?;
        socket.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
        ready.send(())?;
        let (mut datagrams, mut bytes) = (0, 0);
        while bytes < TOTAL as u64 {
            bytes += socket.recv_from(&mut [0; 65_536])?.0 as u64;
            datagrams += 1;
        }
        Ok((datagrams, bytes))
    });
    bound.recv()?;
    let before = pair.near.counter(INTERFACE, "tx_packets")?;
    send(&pair.near, &wire, &["udp", FAR, "5353", "4000", &SEGMENT.to_string()], &[7; TOTAL])?;
    let (datagrams, bytes) = receiving.join().map_err(|_| anyhow::anyhow!("the receiver died"))??;
    let buffers = pair.near.counter(INTERFACE, "tx_packets")? - before;
    daemon.stop()?.check()?;
    let sums = sums(&all(&logs, "all-")?);
    let sum = &sums[&("UDP".into(), NEAR.into(), 4000, FAR.into(), 5353)];
    // 42 bytes of headers in front of each datagram.
    ensure!(
        (sum.packets, sum.bytes) == (datagrams, bytes + 42 * datagrams),
        "{sum:?}: {datagrams} of {bytes}"
    );
    ensure!(
        datagrams == 11 && buffers == 1,
        "{datagrams} datagrams in {buffers} buffers: nothing was offloaded"
    );
    Ok(())
}

/// As guests' network cards are: the kernel is told the size of a segment, and not how many there are.
#[test]
fn buffers_of_a_tap_with_a_vnet_header_are_the_packets_they_become() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let wire = wire(folder.path())?;
    let node = host("tap")?;
    ip(&node, &["tuntap add dev tap0 mode tap vnet_hdr", "link set tap0 up"])?;
    let payload = [7; 3_500];
    let segment = a_to_b(ACK, &payload);
    let datagram = ethernet(0x0800, &ipv4(A4, B4, 17, &udp(500, 501, &payload)));
    let more = ["--interface", "tap0"];
    let daemon = Daemon::start(&node, &tasks(folder.path(), EVERYTHING)?, &logs, &more)?;
    for (kind, headers, size, checksum, frame) in
        [(GSO_TCPV4, "54", "1000", "16", &segment), (GSO_UDP_L4, "42", "999", "6", &datagram)]
    {
        send(&node, &wire, &["tap", "tap0", &kind.to_string(), headers, size, "34", checksum], frame)?;
    }
    daemon.stop()?.check()?;
    let sums = sums(&all(&logs, "all-")?);
    let of = |protocol: &str, ports: (u64, u64)| {
        let tuple = (protocol.into(), "10.1.2.3".into(), ports.0, "10.9.8.7".into(), ports.1);
        sums.get(&tuple).map(|sum| (sum.packets, sum.bytes))
    };
    ensure!(of("TCP", (40_000, 443)) == Some((4, 3_500 + 4 * 54)), "{sums:?}");
    ensure!(of("UDP", (500, 501)) == Some((4, 3_500 + 4 * 42)), "{sums:?}");
    Ok(())
}

/// A TCP stream, and what its socket counted: segments, and for each of them `headers` bytes (the SYN has 8 more).
fn streamed(pair: &Pair, folder: &Path, [near, far]: [&str; 2], headers: u64, more: &[&str]) -> Result<()> {
    let logs = folder.join("logs");
    let daemon = Daemon::start(&pair.near, &tasks(folder, EVERYTHING)?, &logs, more)?;
    let before = pair.near.counter(INTERFACE, "tx_packets")?;
    let server = if far.contains(':') { format!("[{far}]:8080") } else { format!("{far}:8080") };
    stream(pair, server.parse()?, 20_000_000, |segments| {
        let buffers = pair.near.counter(INTERFACE, "tx_packets")? - before;
        daemon.stop()?.check()?;
        let sums = sums(&all(&logs, "all-")?);
        let find = |tuple| sums.get(&tuple).with_context(|| format!("{tuple:?} is not in {sums:#?}"));
        let out = find(("TCP".into(), near.into(), segments.port.into(), far.into(), 8080))?;
        let back = find(("TCP".into(), far.into(), 8080, near.into(), segments.port.into()))?;
        ensure!(
            (out.packets, back.packets) == (segments.sent, segments.received),
            "{out:?} {back:?} {segments:?}"
        );
        let expected = segments.payload_bytes + headers * out.packets + 8;
        ensure!(out.bytes == expected, "{out:?} {segments:?}: {expected} bytes expected");
        ensure!(buffers < out.packets / 4, "no segmentation offload took place");
        Ok(())
    })
}

#[test]
fn a_stream_in_a_tunnel_is_what_its_sockets_count() -> Result<()> {
    for mode in [None, Some("inner")] {
        let folder = tempfile::tempdir()?;
        let pair = Pair::new(true)?;
        for (netns, local, remote, address) in
            [(&pair.near, NEAR, FAR, "10.88.0.1/24"), (&pair.far, FAR, NEAR, "10.88.0.2/24")]
        {
            netns.run(&["sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"])?;
            ip(
                netns,
                &[
                    &format!("link add vx0 type vxlan id 7 dstport 4789 local {local} remote {remote}"),
                    &format!("address add {address} dev vx0"),
                    "link set vx0 mtu 1450 up",
                ],
            )?;
        }
        let more = mode.map_or(vec![], |mode| vec!["--tunnel", mode]);
        // 50 bytes of VXLAN around 66 of an ordinary segment's headers.
        streamed(&pair, folder.path(), ["10.88.0.1", "10.88.0.2"], 50 + 66, &more)
            .with_context(|| format!("{mode:?}"))?;
    }
    Ok(())
}

#[test]
fn buffers_beyond_64_kib_are_the_segments_they_become() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(true)?;
    for netns in [&pair.near, &pair.far] {
        ip(netns, &[&format!("link set {INTERFACE} gso_max_size 196608 gro_max_size 196608")])?;
    }
    let capture = Capture::start(&pair.near, INTERFACE, &folder.path().join("big.pcap"))?;
    streamed(&pair, folder.path(), [NEAR6, FAR6], 14 + 40 + 20 + 12, &[])?;
    let caught = capture.stop(0)?;
    let big = run(
        "tshark",
        &[
            "-n",
            "-r",
            &caught.to_string_lossy(),
            "-Y",
            "frame.len > 65600",
            "-T",
            "fields",
            "-e",
            "frame.len",
        ],
    )?;
    ensure!(big.lines().count() > 10, "BIG TCP did not come about: {big:?}");
    Ok(())
}
