//! Real traffic through the real daemon; every number is compared with somebody else's.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flowlog_tests::capture::{Capture, tuples};
use flowlog_tests::daemon::{Daemon, Ended, binary};
use flowlog_tests::netns::{FAR, FAR6, INTERFACE, NEAR, NEAR6, Pair, run};
use flowlog_tests::records::{Record, Sum, Tuple, all, sums};
use flowlog_tests::traffic::{Made, ping, stream, tcp, udp};
use serde_json::json;

/// One task that takes everything, short and long form.
pub(crate) const EVERYTHING: &str = "
flowLogs:
  - name: all
    filePath: LOGS/all.log
    events: [start, end]
";

/// Writes a task file in which LOGS stands for the log folder; returns its path.
pub(crate) fn tasks(folder: &Path, text: &str) -> Result<std::path::PathBuf> {
    let path = folder.join("tasks.yaml");
    std::fs::write(&path, text.replace("LOGS", &folder.join("logs").to_string_lossy()))?;
    std::fs::create_dir_all(folder.join("logs"))?;
    Ok(path)
}

/// Packets and bytes by direction, as flowlog's records and as tshark's reading of the same traffic have them.
fn compare(records: &BTreeMap<Tuple, Sum>, caught: &BTreeMap<Tuple, (u64, u64)>) -> Result<()> {
    let ours: BTreeMap<_, _> = records.iter().map(|(tuple, sum)| (tuple, (sum.packets, sum.bytes))).collect();
    let theirs: BTreeMap<_, _> = caught.iter().map(|(tuple, sum)| (tuple, *sum)).collect();
    for (tuple, sum) in &theirs {
        ensure!(ours.get(tuple) == Some(sum), "{tuple:?}: tshark {sum:?}, flowlog {:?}", ours.get(tuple));
    }
    ensure!(ours.len() == theirs.len(), "flowlog has {} directions, tshark {}", ours.len(), theirs.len());
    Ok(())
}

/// The interface's own counters: packets and bytes received and sent.
fn counters(pair: &Pair) -> Result<[u64; 4]> {
    let read = |name| pair.near.counter(INTERFACE, name);
    Ok([read("rx_packets")?, read("rx_bytes")?, read("tx_packets")?, read("tx_bytes")?])
}

/// The same from the ledger of a daemon that watched one interface.
fn seen(ended: &Ended) -> Result<[u64; 4]> {
    let hooks = ended.ledger["hooks"].as_array().context("the ledger has hooks")?;
    let side = |side: &str| -> Result<[u64; 2]> {
        let hook = hooks.iter().find(|hook| hook["side"] == side).context("both sides are there")?;
        let seen = &hook["packets"]["seen"];
        Ok([seen["packets"].as_u64().context("packets")?, seen["bytes"].as_u64().context("bytes")?])
    };
    let ([rx, rx_bytes], [tx, tx_bytes]) = (side("ingress")?, side("egress")?);
    Ok([rx, rx_bytes, tx, tx_bytes])
}

/// Records by what does not depend on where and when they were made.
fn essence(records: &[Record]) -> Vec<String> {
    let mut lines: Vec<String> = records
        .iter()
        .map(|record| {
            let extensions = json!({
                "event": record.event(), "end_reason": record.extension("end_reason"),
                "packets": record.amount("packets"), "bytes": record.amount("bytes"),
                "packets_total": record.amount("packets_total"), "bytes_total": record.amount("bytes_total"),
            });
            let l4 = record.0.pointer("/flow/l4").cloned().unwrap_or_default();
            format!("{:?} {:?} {l4} {extensions}", record.tuple(), record.boolean("is_reply"))
        })
        .collect();
    lines.sort();
    lines
}

/// What went over the wire: connections by their clients, and the one socket that sent datagrams.
struct Sent {
    connections: Vec<Made>,
    datagrams: Made,
}

fn send(pair: &Pair) -> Result<Sent> {
    let mut connections = tcp(pair, format!("{FAR}:8080").parse()?, 1_000, 300, 5_000)?;
    connections.extend(tcp(pair, format!("[{FAR6}]:8080").parse()?, 100, 300, 5_000)?);
    let datagrams = udp(pair, format!("{FAR}:5353").parse()?, 10_000, 120)?;
    ping(pair, FAR, 100)?;
    ping(pair, FAR6, 10)?;
    Ok(Sent { connections, datagrams })
}

/// Records against the interface's counters (received packets and bytes, sent packets and bytes), exactly. The near
/// end of the pair is an endpoint, so what it sends is the endpoint's INGRESS.
fn agree_with_interface(records: &[Record], passed: &[u64; 4]) -> Result<()> {
    for (direction, expected) in [("EGRESS", (passed[0], passed[1])), ("INGRESS", (passed[2], passed[3]))] {
        let these = records.iter().filter(|record| record.text("traffic_direction") == direction);
        let sum = these.fold((0, 0), |sum, one| (sum.0 + one.amount("packets"), sum.1 + one.amount("bytes")));
        ensure!(sum == expected, "{direction}: records {sum:?}, interface {expected:?}");
    }
    Ok(())
}

/// One start and one end in each direction, opened by the right side, ended for the right reason.
fn agree_with_senders(sums: &BTreeMap<Tuple, Sum>, sent: &Sent) -> Result<()> {
    for made in &sent.connections {
        let [client, server] = [made.client, made.server].map(|a| (a.ip().to_string(), u64::from(a.port())));
        let out = ("TCP".into(), client.0.clone(), client.1, server.0.clone(), server.1);
        let back = ("TCP".into(), server.0, server.1, client.0, client.1);
        for (tuple, reply) in [(out, false), (back, true)] {
            let sum = sums.get(&tuple).with_context(|| format!("{tuple:?} is missing"))?;
            ensure!((sum.starts, sum.updates, sum.ends) == (1, 0, 1), "{tuple:?}: {sum:?}");
            ensure!(sum.reply == Some(reply) && sum.reason == "fin", "{tuple:?}: {sum:?}");
        }
    }
    let datagrams = ("UDP".into(), NEAR.into(), sent.datagrams.client.port().into(), FAR.into(), 5353);
    // 120 bytes of payload, 8 of UDP, 20 of IPv4, 14 of Ethernet.
    let sum = sums.get(&datagrams).context("the datagrams are missing")?;
    ensure!((sum.packets, sum.bytes, sum.starts, sum.ends) == (10_000, 10_000 * 162, 1, 1), "{sum:?}");
    for (protocol, near, far, count) in [("ICMPv4", NEAR, FAR, 100), ("ICMPv6", NEAR6, FAR6, 10)] {
        for (from, to, reply) in [(near, far, false), (far, near, true)] {
            let pings = &sums[&(protocol.into(), from.into(), 0, to.into(), 0)];
            let seen = (pings.packets, pings.starts, pings.ends, pings.reply);
            ensure!(seen == (count, 1, 1, Some(reply)), "{protocol} from {from}: {pings:?}");
        }
    }
    Ok(())
}

/// The same packets from a capture give the same records.
pub(crate) fn agree_with_replay(records: &[Record], pcap: &Path, tasks: &Path, folder: &Path) -> Result<()> {
    let words = [
        binary().as_path(),
        Path::new("replay"),
        Path::new("--pcap"),
        pcap,
        Path::new("--tasks"),
        tasks,
        Path::new("--output-dir"),
        folder,
    ]
    .map(|word| word.to_string_lossy().into_owned());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(words[0], &words[1..])?;
    let (live, replay) = (essence(records), essence(&all(folder, "all-")?));
    let different: Vec<_> = live.iter().zip(&replay).filter(|(a, b)| a != b).take(3).collect();
    ensure!(
        live.len() == replay.len() && different.is_empty(),
        "{} and {}: {different:#?}",
        live.len(),
        replay.len()
    );
    Ok(())
}

#[test]
fn every_connection_packet_and_byte_is_there_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), EVERYTHING)?;
    let daemon = Daemon::start(&pair.near, &tasks, &logs, &[])?;
    let before = counters(&pair)?;
    let capture = Capture::start(&pair.near, INTERFACE, &folder.path().join("near.pcap"))?;
    let sent = send(&pair)?;
    let after = counters(&pair)?;
    let passed = std::array::from_fn(|at| after[at] - before[at]);
    let pcap = capture.stop(passed[0] + passed[2])?;
    let ended = daemon.stop()?;
    ended.check()?;

    ensure!(seen(&ended)? == passed, "hooks {:?}, interface {passed:?}", seen(&ended)?);
    let records = all(&logs, "all-")?;
    agree_with_interface(&records, &passed)?;
    let sums = sums(&records);
    compare(&sums, &tuples(&pcap)?)?;
    agree_with_senders(&sums, &sent)?;
    agree_with_replay(&records, &pcap, &tasks, &folder.path().join("replayed"))
}

#[test]
fn with_offloads_on_segments_are_what_the_sockets_count() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(true)?;
    let daemon = Daemon::start(&pair.near, &tasks(folder.path(), EVERYTHING)?, &logs, &[])?;
    let before = counters(&pair)?;
    stream(&pair, format!("{FAR}:8080").parse()?, 20_000_000, |segments| {
        let after = counters(&pair)?;
        let ended = daemon.stop()?;
        ended.check()?;
        let sums = sums(&all(&logs, "all-")?);
        let out = &sums[&("TCP".into(), NEAR.into(), segments.port.into(), FAR.into(), 8080)];
        let back = &sums[&("TCP".into(), FAR.into(), 8080, NEAR.into(), segments.port.into())];
        ensure!(out.packets == segments.sent, "{out:?} {segments:?}");
        ensure!(back.packets == segments.received, "{back:?} {segments:?}");
        ensure!(out.reason == "shutdown" && back.reason == "shutdown", "{out:?} {back:?}");
        // Each segment has 66 bytes of headers (14 + 20 + 20 + 12 of time stamps), the SYN 8 more of options.
        ensure!(out.bytes == segments.payload_bytes + 66 * out.packets + 8, "{out:?} {segments:?}");
        // The test is of offloads only if there were any: the interface counts super-packets.
        ensure!(after[2] - before[2] < out.packets / 4, "no segmentation offload took place");
        Ok(())
    })
}
