//! File systems that are full or turn read-only, and no descriptors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flowlog_user::write::{Compression, OnFull, Spec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Task, files, find, in_child, parse, spec, suffer, until};

/// A mount namespace: root's own, or in a user namespace.
pub(super) fn mounts() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() { &["unshare", "-m"] } else { &["unshare", "-Urm"] }
}

pub(super) fn mount(arguments: &[&str]) -> Result<()> {
    ensure!(Command::new("mount").args(arguments).status()?.success(), "mount {arguments:?}");
    Ok(())
}

#[test]
fn a_full_disk_costs_what_does_not_fit_and_nothing_else() -> Result<()> {
    if !in_child("files::disk::a_full_disk_costs_what_does_not_fit_and_nothing_else", mounts(), &[])? {
        return Ok(());
    }
    let work = tempfile::tempdir()?;
    let folder = work.path().join("faulty");
    fs::create_dir(&folder)?;
    mount(&["-t", "tmpfs", "-o", "size=2m", "none", folder.to_str().context("a path")?])?;
    // An old file that must stay.
    let mut before = Task::start(&spec("faulty", &folder.join("a.log")), work.path())?;
    before.give(1000);
    before.finish()?;
    let old: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    let filler = work.path().join("faulty/.filler");
    let mut faulty = Task::start(&spec("faulty", &folder.join("a.log")), work.path())?;
    let mut healthy = Task::start(&spec("healthy", &work.path().join("healthy/b.log")), work.path())?;
    fs::write(&filler, vec![1; 1500 << 10])?;
    until("the trouble", || {
        faulty.give(5000);
        healthy.give(10);
        Ok(faulty.dropped() > 10_000)
    })?;
    let said = faulty.counters().trouble.get().context("its state says nothing")?;
    ensure!(said.contains("No space left") && said.contains("task faulty"), "{said}");
    ensure!(!healthy.troubled() && healthy.dropped() == 0);
    ensure!(old[0].metadata()?.len() > 0, "the old file is gone");
    fs::remove_file(&filler)?;
    until("the end of the trouble", || Ok(!faulty.troubled()))?;
    faulty.give(100);
    let given_before = 1000;
    let (given, dropped) = (faulty.given, faulty.dropped());
    until("the rest", || Ok(faulty.counters().written.get() == given - dropped))?;
    healthy.finish()?;
    let counters = faulty.running.finish().counters;
    ensure!(counters.written.get() + counters.dropped_write_error.get() == given);
    let text = Command::new("zstd").arg("-dcq").args(files(&folder)?).output()?;
    ensure!(text.status.success(), "{}", String::from_utf8_lossy(&text.stderr));
    let found = parse(&String::from_utf8(text.stdout)?)?;
    ensure!(found.numbers.len() as u64 == counters.written.get() + given_before);
    ensure!(found.lost == counters.dropped_write_error.get(), "{:?}", found.notices);
    Ok(())
}

#[test]
fn a_full_disk_costs_the_oldest_files_where_that_is_asked_for() -> Result<()> {
    if !in_child("files::disk::a_full_disk_costs_the_oldest_files_where_that_is_asked_for", mounts(), &[])? {
        return Ok(());
    }
    let work = tempfile::tempdir()?;
    let folder = work.path().join("faulty");
    fs::create_dir(&folder)?;
    mount(&["-t", "tmpfs", "-o", "size=2m", "none", folder.to_str().context("a path")?])?;
    let spec = Spec {
        size_bytes_max: 256 << 10,
        on_full: OnFull::DeleteOldest,
        ..spec("faulty", &folder.join("a.log"))
    };
    let mut task = Task::start(&spec, work.path())?;
    for _ in 0..60 {
        task.give(2000); // About 70 KiB on disk.
    }
    until(
        "the records",
        || Ok(task.counters().written.get() + task.dropped() == 120_000 || task.troubled()),
    )?;
    ensure!(!task.troubled() && task.dropped() == 0, "{:?}", task.counters().trouble.get());
    let counters = task.running.finish().counters;
    ensure!(counters.written.get() == 120_000);
    let numbers = find(&folder)?.numbers;
    ensure!(numbers.len() > 20_000 && numbers.len() < 120_000, "{}", numbers.len());
    ensure!(numbers.last() == Some(&119_999) && numbers.is_sorted(), "the newest stay");
    Ok(())
}

/// A chunk of plain lines that is larger than the whole file system, and a file that may become larger too.
#[test]
fn a_chunk_larger_than_the_disk_starves_nobody() -> Result<()> {
    if !in_child("files::disk::a_chunk_larger_than_the_disk_starves_nobody", mounts(), &[])? {
        return Ok(());
    }
    let work = tempfile::tempdir()?;
    let folder = work.path().join("faulty");
    fs::create_dir(&folder)?;
    mount(&["-t", "tmpfs", "-o", "size=2m", "none", folder.to_str().context("a path")?])?;
    let plain = Spec { compression: Compression::None, ..spec("faulty", &folder.join("a.log")) };
    let oldest_go = Spec { on_full: OnFull::DeleteOldest, ..plain.clone() };
    let mut task = Task::start(&oldest_go, work.path())?;
    for _ in 0..2 {
        task.give(40_000); // About 4 MiB in one piece.
    }
    until("the records", || Ok(task.counters().written.get() + task.dropped() == 80_000 || task.troubled()))?;
    ensure!(!task.troubled() && task.dropped() == 0, "{:?}", task.counters().trouble.get());
    ensure!(task.running.finish().counters.written.get() == 80_000);
    let numbers = find(&folder)?.numbers;
    ensure!(numbers.len() > 10_000 && numbers.last() == Some(&79_999), "{} records", numbers.len());
    ensure!(
        numbers.iter().copied().eq(80_000 - numbers.len() as u64..80_000),
        "the newest stay, without a gap"
    );
    for file in files(&folder)? {
        fs::remove_file(file)?;
    }

    // Where nothing is to be deleted, what fits is written, a little waits, the rest is lost, and the file says so.
    let mut task = Task::start(&plain, work.path())?;
    let mut healthy = Task::start(&spec("healthy", &work.path().join("healthy/b.log")), work.path())?;
    task.give(40_000);
    until("the trouble", || Ok(task.troubled() && task.dropped() > 0))?;
    let fits = task.counters().written.get();
    ensure!(fits > 10_000, "only {fits} were written");
    healthy.give(10);
    until("the other task's records", || Ok(healthy.counters().written.get() == 10))?;
    mount(&["-o", "remount,size=9m", folder.to_str().context("a path")?])?;
    until("the end of the trouble", || Ok(!task.troubled()))?;
    task.give(100);
    healthy.finish()?;
    task.finish()?;
    Ok(())
}

/// A new ext4 file system in a file, over a folder.
fn ext4(image: &Path, over: &str) -> Result<()> {
    fs::File::create(image)?.set_len(16 << 20)?;
    let made = Command::new("mkfs.ext4").arg("-q").arg(image).status()?;
    ensure!(made.success(), "mkfs.ext4");
    mount(&["-o", "loop,errors=remount-ro", image.to_str().context("a path")?, over])
}

/// What the kernel does after an error of the disk: the file system becomes read-only under open files. Then another
/// one is mounted in its place.
#[test]
fn a_read_only_remount_is_survived() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        println!("loop devices need root; this test is left out");
        return Ok(());
    }
    if !in_child("files::disk::a_read_only_remount_is_survived", mounts(), &[])? {
        return Ok(());
    }
    let work = tempfile::tempdir()?;
    let folder = work.path().join("faulty");
    fs::create_dir(&folder)?;
    let at = folder.to_str().context("a path")?;
    ext4(&work.path().join("first"), at)?;
    let mut task = Task::start(&spec("faulty", &folder.join("a.log")), work.path())?;
    task.give(100);
    until("the first records", || Ok(task.counters().written.get() == 100))?;
    mount(&["-o", "remount,abort", at])?;
    until("the trouble", || {
        task.give(5000);
        Ok(task.dropped() > 10_000)
    })?;
    let said = task.counters().trouble.get().context("its state says nothing")?;
    ensure!(said.contains("Read-only file system"), "{said}");
    ext4(&work.path().join("second"), at)?;
    until("the end of the trouble", || Ok(!task.troubled()))?;
    let (given, dropped) = (task.given, task.dropped());
    task.give(100);
    let counters = task.running.finish().counters;
    let written = counters.written.get();
    ensure!(written + dropped == given + 100 && counters.dropped_write_error.get() == dropped);
    let found =
        parse(&String::from_utf8(Command::new("zstd").arg("-dcq").args(logs(&folder)?).output()?.stdout)?)?;
    // What waited goes into the new file.
    ensure!(
        found.numbers.len() as u64 == written - 100 && found.numbers.len() > 1000,
        "{:?}",
        found.numbers.len()
    );
    ensure!(found.numbers.ends_with(&(given..given + 100).collect::<Vec<_>>()), "{:?}", found.numbers.last());
    ensure!(found.lost == dropped, "{:?}", found.notices);
    Command::new("umount").arg(at).status()?;
    Command::new("umount").arg("-l").arg(at).status()?;
    Ok(())
}

fn logs(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(files(folder)?.into_iter().filter(|file| file.extension().is_some_and(|ext| ext == "zst")).collect())
}

#[test]
fn no_descriptors_is_survived() -> Result<()> {
    if !in_child("files::disk::no_descriptors_is_survived", &[], &[])? {
        return Ok(());
    }
    let work = tempfile::tempdir()?;
    let before = getrlimit(Resource::Nofile);
    let rotates = Spec { size_bytes_max: 64 << 10, ..spec("faulty", &work.path().join("faulty/a.log")) };
    // Not even the descriptor that a finished file gives back can be had again.
    let none = Rlimit { current: Some(3), maximum: before.maximum };
    suffer(
        &rotates,
        work.path(),
        || Ok(setrlimit(Resource::Nofile, none)?),
        || Ok(setrlimit(Resource::Nofile, before)?),
        "Too many open files",
    )?;
    Ok(())
}
