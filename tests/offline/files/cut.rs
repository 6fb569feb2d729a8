//! Files of every format and compression, finished and live, cut at every byte.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flowlog_user::clock::wall_ns;
use flowlog_user::encode;
use flowlog_user::read::{self, Request, Summary, ToLine, cat};
use flowlog_user::record::Format;
use flowlog_user::record::fields::Mask;
use flowlog_user::task::{Overflow, Running};
use flowlog_user::write::{Chunk, Compression, Spec};

use super::{Task, files, spec, until};

const RECORDS: u16 = 12;
/// Records that are flushed before the others.
const FLUSHED: u16 = 6;
const COMPRESSIONS: [Compression; 3] =
    [Compression::Zstd { level: 1 }, Compression::Gzip { level: 6 }, Compression::None];

/// Records whose source ports are numbers in turn, as a task's encoder writes them.
fn ports(format: Format, range: std::ops::Range<u16>) -> Result<Chunk> {
    let mut lines = Vec::new();
    for port in range.clone().map(|n| n + 1) {
        let line = format!(
            r#"{{"flow":{{"time":"2026-11-30T20:14:26Z","IP":{{"source":"10.0.{0}.7","destination":"192.0.2.1","ipVersion":"IPv4"}},"l4":{{"TCP":{{"source_port":{port},"destination_port":443}}}},"node_name":"n1"}},"node_name":"n1","time":"2026-11-30T20:14:26Z"}}"#,
            port % 250,
        );
        let event = read::event(line.as_bytes()).map_err(|error| anyhow::anyhow!("{error}"))?;
        encode::event(format, &event, &Mask::ALL, &mut lines);
    }
    let now_ns = wall_ns();
    let records = u32::from(range.end - range.start);
    Ok(Chunk {
        format,
        lines: lines.into(),
        records,
        first_ns: now_ns,
        last_ns: now_ns,
        seen_from_ns: now_ns,
    })
}

fn give(running: &Running, format: Format, range: std::ops::Range<u16>) -> Result<()> {
    running.write(ports(format, range)?, Overflow::Wait);
    Ok(())
}

/// What `flowlog cat` prints of it: the ports in their order, and whether its last line says that the log ended.
fn ports_of(path: &Path) -> Result<(Vec<u64>, bool, Summary)> {
    let mut text = Vec::new();
    let request = Request {
        paths: vec![path.into()],
        to_line: ToLine(Some(|event, out| encode::notice(Format::Json, event, out))),
        ..Request::default()
    };
    let summary = cat(&request, &mut text)?;
    let text = String::from_utf8(text)?;
    let mut found = Vec::new();
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        found.extend(value.pointer("/flow/l4/TCP/source_port").and_then(serde_json::Value::as_u64));
    }
    Ok((found, text.lines().last().is_some_and(|line| line.contains("NODE_GONE")), summary))
}

fn in_order(found: &[u64]) -> bool {
    found.iter().copied().eq(1..=found.len() as u64)
}

/// The live file as it stood after its last flush, what it holds up to its first one, and the finished file.
fn made(spec: &Spec, root: &Path) -> Result<(Vec<u8>, u64, PathBuf)> {
    let task = Task::start(spec, root)?;
    let live = live_file(spec)?;
    give(&task.running, spec.format, 0..FLUSHED)?;
    until("a flush", || Ok(task.counters().written.get() == u64::from(FLUSHED)))?;
    let flushed = fs::metadata(&live)?.len();
    give(&task.running, spec.format, FLUSHED..RECORDS)?;
    until("the next flush", || Ok(task.counters().written.get() == u64::from(RECORDS)))?;
    let left = fs::read(&live)?;
    let finished = task.running.finish().files.last().cloned().context("a file")?;
    Ok((left, flushed, finished))
}

fn live_file(spec: &Spec) -> Result<PathBuf> {
    let folder = spec.path.parent().context("a folder")?;
    files(folder)?.into_iter().find(|file| file.is_file()).context("a live file")
}

/// A finished file cut there: what stands before is read, what is missing is named, and a restart beside it touches
/// nothing.
fn finished_cuts(spec: &Spec, root: &Path, finished: &Path) -> Result<()> {
    let whole = fs::read(finished)?;
    let (found, gone, summary) = ports_of(finished)?;
    ensure!(found.len() == usize::from(RECORDS) && in_order(&found) && gone && summary.damage.is_empty());
    let mut most = 0;
    for cut in 1..whole.len() {
        fs::write(finished, &whole[..cut])?;
        let (found, gone, summary) = ports_of(finished)?;
        ensure!(in_order(&found) && found.len() >= most, "cut at {cut}: {found:?}");
        most = found.len();
        // Plain text that is cut between two records is all right but for its last word.
        let between = spec.compression == Compression::None && !gone;
        ensure!(!summary.damage.is_empty() || between, "cut at {cut}: the loss is not named");
        if cut % 97 == 0 {
            let task = Task::start(spec, root)?;
            give(&task.running, spec.format, 0..1)?;
            let next = task.running.finish().files.last().cloned().context("a file")?;
            ensure!(
                fs::read(finished)? == whole[..cut] && next.as_path() > finished,
                "cut at {cut}: {next:?}"
            );
            fs::remove_file(next)?;
        }
    }
    fs::remove_file(finished)?;
    Ok(())
}

/// A live file cut there (at every fifth byte in the short form), as a crash leaves it: a restart gives it a finished name with every record before the cut, a
/// last word, and no damage.
fn live_cuts(spec: &Spec, root: &Path, live: &Path, left: &[u8], flushed: u64) -> Result<()> {
    let folder = spec.path.parent().context("a folder")?;
    let step = if flowlog_tests::guest::long() { 1 } else { 5 };
    for cut in (1..=left.len()).rev().step_by(step) {
        fs::write(live, &left[..cut])?;
        let (before, _, _) = ports_of(live)?;
        let task = Task::start(spec, root)?;
        ensure!(task.running.finish().files.last().is_none(), "cut at {cut}: a file without records");
        let names = files(folder)?;
        let [salvaged] = names.as_slice() else { anyhow::bail!("cut at {cut}: {names:?}") };
        ensure!(salvaged != live, "cut at {cut}: still the live name");
        let (found, gone, summary) = ports_of(salvaged)?;
        ensure!(found == before && in_order(&found), "cut at {cut}: {before:?} became {found:?}");
        ensure!(cut as u64 >= flushed || found.len() <= usize::from(FLUSHED), "cut at {cut}");
        ensure!((cut as u64) < flushed || found.len() >= usize::from(FLUSHED), "cut at {cut}: {found:?}");
        // A file in which nothing is whole is kept as it is, and named.
        ensure!(
            found.is_empty() || (gone && summary.damage.is_empty()),
            "cut at {cut}: {gone} {:?}",
            summary.damage
        );
        fs::remove_file(salvaged)?;
    }
    Ok(())
}

#[test]
fn files_of_every_kind_cut_at_every_byte_keep_what_stands_before() -> Result<()> {
    // In memory where that can be: thousands of syncs are no part of this.
    let work = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    for format in Format::ALL {
        for compression in COMPRESSIONS {
            let kind = format!("{}-{}", format.name(), compression.name());
            let of = |part: &str| Spec {
                format,
                compression,
                ..spec("t", &work.path().join(part).join(&kind).join("a.log"))
            };
            let (left, flushed, finished) =
                made(&of("finished"), work.path()).with_context(|| kind.clone())?;
            finished_cuts(&of("finished"), work.path(), &finished)
                .with_context(|| format!("{kind}, finished"))?;
            let spec = of("live");
            let live = {
                let task = Task::start(&spec, work.path())?;
                let live = live_file(&spec)?;
                drop(task.running.finish());
                live
            };
            live_cuts(&spec, work.path(), &live, &left, flushed).with_context(|| format!("{kind}, live"))?;
        }
    }
    Ok(())
}
