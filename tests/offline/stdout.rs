//! `filePath: stdout`: plain records for a pipe, whose reader may be slow or gone without harm to anything else.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_tests::records::files;

/// Recorded flows, enough for many times what a pipe holds.
const FLOWS: usize = 3000;

fn replay(folder: &Path) -> Result<Command> {
    let flows: String = (0..FLOWS)
        .map(|n| {
            let time = format!("2026-11-30T20:14:26.{:03}Z", n % 1000);
            format!("{{\"flow\":{{\"time\":\"{time}\",\"uuid\":\"{n:08}\",\"node_name\":\"n1\"}},\"node_name\":\"n1\",\"time\":\"{time}\"}}\n")
        })
        .collect();
    std::fs::write(folder.join("flows"), flows)?;
    std::fs::write(
        folder.join("tasks.yaml"),
        "flowLogs:\n- {name: pipe, filePath: stdout, format: flat}\n- {name: file, filePath: /l/file.log, compression: none}\n",
    )?;
    let mut command = Command::new(binary());
    command
        .arg("replay")
        .arg("--flows")
        .arg(folder.join("flows"))
        .arg("--tasks")
        .arg(folder.join("tasks.yaml"));
    command.arg("--output-dir").arg(folder.join("out")).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

fn file_is_whole(folder: &Path) -> Result<()> {
    let files = files(&folder.join("out"))?;
    let text = std::fs::read_to_string(files.first().context("a file")?)?;
    ensure!(files.len() == 1 && text.lines().count() == FLOWS, "{files:?}");
    Ok(())
}

#[test]
fn a_pipe_gets_plain_lines_however_slowly_it_is_read() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut child = replay(folder.path())?.spawn()?;
    let mut text = String::new();
    let mut from = child.stdout.take().context("stdout")?;
    // A piece at a time, which is far slower than it is written.
    let mut piece = [0; 512];
    loop {
        let read = from.read(&mut piece)?;
        text.push_str(std::str::from_utf8(&piece[..read])?);
        if read == 0 {
            break;
        }
        std::thread::yield_now();
    }
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (n, line) in text.lines().enumerate() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        ensure!(value["uuid"] == format!("{n:08}"), "{line}");
    }
    ensure!(text.lines().count() == FLOWS);
    file_is_whole(folder.path())
}

#[test]
fn a_reader_that_goes_away_costs_only_its_own_records() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut child = replay(folder.path())?.spawn()?;
    let mut from = BufReader::with_capacity(64, child.stdout.take().context("stdout")?);
    let mut line = String::new();
    from.read_line(&mut line)?;
    drop(from);
    let output = child.wait_with_output()?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(1), "{said}");
    ensure!(said.contains("the reader of stdout is gone") && said.contains("the ledger closes"), "{said}");
    file_is_whole(folder.path())
}

#[test]
fn what_makes_no_sense_for_stdout_is_said() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tasks = folder.path().join("tasks.yaml");
    for (keys, said) in [
        ("compression: zstd", "error: "),
        ("fileCompress: true", "error: "),
        ("compressionLevel: 3", "error: "),
        ("fileMaxSizeMb: 3", "warning: "),
        ("compression: none, fileCompress: false", "task a: stdout (json)"),
    ] {
        std::fs::write(&tasks, format!("flowLogs: [{{name: a, filePath: stdout, {keys}}}]"))?;
        let output = Command::new(binary()).arg("check").arg(&tasks).output()?;
        let text = String::from_utf8([output.stdout, output.stderr].concat())?;
        ensure!(text.contains(said), "{keys}: {text}");
    }
    std::fs::write(&tasks, "flowLogs: [{name: a, filePath: stdout}, {name: b, filePath: stdout}]")?;
    let output = Command::new(binary()).arg("check").arg(&tasks).output()?;
    ensure!(output.status.code() == Some(1), "two tasks write to one pipe");
    Ok(())
}
