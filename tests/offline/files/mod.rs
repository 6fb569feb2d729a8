//! Files under real trouble: full and read-only file systems, no descriptors, failing and hanging writes, kill -9.
//!
//! Each test runs its body in a child of its own, in a mount namespace or with a shim where it needs one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_user::clock::wall_ns;
use flowlog_user::metrics::TaskCounters;
use flowlog_user::read::{Output, Request, cat, verify};
use flowlog_user::task::{Overflow, Running};
use flowlog_user::write::{Chunk, Compression, Definition, OnEnd, OnFull, Owner, Roots, Spec, Sync};

mod cut;
mod disk;
mod full;
mod kill;
mod minute;
mod shim;

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

fn spec(task: &str, path: &Path) -> Spec {
    Spec {
        task: task.into(),
        path: path.into(),
        format: flowlog_user::record::Format::Json,
        notices: flowlog_user::write::NoticeEncoder(flowlog_user::encode::notice),
        compression: Compression::Zstd { level: 1 },
        size_bytes_max: 10 << 20,
        total_bytes_max: 100 << 20,
        age_max: None,
        free_percent_min: None,
        rotation_interval: None,
        rotation_aligned: false,
        mode: 0o640,
        owner: Owner::default(),
        sync: Sync::None,
        on_full: OnFull::Drop,
        on_end: OnEnd::Keep,
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
    Chunk {
        format: flowlog_user::record::Format::Json,
        lines: lines(from, to).into(),
        records,
        first_ns: now_ns,
        last_ns: now_ns,
        seen_from_ns: now_ns,
    }
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
    let plain = files.iter().all(|file| file.extension().is_some_and(|ext| ext == "log"));
    let mut others = if plain { Command::new("cat") } else { Command::new("zstd") };
    let others = others.args(if plain { &[][..] } else { &["-dcq"] }).args(&files).output()?;
    ensure!(others.status.success() && others.stdout == text, "others find something else in {files:?}");
    ensure!(files.iter().all(|file| fs::metadata(file).is_ok_and(|found| found.len() > 0)), "an empty file");
    for verdict in verify(&[folder.into()])? {
        ensure!(verdict.damage.is_empty() && (verdict.indexed || plain), "{verdict:?}");
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

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    Ok(files)
}
