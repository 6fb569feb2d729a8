//! Writes and syncs that fail, fall short, or hang.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use flowlog_tests::shim::{compile, set};
use flowlog_user::task::Overflow;
use flowlog_user::write::{Compression, Spec, Sync};

use super::{Task, chunk, files, find, in_child, parse, spec, suffer, until};

/// As [`in_child`], with the shim.
fn with_shim(name: &str) -> Result<Option<PathBuf>> {
    if let Some(mode) = std::env::var_os("FLOWLOG_SHIM") {
        return Ok(Some(mode.into()));
    }
    let work = tempfile::tempdir()?;
    let (library, mode) = compile(work.path())?;
    in_child(name, &[], &[("LD_PRELOAD", &library), ("FLOWLOG_SHIM", &mode)])?;
    Ok(None)
}

/// Gives records as a daemon does, which waits for no disk.
fn offer(task: &mut Task, records: u64) {
    let next = chunk(task.given, task.given + records);
    task.given += records;
    task.running.write(next, Overflow::Drop);
}

#[test]
fn write_errors_are_survived() -> Result<()> {
    let Some(mode) = with_shim("files::shim::write_errors_are_survived")? else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let spec = spec("faulty", &work.path().join("faulty/a.log"));
    suffer(&spec, work.path(), || set(&mode, "eio"), || set(&mode, "none"), "Input/output error")?;
    Ok(())
}

/// A quota is an error like any other, where the kernel has one; the shim gives it anywhere.
#[test]
fn an_exhausted_quota_is_survived() -> Result<()> {
    let Some(mode) = with_shim("files::shim::an_exhausted_quota_is_survived")? else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let plain = Spec { compression: Compression::None, ..spec("faulty", &work.path().join("faulty/a.log")) };
    let found = suffer(&plain, work.path(), || set(&mode, "quota"), || set(&mode, "none"), "quota exceeded")?;
    ensure!(found.lost > 10_000, "{:?}", found.notices);
    Ok(())
}

#[test]
fn short_and_interrupted_writes_change_nothing() -> Result<()> {
    let Some(mode) = with_shim("files::shim::short_and_interrupted_writes_change_nothing")? else {
        return Ok(());
    };
    set(&mode, "short")?;
    let work = tempfile::tempdir()?;
    let mut task = Task::start(&spec("faulty", &work.path().join("faulty/a.log")), work.path())?;
    for _ in 0..20 {
        task.give(100);
    }
    let found = task.finish()?;
    ensure!(found.numbers.len() == 2000 && found.lost == 0);
    Ok(())
}

#[test]
fn a_hanging_disk_holds_up_its_own_task_only() -> Result<()> {
    let Some(mode) = with_shim("files::shim::a_hanging_disk_holds_up_its_own_task_only")? else {
        return Ok(());
    };
    let work = tempfile::tempdir()?;
    let mut faulty = Task::start(&spec("faulty", &work.path().join("faulty/a.log")), work.path())?;
    let mut healthy = Task::start(&spec("healthy", &work.path().join("healthy/b.log")), work.path())?;
    set(&mode, "hang")?;
    let full = |task: &Task| task.counters().dropped_queue_full.get();
    // As much as may wait is read by nobody.
    while full(&faulty) == 0 {
        offer(&mut faulty, 10_000);
    }
    until("the state of the one whose disk hangs", || {
        Ok(faulty.counters().trouble.get().is_some_and(|said| said.contains("has not answered for")))
    })?;
    // The other one's records are as fast as ever: flushed after a second.
    for _ in 0..3 {
        let begun = Instant::now();
        healthy.give(10);
        let given = healthy.given;
        until("the other task's records", || Ok(healthy.counters().written.get() == given))?;
        ensure!(begun.elapsed() < Duration::from_secs(3), "held up for {:?}", begun.elapsed());
    }
    set(&mode, "none")?;
    until("the end of the trouble", || Ok(!faulty.troubled()))?;
    healthy.finish()?;
    let (given, folder) = (faulty.given, faulty.folder.clone());
    let counters = faulty.running.finish().counters;
    let lost = counters.dropped_queue_full.get();
    ensure!(counters.written.get() + lost == given);
    let found = find(&folder)?;
    ensure!(found.lost == lost && found.numbers.len() as u64 == given - lost, "{:?}", found.notices);
    ensure!(found.notices.iter().any(|line| line.contains("queue was full")), "{:?}", found.notices);
    Ok(())
}

/// A quiet node hands on hundreds of batches a second, each of a record or two.
#[test]
fn small_batches_wait_while_a_disk_hangs() -> Result<()> {
    let Some(mode) = with_shim("files::shim::small_batches_wait_while_a_disk_hangs")? else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let mut task = Task::start(&spec("faulty", &work.path().join("faulty/a.log")), work.path())?;
    set(&mode, "hang")?;
    offer(&mut task, 1);
    until("the state", || Ok(task.counters().trouble.get().is_some_and(|said| said.contains("wait in"))))?;
    for _ in 0..20_000 {
        offer(&mut task, 1);
    }
    let waits = task.counters().queued_bytes.get();
    ensure!(waits > 20_000 * 200 && waits < 20_000 * 500, "{waits} bytes wait");
    set(&mode, "none")?;
    let found = task.finish()?;
    ensure!(
        found.numbers.len() == 20_001 && found.lost == 0,
        "{} found, {} lost",
        found.numbers.len(),
        found.lost
    );
    Ok(())
}

#[test]
fn a_failed_sync_begins_a_new_file_that_says_so() -> Result<()> {
    let Some(mode) = with_shim("files::shim::a_failed_sync_begins_a_new_file_that_says_so")? else {
        return Ok(());
    };
    let work = tempfile::tempdir()?;
    let spec = Spec { sync: Sync::Interval, ..spec("faulty", &work.path().join("faulty/a.log")) };
    let mut task = Task::start(&spec, work.path())?;
    set(&mode, "nosync")?;
    task.give(100);
    until("the rotation", || Ok(task.counters().rotations.get() == 1))?;
    set(&mode, "none")?;
    task.give(100);
    let found = task.finish()?;
    ensure!(found.numbers.len() == 200);
    ensure!(found.notices.iter().any(|line| line.contains("may not be on the disk")), "{:?}", found.notices);
    ensure!(files(&work.path().join("faulty"))?.len() == 2);
    Ok(())
}

/// Time from giving a record to two tasks until the second one's is written (plain lines are at once), at the 99th of 100.
fn delay(faulty: &mut Task, healthy: &mut Task) -> Result<Duration> {
    let mut delays = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        // As the pipeline does: the same record to each task in turn.
        offer(faulty, 1);
        healthy.give(1);
        let given = healthy.given;
        while healthy.counters().written.get() < given {
            ensure!(begun.elapsed() < Duration::from_secs(30), "never written");
            std::thread::sleep(Duration::from_micros(200));
        }
        delays.push(begun.elapsed());
    }
    delays.sort_unstable();
    Ok(delays[delays.len() * 99 / 100])
}

/// Each write, sync and rotation of one task takes 300 ms; the other's records do not notice. Against the same without
/// the fault, since the machine itself may be busy: the best of three rounds each.
#[test]
fn a_slow_disk_delays_no_other_tasks_records() -> Result<()> {
    let Some(mode) = with_shim("files::shim::a_slow_disk_delays_no_other_tasks_records")? else {
        return Ok(());
    };
    let work = tempfile::tempdir()?;
    let plain = |task: &str, file: &str| Spec {
        compression: Compression::None,
        size_bytes_max: 4 << 10,
        sync: Sync::Interval,
        ..spec(task, &work.path().join(file))
    };
    let mut faulty = Task::start(&plain("faulty", "faulty/a.log"), work.path())?;
    let healthy = Spec { size_bytes_max: 10 << 20, sync: Sync::None, ..plain("healthy", "healthy/b.log") };
    let mut healthy = Task::start(&healthy, work.path())?;
    let (mut usual, mut beside) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        set(&mode, "none")?;
        usual = usual.min(delay(&mut faulty, &mut healthy)?);
        set(&mode, "slow")?;
        beside = beside.min(delay(&mut faulty, &mut healthy)?);
    }
    println!("p99 of a record's way to its file: {usual:?}, beside a slow disk {beside:?}");
    ensure!(beside.saturating_sub(usual) <= Duration::from_millis(10), "{usual:?} became {beside:?}");
    set(&mode, "none")?;
    healthy.finish()?;
    let (given, folder) = (faulty.given, faulty.folder.clone());
    let counters = faulty.running.finish().counters;
    let lost = counters.dropped_queue_full.get();
    let found = plain_numbers(&folder)?;
    ensure!(found as u64 + lost == given, "{found} found, {lost} lost, {given} given");
    Ok(())
}

fn plain_numbers(folder: &Path) -> Result<usize> {
    let texts = files(folder)?.iter().map(fs::read_to_string).collect::<std::io::Result<Vec<_>>>()?;
    Ok(parse(&texts.concat())?.numbers.len())
}

#[test]
fn a_sync_that_hangs_holds_up_its_own_task_only() -> Result<()> {
    let Some(mode) = with_shim("files::shim::a_sync_that_hangs_holds_up_its_own_task_only")? else {
        return Ok(());
    };
    let work = tempfile::tempdir()?;
    let spec_faulty = Spec { sync: Sync::Interval, ..spec("faulty", &work.path().join("faulty/a.log")) };
    let mut faulty = Task::start(&spec_faulty, work.path())?;
    let mut healthy = Task::start(&spec("healthy", &work.path().join("healthy/b.log")), work.path())?;
    set(&mode, "hangsync")?;
    faulty.give(100);
    until("the state of the one whose disk hangs", || {
        Ok(faulty.counters().trouble.get().is_some_and(|said| said.contains("has not answered for")))
    })?;
    healthy.give(10);
    until("the other task's records", || Ok(healthy.counters().written.get() == 10))?;
    ensure!(!healthy.troubled());
    set(&mode, "none")?;
    until("the end of the trouble", || Ok(!faulty.troubled()))?;
    healthy.finish()?;
    ensure!(faulty.finish()?.lost == 0);
    Ok(())
}
