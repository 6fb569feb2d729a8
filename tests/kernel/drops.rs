//! Packets that netfilter drops, against nftables' own counters; and who gets records of them.

use anyhow::{Result, ensure};
use flowlog_tests::daemon::PATIENCE;
use flowlog_tests::drops::{DROPS, Dropped, Watch, datagrams, inode, nft, nft_counter, to_port};
use flowlog_tests::guest::pace;
use flowlog_tests::netns::{FAR, FAR6, INTERFACE, NEAR, Netns, Pair};
use flowlog_tests::records::zstdcat;
use flowlog_tests::topology::{host, ip, veth};
use std::time::{Duration, Instant};

/// Bytes of an Ethernet header, which nftables does not count.
const ETHERNET: u64 = 14;

/// A table with a chain at a hook, and a rule for each port: its counter, and what is done.
fn chain(netns: &Netns, hook: &str, rules: &[(u16, &str, &str)]) -> Result<()> {
    let mut text = format!("add table inet t; add chain inet t c {{ type filter hook {hook} priority 0; }}");
    for (port, counter, verdict) in rules {
        text += &format!(
            "; add counter inet t {counter}; add rule inet t c udp dport {port} counter name {counter} {verdict}"
        );
    }
    nft(netns, &text)
}

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
    let (left, router, right) = (host("left")?, host("router")?, host("right")?);
    veth((&left, "u0"), (&router, "r0"))?;
    veth((&router, "r1"), (&right, "u0"))?;
    ip(&left, &["address add 10.1.0.1/24 dev u0", "route add default via 10.1.0.2"])?;
    ip(&router, &["address add 10.1.0.2/24 dev r0", "address add 10.2.0.2/24 dev r1"])?;
    ip(&right, &["address add 10.2.0.1/24 dev u0", "route add default via 10.2.0.2"])?;
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
    Ok(())
}

#[test]
fn the_first_drop_is_in_the_file_within_a_second_and_the_rest_at_intervals() -> Result<()> {
    let pair = Pair::new(false)?;
    chain(&pair.far, "input", &[(7001, "dropped", "drop")])?;
    let watch = Watch::start(&pair.near)?;
    let live = watch.logs().join("drops.log.zst");
    let (netns, count) = (inode(&pair.far)?, 100);
    let sent = Instant::now();
    datagrams(&pair.near, FAR, 7001, 1, 100)?;
    let found = || -> Result<u64> {
        let lines = if live.is_file() { zstdcat(&live, false)? } else { Vec::new() };
        let ours = lines
            .iter()
            .filter(|line| line.pointer("/flow/extensions/value/drop_netns") == Some(&netns.into()));
        Ok(ours.filter_map(|line| line.pointer("/flow/extensions/value/packets")?.as_u64()).sum())
    };
    while found()? == 0 {
        ensure!(sent.elapsed() < PATIENCE, "nothing came");
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = sent.elapsed();
    // The writer's own delay of up to a second stands between the record and the file.
    ensure!(took < Duration::from_millis(2_000) * pace(), "it took {took:?}");
    println!("the first drop was in the file after {took:?}");
    // One socket for all, so that there is one kind of drop.
    datagrams(&pair.near, FAR, 7001, count, 100)?;
    let stopped = watch.stop()?;
    let of_far = stopped.records.iter().filter(|record| record.amount("drop_netns") == netns);
    let packets: Vec<u64> = of_far.map(|record| record.amount("packets")).collect();
    ensure!(packets.iter().sum::<u64>() == 1 + count as u64, "{packets:?}");
    ensure!(packets.len() <= 4, "as many records as drops: {packets:?}");
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
    const QUIET: &str =
        "flowLogs: [{name: a, filePath: LOGS/a.log, includeFilters: [{verdict: [FORWARDED]}]}]";
    let pair = Pair::new(false)?;
    chain(&pair.far, "input", &[(7001, "dropped", "drop")])?;
    let mut watch = Watch::start(&pair.near)?;
    let (logs, tasks) = (watch.logs(), watch.tasks());
    let write = |text: &str| std::fs::write(&tasks, text.replace("LOGS", &logs.to_string_lossy()));
    datagrams(&pair.near, FAR, 7001, 3, 100)?;
    write(QUIET)?;
    watch.daemon().wait_for("no longer watching dropped packets")?;
    datagrams(&pair.near, FAR, 7001, 100, 100)?;
    write(DROPS)?;
    watch.daemon().wait_for("\"watching dropped packets\"")?;
    watch.daemon().wait_for("the tasks have changed")?;
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
