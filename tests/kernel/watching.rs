//! `flowlog top`, on a terminal and without one, and who speaks most as the daemon counts it.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::{Daemon, PATIENCE, binary};
use flowlog_tests::http::{get, unix};
use flowlog_tests::netns::{FAR, INTERFACE, NEAR, Pair};
use flowlog_tests::process::Process;
use flowlog_tests::traffic::{ping, tcp, udp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::end_to_end::{EVERYTHING, tasks};

fn start(pair: &Pair, folder: &Path) -> Result<Daemon> {
    let socket = folder.join("flowlog.sock");
    // Connections are over soon, so that some come and go between two looks at the table.
    let more = ["--socket", socket.to_str().context("a plain path")?, "--idle-timeout", "100ms"];
    Daemon::start(&pair.near, &tasks(folder, EVERYTHING)?, &folder.join("logs"), &more)
}

fn talkers(folder: &Path) -> Result<Value> {
    Ok(serde_json::from_str(&get(unix(&folder.join("flowlog.sock"))?, "/talkers")?.1)?)
}

/// The interface's own counters: packets and bytes, both ways.
fn passed(pair: &Pair) -> Result<(u64, u64)> {
    let sum = |what: &str| -> Result<u64> {
        let read = |side| pair.near.counter(INTERFACE, &format!("{side}_{what}"));
        Ok(read("rx")? + read("tx")?)
    };
    Ok((sum("packets")?, sum("bytes")?))
}

#[test]
fn who_speaks_most_adds_up_to_what_passed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let daemon = start(&pair, folder.path())?;
    ping(&pair, FAR, 3)?; // before anybody asks
    let until = Instant::now() + PATIENCE;
    let mut windows = BTreeSet::new();
    while talkers(folder.path())?["seconds"].is_null() {
        ensure!(Instant::now() < until, "nothing was counted");
        std::thread::sleep(Duration::from_millis(50));
    }
    let before = passed(&pair)?;
    // Connections that stay, and some that do not.
    for port in 0..20 {
        udp(&pair, format!("{FAR}:{}", 6000 + port).parse()?, 1, 100)?;
    }
    udp(&pair, format!("{FAR}:5353").parse()?, 500, 100)?;
    tcp(&pair, format!("{FAR}:8080").parse()?, 50, 300, 5_000)?;
    ping(&pair, FAR, 10)?;
    let after = passed(&pair)?;
    let wanted = (after.0 - before.0, after.1 - before.1);
    let ends = serde_json::json!([NEAR, FAR]);
    loop {
        let window = talkers(folder.path())?;
        for pair in window["pairs"].as_array().context("pairs")? {
            ensure!(pair["ends"] == ends, "{pair}");
        }
        windows.insert(window.to_string());
        let sum = windows.iter().try_fold((0, 0), |sum, window| -> Result<(u64, u64)> {
            let window: Value = serde_json::from_str(window)?;
            let of = |what: &str| window["all"][what].as_u64().context("a sum");
            Ok((sum.0 + of("packets")?, sum.1 + of("bytes")?))
        })?;
        ensure!(sum.0 <= wanted.0, "{sum:?} counted of {wanted:?}");
        if sum == wanted {
            break;
        }
        ensure!(Instant::now() < until, "{sum:?} counted of {wanted:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let printed = Command::new(binary())
        .args(["top", "--interval", "1s", "--for", "3s", "--server"])
        .arg(folder.path().join("flowlog.sock"))
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8(printed.stdout)?;
    ensure!(printed.status.success() && said.matches("healthy\n").count() >= 2, "{said}");
    ensure!(said.contains("\nall   running") && said.contains("the ledger closes"), "{said}");
    ensure!(!said.contains('\x1b'), "{said:?}");
    daemon.stop()?.check()
}

/// The view on a terminal of 80 by 24; `keys` gets what is typed.
fn on_a_terminal(
    folder: &Path,
    keys: impl FnOnce(&mut dyn Write, &mut Process) -> Result<()>,
) -> Result<String> {
    let server = folder.join("flowlog.sock");
    // What is drawn comes without ends of lines, so it is made lines of here.
    let line = format!(
        "stty rows 24 cols 80; {} top --interval 200ms --server {}; echo; echo ended $?; stty -a",
        binary().display(),
        server.display()
    );
    let fifo = folder.join("keys");
    ensure!(Command::new("mkfifo").arg(&fifo).status()?.success(), "mkfifo");
    let mut command = Command::new("bash");
    let script = format!(
        "exec 3<>{fifo}; script -qefc '{line}' /dev/null <&3 | stdbuf -o0 tr '\\033' '\\n'",
        fifo = fifo.display()
    );
    command.args(["-c", &script]).env("TERM", "xterm");
    let mut top = Process::spawn(command)?;
    let mut typed = std::fs::OpenOptions::new().read(true).write(true).open(&fifo)?;
    keys(&mut typed, &mut top)?;
    Ok(top.wait()?.out.join("\n"))
}

/// Waits until a text was drawn.
fn drawn(top: &Process, text: &str) -> Result<()> {
    let mut seen = String::new();
    while !seen.contains(text) {
        seen += &top.line(PATIENCE).with_context(|| seen.clone())?;
    }
    Ok(())
}

/// The alternate screen is left and the cursor shown, and stty finds the terminal as it was.
fn given_back(said: &str) -> Result<()> {
    ensure!(said.contains("[?1049l") && said.contains("[?25h"), "{said}");
    ensure!(said.contains(" icanon") && said.contains(" echo "), "{said}");
    Ok(())
}

#[test]
fn a_terminal_is_drawn_on_obeyed_and_given_back() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let daemon = start(&pair, folder.path())?;
    let said = on_a_terminal(folder.path(), |keys, top| {
        drawn(top, "q ends, ? shows the keys")?;
        keys.write_all(b"?")?;
        drawn(top, "half as often")?;
        keys.write_all(b"q")?;
        Ok(())
    })?;
    ensure!(said.contains("ended 0"), "{said}");
    given_back(&said)?;
    let _ = std::fs::remove_file(folder.path().join("keys"));
    let socket = folder.path().join("flowlog.sock");
    let said = on_a_terminal(folder.path(), |_, top| {
        drawn(top, "q ends, ? shows the keys")?;
        let wanted = format!("--server\0{}\0", socket.display());
        let found = std::fs::read_dir("/proc")?.flatten().filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let pid = entry.file_name().to_str()?.parse().ok()?;
            String::from_utf8_lossy(&line).ends_with(&wanted).then_some(pid)
        });
        let pid = found.filter_map(Pid::from_raw).next().context("it runs")?;
        Ok(kill_process(pid, Signal::TERM)?)
    })?;
    ensure!(said.contains("ended 0"), "{said}");
    given_back(&said)?;
    daemon.stop()?.check()
}

#[test]
fn without_a_daemon_it_says_so() -> Result<()> {
    let output =
        Command::new(binary()).args(["top", "--server", "/nowhere/flowlog.sock", "--for", "1s"]).output()?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(1) && said.contains("no flowlog answers"), "{said}");
    Ok(())
}
