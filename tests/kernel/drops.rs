//! Packets that netfilter drops, against nftables' own counters; and who gets records of them.

use anyhow::{Result, ensure};
use flowlog_tests::daemon::PATIENCE;
use flowlog_tests::drops::{
    DROPS, Dropped, NO_DROPS, Watch, chain, datagrams, inode, nft, nft_counter, to_port,
};
use flowlog_tests::guest::pace;
use flowlog_tests::netns::{FAR, FAR6, INTERFACE, NEAR, Pair};
use flowlog_tests::process::Process;
use flowlog_tests::records::zstdcat;
use flowlog_tests::topology::row;
use serde_json::json;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes of an Ethernet header, which nftables does not count.
const ETHERNET: u64 = 14;

#[test]
fn what_nftables_drops_and_rejects_where_packets_come_in() -> Result<()> {
    let pair = Pair::new(false)?;
    chain(&pair.far, "input", &[(7001, "dropped", "drop"), (7002, "rejected", "reject")])?;
    let watch = Watch::start(&pair.near)?;
    datagrams(&pair.near, FAR, 7001, 40, 100)?;
    datagrams(&pair.near, FAR, 7002, 25, 60)?;
    let six = pair.near.enter(|| -> Result<()> {
        let socket = std::net::UdpSocket::bind("[::]:0")?;
        for _ in 0..7 {
            socket.send_to(b"six", (FAR6, 7001))?;
        }
        Ok(())
    });
    six.join().map_err(|_| anyhow::anyhow!("a host died"))??;
    let stopped = watch.stop()?;
    let dropped = stopped.of(&pair.far)?;
    for (port, counter, size) in [(7001, "dropped", 142), (7002, "rejected", 102)] {
        let (packets, bytes) = nft_counter(&pair.far, counter)?;
        let of_port: Vec<_> = dropped.iter().filter(|((tuple, _), _)| tuple.4 == port).collect();
        let sum = of_port.iter().fold((0, 0), |sum, (_, one)| (sum.0 + one.packets, sum.1 + one.bytes));
        ensure!(
            sum == (packets, bytes + ETHERNET * packets),
            "{sum:?}, nftables {packets} {bytes}: {of_port:?}"
        );
        for ((tuple, reason), one) in of_port {
            ensure!(reason == "NETFILTER_DROP" && one.hubble == "POLICY_DENIED", "{reason}: {one:?}");
            ensure!(one.interface == INTERFACE && one.direction == "INGRESS", "{one:?}");
            // Kernels differ in where: before the verdict is handed back, or behind it.
            ensure!(one.location.starts_with("nf"), "{one:?}");
            let four = tuple.1 == NEAR;
            ensure!(!four || one.bytes == one.packets * size, "{one:?}");
        }
    }
    Ok(())
}

#[test]
fn what_nftables_drops_on_its_way_through_and_out() -> Result<()> {
    let (left, router, _right) = row()?;
    chain(&router, "forward", &[(7003, "dropped", "drop"), (7004, "rejected", "reject")])?;
    chain(&left, "output", &[(7005, "dropped", "drop")])?;
    let watch = Watch::start(&left)?;
    datagrams(&left, "10.2.0.1", 7003, 30, 100)?;
    datagrams(&left, "10.2.0.1", 7004, 20, 100)?;
    datagrams(&left, "10.2.0.1", 7005, 10, 100)?;
    let stopped = watch.stop()?;
    let in_router = stopped.of(&router)?;
    for (port, counter) in [(7003, "dropped"), (7004, "rejected")] {
        let (packets, bytes) = nft_counter(&router, counter)?;
        let (reason, sum) = to_port(&in_router, port)?;
        ensure!(
            (sum.packets, sum.bytes) == (packets, bytes + ETHERNET * packets),
            "{sum:?}, {packets} {bytes}"
        );
        ensure!(reason == "NETFILTER_DROP" && sum.interface == "r0", "{reason} {sum:?}");
    }
    // Nothing has been put in front of what does not leave the host's own stack.
    let (packets, bytes) = nft_counter(&left, "dropped")?;
    let (reason, sum) = to_port(&stopped.of(&left)?, 7005)?;
    ensure!((packets, packets * 128) == (10, bytes), "nftables {packets} {bytes}");
    ensure!((sum.packets, sum.bytes) == (packets, bytes), "{sum:?}, nftables {packets} {bytes}");
    ensure!(
        reason == "NETFILTER_DROP" && sum.interface == "u0" && sum.direction == "EGRESS",
        "{reason} {sum:?}"
    );
    // An interface that is watched is named as it is with any other packet.
    let here = stopped.records.iter().find(|record| record.number("l4/UDP/destination_port") == 7005);
    ensure!(
        here.is_some_and(
            |record| record.text("interface/name") == "u0" && record.extension("drop_interface").is_empty()
        ),
        "{here:?}"
    );
    Ok(())
}

#[test]
fn what_nftables_drops_at_every_other_hook() -> Result<()> {
    let pair = Pair::new(false)?;
    for (host, at, port, verdict) in [
        (&pair.far, "prerouting", 7041, "drop"),
        (&pair.far, "ingress", 7042, "drop"),
        (&pair.near, "postrouting", 7043, "drop"),
        (&pair.near, "output", 7044, "reject"),
    ] {
        let device = if at == "ingress" { format!("device {INTERFACE} ") } else { String::new() };
        let (chain, rule) = (
            format!("add chain inet t {at} {{ type filter hook {at} {device}priority 0; }}"),
            format!("udp dport {port} counter name {at} {verdict}"),
        );
        nft(
            host,
            &format!("add table inet t; {chain}; add counter inet t {at}; add rule inet t {at} {rule}"),
        )?;
    }
    let watch = Watch::start(&pair.near)?;
    for port in 7041..=7044 {
        datagrams(&pair.near, FAR, port, 8, 100)?;
    }
    let stopped = watch.stop()?;
    // A packet that arrives has its link header by then, and one that leaves has none yet. What leaves by a watched end of
    // a pair comes in at the endpoint behind it.
    for (host, at, port, header, direction) in [
        (&pair.far, "prerouting", 7041, ETHERNET, "INGRESS"),
        (&pair.far, "ingress", 7042, ETHERNET, "INGRESS"),
        (&pair.near, "postrouting", 7043, 0, "INGRESS"),
        (&pair.near, "output", 7044, 0, "INGRESS"),
    ] {
        let (packets, bytes) = nft_counter(host, at)?;
        let (reason, sum) = to_port(&stopped.of(host)?, port)?;
        ensure!(
            packets > 0 && (sum.packets, sum.bytes) == (packets, bytes + header * packets),
            "{at}: {sum:?}"
        );
        ensure!(reason == "NETFILTER_DROP" && sum.hubble == "POLICY_DENIED", "{at}: {reason} {sum:?}");
        ensure!(sum.interface == INTERFACE && sum.direction == direction, "{at}: {sum:?}");
    }
    Ok(())
}

#[test]
fn a_first_drop_is_in_the_file_within_two_seconds_and_the_rest_at_intervals() -> Result<()> {
    let pair = Pair::new(false)?;
    chain(&pair.far, "input", &[(7001, "dropped", "drop")])?;
    let watch = Watch::start(&pair.near)?;
    let live = watch.logs().join("drops.log.zst");
    let (netns, count) = (inode(&pair.far)?, 100);
    let found = || -> Result<u64> {
        let lines = if live.is_file() { zstdcat(&live, false)? } else { Vec::new() };
        let ours = lines
            .iter()
            .filter(|line| line.pointer("/flow/extensions/value/drop_netns") == Some(&netns.into()));
        Ok(ours.filter_map(|line| line.pointer("/flow/extensions/value/packets")?.as_u64()).sum())
    };
    let mut slowest = Duration::ZERO;
    // Sockets of their own, so that each is the first of its kind; the very first may meet what goes on at the start.
    for kinds in 1..=3 {
        let sent = Instant::now();
        datagrams(&pair.near, FAR, 7001, 1, 100)?;
        while found()? < kinds {
            ensure!(sent.elapsed() < PATIENCE, "nothing came");
            std::thread::sleep(Duration::from_millis(20));
        }
        slowest = slowest.max(sent.elapsed());
    }
    // The writer's own delay of up to a second stands between the record and the file.
    ensure!(slowest < Duration::from_millis(2_000) * pace(), "it took {slowest:?}");
    println!("the slowest of 3 drops was in the file after {slowest:?}");
    // One socket for all, so that there is one kind of drop.
    datagrams(&pair.near, FAR, 7001, count, 100)?;
    let stopped = watch.stop()?;
    let of_far = stopped.records.iter().filter(|record| record.amount("drop_netns") == netns);
    let packets: Vec<u64> = of_far.map(|record| record.amount("packets")).collect();
    ensure!(packets.iter().sum::<u64>() == 3 + count as u64, "{packets:?}");
    ensure!(packets.len() <= 6, "as many records as drops: {packets:?}");
    Ok(())
}

#[test]
fn a_drop_is_shown_with_its_reason_within_a_second() -> Result<()> {
    let pair = Pair::new(false)?;
    chain(&pair.near, "input", &[(7027, "dropped", "drop")])?;
    let flags = ["observe", "--verdict", "DROPPED", "--to-ip", NEAR, "--to-port", "7027"];
    let mut observer = Process::flowlog(&pair.near, &flags)?;
    observer.told("Ctrl-C ends it")?;
    let mut slowest = Duration::ZERO;
    // Sockets of their own, so that each is the first of its kind.
    for _ in 0..5 {
        let sent = Instant::now();
        datagrams(&pair.far, NEAR, 7027, 1, 100)?;
        let line = observer.line(PATIENCE)?;
        slowest = slowest.max(sent.elapsed());
        ensure!(line.contains(FAR) && line.contains(&format!("{NEAR}:7027")), "{line}");
        ensure!(line.contains("Policy denied DROPPED"), "{line}");
        ensure!(line.contains("NETFILTER_DROP"), "{line}");
    }
    println!("the slowest of 5 drops was shown after {slowest:?}");
    ensure!(slowest < Duration::from_secs(1) * pace(), "it took {slowest:?}");
    let outcome = observer.interrupt()?;
    ensure!(outcome.status.success() && outcome.err.contains("the ledger closes"), "{}", outcome.err);
    ensure!(outcome.out.is_empty() && nft_counter(&pair.near, "dropped")?.0 == 5, "{:?}", outcome.out);
    Ok(())
}

/// The example of the documentation of Hubble's exporter (Cilium, "Configuring Hubble exporter"), as a task.
const DOCUMENTED: &str = r#"
flowLogs:
  - name: drops
    filePath: LOGS/drops.log
    fieldMask: [time, source.namespace, source.pod_name, destination.namespace, destination.pod_name, l4, IP, node_name,
      is_reply, verdict, drop_reason_desc]
    includeFilters: [{"verdict": ["DROPPED", "ERROR"]}]
    excludeFilters: [{"source_pod": ["kube-system/"]}, {"destination_pod": ["kube-system/"]}]
"#;

#[test]
fn the_documented_task_for_drops_logs_them_as_documented() -> Result<()> {
    let pair = Pair::new(false)?;
    let rule = "add counter inet t dropped; add rule inet t c tcp dport 7028 counter name dropped drop";
    nft(
        &pair.far,
        &format!("add table inet t; add chain inet t c {{ type filter hook input priority 0; }}; {rule}"),
    )?;
    let watch = Watch::with(&pair.near, DOCUMENTED, &["--node-name", "kind-worker"])?;
    let asking = pair.near.enter(|| {
        // Over before TCP asks a second time.
        Ok(TcpStream::connect_timeout(&format!("{FAR}:7028").parse()?, Duration::from_millis(300)).is_err())
    });
    ensure!(asking.join().map_err(|_| anyhow::anyhow!("a host died"))??, "a dropped SYN was answered");
    let stopped = watch.stop()?;
    ensure!(nft_counter(&pair.far, "dropped")?.0 == 1);
    let ours: Vec<_> =
        stopped.records.iter().filter(|record| record.number("l4/TCP/destination_port") == 7028).collect();
    let [record] = ours[..] else { anyhow::bail!("{ours:?}") };
    // Key by key what the documentation shows of the same packet, without pods.
    let port = record.number("l4/TCP/source_port");
    let documented = json!({
        "time": record.text("time"),
        "verdict": "DROPPED",
        "IP": {"source": NEAR, "destination": FAR, "ipVersion": "IPv4"},
        "l4": {"TCP": {"source_port": port, "destination_port": 7028, "flags": {"SYN": true}}},
        "source": {}, "destination": {},
        "node_name": "kind-worker",
        "drop_reason_desc": "POLICY_DENIED",
    });
    ensure!(record.0["flow"] == documented, "{record:?}");
    Ok(())
}

/// Tasks that ask for drops in different words, and some that do not.
const ASKING: &str = "
apiVersion: flowlog.io/v1
kind: FlowLogs
flowLogs:
  - {name: plain, filePath: LOGS/plain.log, includeFilters: [{destination_port: [\"7001\", \"7009\"]}]}
  - {name: event, filePath: LOGS/event.log, events: [end, drop], includeFilters: [{destination_port: [\"7001\"]}]}
  - {name: only, filePath: LOGS/only.log, events: [drop], includeFilters: [{destination_port: [\"7001\"]}]}
  - {name: reason, filePath: LOGS/reason.log, includeFilters: [{drop_reason_desc: [POLICY_DENIED], destination_port: [\"7001\"]}]}
  - {name: other, filePath: LOGS/other.log, includeFilters: [{drop_reason_desc: [NO_SID], destination_port: [\"7001\"]}]}
  - {name: type, filePath: LOGS/type.log, includeFilters: [{event_type: [{type: 1}], source_ip: [10.77.0.1]}]}
  - {name: trace, filePath: LOGS/trace.log, includeFilters: [{event_type: [{type: 4}], source_ip: [10.77.0.1]}]}
  - {name: left, filePath: LOGS/left.log, excludeFilters: [{verdict: [FORWARDED]}]}
  - {name: drops, filePath: LOGS/drops.log, includeFilters: [{verdict: [DROPPED], destination_ip: [10.77.0.2]}]}
";

#[test]
fn only_tasks_that_ask_for_drops_get_them() -> Result<()> {
    let pair = Pair::new(false)?;
    chain(&pair.far, "input", &[(7001, "dropped", "drop")])?;
    let watch = Watch::with(&pair.near, ASKING, &[])?;
    datagrams(&pair.near, FAR, 7001, 12, 100)?;
    let stopped = watch.stop()?;
    ensure!(nft_counter(&pair.far, "dropped")?.0 == 12);
    let netns = inode(&pair.far)?;
    let count = |task: &str, verdict: &str| -> Result<u64> {
        let all = stopped.of_task(task)?;
        let ours = all.iter().filter(|record| record.text("verdict") == verdict);
        let here = ours.filter(|record| verdict != "DROPPED" || record.amount("drop_netns") == netns);
        Ok(here.map(|record| record.amount("packets")).sum())
    };
    for (task, forwarded, dropped) in [
        ("plain", 12, 0),
        ("event", 12, 12),
        ("only", 0, 12),
        ("reason", 0, 12),
        ("other", 0, 0),
        ("type", 0, 12),
        ("trace", 12, 0),
        ("left", 0, 12),
        ("drops", 0, 12),
    ] {
        let found = (count(task, "FORWARDED")?, count(task, "DROPPED")?);
        ensure!(found == (forwarded, dropped), "{task}: {found:?}");
    }
    ensure!(!stopped.records.is_empty() && stopped.ended.number("/drops/outcomes/lost_table_full")? == 0);
    Ok(())
}

#[test]
fn the_hook_comes_with_the_first_task_that_asks_and_goes_with_the_last() -> Result<()> {
    let pair = Pair::new(false)?;
    chain(&pair.far, "input", &[(7001, "dropped", "drop")])?;
    let mut watch = Watch::start(&pair.near)?;
    datagrams(&pair.near, FAR, 7001, 3, 100)?;
    watch.retask(NO_DROPS, false)?;
    datagrams(&pair.near, FAR, 7001, 100, 100)?;
    watch.retask(DROPS, true)?;
    datagrams(&pair.near, FAR, 7001, 5, 100)?;
    let stopped = watch.stop()?;
    let sum = to_7001(&stopped.of(&pair.far)?);
    ensure!(sum == 8, "{sum}: what was dropped while nobody asked is in no record");
    ensure!(nft_counter(&pair.far, "dropped")?.0 == 108);
    Ok(())
}

/// Packets to port 7001 whatever their source ports.
fn to_7001(dropped: &Dropped) -> u64 {
    dropped.iter().filter(|((tuple, _), _)| tuple.4 == 7001).map(|(_, sum)| sum.packets).sum()
}
