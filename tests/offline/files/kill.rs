//! Killed at any moment, cut at any byte, read by others.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flowlog_user::read::{Request, cat, verify};
use flowlog_user::write::{Compression, Spec};

use super::{CHILD, Task, files, lines, parse, spec, until};

/// The child of the next test: writes numbered records until it is killed, and tells how many are written.
fn write_for_ever(folder: &Path, first: u64) -> Result<()> {
    let mut task =
        Task::start(&Spec { size_bytes_max: 1 << 20, ..spec("t", &folder.join("a.log")) }, folder)?;
    task.given = first;
    loop {
        task.give(500);
        println!("written {}", task.counters().written.get());
        // The reader waits for whole lines.
        std::io::Write::flush(&mut std::io::stdout())?;
    }
}

/// A restart with a record finishes each folder's last file; then every tool finds every file whole. Gives how many kills
/// are told.
fn restarted(work: &Path) -> Result<u64> {
    let mut told = 0;
    for folder in files(work)? {
        let mut task = Task::start(&spec("t", &folder.join("a.log")), &folder)?;
        task.given = u64::MAX >> 1;
        task.give(1);
        ensure!(task.running.finish().files.last().is_some(), "no file of the record");
        for verdict in verify(std::slice::from_ref(&folder))? {
            ensure!(verdict.damage.is_empty(), "{verdict:?}");
        }
        let files = files(&folder)?;
        let output = Command::new("zstd").arg("-dcq").args(&files).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = parse(&String::from_utf8(output.stdout)?)?;
        ensure!(found.numbers.is_sorted_by(|a, b| a < b), "names do not sort as the files were written");
        // The last one is of the record's own writer.
        told += found.notices.iter().filter(|line| line.contains("NODE_GONE")).count() as u64 - 1;
    }
    Ok(told)
}

/// Whether a line of the child tells of records in the file.
fn has_written(line: &str) -> bool {
    line.strip_prefix("written ").is_some_and(|count| count != "0")
}

/// The test that is also the child.
const NAME: &str = "files::kill::what_was_written_before_a_kill_is_read_and_nothing_is_overwritten";

/// Lets a child write records from this number on and kills it this long after it began, or after its first record is
/// written. Gives how many it had told of.
fn killed(folder: &Path, first: u64, has_begun: bool, moment: Duration) -> Result<u64> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", NAME, "--nocapture"])
        .env("FLOWLOG_TEST_FOLDER", folder)
        .env(CHILD, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let said = child.stdout.take().context("stdout")?;
    let (begun, begins) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut said = std::io::BufReader::new(said);
        let mut text = String::new();
        // Libtest's own words come first.
        while !text.lines().any(has_written) && std::io::BufRead::read_line(&mut said, &mut text)? > 0 {}
        let _ = begun.send(());
        std::io::Read::read_to_string(&mut said, &mut text)?;
        std::io::Result::Ok(text)
    });
    if has_begun {
        begins.recv_timeout(Duration::from_secs(30)).context("nothing was written")?;
    }
    std::thread::sleep(moment);
    child.kill()?;
    child.wait()?;
    let said = reader.join().ok().context("the reader")??;
    // The last line may be cut off.
    let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let told = whole.lines().rev().find_map(|line| line.strip_prefix("written ")?.parse().ok());
    Ok(told.unwrap_or(0))
}

#[test]
fn what_was_written_before_a_kill_is_read_and_nothing_is_overwritten() -> Result<()> {
    const ROUND: u64 = 1 << 32;
    if let (Some(folder), Some(first)) = (std::env::var_os("FLOWLOG_TEST_FOLDER"), std::env::var_os(CHILD)) {
        return write_for_ever(Path::new(&folder), first.to_string_lossy().parse()?);
    }
    let rounds = if flowlog_tests::guest::long() { 1000 } else { 20 };
    let mut seed = u64::from(std::process::id());
    let work = tempfile::tempdir()?;
    let mut wrote = 0;
    let mut found_before = HashSet::new();
    for round in 0..rounds {
        let folder = work.path().join((round / 4).to_string());
        fs::create_dir_all(&folder)?;
        let before: Vec<_> = files(&folder)?
            .into_iter()
            .map(|file| fs::read(&file).map(|bytes| (file, bytes)))
            .collect::<Result<_, _>>()?;
        let first = round * ROUND;
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let moment = Duration::from_millis(20) + Duration::from_micros((seed >> 33) % 150_000);
        // Every other round dies while it writes, however slow the machine is; the others at any moment of their start.
        let told = killed(&folder, first, round % 2 == 0, moment)?;
        wrote += u64::from(told > 0);

        let mut text = Vec::new();
        let summary = cat(&Request { paths: vec![folder.clone()], ..Request::default() }, &mut text)?;
        ensure!(summary.damage.is_empty(), "round {round}: {:?}", summary.damage);
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
            // The live file may have got another name, and with it what a kill has left of a mend or a rotation.
            let is_finished =
                file.file_name().is_some_and(|name| !name.to_string_lossy().starts_with("a.log.zst"));
            ensure!(!is_finished || fs::read(&file)? == bytes, "{} was changed", file.display());
        }
        let numbers: HashSet<u64> = found.numbers.into_iter().collect();
        if round % 4 == 0 {
            found_before.clear();
        }
        let lost = found_before.difference(&numbers).count();
        ensure!(lost == 0, "round {round}: {lost} records of earlier rounds are gone");
        found_before = numbers;
    }
    let told = restarted(work.path())?;
    println!("{rounds} rounds, {wrote} of them killed after a write, {told} told in the files");
    ensure!(wrote * 2 >= rounds && told >= wrote && told <= rounds, "{told} of {wrote} of {rounds}");
    Ok(())
}

#[test]
fn files_are_read_by_other_peoples_tools() -> Result<()> {
    let work = tempfile::tempdir()?;
    for (compression, tool) in [
        (Compression::Zstd { level: 3 }, &["zstd", "-dcq"][..]),
        (Compression::Gzip { level: 6 }, &["gzip", "-dc"]),
        (Compression::None, &["cat"]),
    ] {
        let folder = work.path().join(tool[0]);
        let mut task = Task::start(&Spec { compression, ..spec("t", &folder.join("a.log")) }, work.path())?;
        task.give(1000);
        let file = task.running.finish().files.last().cloned().context("a file")?;
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
    let file = task.running.finish().files.last().cloned().context("a file")?;
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
        if cut % 397 == 0 {
            // A restart beside it neither touches it nor takes its name.
            let mut task = Task::start(&spec("t", &folder.join("a.log")), work.path())?;
            task.give(1);
            let next = task.running.finish().files.last().cloned().context("a file")?;
            ensure!(fs::read(&file)? == whole[..cut] && next > file, "cut at {cut}: {next:?}");
            fs::remove_file(next)?;
        }
    }
    Ok(())
}
