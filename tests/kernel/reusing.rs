//! A new SYN on the five-tuple of a closed connection is a new connection, and no packet is lost between the two.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use anyhow::{Context, Result, ensure};
use aya::EbpfLoader;
use flowlog_abi::{REPORT_END, REPORT_FLOW, Report, hook, names};
use flowlog_tests::capture::Capture;
use flowlog_tests::daemon::Daemon;
use flowlog_tests::netns::{FAR, INTERFACE, NEAR, Pair};
use flowlog_tests::records::{all, sums};
use flowlog_tests::traffic::bound;
use rustix::io::{read, write};
use rustix::net::{self, AddressFamily, Shutdown, SocketType, sockopt};

use crate::end_to_end::{EVERYTHING, agree_with_replay, tasks};
use crate::loaded::Loaded;
use crate::packets::*;

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];
const RST: u8 = 0x04;

fn packets(report: &Report) -> [u64; 2] {
    report.directions.map(|side| side.packets)
}

#[test]
fn a_syn_after_both_fins_ends_one_connection_and_opens_another() {
    let mut loaded = Loaded::new();
    for packet in [
        a_to_b(SYN, b""),
        b_to_a(SYN | ACK, b""),
        a_to_b(ACK | FIN, b"bye"),
        b_to_a(ACK | FIN, b""),
        a_to_b(ACK, b""),
        // From the other side this time.
        b_to_a(SYN, b""),
        a_to_b(SYN | ACK, b""),
    ] {
        loaded.run(IN, &packet);
    }
    let reports = loaded.reports();
    let [_, _, ended, opened, answered] = reports[..] else { panic!("{reports:#?}") };
    assert_eq!((ended.what, ended.number, packets(&ended)), (REPORT_END, 3, [3, 2]));
    assert_eq!(ended.directions.map(|side| side.reported_packets), [1, 1]);
    assert_eq!(ended.directions.map(|side| side.tcp_flags), [SYN | ACK | FIN; 2]);
    assert_eq!((opened.what, opened.number, packets(&opened)), (REPORT_FLOW, 1, [0, 1]));
    assert_eq!((opened.opener, opened.midstream, opened.directions[1].tcp_flags), (1, 0, SYN));
    assert_eq!(opened.directions.map(|side| (side.reported_packets, side.bytes)), [(0, 0), (0, 54)]);
    assert_ne!(opened.connection, ended.connection);
    assert!(opened.started_ns > ended.started_ns && opened.started_ns == opened.directions[1].first_ns);
    assert_eq!((answered.connection, answered.number, packets(&answered)), (opened.connection, 2, [1, 1]));
    let ledger = loaded.ledger();
    assert_eq!((ledger.connections, ledger.reopened, ledger.reported_packets), (2, 1, 7));
    assert_eq!(loaded.hook(false).counted_packets, 7);
}

#[test]
fn only_a_syn_on_a_closed_connection_does_that() {
    let open = [a_to_b(SYN, b""), b_to_a(SYN | ACK, b""), a_to_b(ACK, b"")];
    // Packets before, the one that decides, connections after it.
    type Case<'a> = (&'a [Vec<u8>], Vec<u8>, u64);
    let cases: [Case<'_>; 6] = [
        (&open, a_to_b(SYN, b""), 1),
        (&[a_to_b(ACK | FIN, b"")], a_to_b(SYN, b""), 1),
        (&[a_to_b(ACK | FIN, b""), b_to_a(ACK | FIN, b"")], b_to_a(SYN | ACK, b""), 1),
        (&[a_to_b(ACK | FIN, b""), b_to_a(ACK | FIN, b"")], a_to_b(SYN, b""), 2),
        (&[a_to_b(SYN, b""), b_to_a(RST | ACK, b"")], a_to_b(SYN, b""), 2),
        (&[a_to_b(SYN, b""), b_to_a(RST | ACK, b"")], a_to_b(SYN | RST, b""), 1),
    ];
    for (number, (before, last, connections)) in cases.iter().enumerate() {
        let mut loaded = Loaded::new();
        before.iter().for_each(|packet| assert_eq!(loaded.run(IN, packet), u32::MAX));
        loaded.run(IN, last);
        assert_eq!(loaded.ledger().connections, *connections, "case {number}");
    }
}

#[test]
fn a_full_ring_lets_the_connection_go_on() {
    let mut loaded = Loaded::with(EbpfLoader::new().map_max_entries(names::RING, 4096));
    loaded.run(IN, &a_to_b(RST, b""));
    for port in 1..100 {
        loaded.run(IN, &ethernet(0x0800, &ipv4(A4, B4, 17, &udp(port, 53, b""))));
    }
    loaded.run(IN, &a_to_b(SYN, b""));
    assert_eq!(loaded.ledger().reopened, 0);
    loaded.reports();
    // The next one finds room.
    loaded.run(IN, &a_to_b(SYN, b""));
    let reports = loaded.reports();
    assert_eq!(
        reports.iter().map(|r| (r.what, packets(r))).collect::<Vec<_>>(),
        [(REPORT_END, [2, 0]), (REPORT_FLOW, [1, 0])]
    );
}

/// CPUs that open and close one connection at the same time.
#[test]
fn whoever_races_no_packet_is_lost_or_told_twice() {
    const EACH: u32 = 200_000;
    let mut loaded = Loaded::with(EbpfLoader::new().map_max_entries(names::RING, 64 << 20));
    let reports =
        loaded.race(IN, &[a_to_b(SYN, b"opens"), b_to_a(RST | ACK, b""), a_to_b(ACK, b"in between")], EACH);
    let (_, entry) = loaded.flow();
    let mut told = BTreeMap::<u64, (u32, [(u64, u64); 2], bool)>::new();
    let mut sum = [(0, 0); 2];
    for report in &reports {
        let (number, before, ended) = told.entry(report.connection).or_default();
        assert!(!*ended, "a report after the end");
        *number += 1;
        assert_eq!(report.number, *number);
        assert_eq!(report.directions.map(|side| (side.reported_packets, side.reported_bytes)), *before);
        *before = report.directions.map(|side| (side.packets, side.bytes));
        *ended = report.what == REPORT_END;
        for (sum, side) in sum.iter_mut().zip(report.directions) {
            sum.0 += side.packets - side.reported_packets;
            sum.1 += side.bytes - side.reported_bytes;
        }
    }
    for (sum, side) in sum.iter_mut().zip(entry.directions) {
        sum.0 += side.packets - side.reported_packets;
        sum.1 += side.bytes - side.reported_bytes;
    }
    let each = u64::from(EACH);
    assert_eq!(sum, [(2 * each, each * (59 + 64)), (each, each * 54)]);
    let ledger = loaded.ledger();
    println!("{} connections of {} SYNs", ledger.connections, EACH);
    assert!(ledger.reopened > 0, "nothing was reopened");
    assert_eq!(ledger.connections, ledger.reopened + 1);
    assert!(told.len() as u64 <= ledger.connections);
    assert_eq!((entry.lease, loaded.hook(false).counted_packets), (0, 3 * each));
}

/// Opens and closes `count` connections one after another, all from the same port: the server closes first, so that
/// it is the server that waits in TIME_WAIT, where a new SYN is welcome.
fn same_port(pair: &Pair, port: u16, count: usize) -> Result<()> {
    let server: SocketAddr = format!("{FAR}:8080").parse()?;
    let (ready, listening) = std::sync::mpsc::channel();
    let serving = pair.far.enter(move || -> Result<()> {
        let listener = bound(|| std::net::TcpListener::bind(server))?;
        ready.send(())?;
        for _ in 0..count {
            let (stream, _) = listener.accept()?;
            stream.shutdown(std::net::Shutdown::Write)?;
            std::io::copy(&mut &stream, &mut std::io::sink())?;
        }
        Ok(())
    });
    listening.recv().context("the server listens")?;
    let near: Ipv4Addr = NEAR.parse()?;
    let asking = pair.near.enter(move || -> Result<()> {
        for _ in 0..count {
            let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, &SocketAddrV4::new(near, port))?;
            net::connect(&socket, &server).context("connecting from the same port")?;
            write(&socket, b"hello")?;
            let mut buffer = [0_u8; 8];
            ensure!(read(&socket, &mut buffer)? == 0, "the server said something");
            net::shutdown(&socket, Shutdown::Write)?;
        }
        Ok(())
    });
    asking.join().map_err(|_| anyhow::anyhow!("the client died"))??;
    serving.join().map_err(|_| anyhow::anyhow!("the server died"))?
}

#[test]
fn real_sockets_that_use_a_port_again_give_one_connection_each() -> Result<()> {
    const COUNT: u64 = 50;
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), EVERYTHING)?;
    let daemon = Daemon::start(&pair.near, &tasks, &logs, &[])?;
    let capture = Capture::start(&pair.near, INTERFACE, &folder.path().join("near.pcap"))?;
    same_port(&pair, 45_000, usize::try_from(COUNT)?)?;
    let passed = pair.near.counter(INTERFACE, "rx_packets")? + pair.near.counter(INTERFACE, "tx_packets")?;
    let ended = daemon.stop()?;
    let pcap = capture.stop(passed)?;
    ended.check()?;
    let records = all(&logs, "all-")?;
    let sums = sums(&records);
    ensure!(sums.len() == 2, "{sums:?}");
    for (tuple, sum) in &sums {
        ensure!((sum.starts, sum.ends) == (COUNT, COUNT), "{tuple:?}: {sum:?}");
        ensure!(sum.reply == Some(tuple.2 == 8080) && sum.reason == "fin", "{tuple:?}: {sum:?}");
    }
    ensure!(records.iter().all(|record| record.extension("midstream").is_empty()), "a midstream connection");
    agree_with_replay(&records, &pcap, &tasks, &folder.path().join("replayed"))
}
