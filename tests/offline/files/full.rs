//! What is written on file systems that become full, and what is said of it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_user::read::verify;
use flowlog_user::write::{Compression, Spec};

use super::disk::{mount, mounts};
use super::{Task, files, in_child, parse, spec, until};

/// File systems of many sizes that become full, every compression: the task is stopped while there is no space, or space
/// comes back, little by little. What counts as written can be read, what does not is counted as dropped, and where a
/// line still fits the file says so.
#[test]
fn what_counts_as_written_on_a_full_disk_can_be_read() -> Result<()> {
    if !in_child("files::full::what_counts_as_written_on_a_full_disk_can_be_read", mounts(), &[])? {
        return Ok(());
    }
    let compressions = [Compression::Zstd { level: 1 }, Compression::Gzip { level: 6 }, Compression::None];
    let rounds =
        [(64_u64, 1), (100, 7), (256, 40), (900, 300), (1024, 900)].into_iter().flat_map(|(kib, step)| {
            let of = move |compression| [false, true].map(|back| (kib, compression, back, step));
            compressions.into_iter().flat_map(of)
        });
    // Most of the time they wait for the next attempt.
    std::thread::scope(|scope| {
        let spawn = |(kib, compression, back, step)| {
            let named = move || format!("{kib} KiB, {compression:?}, space comes back: {back}");
            scope.spawn(move || full(kib, compression, back, step).with_context(named))
        };
        let rounds: Vec<_> = rounds.map(spawn).collect();
        rounds.into_iter().try_for_each(|round| round.join().unwrap_or_else(|_| anyhow::bail!("it panicked")))
    })
}

fn full(kib: u64, compression: Compression, back: bool, step: u64) -> Result<()> {
    let work = tempfile::tempdir()?;
    let folder = work.path().join("full");
    fs::create_dir(&folder)?;
    let at = folder.to_str().context("a path")?;
    mount(&["-t", "tmpfs", "-o", &format!("size={kib}k"), "none", at])?;
    let spec = Spec { compression, ..spec("full", &folder.join("a.log")) };
    let mut task = Task::start(&spec, work.path())?;
    // A part is flushed before the disk is full.
    task.give(20);
    until("the first records", || Ok(task.counters().written.get() == 20 || task.troubled()))?;
    until("the trouble", || {
        for _ in 0..(500 / step).max(1) {
            task.give(step);
        }
        Ok(task.troubled() && task.dropped() > 0)
    })?;
    if back {
        // Not enough for all that waits, and then enough.
        mount(&["-o", &format!("remount,size={}k", kib + 200), at])?;
        let before = task.counters().written.get();
        until("some more records", || Ok(task.counters().written.get() > before))?;
        mount(&["-o", &format!("remount,size={}k", kib + 8000), at])?;
        until("the end of the trouble", || Ok(!task.troubled()))?;
        task.give(10);
    }
    let given = task.given;
    let finished = task.running.finish();
    let (written, dropped) = (finished.counters.written.get(), finished.counters.dropped_write_error.get());
    ensure!(written + dropped == given, "{written} written + {dropped} dropped, {given} given");
    ensure!(written >= 20 && dropped > 0);
    ensure!(finished.failed.is_some() != back, "{:?}", finished.failed);
    let files = files(&folder)?;
    ensure!(finished.files.paths == files, "{:?} told, {files:?} there", finished.files.paths);
    let text = read_by_others(&files)?;
    let found = parse(&text)?;
    ensure!(found.numbers.len() as u64 == written, "{} found, {written} written", found.numbers.len());
    ensure!(found.numbers.is_sorted_by(|a, b| a < b), "a record came twice or out of order");
    ensure!(found.lost == dropped, "{} named as lost, {dropped} dropped: {:?}", found.lost, found.notices);
    ensure!(
        found.notices.last().is_some_and(|line| line.contains("NODE_GONE")),
        "{:?}",
        found.notices.last()
    );
    for verdict in verify(std::slice::from_ref(&folder))? {
        ensure!(verdict.damage.is_empty(), "{verdict:?}");
        ensure!(verdict.indexed || !matches!(compression, Compression::Zstd { .. }), "{verdict:?}");
    }
    // It is in nobody's way: the mount namespace goes with this process.
    Command::new("umount").args(["-l", at]).status()?;
    Ok(())
}

/// What `zstd`, `gzip` and `cat` find in files, one behind the other.
fn read_by_others(files: &[PathBuf]) -> Result<String> {
    let mut text = Vec::new();
    for file in files {
        let name = file.to_string_lossy();
        let (program, arguments): (_, &[&str]) = match () {
            () if name.ends_with(".zst") => ("zstd", &["-dcq"]),
            () if name.ends_with(".gz") => ("gzip", &["-dc"]),
            () => ("cat", &[]),
        };
        let output = Command::new(program).args(arguments).arg(file).output()?;
        ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        text.extend(output.stdout);
    }
    Ok(String::from_utf8(text)?)
}

/// A replay onto a disk that is too small: every format and compression, and what is said of it.
#[test]
fn a_replay_onto_a_full_disk_says_so() -> Result<()> {
    if !in_child("files::full::a_replay_onto_a_full_disk_says_so", mounts(), &[])? {
        return Ok(());
    }
    let work = tempfile::tempdir()?;
    let input = work.path().join("flows.jsonl");
    let flow = |n: u64| {
        let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            "{{\"flow\":{{\"time\":\"2026-11-30T20:14:26Z\",\"uuid\":\"{x:016x}\",\"verdict\":\"FORWARDED\",\"IP\":{{\"source\":\
             \"10.{}.{}.{}\",\"destination\":\"10.0.0.1\",\"ipVersion\":\"IPv4\"}}}},\"node_name\":\"n\",\
             \"time\":\"2026-11-30T20:14:26Z\"}}\n",
            x >> 40 & 255,
            x >> 48 & 255,
            x >> 56
        )
    };
    fs::write(&input, (0..6000).map(flow).collect::<String>())?;
    let (folder, tasks) = (work.path().join("full"), work.path().join("tasks.yaml"));
    fs::create_dir(&folder)?;
    let at = folder.to_str().context("a path")?;
    for format in ["json", "flat", "protobuf"] {
        for compression in ["zstd", "gzip", "none"] {
            mount(&["-t", "tmpfs", "-o", "size=64k", "none", at])?;
            let task = format!(
                "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- name: t\n  filePath: /var/log/flowlog/t.log\n  \
                 format: {format}\n  compression: {compression}\n"
            );
            fs::write(&tasks, task)?;
            let mut command = Command::new(binary());
            command.args(["replay", "-o", "json", "--flows"]).arg(&input).arg("--tasks").arg(&tasks);
            let output = command.arg("--output-dir").arg(&folder).output()?;
            let said: serde_json::Value = serde_json::from_slice(&output.stdout)?;
            let written = said["tasks"][0]["written"].as_u64().with_context(|| said.to_string())?;
            ensure!(output.status.code() == Some(1), "{format}, {compression}: {:?}", output.status);
            let files: Vec<_> = files(&folder)?.into_iter().map(|file| file.display().to_string()).collect();
            ensure!(said["files"] == serde_json::json!(files), "{} told, {files:?} there", said["files"]);
            let mut command = Command::new(binary());
            let output = command.args(["cat", "-o", "json"]).arg(&folder).output()?;
            let text = String::from_utf8(output.stdout)?;
            ensure!(
                output.status.success(),
                "{format}, {compression}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            let records = text.lines().filter(|line| line.contains("\"FORWARDED\"")).count() as u64;
            ensure!(records == written && written > 0, "{format}, {compression}: {records} of {written}");
            let lost = 6000 - written;
            let named: u64 = parse(&text)?.lost;
            ensure!(named == lost, "{format}, {compression}: {named} named of {lost}");
            ensure!(Command::new("umount").arg(at).status()?.success(), "umount");
        }
    }
    Ok(())
}
