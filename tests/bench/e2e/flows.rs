//! A hundred thousand new UDP flows a second for ten seconds, each of which begins and ends in two tasks' files.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::PATIENCE;
use flowlog_tests::load::Load;
use flowlog_tests::measure::{Spread, progress};
use flowlog_tests::netns::{INTERFACE, Pair};
use flowlog_tests::records;
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::usage::processor_time;

use super::Agent;
use crate::pipeline::EIGHT;

const LOAD: Load =
    Load { per_second: 100_000, lasts: Duration::from_secs(10), distinct: 1_000_000, payload_bytes: 18 };
const TASKS: [&str; 2] = ["one", "two"];
/// Flows a second that must come for the rest to be judged.
const ENOUGH: f64 = 99_000.0;
/// Rounds take a minute each.
const ROUNDS_MAX: usize = 3;

/// What came of a round.
struct Round {
    per_second: f64,
    missing: f64,
    /// Cores that the daemon took while flows began, and while they ended.
    cores: [f64; 2],
}

pub(super) fn measured(rounds: usize) -> Result<Vec<Figure>> {
    let rounds = (1..=rounds.min(ROUNDS_MAX)).map(once).collect::<Result<Vec<_>>>()?;
    // What a machine that is busy with something else sends is another load, about which nothing is judged.
    let came = rounds.iter().all(|round| round.per_second >= ENOUGH);
    let figure = |what: &str, of: fn(&Round) -> f64, unit, target| {
        let target = if came { target } else { Target::None };
        let name = format!("e2e: 100,000 new flows/s for 10 s in two tasks, {what}");
        Figure::alone(name, Spread::of(rounds.iter().map(of).collect()), unit, target)
    };
    Ok(vec![
        figure("that came", |round| round.per_second, "flows/s", Target::AtLeast(ENOUGH)),
        figure("records missing", |round| round.missing, "records", Target::AtMost(0.0)),
        figure("while they begin", |round| round.cores[0], "cores", Target::AtMost(1.0)),
        figure("while they end", |round| round.cores[1], "cores", Target::AtMost(1.0)),
    ])
}

fn once(round: usize) -> Result<Round> {
    let pair = Pair::new(false)?;
    let folder = tempfile::tempdir()?;
    let keys = format!("events: [start, end], fileMaxSizeMb: 10000, {EIGHT}");
    let agent = Agent::start(
        &pair,
        folder.path(),
        &TASKS.map(|name| (name, keys.as_str())),
        &["--table-entries", "1048576"],
    )?;
    let pid = agent.daemon.pid();
    let rx = || pair.near.counter(INTERFACE, "rx_packets");
    let (arrived, busy, began) = (rx()?, processor_time(pid)?, Instant::now());
    progress(&format!("round {round}: flows begin"));
    let sent = LOAD.start(&pair)?.wait()?;
    let beginning = (processor_time(pid)? - busy).as_secs_f64() / sent.took.as_secs_f64();
    // Each datagram that came is a flow of its own, whatever the sender's queue did.
    let flows = rx()? - arrived;
    progress(&format!("round {round}: flows end"));
    let written = |records: u64| -> Result<f64> {
        let until = Instant::now() + PATIENCE;
        while agent.written(TASKS[0])? < records as f64 {
            ensure!(Instant::now() < until, "{records} records never came");
            sleep(Duration::from_millis(100));
        }
        Ok(began.elapsed().as_secs_f64())
    };
    let ends_from = written(flows + flows / 100)?;
    let busy = processor_time(pid)?;
    let ends_until = written(2 * flows - flows / 100)?;
    let ending = (processor_time(pid)? - busy).as_secs_f64() / (ends_until - ends_from);
    let logs = agent.logs();
    let ended = agent.daemon.stop()?;
    ended.check()?;
    let found = TASKS.iter().map(|task| count(&logs, task)).sum::<Result<u64>>()?;
    Ok(Round {
        per_second: flows as f64 / sent.took.as_secs_f64(),
        missing: (4 * flows) as f64 - found as f64,
        cores: [beginning, ending],
    })
}

/// Records in a task's files.
fn count(logs: &Path, task: &str) -> Result<u64> {
    let mut count = 0;
    for file in records::files(logs)? {
        if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(task)) {
            let text = zstd::decode_all(std::fs::File::open(&file)?).context("zstd")?;
            let lines = text.split(|byte| *byte == b'\n');
            count += lines.filter(|line| line.starts_with(b"{\"flow\":")).count() as u64;
        }
    }
    Ok(count)
}
