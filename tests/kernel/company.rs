//! Tasks at one interface: each has the same records whether a daemon runs it alone or with the others.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::Daemon;
use flowlog_tests::generated::{frame, task};
use flowlog_tests::netns::{INTERFACE, Pair};
use flowlog_tests::random::Random;
use flowlog_tests::records::all;
use rustix::process::Signal;

use crate::end_to_end::tasks;
use crate::rejecting::essence;
use flowlog_tests::wire::{send, wire};

/// No rhythm that depends on when a daemon was started.
const OTHERS: [&str; 3] = [", events: [start, end]", ", events: [end]", ", events: [start]"];
const TASKS: usize = 4;
const FRAMES: usize = 400;

/// Records by the task that wrote them, in an order of their own.
type Written = BTreeMap<String, Vec<String>>;

fn written(logs: &Path) -> Result<Written> {
    let of = |name: String| {
        let mut records: Vec<String> = all(logs, &format!("{name}-"))?.iter().map(essence).collect();
        records.sort();
        Ok((name, records))
    };
    (0..TASKS).map(|number| of(format!("t{number}"))).collect()
}

/// Records that only the one or only the other has.
fn differences(name: &str, alone: &[String], together: &[String]) -> String {
    let mut counted = BTreeMap::<&str, i64>::new();
    alone.iter().for_each(|record| *counted.entry(record).or_default() += 1);
    together.iter().for_each(|record| *counted.entry(record).or_default() -= 1);
    counted.retain(|_, more| *more != 0);
    let line = |(record, more): (&&str, &i64)| format!("{name}, {more} more alone: {record}\n");
    counted.iter().take(10).map(line).collect()
}

fn compare(seed: u64) -> Result<usize> {
    let mut random = Random::new(seed);
    let pair = Pair::new(false)?;
    let folder = tempfile::tempdir()?;
    let wire = wire(folder.path())?;
    let each: Vec<String> = (0..TASKS).map(|number| task(&mut random, number, "LOGS", &OTHERS)).collect();
    // One daemon for all, and one for each; all see the very same packets.
    let mut daemons = Vec::new();
    for (number, text) in each.iter().cloned().chain([each.concat()]).enumerate() {
        let folder = folder.path().join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let logs = folder.join("logs");
        let tasks = tasks(&folder, &format!("flowLogs:\n{text}"))?;
        daemons.push((Daemon::start(&pair.near, &tasks, &logs, &[])?, logs));
    }
    for side in [&pair.near, &pair.far] {
        let mut frames = Vec::new();
        for _ in 0..FRAMES {
            let frame = frame(&mut random);
            frames.extend(u16::try_from(frame.len())?.to_be_bytes());
            frames.extend(frame);
        }
        send(side, &wire, &["frames", INTERFACE], &frames)?;
    }
    for (daemon, _) in &daemons {
        daemon.signal(Signal::INT)?;
    }
    let (mut alone, mut together) = (Written::new(), Written::new());
    for (number, (daemon, logs)) in daemons.into_iter().enumerate() {
        daemon.wait()?.check()?;
        let mut written = written(&logs)?;
        if number == TASKS {
            together = written;
            continue;
        }
        alone.extend(written.remove_entry(&format!("t{number}")));
        ensure!(written.values().all(Vec::is_empty), "the daemon of t{number} wrote for others: {written:?}");
    }
    let said: String =
        together.iter().map(|(name, records)| differences(name, &alone[name], records)).collect();
    ensure!(said.is_empty(), "seed {seed}:\n{}{said}", each.concat());
    Ok(together.values().map(Vec::len).sum())
}

#[test]
fn generated_tasks_have_the_same_records_alone_and_in_company() -> Result<()> {
    let long = flowlog_tests::guest::long();
    let mut records = 0;
    for seed in 0..if long { 60 } else { 2 } {
        records += compare(seed)?;
    }
    ensure!(records > 100, "only {records} records: the test compares nothing");
    Ok(())
}
