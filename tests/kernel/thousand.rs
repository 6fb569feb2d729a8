//! A thousand tasks: they start soon, and all of the daemon's memory stays below what it said at its start.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::{Daemon, binary};
use flowlog_tests::guest::emulated;
use flowlog_tests::http::{get, unix};
use flowlog_tests::netns::{FAR, Pair};
use flowlog_tests::traffic::udp;
use flowlog_tests::usage::{kib, processor_time};
use serde_json::Value;

const TASKS: usize = 1_000;
/// Processor time that a debug build may take until it is ready: some ten times what a release build takes.
const START_MAX: Duration = Duration::from_secs(15);
/// The same for a scrape and a status, of which a release build's may take 20 and 100 ms.
const SCRAPE_MAX: Duration = Duration::from_millis(200);
const STATUS_MAX: Duration = Duration::from_millis(1_000);

/// The fastest of some, since others work at the same time.
fn fastest(mut of: impl FnMut() -> Result<()>) -> Result<Duration> {
    let one = |_| {
        let began = Instant::now();
        of().map(|()| began.elapsed())
    };
    let all: Vec<Duration> = (0..10).map(one).collect::<Result<_>>()?;
    all.into_iter().min().context("ten were timed")
}

/// Ten filters a task, of which one takes the test's traffic; and five files of earlier days for each.
fn configure(folder: &std::path::Path) -> Result<()> {
    let logs = folder.join("logs");
    fs::create_dir(&logs)?;
    let mut text = "flowLogs:\n".to_owned();
    for task in 0..TASKS {
        write!(text, "- {{name: t{task}, filePath: {}/t{task}.log, includeFilters: [", logs.display())?;
        for filter in 0..9 {
            let (a, b) = (task % 200, task / 200 * 10 + filter);
            write!(
                text,
                "{{source_ip: [\"10.{a}.{b}.0/24\"], destination_port: [\"{}\"]}}, ",
                1000 + filter
            )?;
        }
        writeln!(text, "{{destination_port: [\"6500\"]}}]}}")?;
        for day in 1..=5 {
            fs::write(logs.join(format!("t{task}-2026010{day}T000000.000Z.log.zst")), "")?;
        }
    }
    Ok(fs::write(folder.join("tasks.yaml"), text)?)
}

#[test]
fn a_thousand_tasks_start_soon_and_take_no_more_memory_than_is_said() -> Result<()> {
    let folder = tempfile::tempdir()?;
    configure(folder.path())?;
    let pair = Pair::new(false)?;
    let socket = folder.path().join("flowlog.sock");
    let more = ["--socket", socket.to_str().context("a plain path")?];
    let began = Instant::now();
    let mut daemon =
        Daemon::spawn(&pair.near, &folder.path().join("tasks.yaml"), &folder.path().join("logs"), &more)?;
    let line: Value = serde_json::from_str(&daemon.wait_for("\"daemon memory, at most\"")?)?;
    daemon.wait_for("\"watching\"")?;
    // What others do at the same time counts in the one and not in the other.
    let (took, worked) = (began.elapsed(), processor_time(daemon.pid())?);
    let said = line.get("fields").unwrap_or(&line).get("total_bytes").and_then(Value::as_u64);
    let said = said.with_context(|| format!("no total_bytes in {line}"))?;
    let idle_kib = kib(daemon.pid(), "VmRSS")?;
    // Every record is every task's: all of them have lines that wait to be compressed.
    for _ in 0..40 {
        udp(&pair, format!("{FAR}:6500").parse()?, 5, 100)?;
    }
    let scrape = fastest(|| {
        let (code, page) = get(unix(&socket)?, "/metrics")?;
        ensure!(code == 200 && page.matches("flowlog_task_active{").count() == TASKS, "{code}");
        Ok(())
    })?;
    let status = fastest(|| {
        let output = Command::new(binary()).args(["status", "--server"]).arg(&socket).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    })?;
    let (peak_kib, anonymous_kib) = (kib(daemon.pid(), "VmHWM")?, kib(daemon.pid(), "RssAnon")?);
    let ended = daemon.stop()?;
    ended.check()?;
    println!("a scrape takes {scrape:?}, `flowlog status` {status:?}");
    println!(
        "ready after {took:?}, {worked:?} of work; {idle_kib} KiB idle, {peak_kib} KiB at most, {anonymous_kib} KiB of it anonymous; {} KiB said",
        said / 1024
    );
    ensure!(peak_kib * 1024 <= said, "{peak_kib} KiB were taken, and {said} bytes said");
    // A bound that says nothing would hold too.
    ensure!(said < 3 << 29, "a bound of {said} bytes");
    let tasks = ended.ledger["tasks"].as_array().context("tasks")?;
    let written = |task: &Value| task["written"].as_u64().unwrap_or(0);
    ensure!(tasks.len() == TASKS && tasks.iter().all(|task| written(task) >= 80), "not every task wrote");
    let slow = emulated("the time of a start");
    ensure!(slow || worked < START_MAX, "ready after {worked:?} of work");
    ensure!(slow || scrape < SCRAPE_MAX && status < STATUS_MAX, "a scrape {scrape:?}, a status {status:?}");
    Ok(())
}
