//! `flowlog estimate` beside a daemon that writes what is estimated.

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::{Daemon, PATIENCE};
use flowlog_tests::netns::{FAR, Pair};
use flowlog_tests::process::Process;
use flowlog_tests::records::{all, files, zstdcat};
use flowlog_tests::traffic::tcp;
use serde_json::Value;

use crate::end_to_end::tasks;

const TASKS: &str = "
flowLogs:
  - name: all
    filePath: LOGS/all.log
    events: [start]
  - name: requests
    filePath: LOGS/requests.log
    events: [start]
    includeFilters: [{destination_port: [\"8080\"]}]
    fieldMask: [IP, l4]
    format: flat
    compression: none
";

#[test]
fn what_is_estimated_is_what_a_daemon_writes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let file = tasks(folder.path(), TASKS)?;
    let daemon = Daemon::start(&pair.near, &file, &logs, &[])?;
    let path = file.to_str().context("a plain path")?;
    let mut estimate =
        Process::flowlog(&pair.near, &["estimate", "--tasks", path, "--for", "1h", "-o", "json"])?;
    estimate.told("running without writing")?;
    tcp(&pair, format!("{FAR}:8080").parse()?, 500, 10, 10)?;
    let (live, until) = (logs.join("all.log.zst"), std::time::Instant::now() + PATIENCE);
    while zstdcat(&live, false)?.len() < 1000 {
        ensure!(std::time::Instant::now() < until, "the daemon never wrote all");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let outcome = estimate.interrupt()?;
    ensure!(outcome.status.success(), "{}", outcome.err);
    daemon.stop()?.check()?;
    // Only the daemon's, one file for each task.
    let written = files(&logs)?;
    ensure!(written.len() == 2, "{written:?}");
    let sizes: Vec<u64> = written.iter().map(|file| Ok(file.metadata()?.len())).collect::<Result<_>>()?;

    let told: Value = serde_json::from_str(&outcome.out.join("\n"))?;
    ensure!(told["closes"] == true && told["packets_lost"] == 0, "{told}");
    let of = |at: usize, key: &str| told["tasks"][at][key].as_f64().context(key.to_owned());
    for (at, name, records) in [(0, "all", 1000.0), (1, "requests", 500.0)] {
        ensure!(told["tasks"][at]["task"] == name && of(at, "records")? == records, "{told}");
        let seconds = told["seconds"].as_f64().context("seconds")?;
        ensure!((of(at, "records_a_second")? * seconds - records).abs() < 0.01, "{told}");
        // The finished file's size, give or take its header and its last line.
        let each = of(at, "disk_bytes_a_day")? / 86_400.0 / of(at, "records_a_second")?;
        let (sum, size) = (each * records, sizes[at] as f64);
        ensure!((sum - size).abs() < 0.15 * size, "{name}: {sum} estimated, {size} written");
    }
    ensure!(all(&logs, "all-")?.len() == 1000);
    ensure!(of(0, "cpu_percent")? > 0.0 && told["cpu_percent"]["all"].as_f64() > Some(0.0), "{told}");
    Ok(())
}
