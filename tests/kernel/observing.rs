//! `flowlog observe` between two hosts: what it shows, what it says, and how it ends.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use flowlog_tests::capture::{Capture, tuples};
use flowlog_tests::daemon::{Daemon, PATIENCE, binary};
use flowlog_tests::guest::hooks;
use flowlog_tests::netns::{FAR, INTERFACE, NEAR, Netns, Pair, run};
use flowlog_tests::process::{Outcome, Process};
use flowlog_tests::records::{Record, Tuple, all, sums};
use flowlog_tests::traffic::{ping, tcp, udp};

use crate::lifecycle::attached;

/// Starts it and waits until it watches.
fn observe(netns: &Netns, flags: &[&str]) -> Result<Process> {
    let mut observer = Process::flowlog(netns, &[&["observe"], flags].concat())?;
    observer.told("Ctrl-C ends it")?;
    Ok(observer)
}

fn records(lines: &[String]) -> Result<Vec<Record>> {
    let lines = lines.iter().map(|line| serde_json::from_str(line).with_context(|| line.clone()));
    Ok(lines.collect::<Result<Vec<serde_json::Value>>>()?.into_iter().map(Record).collect())
}

fn amounts(records: &[Record]) -> BTreeMap<Tuple, (u64, u64)> {
    sums(records).into_iter().map(|(tuple, sum)| (tuple, (sum.packets, sum.bytes))).collect()
}

/// It ended well and lost nothing on the way.
fn closes(outcome: &Outcome) -> Result<()> {
    ensure!(outcome.status.success(), "{}", outcome.err);
    ensure!(
        outcome.err.contains("the ledger closes") && outcome.err.contains("0 packets lost"),
        "{}",
        outcome.err
    );
    Ok(())
}

#[test]
fn flows_come_at_once_and_add_up_to_what_tshark_caught() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let before = pair.near.counter(INTERFACE, "rx_packets")? + pair.near.counter(INTERFACE, "tx_packets")?;
    let capture = Capture::start(&pair.near, INTERFACE, &folder.path().join("near.pcap"))?;
    let observer = observe(&pair.near, &["-o", "json"])?;
    ping(&pair, FAR, 1)?;
    let first = observer.line(PATIENCE)?;
    let now = SystemTime::now();
    let record = records(&[first])?.remove(0);
    let seen: u64 = run("date", &["-d", record.text("time"), "+%s%N"])?.trim().parse()?;
    let late = now.duration_since(UNIX_EPOCH + Duration::from_nanos(seen)).unwrap_or_default();
    ensure!(late < Duration::from_secs(1), "the first line came {late:?} after its packet");
    ensure!(record.event() == "start", "{record:?}");

    tcp(&pair, format!("{FAR}:8080").parse()?, 20, 300, 5_000)?;
    udp(&pair, format!("{FAR}:5353").parse()?, 200, 120)?;
    let after = pair.near.counter(INTERFACE, "rx_packets")? + pair.near.counter(INTERFACE, "tx_packets")?;
    let caught = tuples(&capture.stop(after - before)?)?;
    let outcome = observer.interrupt()?;
    closes(&outcome)?;
    let mut shown = records(&outcome.out)?;
    shown.push(record);
    ensure!(amounts(&shown) == caught, "{:?}\n{caught:?}", amounts(&shown));
    let (packets, bytes) = caught.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    ensure!(packets == after - before, "{packets} packets of {}", after - before);
    // 20 TCP connections, one socket's datagrams, one ping session: all of one pair.
    let said = &outcome.err;
    ensure!(said.contains(&format!("watching {INTERFACE} (endpoint, ")), "{said}");
    ensure!(said.contains("not watching lo: "), "{said}");
    ensure!(said.contains(&format!("22 connections, {packets} packets, ")), "{said}");
    ensure!(said.contains(&format!("{} flows shown\n", shown.len())), "{said}");
    ensure!(said.contains(&format!("{packets} packets  {NEAR} <-> {FAR}")), "{said} {bytes}");
    Ok(())
}

/// Side by side: each has programs and tables of its own, and both take the same.
#[test]
fn the_task_that_is_printed_takes_what_was_shown() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs)?;
    let flags = ["--protocol", "tcp", "--port", "8080", "--not", "--from-ip", FAR, "-o", "json"];
    let printed = Command::new(binary()).arg("observe").args(flags).arg("--print-task").output()?;
    ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let text = String::from_utf8(printed.stdout)?;
    ensure!(text.contains("# Keeps what was observed"), "{text}");
    let file = folder.path().join("observed.yaml");
    let path = logs.join("observed.log");
    std::fs::write(&file, &text)?;
    run(binary().to_str().context("plain")?, &["check", "--strict", file.to_str().context("plain")?])?;
    std::fs::write(&file, text.replace("/var/log/flowlog/observed.log", path.to_str().context("plain")?))?;

    let pair = Pair::new(false)?;
    let daemon = Daemon::start(&pair.near, &file, &logs, &[])?;
    let observer = observe(&pair.near, &flags)?;
    let made = tcp(&pair, format!("{FAR}:8080").parse()?, 10, 300, 5_000)?;
    tcp(&pair, format!("{FAR}:8081").parse()?, 10, 300, 5_000)?;
    udp(&pair, format!("{FAR}:8080").parse()?, 100, 120)?;
    let outcome = observer.interrupt()?;
    closes(&outcome)?;
    daemon.stop()?.check()?;
    let (shown, kept) = (records(&outcome.out)?, all(&logs, "observed-")?);
    // The near host's half of the ten connections, known from the sockets.
    let tuples: Vec<Tuple> = made
        .iter()
        .map(|made| ("TCP".into(), NEAR.into(), made.client.port().into(), FAR.into(), 8080))
        .collect();
    ensure!(
        amounts(&shown).len() == 10 && tuples.iter().all(|tuple| amounts(&shown).contains_key(tuple)),
        "{shown:?}"
    );
    ensure!(amounts(&shown) == amounts(&kept), "{:?}\n{:?}", amounts(&shown), amounts(&kept));
    // The kernel had no place for other ports.
    ensure!(!outcome.err.contains("beside them 0 that no filter wants"), "{}", outcome.err);
    Ok(())
}

#[test]
fn so_many_flows_are_shown_as_were_asked_for() -> Result<()> {
    let pair = Pair::new(false)?;
    let observer = observe(&pair.near, &["--first", "3", "-o", "table"])?;
    tcp(&pair, format!("{FAR}:8080").parse()?, 5, 10, 10)?;
    let outcome = observer.wait()?;
    closes(&outcome)?;
    ensure!(outcome.out.len() == 4 && outcome.out[0].starts_with("TIME "), "{:?}", outcome.out);
    ensure!(outcome.err.contains("3 flows shown; "), "{}", outcome.err);

    let observer = observe(&pair.near, &["--last", "2", "-o", "json", "--to-port", "8080"])?;
    let made = tcp(&pair, format!("{FAR}:8080").parse()?, 5, 10, 10)?;
    let outcome = observer.interrupt()?;
    closes(&outcome)?;
    let last = records(&outcome.out)?;
    ensure!(last.len() == 2, "{last:?}");
    ensure!(last.iter().all(|record| record.event() == "end"), "{last:?}");
    // What is still open at the end comes in the order of the kernel's table.
    let ports: Vec<u64> = made.iter().map(|made| made.client.port().into()).collect();
    let shown: Vec<u64> = last.iter().map(|record| record.number("l4/TCP/source_port")).collect();
    ensure!(shown[0] != shown[1] && shown.iter().all(|port| ports.contains(port)), "{shown:?} {ports:?}");

    let outcome = observe(&pair.near, &["--for", "100ms"])?.wait()?;
    closes(&outcome)
}

#[test]
fn a_reader_that_goes_ends_it_and_a_slow_one_costs_counted_records_only() -> Result<()> {
    let pair = Pair::new(false)?;
    let mut command = pair.near.command("bash");
    let line = format!("{} observe | head -n 1; echo ${{PIPESTATUS[0]}}", binary().display());
    command.args(["-c", &line]);
    let mut observer = Process::spawn(command)?;
    observer.told("Ctrl-C ends it")?;
    ping(&pair, FAR, 3)?;
    let outcome = observer.wait()?;
    let [shown, code] = &outcome.out[..] else { anyhow::bail!("{outcome:?}") };
    ensure!(shown.contains(NEAR) && code == "0", "{shown} {code}");
    ensure!(outcome.err.contains("the ledger closes"), "{}", outcome.err);

    // Nobody reads: a pipe holds 64 KiB, and 1 MiB waits; the rest of some 5 MB is lost.
    let mut command = pair.near.command("bash");
    let line = format!("{} observe -o json | {{ sleep 1000 & wait; }}", binary().display());
    command.args(["-c", &line]);
    let mut observer = Process::spawn(command)?;
    observer.told("Ctrl-C ends it")?;
    tcp(&pair, format!("{FAR}:8080").parse()?, 1_000, 10, 10)?;
    run("pkill", &["-INT", "-P", &observer.pid().to_string(), "flowlog"])?;
    let said = observer.told("flows shown; ")?;
    ensure!(said.contains("lost, since stdout was not read"), "{said}");
    observer.told("the ledger closes")?;
    Ok(())
}

#[test]
fn who_may_not_or_sees_nothing_is_told_what_to_do() -> Result<()> {
    let pair = Pair::new(false)?;
    let mut command = pair.near.command("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--"]).arg(binary()).arg("observe");
    let outcome = Process::spawn(command)?.wait()?;
    ensure!(outcome.status.code() == Some(1) && outcome.out.is_empty(), "{outcome:?}");
    ensure!(outcome.err.contains("CAP_BPF") && outcome.err.contains("sudo"), "{}", outcome.err);

    let mut quiet = observe(&pair.near, &[])?;
    quiet.told("nothing has passed")?;
    closes(&quiet.interrupt()?)?;
    let mut filtered = observe(&pair.near, &["--port", "9"])?;
    ping(&pair, FAR, 2)?;
    filtered.told("the filters take none of them")?;
    closes(&filtered.interrupt()?)
}

/// A daemon that starts beside it must not take its filters for those of a killed one.
#[test]
fn a_daemon_that_starts_meanwhile_leaves_it_alone() -> Result<()> {
    for hook in hooks() {
        let folder = tempfile::tempdir()?;
        let pair = Pair::new(false)?;
        let observer = observe(&pair.near, &["-o", "json", "--hook", hook])?;
        let tasks = crate::end_to_end::tasks(folder.path(), crate::end_to_end::EVERYTHING)?;
        let daemon = Daemon::start(&pair.near, &tasks, &folder.path().join("logs"), &["--hook", hook])?;
        ensure!(attached(&pair.near)? == 4, "{hook}: {}", attached(&pair.near)?);
        ping(&pair, FAR, 4)?;
        let outcome = observer.interrupt()?;
        closes(&outcome)?;
        ensure!(
            amounts(&records(&outcome.out)?).values().all(|(packets, _)| *packets == 4),
            "{:?}",
            outcome.out
        );
        ensure!(attached(&pair.near)? == 2, "{hook}: the daemon's own are gone");
        daemon.stop()?.check()?;
        ensure!(attached(&pair.near)? == 0, "{hook}: something stays attached");
    }
    Ok(())
}
