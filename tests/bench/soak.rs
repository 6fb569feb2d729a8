//! Half of what one core can take, for as long as is asked: memory stays flat, and the ledger closes.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use flowlog_tests::daemon::PATIENCE;
use flowlog_tests::load::Load;
use flowlog_tests::measure::{Spread, progress};
use flowlog_tests::netns::{INTERFACE, Pair};
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::usage::{kib, processor_time};

use crate::e2e::Agent;
use crate::pipeline::EIGHT;
use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "soak",
    about: "half of a core's capacity for 5 minutes (--for 1h): flat memory, a closed ledger",
    run,
};

const USUAL: Duration = Duration::from_secs(5 * 60);
/// The load by which the capacity is found out, and the most that one sender and the table are given.
const PROBE: u64 = 20_000;
const MOST: u64 = 60_000;
const PROBE_LASTS: Duration = Duration::from_secs(8);
/// A fifth of the time belongs to the beginning.
const PARTS: usize = 5;
const TASK: &str = "all";

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let pair = Pair::new(false)?;
    let folder = tempfile::tempdir()?;
    // Files come and go meanwhile.
    let keys = format!("events: [start, end], fileMaxSizeMb: 8, fileMaxBackups: 3, {EIGHT}");
    let more = ["--table-entries", "1048576", "--idle-timeout", "udp=2s"];
    let agent = Agent::start(&pair, folder.path(), &[(TASK, &keys)], &more)?;
    let pid = agent.daemon.pid();
    let before = pair.near.counter(INTERFACE, "rx_packets")?;
    let load = |per_second, lasts| Load { per_second, lasts, distinct: 1_000_000, payload_bytes: 18 };
    progress("soak: what a core can take");
    let cores = cores_while(pid, || load(PROBE, PROBE_LASTS).start(&pair)?.wait().map(drop))?;
    let capacity = PROBE as f64 / cores;
    let half = (capacity / 2.0).min(MOST as f64);
    let lasts = settings.duration.unwrap_or(USUAL);
    progress(&format!("soak: {half:.0} flows/s for {lasts:?}"));
    let mut resident = Vec::new();
    let busy = cores_while(pid, || {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
        let sending = load(half as u64, lasts).start(&pair)?;
        while !sending.is_done() {
            resident.push(kib(pid, "VmRSS")? as f64 / 1024.0);
            sleep(Duration::from_secs(1));
        }
        sending.wait().map(drop)
    })?;
    let flows = pair.near.counter(INTERFACE, "rx_packets")? - before;
    let until = Instant::now() + PATIENCE;
    while agent.written(TASK)? < (2 * flows) as f64 && Instant::now() < until {
        sleep(Duration::from_millis(200));
    }
    let written = agent.written(TASK)?;
    // Fails where a sum does not close.
    agent.daemon.stop()?.check()?;
    ensure!(resident.len() >= PARTS, "{} samples are too few", resident.len());
    let part = |at: usize| {
        let of = resident.len() / PARTS;
        resident.iter().skip(at * of).take(of).copied().fold(0.0, f64::max)
    };
    let name = |what: &str| format!("soak: {half:.0} flows/s for {} s, {what}", lasts.as_secs());
    let exact = |value: f64| Spread::of(vec![value; 3]);
    let grown = part(PARTS - 1) / part(1);
    Ok(vec![
        Figure::alone(name("resident memory"), exact(part(PARTS - 1)), "MiB", Target::None),
        Figure::alone(
            name("in the last fifth of the time beside the second"),
            exact(grown),
            "x",
            Target::AtMost(1.05),
        ),
        Figure::alone(
            name("records missing"),
            exact((2 * flows) as f64 - written),
            "records",
            Target::AtMost(0.0),
        ),
        Figure::alone(name("busy"), exact(busy), "cores", Target::AtMost(0.75)),
    ])
}

/// Cores that a process takes while something is done.
fn cores_while(pid: u32, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let (before, began) = (processor_time(pid)?, Instant::now());
    work()?;
    Ok((processor_time(pid)? - before).as_secs_f64() / began.elapsed().as_secs_f64())
}
