//! From the start of the process to the first record that zstd can read, with ten interfaces and traffic on one.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use flowlog_tests::daemon::{Daemon, PATIENCE};
use flowlog_tests::measure::{Spread, progress};
use flowlog_tests::netns::{FAR, Pair};
use flowlog_tests::records::zstdcat;
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::topology::veth;

const STARTS_MAX: usize = 9;

pub(super) fn measured(rounds: usize) -> Result<Vec<Figure>> {
    let pair = Pair::new(false)?;
    for n in 1..10 {
        veth((&pair.near, &format!("more{n}")), (&pair.far, &format!("peer{n}")))?;
    }
    let mut seconds = Vec::new();
    for start in 0..rounds.min(STARTS_MAX) {
        progress(&format!("start {}", start + 1));
        seconds.push(once(&pair)?);
    }
    let name = "e2e: from the start to the first readable record, 10 interfaces";
    Ok(vec![Figure::alone(name, Spread::of(seconds), "s", Target::AtMost(2.0))])
}

fn once(pair: &Pair) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let (tasks, logs) = (folder.path().join("tasks.yaml"), folder.path().join("logs"));
    let live = logs.join("all.log.zst");
    let text = format!("flowLogs:\n- {{name: all, filePath: {}}}\n", logs.join("all.log").display());
    std::fs::write(&tasks, text)?;
    let mut ping = pair.near.command("ping");
    let mut pinging = ping.args(["-q", "-i", "0.02", FAR]).stdout(Stdio::null()).spawn()?;
    let began = Instant::now();
    let daemon = Daemon::spawn(&pair.near, &tasks, &logs, &[])?;
    let mut is_there = false;
    while !is_there {
        ensure!(began.elapsed() < PATIENCE, "no record came");
        is_there = live.is_file() && !zstdcat(&live, false)?.is_empty();
        sleep(Duration::from_millis(5));
    }
    let took = began.elapsed();
    pinging.kill()?;
    pinging.wait()?;
    daemon.stop()?.check()?;
    Ok(took.as_secs_f64())
}
