//! Files under real trouble: full and read-only file systems, no descriptors, failing and hanging writes, kill -9.
//!
//! Each test runs its body in a child of its own, in a mount namespace or with a shim where it needs one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use flowlog_user::clock::wall_ns;
use flowlog_user::metrics::TaskCounters;
use flowlog_user::read::{Output, Request, cat, verify};
use flowlog_user::task::{Overflow, Running};
use flowlog_user::write::{Chunk, Compression, Definition, OnFull, Owner, Roots, Spec, Sync};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const CHILD: &str = "FLOWLOG_TEST_CHILD";
/// True in the child that runs the body; else runs it there. `wrapper` comes before the child's command line.
fn in_child(name: &str, wrapper: &[&str], set: &[(&str, &Path)]) -> Result<bool> {
    if std::env::var_os(CHILD).is_some() {
        return Ok(true);
    }
    let exe = std::env::current_exe()?;
    let mut command = match wrapper {
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(exe);
            command
        }
        [] => Command::new(exe),
    };
    command.args(["--exact", name, "--nocapture"]).env(CHILD, "1").envs(set.iter().copied());
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && said.contains("1 passed");
    ensure!(passed, "{said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(false)
}

/// A mount namespace: root's own, or in a user namespace.
fn mounts() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() { &["unshare", "-m"] } else { &["unshare", "-Urm"] }
}

fn mount(arguments: &[&str]) -> Result<()> {
    ensure!(Command::new("mount").args(arguments).status()?.success(), "mount {arguments:?}");
    Ok(())
}

fn spec(task: &str, path: &Path) -> Spec {
    Spec {
        task: task.into(),
        path: path.into(),
        compression: Compression::Zstd { level: 1 },
        size_bytes_max: 10 << 20,
        total_bytes_max: 100 << 20,
        age_max: None,
        free_percent_min: None,
        rotation_interval: None,
        mode: 0o640,
        owner: Owner::default(),
        sync: Sync::None,
        on_full: OnFull::Drop,
        definition: Definition::default(),
    }
}

/// Records with numbers, which compress badly.
fn lines(from: u64, to: u64) -> String {
    (from..to)
        .map(|n| {
            let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (y, z) = (x ^ (x >> 29), x.wrapping_mul(0xbf58_476d_1ce4_e5b9));
            format!(
                "{{\"flow\":{{\"n\":{n},\"x\":\"{y:016x}{z:016x}\"}},\"time\":\"2026-11-30T20:14:26Z\"}}\n"
            )
        })
        .collect()
}

fn chunk(from: u64, to: u64) -> Chunk {
    let records = u32::try_from(to - from).unwrap_or(0);
    let now_ns = wall_ns();
    Chunk { lines: lines(from, to).into(), records, first_ns: now_ns, last_ns: now_ns, seen_from_ns: now_ns }
}

/// A task and what it was given.
struct Task {
    running: Running,
    given: u64,
    folder: PathBuf,
}

/// What a task's files hold, by `zstd` where they are whole and by `flowlog cat` in any case.
struct Found {
    numbers: Vec<u64>,
    notices: Vec<String>,
    lost: u64,
}

impl Task {
    fn start(spec: &Spec, root: &Path) -> Result<Self> {
        let roots = Arc::new(Roots::new(&[root.into()])?.with_node("n1"));
        let (running, _) = Running::start(spec, &roots, Arc::default())?;
        let folder = spec.path.parent().context("a folder")?.into();
        Ok(Self { running, given: 0, folder })
    }

    fn give(&mut self, records: u64) {
        let chunk = chunk(self.given, self.given + records);
        self.running.counters().matched.add(records);
        self.running.write(chunk, Overflow::Wait);
        self.given += records;
    }

    fn counters(&self) -> &TaskCounters {
        self.running.counters()
    }

    fn dropped(&self) -> u64 {
        self.counters().dropped_write_error.get()
    }

    fn troubled(&self) -> bool {
        self.counters().trouble.get().is_some()
    }

    /// Stops it; its counters must close, and its files hold what they say.
    fn finish(self) -> Result<Found> {
        let (given, folder) = (self.given, self.folder.clone());
        let finished = self.running.finish();
        let counters = finished.counters;
        let (written, dropped) = (counters.written.get(), counters.dropped_write_error.get());
        ensure!(written + dropped == given, "{written} written + {dropped} dropped, {given} given");
        let found = find(&folder)?;
        ensure!(found.numbers.len() as u64 == written, "{} found, {written} written", found.numbers.len());
        ensure!(found.numbers.is_sorted_by(|a, b| a < b), "a record came twice or out of order");
        ensure!(found.notices.len() as u64 == counters.notices.get(), "{:?}", found.notices);
        ensure!(
            found.lost == dropped,
            "{} named as lost, {dropped} dropped: {:?}",
            found.lost,
            found.notices
        );
        let gone = found.notices.last().is_some_and(|line| line.contains("NODE_GONE"));
        ensure!(gone, "the last notice is {:?}", found.notices.last());
        Ok(found)
    }
}

fn find(folder: &Path) -> Result<Found> {
    let mut text = Vec::new();
    let request = Request { paths: vec![folder.into()], output: Output::Json, ..Request::default() };
    let summary = cat(&request, &mut text)?;
    ensure!(summary.damage.is_empty(), "{:?}", summary.damage);
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let by_zstd = Command::new("zstd").arg("-dcq").args(&files).output()?;
    ensure!(by_zstd.status.success() && by_zstd.stdout == text, "zstd finds something else in {files:?}");
    ensure!(files.iter().all(|file| fs::metadata(file).is_ok_and(|found| found.len() > 0)), "an empty file");
    for verdict in verify(&[folder.into()])? {
        ensure!(verdict.damage.is_empty() && verdict.indexed, "{verdict:?}");
    }
    parse(&String::from_utf8(text)?)
}

fn parse(text: &str) -> Result<Found> {
    let mut found = Found { numbers: Vec::new(), notices: Vec::new(), lost: 0 };
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        if let Some(n) = value.pointer("/flow/n") {
            found.numbers.push(n.as_u64().context("a number")?);
            continue;
        }
        if let Some(lost) = value.pointer("/lost_events/num_events_lost") {
            found.lost += lost.as_str().context("text")?.parse::<u64>()?;
        }
        found.notices.push(line.to_owned());
    }
    Ok(found)
}

fn until(what: &str, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    while !done()? {
        ensure!(Instant::now() < end, "{what} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Trouble in one task: it says so, counts, resumes when `repair`ed, and nobody else notices.
fn suffer(
    faulty: &Spec,
    root: &Path,
    damage: impl FnOnce() -> Result<()>,
    repair: impl FnOnce() -> Result<()>,
    reason: &str,
) -> Result<Found> {
    let mut healthy = Task::start(&spec("healthy", &root.join("healthy/b.log")), root)?;
    let mut faulty = Task::start(faulty, root)?;
    faulty.give(100);
    until("the first records", || Ok(faulty.counters().written.get() == 100))?;
    damage()?;
    until("the trouble", || {
        faulty.give(5000);
        healthy.give(10);
        Ok(faulty.dropped() > 10_000)
    })?;
    let said = faulty.counters().trouble.get().context("its state says nothing")?;
    ensure!(said.contains(reason) && said.contains("faulty"), "{said}");
    let given = healthy.given;
    until("the other task's records", || Ok(healthy.counters().written.get() >= given))?;
    ensure!(!healthy.troubled() && healthy.dropped() == 0);
    repair()?;
    let dropped_then = faulty.dropped();
    until("the end of the trouble", || Ok(!faulty.troubled()))?;
    faulty.give(100);
    let want = faulty.given - dropped_then;
    until("the new records", || {
        Ok(faulty.counters().written.get() + faulty.dropped() - dropped_then >= want)
    })?;
    ensure!(faulty.dropped() == dropped_then, "more was lost after the trouble");
    healthy.finish()?;
    faulty.finish()
}

#[test]
fn a_full_disk_costs_what_does_not_fit_and_nothing_else() -> Result<()> {
    if !in_child("files::a_full_disk_costs_what_does_not_fit_and_nothing_else", mounts(), &[])? {
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

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    Ok(files)
}

#[test]
fn a_full_disk_costs_the_oldest_files_where_that_is_asked_for() -> Result<()> {
    if !in_child("files::a_full_disk_costs_the_oldest_files_where_that_is_asked_for", mounts(), &[])? {
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
    if !in_child("files::a_read_only_remount_is_survived", mounts(), &[])? {
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
    ensure!(counters.written.get() == 200 && counters.dropped_write_error.get() == given - 100);
    ensure!(counters.dropped_write_error.get() >= dropped);
    let found =
        parse(&String::from_utf8(Command::new("zstd").arg("-dcq").args(logs(&folder)?).output()?.stdout)?)?;
    ensure!(found.numbers.iter().copied().eq(given..given + 100), "{:?}", found.numbers);
    ensure!(found.lost == given - 100, "{:?}", found.notices);
    Command::new("umount").arg(at).status()?;
    Command::new("umount").arg("-l").arg(at).status()?;
    Ok(())
}

fn logs(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(files(folder)?.into_iter().filter(|file| file.extension().is_some_and(|ext| ext == "zst")).collect())
}

#[test]
fn no_descriptors_is_survived() -> Result<()> {
    if !in_child("files::no_descriptors_is_survived", &[], &[])? {
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

/// Compiles the shim; gives it and the file that controls it.
fn shim(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let library = folder.join("shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("offline/shim.c");
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
    let Some(mode) = with_shim("files::write_errors_are_survived")? else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let spec = spec("faulty", &work.path().join("faulty/a.log"));
    suffer(&spec, work.path(), || set(&mode, "eio"), || set(&mode, "none"), "Input/output error")?;
    Ok(())
}

#[test]
fn short_and_interrupted_writes_change_nothing() -> Result<()> {
    let Some(mode) = with_shim("files::short_and_interrupted_writes_change_nothing")? else { return Ok(()) };
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
    let Some(mode) = with_shim("files::a_hanging_disk_holds_up_its_own_task_only")? else { return Ok(()) };
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
    let Some(mode) = with_shim("files::a_failed_sync_begins_a_new_file_that_says_so")? else { return Ok(()) };
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

/// The child of the next test: writes numbered records until it is killed, and tells how many are written.
fn write_for_ever(folder: &Path, first: u64) -> Result<()> {
    let mut task =
        Task::start(&Spec { size_bytes_max: 1 << 20, ..spec("t", &folder.join("a.log")) }, folder)?;
    task.given = first;
    loop {
        task.give(500);
        println!("written {}", task.counters().written.get());
    }
}

#[test]
fn what_was_written_before_a_kill_is_read_and_nothing_is_overwritten() -> Result<()> {
    const NAME: &str = "files::what_was_written_before_a_kill_is_read_and_nothing_is_overwritten";
    const ROUND: u64 = 1 << 32;
    if let (Some(folder), Some(first)) = (std::env::var_os("FLOWLOG_TEST_FOLDER"), std::env::var_os(CHILD)) {
        return write_for_ever(Path::new(&folder), first.to_string_lossy().parse()?);
    }
    let rounds = if std::env::var_os("FLOWLOG_TEST_LONG").is_some() { 1000 } else { 20 };
    let mut seed = u64::from(std::process::id());
    let mut damaged = 0;
    let work = tempfile::tempdir()?;
    for round in 0..rounds {
        let folder = work.path().join((round / 20).to_string());
        fs::create_dir_all(&folder)?;
        let before: Vec<_> = files(&folder)?
            .into_iter()
            .map(|file| fs::read(&file).map(|bytes| (file, bytes)))
            .collect::<Result<_, _>>()?;
        let first = round * ROUND;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--exact", NAME, "--nocapture"])
            .env("FLOWLOG_TEST_FOLDER", &folder)
            .env(CHILD, first.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let moment = Duration::from_millis(20) + Duration::from_micros((seed >> 33) % 250_000);
        let said = child.stdout.take().context("stdout")?;
        let reader = std::thread::spawn(move || std::io::read_to_string(said));
        std::thread::sleep(moment);
        child.kill()?;
        child.wait()?;
        let said = reader.join().ok().context("the reader")??;
        // The last line may be cut off.
        let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let told: u64 =
            whole.lines().rev().find_map(|line| line.strip_prefix("written ")?.parse().ok()).unwrap_or(0);

        let mut text = Vec::new();
        let summary = cat(&Request { paths: vec![folder.clone()], ..Request::default() }, &mut text)?;
        damaged = damaged.max(summary.damage.len());
        let found = parse(&String::from_utf8(text)?)?;
        let of_round: Vec<u64> = found.numbers.iter().copied().filter(|n| *n >= first).collect();
        ensure!(
            of_round.len() as u64 >= told,
            "round {round}: {} found, {told} were written",
            of_round.len()
        );
        ensure!(
            of_round.iter().copied().eq(first..first + of_round.len() as u64),
            "round {round}: not in order"
        );
        for (file, bytes) in before {
            // Only the live file may have got another name.
            let live = file.file_name().is_some_and(|name| name == "a.log.zst");
            ensure!(live || fs::read(&file)? == bytes, "{} was changed", file.display());
        }
    }
    // A restart finishes the last one; in each folder at most one file a round lacks its end, and it is named.
    println!("{rounds} rounds, at most {damaged} files without an end");
    let folder = work.path().join("0");
    Task::start(&spec("t", &folder.join("a.log")), &folder)?
        .running
        .finish()
        .last_file
        .map_or(Ok(()), |file| bail!("{file:?}"))?;
    ensure!(damaged <= 20, "{damaged} damaged files");
    Ok(())
}

#[test]
fn files_are_read_by_other_peoples_tools() -> Result<()> {
    let work = tempfile::tempdir()?;
    for (compression, tool) in [
        (Compression::Zstd { level: 3 }, &["zstd", "-dcq"][..]),
        (Compression::Gzip, &["gzip", "-dc"]),
        (Compression::None, &["cat"]),
    ] {
        let folder = work.path().join(tool[0]);
        let mut task = Task::start(&Spec { compression, ..spec("t", &folder.join("a.log")) }, work.path())?;
        task.give(1000);
        let file = task.running.finish().last_file.context("a file")?;
        let output = Command::new(tool[0]).args(&tool[1..]).arg(&file).output()?;
        ensure!(output.status.success(), "{tool:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        ensure!(text.starts_with(&lines(0, 1000)) && text.lines().count() == 1001, "{tool:?}");
        let plain = folder.join("plain");
        fs::write(&plain, text)?;
        match Command::new("jq")
            .args(["-e", "-c", ".flow.n // .node_status.state_change"])
            .arg(&plain)
            .output()
        {
            Ok(output) => {
                let said = String::from_utf8(output.stdout)?;
                ensure!(said.lines().count() == 1001 && said.ends_with("\"NODE_GONE\"\n"), "jq: {said}");
            }
            Err(error) => println!("jq is not here ({error}); it is not asked"),
        }
    }
    Ok(())
}

#[test]
fn a_real_file_cut_at_every_byte_gives_what_stands_before() -> Result<()> {
    let work = tempfile::tempdir()?;
    let folder = work.path().join("f");
    let mut task = Task::start(&spec("t", &folder.join("a.log")), work.path())?;
    task.give(20);
    until("a flush", || Ok(task.counters().written.get() == 20))?;
    let flushed = fs::metadata(folder.join("a.log.zst"))?.len();
    task.give(20);
    let file = task.running.finish().last_file.context("a file")?;
    let whole = fs::read(&file)?;
    for cut in 1..whole.len() {
        fs::write(&file, &whole[..cut])?;
        let mut text = Vec::new();
        let summary = cat(&Request { paths: vec![file.clone()], ..Request::default() }, &mut text)?;
        let numbers = parse(&String::from_utf8(text)?)?.numbers;
        ensure!(numbers.iter().copied().eq(0..numbers.len() as u64), "cut at {cut}");
        ensure!(
            numbers.len() >= if cut as u64 >= flushed { 20 } else { 0 },
            "cut at {cut}: {}",
            numbers.len()
        );
        ensure!(numbers.len() == 40 || !summary.damage.is_empty(), "cut at {cut}: the loss is not named");
    }
    Ok(())
}
