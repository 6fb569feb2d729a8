//! More than can be taken: what is lost is lost in one place of each stage, counted to the packet and the record, told in
//! the files, over when the load is, and no other task's.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::Daemon;
use flowlog_tests::http::{get, series, unix};
use flowlog_tests::load::Load;
use flowlog_tests::netns::{INTERFACE, Pair};
use flowlog_tests::records::{found, sums};
use flowlog_tests::shim;
use rustix::process::Signal;

use crate::end_to_end::tasks;
use crate::lifecycle::until;

const TWO: &str = "
flowLogs:
  - {name: one, filePath: LOGS/faulty/one.log, events: [start, end]}
  - {name: two, filePath: LOGS/two.log, events: [start, end]}
";

fn load(per_second: u64, milliseconds: u64) -> Load {
    let lasts = Duration::from_millis(milliseconds);
    Load { per_second, lasts, distinct: per_second * milliseconds / 1000, payload_bytes: 18 }
}

/// A metric of the daemon now.
fn metric(folder: &Path, name: &str) -> Result<u64> {
    let page = get(unix(&folder.join("flowlog.sock"))?, "/metrics")?.1;
    let value = series(&page).get(name).copied().with_context(|| format!("no {name}"))?;
    Ok(format!("{value}").parse()?)
}

#[test]
fn ten_times_what_the_kernel_holds_is_counted_to_the_packet_told_in_every_file_and_soon_over() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (logs, socket) = (folder.path().join("logs"), folder.path().join("flowlog.sock"));
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), TWO)?;
    let socket = socket.to_str().context("a plain path")?;
    // A thousand connections, and two hundred reports.
    let small = ["--table-entries", "1024", "--ring-bytes", "65536", "--idle-timeout", "udp=1s"];
    let more = [&small[..], &["--socket", socket]].concat();
    let daemon = Daemon::start(&pair.near, &tasks, &logs, &more)?;
    let before = pair.near.counter(INTERFACE, "rx_packets")?;
    // Nothing is taken from the kernel meanwhile.
    daemon.signal(Signal::STOP)?;
    let sent = load(40_000, 500).start(&pair)?.wait()?;
    daemon.signal(Signal::CONT)?;
    ensure!(sent.datagrams == 20_000);
    let lost = || metric(folder.path(), "flowlog_packets_total{outcome=\"lost\"}");
    let entries = || metric(folder.path(), "flowlog_table_entries");
    until("the end of the overload", || Ok(lost()? > 0 && entries()? == 0))?;
    let after = lost()?;
    load(1_000, 500).start(&pair)?.wait()?;
    until("the ends of what came after it", || Ok(entries()? == 0))?;
    ensure!(lost()? == after, "{after} packets were lost under overload, {} since", lost()? - after);

    let came = pair.near.counter(INTERFACE, "rx_packets")? - before;
    let ended = daemon.stop()?;
    ended.check()?;
    let [counted, alone, lost] =
        ["counted", "alone", "lost"].map(|part| ended.number(&format!("/packets/{part}/packets")));
    let (counted, alone, lost) = (counted?, alone?, lost?);
    println!("{came} packets: {counted} counted, {alone} alone, {lost} lost");
    ensure!(counted >= 1024 && lost > 10_000, "{counted} counted, {alone} alone, {lost} lost");
    ensure!(counted + alone + lost == came, "{counted} counted, {alone} alone, {lost} lost of {came}");
    for (folder, stem) in [(logs.join("faulty"), "one-"), (logs, "two-")] {
        let (records, told) = found(&folder, stem, "kernel")?;
        let packets: u64 = sums(&records).values().map(|sum| sum.packets).sum();
        ensure!(packets == counted + alone, "{stem}: {packets} packets in records");
        ensure!(told == lost, "{stem}: {told} packets are said to be lost, {lost} are");
    }
    Ok(())
}

#[test]
fn a_task_whose_disk_hangs_under_load_loses_and_tells_and_its_neighbour_does_not_notice() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let (library, mode) = shim::compile(folder.path())?;
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), TWO)?;
    let socket = folder.path().join("flowlog.sock");
    let variables = [format!("LD_PRELOAD={}", library.display()), format!("FLOWLOG_SHIM={}", mode.display())];
    let prefix = ["env", &variables[0], &variables[1]];
    let more = ["--socket", socket.to_str().context("a plain path")?, "--idle-timeout", "udp=1s"];
    let mut daemon = Daemon::spawn_through(&pair.near, &prefix, &tasks, &logs, &more)?;
    daemon.wait_for("\"watching\"")?;
    let before = pair.near.counter(INTERFACE, "rx_packets")?;
    shim::set(&mode, "hang")?;
    let sending = Load { distinct: 100_000, ..load(2_000, 120_000) }.start(&pair)?;
    let of = |what: &str, task: &str| {
        metric(folder.path(), &format!("flowlog_task_{what}_total{{task=\"{task}\"{}}}", reason(what)))
    };
    until("a full queue", || Ok(of("dropped_records", "one")? > 0))?;
    let written = of("written_records", "two")?;
    until("the other's records", || Ok(of("written_records", "two")? > written))?;
    shim::set(&mode, "none")?;
    sending.stop()?;
    let flows = pair.near.counter(INTERFACE, "rx_packets")? - before;
    until("all records", || Ok(of("written_records", "two")? == 2 * flows))?;
    let ended = daemon.stop()?;
    ended.check()?;

    let (one, told) = found(&logs.join("faulty"), "one-", "queue")?;
    let (two, nothing) = found(&logs, "two-", "queue")?;
    println!("{flows} flows; one has {} records and tells of {told} lost, two has {}", one.len(), two.len());
    ensure!(told > 0 && one.len() as u64 + told == 2 * flows, "{} records, {told} lost", one.len());
    ensure!(two.len() as u64 == 2 * flows && nothing == 0, "{} records, {nothing} lost", two.len());
    Ok(())
}

/// What is dropped is told by reason.
fn reason(what: &str) -> &'static str {
    if what == "dropped_records" { ",reason=\"queue_full\"" } else { "" }
}
