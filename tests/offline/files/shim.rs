//! Writes and syncs that fail, fall short, or hang.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use flowlog_user::task::Overflow;
use flowlog_user::write::{Spec, Sync};

use super::{Task, chunk, files, find, in_child, spec, suffer, until};

/// Compiles the shim; gives it and the file that controls it.
fn shim(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let library = folder.join("shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("offline/files/shim.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status()?;
    ensure!(status.success(), "cc cannot compile the shim");
    Ok((library, folder.join("mode")))
}

/// As [`in_child`], with the shim.
fn with_shim(name: &str) -> Result<Option<PathBuf>> {
    if let Some(mode) = std::env::var_os("FLOWLOG_SHIM") {
        return Ok(Some(mode.into()));
    }
    let work = tempfile::tempdir()?;
    let (library, mode) = shim(work.path())?;
    fs::write(&mode, "none")?;
    in_child(name, &[], &[("LD_PRELOAD", &library), ("FLOWLOG_SHIM", &mode)])?;
    Ok(None)
}

/// Puts the shim into a mode, at once as a whole.
fn set(mode: &Path, to: &str) -> Result<()> {
    let next = mode.with_extension("next");
    fs::write(&next, to)?;
    Ok(fs::rename(next, mode)?)
}

#[test]
fn write_errors_are_survived() -> Result<()> {
    let Some(mode) = with_shim("files::shim::write_errors_are_survived")? else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let spec = spec("faulty", &work.path().join("faulty/a.log"));
    suffer(&spec, work.path(), || set(&mode, "eio"), || set(&mode, "none"), "Input/output error")?;
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
    let give = |task: &mut Task| {
        let next = chunk(task.given, task.given + 1000);
        task.given += 1000;
        task.running.write(next, Overflow::Drop);
    };
    let full = |task: &Task| task.counters().dropped_queue_full.get();
    until("a full queue", || {
        give(&mut faulty);
        Ok(full(&faulty) > 0)
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
